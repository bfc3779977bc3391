"""Let memory, file descriptors or the size of files run out for a program, and look at what is there after that.

The limit is of the kernel, for a forked child: allocations of Rust and of C libraries fail as well as those of Python. An
allocation of Rust that fails unforeseen ends the process by a signal.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import tessarr
from tessarr.errors import TessarrError
from tessarr.storage import LocalStore
from tests.faults.injection import ENGINES, LONGEST_S, _wait
from tests.simulation.worlds import SCRATCH

ROWS, COLUMNS = 1024, 512
"""A chunk of 2 MiB; an array has two, and what is written begins within the first."""
_DONE, _TYPED, _UNTYPED = 0, 10, 11

LAYOUTS: dict[str, dict[str, Any]] = {
    "raw": {"compressors": None},
    "zstd": {"compressors": {"name": "zstd", "configuration": {"level": 1, "checksum": False}}},
    "gzip": {"compressors": {"name": "gzip", "configuration": {"level": 1}}},
    "blosc": {
        "compressors": {
            "name": "blosc",
            "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
        }
    },
    "crc32c": {"compressors": {"name": "crc32c"}},
    "big endian": {"compressors": None, "serializer": {"name": "bytes", "configuration": {"endian": "big"}}},
    "transposed": {"compressors": None, "filters": {"name": "transpose", "configuration": {"order": [1, 0]}}},
    "shards": {"chunks": (256, 128), "shards": (ROWS, COLUMNS)},
    "index": {"chunks": (8, 8), "shards": (ROWS, COLUMNS), "compressors": None},
    "v2 lz4": {"zarr_format": 2, "compressors": {"id": "lz4", "acceleration": 1}},
    "v2 bz2": {"zarr_format": 2, "compressors": {"id": "bz2", "level": 1}},
    "v2 delta": {"zarr_format": 2, "compressors": None, "filters": [{"id": "delta", "dtype": "<i4"}]},
}


def _values(first: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return (np.arange(ROWS * COLUMNS, dtype="i4") % 1000 + first).reshape(ROWS, COLUMNS)


def _read(root: str) -> None:
    found = tessarr.open_array(LocalStore(root), mode="r")[:]
    assert found[0, 0] == 1, "a wrong value"


def _read_part(root: str) -> None:
    array: Any = tessarr.open_array(LocalStore(root), mode="r")
    for _ in range(3):  # the chunk is kept from the second time on
        assert array[5:7, 5].tolist() == _values(1)[5:7, 5].tolist(), "a wrong value"


def _read_points(root: str) -> None:
    array: Any = tessarr.open_array(LocalStore(root), mode="r")
    rows, columns = np.arange(200_000) % ROWS, np.arange(200_000) % COLUMNS
    assert (array.vindex[rows, columns] == _values(1)[rows, columns]).all(), "a wrong value"


def _write(root: str) -> None:
    tessarr.open_array(LocalStore(root), mode="r+")[:ROWS] = _values(2)


def _write_part(root: str) -> None:
    tessarr.open_array(LocalStore(root), mode="r+")[5:ROWS, 7:] = 3


def _transaction(root: str) -> None:
    with tessarr.transaction(LocalStore(root)) as tx:
        tx.array[:ROWS] = _values(2)


ACTIONS: dict[str, Callable[[str], None]] = {
    "read": _read,
    "read a part": _read_part,
    "read points": _read_points,
    "write": _write,
    "write a part": _write_part,
    "transaction": _transaction,
}
LIMITS: dict[str, list[int]] = {
    "memory": [n << 17 for n in range(8, 136)],
    "descriptors": [*range(12)],
    "file size": [n * 150_001 for n in range(16)],
}
"""What runs out, and how much of it the program still gets: bytes more than it has, descriptors more than it has, bytes of a
file."""


class Case(NamedTuple):
    """One program under one limit."""

    layout: str
    action: str
    engine: str
    what: str
    amount: int


def is_ours(case: Case) -> bool:
    """Whether an allocation that fails is of tessarr: C-Blosc ends the process by a signal when it gets no memory."""
    return case[:1] + case[2:4] != ("blosc", "reference", "memory")


def cases() -> list[Case]:
    """Every program under every limit, in an order that is mixed and always the same."""
    found = [
        Case(layout, action, engine, what, amount)
        for layout in LAYOUTS
        for action in ACTIONS
        for engine in ENGINES
        for what, amounts in LIMITS.items()
        for amount in amounts
    ]
    Random(0).shuffle(found)
    return [case for case in found if is_ours(case)]


class Bench:
    """A process that runs cases.

    It is another one than this, because memory that the C library has reserved for threads counts as taken, and is used when
    there is no other.
    """

    def __init__(self) -> None:
        environment = {**os.environ, "MALLOC_ARENA_MAX": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.faults.scarcity import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def judge(self, case: Case) -> tuple[bool, str | None]:
        """Run a case. Returns whether something ran out, and what is wrong, if anything."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        ran_out, wrong = json.loads(self._process.stdout.readline())
        return bool(ran_out), wrong

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def serve() -> None:
    """Judge the cases on standard input."""
    warnings.simplefilter("ignore")
    arrays = _Arrays()
    try:
        for line in sys.stdin:
            print(json.dumps(arrays.judge(Case(*json.loads(line)))), flush=True)
    finally:
        arrays.close()


