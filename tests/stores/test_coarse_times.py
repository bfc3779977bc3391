"""File systems that round times: two values of one key may have one version, so that nothing is to rely on it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tessarr.common import extension
from tests.stores.contract import ENGINES, child_environment

BEGIN = """
import signal, sys
import numpy as np
import tessarr
tessarr.config.set({{"engine": {engine!r}}})
z = tessarr.create_array({root!r}, shape=(64,), chunks=(32,), dtype="i4"{options})
"""


@pytest.fixture(scope="session")
def coarse_times(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a program for which the file system rounds times."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc" or sys.maxsize < 2**32 or compiler is None:
        pytest.skip("a C compiler and the library glibc of 64-bit Linux are needed to put other times before a program")
    library = tmp_path_factory.mktemp("coarse") / "coarse_times.so"
    source = Path(__file__).with_name("coarse_times.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return child_environment() | {"LD_PRELOAD": str(library)}


def run(program: str, env: dict[str, str], **facts: object) -> list[str]:
    """The lines that a program prints."""
    command = [sys.executable, "-c", program.format(**facts)]
    ended = subprocess.run(command, capture_output=True, text=True, env=env)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", ["", ", compressors=None", ", shards=(64,)", ", shards=(64,), compressors=None"])
def test_a_value_that_looks_like_the_one_before_is_read(
    tmp_path: Path, coarse_times: dict[str, str], engine: str, options: str
) -> None:
    program = BEGIN + (
        "for value in (1, 2, 3):\n"
        "    tessarr.open_array({root!r}, mode='r+')[:] = value\n"
        "    print(*[int(z[3]) for _ in range(4)], *[int(z[2:5].sum()) // 3 for _ in range(4)])\n"
    )
    lines = run(program, coarse_times, engine=engine, root=str(tmp_path / "a"), options=options)
    assert lines == [" ".join([str(value)] * 8) for value in (1, 2, 3)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_whole_value_waits_for_an_update_that_would_not_see_it(
    tmp_path: Path, coarse_times: dict[str, str], engine: str
) -> None:
    """Who replaces a chunk waits for its lock, for ever here; elsewhere an update sees the replacement."""
    program = BEGIN + (
        "def give_up(*_): raise TimeoutError\n"
        "signal.signal(signal.SIGALRM, give_up)\n"
        "from tessarr.stores.functions import notices_writes; print(notices_writes(z.store))\n"
        "z[:32] = 1\n"  # imports what a write needs: an import that the alarm stops fails in its own way
        "with z.store.lock('c/0'):\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)\n"
        "    try:\n"
        "        z[:32] = 7\n"
        "    except TimeoutError:\n"
        "        print('waits')\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "print(z[0])\n"
    )
    where = {"engine": engine, "root": str(tmp_path / "a"), "options": ""}
    assert run(program, coarse_times, **where) == ["False", "waits", "1"]


@pytest.mark.parametrize("engine", ENGINES)
def test_only_where_times_are_coarse_the_engine_says_so(
    tmp_path: Path, coarse_times: dict[str, str], engine: str
) -> None:
    program = BEGIN + (
        "from tessarr.stores.functions import notices_writes; print(notices_writes(z.store))\n"
        "print('rounds times' in str(z.engine))\n"
    )
    where = {"engine": engine, "options": ""}
    assert run(program, child_environment(), root=str(tmp_path / "a"), **where) == ["True", "False"]
    assert run(program, coarse_times, root=str(tmp_path / "b"), **where) == ["False", str(engine == "native")]
    assert run(
        "import tessarr; z = tessarr.open_array({root!r}, mode='r'); print('rounds times' in str(z.engine))",
        coarse_times,
        root=str(tmp_path / "b"),
    ) == [str(extension.module() is not None)]
