"""Run random programs: a number decides about the kind of program, the place, and each step."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

from tessarr.stores.base import Store
from tests.simulation.worlds import SCRATCH
from tests.stateful.arrays import ArrayProgram
from tests.stateful.hierarchies import HierarchyProgram
from tests.stateful.stores import StoreProgram
from tests.stateful.zarr_machines import MACHINES, run_machine

LENGTH = 40


class Program(Protocol):
    """Steps on something in a store, and a comparison of all of it with a model."""

    store: Store
    steps: list[Callable[[], None]]

    def finish(self) -> None:
        """Compare everything."""
        ...


PROGRAMS: dict[str, Callable[[Random, Path], Program]] = {
    "array": ArrayProgram,
    "hierarchy": HierarchyProgram,
    "store": StoreProgram,
}


class Outcome(NamedTuple):
    """What came of a program: its kind, the steps that were made, and what is wrong."""

    kind: str
    steps: int
    wrong: str | None


KINDS = [*PROGRAMS, *MACHINES]
"""Programs by turns."""


def run(number: int, folder: Path) -> Outcome:
    """Run the program of a number in `folder`."""
    rng = Random(number)
    kind = KINDS[number % len(KINDS)]
    if kind in MACHINES:
        return _run_machine(kind, number, folder)
    program: Program | None = None
    made = ["begin"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = PROGRAMS[kind](rng, folder)
            for _ in range(LENGTH):
                step = rng.choice(program.steps)
                made.append(step.__name__)
                step()
            made.append("finish")
            program.finish()
        except Exception as error:  # each is one that the program does not expect
            place = type(program.store).__name__ if program is not None else "?"
            wrong = f"{kind} in {place}, after {' '.join(made[-6:])}: {type(error).__name__}: {error}"
            return Outcome(kind, len(made), wrong)
        finally:
            if program is not None:
                program.store.close()
    return Outcome(kind, len(made), None)


def _run_machine(kind: str, number: int, folder: Path) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Outcome(kind, run_machine(kind, number, folder), None)
        except Exception as error:  # each is one that the machine does not expect
            return Outcome(kind, 0, f"{kind}: {type(error).__name__}: {error}")


class Folder:
    """A directory for programs, emptied after each."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="programs", dir=SCRATCH))

    def run(self, number: int) -> Outcome:
        try:
            return run(number, self.path)
        finally:
            for item in self.path.iterdir():
                shutil.rmtree(item) if item.is_dir() else item.unlink()

    def close(self) -> None:
        shutil.rmtree(self.path)
