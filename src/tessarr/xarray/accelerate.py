"""Read datasets through tessarr that were opened with zarr-python: by the engine ``zarr``, titiler, icechunk and others.

xarray wraps a stored array in nested objects: lazily indexed data around decoding steps around a wrapper of a `zarr.Array`.
A copy of these with a tessarr array inside gives the same values. The graph of a dask array contains such nested objects;
they are replaced under the same key, or in the tasks of the same layer, so that chunks and names stay.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import xarray
from xarray.backends.common import BackendArray
from xarray.backends.zarr import ZarrArrayWrapper

from tessarr.xarray.lazy_array import LazyArray
from tessarr.xarray.lazy_sources import inlined, is_of_xarray

if TYPE_CHECKING:
    from dask.blockwise import Blockwise

    from tessarr.core.array import Array

Opened = TypeVar("Opened")
"""A dataset, a data array or a tree."""

FAST = "reads through tessarr"


class Outcome(NamedTuple):
    """The new data of a variable, and a description of it."""

    data: Any
    why: str


class _Accelerate:
    """Make `accelerate` callable, with `explain` as a method."""

    def __call__(self, obj: Opened) -> Opened:
        """Make a copy of a dataset, data array or tree whose values are read through tessarr where that is possible.

        Arrays opened by the engine ``zarr`` are replaced, also inside a dask array, which keeps its chunks and names. All
        other data stays: loaded values, other engines, arrays that tessarr cannot open. `accelerate.explain` says which.
        The copy reads from the stores of `obj`: ``close`` of either closes them.

        Raises `TypeError` for any other object.

        >>> import numpy as np, xarray as xr, tessarr.xarray
        >>> tessarr.xarray.accelerate.explain(xr.Dataset({"a": ("x", np.arange(3))}))
        {'a': 'left alone: its values are in memory'}
        """
        if isinstance(obj, xarray.DataTree):
            tree = obj.map_over_datasets(_exchanged)
            for path, node in tree.subtree_with_keys:
                node.set_close(obj[path]._close)
            return cast("Opened", tree)
        if isinstance(obj, xarray.DataArray):
            array = obj._from_temp_dataset(_exchanged(obj._to_temp_dataset()))
            array.set_close(obj._close)
            return array
        _check_dataset(obj)
        dataset = _exchanged(obj)
        dataset.set_close(obj._close)  # type: ignore[attr-defined]
        return dataset

    def explain(self, obj: Any) -> dict[str, str]:
        """Say for every variable, by name (in a tree by path), whether it reads through tessarr, or why not.

        Raises `TypeError` for an object that is not of xarray.
        """
        if isinstance(obj, xarray.DataTree):
            return {
                f"{node.path.rstrip('/')}/{name}": why
                for node in obj.subtree
                for name, why in self.explain(node.to_dataset(inherit=False)).items()
            }
        if isinstance(obj, xarray.DataArray):
            whole = obj.to_dataset(name=obj.name if obj.name is not None else "values")
            return self.explain(whole)
        _check_dataset(obj)
        return {str(name): _outcome(variable._data).why for name, variable in obj.variables.items()}


accelerate = _Accelerate()


def _check_dataset(obj: object) -> None:
    if not isinstance(obj, xarray.Dataset):
        hint = "; tessarr.accelerate takes an array of zarr-python" if hasattr(obj, "store_path") else ""
        kind = f"{type(obj).__module__}.{type(obj).__qualname__}"
        raise TypeError(f"expected a dataset, a data array or a tree of xarray, got {kind}{hint}")


def _exchanged(ds: Any) -> Any:
    """Replace the arrays of every variable of the dataset for which that is possible."""
    new = {}
    for name, variable in ds.variables.items():
        outcome = _outcome(variable._data)
        if outcome.why == FAST and outcome.data is not variable._data:
            new[name] = copy.copy(variable)
            new[name]._data = outcome.data
    return ds._replace(variables={**ds._variables, **new})


def _outcome(data: object) -> Outcome:
    if hasattr(data, "dask"):
        return _outcome_of_dask(data)
    return _nest(data)


def _nest(data: Any) -> Outcome:
    """Copy nested lazily indexed data with the array inside replaced."""
    if isinstance(data, LazyArray):
        return Outcome(data, FAST)
    if isinstance(data, ZarrArrayWrapper):
        return _adopted(data)
    inner = getattr(data, "array", None)
    if inner is None or not is_of_xarray(data):
        other = isinstance(data, BackendArray)
        return Outcome(data, f"left alone: {'another engine opened it' if other else 'its values are in memory'}")
    found = _nest(inner)
    if found.data is inner:
        return Outcome(data, found.why)
    changed = copy.copy(data)
    changed.array = found.data
    return Outcome(changed, found.why)


def _adopted(wrapper: Any) -> Outcome:
    """Convert a wrapper of zarr-python's array to one of tessarr's."""
    from tessarr.errors import TessarrError

    array = wrapper._array
    try:
        ours = _as_tessarr(array)
    except (TessarrError, TypeError, ValueError) as error:
        return Outcome(wrapper, f"left alone: tessarr cannot open it ({error})")
    if (ours.shape, ours.dtype) != (array.shape, array.dtype):
        return Outcome(wrapper, f"left alone: tessarr reads it as {ours.dtype} {ours.shape}")
    return Outcome(LazyArray(ours), FAST)


def _as_tessarr(theirs: Any) -> Array:
    """Open the stored array of a zarr-python array with tessarr."""
    from tessarr.core.open import open_array
    from tessarr.zarr_python.stores.unwrap import NotServedError, unwrap

    store = theirs.store_path.store
    with suppress(NotServedError):  # of an unknown class: read through zarr-python's event loop
        store = unwrap(store)
    return open_array(store, path=theirs.path, mode="r", zarr_format=theirs.metadata.zarr_format)


def _outcome_of_dask(data: Any) -> Outcome:
    """Copy a dask array with the stored arrays replaced that its graph holds as values of keys, or in tasks."""
    from dask.blockwise import Blockwise
    from dask.highlevelgraph import HighLevelGraph, Layer, MaterializedLayer

    graph = data.dask
    if not isinstance(graph, HighLevelGraph):
        return Outcome(data, "left alone: its graph has no layers")
    whys: list[str] = []
    layers: dict[str, Layer] = {}
    for name, layer in graph.layers.items():
        if isinstance(layer, Blockwise) and inlined(layer):
            layers[name] = _exchanged_layer(layer, whys)
            continue
        mapping = layer.mapping if isinstance(layer, MaterializedLayer) and len(layer) == 1 else {}
        new = {key: _exchanged_task(task, whys) for key, task in mapping.items()}
        if any(new[key] is not task for key, task in mapping.items()):
            layers[name] = MaterializedLayer(new, annotations=layer.annotations)
    if not whys:
        return Outcome(data, "left alone: its graph holds no array that an engine of Zarr opened")
    if all(layer is graph.layers[name] for name, layer in layers.items()):
        return Outcome(data, whys[0])
    changed = copy.copy(data)
    changed.dask = HighLevelGraph({**graph.layers, **layers}, graph.dependencies)
    slow = [why for why in whys if why != FAST]
    return Outcome(changed, slow[0] if slow else FAST)


def _exchanged_layer(layer: Blockwise, whys: list[str]) -> Blockwise:
    """Copy a layer whose tasks hold stored arrays, with these replaced; return it unchanged where none can be."""
    indices = []
    for value, index in layer.indices:
        outcome = _nest(value) if index is None and is_of_xarray(value) else Outcome(value, "")
        whys += [outcome.why] if outcome.why else []
        indices.append((outcome.data, index))
    if all(new is old for (new, _), (old, _) in zip(indices, layer.indices, strict=True)):
        return layer
    changed = copy.copy(layer)
    changed.indices = tuple(indices)
    vars(changed).pop("_cached_dict", None)  # its tasks, made of the old array
    return changed


def _exchanged_task(task: Any, whys: list[str]) -> object:
    """Replace a task of a graph that is a stored array; return other tasks unchanged."""
    value = getattr(task, "value", task)
    if not is_of_xarray(value) or isinstance(task, Mapping):
        return task
    outcome = _nest(value)
    whys.append(outcome.why)
    if outcome.data is value:
        return task
    if value is task:
        return outcome.data
    return type(task)(task.key, outcome.data)
