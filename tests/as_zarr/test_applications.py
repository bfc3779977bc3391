"""xarray and dask, as released, with tessarr under the name ``zarr``: write, append, regions, trees, read, lazily and not."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tessarr
from tests.as_zarr.cases import CASES


@pytest.mark.parametrize("case", CASES)
def test_a_released_library_works_with_tessarr_in_place_of_zarr(case: str, tmp_path: Path) -> None:
    if case.startswith("dask"):
        pytest.importorskip("dask", "2025.5", reason="older releases use names of zarr-python 2 alone")
    if case == "zarrs" and find_spec("zarrs") is None:
        pytest.skip("zarrs needs a newer zarr-python than the oldest that is supported")
    script = Path(__file__).with_name("cases.py")
    source = str(Path(tessarr.__file__).parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), case, str(tmp_path / "place.zarr")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("done\n")
