"""`tessarr.tools.probe`: several processes try what tessarr promises, and what they find is judged rightly."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ReadOnlyError, StoreError
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools import probe as tool
from tessarr.tools.probe import directory, worker
from tessarr.tools.probe.worker import Outcome


def outcome(done: int = 0, *, wrong: int = 0, won: tuple[int, ...] = (), error: str | None = None) -> Outcome:
    return Outcome(done=done, wrong=wrong, won=[*won], error=error)


def judged(
    monkeypatch: pytest.MonkeyPatch, task: Callable[..., tool.Promise], store: Any, *outcomes: Outcome
) -> tool.Promise:
    monkeypatch.setattr(tool, "_together", lambda *_: [*outcomes])
    return task(store, [], 0)


def test_every_promise_holds_in_a_directory_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    report = tool.probe(str(tmp_path), seconds=0.4, processes=2)
    assert [(one.text, one.detail) for one in report.promises if not one.holds or not one.expected] == []
    assert len(report.promises) == 6
    assert {fact.name for fact in report.facts} >= {"file system", "versions", "hard links", "names"}
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert report.broken == []


def test_every_promise_holds_in_sqlite(tmp_path: Path) -> None:
    report = tool.probe(f"sqlite://{tmp_path}/a.sqlite", seconds=0.2, processes=2)
    assert [(one.text, one.detail) for one in report.promises if one.holds is False] == []


@pytest.mark.parametrize(("found", "holds"), [(b"7", True), (b"6", False), (b"8", False), (None, False)])
def test_a_lost_update_is_found(monkeypatch: pytest.MonkeyPatch, found: bytes | None, holds: bool) -> None:
    store = MemoryStore({} if found is None else {worker.COUNTER: found})
    promise = judged(monkeypatch, tool._updates, store, outcome(3), outcome(4))
    assert promise.holds is holds
    assert promise.is_broken is not holds


def test_an_update_that_failed_may_have_been_made(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore({worker.COUNTER: b"8"})
    promise = judged(monkeypatch, tool._updates, store, outcome(3, error="StoreError: no answer"), outcome(4))
    assert promise.holds
    assert "no answer" in promise.detail


def test_a_place_without_locks_promises_nothing_of_updates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = LocalStore(tmp_path, file_locks=False)
    promise = judged(monkeypatch, tool._updates, store, outcome(3))
    assert (promise.expected, promise.holds, promise.is_broken) == (False, False, False)


def test_a_torn_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(monkeypatch, tool._replacements, MemoryStore(), outcome(9), outcome(9)).holds
    assert judged(monkeypatch, tool._replacements, MemoryStore(), outcome(9), outcome(9, wrong=1)).is_broken


@pytest.mark.parametrize(
    ("first", "second", "holds"), [((0, 2), (1,), True), ((0, 1), (1, 2), False), ((0,), (1,), False)]
)
def test_a_key_that_two_or_none_created_is_found(
    monkeypatch: pytest.MonkeyPatch, first: tuple[int, ...], second: tuple[int, ...], holds: bool
) -> None:
    promise = judged(monkeypatch, tool._creations, MemoryStore(), outcome(3, won=first), outcome(4, won=second))
    assert promise.holds is holds


@pytest.mark.parametrize(
    ("rows", "holds"),
    [([(0, 0), (1, 0), (0, 1)], True), ([(0, 0), (0, 1)], False), ([(0, 0), (1, 0), (0, 1), (0, 1)], False)],
)
def test_lost_and_doubled_appends_are_found(
    monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, int]], holds: bool
) -> None:
    store = MemoryStore()
    tessarr.create_array(store, name=worker.LOG, data=np.array(rows, "i8"))
    assert judged(monkeypatch, tool._appends, store, outcome(2), outcome(1)).holds is holds


@pytest.mark.parametrize(
    "error", ["ConflictError: a writer that ignores", "PendingAppendError: an append that reserved"]
)
def test_a_process_that_lost_its_rows_to_another_one_is_found(monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    store = MemoryStore()
    tessarr.create_array(store, name=worker.LOG, data=np.array([[0, 0]]))
    assert judged(monkeypatch, tool._appends, store, outcome(1), outcome(0, error=error)).holds is False


def test_a_process_of_the_probe_does_not_wait_for_an_append_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, Any] = {}
    monkeypatch.setattr(tessarr.Array, "append", lambda *_, **options: said.update(options))
    store = MemoryStore()
    tessarr.create_array(store, name=worker.LOG, data=np.array([[0, 0]]))
    worker.carry_out(store, "append", 0, 0)
    assert said == {"on_hole": "error", "expire": worker.PATIENCE_S}


def test_appends_that_are_refused_are_not_a_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = outcome(error="UnsupportedOperationError: appends to this store are not safe")
    promise = judged(monkeypatch, tool._appends, MemoryStore(), refused)
    assert (promise.holds, promise.is_broken) == (None, False)


def test_a_lock_that_stays_after_its_holder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "PATIENCE_S", 0.5)
    store = LocalStore(tmp_path)
    tessarr.create_array(store, name=worker.LOG, shape=(0, 2), dtype="i8")
    with tool._workers(str(tmp_path.parent), tmp_path.name, None, 2) as workers:
        monkeypatch.setattr(workers[0], "answer", lambda: "")  # it waits for the lock, which this process keeps
        with store.lock(worker.COUNTER):
            promise = tool._killed_holder(workers)
    assert promise.is_broken


def test_what_a_file_system_lacks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(directory, "exchange", lambda *_: False)
    monkeypatch.setattr(directory, "sync_directory", refuse)
    monkeypatch.setattr(LocalStore, "has_coarse_times", True)
    found = {fact.name: fact.holds for fact in directory.facts(tmp_path)}
    lacking = {"hard links", "exchange of directories", "sync", "versions"}
    assert {name for name, holds in found.items() if not holds} == lacking


def test_names_that_a_file_system_takes_for_one_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"A" if path.name == "a" else read(path))
    assert directory._names(tmp_path).detail == "not distinct: ['a']"


@pytest.mark.parametrize("task", ["count", "replace", "create", "append"])
def test_an_error_of_a_worker_is_part_of_its_outcome(task: str) -> None:
    assert (
        "ReadOnlyError" in str(worker.carry_out(MemoryStore(read_only=True), task, 0, 1)["error"]) or task == "append"
    )
    assert worker.carry_out(MemoryStore(), "append", 0, 1)["error"]  # there is no array


@pytest.mark.parametrize("task", [tool._updates, tool._replacements, tool._creations, tool._appends])
def test_a_promise_that_no_process_could_try_is_not_said_to_hold(
    monkeypatch: pytest.MonkeyPatch, task: Callable[..., tool.Promise]
) -> None:
    store = MemoryStore()
    tessarr.create_array(store, name="log", shape=(0, 2), chunks=(2, 2), dtype="i8")
    failed = outcome(error="StoreError: it is full")
    promise = judged(monkeypatch, task, store, failed, failed)
    assert (promise.holds, promise.is_broken) == (None, False)
    assert "2 processes ended with an error: StoreError: it is full" in promise.detail


def test_a_key_whose_creation_ended_with_an_error_may_have_been_created(monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(monkeypatch, tool._creations, MemoryStore(), outcome(2, won=(0,)), outcome(2, error="lost"))
    assert found.holds
    twice = judged(monkeypatch, tool._creations, MemoryStore(), outcome(1, won=(0,)), outcome(1, won=(0,), error="x"))
    assert twice.is_broken


@pytest.mark.parametrize(("place", "why"), [("memory://", "does not find"), ("{}/x.zip", "another store is writing")])
def test_a_place_of_one_process_is_refused(place: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"several processes cannot write.*{why}"):
        tool.probe(place.format(tmp_path), seconds=0.1, processes=2)


def test_a_directory_that_cannot_be_made_is_an_error_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "missing" / "far")
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file" / "x", tmp_path / "link"):
        with pytest.raises(StoreError, match="could not probe the directory"):
            tool.probe(str(place), seconds=0.1, processes=2)


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadOnlyError):
        tool.probe("http://127.0.0.1:9/data")
    with pytest.raises(ValueError, match="2 processes"):
        tool.probe(str(tmp_path), processes=1)
    assert [*tmp_path.iterdir()] == []


def test_the_verb_prints_each_promise_and_says_by_its_exit_code_whether_all_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tessarr.cli import main

    assert main(["doctor", "--probe", str(tmp_path), "--seconds", "0.1"]) == 0
    assert "rows that several processes append are all kept" in capsys.readouterr().out
    broken = tool.Report("p", 2, [tool.Promise("a promise", True, False, "3 lost")])
    monkeypatch.setattr(tool, "probe", lambda *_, **__: broken)
    assert main(["doctor", "--probe", str(tmp_path)]) == 1
    assert "BROKEN        a promise\n              3 lost" in capsys.readouterr().out
    assert main(["doctor", "--probe", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["broken"] == ["a promise"]
