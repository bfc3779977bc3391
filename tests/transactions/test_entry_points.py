"""Every way into a place whose last transaction was not completed shows the committed values (invariants I2, I6)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.cli import main
from tessarr.model import from_store
from tessarr.stores.local import exchange
from tessarr.tools.check import check
from tests.transactions.killed import STEPS, kill_while_carried_out
from tests.transactions.test_cuts import NEW, OLD, content, make

T, U = NEW["t"], NEW["u"]


def _opened(place: Path) -> None:
    async def read() -> Any:
        group: Any = await tessarr.open_group_async(place, mode="r")
        return group["t"][:]

    assert content(place) == NEW
    assert asyncio.run(read()).tolist() == T
    assert np.asarray(tessarr.load(place / "u")).tolist() == U


def _copied(place: Path) -> None:
    target = tessarr.create_group(place.parent / "copy")
    tessarr.copy_all(tessarr.open_group(place, mode="r"), target)
    found: Any = target
    assert (found["t"][:].tolist(), found["u"][:].tolist()) == (T, U)
    assert sorted(target) == NEW["members"]


def _store_copied(place: Path) -> None:
    target = tessarr.storage.MemoryStore()
    tessarr.copy_store(tessarr.storage.LocalStore(place, read_only=True), target)
    found: Any = tessarr.open_group(target, mode="r", use_consolidated=False)
    assert (found["t"][:].tolist(), found["u"][:].tolist()) == (T, U)


def _modelled(place: Path) -> None:
    assert sorted(from_store(tessarr.storage.LocalStore(place, read_only=True)).members) == NEW["members"]


def _checked(place: Path) -> None:
    report = check(tessarr.storage.LocalStore(place, read_only=True))
    assert [finding.rule for finding in report.findings] == []


def _snapshot(place: Path) -> None:
    with tessarr.snapshot(tessarr.storage.LocalStore(place, read_only=True)) as s:
        found: Any = s
        assert (found["t"][:].tolist(), found["u"][:].tolist()) == (T, U)


def _command_line(place: Path) -> None:
    for verb in (("info",), ("tree",), ("check",)):
        assert main([*verb, str(place)]) == 0, verb
    assert main(["cat", str(place), "t"]) == 0


READING: dict[str, Callable[[Path], None]] = {
    "open": _opened,
    "copy_all": _copied,
    "copy_store": _store_copied,
    "model": _modelled,
    "check": _checked,
    "snapshot": _snapshot,
    "command line": _command_line,
}


needs_exchange = pytest.mark.skipif(exchange._renameat2() is None, reason="RENAME_EXCHANGE is a call of Linux")
KILLED = (0, STEPS // 2, pytest.param("swap", marks=needs_exchange))


@pytest.mark.parametrize("after", KILLED)
@pytest.mark.parametrize("how", READING)
def test_reading_shows_what_was_committed_and_writes_nothing(tmp_path: Path, how: str, after: int | str) -> None:
    place = tmp_path / "a"
    make(place)
    kill_while_carried_out(place, after)
    before = {path: path.stat().st_mtime_ns for path in (place, *place.rglob("*"))}
    READING[how](place)
    assert {path: path.stat().st_mtime_ns for path in (place, *place.rglob("*"))} == before


WRITING: dict[str, Callable[[Path], object]] = {
    "open": lambda place: tessarr.open_group(place, mode="r+"),
    "open an array": lambda place: tessarr.open_array(place / "t", mode="a"),
    "consolidate": lambda place: tessarr.consolidate_metadata(place),
    "repair": lambda place: main(["repair", str(place), "--apply"]),
    "snapshot": lambda place: tessarr.snapshot(place).close(),
    "transaction": lambda place: tessarr.transaction(place).__enter__().abort(),
    "leftovers": lambda place: tessarr.storage.LocalStore(place).remove_leftovers(),
}


@pytest.mark.parametrize("after", KILLED)
@pytest.mark.parametrize("how", WRITING)
def test_writing_completes_it(tmp_path: Path, how: str, after: int | str) -> None:
    place = tmp_path / "a"
    make(place)
    kill_while_carried_out(place, after)
    WRITING[how](place)
    assert not os.path.lexists(place / ".tessarr-journal")
    assert os.listdir(tmp_path) == ["a"]
    assert content(place) == NEW


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("after", [0, STEPS // 2])
def test_a_follower_that_was_there_before_hands_out_the_new_rows(tmp_path: Path, after: int, mode: Any) -> None:
    place = tmp_path / "a"
    make(place)
    follower = tessarr.open_array(place / "t", mode=mode).follow(timeout=0)
    seen = [row for _, block in follower for row in block.tolist()]
    kill_while_carried_out(place, after)
    seen += [row for _, block in follower for row in block.tolist()]
    assert seen == [*OLD["t"], 9]
    assert (place / ".tessarr-journal").exists() == (mode == "r")


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("after", [0, STEPS // 2, STEPS - 1])
def test_read_only_followers_hand_out_each_row_once_when_another_process_completes_it(
    tmp_path: Path, after: int, engine: str
) -> None:
    place = tmp_path / "a"
    make(place)
    seen: dict[str, list[int]] = {"looks between": [], "looks after": [], "settle": [], "from the root": []}
    with tessarr.config.set({"engine": engine}):
        nested: Any = tessarr.open_group(place, mode="r")
        followers = {
            "looks between": tessarr.open_array(place / "t", mode="r").follow(timeout=0),
            "looks after": tessarr.open_array(place / "t", mode="r").follow(timeout=0),
            "settle": tessarr.open_array(place / "t", mode="r").follow(timeout=0, settle="chunks"),
            "from the root": nested["t"].follow(timeout=0),
        }

    def look(*names: str) -> None:
        for name in names:
            seen[name] += [row for _, block in followers[name] for row in block.tolist()]

    look(*followers)
    kill_while_carried_out(place, after)
    look("looks between", "settle", "from the root")
    assert [rows[-1] for rows in seen.values()] == [9, OLD["t"][-1], 9, 9]
    writer: Any = tessarr.open_group(place, mode="r+")
    writer["t"].append(np.array([10, 11], "i4"))
    look(*followers)
    assert list(seen.values()) == [[*OLD["t"], 9, 10, 11]] * len(followers)
    assert not (place / ".tessarr-journal").exists()
