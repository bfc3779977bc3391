"""Sort the changes of a transaction of level *publish*: documents, rows of arrays that grow, chunks of new arrays.

Whatever else changes is refused: a chunk that readers see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from tessarr.core.claims.intents import NAME, Region
from tessarr.core.open import open_array
from tessarr.errors import MetadataValidationError, UnsupportedOperationError
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store, Version
from tessarr.stores.functions import check_versions
from tessarr.stores.local.transactions.stage import StagedValue
from tessarr.stores.path import prefix_of
from tessarr.transactions.document_merge import is_document
from tessarr.transactions.overlay import OverlayStore
from tessarr.types import AnyArray


@dataclass(frozen=True, slots=True)
class Growth:
    """An array that the transaction appends to."""

    path: str
    old: ArrayMetadata
    new: ArrayMetadata
    axis: int
    chunks: tuple[str, ...]
    """The keys of the chunks that change."""

    @property
    def region(self) -> Region:
        return Region(self.axis, self.new.shape[self.axis] - self.old.shape[self.axis])


class SortedChanges:
    """The `changes` of the transaction of `overlay` in `store`.

    `before` are the old documents, `expected` the versions that were read. It raises `UnsupportedOperationError`, as its
    methods do, for what cannot be published.
    """

    def __init__(
        self,
        store: Store,
        overlay: OverlayStore,
        changes: Mapping[str, bytes | StagedValue | None],
        before: Mapping[str, bytes],
        expected: Mapping[str, Version | None],
    ) -> None:
        self._store, self._overlay = store, overlay
        self._changes, self._before, self._expected = changes, before, expected
        self._chunks = self._chunks_of_nodes()

    def _chunks_of_nodes(self) -> dict[str, list[str]]:
        """Assign the chunks that change to the paths of the nodes that change."""
        chunks: dict[str, list[str]] = {}
        for key in filter(is_document, self._changes):
            if key.rpartition("/")[2] != NAME:
                hint = "Describe the hierarchy in Zarr v3 first (tessarr migrate)"
                raise self._refusal("documents of Zarr v1 and v2", key, hint)
            if self._changes[key] is None:
                raise self._refusal("the removal of a node", key, "Remove it outside the transaction")
            chunks[key.rpartition("/")[0]] = []
        for key in self._changes:
            if is_document(key):
                continue
            path = key
            while path and path not in chunks:
                path = path.rpartition("/")[0]
            if path not in chunks:
                self._refuse_in_place(key)
            chunks[path].append(key)
        return chunks

    def check(self, *, compares: bool = True) -> None:
        """Raise an error for what cannot be published. `compares`: see `growths`."""
        self.new_chunks()
        for _ in self.growths(compares=compares):
            pass

    def new_chunks(self) -> dict[str, bytes | StagedValue]:
        """Return the values to store below the documents that are created."""
        found: dict[str, bytes | StagedValue] = {}
        for path, keys in self._chunks.items():
            key = prefix_of(path) + NAME
            if key in self._before:
                continue
            array = self._array(self._changes[key], key)
            if array is not None and array.storage_transformers:
                raise self._refusal("a new array with storage transformers", key, "Create it before the transaction")
            for chunk in keys:
                value = self._changes[chunk]
                if value is not None:
                    found[chunk] = value
                elif self._store.exists(chunk):  # of no node, under a name that the array gives to a chunk
                    self._refuse_in_place(chunk)
        return found

    def growths(self, *, compares: bool = True) -> Iterator[Growth]:
        """Find the arrays that are appended to.

        The rows that are there in chunks that change must stay as they are; not `compares`: no such chunk may change.
        """
        for path, keys in self._chunks.items():
            key = prefix_of(path) + NAME
            if key not in self._before:
                continue
            old, new = (self._array(document, key) for document in (self._before[key], self._changes[key]))
            if old is None and new is None:
                if keys:
                    self._refuse_in_place(keys[0])
                continue
            if old is None or new is None or not _is_alike(old, new):
                raise self._refusal("the replacement of a node", key, "Replace it outside the transaction")
            if keys:
                yield self._growth(path, old, new, keys, compares=compares)

    def _growth(self, path: str, old: ArrayMetadata, new: ArrayMetadata, keys: list[str], *, compares: bool) -> Growth:
        grown = [axis for axis, (n, m) in enumerate(zip(old.shape, new.shape, strict=True)) if n != m]
        if len(grown) != 1 or new.shape[grown[0]] < old.shape[grown[0]] or new.storage_transformers:
            self._refuse_in_place(keys[0])
        axis, prefix, inside = grown[0], prefix_of(path), old.chunk_grid.axes(old.shape)
        for key in keys:
            coords = new.chunk_key_encoding.decode(key.removeprefix(prefix), len(new.shape))
            if coords is None:
                self._refuse_in_place(key)
            if coords[axis] < inside[axis].nchunks and not (compares and self._has_same_old_rows(path, old, coords)):
                known = {key: self._expected[key]} if key in self._expected else {}
                check_versions(self._store.url, known, self._store.version)
                self._refuse_in_place(key)
        return Growth(path, old, new, axis, tuple(keys))

    def _has_same_old_rows(self, path: str, old: ArrayMetadata, coords: tuple[int, ...]) -> bool:
        """Whether the rows of a chunk that are within the old shape have the values that are stored."""
        axes = old.chunk_grid.axes(old.shape)
        where = tuple(
            slice(at.start(index), min(at.start(index) + at.size(index), length))
            for at, index, length in zip(axes, coords, old.shape, strict=True)
        )
        own, stored = (read(store, path, where) for store in (self._overlay, self._store))
        if own.dtype.hasobject:
            return bool((own == stored).all())
        return own.tobytes() == stored.tobytes()

    def rows(self, growth: Growth) -> AnyArray:
        """Read the rows that are appended."""
        start = growth.old.shape[growth.axis]
        where = tuple(
            slice(start if axis == growth.axis else 0, length) for axis, length in enumerate(growth.new.shape)
        )
        return read(self._overlay, growth.path, where)

    def _array(self, document: bytes | StagedValue | None, key: str) -> ArrayMetadata | None:
        assert isinstance(document, bytes)
        node = formats.parse_node(3, {NAME: formats.loads(NAME, document, key=key)}).node
        return node if isinstance(node, ArrayMetadata) else None

    def _refuse_in_place(self, key: str) -> NoReturn:
        raise self._refusal(
            "a change of chunks that are there",
            key,
            "Append along one axis of an array, or write outside the transaction; "
            "for several changes in place at once use mode='auto' in a local directory, Redis, SQLite or Icechunk",
        )

    def _refusal(self, what: str, key: str, hint: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            f"a transaction cannot publish {what} here", store=self._store.url, key=key, hint=hint
        )


def is_published(
    store: Store,
    overlay: OverlayStore,
    changes: Mapping[str, bytes | StagedValue | None],
    before: Mapping[str, bytes],
) -> bool:
    """Whether changes are documents, and chunks that no reader sees before the documents are replaced.

    Not if documents cannot be parsed.
    """
    if not any(map(is_document, changes)):
        return False
    try:
        SortedChanges(store, overlay, changes, before, {}).check(compares=False)
    except (UnsupportedOperationError, MetadataValidationError):
        return False
    return True


def read(store: Store, path: str, where: tuple[slice, ...]) -> AnyArray:
    """Read a part of the array at `path`."""
    array = open_array(store, path=path, mode="r", use_consolidated=False)
    found: AnyArray = array[where]
    return found


def _is_alike(old: ArrayMetadata, new: ArrayMetadata) -> bool:
    """Whether two descriptions are of one array, which may have grown."""
    if len(old.shape) != len(new.shape) or any(n > m for n, m in zip(old.shape, new.shape, strict=True)):
        return False
    same = all(
        getattr(old, name) == getattr(new, name)
        for name in ("data_type", "chunk_key_encoding", "fill_value", "codecs", "storage_transformers")
    )
    return same and (old.chunk_grid == new.chunk_grid or hasattr(old.chunk_grid, "covering"))
