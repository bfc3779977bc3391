"""Bind an array: compute everything that engines need, once when the array is opened.

Nothing here is recomputed per call or per chunk. A grid whose chunks differ in shape has one bound chain per distinct shape,
made at its first use. What follows from the metadata alone (`BoundLayout`) is made once for all arrays whose metadata have the
same data type, grid, keys and codecs, as those have that the parse cache knows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.chain import BoundChain
from tessarr.dtypes.base import Scalar
from tessarr.grids.base import Axis
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store
from tessarr.stores.fetch import Fetch, Fetched
from tessarr.stores.protocols import Delete, FetchOne, GetRanges, Remote
from tessarr.types import AnyDType, Coords, Shape

if TYPE_CHECKING:
    from tessarr.engine.reference.versions import ShardIndexCache

_SMALL_SHARD = 64 << 10


class RuntimeOptions(NamedTuple):
    """Options of reads and writes of an array, which are not part of its metadata."""

    write_empty_chunks: bool = False
    """Store chunks that are all fill value; otherwise such chunks are not stored, and are deleted if present."""
    read_missing_chunks: bool = True
    """A missing chunk reads as fill value; otherwise it raises `ChunkNotFoundError`."""
    replace_cut_chunks: bool = False
    """Replace chunks that the end of the array cuts, whatever lies beyond it, as zarr-python does; else that stays, because it
    may be of another writer's append."""
    coalescing: tuple[int, int] | None = None
    """The limits of coalescing in the `ArrayConfig` that was given, kept for it; those of the settings have the effect."""


class Access(NamedTuple):
    """How engines reach the values of a store: what it can do, asked once, when an array is bound."""

    store: Store
    remote: bool
    """A call is a round trip that waits: requests are sent together (`Remote`)."""
    fetch_one: Callable[[Fetch], Coroutine[object, object, Fetched | None]] | None
    """Sends one request by itself, so that its response can be used as soon as it is there (`FetchOne`)."""
    whole_below: int
    """Without latency: below how many decoded bytes a shard is requested whole, because one call is cheaper than two; any
    shard, where a range costs what the value costs."""
    deletes: bool
    """Values can be removed (`Delete`), so that a chunk of fill value need not be stored."""


def access_to(store: Store) -> Access:
    """Ask what `store` can do."""
    fetch_one = store.fetch_one if isinstance(store, FetchOne) else None
    small = _SMALL_SHARD if isinstance(store, GetRanges) else sys.maxsize
    return Access(store, isinstance(store, Remote), fetch_one, small, isinstance(store, Delete))


class BoundLayout:
    """What binding makes of the metadata alone, without attributes, place and options: for all arrays of that layout."""

    __slots__ = ("axes", "chains", "description", "fill", "has_shards", "made_of")

    axes: tuple[Axis, ...]
    fill: Scalar
    """Value of elements in missing chunks: 0-d."""
    chains: dict[Shape, BoundChain]
    """The chain of each chunk shape that was used."""
    description: tuple[str, str] | None
    """The members with which the native engine describes the layout to Rust, and the items of its key template, as JSON;
    ``None`` until an array of the layout is described."""
    has_shards: bool
    """The chunks are shards."""
    made_of: tuple[object, ...]
    """The objects from which it was made; while they live no others have their identities."""

    def __init__(self, metadata: ArrayMetadata) -> None:
        # v1 and v2: without fill value, missing chunks are undefined, and some readers return uninitialised memory
        fill = metadata.fill_value
        self.fill = metadata.data_type.default_fill() if fill is None else fill
        self.axes = metadata.chunk_grid.axes(metadata.shape)
        self.chains = {}
        self.description = None
        self.has_shards = any(codec.name == "sharding_indexed" for codec in metadata.codecs)
        self.made_of = _essence(metadata)


_layouts: dict[tuple[Shape, tuple[int, ...]], BoundLayout] = {}
_MAX_LAYOUTS = 512
"""The cache is emptied when it would exceed this size."""


def _essence(metadata: ArrayMetadata) -> tuple[object, ...]:
    """Return the objects that decide a layout, beside the shape. They are immutable."""
    keys = metadata.chunk_key_encoding
    return metadata.data_type, metadata.chunk_grid, keys, metadata.fill_value, metadata.codecs


