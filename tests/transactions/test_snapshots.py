"""What a snapshot promises: values of one moment, or an error; and writers do not wait for it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.stored import consolidated, move
from tessarr.errors import NodeNotFoundError, ReadOnlyError, SnapshotChangedError, UnsupportedOperationError
from tessarr.storage import LMDBStore, LocalStore, MappingStore, MemoryStore, PrefixStore, SQLiteStore, ZipStore
from tessarr.stores.base import Store
from tests.transactions.cuts import process
from tests.transactions.test_cuts import change, content, copy_of, hidden, make, steps_of_a_commit

KEEPING: dict[str, Callable[[Path], Store]] = {
    "local": lambda folder: LocalStore(folder / "data.zarr"),
    "memory": lambda _: MemoryStore(),
    "lmdb": lambda folder: LMDBStore(folder / "data.lmdb"),
    "prefix": lambda folder: PrefixStore(LocalStore(folder), "data.zarr"),
}
NOTICING: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda folder: SQLiteStore(folder / "data.sqlite"),
    "zip": lambda folder: ZipStore(folder / "data.zip", mode="a"),
    "coarse": lambda folder: LocalStore(folder, file_locks=True),
}


def filled(store: Any) -> Any:
    root = tessarr.create_group(store, attributes={"title": "old"})
    for name in ("t", "u"):
        root.create_array(name, data=np.ones(8, "i4"), chunks=(2,), fill_value=0)
    root.create_array("sparse", shape=(8,), dtype="i4", chunks=(2,), fill_value=0)
    return root


def rewrite(place: Any, number: int) -> None:
    """Change everything in one transaction: values, shapes, attributes, nodes."""
    with tessarr.transaction(place) as tx:
        root: Any = tx.group
        root["t"][:] = number
        root["u"][1:7] = number
        root["sparse"][3:5] = number
        root["u"].append(np.array([number], "i4"))
        root.attrs["title"] = f"{number}"
        root.create_array(f"made{number}", data=[number])
        if number == 3:
            del root["made2"]


def state(root: Any) -> dict[str, Any]:
    values = {name: root[name][...].tolist() for name in ("t", "u", "sparse")}
    return {**values, "title": root.attrs["title"], "members": sorted(root)}


@pytest.fixture(params=KEEPING)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with KEEPING[request.param](tmp_path) as store:
        filled(store)
        yield store


def test_documents_that_a_transaction_has_looked_for_are_missing_in_it(place: Store) -> None:
    """A commit leaves a mark beside the documents that it has read."""
    with tessarr.snapshot(place) as before:
        with tessarr.transaction(place) as tx:
            assert sorted(name for name, _ in tx.group.members()) == ["sparse", "t", "u"]
            root: Any = tx.group
            root["u"][:] = 2
        assert before.store.get("t/.zarray") is None
        assert not before.store.exists("t/c/7")


def test_transactions_leave_it_as_it_was(place: Store) -> None:
    before = state(tessarr.open_group(place, mode="r"))
    with tessarr.snapshot(place) as first:
        rewrite(place, 2)
        middle = state(tessarr.open_group(place, mode="r", use_consolidated=False))
        with tessarr.snapshot(place) as second:
            rewrite(place, 3)
            after = state(tessarr.open_group(place, mode="r", use_consolidated=False))
            assert (state(first), state(second)) == (before, middle)
            assert before != middle != after
    assert state(tessarr.open_group(place, mode="r")) == after
    if isinstance(place, LocalStore):
        assert hidden(Path(place.root)) == []


def test_a_snapshot_lists_arrays_that_a_transaction_appends_to(place: Store) -> None:
    """The lock of the shape is a new file in the array's directory, in which more documents are looked for than are there."""
    taken: Any = tessarr.snapshot(place)
    with taken as before:
        with tessarr.transaction(place) as tx:
            tx.group["t"].append(np.ones(3, "i4"))
        assert sorted(before) == ["sparse", "t", "u"]
        assert before["t"][:].tolist() == [1] * 8


