"""System calls of a program, as strace sees them, and which names they leave that a power cut could undo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.stores.contract import child_environment
from tests.stores.remote.servers import find_program

CALLS = (
    "openat,openat2,fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir"
)
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
_HIDDEN = re.compile(r"\.tessarr-(tmp|lock|journal)(/|$)")
_ARGUMENT = re.compile(r'(?:AT_FDCWD|\d+)<([^>]*)>|"((?:[^"\\]|\\.)*)"|(AT_FDCWD)')


class Call(NamedTuple):
    """A system call that succeeded, and the absolute paths it is about."""

    name: str
    paths: tuple[str, ...]


def strace() -> str:
    """Where the program strace is; skips the test where it cannot be, or may not trace."""
    if sys.platform != "linux":
        pytest.skip("strace traces the system calls of Linux")
    program = find_program("strace")
    tried = subprocess.run([program, "-qq", "-e", "trace=none", "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"strace may not trace here: {tried.stderr.strip()}")
    return program


def traced(program: str, tmp_path: Path, *options: str) -> tuple[list[Call], subprocess.CompletedProcess[str]]:
    """The changing calls that the Python `program` made, of one thread after another; and how it ended."""
    log = tmp_path / "strace.log"
    command = [strace(), "-f", "-y", "-qq", "-s", "4096", "-o", str(log), "-e", f"trace={CALLS}", *options]
    # -B: the bytecode of modules that are imported for the first time is no change of the program's.
    ended = subprocess.run(
        [*command, sys.executable, "-B", "-c", program], capture_output=True, text=True, env=child_environment()
    )
    return parse(log.read_text(), os.getcwd()), ended


def parse(text: str, cwd: str) -> list[Call]:
    """The calls of a log of strace.

    >>> parse('7 unlinkat(3</d>, "x", 0) = 0', "/")
    [Call(name='unlinkat', paths=('/d/x',))]
    """
    calls = []
    unfinished: dict[str, str] = {}
    for line in text.splitlines():
        thread = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            unfinished[thread] = line.removesuffix(" <unfinished ...>").removesuffix("<unfinished ...>")
            continue
        if "resumed>" in line:
            line = unfinished.pop(thread) + line.partition("resumed>")[2]
        found = _LINE.match(line)
        if found is None or int(found[3]) < 0:
            continue
        base, paths = cwd, []
        for directory, name, here in _ARGUMENT.findall(found[2]):
            if name:
                paths.append(os.path.join(base, name.encode().decode("unicode_escape").encode("latin-1").decode()))
            elif not here:
                base = directory
        if found[1].startswith("openat") and "O_CREAT" not in found[2]:
            continue
        name = "exchange" if "RENAME_EXCHANGE" in found[2] else found[1]
        calls.append(Call(name, tuple(paths) or (base,)))
    return calls


def undone_by_a_power_cut(calls: Sequence[Call], root: Path) -> list[str]:
    """What is not on the disk when all `calls` were made, of a file system that promises what POSIX promises.

    Entries of directories that were not synced after they changed, and files whose content was not synced before they
    came to their name. Hidden names, which are never values, do not count.
    """
    loose: set[str] = set()
    created: set[str] = set()
    synced: set[str] = set()
    removed: set[str] = set()

    def inside(paths: set[str], directory: str) -> set[str]:
        return {path for path in paths if path == directory or path.startswith(directory + os.sep)}

    def move(old: str, new: str) -> None:
        for paths in (loose, synced, created):
            moved = inside(paths, old)
            paths -= moved
            paths |= {new + path[len(old) :] for path in moved}

    for name, paths in calls:
        if name in ("fsync", "fdatasync"):
            synced.add(paths[0])
            loose -= {path for path in loose if os.path.dirname(path) == paths[0]}
            for directory in {path for path in removed if os.path.dirname(path) == paths[0]}:
                removed.discard(directory)
                loose -= inside(loose, directory)
            continue
        if name.startswith("openat"):
            created.add(paths[0])
            continue
        if name == "syncfs":
            synced |= created
            loose.clear()
            removed.clear()
            continue
        if name == "exchange":
            move(paths[0], "")
            move(paths[1], paths[0])
            move("", paths[1])
        elif name.startswith("rename"):
            move(*paths)
        elif name.startswith("link") and paths[0] in synced:
            synced.add(paths[1])
        elif name == "rmdir":
            removed.add(paths[0])  # an empty directory that comes back holds no value; what was removed from it may
            continue
        elif name.startswith("mkdir"):
            removed.discard(paths[0])
            loose -= inside(loose, paths[0])
        elif name.startswith("unlink"):
            synced.discard(paths[0])
        loose.update(paths)
    visible = {path for path in loose if path.startswith(f"{root}{os.sep}") and not _HIDDEN.search(path)}
    files = {path for path in map(str, root.rglob("*")) if os.path.isfile(path) and not _HIDDEN.search(path)}
    placed = {path for name, paths in calls if name.startswith(("rename", "link", "exchange")) for path in paths}
    unsynced = {path for path in files if any((path + os.sep).startswith(at + os.sep) for at in placed)} - synced
    return sorted(visible | {f"content of {path}" for path in unsynced})
