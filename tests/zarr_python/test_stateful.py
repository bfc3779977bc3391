"""zarr-python's state machines (`zarr.testing.stateful`) on stores of tessarr, as store and as hierarchy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tessarr import zarr_python
from tessarr.storage import LocalStore, MemoryStore, SQLiteStore
from tessarr.stores.local.lock import is_hidden

pytest.importorskip("zarr.testing.stateful", reason="this zarr-python has no state machines")

from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine

SHORT = settings(
    max_examples=5,
    stateful_step_count=15,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@pytest.fixture(params=["memory", "local", "sqlite"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """Makes an empty store."""
    number = itertools.count()
    makers: dict[str, Callable[[], Any]] = {
        "memory": MemoryStore,
        "local": lambda: LocalStore(tmp_path / str(next(number))),
        "sqlite": lambda: SQLiteStore(tmp_path / f"{next(number)}.db"),
    }
    return makers[request.param]


class HierarchyStateMachine(ZarrHierarchyStateMachine):
    """Without the few names that no node of a local store has, which hypothesis takes from the source of tessarr."""

    def can_add(self, path: str) -> bool:
        """Whether a node may be added at a path."""
        return not any(map(is_hidden, path.split("/"))) and super().can_add(path)


@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, HierarchyStateMachine])
@pytest.mark.filterwarnings("ignore")
def test_a_store_is_what_zarr_python_s_model_says(machine: Any, fresh: Callable[[], Any]) -> None:
    def begin() -> Any:
        return machine(zarr_python.as_store(fresh()))

    factory: Any = begin
    run_state_machine_as_test(factory, settings=SHORT)
