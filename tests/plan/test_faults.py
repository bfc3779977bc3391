"""Plans that are disturbed come to the same as undisturbed ones: the short form of the campaign ``plan``."""

from __future__ import annotations

import itertools
import sys
from concurrent.futures import BrokenExecutor, Executor, Future
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.errors import FailedTasksError
from tessarr.stores.url import open_url
from tests.stores.remote import servers
from tests.stores.remote.proxy import Fault, start_proxy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from campaigns import plan as campaign


@pytest.mark.parametrize(("number", "fault"), list(enumerate(campaign.FAULTS)))
def test_a_disturbed_plan_comes_to_the_same(number: int, fault: str) -> None:
    if fault in ("killed_cluster", "killed_scheduler"):
        pytest.importorskip("distributed", reason="belongs to the extra [dask]")
    assert campaign.disturb(number, fault)[2] is None


@pytest.mark.parametrize("fault", ["killed_client", "full_disk"])
def test_a_disturbed_pyramid_comes_to_the_same(fault: str) -> None:
    assert campaign.disturb(7, fault, "pyramid")[2] is None


def test_a_source_that_answers_503_at_times_changes_nothing() -> None:
    assert campaign.disturb(3, "busy_source", "rechunk")[2] is None


def test_a_store_that_answers_503_at_times_gets_every_value_and_gives_it_back(tmp_path: Path) -> None:
    values = np.arange(64 * 64, dtype="i4").reshape(64, 64)
    source = tessarr.create_array(tmp_path / "a.zarr", data=values, chunks=(8, 64))
    asked = itertools.count()
    answered: list[str] = []

    def busy(request: str) -> Fault | None:
        if next(asked) % 4:
            return None
        answered.append(request)
        return Fault("status", status=503, code="SlowDown")

    (tmp_path / "s3").mkdir()
    with servers.s3_server(tmp_path / "s3") as server, start_proxy(server) as proxy:
        retry = {"max_retries": 20, "backoff": {"init_backoff": timedelta(milliseconds=1)}}
        options = {**servers.S3_OPTIONS, "retry_config": retry}
        url = f"s3+http://{proxy.address}/bucket/b"
        proxy.choose = busy
        with tessarr.config.set({"threading.max_workers": 1}):  # the memory of a task depends on its threads
            there = tessarr.plan.rechunk(source, url, chunks=(64, 8), memory="12kB", storage_options=options)
        assert there.tasks > 1
        assert there.run(slots=2).finished
        back = tessarr.plan.copy(url, tmp_path / "c.zarr", source_storage_options=options)
        assert back.run().finished
        left = [key for key in open_url(url, storage_options=options).list() if "partial" in key]
    assert {request.split()[0] for request in answered} >= {"GET", "PUT"}
    assert not left
    assert np.array_equal(tessarr.open_array(tmp_path / "c.zarr")[...], values)


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
