"""Copies, conversions, plans, followers, xarray and dask among other clients; and the rules that judge without the library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.stored import move as moving
from tessarr.errors import ConflictError, CopyError, TessarrError
from tessarr.storage import MemoryStore
from tests.simulation import bulk_operations, cases, operations, promises
from tests.simulation.cases import Priorities, World
from tests.simulation.expected import Ran, unexpected
from tests.simulation.oracle import observe
from tests.simulation.orders import Replay
from tests.simulation.simulator import Crashed, run
from tests.simulation.test_operations import KINDS, wrong
from tests.simulation.test_stalls import committed


@pytest.fixture(autouse=True)
def points() -> Iterator[None]:
    with cases.simulating():
        yield


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("whole", bulk_operations.IN_STEPS, ids=lambda operation: operation.__name__)
def test_operations_in_steps_come_to_the_same(whole: operations.Operation, zarr_format: int) -> None:
    for consolidated in (False, True):
        world = cases.world_for(World("memory", zarr_format, consolidated), [whole.__name__])
        found = []
        for operation in (whole, bulk_operations.IN_STEPS[whole]):
            store = cases.maker(world)().connect("alone")
            found.append((operations.whole(operation, 7)(store), observe(store)))
        assert found[0] == found[1]


ATOMIC = ("memory", "local")
BUCKETS = ("object", "generations")
FOUND = {
    "a follower takes rows of an array that has replaced the one that it follows": (("follow", "plan_over"), KINDS),
    "an array and a group of another format are at one path after a move": (("create_other", "rename"), KINDS),
    "an array and a group of another format are at one path after a copy": (("create_other", "copy_keys"), KINDS),
    "nothing is there while an array is replaced by a conversion": (("convert_over", "read_snapshot"), ATOMIC),
    "nothing is there while an array is replaced by a plan": (("plan_over", "read_snapshot"), ATOMIC[:1]),
    "the values of a replaced array are taken back, and its document is not": (
        ("convert_over", "set_attribute"),
        BUCKETS,
    ),
    "the values of a plan are taken back, and the document is not": (("plan_over", "set_attribute"), BUCKETS),
}


@pytest.mark.parametrize(("what", "kind"), [(what, kind) for what, (_, kinds) in FOUND.items() for kind in kinds])
def test_what_was_found_does_not_come_back(what: str, kind: str) -> None:
    assert wrong(World(kind), *FOUND[what][0])[:1] == []


def test_a_plan_notices_a_source_that_was_removed_before_its_first_task() -> None:
    assert wrong(World("local"), "replace_model", "plan_shared")[:1] == []


def test_what_is_created_at_one_path_by_two_clients_is_of_one_of_them() -> None:
    assert wrong(World("memory", 2), "plan_new", "convert_new")[:1] == []


def test_a_plan_leaves_no_documents_at_a_node_of_another_client() -> None:
    assert wrong(World("memory", 2), "publish_nodes", "plan_new")[:1] == []


@pytest.mark.parametrize(
    ("world", "name"), [(World("generations", 2, True), "create"), (World("local", consolidated=True), "rename")]
)
def test_a_copy_that_fails_is_not_in_consolidated_metadata(world: World, name: str) -> None:
    assert wrong(world, name, "copy_keys")[:1] == []


def test_a_plan_leaves_the_chunks_of_a_copy_to_its_target_that_is_not_at_its_end() -> None:
    world, names = World("local", consolidated=True), ("copy_keys", "plan_new")
    judge = cases.oracle(world, names)
    outcomes = [run(Priorities(seed, length=300), judge.programs, bucket=cases.maker(world)()) for seed in range(60)]
    assert [told for outcome in outcomes if (told := judge.judge(outcome))] == []


def test_a_copy_that_fails_leaves_what_others_have_stored_since_in_the_place_of_its_values() -> None:
    class Late(MemoryStore):
        """Gets a value of another client when the value of the copy is compared."""

        late = False

        def get(self, key: str, byte_range: Any = None) -> Any:
            found = super().get(key, byte_range)
            if self.late and key == "n/k":
                self.late = False
                self.set("n/k", b"of another client")
            return found

    source, store = MemoryStore({"k": b"1"}), Late({"n/k": b"1"})
    store.late = True
    moving.take_back_copies(source, store, {"k": "n/k"})
    assert store.get("n/k") == b"of another client"
    store.set("n/k", b"1")
    moving.take_back_copies(source, store, {"k": "n/k"})
    assert store.get("n/k") is None


def test_an_array_that_is_replaced_while_it_is_migrated_is_in_the_new_format_too() -> None:
    assert wrong(World("memory", 2), "overwrite", "migrate_all")[:1] == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [("copy_new", "memory"), ("copy_keys", "object"), ("convert_new", "object"), ("plan_shared", "local")],
)
def test_what_is_copied_while_its_group_is_migrated_is_in_the_new_format_too(name: str, kind: str) -> None:
    assert wrong(World(kind, 2), name, "migrate_all")[:1] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("one", "other"), [("copy_over",) * 2, ("copy_keys_over",) * 2, ("copy_over", "copy_keys_over")]
)
def test_of_two_copies_to_one_array_no_mixture_is_left(one: str, other: str, kind: str) -> None:
    assert wrong(World(kind), one, other)[:1] == []


@pytest.mark.parametrize("kind", ["memory", "object"])
@pytest.mark.parametrize("other", ["append", "follow", "shrink"])
def test_an_appender_loses_no_rows(other: str, kind: str) -> None:
    for zarr_format in (2, 3):
        assert wrong(World(kind, zarr_format), "appender", other)[:1] == []


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_of_a_transaction_lack_no_node_that_others_create_meanwhile(zarr_format: int) -> None:
    world = cases.world_for(World("memory", zarr_format), ["tx_xarray_append"])
    assert wrong(world, "create_group", "tx_xarray_append")[:1] == []


@pytest.mark.parametrize("kind", ["object", "generations"])
@pytest.mark.parametrize("name", ["copy_keys", "rename"])
def test_nothing_is_copied_or_moved_to_where_a_transaction_is_creating_a_node(kind: str, name: str) -> None:
    for bucket in committed(kind):
        (result,) = run(Replay([]), [operations.whole(promises.ALL[name], 7)], bucket=bucket, preemptions=0).results
        assert isinstance(result, TessarrError), result
        n: Any = tessarr.open_array(bucket.connect("reader"), path="n", mode="r")
        assert n[...].tolist() == np.repeat([5, 0, 5], 4).tolist()


@pytest.mark.parametrize("names", [("plan_shared", "plan_shared"), ("plan_shared", "delete_group")])
def test_clients_that_carry_out_one_plan_lose_nothing(names: tuple[str, str]) -> None:
    """Some schedules; `scripts/campaigns/pairs.py` has all with one switch."""
    world = World("local")
    judge = cases.oracle(world, names)
    outcomes = [run(Priorities(seed, length=500), judge.programs, bucket=cases.maker(world)()) for seed in range(12)]
    assert [told for outcome in outcomes if (told := judge.judge(outcome))] == []


# -- the rules ------------------------------------------------------------------------------------------------------------


def told(*clients: Ran, attributes: Any = (), **arrays: list[int]) -> str:
    nodes = [
        (name.replace("_", "/"), (3,), attributes, ("array", (len(values),), (4,), "int32", tuple(values)))
        for name, values in arrays.items()
    ]
    return unexpected(clients, nodes) or ""


OLD = [-1, -2, -3, -4, -5, -6]
FAILED = ConflictError("another writer was faster")


def test_a_move_on_local_files_is_a_rename_when_another_client_creates_a_node_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def copied(*_: Any) -> None:
        raise AssertionError("what is moved is at both places until all is copied")

    monkeypatch.setattr(moving, "_copy_all", copied)
    assert [told for _, told in cases.run_pair(World("local"), ("create", "rename")) if told] == []


def test_rows_of_appends_are_there_once_and_whole() -> None:
    one, other = Ran("append", 7, (9,)), Ran("appender", 10, (10,))
    rows = bulk_operations.rows_of(10)
    assert told(one, other, a=[*OLD, 7, 7, 7, *rows]) == told(one, other, a=[*OLD, *rows[:3], 7, 7, 7, *rows[3:]]) == ""
    assert "are 0 times" in told(one, other, a=[*OLD, 7, 7, 7, *rows[:4]])
    assert "are 0 times" in told(one, a=[*OLD, 7, 7])
    assert "are 2 times" in told(one, other, a=[*OLD, 7, 7, 7, *rows[:3], *rows])
    assert "are 2 times" in told(one, a=[*OLD, 7, 7, 7, 7])
    assert "nobody appended" in told(one, a=[*OLD, 7, 7, 7, 8])
    assert "fill value" in told(one, a=[*OLD, 0, 7, 7, 7])
    assert "are 0 times" in told(Ran("publish", 7, [(9,), (11,)]), g_b=[*range(8), 0, 0, 0])


def test_rows_of_appends_that_failed_are_there_or_not_but_never_half() -> None:
    for result in (FAILED, Crashed):
        failed = Ran("append", 7, result)
        assert told(failed, a=OLD) == told(failed, a=[*OLD, 7, 7, 7]) == told(failed, a=[*OLD, 0, 0, 0]) == ""
        assert told(failed, a=[*OLD, 7, 7]) != ""
    assert told(Ran("append", 7, (9,)), Ran("overwrite", 10, None), a=[0] * 5) == ""


def test_rows_of_a_dataset_are_not_half() -> None:
    both = Ran("tx_xarray_append", 7, None), Ran("tx_xarray_append", 10, FAILED)
    rows = [-1, -2, -3, -4, 7, 8]
    assert told(*both, x_t=rows, x_v=rows) == ""
    assert "half" in told(*both, x_t=rows, x_v=[*rows[:4], 0, 0])
    assert "are 0 times" in told(*both, x_t=rows[:4], x_v=rows[:4])
    assert told(Ran("xarray_append", 7, None), both[1], x_t=rows[:4], x_v=rows) == ""  # for one writer at a time


def test_a_follower_takes_each_row_once_and_no_fill_value() -> None:
    def followed(*blocks: Any, beside: str = "set_attribute") -> str:
        return told(Ran("follow", 10, list(blocks)), Ran(beside, 7, None))

    assert followed((0, 2, [-1, -2]), (2, 3, [-3])) == ""
    assert "up to 2" in followed((0, 2, [-1, -2]), (3, 4, [-4]))
    assert "up to 2" in followed((0, 2, [-1, -2]), (0, 2, [-1, -2]))
    assert "up to 0" in followed((0, 2, [-1]))
    assert "fill value" in followed((0, 2, [-1, 0]))
    assert followed((0, 2, [-1, 0]), beside="clear_part") == ""


def test_a_copy_has_all_values() -> None:
    done, says = Ran("convert_new", 7, None), (("from", "7"),)
    assert told(done, attributes=says, n=[7] * 6) == ""
    assert "other values" in told(done, attributes=says, n=[7, 7, 7, 7, 0, 0])
    assert "other values" in told(Ran("plan_new", 7, Crashed), attributes=says, n_s=[0] * 6)
    assert told(Ran("copy_new", 7, CopyError("exists")), attributes=says, n=[0] * 6) == ""


def test_nodes_of_two_formats_are_not_at_one_path() -> None:
    nodes = [("n", (3, 2), (), ("group",))]
    assert "two formats" in (unexpected([Ran("create_other", 7, None)], nodes) or "")
    assert unexpected([Ran("migrate_all", 7, None)], nodes) is None
    assert unexpected([Ran("create_other", 7, Crashed)], nodes) is None
