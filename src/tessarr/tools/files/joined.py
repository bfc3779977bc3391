"""Files as one source: each array is that of the one file, or the virtual array of those of all files."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Self

import numpy as np

from tessarr import virtual
from tessarr.core.array import Array
from tessarr.engine.choose import may_be_native
from tessarr.engine.jobs import Jobs
from tessarr.errors import UnsupportedOperationError
from tessarr.stores.base import Store
from tessarr.tools.files.agree import Along
from tessarr.tools.files.file_table import FileTable, TableArray, load_table, table_of
from tessarr.tools.files.files_store import FilesStore
from tessarr.tools.files.scan import ScannedArray, ScannedFile
from tessarr.tools.files.unpack import unpacked, unpacked_dtype
from tessarr.tools.sources import open_source
from tessarr.tools.sources.attributes import cf_fill_attribute
from tessarr.tools.sources.base import Box, Source, SourceArray, SourceGroup, StoredChunks
from tessarr.tools.sources.remote_file import is_file_url
from tessarr.tools.transfer import values_in
from tessarr.types import AnyArray, AnyDType

_MOST_OPEN = 8
_REQUESTS = 16
"""Files whose state is looked up at once."""


class FilesSource:
    """Read one file, or files that agree (`check_agreement`), in order, joined along a dimension."""

    parallel = True

    def __init__(
        self, table: FileTable, *, unpack: bool = False, storage_options: Mapping[str, object] | None = None
    ) -> None:
        self.table = table
        self.kind = table.kind
        self._unpack = unpack
        self._options = storage_options
        self._store = FilesStore(table, storage_options)
        self._open: OrderedDict[str, Source] = OrderedDict()
        self._lock = threading.Lock()
        self._unchecked: set[int] = set()
        self._attributes: dict[str, dict[str, object]] = {}
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self.nodes: list[SourceArray | SourceGroup] = []

    @classmethod
    def scanned(
        cls, files: Sequence[ScannedFile], along: Along | None, *, unpack: bool = False,
        storage_options: Mapping[str, object] | None = None,
    ) -> Self:  # fmt: skip
        """Describe files that were scanned. `along`: how many are joined."""
        made, first = cls(table_of(files, along), unpack=unpack, storage_options=storage_options), files[0]
        made.notices, made.unsupported = list(first.notices), list(first.unsupported)
        made.nodes = [one if isinstance(one, SourceGroup) else made._described(one, first) for one in first.nodes]
        return made

    @classmethod
    def loaded(
        cls, store: Store, path: str, *, unpack: bool = False, storage_options: Mapping[str, object] | None = None
    ) -> Self:
        """Open the files of a saved table, to read them. Each is compared with it when it is read first.

        The elements have no type here: who saved the table knows it.
        """
        made = cls(load_table(store, path), unpack=unpack, storage_options=storage_options)
        made._unchecked = set(range(len(made.table)))
        made.nodes = [
            SourceArray(path=one.path, shape=(), dtype=np.dtype("V1"), read=partial(made._read, one))
            for one in made.table.arrays.values()
        ]
        return made

    # -- what it holds ---------------------------------------------------------------------------------------------------

    def _described(self, array: ScannedArray, first: ScannedFile) -> SourceArray:
        node, one, along = array.node, self.table.arrays[array.node.path], self.table.along
        self._attributes[node.path] = dict(node.attributes)
        if node.cf_fill is not None:
            self._attributes[node.path]["_FillValue"] = cf_fill_attribute(node.cf_fill, 3)
        shape, chunks, names = node.shape, node.chunks, node.dimension_names
        requested = None
        if chunks is None and isinstance(array.stored, StoredChunks):
            partial_reads = one.axis is None and not is_file_url(str(self.table.place[0])) and may_be_native()
            requested = None if partial_reads else array.stored.chunks
        if one.axis is not None and along is not None and along.new:
            shape, chunks = (len(self.table), *shape), None if chunks is None else (1, *chunks)
            requested = None if requested is None else (1, *requested)
            names = (along.name, *(names or (None,) * len(node.shape)))
        elif one.axis is not None:
            shape = (*shape[: one.axis], one.edges[-1], *shape[one.axis + 1 :])
        read = partial(self._read, one)
        made = replace(
            node,
            shape=shape,
            chunks=chunks,
            requested=requested,
            dimension_names=names,
            note=_note(one, downloaded=first.downloaded),
            read=read,
        )
        dtype = self._unpacked_type(one)
        return made if dtype is None else replace(unpacked(made, dtype), read=read)

    # -- reading ---------------------------------------------------------------------------------------------------------

    def _read(self, array: TableArray, box: Box) -> AnyArray:
        """Read a box of an array, unpacked if the user wants it."""
        dtype = self._unpacked_type(array)
        parts: list[AnyArray] = []
        for files, inner in _runs(array, box, apart=dtype is not None):
            raw = self._read_run(array, files, inner)
            parts.append(raw if dtype is None else _unpacked(array, files.start, raw, dtype))
        return parts[0] if array.axis is None or len(parts) == 1 else np.concatenate(parts, axis=array.axis)

    def _unpacked_type(self, array: TableArray) -> AnyDType | None:
        """Return the type of unpacked elements, one for files that are packed differently; ``None``: they stay as they are."""
        if not (self._unpack and array.of_file(0).is_packed):
            return None
        return np.result_type(*[unpacked_dtype(layout.source(array.path)) for layout in array.layouts])

    def _read_run(self, array: TableArray, files: range, box: Box) -> AnyArray:
        """Read a box of the arrays of consecutive files: in one batch of requests where all are stored."""
        axis = array.axis
        if array.values is not None:
            first = 0 if axis is None else array.edges[files.start]
            return np.asarray(array.values[_moved(box, axis, first)])
        if not all(array.of_file(number).document for number in files):
            return self._read_one_by_one(array, files, box)
        arrays = [self._opened(number, array.path) for number in files]
        return values_in(arrays[0] if axis is None else self._joined(arrays, axis), box)

    def _read_one_by_one(self, array: TableArray, files: range, box: Box) -> AnyArray:
        axis = array.axis
        if axis is None:
            return self._read_file(array, 0, box)
        parts: list[AnyArray] = []
        for number in files:
            ((_, inner),) = _runs(array, _moved(box, axis, array.edges[files.start]), apart=False, only=number)
            if self._is_new:
                parts.append(self._read_file(array, number, (*inner[:axis], *inner[axis + 1 :]))[np.newaxis])
            else:
                parts.append(self._read_file(array, number, inner))
        return np.concatenate(parts, axis=axis)

    def _read_file(self, array: TableArray, number: int, box: Box) -> AnyArray:
        """Read a box of one file's array: by its references, or by the format's package."""
        if array.of_file(number).document:
            return values_in(self._opened(number, array.path), box)
        self._check(number)
        return self._read_by_package(str(self.table.place[number]), array.path, box)

    def _opened(self, number: int, path: str) -> Array:
        self._check(number)
        return self._store.array(number, self.table.arrays[path])

    def _joined(self, arrays: Sequence[Array], axis: int, attributes: Mapping[str, object] | None = None) -> Array:
        if not self._is_new:
            return virtual.concat(arrays, axis, attributes=attributes)
        assert self.table.along is not None
        names = (self.table.along.name, *(arrays[0].dims or (None,) * arrays[0].ndim))
        return virtual.stack(arrays, axis, attributes=attributes, dimension_names=names)

    @property
    def _is_new(self) -> bool:
        return self.table.along is not None and self.table.along.new

    def _read_by_package(self, place: str, path: str, box: Box) -> AnyArray:
        with self._lock:
            source = self._open.get(place)
            if source is None:
                source = self._open[place] = open_source(place, self.kind, self._options)
                if len(self._open) > _MOST_OPEN:
                    self._open.popitem(last=False)[1].close()
            self._open.move_to_end(place)
            node = next(node for node in source.nodes if isinstance(node, SourceArray) and node.path == path)
            return node.read(box)

    # -- references ------------------------------------------------------------------------------------------------------

    def stored(self, path: str) -> Array:
        """Return the array at a path as the chunks that the files have; nothing is read.

        Raises `UnsupportedOperationError` that says why there are no references to its chunks.
        """
        array = self.table.arrays[path]
        for number in range(len(array.lengths)):
            if not (layout := array.of_file(number)).document:
                raise UnsupportedOperationError(
                    "there are no references to the chunks of an array", store=str(self.table.place[number]),
                    path=f"/{path}", got=layout.why, hint="Leave it out with exclude (--exclude), or convert its values",
                )  # fmt: skip
        attributes = self._attributes[path]
        if array.axis is None:
            return self._store.array(0, array, attributes)
        arrays = [self._store.array(number, array) for number in range(len(array.lengths))]
        return self._joined(arrays, array.axis, attributes)

    # -- changes ---------------------------------------------------------------------------------------------------------

    def _check(self, number: int) -> None:
        if number in self._unchecked:
            self._check_file(number)
            self._unchecked.discard(number)

    def _check_file(self, number: int) -> None:
        self._store.check_unchanged(str(self.table.place[number]), self.table.state(number))

    def check_unchanged(self) -> None:
        """Raise `ConflictError` for a file that has changed since it was scanned."""
        with Jobs(_REQUESTS) as pool:
            for _ in pool.map(self._check_file, range(len(self.table))):
                pass

    def close(self) -> None:
        """Close the files."""
        for source in self._open.values():
            source.close()
        self._open.clear()
        self._store.close()


def _note(array: TableArray, *, downloaded: bool) -> str:
    """Say how a plan reads an array that has no stored chunks."""
    why = next((layout.why for layout in array.layouts if layout.why), "")
    if not why or array.values is not None:
        return ""
    copies = "each worker downloads the files that it reads, and " if downloaded else ""
    return f"{copies}a package reads the values one task at a time, because {why}"


def _moved(box: Box, axis: int | None, by: int) -> Box:
    if axis is None:
        return box
    return (*box[:axis], slice(box[axis].start + by, box[axis].stop + by), *box[axis + 1 :])


def _runs(array: TableArray, box: Box, *, apart: bool, only: int | None = None) -> Iterator[tuple[range, Box]]:
    """Cut a box into those of runs of files, with positions in the run. `apart`: files of a run are packed alike.

    `only`: the part in this file.
    """
    if array.axis is None:
        yield range(1), box
        return
    edges, part = array.edges, box[array.axis]
    first = min(max(0, bisect_right(edges, part.start) - 1), len(edges) - 2)
    stop = max(first + 1, bisect_left(edges, part.stop))
    files = [only] if only is not None else range(first, stop)
    for _, group in groupby(files, key=lambda number: array.of_file(number).packed if apart else ""):
        numbers = list(group)
        run = range(numbers[0], numbers[-1] + 1)
        low, high = max(part.start, edges[run.start]), min(part.stop, edges[run.stop])
        yield run, _moved((*box[: array.axis], slice(low, high), *box[array.axis + 1 :]), array.axis, -edges[run.start])


def _unpacked(array: TableArray, number: int, raw: AnyArray, dtype: AnyDType) -> AnyArray:
    source = replace(array.of_file(number).source(array.path), read=lambda _: raw)
    return unpacked(source, dtype).read(())
