"""Serve the batches of chunks that zarr-python passes to a codec pipeline, with a bound array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from zarr.core.buffer import cpu
from zarr.storage._common import StorePath

from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import Codec
from tessarr.codecs.sharding import ShardingCodec
from tessarr.engine.base import Engine
from tessarr.engine.bound import BoundArray, RuntimeOptions, bind
from tessarr.engine.choose import choose
from tessarr.indexing.selection import Outer, Selection
from tessarr.types import AnyArray, Shape
from tessarr.zarr_python.binding import Served, bound_array
from tessarr.zarr_python.counts import COUNTS, FallbackError, is_strict
from tessarr.zarr_python.piped.batches import Batch, Keys, reconstruct
from tessarr.zarr_python.serve import engine_read, engine_write
from tessarr.zarr_python.stores.unwrap import NotServedError

if TYPE_CHECKING:
    from zarr.abc.store import Store as TheirStore
    from zarr.core.array_spec import ArrayConfig
    from zarr.core.buffer import NDBuffer
    from zarr.core.metadata import ArrayMetadata

    from tessarr.zarr_python.piped.batches import Item

_INLINE_NBYTES = {True: 1 << 20, False: 1 << 18}
"""By whether the elements are only copied: a read of at most so many bytes takes less time than a hand-over to a thread, and
runs in zarr-python's loop."""
_MAX_SHAPES = 8
"""The most shapes for which the array at one place is bound; one more removes all of them."""


class _Bound(NamedTuple):
    array: BoundArray
    engine: Engine
    inline_nbytes: int
    """The most bytes of a read that runs in zarr-python's loop; -1 where each read waits for a server."""


class _Place(NamedTuple):
    served: Served
    """The array that is stored there, of the shape in the metadata of the pipeline."""
    keys: Keys
    shapes: dict[Shape, _Bound]
    """Cache of the same array bound for other shapes."""


class _Work(NamedTuple):
    bound: _Bound
    batch: Batch


class PipedArray:
    """The array of one codec pipeline: bound on first use, for each shape that zarr-python gives it."""

    def __init__(self, metadata: ArrayMetadata | None, store: TheirStore, *, keeps_padding: bool) -> None:
        self.metadata = metadata
        self.store = store
        self.keeps_padding = keeps_padding
        """Whether zarr-python keeps the values that chunks hold beyond the array's edge, as in its shards."""
        self._places: dict[tuple[object, ...], _Place | str] = {}
        """Cache of places, or the reasons why there is no bound array, by (prefix, write_empty_chunks, root)."""

    async def read(self, batch: Sequence[Item], out: NDBuffer, drop_axes: tuple[int, ...]) -> bool:
        """Read the selection of `batch` into `out`; return whether tessarr served it. A fallback is counted."""
        work, why = self._work(batch, out, drop_axes, reads=True)
        if work is not None:
            try:
                array = out.as_ndarray_like()
                assert isinstance(array, np.ndarray)
                await _read(work, array)
            except Exception as error:  # zarr-python raises its own error, or succeeds
                why = _failure_reason(error)
            else:
                COUNTS.read()
                return True
        return _fall_back(why)

    async def write(self, batch: Sequence[Item], value: NDBuffer, drop_axes: tuple[int, ...]) -> bool:
        """Write `value` to the selection of `batch`; return whether tessarr served it. A fallback is counted."""
        work, why = self._work(batch, value, drop_axes, reads=False)
        if work is not None:
            try:
                array = value.as_ndarray_like()
                assert isinstance(array, np.ndarray)
                wanted = _value(work, array)
                if wanted is not None:
                    await _write(work, wanted)
                    COUNTS.write()
                    return True
                why = "a value that is neither a scalar nor of the selection's shape"
            except Exception as error:  # zarr-python raises its own error, or succeeds
                why = _failure_reason(error)
        return _fall_back(why)

    # -- binding -----------------------------------------------------------------------------------------------

    def _work(
        self, batch: Sequence[Item], memory: NDBuffer, drop_axes: tuple[int, ...], *, reads: bool
    ) -> tuple[_Work | None, str]:
        """Return the bound array and the selection for an engine, or ``None`` and the reason to fall back."""
        metadata = self.metadata
        if metadata is None:
            return None, "a pipeline within a codec"
        first = batch[0]
        paths = [item[0].path for item in batch if isinstance(item[0], StorePath) and item[0].store is self.store]
        if len(paths) < len(batch):
            return None, "chunks in another store than the array's"
        config = first[1].config
        array: object = memory.as_ndarray_like()
        if type(array) is not np.ndarray or first[1].prototype != cpu.buffer_prototype:
            return None, "the prototype has other buffers than NumPy's"
        if getattr(config, "read_missing_chunks", True) is False:
            return None, "missing chunks are errors"
        try:
            place = self._place(metadata, paths[0], config)
            keeps_padding = reads or self.keeps_padding  # which a read does not select
            selected = reconstruct(batch, paths, place.keys, drop_axes, keeps_padding=keeps_padding)
            if selected is None:
                return None, "a selection that cannot be reconstructed from its chunks"
            shape = place.served.array.shape
            if not reads or not _is_within(selected.selection, shape):
                shape = _shape_with(shape, selected.shape, first[1].shape, keeps_padding=keeps_padding)
            return _Work(_with_shape(place, shape), selected), ""
        except NotServedError as reason:
            return None, str(reason)

    def _place(self, metadata: ArrayMetadata, path: str, config: ArrayConfig) -> _Place:
        """Return the place of which one chunk has the key `path`."""
        ndim = len(metadata.shape)
        prefix = _prefix(path, ndim, metadata)
        key = (prefix, bool(config.write_empty_chunks), getattr(self.store, "root", None))  # which `move` changes
        place = self._places.get(key)
        if place is None:
            try:
                served = bound_array(metadata, config, self.store, prefix.rstrip("/"))
                if served.array.metadata.chunk_grid.name != "regular":
                    raise NotServedError("its chunks differ in shape")
            except NotServedError as reason:
                place = str(reason)
            else:
                place = _Place(served, Keys.of(prefix, served.array.metadata.chunk_key_encoding, ndim), {})
            self._places[key] = place
        if isinstance(place, str):
            raise NotServedError(place)
        return place


