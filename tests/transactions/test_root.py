"""Replacing everything in a root, whose process ends at any step: the old content or the new one, never both."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.errors import JournalError, StoreError
from tessarr.storage import LocalStore
from tests.transactions.cuts import process

OLD = {"zarr.json": b"old", "t/zarr.json": b"old t", "t/c/0": b"old 0", "t/c/1": b"old 1", "v": b"file"}
NEW = {"zarr.json": b"new", "t/zarr.json": b"new t", "t/c/0": b"new 0", "u/zarr.json": b"new u", "v/x": b"directory"}


def make(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    LocalStore(place).replace_prefix("", OLD)
    return place


def replace(place: Path, durable: bool) -> None:
    LocalStore(place, durable=durable).replace_prefix("", NEW)


def content(store: LocalStore) -> dict[str, bytes]:
    store.settle("")
    return {key: bytes(store.get(key) or b"") for key in store.list()}


def files(place: Path) -> list[tuple[str, int]]:
    return sorted((str(path.relative_to(place)), path.lstat().st_ino) for path in place.rglob("*"))


def seen(place: Path, what: object) -> str:
    """Read-only, and then, after a recovery, read."""
    before = files(place)
    shown = content(LocalStore(place, read_only=True))
    assert files(place) == before, f"a reader changed something, {what}"
    assert content(LocalStore(place)) == shown, what
    assert not (place / ".tessarr-journal").exists()
    return "old" if shown == OLD else "new" if shown == NEW else f"{what}: {shown}"


def count(place: Path, monkeypatch: pytest.MonkeyPatch, durable: bool) -> int:
    with process(monkeypatch) as whole:
        replace(make(place), durable)
    return whole.count


def commit_point(folder: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> int:
    """The first step at which a process may end and has a journal: it is left in the directory ``a``."""
    for ends_at in range(steps):
        place = make(folder / "a")
        with process(monkeypatch, ends_at):
            replace(place, False)
        if (place / ".tessarr-journal").exists():
            return ends_at
    raise AssertionError("there is no journal")


@pytest.mark.parametrize("durable", [False, True])
def test_a_cut_at_any_step_leaves_the_old_or_the_new_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    steps = count(tmp_path / "whole", monkeypatch, durable)
    found = []
    for ends_at in range(steps):
        place = make(tmp_path / "a")
        with process(monkeypatch, ends_at):
            replace(place, durable)
        found.append(seen(place, ends_at))
    first = found.index("new")
    assert found == ["old"] * first + ["new"] * (steps - first)
    assert 10 < first < steps - 10


def test_a_recovery_that_ends_at_any_step_is_taken_up_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = count(tmp_path / "whole", monkeypatch, False)
    first = commit_point(tmp_path, monkeypatch, steps)
    for ends_at in range(first, steps, 5):
        template = make(tmp_path / "template")
        with process(monkeypatch, ends_at):
            replace(template, False)
        for again in range(100):
            place = tmp_path / "a"
            shutil.rmtree(place, ignore_errors=True)
            os.rename(template, place)  # a copy would be another directory
            with process(monkeypatch, again) as recovery:
                LocalStore(place).settle("")
            assert seen(place, (ends_at, again)) == "new"
            if not recovery.is_dead:
                break
            make(template)
            with process(monkeypatch, ends_at):
                replace(template, False)
        else:
            pytest.fail("the recovery does not end")


def test_a_rename_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename: Any = os.rename
    for fails_at in range(3, 8):
        place, calls = make(tmp_path / "a"), 0

        def renames(*arguments: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == fails_at:  # noqa: B023 - called in this round
                raise OSError(errno.EIO, "injected")
            rename(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", renames)
            with pytest.raises(StoreError):
                replace(place, False)
        assert seen(place, fails_at) == "old"
        assert [path.name for path in place.iterdir() if path.name.startswith(".")] == []


def test_staged_entries_that_are_gone_are_told_and_the_old_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_point(tmp_path, monkeypatch, count(tmp_path / "whole", monkeypatch, False))
    place = tmp_path / "a"
    (staged,) = place.glob(".new.*")
    shutil.rmtree(staged)
    with pytest.raises(JournalError, match="is not there any more"):
        LocalStore(place).settle("")
    (place / ".tessarr-journal").rename(tmp_path / "journal")
    assert content(LocalStore(place)) == OLD


def test_who_opens_the_hierarchy_completes_the_replacement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_hierarchy() -> Path:
        shutil.rmtree(tmp_path / "a", ignore_errors=True)
        tessarr.create_array(tmp_path / "a", data=[1, 2, 3], chunks=(1,))
        return tmp_path / "a"

    def overwrite() -> None:
        tessarr.create_group(tmp_path / "a", overwrite=True, attributes={"title": "new"})

    make_hierarchy()
    with process(monkeypatch) as whole:
        overwrite()
    kinds = []
    for ends_at in range(whole.count):
        place = make_hierarchy()
        with process(monkeypatch, ends_at):
            overwrite()
        shown: Any = tessarr.open(place, mode="r")
        kinds.append(type(shown).__name__)
        node: Any = tessarr.open(place, mode="r+")
        assert type(node) is type(shown), ends_at
        if isinstance(node, tessarr.Array):
            assert node[:].tolist() == [1, 2, 3]
        else:
            assert node.attrs["title"] == "new"
            assert list(node) == []
    assert kinds == sorted(kinds)
    assert {*kinds} == {"Array", "Group"}
