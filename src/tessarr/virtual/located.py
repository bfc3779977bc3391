"""Where the stored chunks of an array are: as byte ranges of files, also of a virtual array whose pieces are whole chunks."""

from __future__ import annotations

import os
from array import array as array_of_numbers
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tessarr.core.array import Array
from tessarr.errors import UnsupportedOperationError
from tessarr.grids.regular import RegularGrid
from tessarr.indexing.transform import Affine
from tessarr.metadata.array import ArrayMetadata
from tessarr.model.conversion.upgrade import array_to_v3
from tessarr.stores.base import Store
from tessarr.stores.fetch import Extent
from tessarr.stores.functions import is_in_memory
from tessarr.stores.path import file_url, path_of_file_url, prefix_of
from tessarr.stores.protocols import Locate
from tessarr.stores.url import is_url
from tessarr.stores.virtual.reference import Reference, ReferenceStore
from tessarr.types import Coords, Shape
from tessarr.virtual.engine import Piece, VirtualEngine


class ChunkPlace(NamedTuple):
    """The bytes `offset` to ``offset + nbytes`` of the file at `url`."""

    url: str
    offset: int
    nbytes: int


class LocatedChunks(Protocol):
    """An array as its document and the places of its stored chunks, which are looked up when they are needed."""

    metadata: ArrayMetadata
    """Of format 3, without storage transformers."""

    def find(self, coords: Coords) -> ChunkPlace | None:
        """Return the place of a chunk; ``None``: it is not stored."""
        ...

    def __iter__(self) -> Iterator[tuple[Coords, ChunkPlace]]:
        """Iterate over the stored chunks."""
        ...


def located_chunks(array: Array) -> LocatedChunks:
    """Find the stored chunks of an array, or of the arrays that a virtual array is made of.

    In memory are 8 bytes for each chunk that a store lists, and none for those that are references already.

    Raises `UnsupportedOperationError` where a chunk is not a range of a file that has a URL, and where the chunks of a virtual
    array are not whole chunks of its pieces in equal encoding; `MetadataValidationError` where v3 cannot describe a v2 array.
    """
    engine = array._engine
    if isinstance(engine, VirtualEngine):
        return _Joined(array._metadata, engine.pieces)
    return _Stored(array)


class _Stored:
    """The chunks of a stored array."""

    def __init__(self, array: Array) -> None:
        metadata = array._metadata if array.zarr_format == 3 else array_to_v3(array._metadata).metadata
        self.metadata = metadata.with_(storage_transformers=(), pending=None)
        self._array = array
        self._store = array._bound.store
        self._encode = array._metadata.chunk_key_encoding.encode
        self._prefix = prefix_of(array._path)
        self._counts = tuple(axis.nchunks for axis in array._bound.axes)

    @cached_property
    def _listed(self) -> npt.NDArray[np.int64]:
        """The numbers of the stored chunks in C order, sorted."""
        counts, numbers = self._counts, array_of_numbers("q")
        for coords, _ in self._array.stored_chunks():
            number = 0
            for at, count in zip(coords, counts, strict=True):
                number = number * count + at
            numbers.append(number)
        return np.sort(np.frombuffer(numbers, np.int64)) if numbers else np.empty(0, np.int64)

    def find(self, coords: Coords) -> ChunkPlace | None:
        key = self._prefix + self._encode(coords)
        if isinstance(self._store, ReferenceStore):
            return _referred(self._store, key)
        number = 0
        for at, count in zip(coords, self._counts, strict=True):
            number = number * count + at
        at = int(np.searchsorted(self._listed, number))
        return _place(self._store, key) if at < self._listed.size and self._listed[at] == number else None

    def __iter__(self) -> Iterator[tuple[Coords, ChunkPlace]]:
        for coords, key in self._array.stored_chunks():
            found = _referred(self._store, key) if isinstance(self._store, ReferenceStore) else _place(self._store, key)
            if found is not None:
                yield coords, found


