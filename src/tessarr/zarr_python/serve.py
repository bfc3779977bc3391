"""Read and write with a binding, with zarr-python's results."""

from __future__ import annotations

import numpy as np

from tessarr.engine.base import Engine
from tessarr.engine.bound import BoundArray
from tessarr.indexing.base import Request
from tessarr.indexing.selection import Selection
from tessarr.stores.protocols import Remote
from tessarr.stores.remote.base import NetworkStore
from tessarr.stores.remote.loop import in_caller_thread
from tessarr.types import AnyArray, AnyDType
from tessarr.zarr_python.binding import Binding


def read(binding: Binding, request: Request) -> AnyArray:
    """Read the selected elements into a new array of ``request.shape``."""
    bound, engine = binding.bound, binding.engine
    assert bound is not None
    assert engine is not None
    full = np.empty(request.full_shape, bound.dtype, binding.order)
    if full.size:
        engine.read(bound, request.selection, full)
    return request.result(full)


async def read_async(binding: Binding, request: Request) -> AnyArray:
    bound, engine = binding.bound, binding.engine
    assert bound is not None
    assert engine is not None
    full = np.empty(request.full_shape, bound.dtype, binding.order)
    if full.size:
        await engine_read(engine, bound, request.selection, full)
    return request.result(full)


def value_for(request: Request, value: object, dtype: AnyDType) -> AnyArray | None:
    """Convert `value` for the elements of `request`, as zarr-python does before it writes.

    Returns ``None`` for a value that is neither a scalar nor an array of exactly this shape: zarr-python's result then depends
    on the chunks. Raises NumPy's errors for values that cannot be converted.
    """
    array: AnyArray
    if np.isscalar(value):
        array = np.asanyarray(value, dtype=dtype)
    elif isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, list | tuple | np.generic):
        array = np.asarray(value, dtype)
    else:  # the conversion of other objects may depend on more than NumPy
        return None
    if array.dtype.name != dtype.name:
        array = array.astype(dtype, order="A")
    if array.dtype != dtype:
        array = array.astype(dtype)
    if array.ndim and array.shape != request.shape:
        return None
    return request.value(array)


def write(binding: Binding, request: Request, value: AnyArray) -> None:
    """Write `value`, which `value_for` returned."""
    assert binding.writer is not None
    bound, engine = binding.writer
    if 0 not in request.selection.shape:
        engine.write(bound, request.selection, value)


async def write_async(binding: Binding, request: Request, value: AnyArray) -> None:
    assert binding.writer is not None
    bound, engine = binding.writer
    if 0 not in request.selection.shape:
        await engine_write(engine, bound, request.selection, value)


# -- engines, called from zarr-python's event loop ------------------------------------------------------------------------


async def engine_read(engine: Engine, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
    """Read by `engine` without blocking the event loop."""
    if isinstance(bound.store, Remote):
        await engine.read_async(bound, selection, out)
    else:
        await in_caller_thread(engine.read, bound, selection, out)


async def engine_write(engine: Engine, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
    """Write by `engine` without blocking the event loop.

    The write does not run in the default executor of the loop: stores that are called through zarr-python's loop may need
    its threads, and all of them could be waiting for such a store.
    """
    if isinstance(bound.store, NetworkStore):
        await engine.write_async(bound, selection, value)
    else:
        await in_caller_thread(engine.write, bound, selection, value)
