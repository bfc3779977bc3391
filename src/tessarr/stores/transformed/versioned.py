"""The storage transformer ``tessarr.versioned``: chunks as immutable objects, and commits that name them.

    {"name": "tessarr.versioned", "configuration":
        {"objects": "o/", "refs": "refs/", "hash": "sha256", "fanout": [2, 2], "page": 65536}}

All keys are below the array. An *object* is stored under the hash of its bytes, ``o/ab/cd/<digest>``, and never changes: equal
chunks are one object, and every whole read is verified. A *commit* is an object, too, whose digest is its id::

    {"parent": id or null, "time": "2026-11-23T05:00:00.000000Z", "message": "…", "document": {…},
     "pages": ["<digest>", …]}

`document` is the array's document at that time. Each *page* is an object that maps at most `page` chunk keys, in order, to the
digests of the chunks. ``refs/main.json`` is ``{"commit": id}``, and is replaced by compare-and-swap: so a commit changes all
chunks of an array in one step, in any store with conditional writes or locks. ``refs/tags/<name>.json`` names a commit.

What is written is staged in memory until it is committed (`VersionedStore.commit`). A commit whose chunks others have committed
since raises `ConflictError`; other chunks are rebased on theirs.

Source: ZEP 1; zarr-specs issues 76 (versioned arrays) and 82 (content-addressable storage). The form is tessarr's own.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, pairwise, takewhile
from typing import Self, cast

from tessarr.codecs.members import choice, integer, read_members
from tessarr.common import strict_json
from tessarr.common.warn import warn
from tessarr.errors import ChecksumError, ConflictError, MetadataValidationError, StoreError, ZarrUserWarning
from tessarr.stores import functions
from tessarr.stores.base import ANY, Any_, Listing, Store, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.path import check_key, check_prefix, is_plain_key, prefix_of
from tessarr.stores.protocols import (
    ConditionalDelete,
    ConditionalSet,
    Delete,
    Get,
    GetRanges,
    List,
    LockContext,
    Remote,
    Set,
    Size,
)
from tessarr.stores.transformed.array_commit import COMMIT_MEMBERS, DIGITS, Commit, is_digest
from tessarr.stores.transformed.garbage import keep
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.types import JSON, Buffer, ByteRange, JSONObject

_List = list
_READING = (Get, GetRanges, List, Size, Remote, Set, Delete)
"""Abilities of values, where the wrapped store has them."""
_ATTEMPTS = 50
"""How often a commit is repeated because others were faster."""
OLD_S = 86_400
"""Age from which a commit looks whether all that was staged is still there: less than any grace of a collection."""


def _place(value: object) -> str | None:
    key = value.removesuffix("/") if isinstance(value, str) and value.endswith("/") else ""
    return None if is_plain_key(key) else f"must be a prefix below the array, such as 'o/'; got {value!r}"


def _fanout(value: object) -> str | None:
    if isinstance(value, list | tuple) and all(type(n) is int and n > 0 for n in value) and sum(value) < DIGITS:
        return None
    return f"must be a list of positive integers, less than {DIGITS} together; got {value!r}"


_MEMBERS = {
    "objects": _place, "refs": _place, "hash": choice("sha256"), "fanout": _fanout, "page": integer(1, 2**31)
}  # fmt: skip


class VersionedTransformer:
    """Make stores of chunks that are objects named by commits."""

    changes_layout = True

    def __init__(
        self, *, objects: str = "o/", refs: str = "refs/", fanout: tuple[int, ...] = (2, 2), page: int = 65536
    ) -> None:
        self.objects, self.refs, self.fanout, self.page = objects, refs, tuple(fanout), page

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        found = read_members("tessarr.versioned", configuration, _MEMBERS, kind="storage transformer")
        found.pop("hash", None)
        return cls(**found)

    def wrap(self, store: Store, path: str, metadata: object) -> Store:
        return VersionedStore(store, path, self)


class _Staged(dict[str, str | None]):
    """The digests of chunks that were written, by their keys below the array; ``None``: removed."""

    is_copy = False
    """Whether another object commits them."""


class VersionedStore(WrapperStore):
    """A store of the chunks of the array at `path`, as of the newest commit when it was first read.

    What is written is staged in memory until `commit`.
    """

    def __init__(self, store: Store, path: str, layout: VersionedTransformer) -> None:
        super().__init__(store)
        self.layout = layout
        self.prefix = prefix_of(path)
        self._at: str | None = None
        self._known: tuple[Commit | None, dict[str, str]] | None = None
        self._staged = _Staged()
        self._met: set[str] = set()
        """Digests of values that were to be stored, and were there: a collection of garbage may have removed them since."""
        self._began: float | None = None
        """When the first value was staged, by the monotonic clock."""
        self._lock = threading.RLock()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def with_read_only(self, read_only: bool = True) -> Self:
        """See `Store.with_read_only`; the copy has what is staged, and commits nothing of it."""
        made = super().with_read_only(read_only)
        made._staged, made._lock = _Staged(self._staged), threading.RLock()
        made._staged.is_copy = True
        return made

    def __del__(self) -> None:
        if self.__dict__.get("_staged") and not self._staged.is_copy:
            warn(f"{len(self._staged)} chunks were written to {self.url} and not committed", ZarrUserWarning)

    def has_ability(self, ability: type) -> bool:
        """Whether values have `ability`: reading as in the wrapped store, and writing, which is staged."""
        if ability in (ConditionalSet, ConditionalDelete):
            return True
        return ability in _READING and super().has_ability(ability)

    # -- commits -----------------------------------------------------------------------------------------------

    def _error(self, what: str, key: str, **facts: object) -> StoreError:
        return StoreError(what, store=self.url, path="/" + self.prefix.rstrip("/"), key=key, **facts)

    def object_key(self, digest: str) -> str:
        starts = [0, *accumulate(self.layout.fanout)]
        directories = [digest[start:stop] for start, stop in pairwise(starts)]
        return self.prefix + self.layout.objects + "/".join([*directories, digest])

    def _put(self, value: Buffer) -> str:
        """Store an object, unless it is there. Returns its digest."""
        data = byte_view(value)
        digest = hashlib.sha256(data).hexdigest()
        if not functions.set_if_not_exists(self.store, self.object_key(digest), data):
            self._met.add(digest)
        return digest

    def _get(self, digest: str) -> Buffer:
        """Read and verify an object. Raises `StoreError` where it is missing, `ChecksumError` where it was changed."""
        key = self.object_key(digest)
        value = self.store.get(key)
        if value is None:
            raise self._error("an object of the array is missing", key, hint="Restore it from a copy")
        self._verify(value, digest)
        return value

    def _verify(self, value: Buffer, digest: str) -> None:
        found = hashlib.sha256(byte_view(value)).hexdigest()
        if found != digest:
            key = self.object_key(digest)
            raise ChecksumError(
                "an object differs from its digest", store=self.url, key=key, expected=digest, got=found
            )

    def parsed(self, data: Buffer, key: str, members: Mapping[str, Callable[[object], bool]]) -> dict[str, object]:
        """Parse the JSON object of a ref, commit or page with these `members`. Raises `StoreError`."""
        try:
            found = strict_json.loads(bytes(byte_view(data)), key=key)
        except MetadataValidationError as error:
            raise self._error("not JSON", key, got=str(error)) from error
        if not isinstance(found, Mapping) or not all(
            name in found and fits(found[name]) for name, fits in members.items()
        ):
            raise self._error("a malformed commit, page or ref", key, expected=", ".join(members) or "an object")
        return dict(found)

    def read_ref(self, name: str) -> tuple[str | None, Buffer | None]:
        """Return the id that a ref names, and the value of the ref; ``None`` where it is missing."""
        key = f"{self.prefix}{self.layout.refs}{name}.json"
        value = self.store.get(key)
        if value is None:
            return None, None
        return str(self.parsed(value, key, {"commit": is_digest})["commit"]), value

    def read_commit(self, identifier: str) -> Commit:
        """Read the commit with this id."""
        found = self.parsed(self._get(identifier), self.object_key(identifier), COMMIT_MEMBERS)
        made: dict[str, object] = {name: found[name] for name in ("parent", "message", "document")}
        when = datetime.fromisoformat(str(found["time"]))
        pages = tuple(map(str, cast("list[object]", found["pages"])))
        return Commit(id=identifier, time=when, pages=pages, **made)  # type: ignore[arg-type]

    def commits(self) -> Iterator[Commit]:
        """Iterate over the commits, the newest first."""
        return self._commits_to(self.read_ref("main")[0])

    def _commits_to(self, head: str | None) -> Iterator[Commit]:
        """Iterate over the commit `head` and those before it, the newest first."""
        while head is not None:
            found = self.read_commit(head)
            yield found
            head = found.parent

    @property
    def has_staged(self) -> bool:
        """Whether something is staged and not committed."""
        return bool(self._staged)

    def read_only_at(self, commit: Commit) -> None:
        """Read `commit` from now on, before anything was read or written."""
        self._at, self.read_only = commit.id, True

    def newest(self) -> Commit:
        """Return the newest commit. Raises `StoreError` before the first."""
        identifier = self.read_ref("main")[0]
        if identifier is None:
            raise self._error("nothing was committed yet", self.prefix + self.layout.refs)
        return self.read_commit(identifier)

    def resolve(self, version: str | datetime | Commit) -> Commit:
        """Return the commit with an id or a tag, or the newest one at a time. Raises `StoreError`."""
        if isinstance(version, Commit):
            version = version.id
        if isinstance(version, datetime):
            when = version if version.tzinfo else version.astimezone()
            found = next((one for one in self.commits() if one.time <= when), None)
        elif is_digest(version):
            found = next((one for one in self.commits() if one.id == version), None)
        else:
            identifier = self.read_ref(f"tags/{_tag(version)}")[0]
            found = None if identifier is None else self.read_commit(identifier)
        if found is None:
            raise self._error(
                "the array has no such version",
                self.prefix + self.layout.refs,
                expected="an id, a tag or a time",
                got=version,
            )
        return found

    def tag(self, name: str, commit: Commit) -> None:
        """Name a commit. Raises `ConflictError` where the name is taken."""
        key = f"{self.prefix}{self.layout.refs}tags/{_tag(name)}.json"
        if not functions.set_if_not_exists(self.store, key, strict_json.dumps({"commit": commit.id})):
            raise ConflictError("the tag exists, and tags do not move", store=self.url, key=key)

    def _references(self, commit: Commit | None) -> dict[str, str]:
        """Return the digest of each chunk of a commit, by its key below the array."""
        references: dict[str, str] = {}
        for digest in () if commit is None else commit.pages:
            references.update(self.page(digest))
        return references

    def page(self, digest: str) -> dict[str, str]:
        """Read a page: the digests of chunks, by their keys below the array."""
        key = self.object_key(digest)
        found = self.parsed(self._get(digest), key, {})
        if not all(is_plain_key(name) and is_digest(value) for name, value in found.items()):
            raise self._error("a malformed page", key, expected="keys and digests")
        return cast("dict[str, str]", found)

    def _base(self) -> tuple[Commit | None, dict[str, str]]:
        """Return the commit that is read here, with its references; ``None`` before the first commit."""
        with self._lock:
            if self._known is None:
                identifier = self._at or self.read_ref("main")[0]
                commit = None if identifier is None else self.read_commit(identifier)
                self._known = commit, self._references(commit)
            return self._known

    def commit(self, message: str, document: JSONObject) -> Commit:
        """Make what is staged the newest commit, with the array's present `document`.

        Raises `ConflictError`, with `keys`, having changed nothing, where others committed other values of the same chunks.
        """
        self._check_writable("")
        with self._lock:
            base, known = self._base()
            tried: tuple[Commit, dict[str, str]] | None = None
            for _ in range(_ATTEMPTS):
                head, value = self.read_ref("main")
                if tried is not None and self._is_committed(tried[0], head):
                    return self._adopt(*tried)  # the answer was lost, and others have committed since
                references = known
                if head != (None if base is None else base.id):
                    references = self._rebased(None if head is None else self.read_commit(head), known)
                kept = {**references, **self._staged}
                new = {name: digest for name, digest in sorted(kept.items()) if digest is not None}
                made = self._store_commit(new, head, message, document)
                tried = made, new
                self._require_objects(made, references)
                if self.replace_ref("main", value, strict_json.dumps({"commit": made.id})):
                    return self._adopt(*tried)
        raise ConflictError("other commits were faster in every attempt", store=self.url, got=f"{_ATTEMPTS} attempts")

    def _adopt(self, made: Commit, references: dict[str, str]) -> Commit:
        """Take a commit of what was staged for the one to read; return it."""
        self._known = made, references
        self._staged.clear()
        self._met.clear()
        self._began = None
        return made

    def _is_committed(self, made: Commit, head: str | None) -> bool:
        """Whether `made` is among the commits up to `head`; those before its parent are not read."""
        later = takewhile(lambda commit: commit.id != made.parent, self._commits_to(head))
        return any(commit.id == made.id for commit in later)

    def _rebased(self, head: Commit | None, known: Mapping[str, str]) -> dict[str, str]:
        """Return the references of another newest commit, which may not differ where values are staged."""
        theirs = self._references(head)
        changed = [
            name
            for name, digest in self._staged.items()
            if theirs.get(name) != known.get(name) and theirs.get(name) != digest
        ]
        if changed:
            error = ConflictError(
                "another commit changed the same chunks, and nothing was committed",
                store=self.url,
                key=self.prefix + changed[0],
                hint=f"{len(changed)} chunks differ (the attribute keys of this error); open the array again, and repeat",
            )
            error.keys = tuple(self.prefix + name for name in sorted(changed))
            raise error
        return theirs

    def _store_commit(
        self, references: Mapping[str, str], parent: str | None, message: str, document: JSONObject
    ) -> Commit:
        names = [*references]
        parts = [names[start : start + self.layout.page] for start in range(0, len(names), self.layout.page)]
        pages = tuple(self._put(strict_json.dumps({name: references[name] for name in part})) for part in parts)
        now = datetime.now(UTC)
        commit: JSONObject = {
            "parent": parent,
            "time": now.isoformat(),
            "message": message,
            "document": document,
            "pages": [*pages],
        }
        identifier = self._put(strict_json.dumps(commit))
        return Commit(id=identifier, parent=parent, time=now, message=message, document=document, pages=pages)

    def _require_objects(self, made: Commit, committed: Mapping[str, str]) -> None:
        """Keep collections of garbage from the objects that a commit needs, and others do not.

        Raises `ConflictError` where one is being removed, or was: that was there before this object stored it, or was staged
        long ago.
        """
        staged = {digest for digest in self._staged.values() if digest is not None}
        own = {made.id, *made.pages, *staged} - {*committed.values()}
        keep(self, own)
        is_old = self._began is not None and time.monotonic() - self._began > OLD_S
        missing = [one for one in (own if is_old else own & self._met) if not self.store.exists(self.object_key(one))]
        if missing:
            raise ConflictError(
                "chunks that were written to be committed were removed by a collection of garbage", store=self.url,
                key=self.object_key(missing[0]), hint="Open the array again, and write the chunks again",
            )  # fmt: skip

    def replace_ref(self, name: str, old: Buffer | None, new: bytes | None) -> bool:
        """Replace a ref if it has the value `old`; ``None``: it is missing. Returns whether it was replaced."""
        before = None if old is None else bytes(byte_view(old))

        def swap(present: Buffer | None) -> Buffer | None:
            if (None if present is None else bytes(byte_view(present))) != before:
                raise _MovedError
            return new

        try:
            self.store.update(f"{self.prefix}{self.layout.refs}{name}.json", swap)
        except _MovedError:
            return False
        return True

    # -- values ------------------------------------------------------------------------------------------------

    def _digest(self, key: str) -> str | None:
        check_key(key)
        name = key.removeprefix(self.prefix)
        with self._lock:
            return self._staged[name] if name in self._staged else self._base()[1].get(name)

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        """See `Store.get`. Whole values are verified; ranges are not."""
        digest = self._digest(key)
        if digest is None:
            return None
        if byte_range is None:
            return self._get(digest)
        found = self.store.get(self.object_key(digest), byte_range)
        return self._get(digest) if found is None else found

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """See `Store.get_ranges`. Ranges are not verified."""
        digest = self._digest(key)
        if digest is None:
            return None
        found = self.store.get_ranges(self.object_key(digest), ranges)
        if found is None:
            self._get(digest)  # raises
        return found

    def getsize(self, key: str) -> int | None:
        digest = self._digest(key)
        return None if digest is None else self.store.getsize(self.object_key(digest))

    def version(self, key: str) -> Version | None:
        """Return the digest of the value."""
        return self._digest(key)

    def lock(self, key: str) -> LockContext:
        """Return a lock that excludes other threads that use this object: others meet when they commit."""
        self._check_writable(key)
        return KEYED_LOCKS.hold((id(self), key))

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        """See `Store.set`: stores an object, and stages it for `commit`."""
        self._check_writable(key)
        check_key(key)
        digest = self._put(value)
        self._stage(key, digest, if_match)
        return digest

    def delete(self, key: str) -> None:
        self._check_writable(key)
        self._stage(key, None, ANY)

    def delete_if(self, key: str, version: Version | None) -> None:
        self._check_writable(key)
        self._stage(key, None, version)

    def _stage(self, key: str, digest: str | None, if_match: Version | None | Any_) -> None:
        with self._lock:
            found = self._digest(key)
            if not isinstance(if_match, Any_) and found != if_match:
                raise ConflictError("the value has changed", store=self.url, key=key, expected=if_match, got=found)
            if digest is not None or found is not None:
                self._began = self._began or time.monotonic()
                self._staged[key.removeprefix(self.prefix)] = digest

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        with self._lock:
            found = {**self._base()[1], **self._staged}
        keys = (self.prefix + name for name, digest in found.items() if digest is not None)
        return (key for key in keys if key.startswith(prefix))

    def list_dir(self, prefix: str) -> Listing:
        return functions.children(self.list(prefix), prefix)


class _MovedError(Exception):
    """Another commit was faster."""


def _tag(name: str) -> str:
    if not is_plain_key(name) or "/" in name:
        raise ValueError(f"a tag is a name without slashes, got {name!r}")
    return name
