"""Both engines, and the stores whose safety these tests promise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.storage import LocalStore, MemoryStore, ZipStore


@pytest.fixture(params=["auto", "reference"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine that a user gets, and the one that is all Python."""
    with tessarr.config.set({"engine": request.param}):
        yield str(request.param)


@pytest.fixture(params=["local", "memory", "zip"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A writable store of each kind."""
    kinds: dict[str, Callable[[], Any]] = {
        "local": lambda: LocalStore(tmp_path / "store"),
        "memory": MemoryStore,
        "zip": lambda: ZipStore(tmp_path / "store.zip", mode="w"),
    }
    with kinds[request.param]() as made:
        yield made


@pytest.fixture
def local(tmp_path: Path) -> LocalStore:
    """A directory."""
    return LocalStore(tmp_path / "store")


@pytest.fixture
def environment() -> dict[str, str]:
    """What a child process needs to import tessarr from where this one has it."""
    source = Path(str(tessarr.__file__)).parents[1]
    return {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
