"""Plans: carried out here, in processes, on dask and in parts; stopped, resumed, refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.cli.verbs.plans.run import part_of
from tessarr.errors import (
    BaseZarrError,
    ConflictError,
    FailedTasksError,
    MetadataValidationError,
    NodeNotFoundError,
    UnsupportedOperationError,
)
from tessarr.storage import MemoryStore
from tessarr.stores.base import Store
from tessarr.types import ByteRange
from tests.stores.remote import servers

VALUES = np.arange(60 * 44, dtype="i4").reshape(60, 44)
SMALL = 7_500
"""Memory for boxes of two chunks, so that there are several tasks."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The memory of a task depends on its threads."""
    with tessarr.config.set({"threading.max_workers": 1}):
        yield


@pytest.fixture
def source(tmp_path: Path) -> str:
    """An array in chunks of rows, with all that is to be kept."""
    place = str(tmp_path / "source.zarr")
    array = tessarr.create_array(
        place, shape=VALUES.shape, chunks=(4, 44), dtype="i4", fill_value=7, attributes={"unit": "m"},
        dimension_names=("time", "x"), compressors=tessarr.codecs.ZstdCodec(level=3),
    )  # fmt: skip
    array[...] = VALUES
    return place


def _plan(source: str, dest: Any, **options: Any) -> tessarr.plan.Plan:
    options = {"strategy": "direct", **options}
    return tessarr.plan.rechunk(source, dest, chunks={"time": 60, "x": 5}, memory=SMALL, **options)


def _check(place: Any, **where: Any) -> None:
    array = tessarr.open_array(place, mode="r", **where)
    assert (array[...] == VALUES).all()
    assert array.chunks == (60, 5)
    assert (array.fill_value, dict(array.attrs), array.dimension_names) == (7, {"unit": "m"}, ("time", "x"))
    assert [codec.to_dict()["name"] for codec in array.compressors] == ["zstd"]


def test_a_plan_runs_in_threads_and_keeps_all_but_the_chunks(source: str, tmp_path: Path) -> None:
    plan = _plan(source, tmp_path / "dest.zarr")
    assert plan.tasks > 1
    assert not (tmp_path / "dest.zarr").exists()
    told: list[int] = []
    status = plan.run(slots=2, progress=lambda *now: told.append(now[0]))
    assert (status.tasks, status.missing, status.finished) == (plan.tasks, 0, True)
    assert told == list(range(1, plan.tasks + 1))
    _check(tmp_path / "dest.zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dest.zarr", "source.zarr"]


class _Counting:
    """A store that counts the chunks that are read from another store."""

    def __init__(self, store: Store) -> None:
        self.store, self.chunks = store, 0

    def get(self, key: str, byte_range: ByteRange | None = None) -> Any:
        self.chunks += "c/" in key
        return self.store.get(key, byte_range)

    def set(self, key: str, value: Any) -> None:
        raise NotImplementedError

    def delete(self, key: str) -> None:
        raise NotImplementedError

    def list(self, prefix: str = "") -> Any:
        return self.store.list(prefix)


def test_the_requests_and_objects_are_as_predicted(source: str) -> None:
    counted = _Counting(tessarr.open_array(source, mode="r").store)
    target = MemoryStore()
    plan = tessarr.plan.rechunk(
        counted, target, path="a", chunks=(60, 5), memory=SMALL, verify=False, strategy="direct"
    )
    costs = plan.describe().arrays[0]
    plan.run()
    assert counted.chunks == costs.chunks_read > 15
    assert len([key for key in target.list() if not key.endswith(".json")]) == costs.objects == 9
    assert costs.amplification == costs.chunks_read / 15


def test_a_saved_plan_runs_in_parts_and_is_finished_once(source: str, tmp_path: Path) -> None:
    plan = _plan(source, tmp_path / "dest.zarr")
    plan.save(tmp_path / "plan")
    plan.save(tmp_path / "plan")
    opened = tessarr.plan.load(tmp_path / "plan")
    assert opened.run_part(2, 2).missing == plan.tasks // 2
    with pytest.raises(FailedTasksError, match="tasks missing: 0"):
        tessarr.plan.load(tmp_path / "plan").finish()
    with pytest.raises(NodeNotFoundError):
        tessarr.open(tmp_path / "dest.zarr", mode="r")
    tessarr.plan.load(tmp_path / "plan").run_part(1, 2)
    assert tessarr.plan.load(tmp_path / "plan").finish().finished
    _check(tmp_path / "dest.zarr")
    assert tessarr.plan.load(tmp_path / "plan").run().finished
    with pytest.raises(ValueError, match="numbered from 1 to 2, got 0"):
        opened.run_part(0, 2)


