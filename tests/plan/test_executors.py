"""Plans on executors of the standard library and of others, what their dashboards show, and how far work is."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main, progress
from tessarr.errors import FailedTasksError, UnsupportedOperationError
from tessarr.plan import Plan, executors
from tessarr.plan.executors import DaskExecutor, executor_from, in_turn, submitted
from tessarr.plan.strategies.ready import Ready
from tessarr.plan.task import Worker
from tests.plan.conftest import assert_carried_out
from tests.pseudo_terminal import drawn_on_terminal

NO_EXTRA = "it belongs to no extra: tested where it is installed"


@pytest.mark.parametrize("method", [name for name in multiprocessing.get_all_start_methods() if name != "fork"])
def test_a_plan_runs_in_processes(method: str, plan: Plan, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as executor:
        assert plan.run(executor).finished
    assert_carried_out(tmp_path)


def test_a_plan_runs_in_the_processes_of_loky(plan: Plan, tmp_path: Path) -> None:
    loky = pytest.importorskip("loky", reason="belongs to the extra [dev]")
    with loky.ProcessPoolExecutor(2) as executor:
        assert plan.run(executor).finished
    assert_carried_out(tmp_path)


def test_a_plan_runs_in_a_pool_of_mpi(plan: Plan, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason=NO_EXTRA)
    code = (
        "import sys, tessarr.plan\n"
        "from mpi4py.futures import MPIPoolExecutor\n"
        "if __name__ == '__main__':\n"
        "    with MPIPoolExecutor(1) as pool:\n"
        "        assert tessarr.plan.load(sys.argv[1]).run(pool).finished\n"
    )
    (tmp_path / "run.py").write_text(code)
    source = str(Path(tessarr.__file__).parents[1])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # MPI looks there for mpiexec, or waits for ever
    subprocess.run(
        [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "PLAN")],
        env={**os.environ, "PYTHONPATH": source, "PATH": path}, check=True,
    )  # fmt: skip
    assert_carried_out(tmp_path)


class _Sent:
    key = "task"
    status = "pending"


class LostExecutor:
    """The executor of a dask client that is closed while a task runs, and leaves the task's future pending."""

    def __init__(self) -> None:
        self._client = SimpleNamespace(status="running", submit=lambda *_: _Sent())
        self._futures: set[object] = set()
        self._kwargs: dict[str, object] = {}

    def _wrap_future(self, _: object) -> Future[Any]:
        self._client.status = "closed"
        return Future()


def test_tasks_of_a_client_of_dask_that_is_closed_fail() -> None:
    with DaskExecutor(cast("Any", LostExecutor())) as executor:
        assert isinstance(executor.submit(int).exception(60), BrokenExecutor)


def test_so_do_those_of_an_executor_that_a_user_made_of_the_client() -> None:
    module = pytest.importorskip("distributed.cfexecutor", reason="belongs to the extra [dask]")
    executor = module.ClientExecutor.__new__(module.ClientExecutor)
    executor._client = SimpleNamespace(status="running")
    assert isinstance(executor_from(executor, 1)[0], DaskExecutor)


def test_a_client_of_dask_that_is_closed_is_refused(plan: Plan) -> None:
    distributed = pytest.importorskip("distributed", reason="belongs to the extra [dask]")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pass
    with pytest.raises(UnsupportedOperationError, match=r"the client of dask is closed.*distributed\.Client"):
        plan.run(client)


def test_the_dashboard_of_dask_names_tasks_by_their_operation(plan: Plan, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="belongs to the extra [dask]")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        assert plan.run("dask").finished
        shown = set(cluster.scheduler.task_prefixes)
    assert shown == {"rechunk"}
    assert_carried_out(tmp_path)


class _Refusing(Executor):
    """Fails one task."""

    def submit(self, work: Any, document: Any, task: Any, /) -> Any:  # type: ignore[override]
        future: Future[Any] = Future()
        if task == 1:
            future.set_exception(OSError("no"))
        else:
            future.set_result(work(document, task))
        return future


class _Killing(Executor):
    """Loses one task twice, as dask does after the workers that had it were killed, and carries out all others."""

    def __init__(self, error: BaseException) -> None:
        self.error, self.sent = error, Counter[int]()

    def submit(self, work: Any, document: Any, /, *tasks: Any) -> Any:  # type: ignore[override]
        self.sent.update(tasks)
        future: Future[Any] = Future()
        if 1 in tasks and self.sent[1] <= 2:
            future.set_exception(self.error)
        else:
            future.set_result(work(document, *tasks))
        return future


def test_a_task_that_is_lost_with_killed_workers_of_dask_is_sent_again(plan: Plan, tmp_path: Path) -> None:
    scheduler = pytest.importorskip("distributed.scheduler", reason="belongs to the extra [dask]")
    executor = _Killing(scheduler.KilledWorker("rechunk-1", None, 3))
    assert plan.run(executor, slots=1).finished
    assert executor.sent == Counter({task: 3 if task == 1 else 1 for task in range(plan.tasks)})
    assert_carried_out(tmp_path)


