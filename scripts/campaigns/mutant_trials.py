"""Try mutants of one module in forks of one process, which has the package and the tests imported.

The process notes which tests reach which lines, each test in a fork of its own, so that no cache hides a call. For a mutant a
fork puts the code of the mutant into the module's functions, and runs the tests that reach the changed lines up to one that
fails, first those that are quick and have noticed many mutants.
"""

from __future__ import annotations

import ast
import gc
import mmap
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, NamedTuple

import pytest
from campaigns.mutants import Mutant

if TYPE_CHECKING:
    from _typeshed import TraceFunction

CPU_S, WAIT_S, TIMES = 3, 10, 4
"""Processor time and time that a test may take with a mutant, beyond `TIMES` what it takes without, traced: one that takes more
hangs, and is noticed."""


class Reach(NamedTuple):
    """A test that passes, how long it takes, and the lines of the module that it reaches."""

    number: int
    seconds: float
    lines: frozenset[int]


class Trial:
    """A process that tries mutants of `module` (a path below ``src``) with `tests`."""

    def __init__(self, root: Path, module: str, tests: Sequence[str]) -> None:
        self._connection, theirs = Pipe()
        self._process = os.fork()
        if not self._process:
            try:
                self._connection.close()
                _serve(root, module, tests, theirs)
            finally:
                os._exit(1)
        theirs.close()
        try:
            failed: str | None = self._connection.recv()
        except EOFError:
            raise RuntimeError(f"pytest cannot collect {' '.join(tests)}") from None
        if failed is not None:
            raise RuntimeError(f"{failed} passes alone, and fails after other tests without a mutant")

    def is_noticed(self, mutant: Mutant) -> bool:
        """Whether a test fails with this mutant."""
        self._connection.send(mutant)
        return bool(self._connection.recv())

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        os.waitpid(self._process, 0)


class Trials:
    """Trials of several modules, each begun when its first mutant comes."""

    def __init__(self, root: Path, modules: Mapping[str, Sequence[str]]) -> None:
        self._root, self._modules = root, modules
        self._trials: dict[str, Trial] = {}

    def is_noticed(self, mutant: Mutant) -> bool:
        """Whether a test of its module fails with this mutant."""
        if mutant.module not in self._trials:
            self._trials[mutant.module] = Trial(self._root, mutant.module, self._modules[mutant.module])
        return self._trials[mutant.module].is_noticed(mutant)

    def close(self) -> None:
        """End the processes."""
        for trial in self._trials.values():
            trial.close()


def _serve(root: Path, module: str, tests: Sequence[str], connection: Connection) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.chdir(root)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # where a sync takes no time
    with tempfile.TemporaryDirectory(prefix="tessarr-mutants-", dir=memory) as folder:
        server = _Server(root / "src" / module, Path(folder), connection)
        pytest.main(
            [
                "-q",
                "-s",
                "--tb=native",
                "--assert=plain",
                "-p",
                "no:cacheprovider",
                f"--basetemp={folder}/tests",
                *tests,
            ],
            plugins=[server],
        )