class _Failing(Executor):
    """Runs tasks at once; the first attempts of some fail, or all do."""

    def __init__(self, failures: dict[int, int]) -> None:
        self.failures = failures
        self.ran: list[int] = []

    def submit(self, work: Any, document: Any, /, *tasks: Any) -> Any:  # type: ignore[override]
        future: Future[Any] = Future()
        self.ran += tasks
        failing = next((task for task in tasks if self.failures.get(task, 0) > 0), None)
        if failing is not None:
            self.failures[failing] -= 1
            future.set_exception(OSError(f"worker of task {failing} was killed"))
        else:
            future.set_result(work(document, *tasks))
        return future


def test_a_task_that_fails_is_repeated_and_what_is_done_is_not(source: str, tmp_path: Path) -> None:
    plan = _plan(source, tmp_path / "dest.zarr")
    plan.save(tmp_path / "plan")
    failing = _Failing({0: 2, 1: 99})
    with pytest.raises(
        FailedTasksError, match=f"1 of {plan.tasks} tasks failed.*worker of task 1 was killed"
    ) as caught:
        plan.run(failing, retries=2)
    assert list(caught.value.tasks) == [1]
    assert failing.ran.count(0) == failing.ran.count(1) == 3
    again = _Failing({})
    assert tessarr.plan.load(tmp_path / "plan").run(again).finished
    assert again.ran == [1]
    _check(tmp_path / "dest.zarr")


def test_never_more_than_a_few_tasks_per_slot_are_submitted(source: str, tmp_path: Path) -> None:
    waiting: list[Future[Any]] = []

    class Slow(Executor):
        def submit(self, work: Any, *arguments: Any) -> Any:  # type: ignore[override]
            future: Future[Any] = Future()
            waiting.append(future)
            most.append(sum(not one.done() for one in waiting))
            sent.update(arguments[1:])
            if most[-1] >= 3 or len(sent) == plan.tasks:
                for one, call in [*zip(waiting, calls, strict=False), (future, lambda: work(*arguments))]:
                    if not one.done():
                        one.set_result(call())
            calls.append(lambda: work(*arguments))
            return future

    most: list[int] = []
    sent: set[int] = set()
    calls: list[Any] = []
    plan = _plan(source, tmp_path / "dest.zarr")
    plan.run(Slow(), slots=1)
    assert max(most) <= 3
    _check(tmp_path / "dest.zarr")


def test_a_plan_runs_on_the_current_client_of_dask(source: str, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    plan = _plan(source, tmp_path / "dest.zarr")
    with pytest.raises(UnsupportedOperationError, match="Connect first"):
        plan.run("dask")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        assert plan.run("dask").finished
    _check(tmp_path / "dest.zarr")


def test_what_is_no_executor_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="must be None"):
        _plan(source, tmp_path / "dest.zarr").run(object())


def test_a_source_that_changed_meanwhile_is_an_error(source: str, tmp_path: Path) -> None:
    _plan(source, tmp_path / "dest.zarr").save(tmp_path / "plan")
    tessarr.open_array(source, mode="r+").resize((61, 44))
    with pytest.raises(ConflictError, match="source has changed"):
        tessarr.plan.load(tmp_path / "plan").run()


def test_what_is_there_is_replaced_only_when_the_plan_is_done(source: str, tmp_path: Path) -> None:
    place = tmp_path / "dest.zarr"
    tessarr.create_array(place, shape=(2,), dtype="u1")
    with pytest.raises(BaseZarrError, match="something is at the destination"):
        _plan(source, place)
    plan = _plan(source, place, overwrite=True)
    plan.save(tmp_path / "plan")
    plan.run_part(1, 1)
    assert tessarr.open_array(place).shape == (2,)
    plan.finish()
    _check(place)


def test_a_node_of_a_store_is_replaced(source: str) -> None:
    store = MemoryStore()
    tessarr.create_array(store, name="g/a", shape=(2,), dtype="u1")
    plan = _plan(source, store, path="g/a", overwrite=True)
    assert tessarr.open_array(store, path="g/a").shape == (2,)
    plan.run()
    _check(store, path="g/a")
    assert [name for name, _ in tessarr.open_group(store, path="g").members()] == ["a"]
    with pytest.raises(UnsupportedOperationError, match="in this process only"):
        plan.save(MemoryStore())


