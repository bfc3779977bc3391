"""``durable=True``: what a call returned from is on the disk. System calls, as strace sees them, of both engines."""

from __future__ import annotations

import errno
import os
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.errors import DurabilityError
from tessarr.storage import LocalStore
from tessarr.stores.local import sync as filesync
from tests.stores.contract import ENGINES
from tests.stores.remote.servers import ROOT
from tests.stores.tracing import traced, undone_by_a_power_cut

PROGRAM = """
import tessarr
from tessarr.storage import LocalStore
tessarr.config.set({{"engine": {engine!r}}})
store = LocalStore({root!r}, durable=True)
{work}
"""
ARRAY = "z = tessarr.open_array(store, path='a', mode='r+')\n"
CHANGES = {
    "the first chunk": ARRAY + "z[:4] = 7",
    "a chunk in place of another": ARRAY + "z[4:8] = 7",
    "a part of a chunk": ARRAY + "z[4:6] = 7",
    "a part of a chunk that was not there": ARRAY + "z[:2] = 7",
    "all fill, and the directory empty": ARRAY + "z[4:8] = 0",
    "all fill by a part": ARRAY + "z[4:8] = 7; z[4:6] = 0; z[6:8] = 0",
    "all fill beside another chunk": ARRAY + "z[8:12] = 7; z[4:8] = 0",
    "attributes": ARRAY + "z.attrs['n'] = 1",
    "a new array": "tessarr.create_array(store, name='b/c', shape=(4,), chunks=(2,), dtype='i4')[:] = 1",
    "a new sharded array": "tessarr.create_array(store, name='b', shape=(4,), chunks=(2,), shards=(4,), dtype='i4')[:] = 1",
    "an array in place of another": (
        "tessarr.create_array(store, name='a', shape=(4,), chunks=(2,), dtype='i4', overwrite=True)[:] = 1"
    ),
    "resize": ARRAY + "z.resize((4,))",
    "a transaction of a few values": (
        "with tessarr.transaction(store) as tx:\n    tx.group['a'][:4] = 7\n    tx.group['a'].attrs['n'] = 1\n"
    ),
    "a transaction of many values": (
        "with tessarr.transaction(store) as tx:\n"
        "    tx.group['a'][:] = 7\n"
        "    tx.group.create_array('b/c', shape=(9,), chunks=(1,), dtype='i4')[:] = 1\n"
    ),
}
CHANGES_OF_THE_STORE = {
    "a value of the store": "store.set('n/e/w', b'1')",
    "delete": "store.delete('a/c/1')",
    "delete_prefix": "store.delete_prefix('a/c/')",
    "delete_prefix of the only member": "store.delete_prefix('a/')",
    "clear": "store.clear()",
    "replace_prefix": "store.replace_prefix('a/', {'a/zarr.json': b'{}', 'a/c/0/0': b'1'})",
    "replace_prefix of what is not there": "store.replace_prefix('n/e/w/', {'n/e/w/c/0/0': b'1'})",
    "replace_prefix of everything": "store.replace_prefix('', {'zarr.json': b'{}', 'c/0/0': b'1'})",
    "replace_prefix by nothing": "store.replace_prefix('a/', {})",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store of an array that has one chunk of several, of a writer that synced nothing."""
    root = tmp_path / "root"
    z = tessarr.create_array(LocalStore(root), name="a", shape=(16,), chunks=(4,), dtype="i4")
    z[4:8] = np.arange(1, 5)
    return root


def program(engine: str, root: Path, work: str) -> str:
    return PROGRAM.format(engine=engine, root=str(root), work=work)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_durable_change_leaves_nothing_that_a_power_cut_undoes(
    tmp_path: Path, root: Path, engine: str, change: str
) -> None:
    nothing_is_undone(tmp_path, root, program(engine, root, CHANGES[change]))


@pytest.mark.parametrize("change", CHANGES_OF_THE_STORE)
def test_a_durable_change_of_the_store_leaves_nothing_that_a_power_cut_undoes(
    tmp_path: Path, root: Path, change: str
) -> None:
    nothing_is_undone(tmp_path, root, program("auto", root, CHANGES_OF_THE_STORE[change]))


def nothing_is_undone(tmp_path: Path, root: Path, work: str) -> None:
    calls, ended = traced(work, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert any(call.name not in ("fsync", "openat") for call in calls)
    assert undone_by_a_power_cut(calls, root) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_change_that_is_not_durable_syncs_nothing(tmp_path: Path, root: Path, engine: str) -> None:
    work = ARRAY.replace("store", f"LocalStore({str(root)!r})") + "z[:] = 7; z[:4] = 0; z[6] = 1"
    calls, ended = traced(program(engine, root, work), tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert any(call.name != "openat" for call in calls)
    assert not any("sync" in call.name for call in calls)
    assert undone_by_a_power_cut(calls, root)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_durable_write_syncs_directories_that_another_made_a_moment_before(
    tmp_path: Path, root: Path, engine: str
) -> None:
    calls, ended = traced(program(engine, root, ARRAY + "z[:4] = 7"), tmp_path)
    assert ended.returncode == 0, ended.stderr
    synced = {call.paths[0] for call in calls if call.name == "fsync"}
    assert {str(root / "a" / "c"), str(root / "a"), str(root)} <= synced


@pytest.mark.parametrize("engine", ENGINES)
def test_a_directory_that_was_removed_and_made_again_is_synced_again(tmp_path: Path, root: Path, engine: str) -> None:
    calls, ended = traced(
        program(engine, root, ARRAY + "z[4:8] = 0\nfor _ in range(3): z[:4] = 7; z[:4] = 0\nz[:4] = 1"), tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    assert sum(call.name.startswith("mkdir") and call.paths[0] == str(root / "a" / "c") for call in calls) == 4
    assert undone_by_a_power_cut(calls, root) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_not_there_is_removed_without_syncing(tmp_path: Path, root: Path, engine: str) -> None:
    calls, ended = traced(program(engine, root, ARRAY + "z[8:] = 0\nstore.delete('a/c/3')"), tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert not any("sync" in call.name for call in calls)


FAILING = """
from tessarr.errors import DurabilityError, StoreError
z = tessarr.open_array(store, path='a', mode='r+')
try:
    {change}
except DurabilityError as error:
    print('unknown', error.kind, error.errno, error.key, error.chunk)
except StoreError as error:
    print('not done', error.kind, error.errno, error.key, error.chunk)
"""
INJECTED = {
    "z[4:8] = 7": ("a/c/1", b"\7\0\0\0" * 4),
    "z[4:6] = 7": ("a/c/1", b"\7\0\0\0" * 2),
    "z[4:8] = 0": ("a/c/1", None),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("change", INJECTED)
def test_a_directory_that_cannot_be_synced_is_another_error_than_a_value_that_cannot(
    tmp_path: Path, engine: str, change: str
) -> None:
    """Each sync fails in turn: before the value is in place nothing is changed, after that it is, and is told so."""
    key, new = INJECTED[change]
    expected = ["not done"] * (new is not None) + ["unknown"] * 3
    for number, word in enumerate(expected, 1):
        root = tmp_path / str(number)
        z = tessarr.create_array(LocalStore(root), name="a", shape=(16,), chunks=(4,), dtype="i4", compressors=None)
        z[4:12] = np.arange(1, 9)
        old = LocalStore(root).get(key)
        assert old is not None
        work = FAILING.format(change=change)
        calls, ended = traced(program(engine, root, work), tmp_path, "-e", f"inject=fsync:error=EIO:when={number}")
        assert ended.stdout.split() == [
            *word.split(),
            "store" if word == "not done" else "durability",
            str(errno.EIO),
            key,
            "(1,)",
        ]
        stored = LocalStore(root).get(key)
        if word == "not done":
            assert stored == old
        else:
            assert stored == (None if new is None else new + bytes(old)[len(new) :])
        assert sum(call.name == "fsync" for call in calls) == number - 1, "what failed was tried again"
        assert not [path for path in root.rglob("*") if "tessarr-" in path.name]


@pytest.mark.parametrize(
    "work", ["delete_prefix('a/')", "replace_prefix('a/', {'a/x': b'1'})", "clear()", "set('n', b'1')"]
)
def test_a_store_says_that_a_change_was_made_and_may_not_last(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    def fail(path: str) -> None:
        raise OSError(errno.EIO, "no", path)

    monkeypatch.setattr(filesync, "sync_directory", fail)
    store = LocalStore(root, durable=True)
    with pytest.raises(DurabilityError, match="could not be synced") as caught:
        eval(f"store.{work}", {"store": store})
    assert (caught.value.errno, caught.value.store) == (errno.EIO, store.url)
    assert caught.value.key is not None
    left = {"d": ["zarr.json"], "r": ["a/x", "zarr.json"], "c": [], "s": ["a/c/1", "a/zarr.json", "n", "zarr.json"]}
    assert sorted(store.list()) == left[work[0]]


def test_a_sync_on_macos_reaches_the_medium_where_the_file_system_can(monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl", reason="Windows has no fcntl")
    asked: list[object] = []

    def record(descriptor: int, command: int) -> int:
        asked.append((descriptor, command))
        if failure:
            raise OSError(failure, "no")
        return 0

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", record)
    monkeypatch.setattr(os, "fsync", lambda descriptor: asked.append(descriptor))
    sync = runpy.run_path(str(filesync.__file__))["sync"]
    failure = 0
    sync(7)
    assert asked == [(7, 51)]
    failure = errno.ENOTSUP
    sync(7)
    assert asked == [(7, 51)] * 2 + [7]
    failure = errno.EIO
    with pytest.raises(OSError, match="no"):
        sync(7)
    assert asked == [(7, 51)] * 2 + [7, (7, 51)]


@pytest.mark.parametrize(
    ("folder", "pattern", "calls", "place"),
    [
        ("src/tessarr", "*.py", r"\b(fsync|fdatasync|F_FULLFSYNC)\b", "sync.py"),
        ("rust/src", "*.rs", r"\b(sync_all|sync_data|fsync|fdatasync)\b", "durable.rs"),
    ],
)
def test_there_is_one_way_to_sync(folder: str, pattern: str, calls: str, place: str) -> None:
    """Which knows what each system needs."""
    code = {path: path.read_text("utf-8") for path in (ROOT / folder).rglob(pattern)}
    assert {path.name for path, text in code.items() if re.search(rf"{calls}\(|\.{calls}", text)} == {place}
