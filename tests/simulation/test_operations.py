"""The short form of `scripts/campaigns/simulate.py`: what it found, some pairs of operations, some seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ConflictError
from tests.simulation import cases, operations, promises
from tests.simulation.cases import Priorities, World
from tests.simulation.oracle import UNREADABLE, Case, Oracle
from tests.simulation.orders import Replay, exhaustive
from tests.simulation.simulator import Bucket, Seeded, run

KINDS = ("memory", "local", "object")
TREES = ("memory", "local")
"""Worlds in which nodes are removed and moved as one change."""
FIRST = 1_006_400
SEEDS = range(FIRST, FIRST + 120 * cases.SCHEDULES, cases.SCHEDULES + 1)


@pytest.fixture(autouse=True)
def points() -> Iterator[None]:
    with cases.simulating():
        yield


def in_turn(found: Iterable[str], kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Each of what was found in one world, these in turn: `scripts/campaigns/pairs.py` has all in all of them."""
    return [(what, kinds[number % len(kinds)]) for number, what in enumerate(found)]


def wrong(world: World, *names: str) -> list[str]:
    found = [(outcome, told) for outcome, told in cases.run_pair(world, names) if told]  # type: ignore[arg-type]
    return [f"schedule {outcome.schedule}: {told}" for outcome, told in found]


FOUND = {
    "a repair deletes chunks that an append has stored and not published yet": ("append_many", "repair_all"),
    "consolidated metadata lack what was changed while they were written": ("set_attribute", "consolidate"),
    "consolidated metadata lack a node that was created while they were written": ("create", "consolidate"),
    "an attribute of a node that was deleted makes a document that cannot be read": ("set_attribute", "delete"),
    "two clients create one array, and the second one replaces the first one's": ("create", "create"),
}
"""What the campaign found: the clients that did it."""


FOUND_IN_2 = {
    "the v3 description that a migration writes lacks rows that were appended meanwhile": ("append", "migrate_all"),
    "a migration brings back a node that was deleted meanwhile": ("delete", "migrate_all"),
    "an array that is created while its group is migrated is in the old format alone": ("create", "migrate_all"),
    "a group that a migration describes while it is created is taken for another one": ("create_group", "migrate_all"),
    "of two migrations at once each says that it wrote the new documents": ("migrate_all", "migrate_all"),
    "an array and a group are created at one path": ("create", "create_group"),
    "a group that could not be created leaves its attributes in the one that was": ("create_group", "create_group"),
}
FOUND_IN_TREES = {
    "a move deletes the node that replaces the moved one": ("move", "replace_model"),
    "two moves of one node: both places have a part of it": ("move", "move"),
    "a deletion during a move leaves a part of the node": ("delete_group", "move"),
    "of two hierarchies that are stored at one path members of both stay": ("store_model", "store_model"),
    "the document of a root that was replaced comes back": ("set_attribute", "replace_root"),
}
FOUND_IN_TRANSACTIONS = {
    "an append overwrites rows that a transaction has committed": ("append", "transact_append"),
    "consolidated metadata lack what a transaction commits while they are written": ("consolidate", "transact"),
    "consolidated metadata that are new lack what a transaction merges into them": ("consolidate", "transact_merge"),
    "a transaction that merges takes an append of as many rows for its own": ("append_to_shard", "publish_merge"),
}


@pytest.mark.parametrize(("what", "kind"), in_turn(FOUND_IN_2, KINDS))
def test_what_was_found_in_zarr_2_does_not_come_back(what: str, kind: str) -> None:
    assert wrong(World(kind, 2, consolidated=True), *FOUND_IN_2[what])[:1] == []


@pytest.mark.parametrize(("what", "kind"), in_turn(FOUND_IN_TREES, TREES))
def test_what_was_found_in_trees_does_not_come_back(what: str, kind: str) -> None:
    for consolidated in (False, True):
        assert wrong(World(kind, consolidated=consolidated), *FOUND_IN_TREES[what])[:1] == []


