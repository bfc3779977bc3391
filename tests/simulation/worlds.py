"""Places where simulated clients meet, beside the bucket of `tests.simulation.simulator`.

`Memory`: clients are threads of one process over one `MemoryStore`; each of its operations is atomic, and a point.
`Directory`: clients are processes over one directory of the real file system, with the code of `LocalStore`: each call of the
operating system that others can notice is a point, file locks exclude clients, and end with them.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tessarr.stores.base import ANY, Any_, Version
from tessarr.stores.local import exchange as local_exchange
from tessarr.stores.local import file as local_file
from tessarr.stores.local import lock as local_lock
from tessarr.stores.local import tree as local_tree
from tessarr.stores.local.lock import TEMPORARY_SUFFIX
from tessarr.stores.local.store import LocalStore
from tessarr.stores.local.swap import swap_root
from tessarr.stores.local.transactions import late, many
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.protocols import Commit
from tessarr.types import Buffer, ByteRange
from tests.simulation.simulator import CHANGE, CURRENT, LIST, LOCK, OTHER, READ, Access, Crashed, Simulation, replaced

# -- threads of one process ----------------------------------------------------------------------------------------------


class Memory:
    """Values in memory that threads share. A thread does not die alone, so that no client crashes here."""

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self.values = dict(values or {})
        self.writes = 0

    def connect(self, name: str, simulation: Simulation | None = None) -> Thread:
        """See `World`."""
        return Thread(self, name, simulation)

    def lock_name(self, client: str, name: Hashable) -> Hashable:
        """See `World`: locks are those of the one process."""
        return name

    def end(self, client: str) -> None:
        """See `World`."""


class Thread(MemoryStore):
    """What one thread has of the store."""

    def __init__(self, world: Memory, name: str, simulation: Simulation | None) -> None:
        super().__init__(world.values)
        self.world, self.name, self.simulation = world, name, simulation

    def _point(self, kind: str, *keys: str) -> None:
        if self.simulation is not None:
            self.simulation.point(self, kind, keys)  # type: ignore[arg-type]
        self.world.writes += kind == CHANGE

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        self._point(READ, key)
        return super().get(key, byte_range)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        self._point(READ, key)
        return super().get_ranges(key, ranges)

    def exists(self, key: str) -> bool:
        self._point(READ, key)
        return super().exists(key)

    def snapshot(self) -> MemoryStore:
        self._point(LIST, "")
        return super().snapshot()

    def version(self, key: str) -> Version | None:
        self._point(READ, key)
        return super().version(key)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._point(CHANGE, key)
        return super().set(key, value, if_match=if_match)

    def delete_if(self, key: str, version: Version | None) -> None:
        self._point(CHANGE, key)
        super().delete_if(key, version)

    def delete(self, key: str) -> None:
        self._point(CHANGE, key)
        super().delete(key)

    def delete_many(self, keys: Iterable[str]) -> None:
        keys = list(keys)
        self._point(CHANGE, *keys)
        super().delete_many(keys)

    def delete_prefix(self, prefix: str) -> None:
        self._point(CHANGE, prefix)
        super().delete_prefix(prefix)

    def replace_prefix(self, prefix: str, items: MutableMapping[str, Buffer] | Any) -> None:
        self._point(CHANGE, prefix)
        super().replace_prefix(prefix, items)

    def rename_prefix(self, source: str, dest: str) -> bool:
        self._point(CHANGE, source, dest)
        return super().rename_prefix(source, dest)

    def exchange_prefixes(self, one: str, other: str) -> bool:
        self._point(CHANGE, one, other)
        return super().exchange_prefixes(one, other)

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        self._point(CHANGE, "")
        super().commit(changes, expected, listed=listed, durable=durable)

    def list(self, prefix: str = "") -> Iterator[str]:
        self._point(LIST, prefix)
        return super().list(prefix)


# -- processes over one directory ------------------------------------------------------------------------------------------

SCRATCH = next((folder for folder in ("/dev/shm", tempfile.gettempdir()) if os.access(folder, os.W_OK)), None)
"""Where directories are made: in memory if possible."""


class Directory:
    """A directory that processes share; a copy of `template`, removed with the object."""

    def __init__(self, template: str | os.PathLike[str] | None = None) -> None:
        self._folder = tempfile.mkdtemp(prefix="tessarr-simulation-", dir=SCRATCH)
        self.root = os.path.join(self._folder, "data.zarr")
        if template is None:
            os.mkdir(self.root)
        else:
            _copy_of(os.fspath(template))(self.root)
        self.writes = 0
        self.descriptors: dict[str, set[int]] = {}

    def __del__(self) -> None:
        client, CURRENT.client = (
            CURRENT.client,
            None,
        )  # it may run in the thread of a client, and is nothing that one does
        try:
            shutil.rmtree(self._folder, ignore_errors=True)
        finally:
            CURRENT.client = client

    def connect(self, name: str, simulation: Simulation | None = None) -> Process:
        """See `World`."""
        return Process(self, name, simulation)

    def lock_name(self, client: str, name: Hashable) -> Hashable:
        """See `World`: each client is a process of its own."""
        return client, name

    def end(self, client: str) -> None:
        """Close the files of a process that has ended, and so release its locks."""
        for descriptor in self.descriptors.pop(client, ()):
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            _ORIGINAL["close"](descriptor)
            self.writes += 1


@functools.cache
def _copy_of(template: str) -> Callable[[str], None]:
    """A function that makes a copy of a directory, which nobody changes any more: `shutil.copytree` takes twice as long."""
    found = [(os.path.relpath(folder, template), files) for folder, _, files in os.walk(template)]
    folders = [folder for folder, _ in found]
    names = [os.path.normpath(os.path.join(folder, file)) for folder, files in found for file in files]
    contents = [(name, Path(template, name).read_bytes(), os.stat(os.path.join(template, name))) for name in names]

    def copy(root: str) -> None:
        for folder in folders:
            os.mkdir(os.path.normpath(os.path.join(root, folder)))
        for name, value, stat in contents:
            path = os.path.join(root, name)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.st_mode & 0o777)
            try:
                os.write(descriptor, value)
                os.utime(descriptor, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            finally:
                os.close(descriptor)

    return copy


class Process(LocalStore):
    """The store of one process."""

    def __init__(self, world: Directory, name: str, simulation: Simulation | None) -> None:
        super().__init__(world.root)
        self.world, self.name, self.simulation = world, name, simulation

    def has_ability(self, ability: type) -> bool:
        """A subclass elsewhere has no transactions, because it may store values in another form. This one does not."""
        return ability is Commit or super().has_ability(ability)


_ORIGINAL: dict[str, Callable[..., Any]] = {
    name: getattr(os, name)
    for name in (
        *("open", "close", "stat", "lstat", "link", "unlink", "replace", "rename", "mkdir", "rmdir", "scandir"),
        *("write", "utime", "fsync", "ftruncate"),
    )
}
_READS = {"stat", "lstat", "scandir"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_WITH_TWO = {"link", "replace", "rename"}
_CHANGES = {"link", "unlink", "replace", "rename", "mkdir", "rmdir"}


def _client() -> Any:
    client = CURRENT.client
    return client if isinstance(client, Process) and client.simulation is not None else None


def _alive(client: Any) -> None:
    if client.simulation.has_crashed(client):
        raise Crashed


def _is_private(name: str, arguments: tuple[Any, ...]) -> bool:
    """Whether no other process looks at what a call concerns: a temporary file that is not in place yet."""
    if name not in ("open", "unlink", "stat") or not isinstance(arguments[0], str):
        return name in ("close", "write", "utime", "fsync", "ftruncate")
    return arguments[0].endswith(TEMPORARY_SUFFIX)


def _path_of(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")


def _access(name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Access:
    """What a call does, for `orders`."""
    folders = [_path_of(given) for option, given in options.items() if option.endswith("dir_fd") and given is not None]
    named = arguments[: 2 if name in _WITH_TWO else 1]
    paths = [_path_of(given) if isinstance(given, int) else os.fspath(given) for given in named]
    if any(path.endswith(" (deleted)") for path in (*folders, *paths)) or len(folders) > 1:
        return OTHER, ()
    paths = [os.path.join(*folders, path) for path in paths]
    is_read = name in _READS or (name == "open" and not arguments[1] & _WRITING)
    return (READ if is_read else CHANGE), paths


def _patched(name: str) -> Callable[..., Any]:
    original = _ORIGINAL[name]

    def call(*arguments: Any, **options: Any) -> Any:
        client = _client()
        if client is None:
            return original(*arguments, **options)
        if name == "close":
            client.world.descriptors.get(client.name, set()).discard(arguments[0])
            client.world.writes += client.simulation.has_crashed(client)  # it may have held a lock
            return original(*arguments, **options)
        if not _is_private(name, arguments):
            client.simulation.point(client, *_access(name, arguments, options))
        else:
            _alive(client)
            if name in ("utime", "write", "ftruncate") and not _path_of(arguments[0]).endswith(TEMPORARY_SUFFIX):
                client.simulation.note(OTHER)
        result = original(*arguments, **options)
        client.world.writes += name in _CHANGES
        if name == "open":
            client.world.descriptors.setdefault(client.name, set()).add(result)
        return result

    return call


def _try_lock(descriptor: int, original: Callable[[int], None] = local_lock._try) -> None:
    client = _client()
    if client is not None:
        client.simulation.point(client, LOCK)
    original(descriptor)


def _lock(descriptor: int, original: Callable[[int], None] | None = local_lock._block) -> None:
    """Lock a file; where another process has it, let the others go on until something changes."""
    client = _client()
    if client is None:
        assert original is not None  # where the system has `flock`
        original(descriptor)
        return
    while True:
        try:
            _try_lock(descriptor)
            return
        except BlockingIOError:
            before = client.world.writes
            client.simulation.wait(client, lambda before=before: client.world.writes > before)


def _unlock(descriptor: int, original: Callable[[int], None] = local_lock._unlock) -> None:
    client = _client()
    if client is not None:
        _alive(client)
        client.world.writes += 1
        client.simulation.note(LOCK)
    original(descriptor)


def _is_own(lock: str) -> bool:
    """Whether the client itself has the lock file open."""
    client = _client()
    with contextlib.suppress(OSError):
        there = _ORIGINAL["stat"](lock)
        return client is not None and any(
            os.path.samestat(os.fstat(descriptor), there)
            for descriptor in client.world.descriptors.get(client.name, ())
        )
    return False


def _wait_for(marks: Any, lock: str) -> bool:
    if lock.endswith(f".copy{local_lock.LOCK_SUFFIX}"):
        return False  # held to the end of a copy, which may wait for a shape of the caller
    if _is_own(lock):  # moved by another client with the directory in which it is
        return False
    marks.wait_for(lock)
    return True


def _exchange(one: str, other: str, original: Callable[[str, str], bool] = local_exchange.exchange) -> bool:
    client = _client()
    if client is not None:
        client.simulation.point(client, CHANGE, (one, other))
        client.world.writes += 1
    return original(one, other)


@contextlib.contextmanager
def system_calls() -> Iterator[None]:
    """Make the system calls of clients points of their simulation. Those of all others are as ever."""
    places: list[tuple[Any, str, Any]] = [(os, name, _patched(name)) for name in _ORIGINAL]
    places += [(local_lock, "_try", _try_lock), (local_lock, "_block", _lock), (local_lock, "_unlock", _unlock)]
    places += [(local_tree, "exchange", _exchange), (swap_root, "exchange", _exchange), (local_file, "pread", os.pread)]
    # A client that waits is one that cannot go on, as with `_block`, so that two that wait for each other are found.
    places += [(late, "_PATIENCE", 1), (swap_root, "_was_released", _wait_for)]
    # The Rust module reads many files without a point in between.
    places += [(local_file, "reader_of_many", lambda: None)]
    # The same with what transactions stage, compare and rename; and it would wait for the lock of a client that cannot go on.
    places += [(many, "extension", SimpleNamespace(module=lambda: None))]
    with replaced(*places):
        yield


def template(folder: Path, make: Callable[[LocalStore], object]) -> Path:
    """Fill the directory `folder` by `make`, to be copied by `Directory`."""
    make(LocalStore(folder))
    return folder
