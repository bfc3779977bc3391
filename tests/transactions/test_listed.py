"""What appears where a transaction moves, replaces or removes everything is a conflict, and what it has only read too (I5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ConflictError
from tessarr.storage import LMDBStore, LocalStore, MemoryStore, PrefixStore, SQLiteStore
from tessarr.stores.base import Store
from tessarr.stores.local import exchange
from tessarr.stores.local.transactions import commit
from tessarr.stores.local.transactions.commit import Marks
from tessarr.transactions.overlay import OverlayStore
from tests.simulation.operations import make
from tests.simulation.simulator import Bucket
from tests.transactions.test_transactions import run_outside

MAKERS: dict[str, Callable[[Path], Store]] = {
    "local": lambda folder: LocalStore(folder / "data.zarr"),
    "memory": lambda _: MemoryStore(),
    "sqlite": lambda folder: SQLiteStore(folder / "data.sqlite"),
    "lmdb": lambda folder: LMDBStore(folder / "data.lmdb"),
    "prefix": lambda _: PrefixStore(MemoryStore(), "inside"),
}
needs_exchange = pytest.mark.skipif(exchange._renameat2() is None, reason="RENAME_EXCHANGE is a call of Linux")


@pytest.fixture(params=MAKERS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with MAKERS[request.param](tmp_path) as store:
        fill(store)
        yield store


def fill(store: Store) -> None:
    root = tessarr.create_group(store)
    array: Any = root.create_array("a", shape=(8,), chunks=(4,), dtype="i4", fill_value=0)
    array[:4] = 1
    root.create_array("b", data=np.ones(4, "i4"), chunks=(4,))
    root.create_group("g").create_array("x", data=[1])


def _move(root: Any) -> None:
    root.move("a", "c")


def _replace(root: Any) -> None:
    root.create_array("a", shape=(8,), chunks=(4,), dtype="i4", fill_value=0, overwrite=True)


def _delete(root: Any) -> None:
    del root["a"]


@pytest.mark.parametrize("change", [_move, _replace, _delete])
def test_a_chunk_that_appears_in_the_meantime_is_a_conflict(place: Store, change: Callable[[Any], None]) -> None:
    other = tessarr.open_array(place, path="a", mode="r+")

    def body() -> None:
        with tessarr.transaction(place) as tx:
            change(tx.group)
            run_outside(lambda: other.__setitem__(slice(4, 8), 77))

    with pytest.raises(ConflictError, match="added values") as error:
        body()
    assert error.value.keys == ("a/c/1",)
    found: Any = tessarr.open_group(place, mode="r")
    assert sorted(found) == ["a", "b", "g"]
    assert found["a"][:].tolist() == [1] * 4 + [77] * 4


def test_a_document_of_another_format_that_is_finished_while_the_commit_waits_for_it_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration was writing it: the transaction found it missing when it opened the array, and again in the commit."""
    tessarr.create_group(tmp_path / "a", zarr_format=2).create_array("x", data=np.ones(4, "i4"), chunks=(2,))
    mark = commit._Change.mark

    def then_finished(self: Any, *arguments: Any) -> None:
        mark(self, *arguments)
        (tmp_path / "a" / "x" / "zarr.json").write_text("{}")

    monkeypatch.setattr(commit._Change, "mark", then_finished)

    def body() -> None:
        with tessarr.transaction(tmp_path / "a") as tx:
            del tx.group["x"]

    with pytest.raises(ConflictError, match="added values") as error:
        body()
    assert error.value.keys == ("x/zarr.json",)
    (tmp_path / "a" / "x" / "zarr.json").unlink()
    assert tessarr.open_array(tmp_path / "a", path="x")[...].tolist() == [1] * 4


@pytest.mark.parametrize("mode", ["auto", pytest.param("swap", marks=needs_exchange)])
@pytest.mark.parametrize("on_conflict", ["error", "merge"])
def test_a_node_that_appears_in_a_deleted_group_is_a_conflict(tmp_path: Path, mode: Any, on_conflict: Any) -> None:
    fill(LocalStore(tmp_path / "a"))

    def body() -> None:
        with tessarr.transaction(tmp_path / "a", mode, on_conflict=on_conflict) as tx:
            del tx.group["g"]
            inside = tessarr.open_group(tmp_path / "a", path="g", mode="r+")
            run_outside(lambda: inside.create_array("new", data=[5]))

    with pytest.raises(ConflictError, match="added values") as error:
        body()
    assert set(error.value.keys) == {"g/new/zarr.json", "g/new/c/0"}
    assert sorted(tessarr.open_group(tmp_path / "a", path="g", mode="r")) == ["new", "x"]


