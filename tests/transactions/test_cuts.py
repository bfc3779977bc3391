"""A transaction of local files whose process ends at any step is made whole or left out (invariants I1, I2, I3, I4)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.storage import LocalStore
from tessarr.stores.local import exchange
from tessarr.stores.local import sync as filesync
from tessarr.stores.local.lock import is_hidden
from tests.transactions.cuts import process

OLD = {"t": [1] * 6, "u": [2] * 4, "title": "old", "members": ["old", "t", "u"]}
NEW = {"t": [7] * 4 + [1, 1, 9], "u": [2, 2, 8, 0], "title": "new", "members": ["new", "t", "u"]}


def make(place: Path) -> None:
    root = tessarr.create_group(place, attributes={"title": "old"})
    root.create_array("t", data=np.array(OLD["t"], "i4"), chunks=(2,), fill_value=0)
    root.create_array("u", data=np.array(OLD["u"], "i4"), chunks=(1,), shards=(2,), fill_value=0)
    root.create_array("old", data=[5], chunks=(1,))
    tessarr.consolidate_metadata(place)


def change(place: Path, durable: bool = False, mode: Any = "auto") -> None:
    with tessarr.transaction(place, mode, durable=durable) as tx:
        group: Any = tx.group
        group["t"][0:4] = 7
        group["t"].append(np.array([9], "i4"))
        group["u"][2:4] = [8, 0]
        group.attrs["title"] = "new"
        del group["old"]
        group.create_array("new", data=[6], chunks=(1,))


def content(place: Path, **options: Any) -> dict[str, Any]:
    """Everything in the hierarchy, read-only."""
    root: Any = tessarr.open_group(place, mode="r", **options)
    found = {name: root[name][:].tolist() for name in ("t", "u")}
    members = sorted(tessarr.open_group(place, mode="r", use_consolidated=False))
    return {**found, "title": root.attrs["title"], "members": members}


def hidden(place: Path) -> list[str]:
    return [name for _, folders, files in os.walk(place) for name in (*folders, *files) if is_hidden(name)]


@pytest.fixture
def template(tmp_path: Path) -> Path:
    made = tmp_path / "template.zarr"
    make(made)
    return made


def copy_of(template: Path, name: str) -> Path:
    place = template.parent / name
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(template, place)
    return place


def steps_of_a_commit(template: Path, monkeypatch: pytest.MonkeyPatch, durable: bool, mode: str = "auto") -> int:
    place = copy_of(template, "whole")
    with process(monkeypatch) as whole:
        change(place, durable, mode)
    assert content(place) == NEW
    assert hidden(place.parent) == []
    return whole.count


def commit_point(template: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> int:
    """The first step at which a process may end and has committed."""
    first, last = 0, steps
    while first < last:
        middle = (first + last) // 2
        place = copy_of(template, "cut")
        with process(monkeypatch, middle):
            change(place)
        if content(place) == NEW:
            last = middle
        else:
            first = middle + 1
    return first


needs_exchange = pytest.mark.skipif(exchange._renameat2() is None, reason="RENAME_EXCHANGE is a call of Linux")
COMMITS = [
    pytest.param("journal", False, id="not durable"),
    pytest.param("journal", True, id="durable"),
    pytest.param("swap", True, id="swap", marks=needs_exchange),
]


@pytest.mark.parametrize(("mode", "durable"), COMMITS)
def test_a_commit_that_ends_at_any_step_is_whole_or_left_out(
    template: Path, monkeypatch: pytest.MonkeyPatch, mode: str, durable: bool
) -> None:
    seen = []
    for ends_at in range(steps_of_a_commit(template, monkeypatch, durable, mode)):
        place = copy_of(template, "cut")
        with process(monkeypatch, ends_at):
            change(place, durable, mode)
        before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
        read_only = content(place)
        assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before, "reading wrote"
        assert read_only in (OLD, NEW), ends_at
        tessarr.open_group(place, mode="r+")
        assert content(place) == read_only, ends_at
        assert not (place / ".tessarr-journal").exists()
        LocalStore(place).remove_leftovers(older_than_s=0)
        assert content(place) == read_only, ends_at
        assert hidden(place.parent) == []
        seen.append(read_only == NEW)
    assert seen == sorted(seen), "there is one commit point"
    assert any(seen)
    assert not all(seen)


def test_a_recovery_that_ends_at_any_step_is_repeated(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = steps_of_a_commit(template, monkeypatch, durable=False)
    for ends_at in (commit_point(template, monkeypatch, steps), steps - 25):
        again = 0
        while True:
            place = copy_of(template, "cut")
            with process(monkeypatch, ends_at):
                change(place)
            committed = content(place)
            with process(monkeypatch, again) as recovering:
                tessarr.open_group(place, mode="r+")
            assert content(place) == committed, (ends_at, again)
            tessarr.open_group(place, mode="r+")
            assert content(place) == committed, (ends_at, again)
            if not recovering.is_dead:
                break
            again += 1


@pytest.mark.parametrize("path", ["t", "u", "new", ""])
def test_a_node_that_is_opened_alone_shows_the_committed_values(
    template: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """The journal is at the root of the transaction; other roots find it by the pointers."""
    steps = steps_of_a_commit(template, monkeypatch, durable=False)
    first = commit_point(template, monkeypatch, steps)
    for ends_at in range(first, steps, 6):
        for mode in ("r", "r+"):
            place = copy_of(template, "cut")
            with process(monkeypatch, ends_at):
                change(place)
            committed = (place / ".tessarr-journal").exists()
            if not committed:
                continue
            node: Any = tessarr.open(place / path if path else place, mode=mode)
            shown = node[:].tolist() if path else node.attrs["title"]
            assert shown == {**NEW, "new": [6], "": "new"}[path], (ends_at, mode)
            assert (place / ".tessarr-journal").exists() == (mode == "r")


@pytest.mark.parametrize("marks", ["of nodes", "of keys"])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_handle_from_before_a_crash_writes_parts_of_the_committed_values(
    template: Path, monkeypatch: pytest.MonkeyPatch, engine: str, marks: str
) -> None:
    """It reads no document, so that only a mark tells it of the transaction: in the array's directory, or the lock file."""
    if marks == "of keys":
        monkeypatch.setattr(filesync, "open_file_system", lambda _: None)
    with tessarr.config.set({"engine": engine}):
        steps = steps_of_a_commit(template, monkeypatch, durable=False)
        first = commit_point(template, monkeypatch, steps)
        for ends_at in range(first, steps, 3):
            place = copy_of(template, "cut")
            t, u = (tessarr.open_array(place / name, mode="r+") for name in ("t", "u"))
            with process(monkeypatch, ends_at):
                change(place)
            t[1] = -1  # half of a chunk
            u[3] = -2  # one inner chunk of a shard
            tessarr.open_group(place, mode="r+")
            assert content(place) == {**NEW, "t": [7, -1, 7, 7, 1, 1, 9], "u": [2, 2, 8, -2]}, ends_at
