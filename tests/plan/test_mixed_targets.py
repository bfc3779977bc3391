"""Plans whose result would be of another format than the group above it, in which it is not found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.errors import MixedFormatsError
from tessarr.storage import MemoryStore
from tessarr.tools.migrate import migrate, remove_metadata
from tests.simulation.simulator import Bucket

MAKE: dict[str, Callable[..., Any]] = {
    "copy": lambda source, store: tessarr.plan.copy(source, store, path="x"),
    "rechunk": lambda source, store: tessarr.plan.rechunk(source, store, path="x", chunks=(3,)),
    "convert": lambda source, store: tessarr.plan.convert(source, store, path="x", zarr_format="keep"),
}

pytestmark = pytest.mark.filterwarnings("ignore:Both zarr.json")


@pytest.fixture(params=["memory", "local", "object"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return {"memory": MemoryStore(), "local": tmp_path / "b", "object": Bucket().connect("one")}[request.param]


@pytest.mark.parametrize("how", MAKE)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_node_that_the_group_above_does_not_find_is_refused_at_planning(
    how: str, zarr_format: Any, store: Any, tmp_path: Path
) -> None:
    source = tmp_path / "a"
    tessarr.create_array(source, data=np.arange(6), zarr_format=zarr_format)
    group = tessarr.create_group(store, zarr_format=5 - zarr_format)
    before = sorted(group.store.list())
    with pytest.raises(MixedFormatsError, match=f"expected Zarr v{5 - zarr_format}"):
        MAKE[how](source, store)
    assert sorted(group.store.list()) == before


@pytest.mark.parametrize("keeps", [True, False])
def test_a_hierarchy_that_was_migrated_since_the_planning_finds_the_result(
    keeps: bool, store: Any, tmp_path: Path
) -> None:
    source = tmp_path / "a"
    tessarr.create_array(source, data=np.arange(6), zarr_format=2)
    tessarr.create_group(store, zarr_format=2)
    plan = tessarr.plan.copy(source, store, path="x")
    migrate(store)
    if not keeps:
        remove_metadata(store, 2)
    assert plan.run().finished
    found: Any = tessarr.open_group(store, mode="r")["x"]
    assert (found.zarr_format, found[...].tolist()) == (3, [*range(6)])
