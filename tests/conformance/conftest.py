"""What the tests of requirements share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.documents import Place


@pytest.fixture(params=["memory", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place; each test runs in memory (the reference engine) and in a directory (the native one)."""
    return Place(tmp_path / "array.zarr" if request.param == "directory" else None)
