"""What a transaction promises, in every store that has transactions."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tessarr
from tessarr.errors import (
    ConflictError,
    JournalError,
    ReadOnlyError,
    TransactionError,
    UnsupportedOperationError,
)
from tessarr.storage import LMDBStore, LocalStore, MemoryStore, PrefixStore, SQLiteStore, ZipStore
from tessarr.stores.base import Store
from tessarr.stores.local.transactions import recovery
from tessarr.stores.local.transactions.many import StagedFiles
from tessarr.tools.migrate import migrate
from tessarr.transactions.transaction import Transaction
from tessarr.types import Buffer, ByteRange
from tests.transactions.cuts import process

MAKERS: dict[str, Callable[[Path], Store]] = {
    "local": lambda folder: LocalStore(folder / "data.zarr"),
    "memory": lambda _: MemoryStore(),
    "sqlite": lambda folder: SQLiteStore(folder / "data.sqlite"),
    "lmdb": lambda folder: LMDBStore(folder / "data.lmdb"),
    "zip": lambda folder: ZipStore(folder / "data.zip", mode="a"),
    "prefix": lambda folder: PrefixStore(LocalStore(folder), "data.zarr"),
}


@pytest.fixture(params=MAKERS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with MAKERS[request.param](tmp_path) as store:
        root = tessarr.create_group(store, attributes={"title": "old"})
        for name in ("t", "u"):
            root.create_array(name, data=np.ones(6, "i4"), chunks=(2,), fill_value=0)
        yield store


def group_of(tx: Transaction) -> Any:
    """Return the group of a transaction, whose members are arrays."""
    return tx.group


def set_first(tx: Transaction, number: int) -> None:
    group_of(tx)["t"][0] = number


def values(store: Store, *names: str) -> list[list[int]]:
    root: Any = tessarr.open_group(store, mode="r")
    return [root[name][:].tolist() for name in names]


def test_its_changes_are_read_inside_and_become_visible_at_its_end(place: Store) -> None:
    with tessarr.transaction(place) as tx:
        group_of(tx)["t"][1:3] = 5
        group_of(tx)["u"].append(np.array([9], "i4"))
        tx.group.attrs["title"] = "new"
        tx.group.create_array("v", data=[4], chunks=(1,))
        assert sorted(tx.group) == ["t", "u", "v"]
        assert group_of(tx)["t"][:].tolist() == [1, 5, 5, 1, 1, 1]
        assert group_of(tx)["u"].shape == (7,)
        assert values(place, "t", "u") == [[1] * 6, [1] * 6]
    assert values(place, "t", "u", "v") == [[1, 5, 5, 1, 1, 1], [1] * 6 + [9], [4]]
    assert tessarr.open_group(place, mode="r").attrs["title"] == "new"


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_nothing_is_stored_in_arrays_without_elements(place: Store, engine: str) -> None:
    with tessarr.config.set({"engine": engine}), tessarr.transaction(place) as tx:
        for number, shape in enumerate([(0,), (3, 0), (0, 3)]):
            array = tx.group.create_array(f"none{number}", shape=shape, chunks=(2,) * len(shape), dtype="i4")
            array[...] = 1
            array.append(np.ones(shape, "i4"))
        group_of(tx)["t"][2:2] = 5
    assert values(place, "t", "none0", "none1", "none2") == [[1] * 6, [], [[]] * 6, []]


def test_after_an_exception_nothing_has_changed(place: Store) -> None:
    def fail() -> None:
        with tessarr.transaction(place) as tx:
            group_of(tx)["t"][:] = 5
            tx.group.create_array("v", data=[4])
            raise KeyError("mine")

    before = sorted(place.list())
    with pytest.raises(KeyError, match="mine"):
        fail()
    assert sorted(place.list()) == before
    assert values(place, "t") == [[1] * 6]


def test_a_change_by_another_writer_to_what_was_read_is_a_conflict(place: Store) -> None:
    other = tessarr.open_array(place, path="t", mode="r+")
    tx = tessarr.transaction(place)

    def body() -> None:
        with tx:
            group_of(tx)["u"][:] = 5
            group_of(tx)["t"][0] = 5  # reads the rest of the chunk
            run_outside(lambda: other.__setitem__(1, 7))

    with pytest.raises(ConflictError, match="another writer changed") as error:
        body()
    assert error.value.keys == ("t/c/0",)
    assert values(place, "t", "u") == [[1, 7, 1, 1, 1, 1], [1] * 6]


def run_outside(function: Callable[[], object]) -> None:
    """Call a function in a context without the transaction, as another task of the program would."""
    Context().run(function)


def test_of_two_transactions_that_change_what_both_read_one_commits(place: Store) -> None:
    def add_one() -> None:
        with tessarr.transaction(place) as tx:
            array = group_of(tx)["t"]
            array[0:2] = array[0:2] + 1
            group_of(tx)["u"][0:2] = array[0:2]

    first, second = tessarr.transaction(place), tessarr.transaction(place)
    one, two = Context(), Context()
    for context, tx, number in ((one, first, 5), (two, second, 7)):
        context.run(tx.__enter__)
        context.run(set_first, tx, number)
    one.run(first.commit)
    with pytest.raises(ConflictError):
        two.run(second.commit)
    assert values(place, "t")[0][0] == 5
    add_one()
    assert values(place, "t", "u") == [[6, 2, 1, 1, 1, 1], [6, 2, 1, 1, 1, 1]]


def test_documents_are_merged_member_by_member_if_the_caller_wants_it(place: Store) -> None:
    def body(name: str) -> None:
        with tessarr.transaction(place, on_conflict="merge") as tx:
            tx.group.attrs[name] = "own"
            run_outside(lambda: tessarr.open_group(place, mode="r+").attrs.update({"title": "theirs"}))

    body("mine")
    assert dict(tessarr.open_group(place, mode="r").attrs) == {"title": "theirs", "mine": "own"}
    tessarr.open_group(place, mode="r+").attrs["title"] = "old"
    with pytest.raises(ConflictError):
        body("title")
    assert tessarr.open_group(place, mode="r").attrs["title"] == "theirs"


def test_an_append_of_as_many_rows_is_not_merged(place: Store) -> None:
    tx = tessarr.transaction(place, on_conflict="merge").__enter__()
    group_of(tx)["t"].append(np.array([7, 7], "i4"))
    run_outside(lambda: tessarr.open_array(place, path="t", mode="r+").append(np.array([8, 8], "i4")))
    with pytest.raises(ConflictError):
        tx.commit()
    assert values(place, "t") == [[1] * 6 + [8, 8]]


@pytest.mark.filterwarnings("ignore:Both zarr.json")
def test_documents_of_a_format_that_a_migration_leaves_behind_are_not_merged() -> None:
    store = MemoryStore()
    tessarr.create_group(store, zarr_format=2, attributes={"title": "old"})
    tx = tessarr.transaction(store, on_conflict="merge").__enter__()
    group_of(tx).attrs["mine"] = 1
    run_outside(lambda: migrate(store, to_format=3))
    with pytest.raises(ConflictError) as caught:
        tx.commit()
    assert "zarr.json" in caught.value.keys
    assert dict(tessarr.open_group(store, mode="r").attrs) == {"title": "old"}


class Interrupted(MemoryStore):
    """Another client changes attributes just before the consolidated metadata are read."""

    pending = False

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        if key == ".zmetadata" and self.pending:
            self.pending = False
            run_outside(lambda: tessarr.open_group(self, mode="r+").attrs.update({"theirs": 1}))
        return super().get(key, byte_range)


def test_consolidated_metadata_that_were_read_later_have_the_merged_documents() -> None:
    store = Interrupted()
    tessarr.create_group(store, zarr_format=2, attributes={"title": "old"})
    tessarr.consolidate_metadata(store)
    tx = tessarr.transaction(store, on_conflict="merge").__enter__()
    group = group_of(tx)
    store.pending = True
    group.attrs["mine"] = 2
    tx.commit()
    assert not store.pending
    for use_consolidated in (False, True):
        read = tessarr.open_group(store, mode="r", use_consolidated=use_consolidated)
        assert dict(read.attrs) == {"title": "old", "theirs": 1, "mine": 2}
    document = json.loads(bytes(store.get(".zmetadata") or b""))
    assert document["metadata"][".zattrs"] == {"title": "old", "theirs": 1, "mine": 2}


def test_an_object_from_outside_may_not_write_to_the_place(place: Store) -> None:
    root: Any = tessarr.open_group(place, mode="r+")
    array = root["t"]
    writes: list[Callable[[], object]] = [
        lambda: array.__setitem__(0, 3),
        lambda: array.append(np.zeros(2, "i4")),
        lambda: array.resize((2,)),
        lambda: array.attrs.update({"a": 1}),
        lambda: root.attrs.update({"a": 1}),
        lambda: root.create_array("x", shape=(1,), dtype="i4"),
        lambda: tessarr.create_group(place, path="x"),
        lambda: root.__delitem__("u"),
    ]
    with tessarr.transaction(place) as tx:
        for write in writes:
            with pytest.raises(TransactionError, match="not of it"):
                write()
        group_of(tx)["t"][0] = 3
    array[1] = 3
    assert values(place, "t") == [[3, 3, 1, 1, 1, 1]]


def test_transactions_are_not_nested(place: Store) -> None:
    with (
        tessarr.transaction(place),
        pytest.raises(TransactionError, match="cannot be nested"),
        tessarr.transaction(place),
    ):
        pass


def test_coroutines_have_transactions(place: Store) -> None:
    async def body(number: int, error: Exception | None = None) -> None:
        async with tessarr.transaction(place) as tx:
            group_of(tx)["t"][0] = number
            await asyncio.to_thread(set_second, tx, number)
            if error is not None:
                raise error

    async def main() -> None:
        await body(5)
        with pytest.raises(KeyError):
            await body(6, KeyError())
        tx = await tessarr.transaction(place).__aenter__()
        group_of(tx)["u"][0] = 3
        done = await tx.commit_async()
        assert done.keys == ("u/c/0",)
        tx = await tessarr.transaction(place).__aenter__()  # the one before has ended, in a thread
        group_of(tx)["u"][0] = 4
        await tx.abort_async()
        tessarr.open_array(place, path="u", mode="r+")[1] = 8

    asyncio.run(main())
    assert values(place, "t", "u") == [[5, 5, 1, 1, 1, 1], [3, 8, 1, 1, 1, 1]]


def set_second(tx: Transaction, number: int) -> None:
    group_of(tx)["t"][1] = number


def test_its_objects_end_with_it(place: Store) -> None:
    with tessarr.transaction(place) as tx:
        array = group_of(tx)["t"]
    with pytest.raises(TransactionError, match="ended"):
        array[0] = 3
    with pytest.raises(TransactionError, match="ended"):
        array[0]
    with pytest.raises(TransactionError), tx:
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_cannot_use_it(tmp_path: Path) -> None:
    program = """
