"""Plan long work on arrays as tasks that run on any machine, in any order, any number of times.

plan = tessarr.plan.rechunk("era5.zarr", "series.zarr", chunks={"time": 8760, "lat": 20, "lon": 20}, memory="4GB")
print(plan.describe())
plan.run()                       # threads of this process
plan.run(executor="dask")        # the current client of dask, or any concurrent.futures.Executor

plan.save("s3://bucket/plan")    # then on many machines: tessarr.plan.load("s3://bucket/plan").run_part(17, 1000)
plan.finish()
"""

from tessarr.plan.make import check, convert, copy, digest, pyramid, rechunk
from tessarr.plan.plan import Plan, Status
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
