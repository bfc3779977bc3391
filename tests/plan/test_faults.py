"""Plans that are disturbed come to the same as undisturbed ones: the short form of the campaign ``plan``."""

from __future__ import annotations

import sys
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.errors import FailedTasksError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from campaigns import plan as campaign


@pytest.mark.parametrize(("number", "fault"), list(enumerate(campaign.FAULTS)))
def test_a_disturbed_plan_comes_to_the_same(number: int, fault: str) -> None:
    if fault == "killed_cluster":
        pytest.importorskip("distributed", reason="belongs to the extra [dask]")
    assert campaign.disturb(number, fault)[2] is None


@pytest.mark.parametrize("fault", ["killed_client", "two_clients", "failing_source", "full_disk"])
def test_a_disturbed_pyramid_comes_to_the_same(fault: str) -> None:
    assert campaign.disturb(7, fault, "pyramid")[2] is None


class _Broken(Executor):
    """An executor that takes two tasks, and loses its workers with the first."""

    def __init__(self) -> None:
        self.asked = 0

    def submit(self, *_: object, **__: object) -> Future[NoReturn]:  # type: ignore[override]
        self.asked += 1
        if self.asked > 2:
            raise RuntimeError("cannot schedule new futures")
        future: Future[NoReturn] = Future()
        future.set_exception(BrokenExecutor("a worker was killed"))
        return future


def test_a_broken_executor_is_asked_no_more_and_the_plan_goes_on_with_another(tmp_path: Path) -> None:
    source = tessarr.create_array(tmp_path / "a.zarr", shape=(400,), chunks=(1,), dtype="i4")
    source[...] = np.arange(400)
    plan = tessarr.plan.rechunk(source, tmp_path / "b.zarr", chunks=(4,), memory=tessarr.plan.rechunk(
        source, tmp_path / "c.zarr", chunks=(4,)).describe().peak_memory)  # fmt: skip
    plan.save(tmp_path / "plan")
    broken = _Broken()
    with pytest.raises(FailedTasksError, match=r"a worker was killed|takes no more"):
        plan.run(broken, slots=1)
    assert broken.asked <= 3
    assert tessarr.plan.load(tmp_path / "plan").run().finished
