"""What a commit of local files shares with other writers, for either place of its marks; and how it syncs (`BatchSync`)."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.errors import DurabilityError, StoreError
from tessarr.storage import LocalStore
from tessarr.stores.local import lock as filelock
from tessarr.stores.local import sync as filesync
from tessarr.stores.local.transactions import commit as commits
from tessarr.stores.local.transactions.recovery import LOCK_OF_TRANSACTIONS
from tests.waiting import until

needs_rust = pytest.mark.skipif(
    filesync.open_file_system("/") is None, reason="FileSystem is of the Rust module, on Linux"
)


@pytest.fixture(params=[pytest.param("of nodes", marks=needs_rust), "of keys"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    if request.param == "of keys":
        monkeypatch.setattr(filesync, "open_file_system", lambda _: None)
    store = LocalStore(tmp_path)
    root = tessarr.create_group(store)
    root.create_array("t", data=np.ones(20, "i4"), chunks=(1,), compressors=None)
    return store


def files(store: LocalStore) -> set[str]:
    return {path.name for path in Path(store.root).rglob("*") if path.is_file()}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a thread has to wait for a lock file."""
    waits = threading.Event()
    block = filelock._block
    if block is None:
        pytest.skip("here waiting is trying again")

    def blocking(descriptor: int) -> None:
        try:
            filelock._try(descriptor)
        except BlockingIOError:
            waits.set()
            block(descriptor)

    monkeypatch.setattr(filelock, "_block", blocking)
    return waits


def test_a_commit_waits_for_the_holder_of_a_lock_file(store: LocalStore, waits: threading.Event) -> None:
    lock = str(Path(store.root) / "t" / "c" / filelock.lock_name("3"))
    held = filelock.acquire(lock)
    before = store.get("t/c/3")
    committing = threading.Thread(target=lambda: store.commit({"t/c/3": b"\7\0\0\0"}, {}))
    committing.start()
    until(waits.is_set, "the commit to wait")
    assert store.get("t/c/3") == before
    filelock.release(lock, held)
    committing.join()
    assert store.get("t/c/3") == b"\7\0\0\0"
    assert not any(map(filelock.is_hidden, files(store)))