def _failure_reason(error: Exception) -> str:
    if is_strict():
        raise error
    return f"tessarr raised {type(error).__name__}"


def _fall_back(why: str) -> bool:
    COUNTS.fall_back(why)
    if is_strict():
        raise FallbackError(why)
    return False


def _is_within(selection: Selection, shape: Shape) -> bool:
    """Return whether `selection`, if it is a box, is of an array of `shape`."""
    if not isinstance(selection, Outer):
        return False
    return all(isinstance(dim, slice) and dim.stop <= n for dim, n in zip(selection.dims, shape, strict=True))


def _shape_with(shape: Shape, needed: Shape, chunk: Shape, *, keeps_padding: bool) -> Shape:
    """Return a shape in which the chunks of a selection end as in an array of `needed`.

    That is `shape`, the one in the metadata, where possible, so that one bound array serves all selections. zarr-python keeps a
    pipeline when the shape of its array changes; the present shape may then be another.
    """
    if keeps_padding:
        shape = tuple(-(-n // length) * length for n, length in zip(shape, chunk, strict=True))
    return tuple(
        n if need == n or (need < n and need % length == 0) else need
        for n, need, length in zip(shape, needed, chunk, strict=True)
    )


def _with_shape(place: _Place, shape: Shape) -> _Bound:
    """Return the array at `place`, bound for `shape`."""
    found = place.shapes.get(shape)
    if found is None:
        bound, choice = place.served
        if shape != bound.shape:
            options = RuntimeOptions(bound.options.write_empty_chunks, replace_cut_chunks=True)
            bound = bind(bound.store, bound.path, bound.metadata.with_(shape=shape), options, bound.read_only)
            choice = choose(bound)
        inline_nbytes = -1 if bound.access.remote else _INLINE_NBYTES[_is_copied(bound.metadata.codecs)]
        found = _Bound(bound, choice.engine, inline_nbytes)
        if len(place.shapes) >= _MAX_SHAPES:
            place.shapes.clear()
        place.shapes[shape] = found
    return found


def _is_copied(codecs: Iterable[Codec]) -> bool:
    """Return whether `codecs` store elements as they are in memory, in shards or not."""
    return all(
        _is_copied(codec.codecs) if isinstance(codec, ShardingCodec) else isinstance(codec, BytesCodec)
        for codec in codecs
    )


def _prefix(path: str, ndim: int, metadata: ArrayMetadata) -> str:
    """Return the prefix of the array in the chunk key `path`."""
    encoded = metadata.encode_chunk_key((0,) * ndim)
    parts = path.split("/")
    return "".join(f"{part}/" for part in parts[: len(parts) - encoded.count("/") - 1])


# -- calling the engine --------------------------------------------------------------------------------------------------


def _full(work: _Work, array: AnyArray) -> AnyArray:
    """Return the part of `array` for the selection, with the dropped axes restored; a view where possible."""
    out = work.batch.out
    part = array[(*out, ...)] if isinstance(out, tuple) else array[out]  # with "...", one element is a view too
    return np.expand_dims(part, work.batch.dropped) if work.batch.dropped else part


async def _read(work: _Work, out: AnyArray) -> None:
    bound, batch = work
    full = _full(work, out)
    direct = isinstance(batch.out, tuple) and not any(isinstance(item, np.ndarray) for item in batch.out)
    if full.shape != batch.selection.shape:
        raise NotServedError("a result of another shape than the selection")
    into = full if direct and full.flags.writeable else np.empty(full.shape, bound.array.dtype)
    if into.dtype != bound.array.dtype:
        raise NotServedError("a result of another type than the array's")
    if into.nbytes <= bound.inline_nbytes:
        bound.engine.read(bound.array, batch.selection, into)
    else:
        await engine_read(bound.engine, bound.array, batch.selection, into)
    if into is not full:
        out[batch.out] = into.reshape([n for d, n in enumerate(into.shape) if d not in batch.dropped])


def _value(work: _Work, value: AnyArray) -> AnyArray | None:
    """Return the values to write, at full rank; ``None`` where their shape is not that of the selection."""
    dtype, shape = work.bound.array.dtype, work.batch.selection.shape
    if value.ndim == 0:
        return np.broadcast_to(value.astype(dtype, copy=False), shape)
    full = _full(work, value)
    return full.astype(dtype, copy=False) if full.shape == shape else None


async def _write(work: _Work, value: AnyArray) -> None:
    bound, batch = work
    if bound.array.read_only is not None:
        raise NotServedError(bound.array.read_only)
    await engine_write(bound.engine, bound.array, batch.selection, value)
