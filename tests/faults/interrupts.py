"""Interrupt a workload by `KeyboardInterrupt`, wherever CPython handles signals, and let the process go on, as a notebook does.

CPython handles a signal at the beginning of a Python function and at the end of a call of a C function (and when a loop jumps
back): there a profile function raises the error. Left out are the beginnings of what releases something, for which a signal
would have to come within some nanoseconds, and `contextlib`, whose functions are as short.

Each run is a forked child, because what it finds is, as a rule, that a lock is held forever.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import Pipe
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Self

import numpy as np
import obstore.store

import tessarr
from tessarr.storage import LMDBStore, LocalStore, MemoryStore, ObjectStore, SQLiteStore, ZipStore
from tests.faults.injection import ENGINES
from tests.faults.readers import clean_up
from tests.faults.workloads import CHUNK, WORKLOADS, State, Workload, found_in, observe
from tests.simulation.worlds import SCRATCH

SOURCE = str(Path(tessarr.__file__).parent) + os.sep
RELEASING = frozenset({"__exit__", "__aexit__", "__del__", "release", "unlock", "_close", "_unlock"})
LONGEST_S = 20.0
"""A child that takes longer is one that waits forever."""


class Interruption:
    """A `KeyboardInterrupt` at the point with this number, counted from 1, of those in the package; 0: none."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.count = 0
        self.place = ""

    def __enter__(self) -> Self:
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event not in ("call", "c_return") or not code.co_filename.startswith(SOURCE):
            return
        if event == "call" and (
            code.co_name in RELEASING or frame.f_lasti > 0
        ):  # a generator that goes on, or is closed
            return
        self.count += 1
        if self.count == self._number:
            sys.setprofile(None)
            what = f"after {argument.__name__}" if event == "c_return" else "at its beginning"
            self.place = f"{code.co_filename.removeprefix(SOURCE)}:{frame.f_lineno} {code.co_qualname} {what}"
            raise KeyboardInterrupt


@dataclass
class Told:
    """What a child says."""

    points: int = 0
    place: str = ""
    ended: str = ""
    """The type of the error; ``""``: none."""
    wrong: str | None = None


class Subject:
    """A workload with one engine, ready to be interrupted."""

    def __init__(self, workload: Workload, engine: str, store: Callable[[str], Any] | None = None) -> None:
        self.workload, self.engine, self._store = workload, engine, store

    @property
    def name(self) -> str:
        """Workload and engine."""
        return f"{self.workload.name} {self.engine}"

    @cached_property
    def _folder(self) -> str:
        return tempfile.mkdtemp(prefix="tessarr-interrupts-", dir=SCRATCH)

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def points(self) -> int:
        """How many points there are."""
        told = self.interrupt(0)
        assert (told.ended, told.wrong) == ("", None)
        return told.points

    def interrupt(self, number: int) -> Told:
        """Run the workload in a child, interrupted at a point."""
        here, there = Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            try:
                here.close()
                there.send_bytes(json.dumps(vars(self._be_the_child(number, there))).encode())
            except BaseException:
                there.send_bytes(json.dumps({"wrong": traceback.format_exc()}).encode())
            finally:
                os._exit(0)
        there.close()
        told: dict[str, Any] = {"wrong": "the child ended"}
        try:
            while here.poll(LONGEST_S):
                told |= json.loads(here.recv_bytes())
            told["wrong"] = f"the process waits forever, after {told.get('wrong')}"
        except EOFError:
            pass
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            here.close()
        return Told(**told)

    def _be_the_child(self, number: int, report: Any) -> Told:
        warnings.simplefilter("ignore")
        with tessarr.config.set({"engine": self.engine}):
            root, other = self._prepared("place"), self._prepared("other")
            before = self._observe(root)
            self.workload.act(other)  # which also imports what it needs
            after = self._observe(other)
            interruption = Interruption(number)
            kept = self._run(root, interruption)
            told = Told(interruption.count, interruption.place, "" if kept is None else type(kept).__name__)
            report.send_bytes(json.dumps({**vars(told), "wrong": f"{told.ended} {told.place}"}).encode())
            for thread in threading.enumerate():
                if thread.name == "tessarr-detached":
                    thread.join()
            try:
                told.wrong = self._compare(root, before, after, kept) or self._go_on(root)
            except Exception:
                told.wrong = f"the process cannot go on: {traceback.format_exc()[-1500:]}"
        return told

    def _prepared(self, name: str) -> str:
        """Return the root of a new hierarchy, alone in a directory called `name`: a swap makes another one beside it."""
        root = os.path.join(self._folder, name, "data")
        shutil.rmtree(os.path.dirname(root), ignore_errors=True)
        os.mkdir(os.path.dirname(root))
        self.workload.prepare(root)
        if self.workload.begin is not None:
            self.workload.begin(root)
        return root

    def _run(self, root: str, interruption: Interruption) -> BaseException | None:
        """Run the workload. Returns the error, whose traceback is kept."""
        try:
            with interruption:
                self.workload.act(root)
        except BaseException as error:
            return error
        return None

    def _observe(self, root: str) -> State:
        if self._store is None:
            return observe(root)
        found = dict(found_in(self._store(root)))
        # In object storage the rows of an append that was interrupted may be there as fill value, zeros.
        return {name: _stripped(value) if isinstance(value, list) else value for name, value in found.items()}

    def _compare(self, root: str, before: State, after: State, error: BaseException | None) -> str | None:
        found = self._observe(root)
        if error is None:
            return None if found == after else f"it succeeded, and did something else: {found}"
        if not isinstance(error, KeyboardInterrupt):
            return f"{error!r} in place of KeyboardInterrupt"
        if self.workload.is_one_step:
            return None if found in (before, after) else f"neither old nor new: {found}"
        mixed = self.workload.neither_old_nor_new(found, before, after)
        return mixed and f"{mixed[0]!r} is neither old nor new: {mixed[1]}"

    def _go_on(self, root: str) -> str | None:
        """Change everything that is there, and look whether hidden files are left."""
        if not self.workload.is_local:
            for store in [one for one in gc.get_objects() if isinstance(one, ZipStore) and "_archive" in vars(one)]:
                store.close()  # as its user does: it stays open, so that what it has can be published
            self.workload.act(root)
            return None
        place: Any = LocalStore(root) if self._store is None else self._store(root)
        node: Any = tessarr.open(place, mode="r+")
        node.attrs["again"] = 1
        if isinstance(node, tessarr.Array):
            return None
        for _, member in list(node.members()):
            if isinstance(member, tessarr.Array) and member.dtype.kind == "i":
                length = len(member)
                # In object storage rows stay reserved that a transaction was storing.
                member.append([1, 2], on_hole="void", expire=0) if self._store else member.append([1, 2])
                member.resize((length,))
                member[:1] = 5
        with tessarr.transaction(place) as transaction:
            changed: Any = transaction.group
            changed.attrs["again"] = 2
        node.create_array("last", data=[1, 2, 3])
        node.move("last", "gone")
        del node["gone"]
        tessarr.consolidate_metadata(place)
        left = clean_up(root) if self._store is None else []
        return f"hidden files are left: {left}" if left else None


