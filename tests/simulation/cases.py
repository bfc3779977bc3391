"""What a seed stands for: a world, clients with their operations, a schedule, and faults; and every pair of operations."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import tessarr
from tests.simulation import bulk_operations, operations, promises, worlds
from tests.simulation.bulk_operations import DATASET
from tests.simulation.oracle import Case, Oracle
from tests.simulation.orders import Replay, different
from tests.simulation.promises import ALL, ATOMIC
from tests.simulation.simulator import Bucket, Chooser, Outcome, Seeded, run

WORLDS = ("memory", "local", "object", "generations")
"""``object``: versions are hashes of values, as in S3; ``generations``: they never repeat, as in GCS and Azure."""
OF_VERSION_2 = frozenset({"migrate_all"})
"""Operations that need a hierarchy in Zarr v2."""
WITHOUT_CRASH = frozenset(
    {"appender", "append", "append_many", "append_to_shard", "publish", "publish_merge", "publish_nodes"}
)
"""Operations that wait for one like them that crashed, in object storage, and keep rows as void after an answer was lost:
`test_appends` is about these."""
SCHEDULES = 64
"""Consecutive seeds of which only schedule and faults differ, because to work out what a case may come to takes longer than
a schedule."""
LISTED_SCHEDULES = 16
"""The same for numbers of `triples` and of `bulk`, which have lists of clients."""
CHANGES_LENGTH = (
    "append",
    "append_many",
    "append_to_shard",
    "grow",
    "shrink",
    "transact_append",
    "publish",
    "publish_sum",
    *("appender", "xarray_append", "tx_xarray_append"),
)
"""Operations after which an array has another length, for `triples`."""
CHANGES_NODES = (
    *("overwrite", "delete", "move", "create_other", "replace_model", "store_model", "replace_root", "consolidate"),
    *("migrate_all", "repair_all", "rechunk", "transact_nodes", "transact_merge", "publish_nodes", "publish_merge"),
    *("rename", "copy_over", "convert_over", "plan_over"),
)
"""Operations that replace, describe anew, repair or commit arrays whose length others change, for `triples`."""


class World(NamedTuple):
    """The world of a case, and what is stored there."""

    kind: str
    zarr_format: int = 3
    consolidated: bool = False
    dataset: bool = False
    """Whether there is a dataset of xarray, too."""

    def fill(self, store: Any) -> None:
        """Store the hierarchy that clients find."""
        operations.make(store, self.zarr_format)
        if self.dataset:
            bulk_operations.make_dataset(store, self.zarr_format)
        if self.consolidated:
            tessarr.consolidate_metadata(store)


def world_for(world: World, names: Collection[str]) -> World:
    """The world with what operations need."""
    return world if DATASET.isdisjoint(names) else world._replace(dataset=True)


@cache
def maker(world: World) -> Callable[[], Any]:
    """A function that makes the world anew."""
    if world.kind == "memory":
        memory = worlds.Memory()
        world.fill(memory.connect("maker"))
        stored = dict(sorted(memory.values.items()))
        return lambda: worlds.Memory(stored)
    if world.kind == "local":
        folder = Path(tempfile.mkdtemp(prefix="tessarr-template-", dir=worlds.SCRATCH))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        made = worlds.template(folder / "data.zarr", world.fill)
        return lambda: worlds.Directory(made)
    bucket, etags = Bucket(), "content" if world.kind == "object" else "generation"
    world.fill(bucket.connect("maker"))
    return lambda: Bucket(etags, dict(sorted(bucket.values.items())), dict(bucket.generations), bucket.writes)


class Priorities:
    """Chooses by priorities that change at few places (PCT: probabilistic concurrency testing), which finds what needs few
    switches at the right places with a known probability."""

    def __init__(self, seed: int, changes: int = 3, length: int = 120) -> None:
        self._random = Random(seed)
        self._places = {self._random.randrange(length) for _ in range(changes)}
        self._at = 0

    def choose(self, options: int) -> int:
        """See `Chooser`. The first option is the client that ran last."""
        self._at += 1
        return self._random.randrange(options) if self._at in self._places else 0


class Trial(NamedTuple):
    """What a seed stands for."""

    world: World
    names: tuple[str, ...]
    faults: dict[str, int]
    chooser: Chooser


def trial(seed: int) -> Trial:
    """Make the case, the schedule and the faults of a seed."""
    random = Random(seed // SCHEDULES)
    kind = random.choice(WORLDS)
    zarr_format = 2 if random.random() < 0.25 else 3
    names = _names(World(kind, zarr_format))
    chosen = tuple(random.choice(names) for _ in range(2 if random.random() < 0.7 else 3))
    chosen = chosen if has_few_orders(chosen) else chosen[:2]
    return _scheduled(seed, world_for(World(kind, zarr_format, random.random() < 0.3), chosen), chosen)


def has_few_orders(names: Sequence[str]) -> bool:
    """Whether the steps of these clients have so few orders that the oracle can try them all."""
    return len(names) < 3 or sum(name in promises.MANY_STEPS for name in names) < 2


def triple_trial(number: int) -> Trial:
    """Make the case of a number of `triples`, the schedule and the faults. After the end of the list it begins again."""
    return _listed(number, triples())


def bulk_trial(number: int) -> Trial:
    """The same for a number of `bulk`."""
    return _listed(number, bulk_pairs())


def _listed(number: int, clients: Sequence[tuple[World, tuple[str, ...]]]) -> Trial:
    world, names = clients[number // LISTED_SCHEDULES % len(clients)]
    return _scheduled(number, world, names)


def _scheduled(seed: int, world: World, chosen: tuple[str, ...]) -> Trial:
    random, kind = Random(seed), world.kind
    atomic = all(ALL[name] in ATOMIC for name in chosen)
    appends = bool(WITHOUT_CRASH & set(chosen))
    faults: dict[str, int] = {}
    if kind != "memory" and random.random() < 0.2 and (kind == "local" or not appends):
        faults["crashes"] = 1
    elif kind in ("object", "generations") and atomic and not appends and random.random() < 0.2:
        faults["lost_answers"] = 1
    chooser: Chooser = Seeded(seed) if random.random() < 0.5 else Priorities(seed)
    return Trial(world, chosen, faults, chooser)


@lru_cache(maxsize=8)
def oracle(world: World, names: tuple[str, ...]) -> Oracle:
    """The oracle of clients that do these operations."""
    clients = tuple((ALL[name], 7 + 3 * client) for client, name in enumerate(names))
    return Oracle(Case(clients, maker(world), world.kind, world.zarr_format))


def run_trial(what: Trial) -> tuple[Outcome, str | None]:
    """Run a case, and judge it."""
    judge = oracle(what.world, what.names)
    outcome = run(what.chooser, judge.programs, bucket=maker(what.world)(), **what.faults)
    return outcome, judge.judge(outcome, faults="lost_answers" in what.faults)


@cache
def pairs() -> list[tuple[World, tuple[str, str]]]:
    """Every world with every pair of operations."""
    found = []
    for kind in WORLDS:
        for world in (World(kind), World(kind, consolidated=True), World(kind, 2, True)):
            names = _names(world)
            chosen = [(one, other) for at, one in enumerate(names) for other in names[at:]]
            found += [(world_for(world, both), both) for both in chosen]
    newest = [pair for pair in found if _rank(pair[1]) == len(promises.RANKS)]
    Random(0).shuffle(newest)
    return (
        sorted((pair for pair in found if _rank(pair[1]) < len(promises.RANKS)), key=lambda pair: _rank(pair[1]))
        + newest
    )


def _worlds() -> Iterator[tuple[World, list[str]]]:
    """Every world without the dataset, with the operations that there are in it."""
    for kind in WORLDS:
        for zarr_format in (3, 2):
            for consolidated in (False, True):
                world = World(kind, zarr_format, consolidated)
                yield world, _names(world)


@cache
def triples() -> list[tuple[World, tuple[str, str, str]]]:
    """Every world with every three clients of which one changes a length, and one replaces or describes nodes; shuffled.

    `trial` draws such clients rarely: any three operations are as likely there as any others.
    """
    found = [
        (world_for(world, (one, other, third)), (one, other, third))
        for world, names in _worlds()
        for one in CHANGES_LENGTH
        for other in CHANGES_NODES
        if one in names and other in names
        for third in names
        if has_few_orders((one, other, third))
    ]
    Random(0).shuffle(found)
    return found


@cache
def bulk_pairs() -> list[tuple[World, tuple[str, str]]]:
    """Every world with every pair of operations of which one copies, converts, renames, plans or follows; shuffled.

    `pairs` does each of these in every order with one interruption, one after another: they take it longest.
    """
    found = [
        (world_for(world, (one, other)), (one, other))
        for world, names in _worlds()
        for at, one in enumerate(names)
        for other in names[at:]
        if not promises.BULK.isdisjoint((one, other))
    ]
    Random(0).shuffle(found)
    return found


def _rank(names: Collection[str]) -> int:
    """The place among `promises.RANKS` of the operation that was added last; 0 for the first ones."""
    return max((rank for rank, added in enumerate(promises.RANKS, 1) if not added.isdisjoint(names)), default=0)


def _names(world: World) -> list[str]:
    """The operations that there are in a world."""
    without: frozenset[str] = frozenset() if world.zarr_format == 2 else OF_VERSION_2
    if world.kind != "local":
        without |= promises.LOCAL
    if world.kind not in promises.ATOMICALLY_CHANGED:
        without |= promises.TRANSACTIONS  # which object storage refuses
        if world.zarr_format == 2:
            without |= promises.LAST | promises.NEWEST
    return [name for name in ALL if name not in without]


def run_pair(world: World, names: tuple[str, str]) -> Iterator[tuple[Outcome, str | None]]:
    """Run every schedule of two clients with at most one interruption, less those that come to the same, and judge each."""
    judge = oracle(world, names)
    for outcome in different(judge.programs, maker(world)):
        yield outcome, judge.judge(outcome)


WAITED_FOR = ("append", "append_many", "append_to_shard", "publish", "publish_merge", "publish_sum", "publish_nodes")
"""Operations in object storage that others wait for, and end when they take too long."""


@cache
def stalls() -> list[tuple[World, tuple[str, str]]]:
    """Every world of requests with every operation that others wait for, and every other one."""
    worlds_of_requests = [
        World(kind, zarr_format, zarr_format == 2 or consolidated)
        for kind in ("object", "generations")
        for zarr_format, consolidated in ((3, False), (3, True), (2, True))
    ]
    return [
        (world, (one, other))
        for world in worlds_of_requests
        for names in [_names(world)]
        for one in WAITED_FOR
        if one in names
        for other in names
    ]


def run_stalled(world: World, names: tuple[str, str]) -> Iterator[tuple[int, Outcome, str | None]]:
    """Run two clients once for each call of the first, at which that one is stopped, and judge each run.

    Two that append need not be serial: the rows that the first reserved may hold fill value, below those of the other.
    """
    judge = oracle(world, names)
    for number, outcome in stalled(judge.programs, maker(world)):
        yield number, outcome, judge.judge(outcome, serial=not WITHOUT_CRASH.issuperset(names))


def stalled(programs: Sequence[Callable[[Any], Any]], make: Callable[[], Any]) -> Iterator[tuple[int, Outcome]]:
    """Run `programs` once for each call of the first, at which that one is stopped until the others have ended."""
    for number in range(1, 1000):
        outcome = run(Replay([]), programs, bucket=make(), preemptions=0, stall=(0, number), longest=20_000)
        if not outcome.was_stalled:
            return
        yield number, outcome
    raise AssertionError("the first client does not end")


@contextmanager
def simulating() -> Iterator[None]:
    """Make system calls points, and leave out warnings, which operations give as ever."""
    with warnings.catch_warnings(), worlds.system_calls(), bulk_operations.repeatable():
        warnings.simplefilter("ignore")
        yield
