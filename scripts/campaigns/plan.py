"""Carry out plans while what can fail fails, and compare the result with that of an undisturbed one.

A number decides about the kind of plan, the data and the fault. Clients that are killed are processes of their own.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from http.server import ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import tessarr
import tessarr.plan
from tessarr import Array, Group
from tessarr.errors import FailedTasksError, StoreError
from tessarr.plan import Plan
from tessarr.storage import WrapperStore
from tessarr.stores.base import Store
from tessarr.types import Buffer, ByteRange
from tests.ranged_files import RangedFiles

from .slices import Slice, repeated, timed

SUMMARY = "plans whose clients, workers, scheduler are killed, whose disk is full, whose source fails, and that two clients run"

KINDS: dict[str, Callable[[Path | Array | Group, Path], Plan]] = {
    "copy": lambda source, dest: tessarr.plan.copy(source, dest),
    "rechunk": lambda source, dest: tessarr.plan.rechunk(source, dest, chunks=(-1, 8), memory="4MB"),
    "convert": lambda source, dest: tessarr.plan.convert(source, dest, zarr_format=2, memory="4MB"),
    "digest": lambda source, _: tessarr.plan.digest(source),
    "check": lambda source, _: tessarr.plan.check(source, data="decode"),
    "pyramid": lambda source, dest: tessarr.plan.pyramid(
        _writable(source, dest), "a", levels=2, factors=2, memory="300kB"
    ),
}


def _writable(source: Path | Array | Group, dest: Path) -> Group:
    """Return the group to build levels in: a copy of the source, unless it is opened already."""
    if isinstance(source, Path):
        if not dest.exists():
            shutil.copytree(source, dest)
        return tessarr.open_group(dest)
    assert isinstance(source, Group)
    return source


class Disturbed:
    """A plan of a small source, and what it gives undisturbed."""

    def __init__(self, number: int, folder: Path, rows: int = 240, kind: str | None = None) -> None:
        self.random = random.Random(number)
        self.folder = folder
        self.kind = kind or self.random.choice(list(KINDS))
        self.source = folder / "source.zarr"
        array = tessarr.create_group(self.source).create_array(
            "a", shape=(rows, 64), chunks=(4, 64), shards=self.random.choice([None, (8, 64)]), dtype="f4"
        )
        array[...] = np.random.default_rng(number).random(array.shape, dtype="f4")
        tessarr.consolidate_metadata(self.source)  # so that a server without listings serves it
        expected = KINDS[self.kind](self.source, folder / "expected.zarr")
        expected.run()
        self.expected = self._came(expected, folder / "expected.zarr")
        self.tasks = expected.tasks
        self.dest, self.place = folder / "dest.zarr", folder / "plan"
        KINDS[self.kind](self.source, self.dest).save(self.place)

    def _came(self, plan: Plan, dest: Path) -> object:
        if not plan.writes:
            return plan.result().to_json()
        return {path.relative_to(dest).as_posix(): path.read_bytes() for path in dest.rglob("*") if path.is_file()}

    def wrong(self) -> str | None:
        """Finish the plan; say what differs from an undisturbed run, or is left over."""
        plan = tessarr.plan.load(self.place)
        if not plan.run().finished:
            return "the plan is not finished"
        plan.finish()
        if self._came(plan, self.dest) != self.expected:
            return f"the result of {self.kind} differs"
        left = [path.name for path in self.folder.rglob("*") if ".partial" in path.name]
        return f"left over: {left}" if left else None

    def client(self, *words: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a client that runs the plan."""
        command = [sys.executable, "-m", "tessarr", "run", str(self.place), *words]
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed_client(work: Disturbed) -> None:
    """Kill clients at random moments."""
    for _ in range(work.random.randint(1, 3)):
        client = work.client()
        time.sleep(work.random.uniform(0.3, 1.5))
        client.kill()
        client.wait()


def two_clients(work: Disturbed) -> None:
    """Let two clients run the plan at the same time."""
    clients = [work.client(), work.client("--jobs", "2")]
    for client in clients:
        if client.wait() != 0:
            raise RuntimeError(f"a client ended with {client.returncode}")


def killed_workers(work: Disturbed) -> None:
    """Kill the processes of an executor, one after another; a broken one is replaced by the next."""
    for _ in range(2):
        with suppress(FailedTasksError, OSError), ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
            stop = threading.Timer(work.random.uniform(0.5, 2.0), _kill_one, [pool])
            stop.start()
            try:
                tessarr.plan.load(work.place).run(pool, retries=1)
            finally:
                stop.cancel()
                stop.join()


def _kill_one(pool: ProcessPoolExecutor) -> None:
    for process in list((pool._processes or {}).values())[:1]:
        process.kill()


def full_disk(work: Disturbed) -> None:
    """Let a client write no file of more than some bytes, as if the disk were full."""
    limit = work.random.choice([16, 400, 1500])

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "tessarr", "run", str(work.place)]
    subprocess.run(command, preexec_fn=limited, capture_output=True, check=False)


class Failing(WrapperStore):
    """A store of which one read in so many fails, as a busy server answers 503."""

    def __init__(self, store: Store, chance: float, seed: int) -> None:
        super().__init__(store)
        self.chance, self.random = chance, random.Random(seed)

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        """Read, or fail."""
        if "/c/" in key and self.random.random() < self.chance:
            raise StoreError("HTTP status 503", store=self.url, key=key)
        return super().get(key, byte_range)