@pytest.mark.parametrize(("what", "kind"), in_turn(FOUND_IN_TRANSACTIONS, TREES))
def test_what_was_found_in_transactions_does_not_come_back(what: str, kind: str) -> None:
    assert wrong(World(kind), *FOUND_IN_TRANSACTIONS[what])[:1] == []


@pytest.mark.parametrize("other", ["write_chunk", "clear_chunk", "append", "overwrite"])
def test_a_root_that_is_exchanged_loses_nothing(other: str) -> None:
    """Some schedules; `scripts/campaigns/pairs.py` has all with one switch."""
    world = World("local")
    judge = cases.oracle(world, ("transact_swap", other))
    outcomes = [run(Priorities(seed, length=600), judge.programs, bucket=cases.maker(world)()) for seed in range(20)]
    assert [told for outcome in outcomes if (told := judge.judge(outcome))] == []


def test_a_swap_and_a_transaction_that_removes_a_group_do_not_wait_for_each_other() -> None:
    """Schedules in which each held a lock that the other one waited for."""
    world = World("local")
    judge = cases.oracle(world, ("tx_delete_group", "transact_swap"))
    found = [run(Priorities(seed, length=400), judge.programs, bucket=cases.maker(world)()) for seed in (21, 29, 48)]
    assert [told for outcome in found if (told := judge.judge(outcome))] == []


def create_inside(store: Any, number: int) -> Iterator[None]:
    """Create an array in a group that others delete."""
    group = tessarr.open_group(store, path="g", mode="r+")
    yield
    group.create_array("in", data=np.full(number, number, "i4"), chunks=(operations.CHUNK,), fill_value=0)


def write_new_chunk(store: Any, number: int) -> Iterator[None]:
    """Write a part of a chunk that is not stored yet, of an array that others move."""
    array = tessarr.open_array(store, path="a", mode="r+")
    array.resize((12,))
    yield
    array[9:11] = number


@pytest.mark.parametrize(
    ("name", "other", "kind"), [("tx_move", write_new_chunk, "memory"), ("tx_delete_group", create_inside, "local")]
)
def test_what_others_store_where_a_transaction_removes_everything_is_not_lost(name: str, other: Any, kind: str) -> None:
    judge = Oracle(Case(((promises.ALL[name], 7), (other, 10)), cases.maker(World(kind)), kind))
    outcomes = exhaustive(judge.programs, cases.maker(World(kind)), preemptions=1)
    assert [(outcome.schedule, told) for outcome in outcomes if (told := judge.judge(outcome))][:1] == []


@pytest.mark.parametrize(("other", "kind"), in_turn(["read_snapshot", "set_attribute", "append", "write_part"], TREES))
def test_a_transaction_that_moves_an_array_loses_nothing(other: str, kind: str) -> None:
    for consolidated in (False, True) if kind == "memory" else (False,):
        assert wrong(World(kind, consolidated=consolidated), "tx_move", other)[:1] == []


@pytest.mark.parametrize("other", ["move", "transact", "tx_delete_group"])
def test_a_snapshot_reads_two_arrays_of_one_moment(other: str) -> None:
    for consolidated in (False, True):
        assert wrong(World("memory", consolidated=consolidated), "read_snapshot", other)[:1] == []


@pytest.mark.parametrize("names", [("move", "transact"), ("delete", "transact_read")])
def test_a_transaction_finds_no_node_in_consolidated_metadata_that_is_gone(names: tuple[str, str]) -> None:
    assert wrong(World("memory", consolidated=True), *names)[:1] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["append", "append_many", "shrink", "grow"])
def test_who_writes_all_of_the_last_chunk_keeps_what_others_append_there(other: str, kind: str) -> None:
    for zarr_format in (2, 3):
        assert wrong(World(kind, zarr_format), "write_tail", other)[:1] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_of_two_formats_are_not_created_at_one_path(kind: str, zarr_format: int) -> None:
    assert wrong(World(kind, zarr_format), "create", "create_other")[:1] == []


