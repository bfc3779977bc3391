"""Hold the locks of the shapes of arrays: while a shape changes, and while arrays are replaced, removed or moved.

An append stores its rows before the shape that covers them. Were the array replaced in between, the rows would be part of the
new array; were it removed, they would stay, and be part of the next array there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator, Iterable, Sequence
from typing import NamedTuple, TypeVar

from tessarr.core import open_transactions
from tessarr.core.asynchronous.sans_io import Steps, lock_call
from tessarr.core.stored.walk import Entry, read_entries_steps, walk_below_steps
from tessarr.errors import ConflictError
from tessarr.metadata import formats
from tessarr.stores.base import LockContext, Store
from tessarr.stores.local.lock import Note
from tessarr.stores.locks import holding
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import List, Lock
from tessarr.stores.wrappers.base import innermost

T = TypeVar("T")

MOST = 200
"""Of a hierarchy with more arrays none is locked: each lock of a local store is an open file."""


class _Holder(NamedTuple):
    """Who holds the lock of a shape."""

    thread: int
    """The lock is not re-entrant: a second acquisition by the same thread would be a deadlock, and is an error instead."""
    note: Note | None
    """What is in the lock file, where there is one."""


_HOLDERS: dict[tuple[str, str], _Holder] = {}
"""``(store URL, path)`` → who holds the lock."""


def shape_lock(store: Store, path: str) -> LockContext:
    """Return the lock of the shape of the array at `path`."""
    return store.lock(shape_key(path))


def shape_key(path: str) -> str:
    """Return the key, of no value, whose lock is that of the shape of the array at `path`."""
    return prefix_of(path) + "shape"


def shape_note(store: Store, path: str) -> Note | None:
    """Return the note in the lock file of the shape of the array at `path`, which the caller holds; ``None``: no file."""
    holder = _HOLDERS.get((store.url, path))
    return None if holder is None else holder.note


async def hold_shape_locks_steps(store: Store, paths: Sequence[str], steps: Steps[T]) -> T:
    """Run `steps` while the locks of the shapes of the arrays at `paths`, `in_order_of_locks`, are held.

    Raises `ConflictError` where this thread holds one of them already.
    """
    held: list[tuple[str, LockContext]] = []
    try:
        try:
            for path in paths:
                await _take_steps(store, path, held)
        except BaseException:
            steps.close()  # which never started
            raise
        return await steps
    finally:
        try:
            _let_go(store, held)
        except BaseException:  # interrupted
            _let_go(store, held)
            raise


def _let_go(store: Store, held: Sequence[tuple[str, LockContext]]) -> None:
    for path, lock in reversed(held):
        _HOLDERS.pop((store.url, path), None)
        lock.__exit__(None, None, None)


async def _take_steps(store: Store, path: str, held: list[tuple[str, LockContext]]) -> None:
    """Acquire the lock of one shape, and add it to those that are `held`."""
    lock = _entered(shape_lock(store, path))
    place = (store.url, path)

    def take() -> None:
        holder = _HOLDERS.get(place)
        if holder is not None and holder.thread == threading.get_ident():
            what = "this thread is changing the shape of the array already"
            raise ConflictError(what, store=store.url, path=f"/{path}")
        held.append((path, lock))  # before: what interrupts this may come when it is acquired
        note = lock.__enter__()
        _HOLDERS[place] = _Holder(threading.get_ident(), note if isinstance(note, Note) else None)

    await lock_call(lock, store)._replace(now=take)
    if not held or held[-1][1] is not lock:
        held.append((path, lock))
    store._invalidate_cached(prefix_of(path), formats.DOCUMENT_NAMES.__contains__)


@holding
def _entered(lock: LockContext) -> Generator[object, None, None]:
    """Make a lock of a store one whose `__exit__` may be called in any state."""
    with lock as note:
        yield note


async def arrays_to_lock_steps(store: Store, path: str, top: Entry | None = None) -> list[str]:
    """List the arrays at and below `path`, which is to be replaced, removed or moved: locks of their shapes exclude appends.

    `top`: the node's documents, if they were read just now. None are listed where the store has no such locks (`Lock`), in a
    transaction, whose commit takes them, of more than `MOST`, and on Windows, where a directory with an open file cannot be
    renamed.
    """
    can_list = isinstance(store, List)
    if sys.platform == "win32" or not isinstance(store, Lock) or open_transactions.is_overlay(store):
        return []
    if top is None:
        (top,) = await read_entries_steps(store, [path])
    if top.kind != "group":
        return [path] if top.kind == "array" else []
    below = await walk_below_steps(store, top, None) if can_list else []
    arrays = in_order_of_locks(store, [entry.path for entry in below if entry.kind == "array"])
    return arrays if len(arrays) <= MOST else []


def in_order_of_locks(store: Store, paths: Iterable[str]) -> list[str]:
    """Sort the paths of arrays so that all processes take the locks of their shapes in one order, each lock once.

    In a directory two paths may lead to one array, by symbolic links.
    """
    paths, below = sorted(paths), innermost(store)
    if len(paths) < 2:
        return paths
    from tessarr.stores.local.store import LocalStore  # not `PlainFiles`: the locks of its subclasses are files as well

    if not isinstance(below, LocalStore):
        return paths
    places = {os.path.realpath(below.directory + path): path for path in paths}
    return [path for _, path in sorted(places.items())]


async def hold_node_steps(store: Store, path: str, steps: Steps[T], top: Entry | None = None) -> T:
    """Run `steps`, which replace or remove the node at `path` and all below it, while no append is storing rows there."""
    try:
        arrays = await arrays_to_lock_steps(store, path, top)
    except BaseException:
        steps.close()  # which never started
        raise
    return await hold_shape_locks_steps(store, arrays, steps)
