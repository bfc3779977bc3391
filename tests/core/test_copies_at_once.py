"""Several copies to one place: one waits for the other, or is refused. The simulation has the schedules."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.claims.one_copy import one_copy
from tessarr.errors import ConflictError, TessarrError
from tessarr.stores.database.sqlite import SQLiteStore
from tessarr.stores.local.store import LocalStore
from tessarr.tools.gc import gc
from tests.core.test_stale_writers import STORES
from tests.simulation.simulator import Bucket, Client

PLACES = ("", "n", "g/n")


def hierarchy(number: int) -> Any:
    group = tessarr.create_group(None)
    group.create_array("n", data=np.full(6, number), chunks=(2,))
    group.create_group("g").create_array("n", data=np.full(6, number), chunks=(2,))
    return group


def copy_to(store: Any, path: str, source: Any) -> None:
    if not path:
        tessarr.copy_all(source, tessarr.open_group(store, mode="r+"), if_exists="replace")
    else:
        group, _, name = path.rpartition("/")
        dest = tessarr.open_group(store, path=group, mode="r+")
        tessarr.copy(source[path], dest, name, if_exists="replace")
    tessarr.copy_store(source.store, store, source_path=path, dest_path=path, if_exists="replace")


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("path", PLACES)
def test_a_copy_leaves_no_lock_and_no_claim(kind: str, path: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path)
    copied = hierarchy(1)
    tessarr.copy_store(copied.store, store)
    keys = sorted(store.list())
    copy_to(store, path, hierarchy(2))
    assert sorted(store.list()) == keys
    assert tessarr.open_array(store, path=path or "n", mode="r")[:].tolist() == [2] * 6
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize("make", [lambda _: Client("one", Bucket()), lambda path: SQLiteStore(path / "a.db")])
@pytest.mark.parametrize("path", PLACES)
def test_without_locks_that_reach_it_a_copy_of_another_process_is_refused(make: Any, path: str, tmp_path: Path) -> None:
    store = make(tmp_path)
    tessarr.copy_store(hierarchy(1).store, store)
    with one_copy(store, path):
        before = {key: store.get(key) for key in store.list()}
        (claim,) = (key for key in before if key.endswith("/copy"))
    store.set(claim, b"of another process, which was killed")
    with pytest.raises(ConflictError, match="another client is copying to this place") as caught:
        copy_to(store, path, hierarchy(2))
    assert caught.value.key == claim
    assert {key: store.get(key) for key in store.list()}.keys() == before.keys()
    assert list(tessarr.open_group(store, mode="r")) == ["g", "n"]
    gc(store, grace=timedelta(0))
    copy_to(store, path, hierarchy(3))
    assert tessarr.open_array(store, path=path or "n", mode="r")[:].tolist() == [3] * 6


@pytest.mark.parametrize("kind", STORES)
def test_threads_that_copy_wait_for_each_other(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path)
    tessarr.copy_store(hierarchy(1).store, store)
    sources = [hierarchy(number) for number in range(2, 6)]
    threads = [threading.Thread(target=copy_to, args=(store, "g/n", source)) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tessarr.open_array(store, path="g/n", mode="r")[:].tolist())) == 1


def test_a_copy_that_fails_lets_the_next_one_go_on(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    tessarr.create_group(store)
    with pytest.raises((TessarrError, TypeError)):
        tessarr.copy(hierarchy(1)["n"], tessarr.open_group(store), "n", dtype="no such type")
    copy_to(store, "n", hierarchy(2))


def test_in_a_transaction_a_copy_holds_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    tessarr.copy_store(hierarchy(1).store, store)
    with tessarr.transaction(store) as tx:
        tessarr.copy(hierarchy(2)["n"], tx.group, "n", if_exists="replace")
        with one_copy(store, "n"):
            pass
    assert tessarr.open_array(store, path="n", mode="r")[:].tolist() == [2] * 6
