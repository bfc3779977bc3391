"""Let 8 processes change one hierarchy while they are killed and stopped at random, and judge what they were answered.

A number decides about the store (local files; an S3 server, emulators of GCS and Azure behind a proxy that breaks
answers), about what the processes do, and about the faults. `tests/histories` has the operations and the checker. When
a process is killed depends on the machine, so that a number does not always repeat a finding: the files of a history
that was one stay in ``build/campaigns/histories``.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache, partial
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

from campaigns.slices import Slice, repeated, timed

import tessarr
from tests.histories import clients, judge
from tests.histories.clients import Place
from tests.simulation.worlds import SCRATCH
from tests.stores.remote import servers
from tests.stores.remote.proxy import Fault, start_proxy

SUMMARY = "8 processes over local files, an S3 server, emulators of GCS and Azure, killed and stopped at random"
KEPT = Path(__file__).resolve().parents[2] / "build" / "campaigns" / "histories"
KINDS = ("local", "s3", "local", "gcs", "local", "s3", "local", "azure")
OPERATIONS = {"local": 2000, "s3": 100, "gcs": 60, "azure": 60}
"""Operations of each process in one history."""
DISTURBED_S = {"local": (0.005, 0.06)}
"""Seconds between disturbances, where they are not those of a server: operations in memory are fast."""
PROCESSES = 8
BROKEN = 0.005
"""The share of answers that the proxy breaks."""
_PARTS = (
    "core",
    "engine",
    "codecs",
    "indexing",
    "metadata",
    "transactions",
    "stores/local",
    "stores/remote",
    "stores/wrappers",
)
"""Parts of the package that operations of histories use."""
LONGEST_S = 300.0
"""A history in which no process writes a line for so long hangs."""


@cache
def _context() -> ForkServerContext:
    """Processes are forked from one that has imported everything and has opened no store."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "tests.histories.clients", "tests.histories.judge", *_imported_later()])
    return context