def failing_source(work: Disturbed) -> None:
    """Read from a source that fails at times, or often for a while; a check would report that, so it is left out."""
    if work.kind == "check":
        return
    shutil.rmtree(work.place)
    chance = work.random.choice([0.01, 0.01, 0.5])
    in_place = work.kind == "pyramid"
    store = Failing(
        tessarr.storage.LocalStore(work.dest if in_place else work.source), chance, work.random.randrange(1 << 30)
    )
    plan = KINDS[work.kind](tessarr.open_group(store, mode="r+" if in_place else "r"), work.dest)
    plan.save(work.place)
    with suppress(FailedTasksError):
        plan.run()


class Busy(RangedFiles):
    """Serves a directory; answers one request in six that it is too busy."""

    protocol_version = "HTTP/1.1"
    random: random.Random
    refused = 0

    def do_GET(self) -> None:  # noqa: N802 - called by http.server
        """Answer, or say 503."""
        if self.random.random() < 1 / 6:
            type(self).refused += 1
            self.send_response(503)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        super().do_GET()


def busy_source(work: Disturbed) -> None:
    """Read from a server on loopback that answers 503 every now and then; what needs listings or writes there is left out."""
    if work.kind in ("check", "pyramid"):
        return
    shutil.rmtree(work.place)

    class Handler(Busy):
        random = work.random

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(work.folder))) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/{work.source.name}"
            plan = KINDS[work.kind](tessarr.open_group(url, mode="r"), work.dest)
            plan.save(work.place)
            client = work.client()
            if client.wait() != 0:
                raise RuntimeError(f"a client ended with {client.returncode}")
        finally:
            server.shutdown()
            serving.join()
    if not Handler.refused:
        raise RuntimeError("no request was refused")


def killed_scheduler(work: Disturbed) -> None:
    """Kill the scheduler of a dask cluster, and nothing else: its client gives up, and a plan without it goes on."""
    quick = {
        **os.environ,
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s",
        "DASK_DISTRIBUTED__COMM__RETRY__COUNT": "0",
    }
    address_file = work.folder / "scheduler.json"
    words = ["--scheduler-file", str(address_file)]
    scheduler = _dask("scheduler", *words, "--port", "0", "--no-dashboard", "--host", "127.0.0.1", environment=quick)
    worker = _dask("worker", *words, "--nthreads", "2", "--no-nanny", "--no-dashboard", environment=quick)
    client = None
    try:
        until = time.monotonic() + 60
        while not address_file.exists() and time.monotonic() < until:
            time.sleep(0.1)
        address = json.loads(address_file.read_text())["address"]
        client = work.client("--dask", address, environment=quick)
        time.sleep(work.random.uniform(0.5, 4.0))
        scheduler.kill()
        client.wait(120)
    finally:
        for process in (client, worker, scheduler):
            if process is not None:
                process.kill()
                process.wait()


def _dask(role: str, *words: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", role, *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed_cluster(work: Disturbed) -> None:
    """Kill workers of a dask cluster one after another, then its scheduler and client together."""
    script = (
        "import os, signal, sys, threading, tessarr.plan\n"
        "from distributed import Client, LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    cluster = LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address='127.0.0.1:0')\n"
        "    client = Client(cluster)\n"
        "    pids = list(client.run(os.getpid).values())\n"
        "    kill = threading.Timer(0.2, os.kill, [pids[0], signal.SIGKILL])\n"
        "    kill.start()\n"
        "    print('running', flush=True)\n"
        "    print(tessarr.plan.load(sys.argv[1]).run('dask').finished, flush=True)\n"
        "    os.killpg(os.getpid(), signal.SIGKILL)\n"
    )
    file = work.folder / "cluster.py"
    file.write_text(script)
    running = subprocess.Popen(
        [sys.executable, str(file), str(work.place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert running.stdout is not None
    try:
        running.stdout.readline()
        if work.random.random() < 0.5:
            time.sleep(work.random.uniform(0.0, 1.0))
        else:
            running.stdout.readline()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        running.stdout.close()


FAULTS: dict[str, Callable[[Disturbed], None]] = {
    "killed_client": killed_client,
    "two_clients": two_clients,
    "killed_workers": killed_workers,
    "full_disk": full_disk,
    "failing_source": failing_source,
    "busy_source": busy_source,
    "killed_cluster": killed_cluster,
    "killed_scheduler": killed_scheduler,
}


def disturb(number: int, fault: str | None = None, kind: str | None = None) -> tuple[str, str, str | None]:
    """Disturb one plan, of any kind unless one is named. Returns its kind, the fault, and what is wrong."""
    folder = Path(tempfile.mkdtemp(prefix="tessarr-plan-"))
    try:
        work = Disturbed(number, folder, kind=kind)
        chosen = fault or work.random.choice(list(FAULTS))
        FAULTS[chosen](work)
        return work.kind, chosen, work.wrong()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _do(number: int, part: Slice) -> None:
    kind, fault, wrong = disturb(number)
    part.count("plans")
    part.count(fault.replace("_", " "))
    if wrong is not None:
        part.find(number, f"{kind}, {fault}: {wrong}")


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Disturb plans for so long."""
    return timed(begin, seconds, _do)


def repeat(number: int) -> str | None:
    """Disturb one plan again; what is killed when depends on the machine."""
    return repeated(number, _do)