def test_a_hierarchy_is_rechunked_as_a_whole(tmp_path: Path) -> None:
    group = tessarr.create_group(tmp_path / "a.zarr", attributes={"title": "t"})
    for name, shape in {"x": (40, 6), "y": (40,), "scalar": ()}.items():
        group.create_array(name, shape=shape, dtype="f8")[...] = np.random.default_rng(1).random(shape)
    group.create_group("below").create_array("empty", shape=(0, 3), dtype="u1")
    plan = tessarr.plan.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(7, 6), memory=SMALL)
    plan.run()
    made = tessarr.open_group(tmp_path / "b.zarr", mode="r")
    assert dict(made.attrs) == {"title": "t"}
    assert tessarr.open_array(tmp_path / "b.zarr", path="x").chunks == (7, 6)
    for name, node in group.members(max_depth=None):
        if isinstance(node, tessarr.Array):
            assert (tessarr.open_array(tmp_path / "b.zarr", path=name)[...] == node[...]).all()


def test_places_within_each_other_and_zip_files_are_refused(source: str, tmp_path: Path) -> None:
    for dest in (source, Path(source) / "below"):
        with pytest.raises(UnsupportedOperationError, match="is, holds, or is within the target"):
            _plan(source, dest, overwrite=True)
    with pytest.raises(UnsupportedOperationError, match="cannot share a zip file"):
        _plan(source, tmp_path / "dest.zip")
    with pytest.raises(UnsupportedOperationError, match="such as a zip file"):
        _plan(source, f"{tmp_path / 'dest.zip'}|zip:")
    assert not (tmp_path / "dest.zip").exists()


def test_too_little_memory_is_refused_with_what_is_needed(source: str, tmp_path: Path) -> None:
    with pytest.raises(BaseZarrError, match=r"a task needs more memory.*Allow at least \d+ MB"):
        tessarr.plan.rechunk(source, tmp_path / "dest.zarr", chunks=(60, 44), memory="500B")


@pytest.mark.parametrize("length", [200, 900, 2000])
def test_the_memory_that_is_said_to_be_needed_is_enough(length: int, tmp_path: Path) -> None:
    """Also where the code of a process is counted, since much memory is needed."""
    large = tessarr.create_array(tmp_path / "large", shape=(4000, 4000), chunks=(100, 4000), dtype="f8")
    planned = partial(tessarr.plan.rechunk, large, tmp_path / "dest.zarr", chunks=(length, length))
    with pytest.raises(BaseZarrError) as raised:
        planned(memory="100kB")
    found = re.search(r"Allow at least (\d+ MB)", str(raised.value))
    assert found is not None
    assert planned(memory=found[1]).tasks > 1


def test_other_documents_and_versions_are_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(BaseZarrError, match="no plan is here"):
        tessarr.plan.load(tmp_path)
    _plan(source, tmp_path / "dest.zarr").save(tmp_path / "plan")
    document = tmp_path / "plan" / "plan.json"
    text = json.loads(document.read_text())
    with pytest.raises(BaseZarrError, match="another plan is here"):
        _plan(source, tmp_path / "other.zarr").save(tmp_path / "plan")
    for change, message in (
        ({"tessarr_plan": 1}, "another version"),
        ({"tessarr_plan": 99}, "another version"),
        ({"nodes": [{}]}, "damaged"),
    ):
        document.write_text(json.dumps({**text, **change}))
        with pytest.raises(MetadataValidationError, match=message):
            tessarr.plan.load(tmp_path / "plan")
    document.write_text("{}")
    with pytest.raises(MetadataValidationError, match="not a plan"):
        tessarr.plan.load(tmp_path / "plan")


def test_the_plan_of_a_hundred_terabytes_is_described_and_small(tmp_path: Path) -> None:
    hours, levels, rows, columns = 736_344, 37, 721, 1440
    place = str(tmp_path / "era5.zarr")
    tessarr.create_array(place, shape=(hours, levels, rows, columns), chunks=(1, levels, rows, columns), dtype="f4")
    plan = tessarr.plan.rechunk(place, tmp_path / "series.zarr", chunks=(8760, 1, 20, 20), memory="32GB")
    plan.save(tmp_path / "plan")
    assert (tmp_path / "plan" / "plan.json").stat().st_size < 3000
    described = plan.describe()
    assert described.peak_memory <= 32e9
    assert described.arrays[0].strategy == "staged"
    assert described.arrays[0].amplification == 1
    assert "axis 2: the last chunk has 1 of 20 elements" in str(described)


