"""The levels at which stores commit, and what each of them promises to readers that know nothing of transactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tessarr.errors import UnsupportedOperationError
from tessarr.stores.base import Store
from tessarr.stores.functions import publishes
from tessarr.stores.local.store import LocalStore
from tessarr.stores.protocols import Commit
from tessarr.stores.virtual.branches import is_session
from tessarr.stores.wrappers.base import ForwardingStore, WrapperStore, innermost

Mode: TypeAlias = Literal["auto", "journal", "publish", "swap"]
Level: TypeAlias = Literal["journal", "store", "publish", "swap"]

PLAIN_READERS: Mapping[Level, str] = {
    "journal": "each value old or new; while the commit is carried out (milliseconds), old and new values beside each other",
    "store": "all old or all new values, in one read of the store",
    "publish": "per document old or new; of all arrays at once by consolidated metadata",
    "swap": "all old or all new values, whenever they look for a file by its path: one read that has begun may get both",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a transaction would do if it committed now."""

    level: Level
    """"journal": by a journal in the directory; "store": by one operation of the store; "publish": rows are stored beyond the
    shape, and then the documents, in a directory by a journal, elsewhere by conditional requests; "swap": the directory is
    exchanged with another one."""
    set: tuple[str, ...]
    """The keys that are set."""
    removed: tuple[str, ...]
    """The keys that are removed."""
    nbytes: int
    """The bytes of the values that are set."""
    links: int
    """How many files that do not change are linked into the other directory: level "swap" alone."""
    requests: int | None
    """How many requests that write are sent for documents and the record, beside those for rows and chunks, if no other writer
    comes between: level "publish" in object storage; elsewhere ``None``."""
    durable: bool | None
    """Whether the commit is synced; ``None``: as the store is set."""
    plain_readers: str
    """What readers see that know nothing of transactions."""


def check_mode(mode: str) -> None:
    """Raise `UnsupportedOperationError` or `ValueError` for a mode that transactions do not have."""
    if mode == "flip":
        raise UnsupportedOperationError(
            "transactions do not have the mode 'flip'",
            hint="Use mode='swap', by which readers without tessarr see all old or all new values of a local directory; in "
            "object storage arrays that keep versions (storage transformer tessarr.versioned), or Icechunk",
        )
    if mode not in ("auto", "journal", "publish", "swap"):
        raise ValueError(f"mode must be 'auto', 'journal', 'publish' or 'swap', not {mode!r}")


def level_of(store: Store, mode: Mode) -> Level:
    """Return the level at which `store` commits; in a local directory with ``mode="auto"`` the changes decide.

    Raises `UnsupportedOperationError`.
    """
    base = innermost(store)
    if mode == "swap" and isinstance(store, LocalStore) and isinstance(store, Commit):
        store.check_swap()
        return "swap"
    if isinstance(store, Commit):
        if isinstance(base, LocalStore) and mode != "swap":
            return "publish" if mode == "publish" else "journal"
        if mode == "auto":
            return "store"
    elif mode in ("auto", "publish") and publishes(store) and _is_direct(store):
        return "publish"
    raise UnsupportedOperationError(
        f"{type(base).__name__} has no transactions" + (f" of mode {mode!r}" if mode != "auto" else ""),
        store=store.url,
        hint="A session of Icechunk is one transaction: change nodes in it, and commit it"
        if is_session(base)
        else "Use mode='auto' with a local directory, memory, SQLite, LMDB, Redis, a zip archive or object storage",
    )


def _is_direct(store: Store) -> bool:
    """Whether requests reach the store itself: a cache answers with documents that others have changed since."""
    while isinstance(store, ForwardingStore):
        store = store.store
    return not isinstance(store, WrapperStore)