def test_a_chunk_that_is_being_written_when_the_commit_begins_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path / "a")
    fill(store)
    writer = store.lock("a/c/1")
    wait_for, waited = Marks.wait_for, []

    def finish_writing(marks: Marks, lock: str) -> None:
        waited.append(lock)
        store.set("a/c/1", bytes([7] * 16))
        writer.__exit__(None, None, None)
        wait_for(marks, lock)

    def body() -> None:
        with tessarr.transaction(store) as tx:
            tx.group.move("a", "c")
            writer.__enter__()

    monkeypatch.setattr(Marks, "wait_for", finish_writing)
    with pytest.raises(ConflictError, match="added values"):
        body()
    assert waited == [str(tmp_path / "a/a/c/.1.tessarr-lock")]
    assert sorted(tessarr.open_group(store, mode="r")) == ["a", "b", "g"]


def test_a_chunk_that_appears_while_a_node_is_moved_is_a_conflict(
    place: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tessarr.open_array(place, path="a", mode="r+")
    delete_prefix = OverlayStore.delete_prefix

    def late(overlay: OverlayStore, prefix: str) -> None:
        run_outside(lambda: other.__setitem__(slice(4, 8), 77))
        delete_prefix(overlay, prefix)

    def body() -> None:
        with tessarr.transaction(place) as tx:
            monkeypatch.setattr(OverlayStore, "delete_prefix", late)
            tx.group.move("a", "c")

    with pytest.raises(ConflictError) as error:
        body()
    assert error.value.keys == ("a/c/1",)
    found: Any = tessarr.open_group(place, mode="r")
    assert found["a"][:].tolist() == [1] * 4 + [77] * 4


def test_a_node_that_is_deleted_while_it_is_moved_is_a_conflict(place: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = OverlayStore.list

    def late(overlay: OverlayStore, prefix: str = "") -> Any:
        monkeypatch.setattr(OverlayStore, "list", listing)
        run_outside(lambda: tessarr.open_group(place, mode="r+").__delitem__("a"))
        return listing(overlay, prefix)

    def body() -> None:
        with tessarr.transaction(place) as tx:
            root = tx.group
            monkeypatch.setattr(OverlayStore, "list", late)
            root.move("a", "c")

    with pytest.raises(ConflictError) as error:
        body()
    assert error.value.keys == ("a/zarr.json",)


def test_a_transaction_that_only_reads_sees_one_state(place: Store) -> None:
    def change() -> None:
        with tessarr.transaction(place) as other:
            group: Any = other.group
            group["a"][:4] = group["b"][:] = 2

    def body() -> None:
        with tessarr.transaction(place) as tx:
            group: Any = tx.group
            assert group["a"][:4].tolist() == [1] * 4
            run_outside(change)
            assert group["b"][:].tolist() == [2] * 4

    with pytest.raises(ConflictError) as error:
        body()
    assert error.value.keys == ("a/c/0",)


def test_a_conflict_in_consolidated_metadata_is_a_conflict_and_says_of_no_rows_that_they_are_stored() -> None:
    store = MemoryStore()
    fill(store)
    tessarr.consolidate_metadata(store)
    other = tessarr.open_group(store, mode="r+")

    def body() -> None:
        with tessarr.transaction(store) as tx:
            group: Any = tx.group
            run_outside(lambda: other.attrs.update({"n": 1}))
            group["b"].append([1])

    with pytest.raises(ConflictError) as error:
        body()
    assert error.value.keys == ("zarr.json",)
    assert not getattr(error.value, "__notes__", [])


def test_what_a_publication_only_read_or_replaces_is_compared_too() -> None:
    bucket = Bucket()
    store = bucket.connect("one")
    make(store)

    def read() -> None:
        with tessarr.transaction(store) as tx:
            group: Any = tx.group
            group["a"][0:3]
            run_outside(lambda: tessarr.open_array(bucket.connect("two"), path="a", mode="r+").__setitem__(0, 5))
            group["g/b"][0:3]

    def create() -> None:
        with tessarr.transaction(store) as tx:
            tx.group.create_array("n", shape=(8,), chunks=(4,), dtype="i4", overwrite=True)
            run_outside(lambda: bucket.connect("two").set("n/c/1", b"of a program that knows no arrays"))

    with pytest.raises(ConflictError) as error:
        read()
    assert error.value.keys == ("a/c/0",)
    with tessarr.config.set({"zarr_python.overwrite_all": True}), pytest.raises(ConflictError) as error:
        create()
    assert error.value.keys == ("n/c/1",)
    assert "n" not in tessarr.open_group(store, mode="r")
