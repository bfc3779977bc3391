"""An array is not replaced, removed or moved while an append is storing its rows, where the store's locks reach all writers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.array_parts import append as appends
from tessarr.core.array_parts.region_io import write_call
from tessarr.core.stored import shape_locks
from tessarr.errors import ConflictError, NodeNotFoundError, TessarrError
from tessarr.stores.local import lock as filelock
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tests.waiting import PATIENCE_S

STORES: dict[str, Callable[[Path], Any]] = {
    "memory": lambda _: MemoryStore(),
    "local": LocalStore,
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    store = STORES[request.param](tmp_path)
    group = tessarr.create_group(store).create_group("g")
    group.create_array("a", data=np.arange(6), chunks=(4,), fill_value=0)
    group.create_array("b", shape=(1,), chunks=(1,), dtype="i4")
    return store


def _overwrite(store: Any) -> None:
    tessarr.create_array(store, name="g/a", shape=(24,), chunks=(4,), dtype="i8", fill_value=0, overwrite=True)


def _transact_delete(store: Any) -> None:
    with tessarr.transaction(store) as tx:
        del tx.group["g/a"]


def _transact_overwrite(store: Any) -> None:
    with tessarr.transaction(store) as tx:
        tx.group.create_array("g/a", shape=(24,), chunks=(4,), dtype="i8", fill_value=0, overwrite=True)


CHANGES: dict[str, Callable[[Any], object]] = {
    "overwrite": _overwrite,
    "overwrite the group": lambda store: tessarr.create_group(store, path="g", overwrite=True),
    "delete": lambda store: tessarr.open_group(store, mode="r+").__delitem__("g/a"),
    "delete the group": lambda store: tessarr.open_group(store, mode="r+").__delitem__("g"),
    "move": lambda store: tessarr.open_group(store, mode="r+").move("g/a", "g/c"),
    "move the group": lambda store: tessarr.open_group(store, mode="r+").move("g", "h"),
    "delete in a transaction": _transact_delete,
    "overwrite in a transaction": _transact_overwrite,
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_an_append_are_in_no_other_array(store: Any, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When an append is about to store its rows, another thread makes the change, as far as it can without waiting."""
    array = tessarr.open_array(store, path="g/a", mode="r+")
    original_lock = type(store).lock
    outcome: list[BaseException] = []
    begun: list[threading.Thread] = []
    ended_or_waits = threading.Event()

    def change_now() -> None:
        try:
            CHANGES[change](store)
        except TessarrError as error:
            outcome.append(error)
        finally:
            ended_or_waits.set()

    def lock(store: Any, key: str) -> Any:
        if begun and threading.current_thread() is begun[0] and key == "g/a/shape":
            ended_or_waits.set()
        return original_lock(store, key)

    def interrupted(*arguments: Any) -> Any:
        begun.append(threading.Thread(target=change_now))
        begun[0].start()
        assert ended_or_waits.wait(PATIENCE_S)
        return write_call(*arguments)

    monkeypatch.setattr(type(store), "lock", lock)
    monkeypatch.setattr(appends, "write_call", interrupted)
    try:
        shape = array.append(np.full(9, 7))
    except ConflictError:
        shape = None
    begun[0].join()
    assert not outcome or (change.endswith("transaction") and isinstance(outcome[0], ConflictError))
    _look(store, change, shape, committed=not outcome)


def _look(store: Any, change: str, shape: Any, *, committed: bool) -> None:
    """Compare what is stored with what either order of the two leaves."""
    rows = [*range(6), *[7] * 9]
    if not committed:
        assert tessarr.open_array(store, path="g/a")[:].tolist() == rows
        return
    if change.startswith("overwrite"):
        if not change.endswith("group"):
            assert tessarr.open_array(store, path="g/a")[:].tolist() == [0] * 24
    elif change.startswith("move"):
        moved = tessarr.open_array(store, path="h/a" if change.endswith("group") else "g/c")
        assert moved[:].tolist() == (rows if shape else rows[:6])
    kept = {"g/a/zarr.json", "g/a/c/0"} if change == "overwrite" else set[str]()
    left = [key for key in store.list() if key.startswith("g/a/") and key not in kept]
    assert not [key for key in left if key != "g/a/zarr.json"]
    if not change.startswith("overwrite"):
        with pytest.raises(NodeNotFoundError):
            tessarr.open_array(store, path="g/a")


@pytest.mark.parametrize("change", CHANGES)
def test_no_lock_file_stays(tmp_path: Path, change: str) -> None:
    group = tessarr.create_group(tmp_path).create_group("g")
    group.create_array("a", data=np.arange(6), chunks=(4,), fill_value=0)
    CHANGES[change](LocalStore(tmp_path))
    hidden = [name for _, _, names in os.walk(tmp_path) for name in names if filelock.is_hidden(name)]
    assert not hidden


def test_the_lock_of_a_replaced_array_releases_no_lock_of_the_new_one(tmp_path: Path) -> None:
    """Who holds the lock of a value of the old directory must not remove the lock file of that value in the new one."""
    store = LocalStore(tmp_path)
    tessarr.create_array(store, name="a", shape=(1,), dtype="i4")
    with ExitStack() as new:
        with store.lock("a/other"):
            tessarr.create_array(store, name="a", shape=(2,), dtype="i4", overwrite=True)
            lock = tmp_path / "a" / filelock.lock_name("other")
            descriptor = filelock.acquire(str(lock))
            new.callback(filelock.release, str(lock), descriptor)
        assert lock.exists()
    assert not lock.exists()


def test_of_a_hierarchy_of_many_arrays_none_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_locks, "MOST", 1)
    store = LocalStore(tmp_path)
    group = tessarr.create_group(store).create_group("g")
    for name in ("a", "b"):
        group.create_array(name, shape=(1,), dtype="i4")
    with store.lock("g/a/shape"):
        del tessarr.open_group(store, mode="r+")["g"]
    assert not tessarr.open_group(store)


class OwnStore(LocalStore):
    """A subclass, which does not promise that values are plain files (`PlainFiles`)."""


@pytest.mark.parametrize("store_class", [LocalStore, OwnStore])
@pytest.mark.parametrize("change", ["overwrite the group", "delete the group", "move the group"])
def test_two_paths_to_one_array_have_one_lock(tmp_path: Path, change: str, store_class: type[LocalStore]) -> None:
    group = tessarr.create_group(tmp_path).create_group("g")
    group.create_array("a", data=np.arange(6), chunks=(4,), fill_value=0)
    (tmp_path / "g" / "b").symlink_to("a")
    CHANGES[change](store_class(tmp_path))
    assert not list((tmp_path / "g").glob("*/zarr.json"))
