"""Serve the batches of chunks that zarr-python passes to a codec pipeline, with a bound array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from zarr.core.buffer import cpu
from zarr.storage._common import StorePath

from tessarr.engine.base import Engine
from tessarr.engine.bound import BoundArray, RuntimeOptions, bind
from tessarr.engine.choose import choose
from tessarr.stores.protocols import Remote
from tessarr.types import AnyArray, Coords
from tessarr.zarr_python.binding import bound_array
from tessarr.zarr_python.counts import COUNTS
from tessarr.zarr_python.piped.batches import Batch, reconstruct
from tessarr.zarr_python.serve import engine_read, engine_write
from tessarr.zarr_python.stores.unwrap import NotServedError

if TYPE_CHECKING:
    from zarr.abc.store import Store as TheirStore
    from zarr.core.array_spec import ArrayConfig
    from zarr.core.buffer import NDBuffer
    from zarr.core.metadata import ArrayMetadata

    from tessarr.zarr_python.piped.batches import Item

_INLINE_NBYTES = 1 << 18
"""A read of at most this many bytes takes less time than a hand-over to a thread, and runs in zarr-python's loop."""
_MAX_SHAPES = 8
"""The most entries for shapes in the cache of bound arrays; one more removes all of them."""


class _Bound(NamedTuple):
    array: BoundArray
    engine: Engine


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
        self._bounds: dict[tuple[object, ...], BoundArray | str] = {}
        """Cache of bound arrays, or the reasons why there is none, by (prefix, write_empty_chunks, root)."""
        self._shapes: dict[tuple[object, ...], _Bound] = {}
        """Cache of bound arrays of other shapes, by (path, write_empty_chunks, URL, shape)."""

    async def read(self, batch: Sequence[Item], out: NDBuffer, drop_axes: tuple[int, ...]) -> bool:
        """Read the selection of `batch` into `out`; return whether tessarr served it. A fallback is counted."""
        work, why = self._work(batch, out, drop_axes)
        if work is not None:
            try:
                array = out.as_ndarray_like()
                assert isinstance(array, np.ndarray)
                await _read(work, array)
            except Exception as error:  # zarr-python raises its own error, or succeeds
                why = f"tessarr raised {type(error).__name__}"
            else:
                COUNTS.read()
                return True
        COUNTS.fall_back(why)
        return False

    async def write(self, batch: Sequence[Item], value: NDBuffer, drop_axes: tuple[int, ...]) -> bool:
        """Write `value` to the selection of `batch`; return whether tessarr served it. A fallback is counted."""
        work, why = self._work(batch, value, drop_axes)
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
                why = f"tessarr raised {type(error).__name__}"
        COUNTS.fall_back(why)
        return False

    # -- binding -----------------------------------------------------------------------------------------------

    def _work(self, batch: Sequence[Item], memory: NDBuffer, drop_axes: tuple[int, ...]) -> tuple[_Work | None, str]:
        """Return the bound array and the selection for an engine, or ``None`` and the reason to fall back."""
        metadata = self.metadata
        if metadata is None or not batch:
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
            bound, coords = self._locate(metadata, paths, config)
            selected = reconstruct(batch, coords, drop_axes, keeps_padding=self.keeps_padding)
            if selected is None:
                return None, "a selection that cannot be reconstructed from its chunks"
            return _Work(self._with_shape(bound, selected.shape), selected), ""
        except NotServedError as reason:
            return None, str(reason)

    def _locate(
        self, metadata: ArrayMetadata, paths: list[str], config: ArrayConfig
    ) -> tuple[BoundArray, list[Coords]]:
        """Return the bound array whose chunks have the keys `paths`, and the coords of these chunks."""
        ndim = len(metadata.shape)
        prefix = _prefix(paths[0], ndim, metadata)
        key = (prefix, bool(config.write_empty_chunks), getattr(self.store, "root", None))  # which `move` changes
        bound = self._bounds.get(key)
        if bound is None:
            try:
                array = bound_array(metadata, config, self.store, prefix.rstrip("/"))
                if array.metadata.chunk_grid.name != "regular":
                    raise NotServedError("its chunks differ in shape")
            except NotServedError as reason:
                bound = str(reason)
            else:
                bound = array
            self._bounds[key] = bound
        if isinstance(bound, str):
            raise NotServedError(bound)
        decode = bound.metadata.chunk_key_encoding.decode
        coords = []
        for path in paths:
            place = decode(path[len(prefix) :], ndim) if path.startswith(prefix) else None
            if place is None:
                raise NotServedError("keys that are not those of chunks")
            coords.append(place)
        return bound, coords

    def _with_shape(self, served: BoundArray, shape: tuple[int, ...]) -> _Bound:
        """Return `served` for an array of `shape`: zarr-python keeps a pipeline when the shape changes."""
        key = (served.path, served.options.write_empty_chunks, served.store.url, shape)
        found = self._shapes.get(key)
        if found is None:
            options = RuntimeOptions(served.options.write_empty_chunks)
            array = bind(served.store, served.path, served.metadata.with_(shape=shape), options, served.read_only)
            found = _Bound(array, choose(array).engine)
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[key] = found
        return found


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
    served = bound.array
    if into.nbytes <= _INLINE_NBYTES and not isinstance(served.store, Remote):
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
