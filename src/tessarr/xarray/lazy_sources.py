"""Find the stored arrays that a dataset still has to read, and refuse to replace them by what is read from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import xarray
from xarray.backends.zarr import ZarrArrayWrapper

from tessarr.core.array import Array
from tessarr.core.locate import locate
from tessarr.errors import BaseZarrError, TessarrError
from tessarr.stores.remote.obstore.open import options_of_fsspec
from tessarr.stores.url import StoreLike, overlaps, store_from
from tessarr.xarray.lazy_array import LazyArray


def stored_arrays(data: object) -> Iterator[Any]:
    """Yield the arrays of tessarr and zarr-python that the data of a variable is read from: also those in a dask graph."""
    if isinstance(data, LazyArray | ZarrArrayWrapper):
        yield data._array
        return
    layers = getattr(getattr(data, "dask", None), "layers", {})
    for layer in layers.values():
        for value in inlined(layer):
            yield from stored_arrays(value)
        mapping = getattr(layer, "mapping", {}) if len(layer) == 1 else {}
        for task in mapping.values():
            value = getattr(task, "value", task)
            if not isinstance(task, Mapping) and is_of_xarray(value):
                yield from stored_arrays(value)
    if is_of_xarray(data):
        yield from stored_arrays(getattr(data, "array", None))


def inlined(layer: object) -> list[object]:
    """Return the objects of xarray that a layer of a dask graph holds in each of its tasks (``inline_array=True``)."""
    return [value for value, index in getattr(layer, "indices", ()) if index is None and is_of_xarray(value)]


def is_of_xarray(data: object) -> bool:
    """Return whether `data` is one of the objects that xarray nests around stored arrays."""
    return type(data).__module__.partition(".")[0] == "xarray"


@options_of_fsspec()
def check_not_own_source(
    datasets: Mapping[str, xarray.Dataset],
    place: StoreLike,
    group: str | None,
    storage_options: Mapping[str, object] | None,
) -> None:
    """Raise `BaseZarrError` where a variable of `datasets` is still to be read from the place that is to be replaced."""
    sources = [
        (f"{path}/{name}".lstrip("/"), array)
        for path, dataset in datasets.items()
        for name, variable in dataset.variables.items()
        for array in stored_arrays(variable._data)
    ]
    if not sources:
        return
    try:
        target, path, _ = locate(place, group, "r", storage_options)
    except (TessarrError, OSError):
        return  # nothing is there
    for name, stored in sources:
        store, prefix = (stored._store, "") if isinstance(stored, Array) else store_from(stored.store_path.store)
        if overlaps(target, path, store, f"{prefix}/{stored.path}".strip("/")):
            raise BaseZarrError(
                f"variable {name!r} is not loaded, and is read from the place that mode='w' replaces: its values would be lost",
                store=target.url,
                path=f"/{path}",
                hint="Load the dataset first (`ds.load()`), or write to another place",
            )
