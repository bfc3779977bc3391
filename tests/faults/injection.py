"""Let one system call of a workload fail, or kill the program there, by strace.

strace changes what the kernel answers, so that calls of Rust and of C libraries are reached as well as those of Python. Each
run is a forked child of this process, which has imported everything already; strace traces it from when the workload begins.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import NamedTuple

import tessarr
from tessarr.errors import SnapshotChangedError, TessarrError
from tessarr.storage import LocalStore
from tessarr.stores.base import Store
from tessarr.stores.local.lock import is_hidden
from tests.faults.readers import Meanwhile, clean_up, commit_again, read_snapshot
from tests.faults.workloads import WORKLOADS, State, Workload, observe
from tests.simulation.worlds import SCRATCH

ENGINES = ("native", "reference")
CALLS = (
    *("write", "pwrite64", "writev", "copy_file_range", "ftruncate", "fallocate", "fsync", "fdatasync", "syncfs"),
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
    *("flock", "openat", "openat2", "utimensat", "ioctl", "read", "pread64"),
)
ERRORS = ("ENOSPC", "EDQUOT", "EIO", "EINTR", "EACCES", "EMFILE", "ENOLCK", "ESTALE", "EROFS", "ENOMEM")
KILL, STOP = "KILL", "STOP"
LONGEST_S = 60.0
"""A run that takes longer is a hang."""


class Fault(NamedTuple):
    """What happens to the call with this number, counted from 1."""

    call: str
    number: int
    kind: str
    """`KILL`; `STOP`, after which it goes on when others have looked; or the name of an error."""

    @property
    def option(self) -> str:
        """The option of strace."""
        what = f"signal={self.kind}" if self.kind in (KILL, STOP) else f"error={self.kind}"
        return f"inject={self.call}:{what}:when={self.number}"


@dataclass
class Ended:
    """How a run ended."""

    code: int | None
    """Exit status, or minus the number of a signal; ``None``: it did not end."""
    error: str
    """The type of the exception, or ``""``."""
    told: str
    """Its traceback."""
    calls: Counter[str] = field(default_factory=Counter)
    injected: bool = False


_DONE, _TYPED, _UNTYPED = 0, 10, 11


class Bench:
    """The workload of one engine, ready to be run many times."""

    def __init__(self, workload: Workload, engine: str, strace: str) -> None:
        self.workload, self.engine, self._strace = workload, engine, strace
        self._folder = tempfile.mkdtemp(prefix="tessarr-faults-", dir=SCRATCH)
        self._template = os.path.join(self._folder, "template")
        workload.prepare(self._template)
        with self._place() as root, tessarr.config.set({"engine": engine}):
            self.before, self._files_before = observe(root), files_of(root)
            workload.act(root)  # imports what it needs

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def clean(self) -> Ended:
        """A run without a fault. It must succeed."""
        with self._place() as root:
            ended = self.run(root, None)
            self.after, self._files_after = observe(root), files_of(root)
        assert ended.code == _DONE, ended.told
        return ended

    def faults(self) -> list[Fault]:
        """Every fault of every call that the workload makes."""
        return [
            Fault(call, number, kind)
            for call, count in sorted(self.clean.calls.items())
            for number in range(1, count + 1)
            for kind in (KILL, *ERRORS, *([STOP] if self.workload.is_transaction else []))
        ]

    def judge(self, fault: Fault) -> tuple[Ended, str | None]:
        """Run with a fault. Returns how it ended, and what is wrong, if anything."""
        assert self.clean.code == _DONE
        with self._place() as root, ExitStack() as stack:
            taken = LocalStore(root).snapshot() if self.workload.has_snapshot else None
            if taken is not None:
                stack.callback(taken.close)
            meanwhile = Meanwhile(root)
            ended = self.run(root, fault, meanwhile.look)
            found = meanwhile.found()
            if ended.code is None:
                return ended, f"a hang of more than {LONGEST_S} s"
            if ended.code < 0 and -ended.code != signal.SIGKILL:
                return ended, f"the program died by signal {-ended.code}"
            if ended.code == _UNTYPED:
                return ended, f"an error that is not one of tessarr:\n{ended.told}"
            for who, state in found:
                if not isinstance(state, SnapshotChangedError) and state not in (self.before, self.after):
                    return ended, f"I1, I2: {who} that came meanwhile found neither old nor new: {self._told(state)}"
            try:
                return ended, self._look(root, ended, taken, is_whole=fault.kind in (KILL, STOP))
            except Exception as error:
                return ended, f"I3: what is there cannot be read: {error!r}"

    def _look(self, root: str, ended: Ended, taken: Store | None, *, is_whole: bool) -> str | None:
        """Look at what is there. Returns what is wrong. `is_whole`: no call has failed."""
        found = observe(root)
        wrong = self._look_as_others(root) or self._compare(ended, found) or self._look_at(taken, is_whole)
        if wrong or not self.workload.is_local:
            return wrong
        LocalStore(root).settle("")
        if (again := observe(root)) != found:
            return f"I2, I4: a recovery changes what readers see: {_difference(again, found)}"
        left = clean_up(root)
        if left:
            return f"hidden files are left: {left}"
        if (again := observe(root)) != found:
            return f"I6: the removal of leftovers changes what readers see: {_difference(again, found)}"
        wrong = commit_again(root) if self.workload.is_transaction else None
        return wrong or self._look_at(taken, is_whole)

    def _look_as_others(self, root: str) -> str | None:
        """Look at the files of a transaction as a program without tessarr does. Returns what is neither old nor new."""
        if not self.workload.is_transaction:
            return None
        found = files_of(root)
        for path in found.keys() | self._files_before.keys():
            if found.get(path) not in (self._files_before.get(path), self._files_after.get(path)):
                return f"I9: the file {path!r} is neither old nor new"
        return None

    def _look_at(self, taken: Store | None, is_whole: bool) -> str | None:
        found = self.before if taken is None else read_snapshot(taken)
        if found == self.before or (found is None and not is_whole):
            return None
        return f"a snapshot has changed: {self._told(found)}"

    def _told(self, found: State | Exception | None) -> str:
        return _difference(found, self.before) if isinstance(found, dict) else repr(found)

    def _compare(self, ended: Ended, found: State) -> str | None:
        if ended.code == _DONE:
            return (
                None
                if found == self.after
                else f"I2: it succeeded, and did something else: {_difference(found, self.after)}"
            )
        if self.workload.is_one_step:
            if found in (self.before, self.after):
                return None
            return f"I1, I2: neither old nor new after {ended.error or 'a kill'}: {_difference(found, self.before)}"
        mixed = self.workload.neither_old_nor_new(found, self.before, self.after)
        return (
            None
            if mixed is None
            else f"I3: {mixed[0]!r} is neither old nor new after {ended.error or 'a kill'}: {mixed[1]}"
        )

    @contextmanager
    def _place(self) -> Iterator[str]:
        root = os.path.join(self._folder, "place", "data")  # a swap makes a directory beside it
        shutil.rmtree(os.path.dirname(root), ignore_errors=True)
        os.mkdir(os.path.dirname(root))
        shutil.copytree(self._template, root)
        if self.workload.begin is not None:
            self.workload.begin(root)
        yield root

    def run(self, root: str, fault: Fault | None, while_stopped: Callable[[], None] | None = None) -> Ended:
        """Run the workload in a child, traced by strace. `while_stopped` is called whenever a fault stops it."""
        report = mmap.mmap(-1, 1 << 16)
        begin, release = os.pipe()
        child = os.fork()
        if child == 0:
            self._be_the_child(root, begin, report)
        os.close(begin)
        log = os.path.join(self._folder, "strace.log")
        command = [self._strace, "-f", "-p", str(child), "-o", log, "-e", f"trace={','.join(CALLS)}"]
        tracer = subprocess.Popen([*command, *(["-e", fault.option] if fault else [])], stderr=subprocess.PIPE)
        assert tracer.stderr is not None
        attached = tracer.stderr.readline()
        assert b"attached" in attached, attached
        os.write(release, b"x")
        os.close(release)
        code = _wait(child, while_stopped)
        tracer.stderr.close()
        tracer.wait()
        error, _, told = bytes(report[:]).rstrip(b"\0").decode(errors="replace").partition("\n")
        lines = Path(log).read_text(errors="replace")
        return Ended(code, error, told, _calls(lines), "(INJECTED)" in lines)

    def _be_the_child(self, root: str, begin: int, report: mmap.mmap) -> None:
        code = _UNTYPED
        try:
            ctypes.CDLL(None).prctl(
                0x59616D61, ctypes.c_ulong(-1), 0, 0, 0
            )  # PR_SET_PTRACER: where only parents may trace
            select.select([begin], [], [])  # a call that is not traced
            with tessarr.config.set({"engine": self.engine}):
                self.workload.act(root)
            code = _DONE
        except BaseException as error:
            code = _TYPED if isinstance(error, TessarrError | MemoryError) else _UNTYPED
            told = f"{type(error).__name__}\n{traceback.format_exc()}".encode()[-60_000:]
            report[: len(told)] = told
        finally:
            os._exit(code)


def _wait(child: int, while_stopped: Callable[[], None] | None = None) -> int | None:
    """The exit status of a child; a child that does not end is killed, and has none."""
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if ended and os.WIFSTOPPED(status):
            if while_stopped is not None:
                while_stopped()
            os.kill(child, signal.SIGCONT)
        elif ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def files_of(root: str) -> dict[str, bytes]:
    """What a program without tessarr finds: the content of every file that is not hidden, by its path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and not any(map(is_hidden, path.relative_to(root).parts))
    }


