"""A small hierarchy in every format, and the command line as a function."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tessarr
from tessarr.cli import main


class Ran(NamedTuple):
    """What a command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document it must be."""
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command line in this process."""

    def run(*arguments: object) -> Ran:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


def fill(group: tessarr.Group) -> None:
    """Two arrays, one of them below, one structured."""
    temperature = np.arange(2400.0).reshape(40, 60)
    group.create_array(
        "temperature",
        data=temperature,
        chunks=(10, 20),
        dimension_names=("y", "x") if group.zarr_format == 3 else None,
        attributes={"units": "K"},
    )
    table = np.array([(1, 0.5), (2, np.nan)], dtype=[("station", "<i4"), ("value", "<f8")])
    group.create_array("below/table", data=table)
    group.attrs["title"] = "a test"


@pytest.fixture(params=["v2", "v3", "v3-zip"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A hierarchy of that format."""
    target = tmp_path / ("data.zip" if request.param.endswith("zip") else "data.zarr")
    with tessarr.open_group(target, mode="w", zarr_format=2 if request.param == "v2" else 3) as group:
        fill(group)
    return target


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A v3 hierarchy in a directory."""
    target = tmp_path / "data.zarr"
    fill(tessarr.open_group(target, mode="w"))
    return target
