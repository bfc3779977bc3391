"""A transaction of mode *swap*: the root is exchanged with a second tree, and no write of others is lost (I1, I2, I8)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import (
    ConflictError,
    JournalError,
    PendingCommitError,
    SnapshotChangedError,
    UnsupportedOperationError,
)
from tessarr.storage import LocalStore, MemoryStore, PrefixStore
from tessarr.stores.local import exchange
from tessarr.stores.local import lock as filelock
from tessarr.stores.local.lock import is_hidden
from tessarr.stores.local.swap import swap_root as swaps
from tessarr.stores.local.transactions import late
from tests.transactions.cuts import process
from tests.waiting import until

pytestmark = pytest.mark.skipif(exchange._renameat2() is None, reason="RENAME_EXCHANGE is a call of Linux")
Act = Callable[[], object]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "data.zarr"
    root = tessarr.create_group(place, attributes={"title": "old"})
    for name in ("t", "u"):
        root.create_array(name, data=np.ones(8, "i4"), chunks=(2,), fill_value=0, compressors=None)
    return place


def values(place: Path, name: str) -> list[int]:
    found: list[int] = tessarr.open_array(place, path=name, mode="r")[:].tolist()
    return found


def hidden(place: Path) -> list[str]:
    return [name for _, *both in os.walk(place.parent) for name in (*both[0], *both[1]) if is_hidden(name)]


def change(place: Path) -> None:
    """Change a whole chunk, a part of one, and attributes."""
    with tessarr.transaction(place, mode="swap") as tx:
        group: Any = tx.group
        group["t"][0:2] = 7
        group["t"][2] = 7
        group.attrs["title"] = "new"


def before(monkeypatch: pytest.MonkeyPatch, step: str, act: Act) -> None:
    """Call `act` in another thread before a step of the commit."""
    original = getattr(swaps._Swap, step)

    def later(swap: Any) -> None:
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()
        original(swap)

    monkeypatch.setattr(swaps._Swap, step, later)


def test_the_root_is_exchanged_once_and_nothing_is_left(place: Path) -> None:
    inode = place.stat().st_ino
    unchanged = (place / "u" / "c" / "1").stat().st_ino
    (place / "README.txt").write_text("also a file")
    with tessarr.transaction(place, mode="swap") as tx:
        tx.group.create_array("new", data=[1], chunks=(1,))
        del tx.group["t"]
        plan = tx.plan()
    assert (plan.level, plan.durable) == ("swap", True)
    assert plan.links == 4 + 1 + 1 + 1  # chunks and the document of "u", the root's document, the text
    assert sorted(tessarr.open_group(place, mode="r")) == ["new", "u"]
    assert place.stat().st_ino != inode
    assert (place / "u" / "c" / "1").stat().st_ino == unchanged
    assert (place / "README.txt").read_text() == "also a file"
    assert not (place / "t").exists()
    assert hidden(place) == []


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_what_others_write_after_it_was_linked_is_carried_over(
    place: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    with tessarr.config.set({"engine": engine}):
        t, u = (tessarr.open_array(place, path=name, mode="r+") for name in ("t", "u"))

        def act() -> None:
            u[0:2] = 5  # replaced
            u[2:4] = 0  # removed, as it is fill value
            t[2:4] = 6  # the transaction has read this chunk, to change a part of it: the write comes after it
            t[0:2] = 6  # not this one: the write was before it
            (place / "u" / "c" / "9").write_bytes(b"made")

        before(monkeypatch, "publish", act)
        change(place)
    assert values(place, "u") == [5, 5, 0, 0, 1, 1, 1, 1]
    assert not (place / "u" / "c" / "1").exists()
    assert (place / "u" / "c" / "9").read_bytes() == b"made"
    assert values(place, "t") == [7, 7, 6, 6, 1, 1, 1, 1]
    assert hidden(place) == []


def test_what_others_write_is_carried_over_by_a_recovery_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    u = tessarr.open_array(place, path="u", mode="r+")

    def act() -> None:
        u[0:2] = 5
        u[2:4] = 0

    before(monkeypatch, "publish", act)
    again = 0
    expected = [5, 5, 0, 0, 1, 1, 1, 1]

    def end(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(late, "sync_names", end)
        with pytest.raises(PendingCommitError, match="old tree"):
            change(place)
    assert values(place, "u") == expected, "who only reads sees late writes too"
    assert values(place, "t")[:3] == [7, 7, 7]
    assert (place / ".tessarr-journal").exists()
    while True:  # a recovery that ends at each of its steps
        with process(monkeypatch, again) as recovering:
            tessarr.open_group(place, mode="r+")
        assert values(place, "u") == expected, again
        assert values(place, "t")[:3] == [7, 7, 7]
        if not recovering.is_dead:
            break
        again += 1
    assert again > 10
    LocalStore(place).remove_leftovers(older_than_s=0)
    assert hidden(place) == []


def test_a_later_write_to_the_new_tree_is_not_undone_by_a_late_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    u = tessarr.open_array(place, path="u", mode="r+")
    before(monkeypatch, "publish", lambda: u.__setitem__(slice(0, 2), 5))
    finish = late.finish

    def later(*arguments: Any) -> None:
        thread = threading.Thread(target=lambda: u.__setitem__(slice(0, 2), 6))
        thread.start()
        thread.join()
        finish(*arguments)

    monkeypatch.setattr(late, "finish", later)
    change(place)
    assert values(place, "u")[:2] == [6, 6]
    assert hidden(place) == []


def test_a_change_of_what_was_read_is_a_conflict_and_nothing_is_left(place: Path) -> None:
    inode = place.stat().st_ino
    tx = tessarr.transaction(place, mode="swap")

    def body() -> None:
        with tx:
            group: Any = tx.group
            group["t"][0] = 5
            thread = threading.Thread(target=lambda: tessarr.open_array(place, path="t", mode="r+").__setitem__(1, 9))
            thread.start()
            thread.join()

    with pytest.raises(ConflictError) as caught:
        body()
    assert caught.value.keys == ("t/c/0",)
    assert place.stat().st_ino == inode
    assert values(place, "t")[:2] == [1, 9]
    assert hidden(place) == []


def test_a_file_that_is_being_written_is_put_in_place_by_its_writer(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, target = (place / "u" / "c" / name for name in (filelock.temporary_name("0"), "0"))
    temporary.write_bytes(b"\5\0\0\0")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_APPEND)
    before(monkeypatch, "publish", lambda: os.write(descriptor, b"\6\0\0\0"))
    change(place)
    os.close(descriptor)
    temporary.rename(target)
    assert values(place, "u")[:2] == [5, 6]
    assert hidden(place) == []


def test_a_new_chunk_that_is_written_through_an_open_directory_is_not_lost(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `rust/src/create.rs` does: a lock file becomes the value."""
    folder = os.open(place / "u" / "c", os.O_RDONLY)
    lock = filelock.lock_name("7")
    held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666, dir_fd=folder)
    finish = late.finish

    def later(*arguments: Any) -> None:
        filelock._try(held)
        thread = threading.Thread(target=finish, args=arguments)
        thread.start()
        os.write(held, b"12345678")
        os.rename(lock, "7", src_dir_fd=folder, dst_dir_fd=folder)
        os.close(held)
        thread.join()

    monkeypatch.setattr(late, "finish", later)
    change(place)
    os.close(folder)
    assert (place / "u" / "c" / "7").read_bytes() == b"12345678"
    assert hidden(place) == []


