"""Where the stored chunks of an array are: as byte ranges of files, also of a virtual array whose pieces are whole chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from tessarr.core.array import Array
from tessarr.errors import UnsupportedOperationError
from tessarr.grids.regular import RegularGrid
from tessarr.indexing.transform import Affine
from tessarr.metadata.array import ArrayMetadata
from tessarr.model.conversion.upgrade import array_to_v3
from tessarr.stores.base import Store
from tessarr.stores.fetch import Extent
from tessarr.stores.functions import is_in_memory
from tessarr.stores.path import file_url, path_of_file_url
from tessarr.stores.protocols import Locate
from tessarr.types import Coords, Shape
from tessarr.virtual.engine import Piece, VirtualEngine


class ChunkPlace(NamedTuple):
    """The bytes `offset` to ``offset + nbytes`` of the file at `url`."""

    url: str
    offset: int
    nbytes: int


class LocatedChunks(NamedTuple):
    """An array as its document and the places of its stored chunks."""

    metadata: ArrayMetadata
    """Of format 3, without storage transformers."""
    places: Mapping[Coords, ChunkPlace]


def located_chunks(array: Array) -> LocatedChunks:
    """Find the stored chunks of an array, or of the arrays that a virtual array is made of.

    Raises `UnsupportedOperationError` where a chunk is not a range of a file that has a URL, and where the chunks of a virtual
    array are not whole chunks of its pieces in equal encoding; `MetadataValidationError` where v3 cannot describe a v2 array.
    """
    engine = array._engine
    if isinstance(engine, VirtualEngine):
        return _joined(array._metadata, engine.pieces)
    metadata = array._metadata if array.zarr_format == 3 else array_to_v3(array._metadata).metadata
    chunks = [*array.stored_chunks()]
    places = _places(array._bound.store, [key for _, key in chunks])
    plain = metadata.with_(storage_transformers=(), pending=None)
    return LocatedChunks(plain, dict(zip((coords for coords, _ in chunks), places, strict=True)))


def _places(store: Store, keys: list[str]) -> Iterator[ChunkPlace]:
    found = store.locate(keys) if isinstance(store, Locate) else [None] * len(keys)
    for key, located in zip(keys, found or [None] * len(keys), strict=True):
        extents = (Extent(store, key),) if located is None else located.extents
        if len(extents) != 1 or (found is None and isinstance(store, Locate)):
            raise UnsupportedOperationError("the chunk is not one range of a file", store=store.url, key=key)
        (extent,) = extents
        nbytes = extent.nbytes
        if nbytes is None:
            nbytes = (extent.store.getsize(extent.key) or 0) - extent.offset
        yield ChunkPlace(_url(extent.store, extent.key), extent.offset, nbytes)


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


def _joined(metadata: ArrayMetadata, pieces: tuple[Piece, ...]) -> LocatedChunks:
    """Find the chunks of a virtual array: those of its pieces, under other coordinates."""
    chunks: Shape = ()
    codecs: tuple[object, ...] = ()
    result = metadata
    places: dict[Coords, ChunkPlace] = {}
    known: dict[int, LocatedChunks] = {}
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
        offset, box = _aligned(number, piece, axes, sizes, inner.metadata, metadata.shape)
        for coords in product(*box):  # what an earlier piece has there is hidden
            places.pop(coords, None)
        for coords, place in inner.places.items():
            moved = tuple(n if axis is None else coords[axis] + n for axis, n in zip(axes, offset, strict=True))
            if all(n in part for n, part in zip(moved, box, strict=True)):
                places[moved] = place
    described = metadata.with_(data_type=result.data_type, codecs=result.codecs, chunk_grid=RegularGrid(chunks))
    return LocatedChunks(described, places)


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
