"""Deterministic simulation of several clients of one bucket: every call of a store is a scheduling point.

Each client is a thread, and one thread at a time runs: the one that the schedule chose. Between two points nothing else
happens, so a schedule (a list of choices) repeats a run exactly. Time is virtual: only pauses make it pass.

    outcome = run(Random(seed), [client_a, client_b])     one run, chosen by a seed
    for outcome in exhaustive(programs, make_bucket, preemptions=2): …    every run with at most so many switches (`orders`)

A program is a function of a `Client`, a store that is its connection to the bucket: another object with another URL for each
client, so that clients have no lock in common, as if each were on a machine of its own. Faults are part of the
schedule: a client that crashes never runs again, an answer that is lost was carried out all the same.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

import tessarr
import tessarr.common.numcodecs  # a client that imported it would hold the lock of imports while others go on
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call, Steps, run_steps
from tessarr.engine import pool
from tessarr.errors import ConflictError, StoreError
from tessarr.storage import ConditionalStore
from tessarr.stores.base import ANY, Any_, Version
from tessarr.stores.fetch import Fetch
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.protocols import fallback
from tessarr.types import Buffer, ByteRange

READ, LIST, CHANGE, LOCK, WAIT, OTHER = "read", "list", "change", "lock", "wait", "other"
"""Kinds of what a client does between two points, for `orders`: with keys or paths, with a prefix, with what is changed with
all that is below it; with none: a lock is taken or released, or something noted of which only the order counts; a wait has
ended; anything else."""
Access = tuple[str, Collection[str]]
"""A kind, with the keys that it concerns."""
STALL_S = 1500
"""Seconds of the simulation. How long a client is stopped at most, while others wait: longer than any of them does."""


class Crashed(BaseException):
    """The client does not exist any more: raised at its next points, and at all that follow."""


class StuckError(Exception):
    """A client made so many calls that it will not end."""


class Chooser(Protocol):
    """Decides what happens next."""

    def choose(self, options: int) -> int:
        """A number below `options`."""


class Seeded:
    """Chooses by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def choose(self, options: int) -> int:
        """See `Chooser`."""
        return self._random.randrange(options)


@dataclass
class Bucket:
    """What is stored, and how versions are told."""

    etags: str = "content"
    """``content``: a hash of the value, as S3 has it, so that a value that comes back has its old version;
    ``generation``: a number that never comes back, as Google and Azure have it."""
    values: dict[str, bytes] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    writes: int = 0

    def version(self, key: str) -> Version | None:
        """The version of the value of `key`."""
        value = self.values.get(key)
        if value is None:
            return None
        return hashlib.md5(value).hexdigest() if self.etags == "content" else str(self.generations[key])

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        self.writes += 1
        self.values[key] = value
        self.generations[key] = self.writes

    def connect(self, name: str, simulation: Simulation | None = None) -> Client:
        """See `World`."""
        return Client(name, self, simulation)

    def lock_name(self, client: str, name: Hashable) -> Hashable:
        """See `World`: each client is a machine of its own."""
        return client, name

    def end(self, client: str) -> None:
        """See `World`: a bucket holds nothing of a client."""


class World(Protocol):
    """A place where clients meet: what they share, and what ends with one of them."""

    writes: int
    """Grows with every change, so that those that wait for one know of it."""

    def connect(self, name: str, simulation: Simulation | None = None) -> Any:
        """The store through which a client sees the place; outside of a simulation none of its calls is a point."""

    def lock_name(self, client: str, name: Hashable) -> Hashable:
        """The name of a lock in the process of `client`: equal for clients that are threads of one process."""

    def end(self, client: str) -> None:
        """Release what the operating system releases when a process ends."""