def test_what_was_read_before_and_what_is_read_after_are_of_one_moment(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    t: Any = tessarr.snapshot(tmp_path / "a" / "t")
    u: Any = tessarr.snapshot(tmp_path / "a", path="u")
    with t, u:
        first = t[:4]
        rewrite(tmp_path / "a", 2)
        assert [*first.tolist(), *t[4:].tolist()] == [1] * 8
        assert u[...].tolist() == [1] * 8
    with pytest.raises(ValueError, match="has ended"):
        t[0]


def test_a_snapshot_that_has_ended_lists_nothing(tmp_path: Path) -> None:
    root = filled(tmp_path / "a")
    with tessarr.snapshot(tmp_path / "a") as before:
        root.create_group("g")
    with pytest.raises(ValueError, match="has ended"):
        sorted(before)
    with pytest.raises(ValueError, match="has ended"):
        list(before.store.list())


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_node_that_was_moved_is_not_read_at_its_old_path_by_consolidated_metadata(
    zarr_format: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, taken = MemoryStore(), list[Any]()
    root = tessarr.create_group(store, zarr_format=zarr_format)
    root.create_array("a", data=[-1, -2, -3])
    tessarr.consolidate_metadata(store)
    follow = consolidated.follow_change_steps

    async def late(*arguments: Any, **options: Any) -> None:
        taken.append(tessarr.snapshot(store))  # between the renaming and the new consolidated metadata
        await follow(*arguments, **options)

    monkeypatch.setattr(move, "follow_change_steps", late)
    tessarr.open_group(store, mode="r+").move("a", "b")
    found: Any = taken[0]
    assert sorted(found) == ["b"]
    assert found["b"][:].tolist() == [-1, -2, -3]
    with pytest.raises(KeyError):
        found["a"]


@pytest.mark.parametrize(
    "write",
    [
        lambda root: root["t"].__setitem__(slice(0, 2), 7),
        lambda root: root["t"].__setitem__(0, 7),
        lambda root: root["t"].__setitem__(slice(0, 2), 0),
        lambda root: root["t"].resize((2,)),
        lambda root: root.__delitem__("t"),
        lambda root: root.move("t", "s"),
        lambda root: root.create_array("t", data=[1], overwrite=True),
    ],
    ids=["chunk", "part", "removed", "shrunk", "deleted", "moved", "replaced"],
)
def test_a_change_outside_transactions_is_an_error_where_it_is_read(
    tmp_path: Path, write: Callable[[Any], Any]
) -> None:
    root = filled(tmp_path / "a")
    with tessarr.snapshot(tmp_path / "a") as s:
        taken: Any = s
        t = taken["t"]
        write(root)
        with pytest.raises(SnapshotChangedError, match="Take another snapshot"):
            t[...]
        assert taken["u"][...].tolist() == [1] * 8
        rewrite_u_only(tmp_path / "a")
        assert taken["u"][...].tolist() == [1] * 8


def rewrite_u_only(place: Path) -> None:
    with tessarr.transaction(place) as tx:
        group: Any = tx.group
        group["u"][...] = 4


def test_a_transaction_does_not_keep_what_another_writer_wrote_since(tmp_path: Path) -> None:
    root = filled(tmp_path / "a")
    with tessarr.snapshot(tmp_path / "a") as s:
        taken: Any = s
        root["t"][0:2] = 5
        rewrite(tmp_path / "a", 2)
        with pytest.raises(SnapshotChangedError):
            taken["t"][0:2]
        assert taken["t"][2:].tolist() == [1] * 6


@pytest.mark.parametrize("kind", NOTICING)
def test_a_store_that_keeps_nothing_notices(tmp_path: Path, kind: str) -> None:
    with NOTICING[kind](tmp_path) as store:
        root = filled(store)
        place: Any = store.with_read_only(True) if kind == "coarse" else store
        with tessarr.snapshot(place) as s:
            taken: Any = s
            assert state(taken) == state(root)
            root["t"][0:2] = 7
            with pytest.raises(SnapshotChangedError, match="changed after the snapshot was taken"):
                taken["t"][0]
            assert taken["t"][2:].tolist() == [1] * 6
            assert taken["sparse"][...].tolist() == [0] * 8
            root["sparse"][0:2] = 3  # missing before: known, and not read
            assert taken["sparse"][...].tolist() == [0] * 8


@pytest.mark.parametrize("kind", ["sqlite", "zip"])
def test_the_end_of_a_snapshot_leaves_the_store_open(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with NOTICING[kind](tmp_path) as store:
        root = filled(store)
        closed: list[object] = []
        with monkeypatch.context() as patch:
            patch.setattr(type(store), "close", lambda store: closed.append(store))
            tessarr.snapshot(store).close()
            tessarr.snapshot(root["t"]).close()
        assert closed == []
        root["t"][0] = 5
        assert root["t"][0] == 5


def test_what_a_process_left_that_was_killed_while_it_took_a_snapshot_is_removed(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    left = tmp_path / "a" / ".tessarr-snapshot"
    (left / "0123456789ab").mkdir(parents=True)
    (left / "0123456789ab.new").touch()
    rewrite(tmp_path / "a", 2)
    assert hidden(tmp_path / "a") == []


def test_a_directory_that_cannot_be_written_is_not_written(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    before = {path: path.stat().st_mtime_ns for path in [tmp_path / "a", *(tmp_path / "a").rglob("*")]}
    with tessarr.snapshot(LocalStore(tmp_path / "a", read_only=True)) as s:
        assert state(s)["t"] == [1] * 8
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_store_without_versions_refuses(tmp_path: Path) -> None:
    store = MappingStore({})
    filled(store)
    with pytest.raises(UnsupportedOperationError, match="no snapshots"):
        tessarr.snapshot(store)
    with pytest.raises(NodeNotFoundError):
        tessarr.snapshot(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_it_is_read_only(place: Store) -> None:
    with tessarr.snapshot(place) as s:
        taken: Any = s
        with pytest.raises(ReadOnlyError):
            taken["t"][0] = 1
        with pytest.raises(ReadOnlyError):
            taken.attrs["title"] = "new"


def test_coroutines_take_snapshots(tmp_path: Path) -> None:
    filled(tmp_path / "a")

    async def main() -> Any:
        with await tessarr.snapshot_async(tmp_path / "a") as s:
            await asyncio.to_thread(rewrite, tmp_path / "a", 2)
            return s["t"][:].tolist()  # type: ignore[index, union-attr]

    assert asyncio.run(main()) == [1] * 8


def test_a_commit_that_ends_at_any_step_and_its_recovery_leave_it_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "template.zarr"
    make(template)
    before = content(template)
    for ends_at in range(0, steps_of_a_commit(template, monkeypatch, durable=False) + 20, 3):
        place = copy_of(template, "cut")
        with tessarr.snapshot(place) as taken:
            _check_a_commit_that_ends(monkeypatch, place, ends_at, before, taken)
        committed = content(place)
        with tessarr.snapshot(place) as taken:
            change_title(place)
            assert content_of(taken) == committed


def test_a_commit_that_ends_after_a_link_by_which_it_keeps_a_value_leaves_two_snapshots_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link changes the time by which a snapshot knows whether a file is what it was."""
    template = tmp_path / "template.zarr"
    make(template)
    before = content(template)
    with tessarr.snapshot(copy_of(template, "whole")), process(monkeypatch) as whole:
        change(tmp_path / "whole")
    ends = [number + 1 for number, call in enumerate(whole.calls) if call == "link"]
    assert len(ends) > 4
    for ends_at in ends:
        place = copy_of(template, "cut")
        with tessarr.snapshot(place) as one, tessarr.snapshot(place) as other:
            _check_a_commit_that_ends(monkeypatch, place, ends_at, before, one, other)


def _check_a_commit_that_ends(
    monkeypatch: pytest.MonkeyPatch, place: Path, ends_at: int, before: dict[str, Any], *taken: Any
) -> None:
    with process(monkeypatch, ends_at):
        change(place)
    assert all(content_of(one) == before for one in taken), ends_at
    tessarr.open_group(place, mode="r+")
    assert all(content_of(one) == before for one in taken), ends_at


def content_of(root: Any) -> dict[str, Any]:
    found = {name: root[name][:].tolist() for name in ("t", "u")}
    return {**found, "title": root.attrs["title"], "members": sorted(root)}


def change_title(place: Path) -> None:
    with tessarr.transaction(place) as tx:
        tx.group.attrs["title"] = "newest"


READER = """
import sys, tessarr
with tessarr.snapshot(sys.argv[1]) as s:
    first = s["t"][:].tolist()
    print("taken", flush=True)
    sys.stdin.readline()
    assert s["t"][:].tolist() == first == s["u"][:8].tolist() == [1] * 8, s["u"][:].tolist()
    print("same", flush=True)
    sys.stdin.readline()
"""


def reader(place: Path) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", READER, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "taken\n"
    return started


def test_processes_read_one_moment_while_others_commit(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    with reader(tmp_path / "a") as reading:
        assert reading.stdin is not None
        assert reading.stdout is not None
        rewrite(tmp_path / "a", 2)
        reading.stdin.write("\n")
        reading.stdin.flush()
        assert reading.stdout.readline() == "same\n"
        reading.stdin.write("\n")
    assert reading.returncode == 0
    assert hidden(tmp_path / "a") == []


def test_what_was_kept_for_a_process_that_was_killed_is_removed(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    with reader(tmp_path / "a") as reading:
        rewrite(tmp_path / "a", 2)
        kept = [*(tmp_path / "a" / ".tessarr-snapshot").rglob("*")]
        assert len(kept) > 5
        reading.send_signal(signal.SIGKILL)
    assert [*(tmp_path / "a" / ".tessarr-snapshot").rglob("*")] == kept
    rewrite(tmp_path / "a", 4)
    assert hidden(tmp_path / "a") == []


def test_repair_keeps_what_lives(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    store = LocalStore(tmp_path / "a")
    with tessarr.snapshot(store) as s:
        taken: Any = s
        rewrite(tmp_path / "a", 2)
        store.remove_leftovers(older_than_s=-1)
        assert taken["t"][...].tolist() == [1] * 8
    assert hidden(tmp_path / "a") == []