def test_an_append_and_an_update_that_began_before_are_waited_for_and_later_ones_wait(place: Path) -> None:
    u = tessarr.open_array(place, path="u", mode="r+")
    failed: list[BaseException] = []
    stop = threading.Event()

    def work(do: Callable[[int], object]) -> None:
        try:
            number = 0
            while not stop.is_set():
                number += 1
                do(number)
        except BaseException as error:
            failed.append(error)

    done = {"appends": 0, "updates": 0}

    def append(number: int) -> None:
        u.append(np.array([number], "i4"))
        done["appends"] = number

    def update(number: int) -> None:
        tessarr.open_array(place, path="t", mode="r+")[7] = number
        done["updates"] = number

    threads = [threading.Thread(target=work, args=(do,)) for do in (append, update)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        seen = dict(done)
        change(place)
        until(partial(_have_gone_on, done, seen, failed), "the others to go on")
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert values(place, "u")[8:] == [*range(1, done["appends"] + 1)]
    assert values(place, "t") == [7, 7, 7, 1, 1, 1, 1, done["updates"]]
    assert hidden(place) == []


def _have_gone_on(done: dict[str, int], seen: dict[str, int], failed: list[BaseException]) -> bool:
    return bool(failed) or all(done[name] > seen[name] for name in done)


def test_a_lock_that_is_never_released_ends_the_commit(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its holder may be waiting for the lock of the shape of an array, which the commit holds.
    monkeypatch.setattr(swaps, "_WAITS", 3)
    lock = os.fspath(place / "u" / filelock.lock_name("other"))
    descriptor = filelock.acquire(lock)
    with pytest.raises(ConflictError, match="other writers keep holding locks"):
        change(place)
    assert values(place, "t") == [1] * 8
    filelock.release(lock, descriptor)
    assert hidden(place) == []
    change(place)
    assert values(place, "t")[:3] == [7, 7, 7]


@pytest.mark.parametrize("of", ["", "u", "above"])
def test_a_snapshot_that_lives_keeps_its_values(place: Path, of: str) -> None:
    root = place
    if of == "above":
        tessarr.create_group(place.parent)
        root = place.parent
    inside = "data.zarr/" if of == "above" else ""
    taken = LocalStore(root if of != "u" else place / "u").snapshot()
    try:
        found = {key: bytes(taken.get(key) or b"") for key in taken.list()}
        for _ in range(2):
            change(place)
        assert {key: bytes(taken.get(key) or b"") for key in taken.list()} == found
        assert taken.get(f"{inside}t/c/0") == (None if of == "u" else found[f"{inside}t/c/0"])
    finally:
        taken.close()
    assert values(place, "t")[:3] == [7, 7, 7]
    assert hidden(place) == []


def test_a_snapshot_of_a_node_below_that_was_taken_meanwhile_mixes_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []
    before(monkeypatch, "complete", lambda: taken.append(LocalStore(place / "t").snapshot()))
    change(place)
    with pytest.raises(SnapshotChangedError):
        taken[0].get("c/0")
    taken[0].close()


def test_a_journal_of_a_copy_is_not_believed(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import shutil

    monkeypatch.setattr(late, "sync_names", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(PendingCommitError):
        change(place)
    shutil.copytree(place, tmp_path / "copy.zarr")
    with pytest.raises(JournalError, match="copied"):
        tessarr.open_group(tmp_path / "copy.zarr", mode="r+")


def test_what_cannot_be_exchanged_is_refused_before_anything_is_written(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for store in (MemoryStore(), PrefixStore(LocalStore(place), "t")):
        with pytest.raises(UnsupportedOperationError, match="swap"), tessarr.transaction(store, mode="swap"):
            pass
    with monkeypatch.context() as patch:
        patch.setattr(exchange, "_renameat2", lambda: None)
        with pytest.raises(UnsupportedOperationError, match="mode='journal'"), tessarr.transaction(place, mode="swap"):
            pass
    with monkeypatch.context() as patch:
        patch.setattr(os.path, "ismount", lambda _: True)
        with pytest.raises(UnsupportedOperationError, match="mount point"), tessarr.transaction(place, mode="swap"):
            pass
    (place / "link").symlink_to(place / "t")
    with pytest.raises(UnsupportedOperationError, match="special file"):
        change(place)
    assert values(place, "t") == [1] * 8
    assert hidden(place) == []


def test_a_root_behind_a_link_and_a_new_root_are_exchanged(place: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.zarr"
    link.symlink_to(place)
    change(link)
    assert link.is_symlink()
    assert values(place, "t")[:3] == [7, 7, 7]
    with tessarr.transaction(tmp_path / "deep" / "new.zarr", mode="swap") as tx:
        tx.group.create_array("a", data=[1, 2])
    assert values(tmp_path / "deep" / "new.zarr", "a") == [1, 2]
    assert hidden(place) == []


def test_coroutines_swap_and_permissions_stay(place: Path) -> None:
    (place / "u").chmod(0o750)

    async def body() -> None:
        async with tessarr.transaction(place, mode="swap") as tx:
            group: Any = tx.group
            group["t"][:] = 3

    asyncio.run(body())
    assert values(place, "t") == [3] * 8
    assert (place / "u").stat().st_mode & 0o777 == 0o750
