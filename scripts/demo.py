"""Demonstrate tessarr on a measured dataset: convert, tree, info, check, cat, and a picture.

    python scripts/demo.py [FOLDER]

The data set is a crop of a MODIS tile, a satellite's view of 46 × 46 km (examples/data/README.md says where it
comes from). Everything is written to FOLDER, by default ``demo-output``.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import tessarr
from tessarr.cli import main as run_command
from tessarr.tools.picture import colours, enlarged, png

SOURCE = Path(__file__).resolve().parents[1] / "examples" / "data" / "MODIS_ARRAY.nc"
NAME = "modis"


def step(number: int, text: str) -> None:
    """Print the heading of a step."""
    print(f"\n{number}. {text}")


def command(*arguments: str | Path) -> None:
    """Print a command line and run it; exit if the command fails."""
    words = [str(argument) for argument in arguments]
    print(f"$ tessarr {shlex.join(words)}", flush=True)
    code = run_command(words)
    if code:
        sys.exit(code)


def draw(array: tessarr.Array, target: Path) -> None:
    """Write a picture of the array as PNG."""
    target.write_bytes(png(enlarged(colours(array[...], missing=array.attrs["_FillValue"]))))


def main(folder: Path) -> int:
    """Run the demonstration."""
    folder.mkdir(parents=True, exist_ok=True)
    target, picture = folder / "modis.zarr", folder / "modis.png"
    step(1, "Convert a NetCDF file, in chunks of 50 × 50 and shards of 100 × 100; read it back and compare:")
    command(
        "convert", _shown(SOURCE), target, "--chunks", "y=50,x=50", "--shards", "y=100,x=100",
        "--rename", f"__xarray_dataarray_variable__={NAME}", "--consolidate", "--overwrite",
    )  # fmt: skip
    step(2, "List its members, with their sizes:")
    command("tree", target, "--sizes")
    step(3, "Show the metadata of one array:")
    command("info", target, NAME)
    step(4, "Check documents and decode every chunk:")
    command("check", target, "--level", "decode")
    step(5, "Print some values; only their chunks are read:")
    command("cat", target, NAME, "--slice", "100:104, 96:104")
    step(6, "Read the array in Python, and draw a picture:")
    array = tessarr.open_array(target, path=NAME, mode="r")
    print(f">>> tessarr.open_array({str(target)!r}, path={NAME!r}, mode='r')\n{array!r}")
    print(f"    mean of the middle: {array[50:150, 50:150].mean():.1f}, served by the {array.engine.name} engine")
    draw(array, picture)
    print(f"    wrote {picture}")
    print(
        f"""
What to try next:
  tessarr cat {target} {NAME} --slice "::50, ::50" --csv
  tessarr convert {target} {folder / "modis-v2.zip"} --format 2     the same as Zarr v2, in one zip file
  tessarr diff {target} {folder / "modis-v2.zip"} --data
  tessarr doctor                                          versions, packages and codecs of this installation
  tessarr --help"""
    )
    return 0


def _shown(path: Path) -> Path:
    """Return the path relative to the working directory if it is below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-output")))