class Client(ConditionalStore):
    """A client's connection to the bucket. A `GET` tells value and version together, as HTTP does."""

    def __init__(self, name: str, bucket: Bucket, simulation: Simulation | None = None) -> None:
        self.name = name
        self.bucket = bucket
        self.simulation = simulation
        self.results: list[Any] = []

    @property
    def url(self) -> str:
        return f"simulated://{self.name}"

    def _point(self, kind: str, *keys: str) -> None:
        if self.simulation is not None:
            self.simulation.point(self, kind, keys)

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        self._point(READ, key)
        return self._now(key, byte_range)

    def _now(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        value = self.bucket.values.get(key)
        return value if value is None or byte_range is None else value[slice(*byte_range.bounds(len(value)))]

    def fetch(self, requests: Sequence[Fetch]) -> list[list[Buffer] | None]:
        self._point(READ, *(key for key, _ in requests))
        found: list[list[Buffer] | None] = []
        for key, ranges in requests:
            parts = [self._now(key, part) for part in (ranges or [None])]
            found.append(None if any(part is None for part in parts) else [part for part in parts if part is not None])
        return found

    def version(self, key: str) -> Version | None:
        self._point(READ, key)
        return self.bucket.version(key)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._point(CHANGE, key)
        if self.simulation is not None and self.simulation.sends_late(key):
            self.simulation.late.append(lambda: self._land(key, bytes(value), if_match))
            raise StoreError("no answer came, and the request is still in the network")
        self._land(key, bytes(value), if_match)
        if self.simulation is not None and (fault := self.simulation.fault_of_answer()):
            raise fault
        return self.bucket.version(key)

    def _land(self, key: str, value: bytes, if_match: Version | None | Any_) -> None:
        if not isinstance(if_match, Any_) and self.bucket.version(key) != if_match:
            raise ConflictError("another writer was faster", store=self.url, key=key)
        self.bucket.put(key, value)

    @fallback  # a loop that compares and swaps, as that of `Store`, with a request less
    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        for _ in range(1000):
            self._point(READ, key)
            version, old = self.bucket.version(key), self._now(key)
            new = change(old)
            try:
                if new is not None:
                    self.set(key, new, if_match=version)
                elif old is not None:  # no bucket removes conditionally: `tessarr.stores.functions._swap`
                    self._point(READ, key)
                    if self.bucket.version(key) != version:
                        continue
                    self.delete(key)
                return
            except ConflictError:
                continue
        raise StuckError("an update never succeeds")

    def delete(self, key: str) -> None:
        self._point(CHANGE, key)
        self.bucket.values.pop(key, None)

    def list(self, prefix: str = "") -> Iterator[str]:
        self._point(LIST, prefix)
        return iter(sorted(key for key in self.bucket.values if key.startswith(prefix)))


Program = Callable[[Any], Any]


@dataclass
class Segment:
    """What a client did between two of its points."""

    client: str
    choices: int
    """Choices of the schedule that were made before it."""
    accesses: list[Access]


@dataclass
class Outcome:
    """What came of one run."""

    results: list[Any]
    """Per client: what its program returned, the exception that it raised, or `Crashed`."""
    bucket: Any
    """The `World`, as the clients left it."""
    schedule: list[int]
    """The choices of this run; `Replay` repeats it."""
    points: int
    was_stalled: bool = False
    """Whether a client was stopped (`stall`)."""
    steps: Sequence[int] = ()
    """Whose steps ended, in that order (`step_ended`)."""
    segments: Sequence[Segment] = ()
    """What the clients did, in that order."""


class Simulation:
    """One run of several clients."""

    def __init__(
        self,
        chooser: Chooser,
        bucket: World,
        *,
        crashes: int = 0,
        lost_answers: int = 0,
        late_writes: int = 0,
        preemptions: int | None = None,
        stall: tuple[int, int] | None = None,
        longest: int = 12_000,
    ) -> None:
        """`stall`: the client that is stopped at its call of that number, until no other one can go on, or `STALL_S` have
        passed. `longest`: calls after which the clients hang; a migration that waits ten minutes for a resize makes 7,400."""
        self._chooser = chooser
        self._bucket = bucket
        self._preemptions = preemptions
        self._last: str | None = None
        self._waiting: dict[str, Callable[[], bool]] = {}
        """Client → whether what it waits for has happened."""
        self._sleeping: set[str] = set()
        """Clients that go on when time has passed, whatever happens."""
        self.locks: dict[Hashable, str] = {}
        """Locks of processes that are held, and by whom."""
        self._stall = None if stall is None else (f"client-{stall[0]}", stall[1])
        self.stalled: str | None = None
        """The client that is stopped."""
        self._stalled_at = 0.0
        self._crashes = crashes
        self._lost = lost_answers
        self._late_writes = late_writes
        self.late: list[Callable[[], None]] = []
        """Requests for chunks that nobody waits for any more, and that the network delivers later."""
        self._longest = longest
        self._ended = threading.Lock()
        self._ended.acquire()
        self._turns: dict[str, threading.Lock] = {}
        self._running: list[str] = []
        self._crashed: set[str] = set()
        self._owners = 0
        self.seconds = 1_700_000_000.0
        self.points = 0
        self.schedule: list[int] = []
        self.steps: list[int] = []
        self.segments: list[Segment] = []

    def _choose(self, options: int) -> int:
        choice = self._chooser.choose(options) if options > 1 else 0
        if options > 1:
            self.schedule.append(choice)
        return choice

    def point(self, client: Client, kind: str = OTHER, keys: Collection[str] = ()) -> None:
        """Let others go on, until the schedule comes back to `client`, which then does what `kind` and `keys` say."""
        if client.name in self._crashed:
            raise Crashed
        if self._stall is not None and self._stall[0] == client.name:
            self._stall = self._stall[0], self._stall[1] - 1
            if self._stall[1] == 0:
                self.stalled, self._stalled_at = client.name, self.seconds
        chosen = self._next()
        if chosen != client.name:
            self._turns[chosen].release()
            self._turns[client.name].acquire()
        if client.name in self._crashed:
            raise Crashed
        if self.points > self._longest:
            raise StuckError(f"{self.points} calls")
        self.segments.append(Segment(client.name, len(self.schedule), [(kind, keys)]))

    def note(self, kind: str, keys: Collection[str] = ()) -> None:
        """Note what the client that runs does beside what it said at its last point."""
        if self.segments:
            self.segments[-1].accesses.append((kind, keys))

    def has_crashed(self, client: Client) -> bool:
        """Whether the client does not exist any more."""
        return client.name in self._crashed

    def fault_of_answer(self) -> StoreError | None:
        """What the client gets for the write that was just carried out, where the answer gets lost."""
        if not self._lost:
            return None
        fault = {
            1: ConflictError("the answer was lost, and the second try conflicts with the first"),
            2: StoreError("the answer was lost, and so was the connection"),
        }.get(self._choose(12))
        self._lost -= fault is not None
        return fault

    def sends_late(self, key: str) -> bool:
        """Whether the write of `key` that is sent now fails for its client and is carried out later."""
        if (
            not self._late_writes
            or key.rpartition("/")[2] in ("zarr.json", ".zarray", ".tessarr_append")
            or self._choose(4)
        ):
            return False
        self._late_writes -= 1
        return True

    def _deliver(self) -> None:
        with suppress(ConflictError):
            self.late.pop(0)()

    def pause(self, client: Client, seconds: float) -> None:
        """Let others go on until something was stored, or, where nobody else runs, until the time has passed.

        To look again before that shows nothing new, so that no schedule is left out.
        """
        self.seconds += seconds
        before = self._bucket.writes
        self._sleeping.add(client.name)
        try:
            self.wait(client, lambda: self._bucket.writes > before)
        finally:
            self._sleeping.discard(client.name)

    def wait(self, client: Client, happened: Callable[[], bool]) -> None:
        """Let others go on until `happened` is true. Where nobody can go on, that is a deadlock: `StuckError`."""
        self._waiting[client.name] = happened
        try:
            self.point(client, WAIT)
        finally:
            self._waiting.pop(client.name, None)

    @contextmanager
    def hold(self, client: Client, name: Hashable) -> Iterator[None]:
        """Hold a lock of the process of `client`."""
        name = self._bucket.lock_name(client.name, name)
        while name in self.locks:
            self.wait(client, lambda: name not in self.locks)
        self.locks[name] = client.name
        self.note(LOCK)
        try:
            yield
        finally:
            del self.locks[name]
            self.note(LOCK)

    def run(self, programs: Sequence[Program]) -> Outcome:
        """Run `programs`, one client each, to their end."""
        clients = [self._bucket.connect(f"client-{number}", self) for number in range(len(programs))]
        results: list[Any] = [None] * len(programs)

        def work(number: int) -> None:
            client = clients[number]
            pool._local.busy = True  # what this thread does stays on it
            CURRENT.client = client
            try:
                self._turns[client.name].acquire()
                self.segments.append(Segment(client.name, len(self.schedule), []))
                results[number] = programs[number](client)
            except Crashed:
                results[number] = Crashed
            except Exception as error:
                results[number] = error
            finally:
                self._bucket.end(client.name)
                self._running.remove(client.name)
                (self._turns[self._next()] if self._running else self._ended).release()

        threads = []
        for number, client in enumerate(clients):
            self._turns[client.name] = threading.Lock()
            self._turns[client.name].acquire()
            self._running.append(client.name)
            threads.append(threading.Thread(target=work, args=(number,), name=client.name, daemon=True))
        with _simulated(self):
            for thread in threads:
                thread.start()
            self._turns[self._next()].release()
            self._ended.acquire()
            while self.late:
                self._deliver()
            for thread in threads:
                thread.join()
        was_stalled = self._stall is not None and self._stall[1] <= 0
        return Outcome(results, self._bucket, self.schedule, self.points, was_stalled, self.steps, self.segments)

    def _next(self) -> str:
        """The client that goes on now. The one that stops decides it, so that going on costs no switch of threads."""
        self.points += 1
        if self.late and not self._choose(12):
            self._deliver()
        awake = [name for name in self._running if name not in self._waiting or self._waiting[name]()]
        options = awake or [name for name in self._running if name in self._sleeping]
        if self.stalled is not None:
            others = [name for name in self._running if name != self.stalled]
            rest = [name for name in others if name in awake] or [name for name in others if name in self._sleeping]
            if rest and self.seconds - self._stalled_at <= STALL_S:
                options = rest
            else:
                self.stalled = None
        if not options:  # a deadlock
            self.points = self._longest + 1
            options = list(self._running)
        if self._last in options:
            options.remove(self._last)
            options.insert(0, self._last)
            if self._preemptions == 0:
                options = options[:1]
        choice = self._choose(len(options))
        name = options[choice]
        if self._preemptions and choice and options[0] == self._last:
            self._preemptions -= 1
        if self._crashes and self._choose(8) == 1:
            self._crashes -= 1
            self._crashed.add(name)
        self._last = name
        return name


class _Current(threading.local):
    client: Any = None


CURRENT = _Current()


def step_ended(client: Any) -> None:
    """Note that a client has ended a step of its operation."""
    if client.simulation is not None:
        client.simulation.note(LOCK)
        client.simulation.steps.append(int(client.name.rpartition("-")[2]))


class _VirtualClock(clock.Clock):
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._ended_of: dict[str, set[str]] = {}

    @property
    def ended(self) -> set[str]:
        """Each client is a process."""
        return self._ended_of.setdefault("" if CURRENT.client is None else CURRENT.client.name, set())

    def now(self) -> int:
        return int(self._simulation.seconds)

    def pause(self, seconds: float) -> Call:
        def wait() -> None:
            assert CURRENT.client is not None
            self._simulation.pause(CURRENT.client, seconds)

        async def never() -> None:
            raise NotImplementedError

        return Call(wait, never, waits=True)

    def run_detached(self, steps: Steps[Any], attempt: clock.Attempt) -> None:
        try:
            # A client that crashed has no thread either, in which steps could go on.
            client = CURRENT.client
            if attempt.begun and not (client is not None and client.name in self._simulation._crashed):
                run_steps(steps)
            else:
                steps.close()
        except (Crashed, StoreError):
            return

    def owner(self) -> str:
        self._simulation._owners += 1
        self._simulation.note(LOCK)
        return f"owner-{self._simulation._owners}"


@contextmanager
def replaced(*places: tuple[Any, str, Any]) -> Iterator[None]:
    """Set attributes (object, name, value) for the block; `unittest.mock` takes a third of the time of a short schedule."""
    before = [(place, name, getattr(place, name)) for place, name, _ in places]
    try:
        for place, name, new in places:
            setattr(place, name, new)
        yield
    finally:
        for place, name, old in before:
            setattr(place, name, old)


class _Hold:
    """`KeyedLocks.hold` for clients: a lock that another one holds is waited for at a point."""

    def __init__(self, simulation: Simulation, original: Callable[[Hashable], AbstractContextManager[None]]) -> None:
        self._simulation, self._original = simulation, original

    def __call__(self, name: Hashable) -> AbstractContextManager[None]:
        client = CURRENT.client
        return self._original(name) if client is None else self._simulation.hold(client, name)


@contextmanager
def _simulated(simulation: Simulation) -> Iterator[None]:
    with (
        replaced((KEYED_LOCKS, "hold", _Hold(simulation, KEYED_LOCKS.hold))),
        replaced((clock, "CLOCK", _VirtualClock(simulation)), (time, "sleep", lambda _: None)),
        tessarr.config.set({"engine": "reference"}),
    ):
        yield


def run(chooser: Chooser, programs: Sequence[Program], *, bucket: World, **faults: Any) -> Outcome:
    """One run of `programs` on `bucket`; `faults`: see `Simulation`."""
    return Simulation(chooser, bucket, **faults).run(programs)
