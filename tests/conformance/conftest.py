"""What the tests of requirements share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tessarr
from tests.conformance.documents import Place


@pytest.fixture(params=["reference", "memory", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place. Each test runs with the reference engine, and in memory and a directory with the engine chosen."""
    with tessarr.config.set({"engine": "reference" if request.param == "reference" else "auto"}):
        yield Place(tmp_path / "array.zarr" if request.param == "directory" else None)