def _killed_first(flag: str, work: Callable[..., Any], *args: Any) -> Any:
    """Kill the process of the first call, and carry out all others."""
    with suppress(FileExistsError), open(flag, "x", encoding="ascii"):
        os.kill(os.getpid(), signal.SIGKILL)
    return work(*args)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_task_that_dask_gives_up_because_its_worker_was_killed_is_sent_again(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="belongs to the extra [dask]")
    dask = pytest.importorskip("dask", reason="belongs to the extra [dask]")
    given_up: list[BaseException] = []
    submit = DaskExecutor.submit

    def killing(self: DaskExecutor, work: Callable[..., Any], /, *args: object) -> Future[Any]:
        future = submit(self, _killed_first, str(tmp_path / "flag"), work, *args)
        future.add_done_callback(lambda ended: given_up.extend(filter(None, [ended.exception()])))
        return future

    monkeypatch.setattr(DaskExecutor, "submit", killing)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster),
    ):
        assert plan.run("dask").finished
    assert given_up
    assert {type(error) for error in given_up} == {distributed.KilledWorker}
    assert_carried_out(tmp_path)


class _Here(Executor):
    """Carries out each call when it is submitted, and keeps what was asked."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def submit(self, work: Any, tasks: Any, /) -> Any:  # type: ignore[override]
        self.calls.append(list(tasks))
        future: Future[Any] = Future()
        try:
            future.set_result(in_turn(work, tasks))
        except Exception as error:
            future.set_exception(error)
        return future


def _carried_out(work: Callable[[int], int], tasks: int, retries: int = 2) -> tuple[list[list[int]], dict[int, Any]]:
    """Carry tasks out one call after the other; return the calls, and what came of each task."""
    executor, came = _Here(), dict[int, Any]()
    ready = Ready([(0, [range(tasks)])], lambda _block, _last: None)
    for task, result in submitted(partial(executor.submit, work), ready, 1, retries, {}):
        assert task not in came
        came[task] = result
    return executor.calls, came


def test_short_tasks_are_sent_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "CALL_SECONDS", 1e6)
    calls, came = _carried_out(lambda task: task * task, 1000)
    assert came == {task: task * task for task in range(1000)}
    assert [len(tasks) for tasks in calls[:7]] == [1, 1, 1, 2, 2, 2, 4]
    assert len(calls) < 30


def test_long_tasks_are_sent_alone_and_a_call_leaves_what_it_does_not_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "CALL_SECONDS", 1e6)

    def work(task: int) -> int:
        if task == 20:  # from here on, tasks take longer than a call may
            monkeypatch.setattr(executors, "CALL_SECONDS", -1.0)
        return task

    calls, came = _carried_out(work, 60)
    assert came == {task: task for task in range(60)}
    assert max(map(len, calls)) > 1
    assert [len(tasks) for tasks in calls[-10:]] == [1] * 10


def test_a_task_that_fails_among_others_is_repeated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "CALL_SECONDS", 1e6)
    ran = Counter[int]()

    def work(task: int) -> int:
        ran[task] += 1
        if task == 40 or (task == 50 and ran[task] == 1):
            raise OSError(f"task {task}")
        return task

    calls, came = _carried_out(work, 100)
    assert str(came.pop(40)) == "task 40"
    assert came == {task: task for task in range(100) if task != 40}
    assert ran == Counter({task: {40: 3, 50: 2}.get(task, 1) for task in range(100)})
    assert [tasks for tasks in calls if 40 in tasks][1:] == [[40], [40]]


def test_the_tasks_of_a_call_that_is_lost_are_sent_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "CALL_SECONDS", 1e6)
    lost = Counter[int]()

    class Losing(_Here):
        def submit(self, work: Any, tasks: Any, /) -> Any:  # type: ignore[override]
            if 40 not in tasks:
                return super().submit(work, tasks)
            lost.update(tasks)
            future: Future[Any] = Future()
            future.set_exception(OSError("the worker was killed"))
            return future

    executor = Losing()
    ready = Ready([(0, [range(100)])], lambda _block, _last: None)
    came = dict(submitted(partial(executor.submit, abs), ready, 1, 2, {}))
    assert str(came.pop(40)) == "the worker was killed"
    assert came == {task: task for task in range(100) if task != 40}
    assert lost[40] == 4  # once with others, then as often as a task that fails alone
    assert set(lost.values()) == {1, 4}


def test_a_client_of_dask_is_an_executor_and_a_class_is_none(plan: Plan, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="belongs to the extra [dask]")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        assert plan.run(client).finished
    assert_carried_out(tmp_path)
    with pytest.raises(TypeError, match="an object of a"):
        executor_from(ThreadPoolExecutor, None)
    with pytest.raises(ValueError, match="slots must be at least 1, got 0"):
        executor_from(None, 0)


def gated(monkeypatch: pytest.MonkeyPatch) -> tuple[Counter[int], Event]:
    """Let the first task wait until another one has begun, and all others for the event; count the tasks that ran."""
    ran, begun, more, carry_out = Counter[int](), Event(), Event(), Worker.run

    def run(work: Worker, task: int, *, marked: bool = True) -> Any:
        if task == 0:
            assert begun.wait(60)
        else:
            begun.set()
            assert more.wait(60)
        ran[task] += 1
        return carry_out(work, task, marked=marked)

    monkeypatch.setattr(Worker, "run", run)
    return ran, more


def test_the_receipts_of_tasks_that_run_when_a_plan_is_interrupted_are_kept(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, more = gated(monkeypatch)

    def interrupted(*_: object) -> None:
        more.set()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan.run(slots=2, progress=interrupted)
    assert len(ran) >= 2
    assert plan.status().done == len(ran)
    assert plan.run().finished
    assert set(ran.values()) == {1}


def test_the_receipts_of_tasks_that_run_on_dask_when_a_plan_is_interrupted_are_kept(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Futures of dask can be cancelled while their tasks run."""
    distributed = pytest.importorskip("distributed", reason="belongs to the extra [dask]")
    ran, more = gated(monkeypatch)
    keep_started = DaskExecutor.keep_started

    def kept(executor: DaskExecutor) -> None:
        keep_started(executor)
        more.set()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DaskExecutor, "keep_started", kept)
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        try:
            with pytest.raises(KeyboardInterrupt):
                plan.run(client, progress=interrupted)
        finally:
            more.set()
        assert len(ran) >= 2
        assert plan.status().done == len(ran)
        assert plan.run(client).finished
    assert set(ran.values()) == {1}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
