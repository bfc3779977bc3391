"""A sample of the tests that xarray and dask ship, with ``zarr`` answered by tessarr; `make ecosystem` runs more of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tessarr

MARKERS = "slow network flaky slow_hypothesis asyncio mypy array_expr gpu"
RAISED = "error:The input Dask array will be rechunked"
"""One of dask's tests wants the warning as an error, as its settings make every warning."""
SAMPLES = [
    ("xarray.tests.test_backends", "TestZarrDictStore and (roundtrip or append or region)", 140, "2025.7"),
    ("dask.array.tests.test_array_core", "zarr", 30, "2025.5"),
]
"""Modules, tests, how many there are at least, and the first release of which all pass with zarr-python 3."""


@pytest.mark.parametrize(("module", "select", "least", "release"), SAMPLES, ids=["xarray", "dask"])
def test_tests_of_others_pass_with_tessarr_in_place_of_zarr_python(
    module: str, select: str, least: int, release: str, tmp_path: Path
) -> None:
    pytest.importorskip(module.partition(".")[0], release, reason="older releases fail some with zarr-python 3 too")
    # Their settings for pytest are not installed with them; without this file pytest would take ours.
    settings = ["[pytest]", f"filterwarnings = {RAISED}", "markers =", *(f"  {name}" for name in MARKERS.split())]
    (tmp_path / "pytest.ini").write_text("\n".join(settings))
    source = str(Path(tessarr.__file__).parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    pytest_ = [
        "pytest",
        "-q",
        "-p",
        "no:zarr",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-c",
        "pytest.ini",
        "--rootdir",
        ".",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tessarr.as_zarr", "-m", *pytest_, "--pyargs", module, "-k", select],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= least, "fewer tests than there were: were they renamed?"