@pytest.mark.parametrize(("what", "kind"), in_turn(FOUND, KINDS))
def test_what_was_found_does_not_come_back(what: str, kind: str) -> None:
    for consolidated in (False, True):
        assert wrong(World(kind, consolidated=consolidated), *FOUND[what])[:1] == []


@pytest.mark.parametrize("kind", KINDS)
def test_writers_of_one_chunk_lose_nothing(kind: str) -> None:
    for names in (("write_part", "write_element"), ("clear_chunk", "write_part"), ("write_shard", "write_shard")):
        assert wrong(World(kind), *names)[:1] == []


@pytest.mark.parametrize("kind", ["object", "generations"])
@pytest.mark.parametrize("third", ["append", "grow", "shrink"])
def test_an_append_a_migration_and_a_third_client_lose_nothing(kind: Any, third: str) -> None:
    world = World(kind, 2)
    judge = cases.oracle(world, ("append", "migrate_all", third))
    schedules = ((22, 160), (54, 80), (496, 160), *((seed, 120) for seed in range(20)))
    outcomes = [
        run(Priorities(seed, length=length), judge.programs, bucket=cases.maker(world)()) for seed, length in schedules
    ]
    assert [told for outcome in outcomes if (told := judge.judge(outcome))] == []


def test_seeds_have_no_anomaly() -> None:
    found = []
    kinds = set()
    for seed in SEEDS:
        what = cases.trial(seed)
        _, told = cases.run_trial(what)
        kinds.add((what.world.kind, *what.faults))
        found += [f"seed {seed}: {what.world} {what.names}: {told}"] if told else []
    assert found == []
    assert {("local",), ("memory",), ("object",), ("local", "crashes"), ("object", "lost_answers")} <= kinds


def test_triples_have_no_anomaly() -> None:
    found = []
    for number in range(0, 12 * cases.LISTED_SCHEDULES, 8):
        what = cases.triple_trial(number)
        assert set(what.names) & set(cases.CHANGES_LENGTH)
        assert set(what.names) & set(cases.CHANGES_NODES)
        _, told = cases.run_trial(what)
        found += [f"triple {number}: {what.world} {what.names}: {told}"] if told else []
    assert found == []


def test_clients_that_copy_convert_or_follow_have_no_anomaly() -> None:
    found = []
    for number in range(0, 16 * cases.LISTED_SCHEDULES, 8):
        what = cases.bulk_trial(number)
        assert set(what.names) & promises.BULK
        _, told = cases.run_trial(what)
        found += [f"bulk {number}: {what.world} {what.names}: {told}"] if told else []
    assert found == []


# -- the oracle itself ---------------------------------------------------------------------------------------------------


class Careless(Bucket):
    """A bucket that ignores conditions, as object storage was until a few years ago."""

    def version(self, key: str) -> Any:
        return "1" if key in self.values else None


def test_the_oracle_finds_writes_that_are_lost() -> None:
    made = cases.maker(World("object"))()
    case = Case(
        ((operations.write_element, 1), (operations.write_element, 2)),
        lambda: Careless(values=dict(made.values), generations=dict(made.generations)),
    )
    judge = Oracle(case)
    told = [judge.judge(run(Seeded(seed), judge.programs, bucket=case.make_world())) for seed in range(20)]
    assert any(one is not None and "no order" in one for one in told)
    assert any(one is None for one in told)


def test_the_oracle_finds_what_cannot_be_read() -> None:
    def damage(store: Any, number: int) -> Any:
        yield
        store.set("a/zarr.json", b"{")

    judge = Oracle(Case(((damage, 1),), cases.maker(World("memory"))))
    told = judge.judge(run(Seeded(1), judge.programs, bucket=cases.maker(World("memory"))()))
    assert told is not None
    assert "cannot be read" in told