def layout_of(metadata: ArrayMetadata) -> BoundLayout:
    """Return the layout of `metadata`: the same as that of earlier metadata made of the same objects."""
    key = metadata.shape, tuple(map(id, _essence(metadata)))
    found = _layouts.get(key)
    if found is not None:
        return found
    layout = BoundLayout(metadata)
    if all(axis.uniform is not None for axis in layout.axes):  # others may hold long lists
        if len(_layouts) >= _MAX_LAYOUTS:
            _layouts.clear()
        _layouts[key] = layout
    return layout


@dataclass(frozen=True, slots=True, eq=False)
class BoundArray:
    """An array ready to be read and written."""

    store: Store
    """The store of the chunks, behind the storage transformers."""
    path: str
    """Node path without leading slash; "" for a root array."""
    metadata: ArrayMetadata
    options: RuntimeOptions
    layout: BoundLayout
    axes: tuple[Axis, ...]
    fill: Scalar
    """Value of elements in missing chunks: 0-d, dtype `dtype`."""
    shape: Shape
    """Shape of the array."""
    dtype: AnyDType
    """NumPy dtype of elements in memory."""
    read_only: str | None = None
    """Why the array must not be written; ``None`` when it may."""
    indexes: ShardIndexCache | None = None
    """Shard indexes that were read, where asking again costs a round trip; ``None`` for local stores."""
    access: Access = field(init=False)
    has_shards: bool = field(init=False)
    """The chunks are shards."""
    may_be_missing: bool = field(init=False)
    """Elements may be missing, so that users read masked arrays of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "access", access_to(self.store))
        object.__setattr__(self, "has_shards", self.layout.has_shards)
        object.__setattr__(self, "may_be_missing", self.metadata.data_type.may_be_missing)

    def key(self, coords: Coords) -> str:
        """Return the store key of the chunk at `coords`."""
        name = self.metadata.chunk_key_encoding.encode(coords)
        return f"{self.path}/{name}" if self.path else name

    def chunk_shape(self, coords: Coords) -> Shape:
        """Return the stored shape of the chunk at `coords`, the part beyond the array's edge included."""
        return tuple(axis.size(index) for axis, index in zip(self.axes, coords, strict=True))

    def nbytes(self, coords: Coords) -> int:
        """Decoded bytes of the chunk at `coords`; a guess where elements differ in size."""
        return self.chain(self.chunk_shape(coords)).spec.nbytes or 1 << 20

    def forget(self, key: str) -> None:
        """Invalidate cached shard indexes of `key`, which was written."""
        if self.indexes is not None:
            self.indexes.forget(key)

    def chain(self, shape: Shape) -> BoundChain:
        """Return the bound codec chain for chunks of `shape`."""
        chains = self.layout.chains
        chain = chains.get(shape)
        if chain is None:
            spec = ChunkSpec(shape, self.metadata.data_type, self.fill)
            chain = chains[shape] = BoundChain(self.metadata.codecs, spec)
        return chain


def bind(
    store: Store,
    path: str,
    metadata: ArrayMetadata,
    options: RuntimeOptions,
    read_only: str | None = None,
    chunks: Store | None = None,
) -> BoundArray:
    """Bind an array's metadata to the store that holds it; `chunks`: the store behind its storage transformers.

    Raises `CodecError` when the codec chain cannot encode the array's chunks, before anything is read or written.
    """
    from tessarr.engine.transformers import transformed

    layout = layout_of(metadata)
    axes, fill = layout.axes, layout.fill
    if metadata.fill_value is None:  # see `BoundLayout`
        options = options._replace(write_empty_chunks=True)
    where = transformed(store, path, metadata) if chunks is None else chunks
    if read_only is None and where.read_only and not store.read_only:
        read_only = "a storage transformer of it only reads"
    indexes = None
    if isinstance(where, Remote):
        from tessarr.engine.reference.versions import ShardIndexCache

        indexes = ShardIndexCache()
    shape, dtype = metadata.shape, metadata.dtype
    bound = BoundArray(where, path, metadata, options, layout, axes, fill, shape, dtype, read_only, indexes)
    first = tuple(axis.size(0) if axis.nchunks else (axis.uniform or 1) for axis in axes)
    bound.chain(first)
    return bound
