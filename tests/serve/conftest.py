"""A hierarchy in every format, served."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tessarr
from tests.serve.client import Client

SHARD = np.arange(1_000_000, dtype="<i4").reshape(1000, 1000)
ODD = "a b+ü%#?:"
"""A name whose letters all mean something in a URL."""


def fill(place: str | Path, zarr_format: int) -> None:
    group = tessarr.open_group(place, mode="w", zarr_format=zarr_format)
    group.attrs["title"] = "served"
    group.create_array("air", data=np.arange(100.0).reshape(10, 10), chunks=(5, 5))
    group.create_array("point", data=np.asarray(7))
    group.create_group("below").create_array("x", data=np.arange(6), chunks=3)
    if zarr_format == 3:
        group.create_array(f"{ODD}/y", data=np.arange(4))
        group.create_array("shard", data=SHARD, chunks=(100, 100), shards=(1000, 1000), compressors=None)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A hierarchy of v3, none of it consolidated."""
    fill(tmp_path / "data.zarr", 3)
    return tmp_path / "data.zarr"


@pytest.fixture
def place2(tmp_path: Path) -> Path:
    """A hierarchy of v2."""
    fill(tmp_path / "data2.zarr", 2)
    return tmp_path / "data2.zarr"


@pytest.fixture
def client(place: Path) -> Client:
    from tessarr.serve import app

    return Client(app(place))
