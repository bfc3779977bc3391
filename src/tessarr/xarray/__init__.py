"""tessarr for xarray: the engine ``"tessarr"``, a writer, and a way to read opened datasets through tessarr.

>>> import numpy as np, tempfile, xarray as xr
>>> import tessarr.xarray
>>> place = tempfile.mkdtemp() + "/t.zarr"
>>> ds = xr.Dataset({"t2m": (("time", "x"), np.ones((3, 4)))}, coords={"time": [10, 20, 30]})
>>> _ = tessarr.xarray.to_zarr(ds, place)  # or ds.tessarr.to_zarr(place)
>>> again = tessarr.xarray.open_dataset(place)  # or xr.open_dataset(place, engine="tessarr")
>>> float(again.t2m.sum()), again.sizes["time"]
(12.0, 3)

Importing this module adds the accessor ``tessarr`` to datasets, data arrays and trees. The engine needs no import: xarray
finds it as an entry point. zarr-python is not needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tessarr.errors import MissingDependencyError

if TYPE_CHECKING:
    from tessarr.xarray.accelerate import accelerate as accelerate
    from tessarr.xarray.backend import TessarrBackendEntrypoint as TessarrBackendEntrypoint
    from tessarr.xarray.backend import open_dataset as open_dataset
    from tessarr.xarray.backend import open_datatree as open_datatree
    from tessarr.xarray.data_store import TessarrStore as TessarrStore
    from tessarr.xarray.lazy_array import variable as variable
    from tessarr.xarray.write import to_zarr as to_zarr

_HOME = {
    "accelerate": "accelerate",
    "open_dataset": "backend",
    "open_datatree": "backend",
    "TessarrBackendEntrypoint": "backend",
    "TessarrStore": "data_store",
    "to_zarr": "write",
    "variable": "lazy_array",
}

__all__ = sorted(_HOME)


def _add_accessors() -> None:
    """Register ``.tessarr`` on xarray's classes. Raises `MissingDependencyError` without xarray."""
    try:
        importlib.import_module("xarray")
    except ImportError as error:
        raise MissingDependencyError(
            "tessarr.xarray needs xarray 2025.6 or newer", hint="pip install 'tessarr[xarray]'"
        ) from error
    from tessarr.xarray import accessor  # noqa: F401 - which registers itself


_add_accessors()


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'tessarr.xarray' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tessarr.xarray.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
