"""The table of the page about transactions against the stores, and transactions in a Redis server."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.errors import ConflictError, SnapshotChangedError, UnsupportedOperationError
from tessarr.storage import Store
from tessarr.stores.database.redis import RedisStore
from tessarr.stores.protocols import Commit, ConditionalSet, List, Snapshot
from tessarr.stores.url import open_url
from tests.docs.pages import ROOT
from tests.stores.remote import test_abilities
from tests.stores.remote.servers import Server

_number = itertools.count()


def _table() -> dict[str, list[str]]:
    """The rows of the table under "Where"."""
    lines = (
        (ROOT / "docs" / "transactions.md")
        .read_text(encoding="utf-8")
        .partition("\n## Where\n")[2]
        .lstrip()
        .partition("\n\n")[0]
        .splitlines()
    )
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert rows[0] == ["store", "transactions", "`durable=True`", "snapshots"]
    return {name: cells for name, *cells in rows[2:]}


TABLE = _table()
PUBLISHING = ("S3", "Google Cloud Storage", "Azure", "MongoDB")
"""Stores in which a transaction can append, and change attributes."""


def test_every_store_has_a_row() -> None:
    assert TABLE.keys() == test_abilities.STORES.keys()


@pytest.mark.parametrize("name", TABLE)
def test_a_row_is_true(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    store = test_abilities.STORES[name](request, tmp_path)
    transactions, durable, snapshots = TABLE[name]
    publishes = name in PUBLISHING
    assert isinstance(store, Commit) == (transactions[0] != "–" and not publishes)
    assert isinstance(store, Snapshot) == (snapshots == "values are kept")
    if not isinstance(store, Snapshot):
        assert (isinstance(store, ConditionalSet) and isinstance(store, List)) == (snapshots == "changes are noticed")
    if transactions[0] == "–":
        with pytest.raises((UnsupportedOperationError, PermissionError)), tessarr.transaction(store):
            pass
        return
    if publishes:
        tessarr.create_group(store).create_array("t", shape=(0,), chunks=(2,), dtype="i8")
    with tessarr.transaction(store) as tx:
        if publishes:
            assert tx.plan().level == "publish"
            tx.group["t"].append([1, 2, 3])
        else:
            tx.group.create_array("t", data=[1, 2, 3])
        tx.group.attrs["n"] = 1
    array: Any = tessarr.open_array(store, path="t", mode="r+")
    change: Callable[[], None] = lambda: durable_write(store)  # noqa: E731
    if durable.startswith("refused"):
        with pytest.raises(UnsupportedOperationError):
            change()
    else:
        change()
    taken: Any = tessarr.snapshot(store)
    with taken:
        old = taken["t"][:].tolist()
        with tessarr.transaction(store) as tx:
            root: Any = tx.group
            root["t"].append([7]) if publishes else root["t"].set_basic_selection(..., 7)
        array.refresh()
        assert array[:].tolist() == ([1, 2, 3, 7] if publishes else [7, 7, 7])
        if snapshots == "values are kept":
            assert taken["t"][:].tolist() == old
        else:
            with pytest.raises(SnapshotChangedError):
                taken["t"][:]


def durable_write(store: Store) -> None:
    with tessarr.transaction(store, durable=True) as tx:
        tx.group.attrs["n"] = 2


@pytest.fixture
def place(redis: Server) -> RedisStore:
    store = open_url(f"redis://{redis.address}/0/transactions{next(_number)}")
    assert isinstance(store, RedisStore)
    root = tessarr.create_group(store)
    for name in ("t", "u"):
        root.create_array(name, data=[1] * 6, chunks=(2,), fill_value=0)
    return store


def test_a_commit_to_redis_changes_everything_or_nothing(place: RedisStore) -> None:
    other: Any = open_url(place.url)

    def body(outside: Callable[[], object]) -> None:
        with tessarr.transaction(place) as tx:
            root: Any = tx.group
            root["t"][0:3] = 5  # a part of the second chunk: reads the rest
            root["u"][0:2] = 0  # removes a value
            root["u"].append([9])
            Context().run(outside)

    def still_old() -> None:
        assert tessarr.open_array(other, path="t", mode="r")[:].tolist() == [1] * 6

    body(still_old)
    found: Any = tessarr.open_group(other, mode="r")
    assert found["t"][:].tolist() == [5, 5, 5, 1, 1, 1]
    assert found["u"][:].tolist() == [0, 0, 1, 1, 1, 1, 9]
    assert place.get("u/c/0") is None
    before = {key: bytes(place.get(key) or b"") for key in place.list()}
    with pytest.raises(ConflictError) as caught:
        body(lambda: tessarr.open_array(other, path="t", mode="r+").__setitem__(3, 8))
    assert caught.value.keys == ("t/c/1",)
    after = {key: bytes(place.get(key) or b"") for key in place.list()}
    assert {key for key in before | after if before.get(key) != after.get(key)} == {"t/c/1"}


def test_a_chunk_that_appears_where_a_commit_to_redis_moves_a_node_is_a_conflict(place: RedisStore) -> None:
    other: Any = open_url(place.url)
    tessarr.open_array(other, path="t", mode="r+").store.delete("t/c/2")

    def body(outside: Callable[[], object]) -> None:
        with tessarr.transaction(place) as tx:
            tx.group.move("t", "moved")
            Context().run(outside)

    with pytest.raises(ConflictError, match="added values") as caught:
        body(lambda: tessarr.open_array(other, path="t", mode="r+").__setitem__(slice(4, 6), 8))
    assert caught.value.keys == ("t/c/2",)
    assert sorted(tessarr.open_group(other, mode="r")) == ["t", "u"]
    body(lambda: tessarr.open_array(other, path="u", mode="r+").__setitem__(0, 8))
    assert tessarr.open_array(other, path="moved", mode="r")[:].tolist() == [1] * 4 + [8] * 2


def test_a_commit_whose_answer_was_lost_is_one_commit(place: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    call = place._call

    def twice(key: str, command: Callable[[Any], Any]) -> Any:
        call(key, command)
        return call(key, command)

    with tessarr.transaction(place) as tx:
        root: Any = tx.group
        root["t"][0:3] = 5
        monkeypatch.setattr(place, "_call", twice)
    assert tessarr.open_array(place, path="t", mode="r")[:].tolist() == [5, 5, 5, 1, 1, 1]
