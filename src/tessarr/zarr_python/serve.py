"""Reading and writing with a binding, with the results that zarr-python gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tessarr.indexing.base import Request
from tessarr.zarr_python.binding import Binding


def read(binding: Binding, request: Request) -> npt.NDArray[Any]:
    """The selected elements as a new array of ``request.shape``."""
    bound = binding.bound
    assert bound is not None
    full = np.empty(request.full_shape, bound.dtype, binding.order)
    if full.size:
        binding.engine.read(bound, request.selection, full)
    return request.result(full)


async def read_async(binding: Binding, request: Request) -> npt.NDArray[Any]:
    """Call `read` asynchronously."""
    bound = binding.bound
    assert bound is not None
    full = np.empty(request.full_shape, bound.dtype, binding.order)
    if full.size:
        await binding.engine.read_async(bound, request.selection, full)
    return request.result(full)


def value_for(request: Request, value: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """`value` for the elements of `request`, converted as zarr-python does before it writes.

    ``None`` where it is neither a scalar nor an array of just this shape: what zarr-python makes of others depends on the
    chunks. Raises what NumPy raises for values that cannot be converted.
    """
    array: npt.NDArray[Any]
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


def write(binding: Binding, request: Request, value: npt.NDArray[Any]) -> None:
    """Store `value`, which `value_for` made."""
    bound = binding.bound
    assert bound is not None
    if 0 not in request.selection.shape:
        binding.engine.write(bound, request.selection, value)


async def write_async(binding: Binding, request: Request, value: npt.NDArray[Any]) -> None:
    """Call `write` asynchronously."""
    bound = binding.bound
    assert bound is not None
    if 0 not in request.selection.shape:
        await binding.engine.write_async(bound, request.selection, value)
