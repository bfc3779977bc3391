"""The chunks of scanned files as the values of one store of references: ``{number of the file}/{path}/c/…``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from tessarr.core.array import Array
from tessarr.core.creation.array_config import DEFAULT
from tessarr.core.creation.metadata import new_array_metadata
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.path import check_prefix, join
from tessarr.stores.virtual.reference import Reference, ReferenceStore
from tessarr.tools.files.scan import ScannedArray, ScannedFile
from tessarr.tools.sources.attributes import cf_fill_attribute
from tessarr.tools.sources.base import UNSET, SourceArray, StoredChunks
from tessarr.types import Coords


class FileReferences:
    """Where the chunks of scanned files are; see `tessarr.stores.virtual.reference.References`."""

    def __init__(self, files: Sequence[ScannedFile]) -> None:
        self._tables = [(file.place, {path: array.stored for path, array in file.arrays.items()}) for file in files]

    def find(self, key: str) -> bytes | Reference | None:
        number, _, rest = key.partition("/")
        path, _, at = f"/{rest}".rpartition("/c")
        place, tables = self._tables[int(number)]
        stored = tables.get(path.strip("/"))
        if not isinstance(stored, StoredChunks):
            return None
        coords: Coords = tuple(map(int, at.split("/")[1:]))
        offset = int(stored.offsets[coords])
        return None if offset < 0 else Reference(place, offset, int(stored.nbytes[coords]))

    def keys(self) -> Iterator[str]:
        for number, (_, tables) in enumerate(self._tables):
            for path in tables:
                yield from self.below(f"{number}/{path}")

    def below(self, array: str) -> Iterator[str]:
        """Return the keys of one array."""
        number, _, path = array.strip("/").partition("/")
        stored = self._tables[int(number)][1].get(path)
        if isinstance(stored, StoredChunks):
            for coords in product(*map(range, stored.offsets.shape)):
                if stored.offsets[coords] >= 0:
                    yield join(array.strip("/"), "/".join(map(str, ("c", *coords))))


class FilesStore(ReferenceStore):
    """The store of these references. It has no documents: only `array` opens what is in it."""

    def __init__(self, files: Sequence[ScannedFile], storage_options: Mapping[str, object] | None = None) -> None:
        self._files = FileReferences(files)
        super().__init__(self._files, storage_options=storage_options)
        self._metadata: dict[object, ArrayMetadata] = {}

    async def list_prefix_async(self, prefix: str) -> list[str]:
        check_prefix(prefix)
        return [*self._files.below(prefix)] if prefix else [*self._files.keys()]

    def array(self, number: int, array: ScannedArray) -> Array:
        """Open an array of file `number`, whose chunks are stored."""
        stored = array.stored
        assert isinstance(stored, StoredChunks)
        fill = _fill_of(array.node, stored)
        alike = (array.node.path, array.node.shape, stored.chunks, repr(stored.codecs), repr(fill))
        metadata = self._metadata.get(alike)
        if metadata is None:
            metadata = self._metadata[alike] = _metadata(array.node, stored, fill)
        return Array._opened(self, f"{number}/{array.node.path}".strip("/"), metadata, read_only=True, config=None)


def _fill_of(node: SourceArray, stored: StoredChunks) -> object:
    """Return what chunks that are not stored hold; without such chunks, the fill value that the file states."""
    absent = bool((stored.offsets < 0).any()) and stored.fill_value is not UNSET
    fill = stored.fill_value if absent or node.fill_value is UNSET else node.fill_value
    return DEFAULT if fill is UNSET else fill


def _metadata(node: SourceArray, stored: StoredChunks, fill: object) -> ArrayMetadata:
    attributes = dict(node.attributes)
    if node.cf_fill is not None:
        attributes["_FillValue"] = cf_fill_attribute(node.cf_fill, 3)
    return new_array_metadata(
        shape=node.shape,
        dtype=node.dtype,
        chunks=stored.chunks,
        codecs=stored.codecs,
        fill_value=fill,
        attributes=attributes,
        dimension_names=node.dimension_names,
    )
