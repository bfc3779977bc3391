"""Moving, deleting and replacing a node outside a transaction: before it or after it, never in the middle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ConflictError
from tessarr.stores.local import lock
from tessarr.stores.local.transactions import commit, recovery
from tests.transactions.cuts import process
from tests.transactions.test_cuts import change, commit_point, copy_of, hidden, make, steps_of_a_commit

TREES: dict[str, Callable[[Any], object]] = {
    "move": lambda root: root.move("t", "s"),
    "delete": lambda root: root.__delitem__("t"),
    "replace": lambda root: root.create_array("t", shape=(2,), dtype="i4", overwrite=True),
    "clear": lambda root: root.store.delete_prefix(""),
    "replace the root": lambda root: tessarr.create_array(root.store, data=[3], overwrite=True),
}


@pytest.mark.parametrize("how", TREES)
def test_it_waits_for_a_transaction_that_is_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    make(tmp_path / "a")
    root: Any = tessarr.open_group(tmp_path / "a", mode="r+")
    asks, ended = threading.Event(), threading.Event()
    acquire, finish = lock.acquire, recovery.finish

    def acquired(path: str, **options: Any) -> int:
        if threading.current_thread() is moving:
            asks.set()
        return acquire(path, **options)

    def move() -> None:
        try:
            TREES[how](root)
        finally:
            ended.set()
            asks.set()

    def carried_out(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(commit, "finish", finish)
        moving.start()
        assert asks.wait(60)
        assert not ended.is_set(), "it did not wait"
        finish(*arguments, **options)

    moving = threading.Thread(target=move)
    monkeypatch.setattr(lock, "acquire", acquired)
    monkeypatch.setattr(commit, "finish", carried_out)
    change(tmp_path / "a")
    moving.join(60)
    if how == "clear":
        assert list(root.store.list()) == []
        return
    if how == "replace the root":
        assert tessarr.open_array(tmp_path / "a", mode="r")[:].tolist() == [3]
        return
    found: Any = tessarr.open_group(tmp_path / "a", mode="r", use_consolidated=False)
    assert found["u"][:].tolist() == [2, 2, 8, 0], "the rest of the transaction is there"
    if how == "move":
        assert found["s"][:].tolist() == [7, 7, 7, 7, 1, 1, 9], "the array moved with what the transaction wrote"
    assert ("t" in found) == (how == "replace")
    # The lock of the shape is held until after the commit; released under its former name, its empty file stays.
    assert {*hidden(tmp_path / "a")} <= {".shape.tessarr-lock"}


@pytest.mark.parametrize("how", ["move", "delete", "replace"])
def test_it_completes_a_transaction_whose_process_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    template = tmp_path / "template.zarr"
    make(template)
    steps = steps_of_a_commit(template, monkeypatch, durable=False)
    first = commit_point(template, monkeypatch, steps)
    for ends_at in range(first, steps, 4):
        place = copy_of(template, "cut")
        store = tessarr.storage.LocalStore(place)
        with process(monkeypatch, ends_at):
            change(place)
        if how == "move":
            assert store.rename_prefix("t/", "s/")
            assert tessarr.open_array(place / "s", mode="r")[:].tolist() == [7, 7, 7, 7, 1, 1, 9], ends_at
        elif how == "delete":
            store.delete_prefix("t/")
        else:
            store.replace_prefix("t/", {"t/x": b"1"})
        found: Any = tessarr.open_group(place, mode="r", use_consolidated=False)
        assert found["u"][:].tolist() == [2, 2, 8, 0], ends_at
        assert sorted(store.list_prefix("t/")) == (["t/x"] if how == "replace" else [])
        assert not (place / ".tessarr-journal").exists()


def test_a_transaction_of_a_node_that_was_moved_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    make(tmp_path / "a")

    def body() -> None:
        with tessarr.transaction(tmp_path / "a") as tx:
            group: Any = tx.group
            group["t"][:] = 7
            group["u"][:] = 7
            mover = threading.Thread(target=lambda: tessarr.open_group(tmp_path / "a", mode="r+").move("t", "s"))
            mover.start()
            mover.join()

    with pytest.raises(ConflictError):
        body()
    found: Any = tessarr.open_group(tmp_path / "a", mode="r", use_consolidated=False)
    assert found["s"][:].tolist() == [1] * 6
    assert found["u"][:].tolist() == [2] * 4
    assert np.array_equal(sorted(found), ["old", "s", "u"])