def test_the_oracle_finds_consolidated_metadata_that_are_not_true() -> None:
    def change(store: Any, number: int) -> Any:
        yield
        store.set("a/zarr.json", bytes(store.get("a/zarr.json")).replace(b'"attributes":{}', b'"attributes":{"x":1}'))

    world = World("memory", consolidated=True)
    outcome = run(Seeded(1), [operations.whole(change, 1)], bucket=cases.maker(world)())
    judge = Oracle(Case(((operations.read_chunk, 1),), cases.maker(world)))
    assert judge.judge(outcome) is not None


def test_the_oracle_calls_other_errors_and_endless_clients_wrong() -> None:
    def fails(store: Any, number: int) -> Any:
        yield
        raise ZeroDivisionError

    def waits(store: Any, number: int) -> Any:
        yield
        while True:
            store.get("a/zarr.json")

    world = cases.maker(World("object"))
    judge = Oracle(Case(((operations.read_chunk, 1),), world))
    told = [judge.judge(run(Seeded(1), [operations.whole(one, 1)], bucket=world())) for one in (fails, waits)]
    assert ["ZeroDivisionError" in (told[0] or ""), "does not end" in (told[1] or "")] == [True, True]


@pytest.mark.parametrize("failed", [(False, False), (True, False), (True, True)])
def test_likely_orders_are_tried_first_and_no_order_is_left_out(failed: tuple[bool, bool]) -> None:
    clients = ((operations.publish, 1), (promises.ALL["copy_new"], 4))
    judge = Oracle(Case(clients, cases.maker(World("memory"))))
    outcome = run(Seeded(3), judge.programs, bucket=cases.maker(World("memory"))())
    assert sorted(set(outcome.steps)) == [0, 1]
    every = list(judge._orders(failed))
    tried = list(judge._likely_first(failed, outcome.steps))
    assert set(tried) == set(every)
    assert tried[-len(every) :] == every
    judge.serial(every[-1])
    assert next(judge._likely_first(failed, outcome.steps)) == every[-1]


def test_every_operation_changes_what_is_observed_or_reads() -> None:
    for name in promises.LOCAL:
        files = cases.maker(World("local"))().connect("alone")
        before = {key: files.get(key) for key in files.list()}
        operations.whole(promises.ALL[name], 7)(files)
        assert {key: files.get(key) for key in files.list()} != before
    for name in promises.ALL.keys() - promises.LOCAL:
        operation = promises.ALL[name]
        world = cases.maker(cases.world_for(World("memory", 2 if name in cases.OF_VERSION_2 else 3), [name]))()
        store = world.connect("alone")
        before = dict(world.values)
        result = operations.whole(operation, 7)(store)
        assert UNREADABLE not in cases.oracle(World("memory"), ("read_chunk",)).serial((0, 0))[1]
        assert result is not None or world.values != before or name == "repair_all"


def test_the_oracle_allows_rows_of_a_transaction_that_failed_below_those_of_another_client_alone() -> None:
    def fails(store: Any, number: int) -> Any:
        yield from operations.void(("g/b",))(store, number)
        raise ConflictError("replaced meanwhile")

    def told(first: operations.Operation, second: operations.Operation, *, kind: Any = "object") -> str:
        make = cases.maker(World(kind))
        clients = (first, second)
        outcome = run(Replay([]), [operations.whole(one, 7) for one in clients], bucket=make(), preemptions=0)
        promised = tuple((operations.publish if one is fails else one, 7) for one in clients)
        return Oracle(Case(promised, make, kind)).judge(outcome) or ""

    assert told(fails, operations.append_to_shard) == ""
    assert told(fails, operations.grow) != ""  # the other array grows
    assert "no order" in told(operations.append_to_shard, fails)
    assert "no order" in told(fails, operations.append_to_shard, kind="memory")
