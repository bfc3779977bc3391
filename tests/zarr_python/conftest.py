"""zarr-python, and arrays of it that differ in everything that matters here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("zarr", reason="zarr-python is the extra `peers`")


@pytest.fixture(autouse=True)
def _unpatched() -> Iterator[None]:
    """Every test begins and ends without the patch."""
    from tessarr import zarr_python

    assert not zarr_python.is_patched()
    yield
    zarr_python.unpatch()
