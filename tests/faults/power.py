"""Cut the power at every moment of a workload, and look at what a reader finds.

strace records the calls of a workload with what they write (`tests/faults/injection.py`); `tests/faults/disk.py` makes the
states that a file system may be in after each of them. Each state is written to a directory and read.

A directory that was written again has other inodes, by which journals recognise their files: here files are recognised by their
size, and directories are not told apart.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from tessarr.storage import LocalStore
from tessarr.stores.local.transactions import journal, keep, late, recovery, root
from tests.faults.disk import Disk, Inode, Tree
from tests.faults.injection import Bench, _wait
from tests.faults.workloads import observe

CALLS = (
    "openat,openat2,close,write,pwrite64,writev,copy_file_range,sendfile,ioctl,ftruncate,fallocate,lseek,dup,"
    "fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir"
)
_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(?:<.*>)?(?: .*)?$", re.DOTALL)
_CLOSE = re.compile(r"^\d+ +close\((\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_DESCRIPTOR = re.compile(r"^(AT_FDCWD|\d+)")


class Moment(NamedTuple):
    """The states after one call of a workload."""

    number: int
    call: str
    states: list[tuple[str, Tree]]


class _Similar(str):
    """A version of a file that is equal to others of the same size, whatever the inode and the time are."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.rpartition(":")[2] == self.rpartition(":")[2]

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class _Any(str):
    """The identity of a directory that is equal to any other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


@contextmanager
def rewritten() -> Iterator[None]:
    """Recognise files by their size, and take any directory for that of its journal."""

    def version(found: str | None) -> str | None:
        return None if found is None else _Similar(found)

    with mock.patch.multiple(recovery, version_in_journal=version, identity=lambda _: _Any("any")):  # noqa: SIM117
        with (
            mock.patch.object(root, "version_in_journal", version),
            mock.patch.multiple(late, version_in_journal=version, identity=lambda _: _Any("any")),
            mock.patch.object(journal, "version_in_journal", version),
        ):
            with mock.patch.object(keep, "version_in_journal", version, create=True):
                yield


class PowerBench(Bench):
    """A workload, recorded once."""

    def moments(self) -> Iterator[Moment]:
        """The states after each call that changes or syncs something."""
        assert self.clean.code == 0
        with self._place() as data:
            place = os.path.dirname(data)
            disk = Disk(Path(place))
            log = self._record(data)
            there = _tree_at(Path(place))
        replay = _Replay(disk, place)
        yield Moment(0, "", [*disk.states()])
        for number, (name, arguments, result) in enumerate(_parsed(log), 1):
            if replay.call(name, arguments, result):
                yield Moment(number, name, [*disk.states()])
        assert disk.now() == there, "the calls that were recorded are not all that the workload did"

    def _record(self, place: str) -> str:
        log = os.path.join(self._folder, "power.log")
        begin, release = os.pipe()
        child = os.fork()
        if child == 0:
            import mmap

            self._be_the_child(place, begin, mmap.mmap(-1, 1 << 16))
        os.close(begin)
        command = [self._strace, "-f", "-y", "-xx", "-s", str(1 << 24), "-p", str(child), "-o", log]
        tracer = subprocess.Popen([*command, "-e", f"trace={CALLS}"], stderr=subprocess.PIPE)
        assert tracer.stderr is not None
        assert b"attached" in tracer.stderr.readline()
        os.write(release, b"x")
        os.close(release)
        assert _wait(child) == 0
        tracer.stderr.close()
        tracer.wait()
        return Path(log).read_text(errors="replace")

    def judge_state(self, tree: Tree, *, is_end: bool) -> str | None:
        """Write a state to a directory and read it. Returns what is wrong. `is_end`: the workload has returned."""
        place = os.path.join(self._folder, "state")
        shutil.rmtree(place, ignore_errors=True)
        _write(place, tree)
        data = os.path.join(place, "data")
        with rewritten():
            try:
                found = observe(data)
                LocalStore(data).settle("")
                again = observe(data)
            except Exception as error:
                return f"I3: what is there cannot be read: {error!r}"
        if again != found:
            return "I2, I4: a recovery changes what readers see"
        if is_end:
            return None if found == self.after else f"I7: it had returned, and is undone: {found}"
        if found in (self.before, self.after):
            return None
        if self.workload.is_one_step:
            return f"I1, I2: neither old nor new: {found}"
        mixed = self.workload.neither_old_nor_new(found, self.before, self.after)
        return None if mixed is None else f"I3: {mixed[0]!r} is neither old nor new: {mixed[1]}"


def _tree_at(place: Path) -> Tree:
    return {
        str(path.relative_to(place)): None if path.is_dir() else path.read_bytes() for path in sorted(place.rglob("*"))
    }


def key_of(tree: Tree) -> str:
    """The digest of a state, to look at equal ones once."""
    return hashlib.sha256(repr(sorted(tree.items())).encode()).hexdigest()


def _write(place: str, tree: Tree) -> None:
    os.mkdir(place)
    for path in sorted(tree):
        data = tree[path]
        if data is None:
            os.mkdir(os.path.join(place, path))
        else:
            Path(place, path).write_bytes(data)


def _parsed(log: str) -> Iterator[tuple[str, str, int]]:
    """The calls of a log that succeeded: name, arguments, result."""
    unfinished: dict[str, str] = {}
    for line in log.splitlines():
        thread = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            unfinished[thread] = line.removesuffix("<unfinished ...>").rstrip()
            closed = _CLOSE.match(line)
            if closed is not None:  # from now on the descriptor may be that of another file
                yield "close", closed[1], 0
            continue
        if "resumed>" in line:
            if _CLOSE.match(unfinished[thread]):
                continue
            line = unfinished.pop(thread) + line.partition("resumed>")[2]
        found = _LINE.match(line)
        if found is not None and int(found[3]) >= 0:
            yield found[1], found[2], int(found[3])


def _text(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


class _Replay:
    """Tell a disk what the calls of a program did."""

    def __init__(self, disk: Disk, place: str) -> None:
        self._disk, self._place = disk, place
        self._open: dict[int, tuple[Inode, int]] = {}
        """Descriptor → inode and position."""
        self._paths: dict[int, str] = {}

    def call(self, name: str, arguments: str, result: int) -> bool:
        """Returns whether something has changed or was synced."""
        do = getattr(self, f"_{name}", None)
        return False if do is None else bool(do(arguments, result))

    def _inside(self, arguments: str, number: int = 0) -> str | None:
        """Return the path of the string with this number, relative to the place; ``None``: it is elsewhere."""
        texts = [*_TEXT.finditer(arguments)]
        text = texts[number]
        path = os.fsdecode(_text(text[1]))
        if not path.startswith("/"):
            # The descriptor of the directory is before the string.
            before = arguments[: text.start()] if number == 0 else arguments[texts[number - 1].end() :]
            found = re.search(r"(\d+)<", before)
            if found is None or int(found[1]) not in self._paths:
                return None
            path = os.path.normpath(f"{self._paths[int(found[1])]}/{path}")
        if path != self._place and not path.startswith(self._place + "/"):
            return None
        return path[len(self._place) :].strip("/")

    def _descriptor(self, arguments: str) -> int:
        found = _DESCRIPTOR.match(arguments)
        assert found is not None, arguments
        return -1 if found[1] == "AT_FDCWD" else int(found[1])

    def _openat(self, arguments: str, result: int) -> bool:
        self._open.pop(result, None)
        self._paths.pop(result, None)
        path = self._inside(arguments)
        if path is None:
            return False
        flags = arguments[next(_TEXT.finditer(arguments)).end() :]
        inode = self._disk.find(path)
        is_new = inode is None
        if inode is None:
            assert "O_CREAT" in flags, (path, flags)
            inode = self._disk.create(path)
        if "O_TRUNC" in flags:
            inode.data = b""
        self._open[result] = (inode, 0)
        self._paths[result] = f"{self._place}/{path}".rstrip("/")
        return is_new

    _openat2 = _openat

    def _close(self, arguments: str, _: int) -> bool:
        self._open.pop(self._descriptor(arguments), None)
        self._paths.pop(self._descriptor(arguments), None)
        return False

    def _dup(self, arguments: str, result: int) -> bool:
        number = self._descriptor(arguments)
        if number in self._open:
            self._open[result] = self._open[number]
        return False

    def _lseek(self, arguments: str, result: int) -> bool:
        number = self._descriptor(arguments)
        if number in self._open:
            self._open[number] = (self._open[number][0], result)
        return False

    def _write(self, arguments: str, result: int) -> bool:
        number = self._descriptor(arguments)
        if number not in self._open:
            return False
        inode, at = self._open[number]
        text = _TEXT.search(arguments)
        assert text is not None
        assert not text[2], "strace cut a value off"
        self._disk.write(inode, _text(text[1])[:result], at)
        self._open[number] = (inode, at + result)
        return True

    def _pwrite64(self, arguments: str, result: int) -> bool:
        number = self._descriptor(arguments)
        if number not in self._open:
            return False
        text = _TEXT.search(arguments)
        assert text is not None
        assert not text[2], "strace cut a value off"
        self._disk.write(self._open[number][0], _text(text[1])[:result], int(arguments.rpartition(", ")[2]))
        return True

    def _writev(self, arguments: str, _: int) -> bool:
        assert self._descriptor(arguments) not in self._open, "writev is not replayed"
        return False

    def _sendfile(self, arguments: str, _: int) -> bool:
        assert self._descriptor(arguments) not in self._open, "sendfile is not replayed"
        return False

    def _ioctl(self, arguments: str, _: int) -> bool:
        assert "FICLONE" not in arguments or self._descriptor(arguments) not in self._open, "clones are not replayed"
        return False

    def _copy_file_range(self, arguments: str, result: int) -> bool:
        source, at_in, target, at_out, *_ = re.sub(r"<[^>]*>", "", arguments).split(", ")
        from_, to = self._open.get(int(source)), self._open.get(int(target))
        if to is None:
            return False
        assert from_ is not None
        begin, end = (
            at if text == "NULL" else int(text.strip("[]")) for (_, at), text in ((from_, at_in), (to, at_out))
        )
        self._disk.write(to[0], from_[0].data[begin : begin + result], end)
        if at_in == "NULL":
            self._open[int(source)] = (from_[0], begin + result)
        if at_out == "NULL":
            self._open[int(target)] = (to[0], end + result)
        return True

    def _ftruncate(self, arguments: str, _: int) -> bool:
        found = self._open.get(self._descriptor(arguments))
        if found is None:
            return False
        size = int(arguments.rpartition(", ")[2])
        found[0].data = found[0].data[:size].ljust(size, b"\0")
        return True

    def _fallocate(self, arguments: str, _: int) -> bool:
        found = self._open.get(self._descriptor(arguments))
        if found is None or "KEEP_SIZE" in arguments:
            return False
        offset, length = arguments.split(", ")[-2:]
        found[0].data = found[0].data.ljust(int(offset) + int(length), b"\0")
        return True

    def _fsync(self, arguments: str, _: int) -> bool:
        found = self._open.get(self._descriptor(arguments))
        if found is None:
            return False
        self._disk.sync(found[0])
        return True

    _fdatasync = _fsync

    def _syncfs(self, arguments: str, _: int) -> bool:
        self._disk.sync_all()
        return True

    def _rename(self, arguments: str, _: int) -> bool:
        source, target = self._inside(arguments, 0), self._inside(arguments, 1)
        assert (source is None) == (target is None), arguments
        if source is not None and target is not None:
            self._disk.rename(source, target, exchange="RENAME_EXCHANGE" in arguments)
        return source is not None

    _renameat = _renameat2 = _rename

    def _link(self, arguments: str, _: int) -> bool:
        source, target = self._inside(arguments, 0), self._inside(arguments, 1)
        if target is not None:
            assert source is not None
            self._disk.link(source, target)
        return target is not None

    _linkat = _link

    def _unlink(self, arguments: str, _: int) -> bool:
        path = self._inside(arguments)
        if path is not None:
            self._disk.remove(path)
        return path is not None

    _unlinkat = _rmdir = _unlink

    def _mkdir(self, arguments: str, _: int) -> bool:
        path = self._inside(arguments)
        if path is not None:
            self._disk.create(path, is_directory=True)
        return path is not None

    _mkdirat = _mkdir
