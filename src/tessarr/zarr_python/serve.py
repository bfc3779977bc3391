"""Reading and writing with a binding, with the results that zarr-python gives."""

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
    """The selected elements as a new array of ``request.shape``."""
    bound, engine = binding.bound, binding.engine
    assert bound is not None
    assert engine is not None
    full = np.empty(request.full_shape, bound.dtype, binding.order)
    if full.size:
        engine.read(bound, request.selection, full)
    return request.result(full)


async def read_async(binding: Binding, request: Request) -> AnyArray:
    """Call `read` asynchronously."""
    bound, engine = binding.bound, binding.engine
    assert bound is not None
    assert engine is not None
    full = np.empty(request.full_shape, bound.dtype, binding.order)
    if full.size:
        await engine_read(engine, bound, request.selection, full)
    return request.result(full)


def value_for(request: Request, value: object, dtype: AnyDType) -> AnyArray | None:
    """`value` for the elements of `request`, converted as zarr-python does before it writes.

    ``None`` where it is neither a scalar nor an array of just this shape: what zarr-python makes of others depends on the
    chunks. Raises what NumPy raises for values that cannot be converted.
    """
    array: AnyArray
    if np.isscalar(value):
        array = np.asanyarray(value, dtype=dtype)
    elif isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, list | tuple | np.generic):
        array = np.asarray(value, dtype)
    else:  # not NumPy alone decides what it is as an array
        return None
    if array.dtype.name != dtype.name:
        array = array.astype(dtype, order="A")
    if array.dtype != dtype:
        array = array.astype(dtype)
    if array.ndim and array.shape != request.shape:
        return None
    return request.value(array)


def write(binding: Binding, request: Request, value: AnyArray) -> None:
    """Store `value`, which `value_for` made."""
    assert binding.writer is not None
    bound, engine = binding.writer
    if 0 not in request.selection.shape:
        engine.write(bound, request.selection, value)


async def write_async(binding: Binding, request: Request, value: AnyArray) -> None:
    """Call `write` asynchronously."""
    assert binding.writer is not None
    bound, engine = binding.writer
    if 0 not in request.selection.shape:
        await engine_write(engine, bound, request.selection, value)


# -- engines, called from zarr-python's event loop ------------------------------------------------------------------------


async def engine_read(engine: Engine, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
    """Let `engine` read without blocking the event loop."""
    if isinstance(bound.store, Remote):
        await engine.read_async(bound, selection, out)
    else:
        await in_caller_thread(engine.read, bound, selection, out)


async def engine_write(engine: Engine, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
    """Let `engine` write without blocking the event loop.

    Not in the loop's own threads: stores that are called through zarr-python's loop may need these, and all could be waiting
    for such a store.
    """
    if isinstance(bound.store, NetworkStore):
        await engine.write_async(bound, selection, value)
    else:
        await in_caller_thread(engine.write, bound, selection, value)
