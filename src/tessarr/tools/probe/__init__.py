"""Probe a place: which promises of tessarr hold on this disk, mount or bucket.

`probe` lets several processes write to a new prefix below the place for a few seconds, checks what came of it, and removes
it. What they do is what writers of arrays do: update one value, replace one, create the same key, append to one array.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import IO

import numpy as np

from tessarr.core.creation.arrays import create_array
from tessarr.core.open import open_array
from tessarr.errors import ReadOnlyError, StoreError
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.local.store import LocalStore
from tessarr.stores.local.trouble import trouble
from tessarr.stores.protocols import ConditionalSet, Delete, List, Lock, Set, Update
from tessarr.tools.probe.directory import Fact, facts
from tessarr.tools.probe.worker import COUNTER, LOG, PATIENCE_S, READY, Outcome, inner_store

PREFIX = "tessarr-probe-"
"""Names of the prefixes that a probe creates begin so; one that was left behind may be removed."""


@dataclass(frozen=True)
class Promise:
    """One promise, and whether it held."""

    text: str
    expected: bool
    """tessarr promises this for stores of this kind (docs/stores-abilities.md)."""
    holds: bool | None
    """``None``: it could not be tried."""
    detail: str

    @property
    def is_broken(self) -> bool:
        """Whether tessarr promises what does not hold here."""
        return self.expected and self.holds is False


@dataclass
class Report:
    """What a probe found."""

    place: str
    processes: int
    promises: list[Promise] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    @property
    def broken(self) -> list[Promise]:
        """The promises that do not hold here, though they should."""
        return [promise for promise in self.promises if promise.is_broken]


def probe(
    place: str, *, seconds: float = 5.0, processes: int = 4, storage_options: Mapping[str, object] | None = None
) -> Report:
    """Probe `place` (a directory or a URL) with `processes` concurrent writers, for about `seconds` seconds in all.

    Everything is written below one new name in `place`, and removed at the end; `place` itself is created if missing.

    Raises `ReadOnlyError` for a place that cannot be written, `StoreError` where the disk is full or several processes cannot
    write to it (memory, archives), `ValueError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = probe(folder, seconds=0.1, processes=2)
    >>> [promise.text for promise in report.broken]
    []
    """
    if processes < 2 or not seconds > 0:
        raise ValueError(f"a probe needs at least 2 processes and some time, got {processes} and {seconds}")
    prefix = PREFIX + token_hex(4)
    store = inner_store(place, prefix, storage_options)
    if store.read_only or not isinstance(store, Set):
        raise ReadOnlyError("a probe has to write", store=store.url, hint="Name a place that can be written")
    report = Report(place, processes)
    try:
        if isinstance(store, LocalStore):
            report.facts += _facts(store)
        create_array(store, name=LOG, shape=(0, 2), chunks=(16, 2), dtype="i8")
        with _workers(place, prefix, storage_options, processes) as workers:
            for task in (_updates, _replacements, _creations, _appends):
                report.promises.append(task(store, workers, seconds / 4))
            if isinstance(store, Lock):
                report.promises.append(_killed_holder(workers))
        if isinstance(store, List):
            report.promises.append(_listing(store))
    finally:
        if isinstance(store, LocalStore):
            shutil.rmtree(store.root, ignore_errors=True)
        elif isinstance(store, Delete):
            store.clear()
    return report


def _facts(store: LocalStore) -> list[Fact]:
    folder = Path(store.root) / "facts"
    try:
        folder.mkdir(parents=True)
        return [*facts(folder)]
    except OSError as error:
        raise trouble("probe", store.url, "", error) from error


# -- what the workers do -----------------------------------------------------------------------------------------------


def _updates(store: Store, workers: Sequence[_Worker], seconds: float) -> Promise:
    outcomes = _together(workers, "count", seconds)
    done = sum(one["done"] for one in outcomes)
    value = store.get(COUNTER)
    found = 0 if value is None else int(bytes(byte_view(value)))
    errors = _errors(outcomes)
    return Promise(
        "updates of one value by several processes are all kept (parts of one chunk or shard)",
        isinstance(store, Lock | Update | ConditionalSet),
        # An update that ended with an error may or may not have been made.
        _unless_failed(done <= found <= done + len(errors), done, errors),
        _detail(f"{done} updates, {found} found", errors),
    )


def _replacements(_: Store, workers: Sequence[_Worker], seconds: float) -> Promise:
    outcomes = _together(workers, "replace", seconds)
    done, wrong = sum(one["done"] for one in outcomes), sum(one["wrong"] for one in outcomes)
    errors = _errors(outcomes)
    return Promise(
        "a value that is replaced is read whole, old or new",
        True,
        _unless_failed(wrong == 0, done, errors),
        _detail(f"{done} replacements, {wrong} reads of a part, of a mixture, or of nothing", errors),
    )


def _creations(store: Store, workers: Sequence[_Worker], seconds: float) -> Promise:
    outcomes = _together(workers, "create", seconds)
    tried = min(one["done"] for one in outcomes)
    winners = Counter(turn for one in outcomes for turn in one["won"])
    errors = _errors(outcomes)
    # Who ended with an error may have created the key.
    wrong = sum(winners[turn] > 1 or not (winners[turn] or errors) for turn in range(tried))
    return Promise(
        "of several processes that create one key, one succeeds",
        isinstance(store, Lock | ConditionalSet),
        _unless_failed(wrong == 0, sum(winners.values()), errors),
        _detail(f"{tried} keys, {wrong} with no or several creators", errors),
    )


def _appends(store: Store, workers: Sequence[_Worker], seconds: float) -> Promise:
    outcomes = _together(workers, "append", seconds)
    text = "rows that several processes append are all kept, once"
    errors = _errors(outcomes)
    refused = [error for error in errors if error.startswith("UnsupportedOperationError")]
    if refused:
        return Promise(text, False, None, refused[0])
    rows = np.asarray(open_array(store, path=LOG, mode="r")[...])
    found = Counter(map(tuple, rows.tolist()))
    wanted = {(number, turn) for number, one in enumerate(outcomes) for turn in range(one["done"])}
    lost = len(wanted - found.keys())
    doubled = sum(count > 1 for count in found.values())
    # Only the processes of the probe append here, and all of them live: one that waits for a region that does not end, or finds
    # another length than it stored, has lost it to another one.
    stuck = any(error.startswith(("ConflictError", "PendingAppendError")) for error in errors)
    return Promise(
        text,
        True,
        _unless_failed(not lost and not doubled and not stuck, len(wanted), errors),
        _detail(f"{len(wanted)} appends, {lost} lost, {doubled} doubled", errors),
    )


def _killed_holder(workers: Sequence[_Worker]) -> Promise:
    holder, other = workers[0], workers[1]
    holder.tell({"task": "hold", "seconds": 0})
    holder.answer()
    holder.process.kill()
    holder.process.wait()
    # A worker that waits forever is killed, and then gives no answer.
    timer = threading.Timer(PATIENCE_S, other.process.kill)
    timer.start()
    try:
        (outcome,) = _together([other], "count", 0)
        free, detail = outcome["error"] is None, outcome["error"] or ""
    except StoreError:
        free, detail = False, f"not within {PATIENCE_S:.0f} s"
    finally:
        timer.cancel()
    return Promise("a lock whose holder was killed is free", True, free, detail)


def _listing(store: Store) -> Promise:
    keys = {f"listed/{number}" for number in range(20)}
    missing = 0
    for key in sorted(keys):
        store.set(key, b"1")
        missing += key not in set(store.list_prefix("listed/"))
    stale = 0
    if isinstance(store, Delete):
        for key in sorted(keys):
            store.delete(key)
            stale += key in set(store.list_prefix("listed/"))
    detail = f"20 keys, {missing} not listed after a write, {stale} still listed after a deletion"
    return Promise("listings show what was written and deleted before", True, not missing and not stale, detail)


def _errors(outcomes: Sequence[Outcome]) -> list[str]:
    return [one["error"] for one in outcomes if one["error"] is not None]


def _unless_failed(holds: bool, done: int, errors: Sequence[str]) -> bool | None:
    """Return ``None`` where nothing broke the promise, and nothing was tried because of errors."""
    return None if holds and errors and not done else holds


def _detail(text: str, errors: Sequence[str]) -> str:
    return f"{text}; {len(errors)} processes ended with an error: {errors[0]}" if errors else text


# -- the workers ---------------------------------------------------------------------------------------------------------


@dataclass
class _Worker:
    process: subprocess.Popen[str]
    commands: IO[str]
    answers: IO[str]

    def tell(self, message: Mapping[str, object]) -> None:
        self.commands.write(json.dumps(message) + "\n")
        self.commands.flush()

    def answer(self) -> str:
        line = self.answers.readline()
        if not line:
            raise StoreError("a process of the probe ended early", got=f"exit status {self.process.wait()}")
        return line


def _together(workers: Sequence[_Worker], task: str, seconds: float) -> list[Outcome]:
    for worker in workers:
        worker.tell({"task": task, "seconds": seconds})
    return [json.loads(worker.answer()) for worker in workers]


@contextmanager
def _workers(place: str, prefix: str, options: Mapping[str, object] | None, count: int) -> Iterator[list[_Worker]]:
    """Start the processes, and wait until each has opened the place."""
    command = [sys.executable, "-c", "from tessarr.tools.probe.worker import main; main()"]
    workers: list[_Worker] = []
    try:
        for number in range(count):
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert process.stdin is not None
            assert process.stdout is not None
            workers.append(_Worker(process, process.stdin, process.stdout))
            begin = {"place": place, "prefix": prefix, "options": dict(options) if options else None}
            workers[-1].tell({**begin, "number": number})
        for worker in workers:
            if (answer := json.loads(worker.answer())) != READY:
                raise StoreError(
                    "several processes cannot write to this place at the same time, so that nothing can be probed",
                    store=place,
                    got=answer,
                    hint="Name a directory, a database or a bucket that they can write to",
                )
        yield workers
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
            worker.commands.close()
            worker.answers.close()
