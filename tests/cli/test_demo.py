"""The demonstration runs from end to end, as a user starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tessarr

ROOT = Path(__file__).resolve().parents[2]


def test_the_demonstration_runs_and_draws_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4", reason="belongs to the extra [convert], which `make demo` installs")
    ran = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "demo.py"), str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    words = ("convert", "tree", "info", "check", "cat")
    positions = [ran.stdout.index(f"$ tessarr {word} ") for word in words]
    assert positions == sorted(positions)
    assert "no problems found" in ran.stdout
    assert "What to try next" in ran.stdout
    assert (tmp_path / "demo" / "modis.png").read_bytes().startswith(b"\x89PNG")
    array = tessarr.open_array(tmp_path / "demo" / "modis.zarr", path="modis", mode="r")
    assert (array.chunks, array.shards, array.dimension_names) == ((50, 50), (100, 100), ("y", "x"))
