"""Rows P5 and P6: files become Zarr."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plans.row import FULL, WORKERS, Row, dask_cluster, timed

FILES = 130 if FULL else 6
STEPS, ROWS_Y, COLUMNS = (24, 181, 360) if FULL else (4, 46, 90)
CHUNKS = {"time": STEPS, "y": -(-ROWS_Y // 2), "x": -(-COLUMNS // 2)}
MESSAGES = 200 if FULL else 8


def _values(number: int) -> Any:
    import numpy as np

    random = np.random.default_rng(number)
    return (random.integers(0, 4000, (STEPS, ROWS_Y, COLUMNS)) / 16).astype("f4")


def make_netcdf(path: Path) -> None:
    """Write files that follow each other in time."""
    import netCDF4
    import numpy as np

    path.mkdir()
    for number in range(FILES):
        with netCDF4.Dataset(path / f"{number:04}.nc", "w") as file:
            for name, length in (("time", STEPS), ("y", ROWS_Y), ("x", COLUMNS)):
                file.createDimension(name, length)
            time = file.createVariable("time", "i4", ("time",))
            time.units = "hours since 2020-01-01"
            time[:] = np.arange(STEPS) + STEPS * number
            made = file.createVariable(
                "a", "f4", ("time", "y", "x"), zlib=True, complevel=1, chunksizes=(1, ROWS_Y, COLUMNS)
            )
            made.units = "K"
            made[:] = _values(number)


def check_netcdf(_source: Path, target: Path, _peer: str) -> None:
    """Compare the values of each file."""
    import numpy as np

    import tessarr

    found: Any = tessarr.open_group(target, mode="r")["a"]
    assert found.chunks == (STEPS, CHUNKS["y"], CHUNKS["x"]), f"chunks {found.chunks}"
    assert found.shape[0] == FILES * STEPS, f"shape {found.shape}"
    for number in range(FILES):
        assert np.array_equal(found[number * STEPS : (number + 1) * STEPS], _values(number)), f"values of file {number}"


def tessarr_netcdf(source: str, target: str) -> None:
    """Convert all files with one command."""
    from tessarr.tools.convert import convert

    convert(f"{source}/*.nc", target, along="time", chunks=CHUNKS, jobs=WORKERS, verify=False)


def xarray_netcdf(source: str, target: str) -> dict[str, float]:
    """Open all files as one dataset, and write it; the start of the cluster is not measured."""
    import xarray as xr

    with dask_cluster(0, target):

        def work() -> None:
            dataset: Any = xr.open_mfdataset(f"{source}/*.nc", parallel=True, chunks={}, decode_times=False)
            dataset = dataset.chunk(CHUNKS)
            dataset.to_zarr(target, mode="w", zarr_format=3, consolidated=False)

        return timed(work)


def make_grib(path: Path) -> None:
    """Write messages of one variable that follow each other in time."""
    import eccodes

    with path.open("wb") as file:
        for number in range(MESSAGES):
            message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            for key, value in (
                ("Ni", COLUMNS), ("Nj", ROWS_Y), ("dataDate", 20200101), ("stepRange", number), ("bitsPerValue", 16),
                ("latitudeOfFirstGridPointInDegrees", 90), ("latitudeOfLastGridPointInDegrees", -90),
                ("longitudeOfFirstGridPointInDegrees", 0), ("longitudeOfLastGridPointInDegrees", 360 - 360 / COLUMNS),
                ("iDirectionIncrementInDegrees", 360 / COLUMNS), ("jDirectionIncrementInDegrees", 180 / (ROWS_Y - 1)),
                ("shortName", "2t"),
            ):  # fmt: skip
                eccodes.codes_set(message, key, value)
            eccodes.codes_set_values(message, _values(number)[0].ravel().astype("f8"))
            eccodes.codes_write(message, file)
            eccodes.codes_release(message)


def check_grib(source: Path, target: Path, _peer: str) -> None:
    """Compare with what eccodes unpacks, message by message."""
    import eccodes
    import numpy as np

    import tessarr

    arrays = [node for _, node in tessarr.open_group(target, mode="r").arrays() if node.ndim >= 3]
    found: Any = arrays[0]
    with source.open("rb") as file:
        for number in range(MESSAGES):
            message = eccodes.codes_grib_new_from_file(file)
            expected = eccodes.codes_get_values(message).reshape(ROWS_Y, COLUMNS)
            eccodes.codes_release(message)
            assert np.allclose(found[number], expected, rtol=1e-6), f"values of message {number}"


def tessarr_grib(source: str, target: str) -> None:
    """Convert the file with one command."""
    from tessarr.tools.convert import convert

    convert(source, target, kind="grib", jobs=WORKERS, verify=False)


def cfgrib_grib(source: str, target: str) -> None:
    """Open the file by cfgrib, and write the dataset."""
    import xarray as xr

    dataset: Any = xr.open_dataset(source, engine="cfgrib", backend_kwargs={"indexpath": ""}, decode_timedelta=False)
    dataset.to_zarr(target, mode="w", zarr_format=3, consolidated=False)


ROWS = {
    "P5": Row(
        f"NetCDF to Zarr, {FILES} files",
        make_netcdf,
        check_netcdf,
        {"tessarr": tessarr_netcdf, "xarray": xarray_netcdf},
    ),
    "P6": Row(
        f"GRIB to Zarr, {MESSAGES} messages", make_grib, check_grib, {"tessarr": tessarr_grib, "cfgrib": cfgrib_grib}
    ),
}