import os, sys, tessarr
from tessarr.errors import TransactionError
tessarr.create_group(sys.argv[1]).create_array("t", data=[1])
with tessarr.transaction(sys.argv[1]) as tx:
    array = tx.group["t"]
    child = os.fork()
    if not child:
        try:
            array[0] = 2
        except TransactionError:
            pass
        else:
            os._exit(1)
        try:
            tx.commit()
        except TransactionError:
            os._exit(0)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    array[0] = 3
assert tessarr.open_array(sys.argv[1] + "/t")[0] == 3
"""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.zarr")], check=True, env=environment)


def test_a_plan_says_what_a_commit_would_do(place: Store) -> None:
    with tessarr.transaction(place) as tx:
        assert tx.plan().set == ()
        group_of(tx)["u"][4:6] = 2
        if not isinstance(place, ZipStore):
            group_of(tx)["t"][0:4] = 0
        plan = tx.plan()
        assert plan.set == ("u/c/2",)
        assert plan.removed == (() if isinstance(place, ZipStore) else ("t/c/0", "t/c/1"))
        assert plan.nbytes > 0
        assert plan.level == ("journal" if isinstance(place, LocalStore | PrefixStore) else "store")
        tx.abort()
    assert values(place, "t") == [[1] * 6]


def test_stores_that_cannot_commit_refuse(tmp_path: Path) -> None:
    class Values(dict[str, bytes]):
        pass

    from tessarr.storage import DBMStore, MappingStore

    for store in (MappingStore(Values()), DBMStore(tmp_path / "a.dbm")):
        with pytest.raises(UnsupportedOperationError, match="has no transactions"), tessarr.transaction(store):
            pass
    with pytest.raises(UnsupportedOperationError, match="flip"):
        tessarr.transaction(tmp_path, mode="flip")  # type: ignore[arg-type]
    with pytest.raises(ReadOnlyError), tessarr.transaction(MemoryStore(read_only=True)):
        pass


def test_a_commit_says_what_it_changed(place: Store) -> None:
    with tessarr.transaction(place) as tx:
        group_of(tx)["t"][:] = 3
        group_of(tx)["t"].append(np.array([3], "i4"))
        done = tx.commit()
    assert done.keys[-1] == "t/zarr.json"
    assert done.keys[:-1] == ("t/c/0", "t/c/1", "t/c/2", "t/c/3")


class _Recorded(sqlite3.Connection):
    """A connection that records how SQLite is to sync each transaction."""

    levels: ClassVar[list[int]] = []

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            self.levels.append(super().execute("PRAGMA synchronous").fetchone()[0])
        return super().execute(statement, *arguments)


def test_a_durable_commit_to_sqlite_is_synced_though_the_connection_is_not(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.sqlite", factory=_Recorded) as store:
        store._rows("PRAGMA synchronous = OFF")
        levels = _Recorded.levels
        for durable, level in ((None, 0), (True, 3), (False, 0)):
            levels.clear()
            with tessarr.transaction(store, durable=durable) as tx:
                tx.group.attrs["durable"] = str(durable)
            assert levels == [level]


def test_a_durable_commit_to_lmdb_is_synced_though_the_environment_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(LMDBStore, "_sync", lambda store: synced.append(store.path))
    with LMDBStore(tmp_path / "a.lmdb", sync=False) as store:
        for durable, count in ((None, 0), (False, 0), (True, 1)):
            with tessarr.transaction(store, durable=durable) as tx:
                tx.group.attrs["durable"] = str(durable)
            assert len(synced) == count
        monkeypatch.undo()
        with tessarr.transaction(store, durable=True) as tx:  # LMDB syncs
            tx.group.attrs["durable"] = "yes"


def test_a_new_place_is_created_by_a_transaction(tmp_path: Path) -> None:
    place = tmp_path / "new.zarr"
    with tessarr.transaction(place) as tx:
        tx.group.create_array("a", data=[1, 2])
        assert not (place / "zarr.json").exists()
    assert tessarr.open_array(place / "a", mode="r")[:].tolist() == [1, 2]


def test_an_array_can_be_the_place(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a.zarr", data=[1, 2, 3])
    with tessarr.transaction(tmp_path / "a.zarr") as tx:
        tx.array[:2] = 9
        with pytest.raises(TransactionError, match=r"tx\.array"):
            _ = tx.group
    assert tessarr.open_array(tmp_path / "a.zarr", mode="r")[:].tolist() == [9, 9, 3]


def test_a_deleted_group_is_gone_at_once(place: Store) -> None:
    if isinstance(place, ZipStore):
        pytest.skip("a zip archive cannot delete")
    with tessarr.transaction(place) as tx:
        del group_of(tx)["u"]
        assert sorted(tx.group) == ["t"]
        assert sorted(tessarr.open_group(place, mode="r")) == ["t", "u"]
    assert sorted(tessarr.open_group(place, mode="r")) == ["t"]


def test_a_damaged_journal_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    z = tessarr.create_array(tmp_path / "a.zarr", data=np.arange(4), chunks=(2,))
    journal = tmp_path / "a.zarr" / ".tessarr-journal"
    header = b'{"tessarr_journal":1,"id":"0","directory":"1"}\n'
    nested = b"[" * 100_000
    for mode, content in itertools.product(("r", "r+"), (header + b"not a step\n", nested, header + nested)):
        journal.write_bytes(content)
        with pytest.raises(JournalError, match="damaged, and nothing of it was carried out") as caught:
            tessarr.open_array(tmp_path / "a.zarr", mode=mode)
        assert "Rename the file" in str(caught.value)
    journal.rename(tmp_path / "a.zarr" / "journal-of-a-stranger")
    assert tessarr.open_array(tmp_path / "a.zarr")[...].tolist() == z[...].tolist() == [0, 1, 2, 3]


def test_a_journal_that_was_copied_with_its_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, copied = tmp_path / "a.zarr", tmp_path / "b.zarr"
    for ends_at in itertools.count():
        shutil.rmtree(place, ignore_errors=True)
        tessarr.create_array(place, data=np.arange(4), chunks=(2,))
        with process(monkeypatch, ends_at), tessarr.transaction(place) as tx:
            tx.array[...] = 7
        if (place / ".tessarr-journal").exists():
            break
    shutil.copytree(place, copied)
    with pytest.raises(JournalError, match="of another directory"):
        tessarr.open_array(copied, mode="r+")
    assert tessarr.open_array(place, mode="r+")[...].tolist() == [7] * 4


def test_a_mark_that_another_process_removes_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is emptied by the holder of the lock; a reader may see the size from before."""
    mark = tmp_path / ".k.tessarr-lock"
    mark.write_bytes(b"x" * 52)
    monkeypatch.setattr("tessarr.stores.local.file.pread", lambda *_: b"")
    assert recovery.read_small(str(mark)) == b""
    recovery.clear(f"{tmp_path}/", ["k"], "0" * 16)
    assert mark.exists()


