"""Key/value databases under the one contract: SQLite, LMDB, DBM, Redis, and MongoDB's client."""

from __future__ import annotations

import dbm.dumb
import gc
import itertools
import os
import pickle
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mongomock
import pymongo.errors
import pytest
from redis.backoff import NoBackoff
from redis.connection import Connection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from tessarr.errors import ConflictError, StoreError, UnsupportedOperationError
from tessarr.stores.base import Listing
from tessarr.stores.buffers import digest_version
from tessarr.stores.database import lmdb
from tessarr.stores.database.dbm import DBMStore
from tessarr.stores.database.lmdb import LMDBStore
from tessarr.stores.database.mongodb import MongoDBStore
from tessarr.stores.database.redis import RedisStore
from tessarr.stores.database.sqlite import SQLiteStore
from tessarr.stores.url import open_url
from tessarr.types import Buffer
from tests.stores.contract import ConditionalContract, SharedContract, StoreContract, increment, plain
from tests.stores.remote.servers import Server

_number = itertools.count()


class TestSQLite(StoreContract, ConditionalContract, SharedContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> SQLiteStore:
        return SQLiteStore(tmp_path / "data.sqlite")

    def test_connections_of_threads_that_ended_are_closed(self, store: SQLiteStore) -> None:
        store.set("k", b"1")
        made: list[sqlite3.Connection] = []

        def work() -> None:
            assert store.get("k") == b"1"
            made.append(store._connection())

        for _ in range(5):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        gc.collect()
        for connection in made:
            with pytest.raises(sqlite3.ProgrammingError, match="closed"):
                connection.execute("SELECT 1")
        assert store.get("k") == b"1"
        assert len(store._connections) == 1
        store.close()
        assert store.get("k") == b"1"


class TestLMDB(StoreContract, ConditionalContract, SharedContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LMDBStore:
        return LMDBStore(tmp_path / "data.lmdb")

    def test_a_store_that_is_closed_ends_no_snapshot_of_another_one(self, store: LMDBStore) -> None:
        store.set("k", b"1")
        snapshot = store.snapshot()
        with LMDBStore(store.path) as other:
            other.set("k", b"2")
        store.close()
        assert (snapshot.get("k"), store.get("k")) == (b"1", b"2")
        store.close()
        snapshot.close()
        assert not [key for key in lmdb._OPEN if key[1] == store.path]
        assert store.get("k") == b"2"

    def test_a_store_that_is_closed_ends_no_transaction_of_another_thread(self, store: LMDBStore) -> None:
        def change(old: Buffer | None) -> Buffer | None:
            LMDBStore(store.path).close()
            return b"2"

        store.update("k", change)
        assert store.get("k") == b"2"

    def test_what_is_read_through_a_read_only_store_is_not_ended_by_one_that_writes(self, store: LMDBStore) -> None:
        store.set("k", b"1")
        store.close()
        snapshot = LMDBStore(store.path, read_only=True).snapshot()
        with pytest.raises(StoreError, match="opened read-only"):
            LMDBStore(store.path)
        assert snapshot.get("k") == b"1"
        snapshot.close()
        LMDBStore(store.path).set("k", b"2")

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
    def test_a_forked_process_is_refused_and_takes_nothing_from_the_snapshot_of_its_parent(
        self, store: LMDBStore
    ) -> None:
        store.set("k", b"1")
        snapshot = store.snapshot()
        child = os.fork()
        if not child:
            refused = 0
            for one in (store, snapshot):
                try:
                    one.get("k")
                except UnsupportedOperationError:
                    refused += 1
            snapshot.close()
            store.close()
            os._exit(0 if refused == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
        (shared,) = (shared for key, shared in lmdb._OPEN.items() if key[:2] == (os.getpid(), store.path))
        assert f"{os.getpid()}" in shared.environment.readers()
        assert snapshot.get("k") == b"1"
        snapshot.close()

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
    def test_a_forked_process_uses_a_store_that_was_closed_before(self, store: LMDBStore) -> None:
        store.set("k", b"1")
        store.close()
        child = os.fork()
        if not child:
            os._exit(0 if store.get("k") == b"1" else 1)
        assert os.waitpid(child, 0)[1] == 0


class TestDBM(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> DBMStore:
        return DBMStore(tmp_path / "data.dbm")


class TestPortableDBM(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> DBMStore:
        return DBMStore(tmp_path / "data.dumb", open=dbm.dumb.open)


class TestRedis(StoreContract, ConditionalContract, SharedContract):
    @pytest.fixture
    def store(self, redis: Server) -> RedisStore:
        return open_url(f"redis://{redis.address}/0/t{next(_number)}/[x]*")  # type: ignore[return-value]


class TestMongoDB(StoreContract, ConditionalContract):
    """No registry offers a MongoDB server: the client talks to mongomock, which answers as one does, in this process.

    What that leaves open: the wire, real concurrency between processes, and the size limit.
    """

    @pytest.fixture
    def store(self) -> MongoDBStore:
        return MongoDBStore(client=mongomock.MongoClient())

    def test_a_value_over_the_document_limit_says_so(self, store: MongoDBStore) -> None:
        with pytest.raises(StoreError, match="too large for a MongoDB document"):
            store.set("k", bytes(17 * 2**20))


@pytest.mark.parametrize("times", [1, 100])
def test_of_two_clients_that_store_a_new_value_in_mongodb_none_gets_an_error(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may refuse one of two upserts of one key at the same time (E11000)."""
    store, left = MongoDBStore(client=mongomock.MongoClient()), [times]
    original = mongomock.Collection.replace_one

    def refused(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise pymongo.errors.DuplicateKeyError("E11000 duplicate key error", 11000)
        return original(*arguments, **options)

    monkeypatch.setattr(mongomock.Collection, "replace_one", refused)
    if times > 10:
        with pytest.raises(StoreError, match="E11000"):
            store.set("k", b"1")
    else:
        store.set("k", b"1")
        assert plain(store.get("k")) == b"1"


def test_a_sqlite_file_of_zarr_python_2_opens(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "old.sqlite") as connection:
        connection.execute("CREATE TABLE zarr(k TEXT PRIMARY KEY, v BLOB)")
        connection.execute("INSERT INTO zarr VALUES ('a/.zarray', ?), ('a/0.0', ?)", (b"{}", b"1234"))
    connection.close()
    store = SQLiteStore(tmp_path / "old.sqlite", read_only=True)
    assert plain(store.get("a/.zarray")) == b"{}"
    assert sorted(store.list_prefix("a/")) == ["a/.zarray", "a/0.0"]
    store.close()


def test_a_failed_sqlite_replacement_leaves_the_old_values(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "x.sqlite")
    store.set("a/old", b"1")
    with pytest.raises(TypeError):
        store.replace_prefix("a/", {"a/new": b"2", "a/bad": object()})  # type: ignore[dict-item]
    assert sorted(store.list()) == ["a/old"]
    store.close()


@pytest.mark.parametrize("url", ["sqlite:{}/x.sqlite", "lmdb:///{}/x.lmdb", "dbm:{}/x"])
def test_a_url_opens_a_database_and_its_own_url_opens_it_again(url: str, tmp_path: Path) -> None:
    with open_url(url.format(tmp_path).replace("////", "///")) as store:
        store.set("k", b"1")
    with open_url(store.url) as again:
        assert again == store
        assert plain(again.get("k")) == b"1"


@pytest.mark.parametrize("kind", [SQLiteStore, LMDBStore])
def test_a_missing_database_is_not_made_for_reading(kind: type[SQLiteStore | LMDBStore], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such"):
        kind(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_all_below_a_prefix_is_removed_by_one_command(redis: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_url(f"redis://{redis.address}/0/t{next(_number)}")
    for number in range(1200):
        store.set(f"a/{number}", b"1")
    store.set("ab", b"2")
    sent: list[str] = []
    call = RedisStore._call

    def counted(self: RedisStore, key: str, command: Any) -> Any:
        sent.append(key)
        return call(self, key, command)

    monkeypatch.setattr(RedisStore, "_call", counted)
    store.delete_prefix("a/")
    assert len(sent) == 1
    assert [*store.list()] == ["ab"]


def test_a_redis_password_is_in_no_repr_url_error_or_pickle(redis: Server) -> None:
    options = {"retry": Retry(NoBackoff(), 0)}
    store = open_url(f"redis://someone:hush-hush@{redis.address}/0/x", storage_options=options)
    with pytest.raises(StoreError) as caught:
        store.get("k")
    for text in (repr(store), store.url, str(caught.value), repr(pickle.dumps(store))):
        assert "hush-hush" not in text


def test_a_dead_redis_is_an_error_and_no_missing_key(tmp_path: Path) -> None:
    store = open_url("redis://127.0.0.1:1/0/x", storage_options={"retry": Retry(NoBackoff(), 0)})
    with pytest.raises(StoreError, match="Redis failed"):
        store.get("k")


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens after the next answers of Redis are lost, and before the client sends its command again."""
    left: list[Callable[[], object]] = []
    read = Connection.read_response

    def reading(self: Any, *arguments: Any, **options: Any) -> Any:
        answer = read(self, *arguments, **options)
        if left and not (isinstance(answer, bytes) and answer == b"OK"):  # that of a connection which is made
            left.pop(0)()
            raise RedisConnectionError("the answer was lost")
        return answer

    monkeypatch.setattr(Connection, "read_response", reading)
    return left


@pytest.mark.parametrize("prefix", ["", "t"])
def test_a_conditional_write_of_redis_whose_answer_was_lost_is_carried_out_once(
    redis: Server, lost: list[Callable[[], object]], prefix: str
) -> None:
    options = {"prefix": f"{prefix}{next(_number)}" if prefix else ""}
    store: Any = open_url(f"redis://{redis.address}/7", storage_options=options)
    other: Any = open_url(f"redis://{redis.address}/7", storage_options=options)
    first = store.set("n", b"1", if_match=None)
    lost.append(lambda: None)
    second = store.set("n", b"2", if_match=first)
    lost.append(lambda: other.set("n", b"5"))
    assert store.set("n", b"3", if_match=second) == digest_version(b"3")  # and then it was replaced
    assert plain(store.get("n")) == b"5"
    lost.append(lambda: other.set("n", b"6"))
    store.commit({"n": b"4", "m": b"1"}, {"n": digest_version(b"5")}, listed=[""])
    assert [plain(store.get(key)) for key in ("n", "m")] == [b"6", b"1"]
    lost.append(lambda: None)
    store.delete_if("n", digest_version(b"6"))
    with pytest.raises(ConflictError):
        store.commit({"n": b"4"}, {"n": digest_version(b"5")}, listed=[""])
    with pytest.raises(ConflictError):
        store.commit({"k": b"4"}, {"n": None}, listed=[""])
    assert [*store.list()] == [*store.list_prefix("")] == ["m"]
    assert store.list_dir("") == Listing(["m"], [])
    store.delete_prefix("")


def test_an_update_of_redis_whose_answer_was_lost_is_carried_out_once(
    redis: Server, lost: list[Callable[[], object]]
) -> None:
    store: Any = open_url(f"redis://{redis.address}/0/t{next(_number)}")
    other: Any = open_url(f"redis://{redis.address}/0/{store.prefix}")
    store.set("n", b"1")
    version = store.version("n")
    for then, found in [(lambda: None, b"2"), (lambda: other.set("n", b"9"), b"9")]:

        def change(old: Buffer | None, then: Callable[[], object] = then) -> Buffer | None:
            lost.append(then)
            return increment(old)

        store.update("n", change)
        assert plain(store.get("n")) == found
    assert store.version("n") != version
