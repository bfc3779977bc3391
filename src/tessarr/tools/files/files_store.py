"""The chunks of scanned files as the values of one store of references: ``{number of the file}/{path}/c/…``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from tessarr.core.array import Array
from tessarr.errors import ConflictError
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.path import check_prefix, join
from tessarr.stores.virtual.reference import Reference, ReferenceStore
from tessarr.tools.files.file_table import FileTable, TableArray
from tessarr.tools.files.scan import state_of
from tessarr.tools.sources.remote_file import State, is_file_url, remote_state
from tessarr.types import Coords, Shape


class FileReferences:
    """Where the chunks of scanned files are; see `tessarr.stores.virtual.reference.References`."""

    def __init__(self, table: FileTable) -> None:
        self._table = table
        self.metadata = lru_cache(maxsize=256)(self._metadata)

    def _metadata(self, path: str, layout: int, length: int) -> tuple[ArrayMetadata, Shape]:
        """Return the metadata of the array at a path in files that have this layout and length, and its chunks per axis."""
        array = self._table.arrays[path]
        axis = None if array.axis is None or (self._table.along is not None and self._table.along.new) else array.axis
        metadata = array.layouts[layout].metadata(axis, length)
        return metadata, tuple(axis.nchunks for axis in metadata.chunk_grid.axes(metadata.shape))

    def of_file(self, array: TableArray, number: int) -> tuple[ArrayMetadata, Shape]:
        """Return the metadata of an array of file `number`, and its chunks per axis."""
        return self.metadata(array.path, int(array.layout[number]), int(array.lengths[number]))

    def _split(self, key: str) -> tuple[int, TableArray | None]:
        number, _, path = key.strip("/").partition("/")
        array = self._table.arrays.get(path)
        is_stored = array is not None and bool(array.layouts[int(array.layout[int(number)])].document)
        return int(number), array if is_stored else None

    def find(self, key: str) -> bytes | Reference | None:
        name, _, at = f"/{key}".rpartition("/c")
        number, array = self._split(name)
        if array is None:
            return None
        coords: Coords = tuple(map(int, at.split("/")[1:]))
        _, counts = self.of_file(array, number)
        row = int(np.ravel_multi_index(coords, counts)) if counts else 0
        offset, nbytes = self._table.chunk[int(array.start[number]) + row]
        return None if offset < 0 else Reference(str(self._table.place[number]), int(offset), int(nbytes))

    def keys(self) -> Iterator[str]:
        for path, array in self._table.arrays.items():
            for number in range(len(array.lengths)):
                yield from self.below(f"{number}/{path}")

    def below(self, name: str) -> Iterator[str]:
        """Return the keys of one array of a file."""
        number, array = self._split(name)
        if array is not None:
            _, counts = self.of_file(array, number)
            start = int(array.start[number])
            for row, coords in zip(range(start, start + prod(counts)), product(*map(range, counts)), strict=True):
                if self._table.chunk[row][0] >= 0:
                    yield join(name.strip("/"), "/".join(map(str, ("c", *coords))))


class FilesStore(ReferenceStore):
    """The store of these references. It has no documents: only `array` opens what is in it."""

    def __init__(self, table: FileTable, storage_options: Mapping[str, object] | None = None) -> None:
        self._files = FileReferences(table)
        super().__init__(self._files, storage_options=storage_options)

    async def list_prefix_async(self, prefix: str) -> list[str]:
        check_prefix(prefix)
        return [*self._files.below(prefix)] if prefix else [*self._files.keys()]

    def array(self, number: int, array: TableArray, attributes: Mapping[str, object] | None = None) -> Array:
        """Open an array of file `number`, whose chunks are stored."""
        metadata, _ = self._files.of_file(array, number)
        if attributes is not None:
            metadata = metadata.with_attributes(dict(attributes))
        return Array._opened(self, f"{number}/{array.path}".strip("/"), metadata, read_only=True, config=None)

    def check_unchanged(self, place: str, state: State) -> None:
        """Raise `ConflictError` for a file that has changed since it was scanned."""
        try:
            found = remote_state(*self.file_at(place)) if is_file_url(place) else state_of(place)
        except FileNotFoundError:
            found = None
        if found != state:
            raise ConflictError(
                "a file has changed since it was scanned", store=place, expected=state, got=found or "no file",
                hint="Convert it again, or make the plan again",
            )  # fmt: skip
