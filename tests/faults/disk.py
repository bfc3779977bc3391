"""What a file system may hold after a power cut: the changes that a program made, of which only the synced ones must be there.

`Disk` is told the system calls of a program and keeps inodes, which have content, and changes of names. From these it makes the
states of two models:

- *posix*: a change of a name is there if one of its directories was synced after it; content, if the file was. Of the rest
  each may be there or not: none, all, each missing alone, each there alone.
- *ext4*: changes of names are there up to one of them, in order, and up to the last sync at least; content that was not synced
  is there, or empty, or the first half of it.

A rename is one change in both. States are maps from paths to contents (``None``: a directory).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Tree = dict[str, bytes | None]


@dataclass(eq=False)
class Inode:
    """A file, or a directory."""

    is_directory: bool
    data: bytes = b""
    synced: bytes = b""
    is_there: bool = False
    """Whether it was there from the beginning."""
    names: dict[str, Inode] = field(default_factory=dict)
    """Of a directory, now."""

    @property
    def is_loose(self) -> bool:
        """Whether content may be lost."""
        return not self.is_directory and self.data != self.synced


@dataclass(eq=False)
class Change:
    """One change of names: names that are removed, and names that lead to an inode."""

    removed: list[tuple[Inode, str]]
    added: list[tuple[Inode, str, Inode]]
    is_synced: bool = False

    def concerns(self, directory: Inode) -> bool:
        """Whether a sync of `directory` makes it durable."""
        return any(inode is directory for inode, *_ in [*self.removed, *self.added])


class Disk:
    """The directory tree at `root`, all of which is durable at the beginning, and what became of it."""

    def __init__(self, root: Path) -> None:
        self.root = Inode(True, is_there=True)
        self._first: list[tuple[Inode, str, Inode]] = []
        self._fill(root, self.root)
        self.changes: list[Change] = []
        self.files: list[Inode] = []

    def _fill(self, folder: Path, inode: Inode) -> None:
        for path in sorted(folder.iterdir()):
            data = b"" if path.is_dir() else path.read_bytes()
            child = inode.names[path.name] = Inode(path.is_dir(), data, data, is_there=True)
            self._first.append((inode, path.name, child))
            if path.is_dir():
                self._fill(path, child)

    # -- calls of the program ------------------------------------------------------------------------------------------

    def find(self, path: str, folder: Inode | None = None) -> Inode | None:
        """The inode at a path below `folder`."""
        inode: Inode | None = folder or self.root
        for name in filter(None, path.split("/")):
            inode = None if inode is None else inode.names.get(name)
        return inode

    def _parent(self, path: str) -> tuple[Inode, str]:
        above, _, name = path.strip("/").rpartition("/")
        folder = self.find(above)
        assert folder is not None, path
        return folder, name

    def create(self, path: str, *, is_directory: bool = False) -> Inode:
        """Make a file or a directory."""
        folder, name = self._parent(path)
        inode = Inode(is_directory)
        folder.names[name] = inode
        self.changes.append(Change([], [(folder, name, inode)]))
        self.files += [] if is_directory else [inode]
        return inode

    def link(self, source: str, target: str) -> None:
        """Give a file another name."""
        inode = self.find(source)
        assert inode is not None
        folder, name = self._parent(target)
        folder.names[name] = inode
        self.changes.append(Change([], [(folder, name, inode)]))

    def remove(self, path: str) -> None:
        """Remove a name."""
        folder, name = self._parent(path)
        del folder.names[name]
        self.changes.append(Change([(folder, name)], []))

    def rename(self, source: str, target: str, *, exchange: bool = False) -> None:
        """Rename, over what is there, or exchange two names."""
        (old, was), (new, name) = self._parent(source), self._parent(target)
        inode, other = old.names.pop(was), new.names.get(name)
        new.names[name] = inode
        change = Change([(old, was)], [(new, name, inode)])
        if exchange:
            assert other is not None
            old.names[was] = other
            change = Change([], [(new, name, inode), (old, was, other)])
        self.changes.append(change)

    def write(self, inode: Inode, data: bytes, offset: int) -> None:
        """Write bytes into a file."""
        before = inode.data.ljust(offset, b"\0")
        inode.data = before[:offset] + data + before[offset + len(data) :]

    def sync(self, inode: Inode) -> None:
        """Sync a file or a directory."""
        inode.synced = inode.data
        if inode.is_directory:
            for change in self.changes:
                change.is_synced |= change.concerns(inode)

    def sync_all(self) -> None:
        """Sync the file system."""
        for inode in self.files:
            inode.synced = inode.data
        for change in self.changes:
            change.is_synced = True

    # -- after a power cut -----------------------------------------------------------------------------------------------

    def now(self) -> Tree:
        """What is there without a power cut."""
        return self._tree([], {})

    def states(self) -> Iterator[tuple[str, Tree]]:
        """What may be there now, each with what it is."""
        yield from self._posix()
        yield from self._ext4()

    def _posix(self) -> Iterator[tuple[str, Tree]]:
        loose = [change for change in self.changes if not change.is_synced]
        files = [inode for inode in self.files if inode.is_loose]
        lost = {id(inode): inode.synced for inode in files}
        yield "posix, nothing unsynced", self._tree(loose, lost)
        yield "posix, everything", self.now()
        yield "posix, all names and no content", self._tree(loose[:0], lost)
        for number, change in enumerate(loose):
            yield f"posix, without change {number}", self._tree([change], {})
            yield f"posix, change {number} alone", self._tree([one for one in loose if one is not change], lost)
        for number, inode in enumerate(files):
            yield f"posix, without content {number}", self._tree([], {id(inode): inode.synced})

    def _ext4(self) -> Iterator[tuple[str, Tree]]:
        last = max((at for at, change in enumerate(self.changes, 1) if change.is_synced), default=0)
        files = [inode for inode in self.files if inode.is_loose]
        for stop in range(last, len(self.changes) + 1):
            missing = self.changes[stop:]
            yield f"ext4, {stop} changes", self._tree(missing, {})
            yield f"ext4, {stop} changes and no content", self._tree(missing, {id(one): one.synced for one in files})
            half = {id(one): one.data[: len(one.data) // 2] for one in files}
            yield f"ext4, {stop} changes and half of the content", self._tree(missing, half)

    def _tree(self, missing: list[Change], contents: Mapping[int, bytes]) -> Tree:
        names: dict[int, dict[str, Inode]] = {}
        for folder, name, inode in self._first:
            names.setdefault(id(folder), {})[name] = inode
        absent = {id(change) for change in missing}
        for change in self.changes:
            if id(change) in absent:
                continue
            for folder, name in change.removed:
                names.setdefault(id(folder), {}).pop(name, None)
            for folder, name, inode in change.added:
                names.setdefault(id(folder), {})[name] = inode
        tree: Tree = {}
        pending = [("", self.root, frozenset([id(self.root)]))]
        while pending:
            prefix, folder, above = pending.pop()
            for name, inode in names.get(id(folder), {}).items():
                path = prefix + name
                if not inode.is_directory:
                    tree[path] = contents.get(id(inode), inode.data)
                elif id(inode) not in above:
                    tree[path] = None
                    pending.append((f"{path}/", inode, above | {id(inode)}))
        return tree