# -- level publish in a directory -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path / "p")
    root = tessarr.create_group(store)
    for name in ("t", "u"):
        root.create_array(name, data=np.arange(1, 7, dtype="i4"), chunks=(3,), fill_value=0)
    root.create_array("started", data=np.arange(1, 5, dtype="i4"), chunks=(3,), fill_value=0)
    return store


def _append_whole_chunks(group: Any) -> None:
    for name in ("t", "u"):
        group[name].append([7, 7, 7])


def _append_in_a_chunk(group: Any) -> None:
    group["started"].append([7, 7])


def _make_nodes(group: Any) -> None:
    group.create_group("g").attrs["n"] = 1
    group.create_array("new", data=[1, 2, 3])


def _change_in_place(group: Any) -> None:
    group["t"].append([7, 7, 7])
    group["u"][0] = 7


def _shrink(group: Any) -> None:
    group["t"].resize((3,))


LEVELS: list[tuple[Callable[[Any], object], Any, str | None]] = [
    (_append_whole_chunks, "auto", "publish"),
    (_append_whole_chunks, "journal", "journal"),
    (_append_in_a_chunk, "auto", "journal"),
    (_append_in_a_chunk, "publish", "publish"),
    (_make_nodes, "auto", "publish"),
    (lambda group: group.attrs.update({"n": 1}), "auto", "publish"),
    (_change_in_place, "auto", "journal"),
    (_change_in_place, "publish", None),
    (_shrink, "auto", "journal"),
    (_shrink, "publish", None),
    (lambda group: group.__delitem__("u"), "auto", "journal"),
    (lambda group: group.__delitem__("u"), "publish", None),
]


