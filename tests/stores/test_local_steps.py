"""The last steps of a write of one file: what is locked meanwhile, and what another writer does between two of them."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tessarr.stores.base import ANY
from tessarr.stores.local import lock as filelock
from tessarr.stores.local import replace
from tessarr.stores.local.file import version_at, version_of
from tessarr.stores.locks import CANCEL_CHECK, PAUSE_S

fcntl = pytest.importorskip("fcntl", reason="Windows replaces no file that is open")


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "value").write_bytes(b"old")
    return str(tmp_path / "value")


@pytest.fixture
def new(tmp_path: Path) -> str:
    (tmp_path / "new").write_bytes(b"new!")
    return str(tmp_path / "new")


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def failing(number: int) -> Callable[..., Any]:
    """A function of the operating system that fails."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def is_locked(path: str) -> bool:
    """Whether a file is locked, seen by another program."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


STEPS: dict[str, Callable[[str, str], object]] = {
    "replace": lambda new, path: replace.place(new, path),
    "replace one version": lambda new, path: replace.place(new, path, version_at(path)),
    "remove": lambda _, path: replace.remove(path),
    "remove one version": lambda _, path: replace.remove(path, version_at(path)),
    "move": lambda new, path: replace.move(path, new),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_file_is_locked_while_it_loses_its_name(
    path: str, new: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    seen: list[bool] = []

    def watched(call: Callable[..., None]) -> Callable[..., None]:
        def watch(*names: str) -> None:
            seen.append(is_locked(path))
            call(*names)

        return watch

    for name in ("replace", "unlink", "rename"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    STEPS[step](new, path)
    assert seen == [True]


def test_a_lock_is_released_in_the_end(path: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(path, "rb+") as old:
        assert replace.place(new, path)
        fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(path, "rb+") as old:
        replace.move(path, new)
        fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not replace.remove(new, "another version")
    assert not is_locked(new)


@pytest.mark.parametrize("flock", [True, False])
def test_another_version_than_expected_stays(path: str, new: str, flock: bool) -> None:
    before = version_at(path)
    assert not replace.place(new, path, "another version", flock=flock)
    assert not replace.place(new, path, None, flock=flock)
    assert not replace.remove(path, "another version", flock=flock)
    assert not replace.remove(path, None, flock=flock)
    assert (content(path), content(new)) == (b"old", b"new!")
    assert not is_locked(path)
    assert replace.place(new, path, before, flock=flock)
    assert content(path) == b"new!"


@pytest.mark.parametrize("flock", [True, False])
def test_a_file_that_is_gone_has_no_version(path: str, new: str, flock: bool) -> None:
    before = version_at(path)
    assert replace.remove(path, before, flock=flock)
    assert not replace.place(new, path, before, flock=flock)
    assert content(new) == b"new!"
    assert not replace.remove(path, before, flock=flock)
    assert replace.remove(path, None, flock=flock)
    with pytest.raises(FileNotFoundError):
        replace.remove(path, flock=flock)
    assert replace.place(new, path, None, flock=flock)
    assert content(path) == b"new!"


def test_a_first_file_is_linked_into_place_and_may_keep_its_first_name(tmp_path: Path, new: str) -> None:
    for name, keep in (("a", True), ("b", False)):
        assert replace.place(new, str(tmp_path / name), keep=keep)
        assert os.path.exists(new) is keep
        assert content(str(tmp_path / name)) == b"new!"


def test_a_file_that_another_program_removes_under_the_lock_counts_as_removed(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agrees = replace._agrees

    def removed(where: str, over: object) -> bool:
        found = agrees(where, over)  # type: ignore[arg-type]
        os.unlink(path)
        return found

    monkeypatch.setattr(replace, "_agrees", removed)
    assert replace.remove(path)


@pytest.mark.parametrize("over", [ANY, None])
def test_where_the_file_went_meanwhile_the_new_one_is_linked_into_place(
    path: str, new: str, over: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = replace._hold

    def gone(path: str) -> int | None:
        os.unlink(path)
        return hold(path)

    monkeypatch.setattr(replace, "_hold", gone)
    monkeypatch.setattr(filelock, "retry_denied", lambda *_: pytest.fail("renamed over what may be another file"))
    assert replace.place(new, path, over)
    assert content(path) == b"new!"


def test_a_link_that_leads_nowhere_is_replaced(tmp_path: Path, new: str) -> None:
    path = str(tmp_path / "link")
    os.symlink(tmp_path / "missing", path)
    assert replace.place(new, path)
    assert not os.path.islink(path)
    assert content(path) == b"new!"


def test_a_file_is_opened_for_writing_to_lock_it_as_nfs_demands_unless_it_must_not_be_written(
    path: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire, writable = filelock.acquire, []

    def only_read(path: str, *, flags: int) -> int:
        writable.append(flags & os.O_RDWR)
        if writable[-1]:
            raise PermissionError(errno.EACCES, "read only", path)
        return acquire(path, flags=flags)

    monkeypatch.setattr(filelock, "acquire", only_read)
    assert replace.place(new, path)
    assert writable == [os.O_RDWR, 0]


@pytest.mark.parametrize("links", [True, False])
def test_without_locks_or_links_files_are_replaced_and_removed_nonetheless(
    path: str, new: str, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filelock, "acquire", failing(errno.ENOTSUP))
    if not links:
        monkeypatch.setattr(os, "link", failing(errno.ENOTSUP))
    assert replace.place(new, path)
    assert content(path) == b"new!"
    replace.move(path, new)
    assert content(new) == b"new!"
    assert replace.remove(new)
    assert not os.path.exists(new)


def test_a_store_without_file_locks_takes_none(path: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filelock, "acquire", lambda *_, **__: pytest.fail("locked"))
    assert replace.place(new, path, flock=False)
    assert replace.remove(path, flock=False)


def test_a_directory_has_no_version(tmp_path: Path, new: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert version_at(str(folder)) is None
    assert not replace.remove(str(folder), version_of(os.stat(folder)), flock=False)
    assert not replace.place(new, str(tmp_path / "new" / "below"), "a version", flock=False)


@pytest.fixture
def lock(tmp_path: Path) -> str:
    return str(tmp_path / filelock.lock_name("value"))


def test_names_of_hidden_files_are_short_enough() -> None:
    for name in ("a" * 180, "é" * 90, "a" * 60):
        assert filelock.lock_name(name) == f".{name}.tessarr-lock"
        assert filelock.temporary_name(name, "1") == f".{name}.1.tessarr-tmp"
    for name in ("a" * 181, "é" * 91):
        digits = hashlib.sha256(name.encode()).hexdigest()[:32]
        assert filelock.lock_name(name) == f".{digits}.tessarr-lock"
        assert filelock.temporary_name(name, "1") == f".{digits}.1.tessarr-tmp"
    assert len({filelock.temporary_name("a") for _ in range(100)}) == 100
    assert re.fullmatch(r"\.a\.[0-9a-f]{12}\.tessarr-tmp", filelock.temporary_name("a"))


@pytest.mark.parametrize(
    ("name", "hidden"),
    [(filelock.lock_name("a"), True), (filelock.temporary_name("a", "1"), True), (".tessarr-journal", True),
     (".x.tessarr-snapshot", True), ("a.tessarr-lock", False), ("a.tessarr-tmp", False), (".a", False)],
)  # fmt: skip
def test_files_with_these_names_are_no_values(name: str, hidden: bool) -> None:
    assert filelock.is_hidden(name) is hidden


def test_a_lock_file_excludes_others_until_it_is_released(lock: str) -> None:
    descriptor = filelock.acquire(lock)
    with pytest.raises(BlockingIOError):
        filelock.acquire(lock, wait=False)
    filelock.release(lock, descriptor)
    assert not os.path.exists(lock)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    filelock.release(lock, filelock.acquire(lock, wait=False))


def test_who_may_write_a_lock_file_is_left_to_the_umask(lock: str) -> None:
    before = os.umask(0)
    try:
        filelock.unlock(filelock.acquire(lock))
    finally:
        os.umask(before)
    assert os.stat(lock).st_mode & 0o777 == 0o666


def test_a_descriptor_that_another_process_inherited_holds_no_lock_that_was_released(lock: str) -> None:
    descriptor = filelock.acquire(lock)
    inherited = os.dup(descriptor)
    filelock.unlock(descriptor)
    filelock.release(lock, filelock.acquire(lock, wait=False))
    os.close(inherited)


def test_an_attempt_that_fails_leaves_no_file_open(lock: str) -> None:
    descriptor = filelock.acquire(lock)
    opened = len(os.listdir("/dev/fd"))
    for _ in range(3):
        with pytest.raises(BlockingIOError):
            filelock.acquire(lock, wait=False)
    assert len(os.listdir("/dev/fd")) == opened
    filelock.release(lock, descriptor)


def test_a_lock_file_that_was_removed_or_replaced_meanwhile_is_opened_again(
    lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, opened = filelock._lock, []

    def late(descriptor: int, *, wait: bool) -> None:
        opened.append(descriptor)
        if len(opened) < 3:  # the holder before releases it: a file of this name is another one, or none
            os.unlink(lock)
        if len(opened) == 2:
            Path(lock).touch()
        real(descriptor, wait=wait)

    monkeypatch.setattr(filelock, "_lock", late)
    before = len(os.listdir("/dev/fd"))
    descriptor = filelock.acquire(lock)
    assert len(opened) == 3
    assert len(os.listdir("/dev/fd")) == before + 1
    assert filelock.is_same_file(lock, descriptor)
    filelock.release(lock, descriptor)


def test_the_lock_file_of_another_directory_is_not_removed(lock: str) -> None:
    descriptor = filelock.acquire(lock)
    os.unlink(lock)
    Path(lock).touch()
    filelock.release(lock, descriptor)
    assert os.path.exists(lock)
    filelock.release(lock, filelock.acquire(lock))
    assert not os.path.exists(lock)


def test_a_lock_is_free_when_the_lock_file_has_no_name_any_more(lock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[bool] = []
    unlock = filelock.unlock

    def watch(descriptor: int) -> None:
        names.append(os.path.exists(lock))
        unlock(descriptor)

    monkeypatch.setattr(filelock, "unlock", watch)
    filelock.release(lock, filelock.acquire(lock))
    assert names == [False]


def test_releasing_a_lock_raises_nothing(lock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = filelock.acquire(lock)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", failing(errno.EIO))
        filelock.release(lock, descriptor)
    assert os.path.exists(lock)
    descriptor = filelock.acquire(lock, wait=False)  # it excludes nobody
    with monkeypatch.context() as patch:
        patch.setattr(filelock, "_unlock", failing(errno.EIO))
        patch.setattr(os, "close", failing(errno.EIO))
        filelock.unlock(descriptor)
    filelock.release(lock, descriptor)


@pytest.mark.parametrize(("cancels", "blocks"), [(False, True), (True, True), (False, False)])
def test_who_waits_for_a_lock_waits_in_the_kernel_or_looks_whether_it_is_cancelled(
    lock: str, monkeypatch: pytest.MonkeyPatch, cancels: bool, blocks: bool
) -> None:
    waited: list[object] = []
    first = filelock.acquire(lock)

    def release() -> None:
        if first not in waited:
            waited.append(first)
            filelock.release(lock, first)

    def block(descriptor: int) -> None:
        release()
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        release()

    monkeypatch.setattr(filelock, "_block", block if blocks else None)
    monkeypatch.setattr(CANCEL_CHECK, "raise_if_cancelled", release if cancels else None)
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pause)
    second = filelock.acquire(lock)
    assert waited == [first]
    assert len(pauses) == (cancels or not blocks)
    filelock.release(lock, second)


def test_a_cancelled_wait_holds_nothing(lock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = filelock.acquire(lock)
    opened = len(os.listdir("/dev/fd"))

    def cancelled() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(CANCEL_CHECK, "raise_if_cancelled", cancelled)
    with pytest.raises(KeyboardInterrupt):
        filelock.acquire(lock)
    assert len(os.listdir("/dev/fd")) == opened
    filelock.release(lock, first)


def test_pauses_between_attempts_double_up_to_a_limit(lock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = filelock.acquire(lock)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 20:
            filelock.release(lock, first)

    monkeypatch.setattr(time, "sleep", pause)
    monkeypatch.setattr(CANCEL_CHECK, "raise_if_cancelled", lambda: None)
    filelock.release(lock, filelock.acquire(lock))
    assert pauses == [min(0.0005 * 2**n, PAUSE_S) for n in range(20)]


@pytest.mark.parametrize(
    ("key", "is_one"),
    [
        (".c.tessarr-lock", True),
        ("a/.c.0.tessarr-tmp", True),
        ("a/.tessarr-snapshot/c", True),
        (".c.tessarr-tmp/zarr.json", True),
        ("a/c.tessarr-lock", False),
        (".c.tessarr-lock.txt", False),
        ("a b/.tessarr-locked", False),
        ("zarr.json", False),
    ],
)
def test_a_key_is_hidden_if_one_of_its_names_is(key: str, is_one: bool) -> None:
    assert filelock.has_hidden_name(key) is is_one


def test_a_note_is_left_to_the_next_holder(lock: str) -> None:
    with filelock.held(lock, lambda: filelock.acquire(lock)) as note:
        assert note.read() == b""
        note.write(b"first, a long one")
        note.write(b"second")
        assert note.read() == b"second"
    assert os.path.exists(lock)
    with filelock.held(lock, lambda: filelock.acquire(lock, wait=False)) as note:
        assert note.read() == b"second"
        note.clear()
        assert content(lock) == note.read() == b""
    assert not os.path.exists(lock)


def test_other_content_of_a_lock_file_is_no_note(lock: str) -> None:
    Path(lock).write_bytes(b"another program")
    with filelock.held(lock, lambda: filelock.acquire(lock)) as note:
        assert note.read() == b""
        note.write(b"text")
        assert content(lock) == b"note:text"
        note.clear()
    assert not os.path.exists(lock)


def test_a_mark_is_looked_for_from_the_value_up_to_the_root(tmp_path: Path) -> None:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    path, base = str(tmp_path / "root" / "a" / "b" / "c"), str(tmp_path / "root")
    marks = [folder / filelock.NODE_MARK for folder in (tmp_path, *(tmp_path / "root" / at for at in ("", "a", "a/b")))]
    assert filelock.node_mark(path, base) is None
    marks[0].write_bytes(b"1")
    marks[3].write_bytes(b"")
    assert filelock.node_mark(path, base) is None  # above the root, and empty
    for mark in marks[1:]:
        mark.write_bytes(b"1")
        assert filelock.node_mark(path, base) == str(mark)


def test_a_rename_that_is_denied_is_an_error_at_once(path: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", failing(errno.EACCES))
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    with pytest.raises(PermissionError):
        filelock.retry_denied(new, path)


def test_a_rename_that_windows_denies_is_tried_again_for_a_second(
    path: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "replace", failing(errno.EACCES))
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(PermissionError):
        filelock.retry_denied(new, path)
    assert pauses == [0.002 * 2**n for n in range(9)]