class _Arrays:
    """Arrays of every layout, copied for each run."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="tessarr-scarcity-", dir=SCRATCH)
        self._known: dict[tuple[str, str], tuple[str, str]] = {}
        """What a reader finds before and after, by layout and action."""

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def judge(self, case: Case) -> tuple[bool, str | None]:
        """See `Bench.judge`."""
        before, after = self._expected(case.layout, case.action)
        with self._place(case.layout) as root:
            code, told = self._run(root, case)
            if code is None:
                return True, f"a hang of more than {LONGEST_S} s"
            if code not in (_DONE, _TYPED):
                return True, f"it ended with {code}:\n{told}"
            found = _digest(root)
        if found != after and (code == _DONE or found != before):
            return True, f"neither old nor new after {told.partition(chr(10))[0] or 'success'}"
        return code != _DONE, None

    def _expected(self, layout: str, action: str) -> tuple[str, str]:
        if (layout, action) not in self._known:
            with self._place(layout) as root:
                before = _digest(root)
                for engine in ENGINES:
                    with tessarr.config.set({"engine": engine}):
                        ACTIONS[action](root)  # imports what it needs
                self._known[layout, action] = (before, _digest(root))
        return self._known[layout, action]

    @contextmanager
    def _place(self, layout: str) -> Iterator[str]:
        template, root = Path(self._folder, layout), Path(self._folder, "data")
        if not template.exists():
            options = {"chunks": (ROWS, COLUMNS), **LAYOUTS[layout]}
            array = tessarr.create_array(
                LocalStore(template), shape=(2 * ROWS, COLUMNS), dtype="i4", fill_value=0, **options
            )
            array[:ROWS] = _values(1)
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(template, root)
        yield str(root)

    def _run(self, root: str, case: Case) -> tuple[int | None, str]:
        report = mmap.mmap(-1, 1 << 16)
        child = os.fork()
        if child == 0:
            _be_the_child(root, case, report)
        code = _wait(child)
        told = bytes(report[:]).rstrip(b"\0").decode(errors="replace")
        report.close()
        return code, told


def _be_the_child(root: str, case: Case, report: mmap.mmap) -> None:
    code = _UNTYPED
    try:
        os.dup2(2, 1)  # on standard output are the judgements
        # A thread of Python that has no memory to begin is waited for without end; those of Rust are not needed.
        threads = {"threading.max_workers": 1} if case.engine == "reference" else {}
        with tessarr.config.set({"engine": case.engine, **threads}):
            _limit(case.what, case.amount)
            ACTIONS[case.action](root)
        code = _DONE
    except BaseException as error:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        code = _TYPED if isinstance(error, TessarrError | MemoryError) else _UNTYPED
        told = f"{type(error).__name__}\n{traceback.format_exc()}".encode()[-60_000:]
        report[: len(told)] = told
    finally:
        os._exit(code)


def _limit(what: str, amount: int) -> None:
    if what == "memory":
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD: memory of chunks is given back
        libc.malloc_trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + amount, most))
    elif what == "descriptors":
        used = {int(number) for number in os.listdir("/proc/self/fd")}
        free = (number for number in itertools.count() if number not in used)
        limit = next(itertools.islice(free, amount, None))
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    else:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (amount, amount))


def _digest(root: str) -> str:
    found = np.asarray(tessarr.open_array(LocalStore(root), mode="r")[:])
    return hashlib.sha256(np.ascontiguousarray(found)).hexdigest()