@pytest.mark.parametrize(("change", "mode", "level"), LEVELS)
def test_what_a_transaction_changes_decides_its_level_in_a_directory(
    folder: LocalStore, change: Callable[[Any], object], mode: Any, level: str | None
) -> None:
    tx = tessarr.transaction(folder, mode)
    with tx:
        change(tx.group)
        if level is not None:
            assert asyncio.run(tx.plan_async()).level == level
            assert tx.commit().level == level
            return
        before = {key: bytes(folder.get(key) or b"") for key in folder.list()}
        with pytest.raises(UnsupportedOperationError, match="cannot publish"):
            tx.commit()
    assert {key: bytes(folder.get(key) or b"") for key in folder.list()} == before


def test_what_was_left_beyond_the_shape_is_not_within_for_a_moment(
    folder: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk of fill values is appended where a process that ended has left another one."""
    folder.set("t/c/2", bytes(folder.get("t/c/0") or b""))
    seen = []
    carry_out = recovery._carry_out

    def carried_out(*arguments: Any, **options: Any) -> None:
        carry_out(*arguments, **options)
        document = json.loads(bytes(folder.get("t/zarr.json") or b""))
        seen.append((document["shape"], folder.exists("t/c/2")))

    monkeypatch.setattr(recovery, "_carry_out", carried_out)
    monkeypatch.setattr(StagedFiles, "place", lambda *_: False)
    with tessarr.transaction(folder) as tx:
        group_of(tx)["t"].append([0, 0, 0])
    assert seen == [([6], False), ([9], False)]
    assert values(folder, "t") == [[1, 2, 3, 4, 5, 6, 0, 0, 0]]