_CALL = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)


def _calls(log: str) -> Counter[str]:
    """How often each call was made; strace counts per thread, so that of several threads the busiest one counts."""
    most: Counter[str] = Counter()
    for (_, call), count in Counter(_CALL.findall(log)).items():
        most[call] = max(most[call], count)
    return most


def _difference(found: State, expected: State) -> str:
    names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    return ", ".join(f"{name!r}: {found.get(name)}, not {expected.get(name)}" for name in names)


class Cases:
    """Every fault of every workload with both engines, in an order that is mixed and always the same.

    Every third one is a cut, as long as there are any: of each call there are many more errors.
    """

    def __init__(self, strace: str) -> None:
        self._benches = [Bench(workload, engine, strace) for workload in WORKLOADS for engine in ENGINES]
        cases = [(bench, fault) for bench in self._benches for fault in bench.faults()]
        Random(0).shuffle(cases)
        cuts = [case for case in cases if case[1].kind == KILL]
        others = [case for case in cases if case[1].kind != KILL]
        self._cases = [case for at, cut in enumerate(cuts) for case in (cut, *others[2 * at : 2 * at + 2])] + others[
            2 * len(cuts) :
        ]

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, number: int) -> tuple[Bench, Fault]:
        return self._cases[number % len(self._cases)]

    def close(self) -> None:
        """Remove the files."""
        for bench in self._benches:
            bench.close()