def _referred(store: ReferenceStore, key: str) -> ChunkPlace | None:
    """Return the place that a reference names: by the URL that it has, which other programs know."""
    found = store.references.find(key)
    if found is None:
        return None
    if isinstance(found, Reference) and found.nbytes is not None and is_url(found.url) and "://" in found.url:
        store.split(found.url)  # the store may not be allowed to refer there
        return ChunkPlace(found.url, found.offset, found.nbytes)
    return _place(store, key)


def _place(store: Store, key: str) -> ChunkPlace:
    found = store.locate([key]) if isinstance(store, Locate) else [None]
    located = None if found is None else found[0]
    extents = (Extent(store, key),) if located is None else located.extents
    if len(extents) != 1 or (found is None and isinstance(store, Locate)):
        raise UnsupportedOperationError("the chunk is not one range of a file", store=store.url, key=key)
    (extent,) = extents
    nbytes = extent.nbytes
    if nbytes is None:
        nbytes = (extent.store.getsize(extent.key) or 0) - extent.offset
    return ChunkPlace(_url(extent.store, extent.key), extent.offset, nbytes)


def _url(store: Store, key: str) -> str:
    url = store.url
    if url.startswith("file:") and "|" not in url:
        windows = os.name == "nt"
        return file_url(os.path.join(path_of_file_url(url, windows=windows), *key.split("/")), windows=windows)
    if is_in_memory(store) or "://" not in url or "|" in url:
        raise UnsupportedOperationError(
            "other programs cannot find the chunk: it has no URL", store=url, key=key, hint="Copy the array instead"
        )
    return f"{url.rstrip('/')}/{key}"


class _Part(NamedTuple):
    """The chunks of a piece, and where they are in the virtual array."""

    chunks: LocatedChunks
    axes: list[int | None]
    offset: Coords
    """What is added to the coordinates in the piece's array."""
    box: list[range]
    """The coordinates that the piece covers, per axis."""

    def inner(self, coords: Coords) -> Coords:
        """Return the coordinates of a chunk in the piece's array."""
        moved = [0] * sum(axis is not None for axis in self.axes)
        for at, n, axis in zip(coords, self.offset, self.axes, strict=True):
            if axis is not None:
                moved[axis] = at - n
        return tuple(moved)

    def outer(self, coords: Coords) -> Coords:
        """Return the coordinates in the virtual array of a chunk in the piece's array."""
        return tuple(n if axis is None else coords[axis] + n for axis, n in zip(self.axes, self.offset, strict=True))


