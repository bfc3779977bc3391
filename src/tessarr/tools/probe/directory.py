"""What the file system of a directory does: replacement, links, exchange, times, names, syncing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tessarr.stores.local.exchange import exchange
from tessarr.stores.local.store import LocalStore
from tessarr.stores.local.sync import sync, sync_directory

_REWRITES = 64


@dataclass(frozen=True)
class Fact:
    """One thing that a file system does, or does not."""

    name: str
    holds: bool
    detail: str


def facts(directory: Path) -> Iterator[Fact]:
    """Try what stores rely on, in the empty `directory`."""
    yield Fact("file system", True, kind_of(directory))
    yield _times(directory)
    yield _link(directory)
    yield _exchange(directory)
    yield _sync(directory)
    yield _names(directory)


def kind_of(directory: Path) -> str:
    """Return the type of the file system and its mount point, where the system says (Linux)."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return sys.platform
    place, found = os.path.realpath(directory), ("", "unknown")
    for line in mounts:
        before, _, after = line.partition(" - ")
        mount = before.split(" ")[4].encode().decode("unicode_escape")
        inside = place == mount or place.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(found[0]):
            found = mount, after.split(" ")[0]
    return f"{found[1]}, mounted at {found[0]}" if found[0] else found[1]


def _times(directory: Path) -> Fact:
    """Whether the version of a value (inode, time, size) changes with each replacement."""
    store = LocalStore(directory / "times")
    versions, grains = [], []
    for number in range(_REWRITES):
        store.set("k", b"%04d" % number)
        versions.append(store.version("k"))
        grains.append(os.stat(directory / "times" / "k").st_mtime_ns)
    steps = [after - before for before, after in pairwise(grains) if after > before]
    finest = f"{min(steps) / 1e6:.3f} ms" if steps else "not seen to change"
    distinct = len(set(versions)) == _REWRITES
    return Fact("versions", distinct and not store.has_coarse_times, f"finest step of file times: {finest}")


def _link(directory: Path) -> Fact:
    (directory / "one").write_bytes(b"1")
    try:
        os.link(directory / "one", directory / "two")
    except OSError as error:
        return Fact("hard links", False, str(error.strerror))
    return Fact("hard links", os.stat(directory / "one").st_ino == os.stat(directory / "two").st_ino, "")


def _exchange(directory: Path) -> Fact:
    for name in ("old", "new"):
        (directory / name).mkdir()
        (directory / name / name).write_bytes(b"")
    try:
        done = exchange(str(directory / "old"), str(directory / "new"))
    except OSError as error:
        return Fact("exchange of directories", False, str(error.strerror))
    return Fact("exchange of directories", done and (directory / "old" / "new").exists(), "")


def _sync(directory: Path) -> Fact:
    try:
        with (directory / "synced").open("wb") as file:
            file.write(b"1")
            file.flush()
            sync(file.fileno())
        sync_directory(str(directory))
    except OSError as error:
        return Fact("sync", False, str(error.strerror))
    return Fact("sync", True, "accepted for files and directories; only a power cut shows whether the device obeys")


def _names(directory: Path) -> Fact:
    """Whether names that differ in case, or in the normalization of accents, are different files."""
    folder = directory / "names"
    folder.mkdir()
    names = ["a", "A", "\u00e9", "e\u0301"]
    for name in names:
        (folder / name).write_bytes(name.encode())
    kept = [name for name in names if (folder / name).read_bytes() == name.encode()]
    same = sorted(set(names) - set(kept))
    return Fact("names", not same, f"not distinct: {same}" if same else "case and normalization are kept")