def _stripped(values: list[int]) -> list[int]:
    """Leave out zeros at the end."""
    return values[: max((at + 1 for at, value in enumerate(values) if value), default=0)]


# -- stores that are not local directories -------------------------------------------------------------------------------

_MEMORY: dict[str, MemoryStore] = {}
_OBJECTS: dict[str, ObjectStore] = {}
_STORES: dict[str, Callable[[str], Any]] = {
    "memory": lambda root: _MEMORY.setdefault(root, MemoryStore()),
    "objects": lambda root: _OBJECTS.setdefault(root, ObjectStore(obstore.store.MemoryStore())),
    "SQLite": lambda root: SQLiteStore(f"{root}.sqlite"),
    "LMDB": lambda root: LMDBStore(f"{root}.lmdb"),
}


def _in_store(name: str, make: Callable[[str], Any]) -> Workload:
    def prepare(root: str) -> None:
        group = tessarr.create_group(make(root), attributes={"title": "before"})
        for member in ("a", "s", "t", "old"):
            group.create_array(member, data=-1 - np.arange(40, dtype="i4"), chunks=(CHUNK,), fill_value=0)

    def act(root: str) -> None:
        group: Any = tessarr.open_group(make(root), mode="r+")
        group["a"][:CHUNK] = np.arange(1, CHUNK + 1)
        group["a"].append(np.full(8, 7, "i4"))
        with tessarr.appender(group["s"], batch=100) as rows:
            rows.append(np.full(8, 7, "i4"))
        del group["old"]
        with tessarr.transaction(make(root)) as transaction:
            changed: Any = transaction.group
            changed["t"].append(np.full(8, 7, "i4"))
            changed.attrs["title"] = "after"

    return Workload(name, act, prepare)


def subjects() -> Iterator[Subject]:
    """Every workload with every engine; without those in which a snapshot lives, of which other processes know."""
    for engine in ENGINES:
        for workload in WORKLOADS:
            if not workload.has_snapshot:
                yield Subject(workload, engine)
        for name, make in _STORES.items():
            yield Subject(_in_store(name, make), engine, make)


class Points:
    """Every point of every subject, in an order that is mixed and always the same for one version of the package."""

    def __init__(self) -> None:
        self._subjects = [*subjects()]
        self._points = [(one, number) for one in self._subjects for number in range(1, one.points + 1)]
        Random(0).shuffle(self._points)

    def __getitem__(self, number: int) -> tuple[Subject, int]:
        return self._points[number % len(self._points)]

    def close(self) -> None:
        """Remove the files."""
        for one in self._subjects:
            one.close()