class _Joined:
    """The chunks of a virtual array: those of its pieces, under other coordinates."""

    def __init__(self, metadata: ArrayMetadata, pieces: tuple[Piece, ...]) -> None:
        known: dict[int, LocatedChunks] = {}
        self._parts: list[_Part] = []
        chunks: Shape = ()
        codecs: tuple[object, ...] = ()
        result = metadata
        for number, piece in enumerate(pieces):
            array = piece.view.array
            if id(array) not in known:
                known[id(array)] = located_chunks(array)
            inner = known[id(array)]
            axes = _axes_of(number, piece, inner.metadata)
            sizes = tuple(1 if axis is None else inner.metadata.chunks[axis] for axis in axes)
            coded = tuple(map(repr, (codec.to_json() for codec in inner.metadata.codecs)))
            fill = inner.metadata.fill_value
            if not number:
                chunks, codecs, result = sizes, coded, inner.metadata
            elif (sizes, coded) != (chunks, codecs):
                raise _unlike(number, "other chunks or codecs than the first one")
            if fill is None or metadata.fill_value is None or fill.tobytes() != metadata.fill_value.tobytes():
                raise _unlike(number, "another fill value")
            self._parts.append(
                _Part(inner, axes, *_aligned(number, piece, axes, sizes, inner.metadata, metadata.shape))
            )
        self.metadata = metadata.with_(data_type=result.data_type, codecs=result.codecs, chunk_grid=RegularGrid(chunks))
        ends = [[(one.start, one.stop) for one in part.box] for part in self._parts]
        self._ends = np.array(ends, np.int64).reshape(len(ends), -1, 2)
        self._line = self._in_line()

    def _in_line(self) -> tuple[int, list[int]] | None:
        """Return the axis along which the pieces follow one another, and where they start; ``None``: they lie otherwise."""
        axes = np.flatnonzero((self._ends != self._ends[:1]).any(axis=(0, 2)))
        if axes.size != 1:
            return None
        starts, stops = self._ends[:, int(axes[0]), 0], self._ends[:, int(axes[0]), 1]
        return (int(axes[0]), starts.tolist()) if (stops[:-1] <= starts[1:]).all() else None

    def _owner(self, coords: Coords) -> int | None:
        """Return the number of the last piece that covers a chunk: what others have there is hidden."""
        if self._line is not None:
            axis, starts = self._line
            number = bisect_right(starts, coords[axis]) - 1
            covers = number >= 0 and all(at in one for at, one in zip(coords, self._parts[number].box, strict=True))
            return number if covers else None
        at = np.array(coords, np.int64)
        covering = np.flatnonzero(((self._ends[:, :, 0] <= at) & (at < self._ends[:, :, 1])).all(axis=1))
        return int(covering[-1]) if covering.size else None

    def find(self, coords: Coords) -> ChunkPlace | None:
        number = self._owner(coords)
        if number is None:
            return None
        part = self._parts[number]
        return part.chunks.find(part.inner(coords))

    def __iter__(self) -> Iterator[tuple[Coords, ChunkPlace]]:
        for number, part in enumerate(self._parts):
            for coords, place in part.chunks:
                moved = part.outer(coords)
                if all(n in one for n, one in zip(moved, part.box, strict=True)) and self._owner(moved) == number:
                    yield moved, place


def _axes_of(number: int, piece: Piece, metadata: ArrayMetadata) -> list[int | None]:
    """Return for each axis of the virtual array that of the piece's array; ``None``: a new axis."""
    maps = piece.view._transform.maps
    axes: list[int | None] = [None] * len(piece.start)
    for axis, one in enumerate(maps):
        if not isinstance(one, Affine) or one.step != 1:
            raise _unlike(number, "elements that are not consecutive in its array")
        axes[one.axis] = axis
    if piece.view._fields or [axis for axis in axes if axis is not None] != [*range(len(maps))]:
        raise _unlike(number, "axes in another order, or single fields")
    if metadata.chunk_grid.chunk_shape is None:
        raise _unlike(number, "chunks of different shapes")
    first, *rest = metadata.codecs
    if None in axes and (first.name != "bytes" or any(codec.kind != "bytes_to_bytes" for codec in rest)):
        raise _unlike(number, f"the codec {first.name}, which a new axis would change")
    return axes


def _aligned(
    number: int, piece: Piece, axes: list[int | None], chunks: Shape, metadata: ArrayMetadata, whole: Shape
) -> tuple[Coords, list[range]]:
    """Return what to add to coordinates in a piece, and the coordinates that its chunks then have, per axis."""
    offset, box = [], []
    for at, (axis, chunk) in enumerate(zip(axes, chunks, strict=True)):
        length, start = piece.view.shape[at], piece.start[at]
        if axis is None:
            offset.append(start)
            box.append(range(start, start + length))
            continue
        one = piece.view._transform.maps[axis]
        assert isinstance(one, Affine)
        ends = start + length == whole[at] and one.start + length == metadata.shape[axis]
        if start % chunk or one.start % chunk or (length % chunk and not ends):
            raise _unlike(number, f"parts of chunks along axis {at}")
        offset.append((start - one.start) // chunk)
        box.append(range(start // chunk, -(-(start + length) // chunk)))
    return tuple(offset), box


def _unlike(number: int, what: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        "the chunks of the virtual array are not stored chunks of its pieces",
        got=f"piece {number} has {what}",
        hint="Copy it, which reads and writes all elements: tessarr.create_array(place, data=z)",
    )