def _imported_later() -> list[str]:
    """Modules that operations import when they are needed: half a second of a process that is started."""
    package = Path(tessarr.__file__).parent
    files = [file for part in _PARTS for file in sorted((package / part).rglob("*.py"))]
    names = [".".join(file.relative_to(package.parent).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names]


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do histories from `begin` on, for so long."""
    yield from timed(begin, seconds, _do)


def repeat(number: int) -> str | None:
    """Do one number again."""
    return repeated(number, _do)


def alone(
    kind: str, first: int, operations: int | None = None
) -> tuple[Callable[..., Iterator[Slice]], Callable[[int], str | None]]:
    """Make `slices` and `repeat` of a campaign over one kind of store; `first`: the seed of its number 0."""

    def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
        """Do histories from `begin` on, for so long or up to `end`."""
        yield from timed(begin, seconds, do_one, end)

    def repeat(number: int) -> str | None:
        """Do one number again."""
        return repeated(number, do_one)

    def do_one(number: int, part: Slice) -> None:
        do(kind, number, first + number, part, operations)

    return slices, repeat


def _do(number: int, part: Slice) -> None:
    do(KINDS[number % len(KINDS)], number, number, part)


def do(kind: str, number: int, seed: int, part: Slice, operations: int | None = None) -> None:
    """Do the history of a number over a kind of store; `operations`: of each process."""
    with tempfile.TemporaryDirectory(prefix="tessarr-history-", dir=SCRATCH) as folder:
        history, wrong, figures = run(kind, seed, Path(folder), PROCESSES, operations or OPERATIONS[kind])
        if wrong:
            kept = KEPT / str(seed)
            shutil.copytree(folder, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("server"))
            part.find(number, f"{kind}: {'; '.join(wrong)}\nits files: {kept}")
    part.count(f"operations ({kind})", len(history.events))
    part.count("acknowledged", history.acknowledged)
    part.count("left open", history.open)
    for name, count in figures.items():
        part.count(name, count)


def run(
    kind: str, seed: int, folder: Path, processes: int, operations: int
) -> tuple[judge.History, list[str], Counter[str]]:
    """Let so many processes do so many operations each, and judge them. Returns what they wrote down, what is wrong,
    and figures."""
    random = Random(seed)
    breaking = Breaking(Random(seed), BROKEN)
    with place_of(kind, folder, breaking) as place:
        _once(partial(clients.make, place, sharded=random.random() < 0.5))
        breaking.is_on = True
        crowd = Crowd(place, seed, folder, processes, operations)
        crowd.run(random, DISTURBED_S.get(kind, (0.01, 0.2)))
        breaking.is_on = False
        history = judge.read(sorted(folder.glob("*.jsonl")))
        wrong = [*crowd.wrong, *history.wrong]
        try:
            end = _once(partial(judge.look, place))
        except RuntimeError as error:
            wrong.append(f"what is there in the end cannot be read: {error}")
        else:
            wrong += judge.judge(history.events, end, is_local=place.is_local)
    return history, wrong, Counter({**crowd.figures, "broken answers": breaking.broken})


class Breaking:
    """Breaks answers of a server at random: an error, a lost answer, a closed connection, all of these for a moment."""

    def __init__(self, random: Random, share: float) -> None:
        self._random, self._share = random, share
        self._until = 0.0
        self.is_on = False
        self.broken = 0

    def __call__(self, _: str) -> Fault | None:
        """What is done to a request."""
        if not self.is_on:
            return None
        if time.monotonic() < self._until:
            return Fault("reset")
        if self._random.random() >= self._share:
            return None
        self.broken += 1
        chosen = self._random.randrange(8)
        if chosen == 0:  # a partition
            self._until = time.monotonic() + 0.3
        return Fault("status" if chosen < 4 else "lost" if chosen < 7 else "reset")


_SERVERS: dict[str, Callable[[Path], AbstractContextManager[servers.Server]]] = {
    "s3": lambda root: servers.s3_server(root, "--keep-alive"),
    "gcs": servers.gcs_server,
    "azure": servers.azure_server,
}


@contextmanager
def place_of(kind: str, folder: Path, breaking: Breaking) -> Iterator[Place]:
    """A new place for a history."""
    if kind == "local":
        yield Place(str(folder / "data.zarr"), {}, is_local=True)
        return
    with ExitStack() as stack:
        (folder / "server" / kind).mkdir(parents=True)
        server = stack.enter_context(_SERVERS[kind](folder / "server" / kind))
        proxy = stack.enter_context(start_proxy(server, google=kind == "gcs"))
        proxy.choose, proxy.keeps = breaking, kind == "s3"
        url, options = {
            "s3": (f"s3+http://{proxy.address}/bucket/data", servers.S3_OPTIONS),
            "gcs": (f"gs+http://{proxy.address}/bucket/data", {}),
            "azure": (
                f"az+http://{proxy.address}/{servers.AZURE_ACCOUNT}/container/data",
                {"account_key": servers.AZURE_KEY},
            ),
        }[kind]
        yield Place(url, dict(options), is_local=False)


class Crowd:
    """The processes of a history. One that is killed is followed by another one, which does the rest."""

    def __init__(self, place: Place, seed: int, folder: Path, processes: int, operations: int) -> None:
        self._place, self._seed, self._folder, self._operations = place, seed, folder, operations
        self._lives = [0] * processes
        self._running: dict[int, BaseProcess] = {}
        self._stopped: dict[int, float] = {}
        """When those that are stopped go on."""
        self.figures: Counter[str] = Counter(kills=0, stops=0)
        self.wrong: list[str] = []

    def run(self, random: Random, pause_s: tuple[float, float]) -> None:
        """Run all, and disturb them, after a pause each time, until they have ended."""
        for number in range(len(self._lives)):
            self._start(number)
        noted, until = 0, time.monotonic() + LONGEST_S
        while self._running:
            if (now := sum(file.stat().st_size for file in self._folder.glob("*.jsonl"))) != noted:
                noted, until = now, time.monotonic() + LONGEST_S
            time.sleep(random.uniform(*pause_s))
            for number, process in list(self._running.items()):
                if not process.is_alive():
                    self._ended(number, process)
            self._go_on()
            if time.monotonic() > until:
                self.wrong.append(f"processes {sorted(self._running)} do not end")
                for process in self._running.values():
                    process.kill()
            elif self._running:
                self._disturb(random)

    def _file(self, number: int, life: int) -> Path:
        return self._folder / f"{number}-{life}.jsonl"

    def _start(self, number: int) -> None:
        life = self._lives[number]
        left = self._operations - sum(_done(self._file(number, before)) for before in range(life))
        if left <= 0:
            return
        arguments = (self._place, number, life, self._seed, left, str(self._file(number, life)))
        process = _context().Process(target=clients.work, args=arguments)
        process.start()
        self._running[number] = process

    def _ended(self, number: int, process: BaseProcess) -> None:
        del self._running[number]
        self._stopped.pop(number, None)
        self._lives[number] += 1
        if process.exitcode == -signal.SIGKILL:
            self._start(number)
        elif process.exitcode != 0:
            self.wrong.append(f"process {number} ended with {process.exitcode}")

    def _go_on(self) -> None:
        for number, when in list(self._stopped.items()):
            if time.monotonic() >= when:
                del self._stopped[number]
                self._signal(number, signal.SIGCONT)

    def _disturb(self, random: Random) -> None:
        number, chosen = random.randrange(len(self._lives)), random.random()
        if number not in self._running:  # the last ones would get what was meant for all
            return
        if chosen < 0.08 and _done(self._file(number, self._lives[number])) > 0:
            self.figures["kills"] += 1
            self._signal(number, signal.SIGKILL)
        elif chosen < 0.25 and number not in self._stopped:
            self.figures["stops"] += 1
            self._signal(number, signal.SIGSTOP)
            # Some for longer than a process that others wait for may take.
            longest = clients.EXPIRE_S + 2 if random.random() < 0.1 else 0.5
            self._stopped[number] = time.monotonic() + random.uniform(0, longest)

    def _signal(self, number: int, what: signal.Signals) -> None:
        process = self._running[number]
        if process.pid is not None and process.is_alive():
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(process.pid, what)


def _done(file: Path) -> int:
    """How many operations a process began."""
    return file.read_bytes().count(b'"begun"') if file.exists() else 0


def _once(function: Callable[[], Any]) -> Any:
    """Call a function in a process of its own, because what uses object storage may not be forked. Returns what it returns.

    Raises `RuntimeError` with the error.
    """
    here, there = _context().Pipe(duplex=False)
    process = _context().Process(target=_tell, args=(function, there))
    process.start()
    there.close()
    try:
        succeeded, told = here.recv()
    except EOFError:
        succeeded, told = False, "the process ended"
    process.join()
    if not succeeded:
        raise RuntimeError(told)
    return told


def _tell(function: Callable[[], Any], connection: Any) -> None:
    try:
        connection.send((True, function()))
    except Exception as error:
        connection.send((False, f"{type(error).__name__}: {error}"))
