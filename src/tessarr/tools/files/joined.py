"""Files as one source: each array is that of the one file, or the virtual array of those of all files."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate

import numpy as np

from tessarr import virtual
from tessarr.core.array import Array
from tessarr.errors import ConflictError, UnsupportedOperationError
from tessarr.tools.files.agree import PACKING, Along
from tessarr.tools.files.files_store import FilesStore
from tessarr.tools.files.scan import ScannedArray, ScannedFile, state_of
from tessarr.tools.files.unpack import is_packed, unpacked, unpacked_dtype
from tessarr.tools.sources import open_source
from tessarr.tools.sources.base import Box, Source, SourceArray, SourceGroup, StoredChunks
from tessarr.tools.sources.remote_file import is_file_url, remote_state
from tessarr.tools.transfer import values_in
from tessarr.types import AnyArray

_MOST_OPEN = 8


class FilesSource:
    """Read one file, or files that agree (`check_agreement`), in order, joined along a dimension."""

    parallel = True

    def __init__(
        self,
        files: Sequence[ScannedFile],
        along: Along | None,
        *,
        unpack: bool = False,
        storage_options: Mapping[str, object] | None = None,
    ) -> None:
        self.files = files
        self._unpack = unpack
        self._along = along
        self._options = storage_options
        self._store = FilesStore(files, storage_options)
        self._open: OrderedDict[str, Source] = OrderedDict()
        self._lock = threading.Lock()
        first = files[0]
        self.kind = first.kind
        self.notices = list(first.notices)
        self.unsupported = list(first.unsupported)
        tables = [file.arrays for file in files]
        self._parts = {path: [table[path] for table in tables] for path in first.arrays}
        self.nodes: list[SourceArray | SourceGroup] = [
            node if isinstance(node, SourceGroup) else self._node(node) for node in first.nodes
        ]

    # -- what it holds ---------------------------------------------------------------------------------------------------

    def _axis(self, array: ScannedArray) -> int | None:
        """Return the axis along which an array is joined; ``None``: it is that of the first file."""
        if self._along is None or len(self.files) == 1:
            return None
        if self._along.new:
            return None if array.digest is not None else 0
        names = array.node.dimension_names or ()
        return names.index(self._along.name) if self._along.name in names else None

    def _node(self, array: ScannedArray) -> SourceArray:
        node, axis, parts = replace(array.node, note=self._note(array)), self._axis(array), self._parts[array.node.path]
        unpack = self._unpack and is_packed(node)
        if axis is None:
            made = replace(node, read=self._reader(0, array))
            return unpacked(made) if unpack else made
        assert self._along is not None
        names = node.dimension_names
        if self._along.new:
            shape = (len(parts), *node.shape)
            chunks = None if node.chunks is None else (1, *node.chunks)
            names = (self._along.name, *(names or (None,) * len(node.shape)))
        else:
            length = sum(part.node.shape[axis] for part in parts)
            shape, chunks = (*node.shape[:axis], length, *node.shape[axis + 1 :]), node.chunks
        made = replace(node, shape=shape, chunks=chunks, dimension_names=names)
        if unpack and any(
            part.node.attributes.get(name) != node.attributes.get(name) for part in parts for name in PACKING
        ):
            dtype = np.result_type(*[unpacked_dtype(part.node) for part in parts])
            single = [
                unpacked(replace(part.node, read=self._reader(number, part)), dtype).read
                for number, part in enumerate(parts)
            ]
            return replace(unpacked(made, dtype), read=self._reading_parts(single, parts, axis))
        made.read = self._joined_reader(parts, axis)
        return unpacked(made) if unpack else made

    def _note(self, array: ScannedArray) -> str:
        if isinstance(array.stored, StoredChunks) or array.values is not None:
            return ""
        copies = "each worker downloads the files that it reads, and " if self.files[0].downloaded else ""
        return f"{copies}a package reads the values one task at a time, because {array.stored}"

    def _joined_reader(self, parts: Sequence[ScannedArray], axis: int) -> Callable[[Box], AnyArray]:
        if all(part.values is not None for part in parts):
            join = np.stack if self._is_new else np.concatenate
            kept = join([np.asarray(part.values) for part in parts], axis=axis)
            return lambda box: np.asarray(kept[box])
        if all(isinstance(part.stored, StoredChunks) for part in parts):
            joined = cache(partial(self._virtual, parts[0].node.path, axis))
            return lambda box: values_in(joined(), box)
        return self._reading_parts([self._reader(number, part) for number, part in enumerate(parts)], parts, axis)

    def _reading_parts(
        self, reads: Sequence[Callable[[Box], AnyArray]], parts: Sequence[ScannedArray], axis: int
    ) -> Callable[[Box], AnyArray]:
        lengths = [1 if self._is_new else part.node.shape[axis] for part in parts]
        return partial(_read_parts, reads, [0, *accumulate(lengths)], axis, self._is_new)

    @property
    def _is_new(self) -> bool:
        return self._along is not None and self._along.new

    def _virtual(self, path: str, axis: int) -> Array:
        arrays = [self._store.array(number, part) for number, part in enumerate(self._parts[path])]
        attributes = dict(arrays[0].attrs)
        if not self._is_new:
            return virtual.concat(arrays, axis, attributes=attributes)
        assert self._along is not None
        names = arrays[0].dims or (None,) * arrays[0].ndim
        return virtual.stack(arrays, axis, attributes=attributes, dimension_names=(self._along.name, *names))

    # -- reading ---------------------------------------------------------------------------------------------------------

    def _reader(self, number: int, array: ScannedArray) -> Callable[[Box], AnyArray]:
        """Return how a box of one file's array is read: by its references, or by the format's package."""
        kept = array.values
        if kept is not None:
            return lambda box: np.asarray(kept[box])
        if isinstance(array.stored, StoredChunks):
            opened = cache(partial(self._store.array, number, array))
            return lambda box: values_in(opened(), box)
        return partial(self._read_by_package, self.files[number], array.node.path)

    def _read_by_package(self, file: ScannedFile, path: str, box: Box) -> AnyArray:
        with self._lock:
            source = self._open.get(file.place)
            if source is None:
                source = self._open[file.place] = open_source(file.place, file.kind, self._options)
                if len(self._open) > _MOST_OPEN:
                    self._open.popitem(last=False)[1].close()
            self._open.move_to_end(file.place)
            node = next(node for node in source.nodes if isinstance(node, SourceArray) and node.path == path)
            return node.read(box)

    # -- references ------------------------------------------------------------------------------------------------------

    def stored(self, path: str) -> Array:
        """Return the array at a path as the chunks that the files have; nothing is read.

        Raises `UnsupportedOperationError` that says why there are no references to its chunks.
        """
        parts = self._parts[path]
        axis = self._axis(parts[0])
        for file, part in zip(self.files, parts if axis is not None else parts[:1], strict=False):
            if not isinstance(part.stored, StoredChunks):
                raise UnsupportedOperationError(
                    "there are no references to the chunks of an array", store=file.place, path=f"/{path}", got=part.stored,
                    hint="Leave it out with exclude (--exclude), or convert its values",
                )  # fmt: skip
        return self._store.array(0, parts[0]) if axis is None else self._virtual(path, axis)

    def check_unchanged(self) -> None:
        """Raise `ConflictError` for a file that has changed since it was scanned."""
        for file in self.files:
            found = remote_state(*self._store.file_at(file.place)) if is_file_url(file.place) else state_of(file.place)
            if found != file.state:
                raise ConflictError(
                    "a file changed while it was converted", store=file.place, expected=file.state, got=found,
                    hint="Convert again",
                )  # fmt: skip

    def close(self) -> None:
        """Close the files."""
        for source in self._open.values():
            source.close()
        self._open.clear()
        self._store.close()


def _read_parts(
    reads: Sequence[Callable[[Box], AnyArray]], edges: Sequence[int], axis: int, new: bool, box: Box
) -> AnyArray:
    """Read a box of arrays one after another along an axis, from those that it touches."""
    parts: list[AnyArray] = []
    for read, start, stop in zip(reads, edges[:-1], edges[1:], strict=True):
        low, high = max(box[axis].start, start), min(box[axis].stop, stop)
        if low < high and new:
            parts.append(read((*box[:axis], *box[axis + 1 :]))[np.newaxis])
        elif low < high:
            parts.append(read((*box[:axis], slice(low - start, high - start), *box[axis + 1 :])))
    return np.concatenate(parts, axis=axis)
