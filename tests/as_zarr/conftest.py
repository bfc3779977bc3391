"""What the tests of the alias share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tessarr.as_zarr import _alias
from tessarr.settings import config


@pytest.fixture
def as_zarr() -> Iterator[None]:
    """The settings that the alias has, without the alias."""
    undo = config.set_defaults(_alias._SETTINGS[3])
    yield
    undo()
