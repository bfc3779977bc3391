"""The store of a virtual array: its document, its engine, and its chunks, encoded when they are requested."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from itertools import product

import numpy as np

from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.chain import BoundChain
from tessarr.core.array import Array
from tessarr.indexing.boxes import chunk_box
from tessarr.indexing.transform import Indices
from tessarr.metadata import serialize
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.path import check_key, check_prefix
from tessarr.types import Buffer, ByteRange, Coords
from tessarr.virtual.engine import Piece, VirtualEngine

_DOCUMENT = "zarr.json"


class VirtualStore(Store):
    """A read-only store of one virtual array, at its root. `tessarr.Array` reads elements by the engine, not by chunks."""

    read_only = True

    def __init__(self, metadata: ArrayMetadata, engine: VirtualEngine) -> None:
        self._metadata = metadata
        self._engine = engine

    @property
    def url(self) -> str:
        """A name that is the same for the same pieces of the same places. Opens nothing."""
        return self._name

    @cached_property
    def _name(self) -> str:
        digest = hashlib.sha256()
        for piece in self._engine.pieces:
            digest.update(repr(_identity(piece)).encode())
        return f"virtual:{digest.hexdigest()[:32]}"

    def engine_of(self, path: str) -> VirtualEngine:
        return self._engine

    def array(self) -> Array:
        """Return the array."""
        return Array._opened(self, "", self._metadata, read_only=True, config=None)

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        check_key(key)
        if key == _DOCUMENT:
            value: Buffer | None = serialize.dumps(self._metadata.documents())[_DOCUMENT]
        else:
            coords = self._metadata.chunk_key_encoding.decode(key, self._metadata.ndim)
            value = None if coords is None else self._chunk(coords)
        if value is None or byte_range is None:
            return value
        view = byte_view(value)
        return view[slice(*byte_range.bounds(view.nbytes))]

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        axes = self._metadata.chunk_grid.axes(self._metadata.shape)
        chunks = map(self._metadata.chunk_key_encoding.encode, product(*(range(axis.nchunks) for axis in axes)))
        yield from (key for key in (_DOCUMENT, *chunks) if key.startswith(prefix))

    def _chunk(self, coords: Coords) -> Buffer | None:
        """Encode a chunk; ``None``: the grid has no such chunk."""
        metadata = self._metadata
        axes = metadata.chunk_grid.axes(metadata.shape)
        if not all(0 <= index < axis.nchunks for index, axis in zip(coords, axes, strict=True)):
            return None
        assert metadata.fill_value is not None
        shape = tuple(axis.size(index) for axis, index in zip(axes, coords, strict=True))
        chunk = np.full(shape, metadata.fill_value, metadata.dtype)
        box = chunk_box(axes, coords)
        self.array().read(box, out=chunk[tuple(slice(0, one.stop - one.start) for one in box)])
        return BoundChain(metadata.codecs, ChunkSpec(shape, metadata.data_type, metadata.fill_value)).encode(chunk)


def _identity(piece: Piece) -> tuple[object, ...]:
    array, transform = piece.view.array, piece.view._transform
    maps = [
        (one.positions.shape, one.positions.tobytes()) if isinstance(one, Indices) else one for one in transform.maps
    ]
    return piece.start, transform.shape, maps, piece.view._fields, array._store.url, array._path