@pytest.mark.parametrize("key", ["t/c/3", "t/zarr.json", "zarr.json", "new/zarr.json", "raw/value"])
def test_an_update_waits_for_a_commit_that_has_left_its_marks(
    store: LocalStore, waits: threading.Event, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    found = []
    publish = commits._Change.publish

    def later(change: commits._Change) -> None:
        writer.start()
        until(waits.is_set, "the update to wait")
        publish(change)

    def update() -> None:
        other = LocalStore(store.root)
        with other.lock(key):
            found.append(other.get(key))

    writer = threading.Thread(target=update)
    monkeypatch.setattr(commits._Change, "publish", later)
    store.commit({key: b"1"}, {})
    writer.join()
    assert found == [b"1"]
    assert not any(map(filelock.is_hidden, files(store)))


@pytest.mark.parametrize("content", [b"", b"no mark", b'{"tessarr_journal":1,"id":"0123456789ab","above":1}'])
def test_a_mark_of_a_transaction_that_ended_holds_nobody_up(store: LocalStore, content: bytes) -> None:
    mark = Path(store.root) / "t" / filelock.NODE_MARK
    mark.write_bytes(content)
    tessarr.open_array(store, path="t", mode="r+").attrs["n"] = 1
    assert not content or not mark.exists()
    mark.write_bytes(content)
    tessarr.open_array(store, path="t", mode="r+").resize((10,))
    store.commit({"t/c/3": b"\7\0\0\0"}, {})
    assert tessarr.open_array(store, path="t")[3] == 7
    assert not mark.exists() or not content


class BrokenDisk:
    kind = "ext"

    def sync(self) -> None:
        raise OSError(5, "Input/output error")


def test_a_failed_sync_of_staged_files_changes_nothing(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesync, "_has_reporting_syncfs", lambda: True)
    monkeypatch.setattr(filesync, "open_file_system", lambda _: BrokenDisk())
    changes = {f"t/c/{number}": b"\7\0\0\0" for number in range(20)}
    with pytest.raises(StoreError, match="EIO") as caught:
        store.commit(changes, {}, durable=True)
    assert not isinstance(caught.value, DurabilityError)
    assert tessarr.open_array(store, path="t")[:].tolist() == [1] * 20
    assert not any(map(filelock.is_hidden, files(store)))


def test_few_files_are_synced_one_by_one(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesync, "open_file_system", lambda _: BrokenDisk())
    store.commit({"t/c/3": b"\7\0\0\0"}, {}, durable=True)
    assert store.get("t/c/3") == b"\7\0\0\0"


@needs_rust
def test_a_durable_commit_of_many_files_waits_for_few_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of files: the pointers, all that was made, the name of the journal, the new names."""
    store = LocalStore(tmp_path)
    root = tessarr.create_group(store)
    for name in ("t", "u"):
        root.create_array(name, data=np.ones(30, "i4"), chunks=(1,), compressors=None)
    synced: list[str] = []

    class Whole:
        kind = "ext"

        def sync(self) -> None:
            synced.append("all")

    monkeypatch.setattr(filesync, "_has_reporting_syncfs", lambda: True)
    monkeypatch.setattr(filesync, "open_file_system", lambda _: Whole())
    monkeypatch.setattr(filesync, "sync", lambda _: synced.append("one"))
    monkeypatch.setattr(filesync.BatchSync, "_is_whole", lambda *_: True)
    store.commit({f"{name}/c/{number}": b"\7\0\0\0" for name in "tu" for number in range(30)}, {}, durable=True)
    pointers, name_of_journal, new_directories = 2, 1, 5
    assert synced == [*["one"] * pointers, "all", *["one"] * (name_of_journal + new_directories)]


def test_many_bytes_are_synced_before_others_have_to_wait(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[bool] = []
    monkeypatch.setattr(commits, "_LARGE_NBYTES", 8)

    def sync(_: object, __: object, folders: object) -> None:
        if folders:  # else only the pointers are synced
            locked.append(LOCK_OF_TRANSACTIONS in files(store))

    monkeypatch.setattr(filesync.BatchSync, "sync", sync)
    store.commit({"t/c/3": b"\7\0\0\0"}, {}, durable=True)
    assert locked == [True, True]
    store.commit({"t/c/3": b"\6\0\0\0", "t/c/4": b"\7\0\0\0"}, {}, durable=True)
    assert locked[2:] == [False, True, True]
    assert tessarr.open_array(store, path="t")[3:5].tolist() == [6, 7]


@pytest.mark.parametrize(
    ("mounted", "expected"),
    [
        ("{0}/t", True),
        ("{0}/with\\040blank\\134/deep", True),
        ("{0}", False),
        ("{0}-other/t", False),
        ("/", False),
    ],
)
def test_a_mount_below_the_directory_is_noticed(
    mounted: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, folder = tmp_path / "mountinfo", tmp_path / "data"
    folder.mkdir()
    line = f"36 35 98:0 / {mounted.format(folder)} rw,noatime master:1 - ext4 /dev/root rw\n"
    table.write_text("22 27 0:21 / /proc rw,relatime - proc proc rw\n" + line)
    monkeypatch.setattr(filesync, "_MOUNTS", str(table))
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert [filesync._may_have_mounts(f"{path}/") for path in (folder, link)] == [expected] * 2


@pytest.mark.parametrize("content", ["36 35\n", None])
def test_a_table_of_mounts_that_cannot_be_read_excludes_none(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "mountinfo").write_text(content)
    monkeypatch.setattr(filesync, "_MOUNTS", str(tmp_path / "mountinfo"))
    assert filesync._may_have_mounts(str(tmp_path))
