"""One table of steps for local files that Rust and Python follow: names of hidden files, order of calls, what a kill leaves.

Writers of both engines share directories. So the tables below are the protocol of `tessarr.stores.local.lock`, and each
engine is run against them, as strace sees it; a holder of one engine that was killed is followed by a writer of the other.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tests.stores.contract import child_environment
from tests.stores.tracing import strace

ENGINES = ("native", "reference")
CALLS = "openat,flock,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat"

LOCK, TEMPORARY = ".0.tessarr-lock", ".0.*.tessarr-tmp"
UPDATE = [f"create {LOCK}", f"lock {LOCK}"]
REPLACE = [f"create {TEMPORARY}", "lock 0", f"rename {TEMPORARY} to 0", "unlock 0"]
FIRST = [f"create {TEMPORARY}", f"rename {TEMPORARY} to the unused name 0"]
REMOVE = ["lock 0", "remove 0", "unlock 0"]
RELEASE = [f"remove {LOCK}", f"unlock {LOCK}"]

STEPS = {
    "a whole chunk, the first": ("", "z[:] = 1", FIRST),
    "a whole chunk in place of another": ("", "z[:] = 2", REPLACE),
    "a part of a chunk": ("", "z[:2] = 3", [*UPDATE, *REPLACE, *RELEASE]),
    "a part, after which all is fill": ("z[2:] = 0", "z[:2] = 0", [*UPDATE, *REMOVE, *RELEASE]),
    "a part of a chunk that is missing": ("", "z[:2] = 4", [*UPDATE, *FIRST, *RELEASE]),
    "a whole chunk of fill": ("", "z[:] = 0", REMOVE),
}
"""What is done to the only chunk, one after another: a preparation, the write, and its calls that change files or locks."""

PROGRAM = """
import os, sys, numpy, tessarr
tessarr.config.set({{"engine": {engine!r}}})
z = tessarr.open_array({path!r}, mode="r+")
assert z.engine.name == {engine!r}
{work}
"""


def make(path: Path) -> None:
    """An array of one chunk, the value ``c/0``, whose directory stays while the chunk goes."""
    tessarr.create_array(str(path), shape=(8,), chunks=(8,), dtype="i4", compressors=None)
    (path / "c").mkdir()
    (path / "c" / "keep").touch()


def run(engine: str, path: Path, work: str, log: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `work` on the array at `path`, traced to `log`."""
    command = [strace(), "-f", "-y", "-qq", "-s", "4096", "-o", str(log), *options]
    program = PROGRAM.format(engine=engine, path=str(path), work=work)
    return subprocess.run(
        [*command, sys.executable, "-c", program], capture_output=True, text=True, env=child_environment()
    )


def steps(text: str, folder: Path) -> list[str]:
    """The calls of a log that changed or locked files of `folder`, in words; a mark ``mkdir`` stays as its name."""
    found: list[str] = []
    for line in text.splitlines():
        call = re.match(r"^\d+ +(\w+)\((.*)\) += (-?\d+)", line)
        if call is None or call[3] == "-1":
            continue
        name, arguments = call[1], call[2]
        paths = re.findall(rf'[<"]{re.escape(str(folder))}/([^/>"]+?)(?: \(deleted\))?[>"]', arguments)
        files = [re.sub(r"^(\.0\.).+(\.tessarr-tmp)$", r"\1*\2", file) for file in paths]
        if name.startswith("mkdir") and files:
            found.append(files[0])
        elif name == "openat" and files and "O_CREAT" in arguments:
            found.append(f"create {files[0]}")
        elif name == "flock" and files:
            found.append(f"{'unlock' if 'LOCK_UN' in arguments else 'lock'} {files[0]}")
        elif name.startswith("link") and files:
            found.append(f"rename {files[0]} to the unused name {files[1]}")
        elif name.startswith("rename") and files:
            unused = "the unused name " if "RENAME_NOREPLACE" in arguments else ""
            found.append(f"rename {files[0]} to {unused}{files[1]}")
        elif name.startswith("unlink") and files and not (files[0] == TEMPORARY and found[-1:] == FIRST[-1:]):
            found.append(f"remove {files[0]}")  # a linked file loses its temporary name: one step
    return found


@pytest.fixture(scope="module", params=ENGINES)
def observed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The steps of an engine for each case of the table, from one process."""
    place = tmp_path_factory.mktemp("protocol")
    make(place / "a")
    mark = "os.mkdir({!r})"
    work = "\n".join(
        f"{before}\n{mark.format(str(place / 'a' / 'c' / f'mark {name}'))}\n{write}\n"
        + mark.format(str(place / "a" / "c" / f"mark after {name}"))
        for name, (before, write, _) in STEPS.items()
    )
    ended = run(request.param, place / "a", work, place / "log", "-e", f"trace={CALLS}")
    assert ended.returncode == 0, ended.stderr
    found: dict[str, list[str]] = {}
    for step in steps((place / "log").read_text(), place / "a" / "c"):
        if step.startswith("mark "):
            found[step.removeprefix("mark ")] = []
        elif found:
            found[[*found][-1]].append(step)
    return found


@pytest.mark.parametrize("case", STEPS)
def test_an_engine_follows_the_steps_of_the_table(observed: dict[str, list[str]], case: str) -> None:
    assert observed[case] == STEPS[case][2]


KILLED_AT = {
    "flock": (["-e", "trace=flock", "-e", "inject=flock:signal=KILL:when=1"], [LOCK, "0"]),
    "rename": (["-e", "trace=rename,renameat,renameat2", "-e", "inject=rename,renameat,renameat2:signal=KILL:when=1"],
               [TEMPORARY, LOCK, "0"]),
    "unlink": (["-e", "trace=unlink,unlinkat", "-e", "inject=unlink,unlinkat:signal=KILL:when=1"], [LOCK, "0"]),
}  # fmt: skip
"""Where a writer of a part is killed: options of strace, and the files that it leaves beside each other."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("where", KILLED_AT)
def test_what_a_killed_holder_leaves_does_not_stop_a_writer_of_the_other_engine(
    tmp_path: Path, engine: str, where: str
) -> None:
    path, (options, left) = tmp_path / "a", KILLED_AT[where]
    make(path)
    tessarr.open_array(str(path), mode="r+")[:] = 1
    ended = run(engine, path, "z[:2] = 2", tmp_path / "log", *options)
    assert -ended.returncode == signal.SIGKILL or ended.returncode == 128 + signal.SIGKILL, ended.stderr
    files = sorted(re.sub(r"^(\.0\.).+(\.tessarr-tmp)$", r"\1*\2", name) for name in os.listdir(path / "c"))
    assert files == sorted([*left, "keep"])
    with tessarr.config.set({"engine": ENGINES[engine == ENGINES[0]]}):
        z = tessarr.open_array(str(path), mode="r+")
        z[4:6] = 3
    done = where == "unlink"  # the lock file is removed after the new value is in place
    np.testing.assert_array_equal(z[:], [2, 2, 1, 1, 3, 3, 1, 1] if done else [1, 1, 1, 1, 3, 3, 1, 1])
    assert not (path / "c" / LOCK).exists(), "the next holder removes the lock file"
