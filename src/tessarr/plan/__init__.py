"""Plan long work on arrays as tasks that run on any machine, in any order, any number of times.

plan = tessarr.plan.rechunk("era5.zarr", "series.zarr", chunks={"time": 8760, "lat": 20, "lon": 20}, memory="4GB")
print(plan.describe())
plan.run()                       # threads of this process
plan.run(executor="dask")        # the current client of dask, or any concurrent.futures.Executor

plan.save("s3://bucket/plan")    # then on many machines: tessarr.plan.load("s3://bucket/plan").run_part(17, 1000)
plan.finish()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tessarr.plan.kinds.make import convert, copy, rechunk
from tessarr.plan.plan import Plan, Status

if TYPE_CHECKING:
    from tessarr.plan.kinds.in_place import check, digest, pyramid
    from tessarr.plan.predict import Description
    from tessarr.plan.strategies.simulate import Expected, Workers

load = Plan.load

__all__ = [
    "Description",
    "Expected",
    "Plan",
    "Status",
    "Workers",
    "check",
    "convert",
    "copy",
    "digest",
    "load",
    "pyramid",
    "rechunk",
]

_LATER = {
    "check": "kinds.in_place",
    "digest": "kinds.in_place",
    "pyramid": "kinds.in_place",
    "Description": "predict",
    "Expected": "strategies.simulate",
    "Workers": "strategies.simulate",
}
"""Names that are imported on first use: to rechunk needs none of them."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'tessarr.plan' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"tessarr.plan.{_LATER[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
