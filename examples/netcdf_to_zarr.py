"""Convert a NetCDF file to Zarr v3 with chunks chosen by dimension name, then read a part of it as physical values.

    python examples/netcdf_to_zarr.py [FOLDER]

Needs the extra: pip install 'tessarr[convert]'
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import tessarr
from tessarr.tools.convert import convert

DATA = Path(__file__).parent / "data"


def main(folder: Path) -> None:
    """Convert, then read."""
    target = folder / "air.zarr"
    report = convert(DATA / "air.nc", target, chunks={"time": 31}, shards={"time": 124}, overwrite=True)
    print(f"{len(report.plan.arrays)} arrays, {report.plan.nbytes} bytes, stored in {report.nbytes_stored}")
    air = tessarr.open_array(target, path="air", mode="r")
    # The data stays packed, as in the NetCDF file; its attributes say how to unpack it.
    kelvin = air[:4, 0, 0] * air.attrs["scale_factor"]
    print(f"{air.attrs['long_name']}, dimensions {air.dimension_names}")
    print("first values in the north-west, in kelvin:", ", ".join(f"{value:.2f}" for value in kelvin))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
