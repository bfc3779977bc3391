"""Every example runs as its head says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SAYS = {
    "netcdf_to_zarr": "in kelvin: 258.20, 257.60",
    "parallel_writes": "1000 rows written, all as they should be: True",
}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_an_example_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    if name == "netcdf_to_zarr":
        pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert SAYS[name] in ran.stdout
