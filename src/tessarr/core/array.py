"""`Array`: an N-dimensional array in a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from tessarr import registry
from tessarr.common.warn import warn_as_zarr_python
from tessarr.core import open_transactions
from tessarr.core.array_parts.lazy_view import Exported, View
from tessarr.core.array_parts.views import Blocks, OIndex, VIndex
from tessarr.core.asynchronous.sans_io import (
    Call,
    async_variant,
    run_steps,
    run_steps_async,
    sans_io,
    steps_of,
    store_call,
)
from tessarr.core.creation.array_config import ArrayConfig, ArrayConfigLike, array_config
from tessarr.core.info import ArrayInfo, array_info, digest_steps
from tessarr.core.locate import check_chunk_store, locate, requested_format
from tessarr.core.stored import read_nodes
from tessarr.core.stored.parse_cache import parse_document
from tessarr.core.versions.version_methods import VersionMethods
from tessarr.errors import NodeTypeValidationError, ZarrDeprecationWarning
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import Remote
from tessarr.stores.url import StoreLike
from tessarr.types import AnyArray, AnyDType, Shape, ShapeLike, ZarrFormat

if TYPE_CHECKING:
    import numpy.typing as npt

    from tessarr.core.asynchronous.async_array import AsyncArray
    from tessarr.core.attributes import Attributes
    from tessarr.core.streams.follow import Follower, FollowOptions
    from tessarr.dtypes.parse import DTypeLike
    from tessarr.grids.guess import ChunksLike
    from tessarr.metadata.public import ArrayV2Metadata, ArrayV3Metadata


class Array(VersionMethods, Exported):
    """An N-dimensional array in a store, chunked and usually compressed.

    Made by `tessarr.open`, `tessarr.create_array` and similar functions; ``Array(store, path)`` opens an existing array. Safe
    for concurrent use by several threads and processes: writes to disjoint elements lose nothing, even within one chunk.

    >>> import tessarr
    >>> z = tessarr.create_array({}, shape=(100, 100), chunks=(10, 10), dtype="int32", fill_value=42)
    >>> z[:2, :2] = [[1, 2], [3, 4]]
    >>> z[0, :3].tolist()
    [1, 2, 42]
    """

    def __class_getitem__(cls, item: object) -> type[Array]:
        """Return the class: zarr-python's annotations name the kind of metadata, ``Array[ArrayV3Metadata]``."""
        return cls

    def __init__(
        self,
        store: StoreLike = None,
        path: str = "",
        *,
        read_only: bool | None = None,
        config: ArrayConfigLike | None = None,
        **legacy: object,
    ) -> None:
        """Open the array at `path` of `store` (any store-like value). zarr-python 2's keywords are accepted, without effect."""
        given = legacy.get("_async_array", store)  # zarr-python's name for it
        held = getattr(given, "_node", given)  # unwraps an `AsyncArray`
        if not isinstance(held, Array):
            where, here, mode = locate(store, path or None, "r" if read_only else None)
            check_chunk_store(where, legacy.get("chunk_store"))
            held = run_steps(Array._open_steps(where, here, requested_format(store, None), mode, config))
        self.__dict__.update(held.__dict__)

    @classmethod
    async def _open_steps(
        cls, store: Store, path: str, zarr_format: ZarrFormat | None, mode: str, config: ArrayConfigLike | None
    ) -> Array:
        """Open the array that must be at `path`."""
        found = await read_nodes.require_node_steps(store, path, zarr_format, ArrayMetadata)
        assert isinstance(found, ArrayMetadata)
        opened = Array._opened(store, path, found, read_only=mode == "r", config=config)
        return opened._with_format_found_at(path if zarr_format is None else None)

    # -- properties --------------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> ArrayV2Metadata | ArrayV3Metadata:
        """The metadata, with the fields of the array's own format: v2 has no ``dimension_names``, v3 no ``compressor``."""
        from tessarr.metadata.public import to_public

        return to_public(self._metadata)

    @property
    def shape(self) -> Shape:
        """Lengths of the axes. Assigning resizes the array."""
        return self._metadata.shape

    @shape.setter
    def shape(self, new_shape: Shape) -> None:
        self.resize(new_shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._metadata.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self._metadata.shape)

    @property
    def dtype(self) -> AnyDType:
        """NumPy dtype of the elements that are read."""
        return self._metadata.data_type.shown_dtype

    @property
    def itemsize(self) -> int:
        """Bytes per element in memory."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.size * self.dtype.itemsize

    @property
    def fill_value(self) -> Any:
        """Value of elements that were never written, as a scalar; ``None`` where a v1 or v2 document has null."""
        fill = self._metadata.fill_value
        return None if fill is None else self._metadata.data_type.show(fill)[()]

    @fill_value.setter
    def fill_value(self, value: object) -> None:
        from tessarr.core.creation.zarr2_keywords import set_fill_value

        set_fill_value(self, value)

    @property
    def dims(self) -> tuple[str | None, ...] | None:
        """Names of the axes; ``None`` when none are given."""
        return self._metadata.dimension_names

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """The same as `dims`. With the setting ``zarr_python.only_given_names``, arrays without names lack this attribute."""
        from tessarr.metadata.public import names_that_are_given

        return names_that_are_given(self.dims)

    @property
    def attrs(self) -> Attributes:
        """The user attributes."""
        from tessarr.core.attributes import Attributes

        return Attributes(self)

    async def _adopt_steps(self, metadata: ArrayMetadata, since: object) -> None:
        """Adopt `metadata`, which was stored; if another thread changed the array since then, read the stored metadata."""
        if not self._adopt(metadata, since):
            await self._refresh_steps()

    @property
    def config(self) -> ArrayConfig:
        """The runtime options: ``order``, ``write_empty_chunks``, ``read_missing_chunks``, and those that are only kept."""
        return ArrayConfig.of(self.order, self._options)

    def with_config(self, config: ArrayConfigLike | None) -> Array:
        """Return the same array with other runtime options."""
        new = array_config(config, self.config)
        node = self._store, self._path, self._metadata
        made = Array._make(*node, new.options, read_only=self._read_only, order=new.order)
        return made._with_format_found_at(self._format_found_at())

    # -- other kinds of indexing ---------------------------------------------------------------------------------------

    @property
    def oindex(self) -> OIndex:
        """Orthogonal indexing."""
        return OIndex(self)

    @property
    def vindex(self) -> VIndex:
        """Point indexing."""
        return VIndex(self)

    @property
    def blocks(self) -> Blocks:
        """Indexing by whole chunks."""
        return Blocks(self)

    @property
    def lazy(self) -> View:
        """The array as a view, which is indexed without reading: ``z.lazy[10:20].T.read()``."""
        from tessarr.indexing.transform import IndexTransform

        return View(self, IndexTransform.identity(self.shape))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise ValueError("an array in a store cannot become a NumPy array without a copy")
        values = self._without_mask(self[...])
        return values if dtype is None else values.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Iterate along the first axis, with one chunk's rows in memory at a time."""
        return self.islice()

    def islice(self, start: int | None = None, end: int | None = None) -> Iterator[Any]:
        """Iterate over rows `start` to `end`, with one chunk's rows in memory at a time."""
        if not self.shape:
            raise TypeError("an array without dimensions cannot be iterated")
        first, last, _ = slice(start, end).indices(self.shape[0])
        axis = self._bound.axes[0]
        while first < last:
            index = axis.find(first)
            until = min(last, axis.start(index) + axis.size(index))
            yield from self[first:until]
            first = until

    @sans_io
    async def astype(self, dtype: npt.DTypeLike) -> AnyArray:
        """Read all elements into a NumPy array of `dtype`."""
        values = await Call(lambda: self[...], self.read_async, isinstance(self._store, Remote))
        return np.asanyarray(values).astype(dtype)  # type: ignore[no-any-return]

    # -- changing ------------------------------------------------------------------------------------------------------

    @sans_io
    async def resize(self, *new_shape: Any, delete_outside_chunks: bool = True, clear: bool = False) -> None:
        """Change the shape in place. `new_shape`: one shape, or a length per axis.

        Growing writes metadata only; the new area reads as fill value. Shrinking deletes the chunks that are wholly outside
        (`delete_outside_chunks`; otherwise they stay, and a warning says so). `clear` fills the area outside a shrink, and
        the area gained by a grow, with fill value.

        Raises `ConflictError`, having changed nothing (unless its `in_doubt` is true: an answer was lost), when the stored
        shape is not the one that this object last read, `ValueError` for another number of axes or a negative length,
        `ReadOnlyError`.
        Source: Zarr v3.1 core, "Resizing" (non-normative).

        >>> import tessarr
        >>> z = tessarr.create_array({}, shape=(4,), chunks=(2,), dtype="i4")
        >>> z.resize((3,))
        >>> z.shape
        (3,)
        """
        from tessarr.core.array_parts.resize import resize_steps

        shape = new_shape[0] if len(new_shape) == 1 else new_shape
        await resize_steps(self, (shape,) if isinstance(shape, int) else tuple(shape), delete_outside_chunks, clear)

    @sans_io
    async def append(
        self,
        data: npt.ArrayLike,
        axis: int = 0,
        *,
        on_hole: Literal["wait", "void", "error"] = "wait",
        expire: float = 600,
    ) -> Shape:
        """Add `data` after the last element of `axis`. Returns the new shape.

        `data`: on all other axes of the array's lengths. The data is stored before the shape: an append that fails, or is
        cancelled, leaves the array as it was. `on_hole` is the policy for an append on another machine that does not end
        within `expire` seconds: ``"wait"``, with a warning; ``"void"``, fill its region with fill value; or ``"error"``.

        Raises `ValueError` when the lengths differ, `ReadOnlyError`, `ConflictError`, `PendingAppendError` (`data` is stored,
        an earlier append is not), `UnsupportedOperationError` where appends cannot be made safe (as of Zarr
        v1 in object storage), `StaleConsolidatedError`, and `DurabilityError` with a note (`data` is in the array).

        >>> import tessarr
        >>> z = tessarr.create_array({}, shape=(2, 3), chunks=(2, 3), dtype="i4")
        >>> z.append([[1, 2, 3]])
        (3, 3)
        """
        from tessarr.core.array_parts.append import append_steps

        return await append_steps(self, data, axis, on_hole, expire)

    @sans_io
    async def follow(self, **options: Unpack[FollowOptions]) -> Follower[AnyArray]:
        """Iterate over the rows along an axis, those to come included: ``(rows, block)``, each row once, in order.

        `rows` is a slice of the axis, `block` a new array of these rows: whole chunks (shards) of up to 64 MiB, unless
        `max_rows` says otherwise. `options`: see `tessarr.core.streams.follow.FollowOptions`. This object keeps its shape.

        Raises `ValueError`, `TypeError` and `IndexError` for wrong options; the iteration raises `ConflictError` when the array
        was shortened, or changed otherwise, and `ArrayNotFoundError` when it is gone.

        >>> import tessarr
        >>> z = tessarr.create_array({}, data=[1, 2, 3], chunks=(2,))
        >>> rows = z.follow(timeout=0)
        >>> [block.tolist() for _, block in rows], z.append([4]), [block.tolist() for _, block in rows]
        ([[1, 2, 3]], (4,), [[4]])
        >>> rows.position
        {'arrays': ['/'], 'axis': 0, 'row': 4}
        """
        from tessarr.core.streams.follow import ArrayFollower

        return await ArrayFollower({"": self}, options).begin_steps()

    @sans_io
    async def update_attributes(self, new_attributes: Mapping[str, object]) -> Array:
        """Set several attributes in one write. Returns the array."""
        attributes = self.attrs
        await steps_of(type(attributes).update)(attributes, new_attributes)
        return self

    def _require_writable(self) -> None:
        from tessarr.errors import ReadOnlyError

        open_transactions.refuse_outside(self._store, self._path)
        reason = self._read_only_reason()
        if reason is not None:
            raise ReadOnlyError(f"the array is read-only: {reason}", store=self._store.url, path=self.name)

    @sans_io
    async def refresh(self) -> None:
        """Reload the metadata: the shape and attributes that other writers changed."""
        await self._refresh_steps()

    async def _refresh_steps(self) -> None:
        done = False
        while not done:
            state = self._state
            node = await read_nodes.require_node_steps(
                self._store, self._path, self._metadata.zarr_format, ArrayMetadata
            )
            assert isinstance(node, ArrayMetadata)
            done = self._adopt(node, state)

    # -- summaries -----------------------------------------------------------------------------------------------------

    @property
    def info(self) -> ArrayInfo:
        """A readable summary, without reading the store."""
        return array_info(self)

    @sans_io
    async def info_complete(self) -> ArrayInfo:
        """Summarise the array as `info` does, with the number of stored chunks and bytes."""
        stored = await steps_of(Array.nbytes_stored)(self)
        return array_info(self, stored, await self._count_chunks_steps())

    @sans_io
    async def nbytes_stored(self) -> int:
        """Add up the bytes of all values stored for this array, metadata included."""
        nbytes = await store_call(self._store, "getsize_prefix", prefix_of(self._path))
        return int(nbytes)

    @property
    def nchunks_initialized(self) -> int:
        """Number of stored chunks (with shards: number of stored shards times inner chunks per shard)."""
        return run_steps(self._count_chunks_steps())

    async def _count_chunks_steps(self) -> int:
        there = await self._list_chunks_steps()
        if self._sharding is None:
            return len(there)
        inner = prod(self._sharding.chunk_shape)
        shards = (prod(axis.size(i) for axis, i in zip(self._bound.axes, at, strict=True)) for at, _ in there)
        return sum(nelements // inner for nelements in shards)

    def stored_chunks(self) -> Iterator[tuple[tuple[int, ...], str]]:
        """Iterate over ``(grid index, key)`` of every stored chunk (with shards: shard) within the array."""
        return self._chunks_among(self._bound.store.list_prefix(prefix_of(self._path)))

    async def _list_chunks_steps(self) -> list[tuple[tuple[int, ...], str]]:
        keys = await store_call(self._bound.store, "list_prefix", prefix_of(self._path))
        return [*self._chunks_among(keys)]

    def _chunks_among(self, keys: Iterable[str]) -> Iterator[tuple[tuple[int, ...], str]]:
        prefix = prefix_of(self._path)
        grid = tuple(axis.nchunks for axis in self._bound.axes)
        for key in keys:
            coords = self._metadata.chunk_key_encoding.decode(key[len(prefix) :], self.ndim)
            if coords is not None and all(i < n for i, n in zip(coords, grid, strict=True)):
                yield coords, key

    @sans_io
    async def digest(self, hashname: str = "sha1") -> bytes:
        """Compute a digest of metadata, attributes and stored chunks, by the hash `hashname` of `hashlib`."""
        return await digest_steps(self, hashname)

    @sans_io
    async def hexdigest(self, hashname: str = "sha1") -> str:
        """Compute `digest` as hexadecimal text."""
        return (await steps_of(Array.digest)(self, hashname)).hex()

    def __repr__(self) -> str:
        given = self._store.given
        place = str(given) if hasattr(given, "__tessarr_place__") else self._store.url
        return f"<Array {place.rstrip('/')}{self.name if self._path else ''} shape={self.shape} dtype={self.dtype}>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Array)
            and (self._path, self._metadata) == (other._path, other._metadata)
            and (self._store is other._store or self._store.url == other._store.url)
        )

    def __hash__(self) -> int:
        return hash((self._store.url, self._path))

    def __getstate__(self) -> dict[str, object]:
        self._require_committed()
        kept = ("_store", "_path", "_metadata", "_options", "_read_only", "_order", "_format_path")
        return {**{name: self.__dict__[name] for name in kept if name in self.__dict__}, "given": self._store.given}

    # -- zarr-python's names -------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, store: StoreLike, *, config: ArrayConfigLike | None = None) -> Array:
        """Open the array at `store`; see `tessarr.open_array`."""
        return cls(store, config=config)

    @classmethod
    def create(cls, store: StoreLike, **kwargs: object) -> Array:
        """Create an array at `store`; see `tessarr.create`."""
        warn_as_zarr_python("Use zarr.create_array instead.", ZarrDeprecationWarning)
        made: Array = registry.higher("tessarr.create")(store=store, **kwargs)
        return made

    @classmethod
    def from_dict(cls, store_path: StoreLike, data: Mapping[str, object]) -> Array:
        """Make an array with the metadata `data` (one document, attributes included), without reading or writing."""
        where, here, _ = locate(store_path, None, None)
        metadata = parse_document(data, group=False)
        if not isinstance(metadata, ArrayMetadata):
            raise NodeTypeValidationError("the document describes a group, not an array")
        return Array._opened(where, here, metadata, read_only=False, config=None)

    @property
    def async_array(self) -> AsyncArray:
        """The same array as an `AsyncArray`."""
        return self._asynchronous()

    _async_array = async_array

    def _asynchronous(self) -> AsyncArray:
        wrapped: AsyncArray = registry.higher("tessarr.AsyncArray")(self)
        return wrapped

    def info_items(self) -> list[tuple[str, str]]:
        """Return the lines of `info` as ``(label, value)`` pairs."""
        return self.info.items

    def view(
        self,
        shape: ShapeLike | None = None,
        chunks: ChunksLike = None,
        dtype: DTypeLike | None = None,
        fill_value: object = None,
        read_only: Any = None,
    ) -> Array:
        """Return an array over the same stored chunks with other metadata, which is not stored. Only for Zarr v2."""
        from tessarr.core.creation.zarr2_keywords import view

        return view(self, {"shape": shape, "chunks": chunks, "dtype": dtype, "fill_value": fill_value}, read_only)

    is_view = False
    meta_array = property(lambda self: np.empty(()), doc="An empty array of the class that reading returns.")
    write_empty_chunks = property(lambda self: self._options.write_empty_chunks, doc="See `config`.")
    initialized = nchunks_initialized

    resize_async = async_variant(resize)
    append_async = async_variant(append)
    follow_async = async_variant(follow)
    update_attributes_async = async_variant(update_attributes)
    refresh_async = async_variant(refresh)
    info_complete_async = async_variant(info_complete)
    nbytes_stored_async = async_variant(nbytes_stored)
    digest_async = async_variant(digest)
    hexdigest_async = async_variant(hexdigest)
    astype_async = async_variant(astype)

    async def nchunks_initialized_async(self) -> int:
        """Count the stored chunks, as `nchunks_initialized` does."""
        return await run_steps_async(self._count_chunks_steps())

    async def stored_chunks_async(self) -> list[tuple[tuple[int, ...], str]]:
        """List ``(grid index, key)`` of every stored chunk, as `stored_chunks` does."""
        return await run_steps_async(self._list_chunks_steps())
