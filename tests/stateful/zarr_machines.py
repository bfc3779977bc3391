"""Run zarr-python's state machines (`zarr.testing.stateful`) on stores of tessarr."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine

from tessarr import zarr_python
from tessarr.errors import KeyValidationError
from tessarr.stores.base import Store
from tests.stateful.places import ANY_KEYS, CAN_DELETE, make_store

MACHINES: dict[str, Any] = {
    "zarr-python's store": ZarrStoreStateMachine,
    "zarr-python's hierarchy": ZarrHierarchyStateMachine,
}
_SETTINGS = settings(
    max_examples=3, stateful_step_count=30, phases=[Phase.generate], deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def run_machine(kind: str, number: int, folder: Path) -> int:
    """Run a machine with the seed `number`. Returns the number of its steps. Raises what the machine does."""
    machine: Any = MACHINES[kind]
    kinds = ANY_KEYS if machine is ZarrStoreStateMachine else CAN_DELETE
    made: list[Store] = []
    steps = 0

    class Counted(machine):  # type: ignore[misc]
        """The machine, whose steps are counted."""

        def check_invariants(self, *arguments: Any, **keywords: Any) -> Any:
            nonlocal steps
            steps += 1
            return super().check_invariants(*arguments, **keywords)

    def begin() -> Any:
        made.append(make_store(Random(number), folder, kinds))  # the same kind each time, as Hypothesis expects
        return Counted(zarr_python.as_store(made[-1]))

    factory: Any = seed(number)(begin)
    try:
        run_state_machine_as_test(factory, settings=_SETTINGS)
    except KeyValidationError as error:
        # Hypothesis takes names from the constants of the code that it runs, names of hidden files among them.
        if "temporary files" not in str(error):
            raise
    finally:
        for store in made:
            store.close()
    return steps
