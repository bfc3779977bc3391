"""Rows P8 and P9: very many tasks, and workers that are killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from plans.row import FULL, Row, assert_equal, dask_cluster, opened

TASKS = 10**6 if FULL else 10**4
SENT = 5000 if FULL else 200
"""Tasks that are carried out; the others are only planned."""
ROWS_OF_ARRAY = 300 if FULL else 60
WORKERS, KILLED = 6, 2
GB = 10**9


def nothing(path: Path) -> None:
    """Make an empty folder: what is planned has no values."""
    path.mkdir()


def not_checked(_source: Path, _target: Path, _peer: str) -> None:
    """Compare nothing: tasks of this row move no values."""


def _resident() -> float:
    """Return the resident memory of this process in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def tessarr_tasks(source: str, target: str) -> dict[str, float]:
    """Plan a million tasks; carry out some on a cluster: boxes of two chunks of an array of which nothing is stored."""
    import tessarr
    import tessarr.plan

    for name, tasks in (("many", TASKS), ("sent", SENT)):
        tessarr.create_array(f"{source}/{name}.zarr", shape=(tasks * 2000,), chunks=(1000,), dtype="u1", overwrite=True)
    settings: dict[str, Any] = {"chunks": (1000,), "memory": "6kB", "strategy": "direct", "overwrite": True}
    resident, began = _resident(), time.perf_counter()
    plan = tessarr.plan.rechunk(f"{source}/many.zarr", f"{target}-many", **settings)
    plan.describe()
    planned, grown = time.perf_counter() - began, _resident() - resident
    tasks = plan.tasks
    small = tessarr.plan.rechunk(f"{source}/sent.zarr", f"{target}-sent", **settings, verify=False)
    with dask_cluster(0, target, workers=2):
        began = time.perf_counter()
        small.run("dask")
        rate = small.tasks / (time.perf_counter() - began)
    return {"tasks planned": tasks, "planned in s": planned, "grown by MB": grown, "tasks/s": rate}


def map_tasks(_source: str, target: str) -> dict[str, float]:
    """Send tasks that do nothing by the client's ``map``, all at once, as its users do."""
    with dask_cluster(0, target, workers=2) as client:
        resident, began = _resident(), time.perf_counter()
        futures = client.map(_same, range(SENT), pure=False)
        client.gather(futures)
        rate = SENT / (time.perf_counter() - began)
        return {"grown by MB": _resident() - resident, "tasks/s": rate}


def _same(number: int) -> int:
    return number


def to_zarr_tasks(_source: str, target: str) -> dict[str, float]:
    """Make dask's graph of a million chunks; store some of them."""
    import dask.array as da
    import zarr

    def stored(tasks: int) -> Any:
        array = zarr.create_array(f"{target}-{tasks}", shape=(tasks * 1000,), chunks=(1000,), dtype="u1", fill_value=0)
        return da.store(da.zeros((tasks * 1000,), chunks=(1000,), dtype="u1"), array, lock=False, compute=False)

    resident, began = _resident(), time.perf_counter()
    graph = dict(stored(TASKS).__dask_graph__())
    planned, grown = time.perf_counter() - began, _resident() - resident
    count = len(graph)
    del graph
    with dask_cluster(0, target, workers=2):
        began = time.perf_counter()
        stored(SENT).compute()
        rate = SENT / (time.perf_counter() - began)
    return {"tasks planned": count, "planned in s": planned, "grown by MB": grown, "tasks/s": rate}


def make(path: Path) -> None:
    """Write an array of many chunks."""
    import numpy as np

    import tessarr

    side = 512 if FULL else 64
    array = tessarr.create_array(path / "a", shape=(ROWS_OF_ARRAY, side, side), chunks=(1, side, side), dtype="f4")
    for start in range(0, ROWS_OF_ARRAY, 10):
        array[start : start + 10] = np.random.default_rng(start).random((10, side, side), dtype="f4")


def check(source: Path, target: Path, _peer: str) -> None:
    """Compare the result of the disturbed run, and look for what is left."""
    assert_equal(opened(source / "a"), opened(target))
    left = [path.name for path in target.parent.iterdir() if ".partial" in path.name]
    assert not left, f"left over: {left}"


def _disturbed(client: Any, began: float, undisturbed: float) -> threading.Thread:
    """Kill workers one after another while the work goes on."""
    pids = list(client.run(os.getpid).values())[:KILLED]

    def kill() -> None:
        for number, pid in enumerate(pids):
            time.sleep(max(0.0, began + undisturbed * (number + 1) / (KILLED + 1) - time.perf_counter()))
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def tessarr_killed(source: str, target: str) -> dict[str, float]:
    """Carry out a plan undisturbed, then while workers are killed."""
    import tessarr.plan

    def work(place: str) -> None:
        shape = tessarr.open_array(f"{source}/a").shape
        tessarr.plan.rechunk(f"{source}/a", place, chunks=(shape[0], 16, 16), memory="20MB" if FULL else "1MB").run(
            "dask"
        )

    return _twice(target, work)


def dask_killed(source: str, target: str) -> dict[str, float]:
    """Rechunk by p2p undisturbed, then while workers are killed."""
    import dask
    import dask.array as da
    import zarr

    def work(place: str) -> None:
        array = zarr.open_array(f"{source}/a", mode="r")
        chunks = (array.shape[0], 16, 16)
        made = zarr.create_array(place, shape=array.shape, chunks=chunks, dtype=array.dtype, fill_value=0)
        with dask.config.set({"array.rechunk.method": "p2p"}):
            da.store(da.from_array(array, chunks=array.chunks).rechunk(chunks), made, lock=False)

    return _twice(target, work)


def _twice(target: str, work: Any) -> dict[str, float]:
    with dask_cluster(0, f"{target}-1", workers=WORKERS):
        began = time.perf_counter()
        work(f"{target}-undisturbed")
        undisturbed = time.perf_counter() - began
    with dask_cluster(0, f"{target}-2", workers=WORKERS) as client:
        began = time.perf_counter()
        killing = _disturbed(client, began, undisturbed)
        work(target)
        disturbed = time.perf_counter() - began
        killing.join()
    return {"undisturbed s": undisturbed, "disturbed s": disturbed}


ROWS = {
    "P8": Row(
        f"{TASKS:,} tasks planned, {SENT:,} carried out", nothing, not_checked,
        {"tessarr": tessarr_tasks, "dask map": map_tasks, "dask to_zarr": to_zarr_tasks},
    ),
    "P9": Row(
        f"{KILLED} of {WORKERS} workers killed", make, check, {"tessarr": tessarr_killed, "dask p2p": dask_killed}
    ),
}  # fmt: skip