def test_a_second_control_c_leaves_the_tasks_that_run(plan: Plan, tmp_path: Path) -> None:
    code = (
        "import signal, sys, threading\n"
        "from tessarr.cli import main\n"
        "from tessarr.plan import executors\n"
        "from tessarr.plan.task import Worker\n"
        "begun, wait = threading.Event(), executors.wait\n"
        "def run(self, task, *, marked=True):\n"
        "    begun.set()\n"
        "    threading.Event().wait()\n"
        "def waiting(*args, **options):\n"
        "    begun.wait()\n"
        "    print('running', flush=True)\n"
        "    return wait(*args, **options)\n"
        "Worker.run, executors.wait = run, waiting\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background ignores it
        "sys.exit(main(['run', sys.argv[1]]))\n"
    )
    source = str(Path(tessarr.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "PLAN")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline() == "stopping: 1 task still running; Ctrl-C again leaves what runs\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            assert "Go on with: tessarr run" in process.stderr.read()
        finally:
            process.kill()


@pytest.mark.parametrize(
    "options",
    [
        ["--jobs", "0"], ["--jobs", "-1"], ["--dask", "tcp://127.0.0.1:1", "--jobs", "2"], ["--status", "--stage", "1"],
        ["--status", "--jobs", "2"], ["--part", "1/2", "--stage", "0"],
    ],
)  # fmt: skip
def test_options_that_mean_nothing_are_wrong_usage(
    options: list[str], plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(tmp_path / "PLAN"), *options]) == 2
    assert options[-2] in (told := capsys.readouterr().err) or "stages are numbered from 1 to 2, got 0" in told


def test_failures_are_told_while_a_plan_runs(plan: Plan) -> None:
    told: list[tuple[int, int, str]] = []
    with pytest.raises(FailedTasksError):
        plan.run(_Refusing(), slots=1, retries=0, progress=lambda *now: told.append(now))
    assert "task 1, 1 failed" in [what for _, _, what in told]


def test_lines_say_how_far_a_plan_is_where_there_is_no_terminal(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_INTERVAL_S", 0)
    assert main(["run", str(tmp_path / "PLAN")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == [f"{done + 1} of {plan.tasks}" for done in range(plan.tasks)]
    named = [re.search(r"task (\d+)$", line) for line in lines[:-1]]
    assert len({found[1] for found in named if found}) == plan.tasks - 1  # in any order: several run at once
    assert "/s, 0:00:00 left" in lines[-1]


@pytest.mark.parametrize("rich", [True, False])
def test_a_live_bar_shows_rate_and_time_left_on_a_terminal(plan: Plan, tmp_path: Path, rich: bool) -> None:
    status, drawn = drawn_on_terminal(["run", str(tmp_path / "PLAN")], rich=rich)
    assert status == 0
    assert "/s, 0:00:00 left" in drawn
    assert ("#" in drawn) is not rich