@dataclass(eq=False)  # pytest keeps plugins in sets
class _Server:
    """A plugin of pytest that tries mutants where pytest would run the tests."""

    path: Path
    folder: Path
    connection: Connection
    _reports: list[pytest.TestReport] = field(default_factory=list)
    _noticed: Counter[int] = field(default_factory=Counter)
    """How many mutants each test has noticed."""
    _running: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 8))
    """The number of the test that runs, shared with the forks."""

    def pytest_collection(self) -> None:
        """Look for no simpler example of a failure."""
        import hypothesis  # pytest rewrites its plugin, if nothing has imported it before

        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutants", parent=hypothesis.settings.default, phases=phases)
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        source = self.path.read_text(encoding="utf-8")
        statements, functions = _Lines(source), _Functions(self.path, source)
        items = session.items
        gc.collect()
        gc.freeze()
        found = (self._reach(number, item) for number, item in enumerate(items))
        reaches = [one for one in found if one is not None and one.lines]
        failed = self._failed(items, reaches, lambda: None)
        self.connection.send(None if failed is None else items[failed].nodeid)
        with suppress(EOFError):
            while True:
                mutant: Mutant = self.connection.recv()
                self.connection.send(self._is_noticed(mutant, items, reaches, statements, functions))
        return True

    def _is_noticed(
        self,
        mutant: Mutant,
        items: Sequence[pytest.Item],
        reaches: Sequence[Reach],
        statements: _Lines,
        functions: _Functions,
    ) -> bool:
        put = functions.changed(mutant.code)
        chosen: list[Reach] = []
        for lines in (statements.around(mutant.lines), statements.function(mutant.lines)):
            chosen = chosen or [one for one in reaches if one.lines & lines]

        failed = self._failed(items, chosen, put)
        if failed is not None:
            self._noticed[failed] += 1
        return failed is not None

    def _failed(self, items: Sequence[pytest.Item], chosen: list[Reach], put: Callable[[], None]) -> int | None:
        """Run tests in a fork after `put`; returns the number of the one that fails, does not return, or ends the process."""
        chosen.sort(key=lambda one: one.seconds / (1 + self._noticed[one.number]))

        def run() -> int:
            put()
            for one, following in zip_longest(chosen, chosen[1:]):
                self._running[:] = one.number.to_bytes(8, "little")
                _limit(TIMES * one.seconds)
                if not self._passes(items[one.number], None if following is None else items[following.number]):
                    return 1
            return 0

        return int.from_bytes(self._running[:], "little") if chosen and self._forked(run) != 0 else None

    def _passes(self, item: pytest.Item, following: pytest.Item | None = None) -> bool:
        self._reports.clear()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        return not any(report.failed for report in self._reports)

    def _reach(self, number: int, item: pytest.Item) -> Reach | None:
        """Run a test in a fork, and note the lines that it reaches; ``None`` where it does not pass."""
        ours, theirs = Pipe(duplex=False)

        def run() -> int:
            lines: set[int] = set()
            trace = _tracer(str(self.path), lines)
            _limit(600)
            begin = time.perf_counter()
            threading.settrace(trace)
            sys.settrace(trace)
            passed = self._passes(item) and all(report.passed for report in self._reports)
            sys.settrace(None)
            theirs.send(Reach(number, time.perf_counter() - begin, frozenset(lines)))
            return int(not passed)

        with ours:
            status = self._forked(run)
            theirs.close()
            return None if status else ours.recv()

    def _forked(self, function: Callable[[], int]) -> int:
        """Call a function in a fork; returns its result, or minus the number of the signal that ended it."""
        child = os.fork()
        if not child:
            status = 2
            try:
                os.setpgid(0, 0)
                status = function()
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what the tests have started
        return os.waitstatus_to_exitcode(ended)


def _limit(seconds: float) -> None:
    """End this process after so much time."""
    signal.setitimer(signal.ITIMER_PROF, CPU_S + seconds)
    signal.setitimer(signal.ITIMER_REAL, WAIT_S + seconds)


def _tracer(file: str, lines: set[int]) -> TraceFunction:
    def inside(frame: FrameType, _event: str, _argument: object) -> TraceFunction:
        lines.add(frame.f_lineno)
        return inside

    def trace(frame: FrameType, _event: str, _argument: object) -> TraceFunction | None:
        return inside if frame.f_code.co_filename == file else None

    return trace


class _Lines:
    """The statements of a module, by their lines."""

    def __init__(self, source: str) -> None:
        nodes = list(ast.walk(ast.parse(source)))
        self._heads = [_head(node) for node in nodes if isinstance(node, ast.stmt | ast.ExceptHandler)]
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        self._functions = [range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in functions]

    def around(self, lines: range) -> set[int]:
        """The lines of the statements (of compound ones: of their heads) that these lines are in."""
        return {line for head in self._heads if _meet(head, lines) for line in head}

    def function(self, lines: range) -> set[int]:
        """The lines of the innermost function that these lines are in."""
        inner = min((one for one in self._functions if _meet(one, lines)), key=len, default=range(0))
        return set(inner)


def _head(node: ast.stmt | ast.ExceptHandler) -> range:
    body = getattr(node, "body", None)
    end = max(node.lineno, body[0].lineno - 1) if body else (node.end_lineno or node.lineno)
    return range(node.lineno, end + 1)


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


class _Functions:
    """The functions of a module that is imported."""

    def __init__(self, path: Path, source: str) -> None:
        self._file = str(path)
        places = {
            (name, code.co_firstlineno): (name, at)
            for name, codes in self._codes(source).items()
            for at, code in enumerate(codes)
        }
        self._functions = [
            (one, places[one.__code__.co_qualname, one.__code__.co_firstlineno])
            for one in gc.get_objects()
            if isinstance(one, FunctionType) and one.__code__.co_filename == self._file
        ]

    def changed(self, source: str) -> Callable[[], None]:
        """Return what gives the functions the code of `source`."""
        codes = self._codes(source)

        def put() -> None:
            for one, (name, at) in self._functions:
                code = codes[name][at]
                if len(one.__code__.co_freevars) == len(
                    code.co_freevars
                ):  # else one that its outer function makes again
                    one.__code__ = code

        return put

    def _codes(self, source: str) -> dict[str, list[CodeType]]:
        found: dict[str, list[CodeType]] = defaultdict(list)
        for code in _codes(compile(source, self._file, "exec", dont_inherit=True)):
            found[code.co_qualname].append(code)
        return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)
