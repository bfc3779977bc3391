"""A small plan that many tests carry out, each in its own way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.plan import Plan


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Plan to rechunk an array by several tasks, and save the plan as ``PLAN``."""
    days = tessarr.create_array(tmp_path / "days.zarr", shape=(60, 20, 20), chunks=(1, 20, 20), dtype="f4")
    days[...] = np.random.default_rng(0).random(days.shape, dtype="f4")
    made = tessarr.plan.rechunk(days, tmp_path / "series.zarr", chunks=(60, 5, 5), memory="60kB")
    assert made.tasks >= 4
    made.save(tmp_path / "PLAN")
    return made


def assert_carried_out(folder: Path) -> None:
    """Raise AssertionError unless the result of `plan` has the values of its source."""
    made, days = tessarr.open_array(folder / "series.zarr"), tessarr.open_array(folder / "days.zarr")
    assert (made[...] == days[...]).all()
