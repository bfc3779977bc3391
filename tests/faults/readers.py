"""Who looks at a hierarchy while a workload is stopped, and after it has ended: what each of them must find.

A snapshot that was taken before must show what was there then. Someone who opens for writing completes what was begun, which
changes nothing that readers see, and leaves nothing hidden once leftovers are removed; then another transaction commits.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import tessarr
from tessarr.errors import SnapshotChangedError
from tessarr.storage import LocalStore
from tessarr.stores.base import Store
from tessarr.stores.local.lock import SNAPSHOT_SUFFIX, is_hidden
from tests.faults.workloads import State, found_in, observe


class Meanwhile:
    """Readers that come while the program is stopped: one opens, one takes a snapshot, for which it may have to wait."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._found: list[tuple[str, State | Exception]] = []
        self._threads: list[threading.Thread] = []

    def look(self) -> None:
        """Read now, and begin to take a snapshot."""
        self._see("a reader", lambda: observe(self._root))
        thread = threading.Thread(target=self._see, args=("a snapshot", self._snapshot))
        thread.start()
        self._threads.append(thread)

    def found(self) -> list[tuple[str, State | Exception]]:
        """What was found, by whom, when all of them are done; the program has ended."""
        for thread in self._threads:
            thread.join()
        return self._found

    def _see(self, who: str, read: Any) -> None:
        try:
            self._found.append((who, read()))
        except Exception as error:
            self._found.append((who, error))

    def _snapshot(self) -> State:
        taken = LocalStore(self._root).snapshot()
        try:
            return dict(found_in(taken))
        finally:
            taken.close()


def read_snapshot(taken: Store) -> State | None:
    """What is in a snapshot; ``None``: it has noticed that something was not kept."""
    try:
        return dict(found_in(taken))
    except SnapshotChangedError:
        return None


def clean_up(root: str) -> list[str]:
    """Remove what was left, and return the hidden names that are still there, or beside the root."""
    LocalStore(root).remove_leftovers(older_than_s=0)
    names = [os.path.join(folder, name) for folder, *both in os.walk(root) for name in (*both[0], *both[1])]
    names += os.listdir(os.path.dirname(root))
    return [name for name in names if is_hidden(os.path.basename(name)) and SNAPSHOT_SUFFIX not in name]


def commit_again(root: str) -> str | None:
    """Commit another transaction. Returns what is wrong."""
    with tessarr.transaction(LocalStore(root)) as transaction:
        group: Any = transaction.group
        group.attrs["again"] = True
        group["a"][:1] = 3
        group["s"][:1] = 3
    group = tessarr.open_group(root, mode="r")
    found = (group.attrs["again"], int(group["a"][0]), int(group["s"][0]))
    return None if found == (True, 3, 3) else f"the next transaction did something else: {found}"
