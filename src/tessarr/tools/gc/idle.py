"""Find out whether something was written below a prefix during the grace.

In a directory the times of files say so. Other stores do not tell times: what a call of `gc` finds it records, in the object
`SEEN`, with a digest of the keys; where a call at least the grace later finds the same keys, no process has written there.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from tessarr.common import strict_json
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import prefix_of
from tessarr.types import JSONObject

SEEN = "__tessarr_gc/seen.json"
"""Below the place that was given to `gc`: a name that no node can have."""


class Idle:
    """Say for which prefixes the grace is over; `record` ends the call."""

    def __init__(self, store: Store, path: str, grace: timedelta) -> None:
        self._store = store
        self._key = prefix_of(path) + SEEN
        self._grace = grace
        self._now = datetime.now(UTC)
        data = None if isinstance(store, LocalStore) else store.get(self._key)
        known = {} if data is None else strict_json.loads(bytes(data), key=self._key)
        self._before: JSONObject = known if isinstance(known, dict) else {}
        self._seen: JSONObject = {}

    def __call__(self, store: Store, prefix: str) -> bool:
        """Return whether nothing was written below `prefix` of `store` for the grace."""
        if isinstance(store, LocalStore):
            return is_old(os.path.join(store.root, prefix), self._grace)
        name = f"{store.url} {prefix}"
        keys = hashlib.sha256("\n".join(sorted(store.list_prefix(prefix))).encode()).hexdigest()
        before = self._before.get(name)
        entry = before if isinstance(before, dict) and before.get("keys") == keys else {"keys": keys}
        since = entry.get("since")
        if not isinstance(since, str):
            since = self._now.isoformat()
        self._seen[name] = {"keys": keys, "since": since}
        return self._now - datetime.fromisoformat(since) >= self._grace

    def forget(self, store: Store, prefix: str) -> None:
        """Leave out what was removed."""
        self._seen.pop(f"{store.url} {prefix}", None)

    def record(self) -> None:
        """Store what was found, so that a later call knows since when it is there."""
        if isinstance(self._store, LocalStore) or self._seen == self._before:
            return
        if self._seen and self._grace:
            self._store.set(self._key, strict_json.dumps(self._seen))
        else:
            self._store.delete(self._key)


def is_old(path: str, grace: timedelta) -> bool:
    """Return whether the file at `path`, or every file and directory below it, was last changed before the grace."""
    newest = 0.0
    with suppress(FileNotFoundError):
        newest = os.lstat(path).st_mtime
    for folder, _, files in os.walk(path):
        for name in ("", *files):
            with suppress(FileNotFoundError):  # removed meanwhile
                newest = max(newest, os.lstat(os.path.join(folder, name)).st_mtime)
    return time.time() - newest >= grace.total_seconds()