def test_the_command_line_says_that_no_scheduler_answers(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = str(tmp_path / "plan")
    assert main(["plan", "rechunk", source, str(tmp_path / "dest.zarr"), "--chunks", "60,44", "--save", plan]) == 0
    assert "rechunk: 1 task, " in capsys.readouterr().out
    assert main(["run", plan, "--dask", "nonsense://here"]) != 0
    told = capsys.readouterr().err
    assert "connecting to nonsense://here" in told
    assert "no dask scheduler answers" in told
    assert main(["run", plan]) == 0
    assert capsys.readouterr().out == "1 of 1 task done; finished\n"


def test_the_command_line_plans_runs_parts_and_finishes(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dest, plan = str(tmp_path / "dest.zarr"), str(tmp_path / "plan")
    wanted = ["plan", "rechunk", source, dest, "--chunks", "60,5", "--memory", f"{SMALL}B", "--strategy", "direct"]
    assert main([*wanted, "--dry-run"]) == 0
    assert "5 tasks read 75 chunks" in capsys.readouterr().out
    assert main([*wanted, "--save", plan, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == 5
    assert main(["run", plan, "--part", "1/2"]) == 0
    assert capsys.readouterr().out == "2 of 5 tasks done; not finished\n"
    assert main(["finish", plan]) == 1
    assert "3 tasks missing: 2, 3, 4" in capsys.readouterr().err
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "2")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MIN", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")
    assert main(["run", plan, "--part"]) == 0
    assert main(["finish", plan]) == 0
    capsys.readouterr()
    assert main(["run", plan, "--status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"tasks": 5, "done": 5, "missing": 0, "finished": True}
    _check(dest)
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "9")  # sbatch --array=1-9:4
    monkeypatch.setenv("SLURM_ARRAY_TASK_STEP", "4")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "3")
    assert part_of("", os.environ) == (3, 3)
    assert main(["run", plan, "--part", "3"]) == 2
    assert "--part is I/N" in capsys.readouterr().err


def test_parts_that_have_nothing_to_do_end_with_0(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan of one block, dealt to an array job of four."""
    dest, plan = tmp_path / "dest.zarr", str(tmp_path / "plan")
    wanted = ["plan", "rechunk", source, str(dest), "--chunks", "60,5", "--memory", "1MB", "--strategy", "direct"]
    assert main([*wanted, "--save", plan, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parts"] == 1
    monkeypatch.setenv("AWS_BATCH_JOB_ARRAY_SIZE", "4")
    done = []
    for index in range(4):
        monkeypatch.setenv("AWS_BATCH_JOB_ARRAY_INDEX", str(index))
        assert main(["run", plan, "--part", "--json"]) == 0
        done.append(json.loads(capsys.readouterr().out)["done"])
    assert done == [0, 0, 0, 1]
    assert main(["finish", plan]) == 0
    _check(dest)


def test_no_credential_is_written_or_told(
    source: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Workers get it by ``--storage``; without it the store refuses them."""
    options = servers.S3_OPTIONS
    secret = options["secret_access_key"]
    (tmp_path / "s3").mkdir()
    with servers.s3_server(tmp_path / "s3") as server, caplog.at_level("DEBUG"):
        url = f"s3+http://{server.address}/bucket"
        storage = [word for item in options.items() for word in ("--storage", "=".join(item))]
        wanted = ["plan", "rechunk", source, f"{url}/b", "--chunks", "60,5", "--save", f"{url}/plan", *storage]
        assert main(wanted) == 0
        assert (
            main(["run", f"{url}/plan", "--storage", "access_key_id=other", "--storage", "secret_access_key=no"]) != 0
        )
        assert main(["run", f"{url}/plan", *storage]) == 0
        assert main(["run", f"{url}/plan", "--status", *storage]) == 0
        _check(f"{url}/b", storage_options=options)
        stored = [path for path in (tmp_path / "s3").rglob("*") if path.is_file()]
        assert any("done" in str(path) for path in stored)
        assert not [path for path in stored if secret.encode() in path.read_bytes()]
    told = capsys.readouterr()
    assert secret not in caplog.text + told.out + told.err
