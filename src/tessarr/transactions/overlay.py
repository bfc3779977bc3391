"""A store whose changes are staged over another store, until a transaction commits them.

Values are in memory; chunks that an engine encodes together are in files of a `Stage`, where the store has one.

What was set here is read here; every other value is read from the store below, and its version is recorded. A value whose
version changes between two reads is a `ConflictError` at once: what is read here is of one state of each key.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.claims.intents import intent_in
from tessarr.core.claims.settle import settle_steps
from tessarr.errors import ConflictError, KeyValidationError, UnsupportedOperationError
from tessarr.stores import functions
from tessarr.stores.base import ANY, Any_, ConditionalStore, Fetch, Listing, LockContext, Store, Version
from tessarr.stores.buffers import as_bytes, byte_view
from tessarr.stores.fetch import version_of
from tessarr.stores.local.transactions.many import StagedFiles
from tessarr.stores.local.transactions.stage import Stage, StagedValue
from tessarr.stores.locks import KEYED_LOCKS, fork_safe_lock
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import Remote, fallback
from tessarr.stores.transformed.manifest_options import options_of
from tessarr.transactions.document_merge import other_descriptions
from tessarr.types import Buffer, ByteRange

_List = list
_NUMBERS = itertools.count(1)
_SMALL = 1 << 20
_TRIES = 100
"""How often in succession a value may change while it is read."""


class OverlayStore(ConditionalStore):
    """Staged changes over `store`, in memory or in files of a `Stage`. Safe to use from several threads.

    `check` is called before every access and raises if the transaction has ended. `begin_stage` makes the stage, if the store
    has one.
    """

    def __init__(self, store: Store, check: Callable[[], None], begin_stage: Callable[[], Stage] | None = None) -> None:
        self.store = store
        self.stage: Stage | None = None
        self._begin_stage = begin_stage
        self.read_only = False
        self.manifest_options = options_of(store)
        self.staged: dict[str, bytes | StagedValue | None] = {}
        """Key → new value; ``None``: removed."""
        self.seen: dict[str, Version | None] = {}
        """Key → the version that was read below."""
        self.listed: set[str] = set()
        """The prefixes under which everything was removed: a key that appears there is a conflict."""
        self.documents: dict[str, bytes] = {}
        """Key → the small value that was read below, to merge another change of it."""
        self._check = check
        self._found: dict[str, frozenset[str]] = {}
        """Prefix → the keys below that were listed first."""
        self._versions: dict[str, int] = {}
        """Key → the number of what was staged last."""
        self._lock = fork_safe_lock()

    @property
    def url(self) -> str:
        """The URL of the store below."""
        return self.store.url

    @property
    def supports_consolidated_metadata(self) -> bool:
        """The store's below."""
        return self.store.supports_consolidated_metadata

    def __eq__(self, other: object) -> bool:
        return other is self

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[object, ...]:
        raise UnsupportedOperationError(
            "a transaction cannot be pickled",
            store=self.url,
            hint="Only the process that began it may change and commit it",
        )

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        ranges = None if byte_range is None else (byte_range,)
        found = self.fetch([Fetch(key, ranges)])[0]
        return None if found is None else found[0]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return self.fetch([Fetch(key, tuple(ranges))])[0]

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        self._check()
        answers: dict[int, _List[Buffer] | None] = {}
        below: _List[int] = []
        for number, request in enumerate(requests):
            check_key(request.key)
            with self._lock:
                is_staged = request.key in self.staged
                value = self.staged.get(request.key)
            if is_staged:
                answers[number] = None if value is None else _cut(value, request.ranges)
            else:
                below.append(number)
        if below:
            found = self._fetch_below([requests[number] for number in below])
            answers.update(zip(below, found, strict=True))
        return [answers[number] for number in range(len(requests))]

    def _fetch_below(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """Read from the store below, and record the versions."""
        keys = [request.key for request in requests]
        before: dict[str, Version | None] | None = (
            None if isinstance(self.store, Remote) else self._versions_below(keys)
        )
        for _ in range(_TRIES):
            found = self._fetch_settled(requests)
            versions = {
                key: None if answer is None else version_of(answer) for key, answer in zip(keys, found, strict=True)
            }
            if before is None and not any(
                answer is not None and versions[key] is None for key, answer in zip(keys, found, strict=True)
            ):
                break  # each answer says which version it is
            after = self._versions_below(keys)
            if before == after:
                versions = after
                break
            before = after
        else:
            raise self._conflict(keys[0], None, None)
        for request, answer in zip(requests, found, strict=True):
            if answer is not None and request.ranges is None and byte_view(answer[0]).nbytes <= _SMALL:
                self.documents.setdefault(request.key, bytes(answer[0]))
        for key, version in versions.items():
            with self._lock:
                known = self.seen.setdefault(key, version)
            if known != version:
                raise self._conflict(key, known, version)
        return found

    def _fetch_settled(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """Fetch from the store below, when no other transaction claims a document any more."""
        while True:
            found = self.store.fetch(requests)
            for request, answer in zip(requests, found, strict=True):
                intent = None if answer is None or request.ranges else intent_in(answer[0], request.key)
                if intent is not None:
                    run_steps(settle_steps(self.store, request.key, intent))
                    break
            else:
                return found

    def _versions_below(self, keys: Iterable[str]) -> dict[str, Version | None]:
        return {key: self.store.version(key) for key in keys}

    def _conflict(self, key: str, expected: Version | None, got: Version | None) -> ConflictError:
        trouble = ConflictError(
            "another writer changed a value that the transaction has read",
            store=self.url,
            key=key,
            expected=f"the version {expected}",
            got=got,
            hint="Run the transaction again",
        )
        trouble.keys = (key,)
        return trouble

    def version(self, key: str) -> Version | None:
        self._check()
        with self._lock:
            if key in self.staged:
                return None if self.staged[key] is None else _version(self._versions[key])
            if key in self.seen:
                return self.seen[key]
        self.get(key, ByteRange(0, 0))
        return self.seen[key]

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        check_key(key)
        with self._hold(key):
            if not isinstance(if_match, Any_) and (present := self.version(key)) != if_match:
                raise ConflictError(
                    "the value has changed", store=self.url, key=key, expected=f"version {if_match}", got=present
                )
            return self._set(key, as_bytes(value))

    def _set(self, key: str, value: bytes | None) -> Version | None:
        self._check()
        with self._lock:
            return self._staged_now(key, value)

    def _staged_now(self, key: str, value: bytes | StagedValue | None) -> Version | None:
        """Stage a value while the lock is held."""
        self.staged[key] = value
        self._versions[key] = next(_NUMBERS)
        return None if value is None else _version(self._versions[key])

    def set_many(
        self,
        path: str,
        encode: Callable[[], Sequence[tuple[str, Buffer | None]] | None],
        write: Callable[[StagedFiles], Sequence[tuple[str, tuple[Version, int] | None]] | None],
    ) -> Sequence[str] | None:
        """Stage several values at once. An `update` of one of them in another thread is made again."""
        self._check()
        files = self._files_below(path)
        written = None if files is None else write(files)
        values: Mapping[str, bytes | StagedValue | None]
        if written is not None and self.stage is not None:
            values = self.stage.add(written)
        elif (encoded := encode()) is not None:
            values = {key: None if value is None else as_bytes(value) for key, value in encoded}
            for key in values:
                check_key(key)
        else:
            return None
        with self._lock:
            self.staged.update(values)
            self._versions.update(dict.fromkeys(values, next(_NUMBERS)))
        return [*values]

    def _files_below(self, path: str) -> StagedFiles | None:
        """Return where values of the array at `path` are staged on the disk; ``None``: they are staged in memory."""
        if self._begin_stage is None:
            return None
        with self._lock:
            if self.stage is None:
                try:
                    self.stage = self._begin_stage()
                except OSError:  # no such directory yet: the commit makes it
                    return None
        return self.stage.files_below(path)

    def discard(self) -> None:
        """Remove staged files that no journal names."""
        if self.stage is not None:
            self.stage.discard()

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        check_key(key)
        with self._hold(key):
            while True:
                before = self._versions.get(key)
                new = change(self.get(key))
                value = None if new is None else as_bytes(new)
                with self._lock:
                    if self._versions.get(key) == before:  # `set_many` does not wait
                        self._staged_now(key, value)
                        return

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: threads of the transaction."""
        return KEYED_LOCKS.hold(("locks of a transaction", id(self), key))

    def _hold(self, key: str) -> LockContext:
        return KEYED_LOCKS.hold(("values of a transaction", id(self), key))

    def delete(self, key: str) -> None:
        check_key(key)
        with self._hold(key):
            self._set(key, None)

    def delete_if(self, key: str, version: Version | None) -> None:
        with self._hold(key):
            if (present := self.version(key)) != version:
                raise ConflictError("the value has changed", store=self.url, key=key, expected=version, got=present)
            self._set(key, None)

    @fallback  # the threads of the transaction alone see it, value by value
    def delete_prefix(self, prefix: str) -> None:
        """See `Store.delete_prefix`. A commit conflicts with who has described one of the removed nodes in another format, and
        with who has stored keys there that were not listed, also between an earlier list and this one."""
        check_prefix(prefix)
        keys = [*self.list(prefix)]
        with self._lock:
            added = sorted({*keys} - self._found[prefix] - self.staged.keys())
            if added:
                raise self._conflict(added[0], None, self.store.version(added[0]))
            self.listed.add(prefix)
            for key in other_descriptions(keys) - self.staged.keys():
                self.seen.setdefault(key, None)
        for key in keys:
            self.delete(key)

    @fallback
    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        check_prefix(prefix)
        for key in items:
            check_key(key)
            if not key.startswith(prefix):
                raise KeyValidationError("the key is outside the prefix", key=key, expected=f"a key under {prefix!r}")
        self.delete_prefix(prefix)
        for key, value in items.items():
            self.set(key, value)

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        self._check()
        found = [*self.store.list_prefix(prefix)]
        with self._lock:
            staged = dict(self.staged)
            seen = {key: version for key, version in self.seen.items() if version and key.startswith(prefix)}
            self._found.setdefault(prefix, frozenset(found))
        for key in sorted(seen.keys() - {*found} - staged.keys()):
            if (present := self.store.version(key)) != seen[key]:
                raise self._conflict(key, seen[key], present)
        below = (key for key in found if key not in staged)
        own = (key for key, value in staged.items() if value is not None and key.startswith(prefix))
        return iter([*below, *own])

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        self._check()
        with self._lock:
            staged = {key: value for key, value in self.staged.items() if key.startswith(prefix)}
        listing = self.store.list_dir(prefix)
        if not staged:
            return listing
        own = functions.children((key for key, value in staged.items() if value is not None), prefix)
        removed = [key for key, value in staged.items() if value is None]
        prefixes = [
            child
            for child in listing.prefixes
            if child in own.prefixes or not _covers(removed, child) or self._is_left(child, staged)
        ]
        keys = {key for key in listing.keys if key not in staged}
        return Listing(sorted(keys | {*own.keys}), sorted({*prefixes} | {*own.prefixes}))

    def _is_left(self, prefix: str, staged: Mapping[str, object]) -> bool:
        return any(key not in staged for key in self.store.list_prefix(prefix))

    # -- committing --------------------------------------------------------------------------------------------

    def changes(self) -> dict[str, bytes | StagedValue | None]:
        """Return what a commit has to change: new values, and removals of keys that are not known to be missing."""
        return {
            key: value
            for key, value in self.staged.items()
            if value is not None or key not in self.seen or self.seen[key] is not None
        }


def _version(number: int) -> Version:
    return f"staged-{number}"


def _covers(keys: Iterable[str], prefix: str) -> bool:
    return any(key.startswith(prefix) for key in keys)


def _cut(value: bytes | StagedValue, ranges: Sequence[ByteRange] | None) -> _List[Buffer]:
    if isinstance(value, StagedValue):
        return value.read(ranges)
    if ranges is None:
        return [value]
    view = byte_view(value)
    return [view[slice(*part.bounds(view.nbytes))] for part in ranges]
