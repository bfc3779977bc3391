"""Read GRIB editions 1 and 2 with cfgrib and xarray: messages become arrays over time, step, level and a grid.

Messages that form no single hypercube become several groups, named after their kind of level. cfgrib decodes messages, so
that values are floats, and NaN where they are missing.
"""

from __future__ import annotations

import threading
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from tessarr.tools.sources.attributes import collect
from tessarr.tools.sources.base import Box, SourceArray, SourceGroup, StoredChunks, missing
from tessarr.types import AnyArray

if TYPE_CHECKING:
    import xarray


_LIBRARY = threading.RLock()
"""Held while the library is called, which not every build of it allows several threads to do at the same time."""


class GRIBSource:
    """Read an opened GRIB file."""

    kind = "grib"
    parallel = False  # of `_LIBRARY`

    def __init__(self, place: str) -> None:
        try:
            cfgrib = import_module("cfgrib")
        except (ImportError, RuntimeError) as error:  # eccodes' library may be missing
            raise missing("cfgrib", "GRIB", "grib") from error
        with _LIBRARY:
            self._sets = cfgrib.open_datasets(
                place, backend_kwargs={"indexpath": ""}, decode_times=False, decode_timedelta=False, cache=False
            )
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self.nodes: list[SourceArray | SourceGroup] = []
        if len(self._sets) != 1:
            self.nodes.append(SourceGroup(path=""))
        names: set[str] = set()
        for number, dataset in enumerate(self._sets):
            levels = {str(one.attrs.get("GRIB_typeOfLevel", number)) for one in dataset.data_vars.values()}
            name = levels.pop() if len(levels) == 1 else str(number)
            name = f"{name}_{number}" if name in names else name
            names.add(name)
            self._set(dataset, "" if len(self._sets) == 1 else name)

    def _set(self, dataset: xarray.Dataset, path: str) -> None:
        self.nodes.append(SourceGroup(path=path, attributes=collect(dataset.attrs.items(), f"/{path}", self.notices)))
        coordinates = " ".join(str(name) for name in dataset.coords if name not in dataset.dims)
        for name, variable in dataset.variables.items():
            below = f"{path}/{name}".lstrip("/")
            attributes = collect(variable.attrs.items(), f"/{below}", self.notices)
            if name in dataset.data_vars and coordinates:
                attributes["coordinates"] = coordinates
            fields = variable.ndim - 2
            self.nodes.append(
                SourceArray(
                    path=below,
                    shape=tuple(int(n) for n in variable.shape),
                    dtype=np.dtype(variable.dtype).newbyteorder("="),
                    read=partial(_read, variable),
                    chunks=(*(1,) * fields, *variable.shape[fields:])
                    if name in dataset.data_vars and fields >= 0
                    else None,
                    fill_value=np.nan if variable.dtype.kind == "f" else 0,
                    attributes=attributes,
                    dimension_names=tuple(map(str, variable.dims)),
                    stored=_why_not,
                )
            )

    def close(self) -> None:
        """Close the file."""
        with _LIBRARY:
            for dataset in self._sets:
                dataset.close()


def _read(variable: xarray.Variable, box: Box) -> AnyArray:
    with _LIBRARY:
        return np.asarray(variable[box].values, variable.dtype)


def _why_not() -> StoredChunks | str:
    return "Zarr has no codec for GRIB messages"


def open_source(place: str) -> GRIBSource:
    """Open a GRIB file."""
    return GRIBSource(place)
