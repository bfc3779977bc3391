"""Store values in a dictionary in memory.

`MemoryStore` has a private dictionary, or the one passed by the user. `ManagedMemoryStore` has a named dictionary that all
stores of that name in this process share, so that ``memory://name`` opens it again.

A value is copied when it is set and returned without a copy: stored values are `bytes`, which are immutable.

>>> store = MemoryStore()
>>> store.set("a", b"0123456789")
>>> bytes(store.get("a", ByteRange(2, 5)))
b'234'
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from tessarr.common.segments import flat
from tessarr.errors import ConflictError, KeyValidationError, StoreError
from tessarr.stores.base import ANY, Any_, ConditionalStore, LockContext, Store, Version, shared_copy
from tessarr.stores.buffers import as_bytes, byte_view
from tessarr.stores.fetch import Fetch, Fetched
from tessarr.stores.functions import check_listed, check_not_durable, check_versions
from tessarr.stores.locks import KEYED_LOCKS, fork_safe_lock
from tessarr.stores.path import check_key, check_prefix, is_plain_key, join, normalize_path, prefix_of
from tessarr.types import Buffer, ByteRange

_List = list
_NUMBERS = itertools.count(1)


_state_lock = fork_safe_lock()
"""One lock for all maps, held during each change."""
_VERSIONED_NBYTES = 4096
"""Smaller values are read without a version: decoding them takes no longer than looking for their chunks in the cache."""
_OPEN: weakref.WeakValueDictionary[str, MemoryStore] = weakref.WeakValueDictionary()
"""Name in the URL → anonymous store, as long as the store exists."""


class _Versions(dict[str, tuple[object, str]]):
    """Key → the value last seen and its version; shared by all stores over one map."""

    __slots__ = ("__weakref__",)


_VERSIONS: weakref.WeakValueDictionary[int, _Versions] = weakref.WeakValueDictionary()


def _versions_of(identity: int) -> _Versions:
    made = _Versions()
    with _state_lock:
        return _VERSIONS.setdefault(identity, made)


class MemoryStore(ConditionalStore):
    """A store in this process's memory.

    `store_dict` becomes the backing map when given (values in the map may be any buffer); direct changes of the map are
    seen. Pickling copies the values.
    """

    def __init__(self, store_dict: MutableMapping[str, Any] | None = None, *, read_only: bool = False) -> None:
        self._map: MutableMapping[str, Any] = {} if store_dict is None else store_dict
        self.read_only = read_only
        self._versions = _versions_of(self._identity)

    def replace_map(self, view: Callable[[MutableMapping[str, object]], MutableMapping[str, object]]) -> None:
        """Keep the values in ``view(map)`` instead of the map. Only for a store that nothing uses yet."""
        self._map = view(self._map)
        self._versions = _versions_of(self._identity)

    @property
    def url(self) -> str:
        """``memory://`` and a number, which opens the same store as long as it exists."""
        name = f"{self._identity:x}"
        _OPEN.setdefault(name, self)
        return f"memory://{name}"

    @property
    def _identity(self) -> int:
        """A number that is equal for stores over the same map."""
        return id(self._map)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._identity == self._identity and other.read_only == self.read_only

    def __hash__(self) -> int:
        return hash(self._identity)

    def __getstate__(self) -> dict[str, object]:
        with _state_lock:
            items = [*self._map.items()]
        return {"_map": {key: bytes(byte_view(value)) for key, value in items}, "read_only": self.read_only}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        self._versions = _versions_of(self._identity)

    __copy__ = shared_copy

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        """See `Store.get`. Returns a view without copying."""
        value = self._map.get(key)
        if value is None:
            check_key(key)
            return None
        if byte_range is None:
            return value if type(value) is bytes else byte_view(value).toreadonly()
        view = byte_view(value).toreadonly()
        start, stop = byte_range.bounds(view.nbytes)
        return view[start:stop]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """See `Store.get_ranges`. Returns views without copying."""
        value = self._map.get(key)
        if value is None:
            check_key(key)
            return None
        view = flat(byte_view(value).toreadonly())
        parts: _List[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.bounds(view.nbytes)
            parts.append(view[start:stop].data)
        return parts

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """See `Store.fetch`. Responses have the versions of values that are large enough for the cache of chunks."""
        mine = type(self)
        if mine.get is not MemoryStore.get or mine.get_ranges is not MemoryStore.get_ranges:
            return super().fetch(requests)  # a subclass that reads in another way
        found: _List[_List[Buffer] | None] = []
        for key, ranges in requests:
            value = self._map.get(key)
            if type(value) is bytes and len(value) >= _VERSIONED_NBYTES and type(self._map) is dict:
                found.append(self._versioned(key, value, ranges))
            elif ranges is not None:
                found.append(self.get_ranges(key, ranges))
            else:
                whole = self.get(key)
                found.append(None if whole is None else [whole])
        return found

    def _versioned(self, key: str, value: bytes, ranges: tuple[ByteRange, ...] | None) -> Fetched:
        known = self._versions.get(key)
        version = known[1] if known is not None and known[0] is value else self._version_of(key, value)
        if ranges is None:
            return Fetched((value,), version)
        view = memoryview(value)
        return Fetched((view[slice(*byte_range.bounds(len(value)))] for byte_range in ranges), version)

    def _version_of(self, key: str, value: bytes) -> Version | None:
        """Return the version of `value`; ``None``: it is no longer what is stored."""
        with _state_lock:
            version = self._version(key)
            known = self._versions.get(key)
            return version if known is not None and known[0] is value else None

    def exists(self, key: str) -> bool:
        check_key(key)
        return key in self._map

    def getsize(self, key: str) -> int | None:
        value = self.get(key)
        return None if value is None else byte_view(value).nbytes

    def version(self, key: str) -> Version | None:
        """See `Store.version`: a number that increases whenever another value is found."""
        with _state_lock:
            return self._version(key)

    def _version(self, key: str) -> Version | None:
        """Number the object that is the value now: it is another one after every change. ``None``: no such key."""
        value = self._map.get(key)
        if value is None:
            self._versions.pop(key, None)
            return None
        if type(value) is not bytes:
            # someone else's buffer, whose bytes may change under its identity
            value = self._map[key] = bytes(byte_view(value))
        known = self._versions.get(key)
        if known is None or known[0] is not value:
            known = self._versions[key] = (value, str(next(_NUMBERS)))
        return known[1]

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        if not is_plain_key(key):
            check_key(key)
        data = value if type(value) is bytes else bytes(byte_view(value))
        with _state_lock:
            if if_match is ANY:
                self._map[key] = data
                if self._versions:
                    self._versions.pop(key, None)
                return None
            self._check_version(key, if_match)
            self._map[key] = data
            return self._version(key)

    def delete_if(self, key: str, version: Version | None) -> None:
        self._check_writable(key)
        with _state_lock:
            self._check_version(key, version)
            self._map.pop(key, None)
            self._versions.pop(key, None)

    def _check_version(self, key: str, expected: Version | None | Any_) -> None:
        present = self._version(key)
        if present != expected:
            raise ConflictError(
                "the value has changed", store=self.url, key=key, expected=f"version {expected}", got=present
            )

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: threads of this process."""
        self._check_writable(key)
        return KEYED_LOCKS.hold((self._identity, key))

    def delete(self, key: str) -> None:
        self._check_writable(key)
        check_key(key)
        with _state_lock:
            self._map.pop(key, None)
            self._versions.pop(key, None)

    def delete_many(self, keys: Iterable[str]) -> None:
        self._check_writable("")
        doomed = [*keys]
        for key in doomed:
            check_key(key)
        with _state_lock:
            for key in doomed:
                self._map.pop(key, None)
                self._versions.pop(key, None)

    def delete_prefix(self, prefix: str) -> None:
        self._check_writable(prefix)
        check_prefix(prefix)
        with _state_lock:
            for key in [key for key in self._map if key.startswith(prefix)]:
                self._map.pop(key, None)
                self._versions.pop(key, None)

    def replace_prefix(self, prefix: str, items: MutableMapping[str, Buffer] | Any) -> None:
        """See `Store.replace_prefix`: one change, seen whole or not at all by other threads' writes."""
        self._check_writable(prefix)
        check_prefix(prefix)
        new = {}
        for key, value in items.items():
            check_key(key)
            if not key.startswith(prefix):
                raise KeyValidationError("the key is outside the prefix", key=key, expected=f"a key under {prefix!r}")
            new[key] = bytes(byte_view(value))
        with _state_lock:
            for key in [key for key in self._map if key.startswith(prefix) and key not in new]:
                self._map.pop(key, None)
            self._map.update(new)

    def rename_prefix(self, source: str, dest: str) -> bool:
        self._check_writable(dest)
        check_prefix(source)
        check_prefix(dest)
        with _state_lock:
            keys = [key for key in self._map if key.startswith(source)]
            if not keys or any(key.startswith(dest) for key in self._map):
                return False
            for key in keys:
                self._map[dest + key[len(source) :]] = self._map.pop(key)
                self._versions.pop(key, None)
        return True

    def exchange_prefixes(self, one: str, other: str) -> bool:
        self._check_writable(one)
        check_prefix(one)
        check_prefix(other)
        with _state_lock:
            ones, others = ([key for key in self._map if key.startswith(prefix)] for prefix in (one, other))
            if not ones or not others:
                return False
            moved = {other + key[len(one) :]: self._map.pop(key) for key in ones}
            moved |= {one + key[len(other) :]: self._map.pop(key) for key in others}
            self._map.update(moved)
            for key in (*ones, *others, *moved):
                self._versions.pop(key, None)
        return True

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        """See `tessarr.stores.protocols.Commit`: one change under the lock of all maps."""
        self._check_writable("")
        check_not_durable(self, durable)
        for key in changes:
            check_key(key)
        new = {key: None if value is None else bytes(byte_view(value)) for key, value in changes.items()}
        with _state_lock:
            check_versions(self.url, expected, self._version)
            check_listed(self.url, listed, self._keys_below, changes, expected)
            for key, value in new.items():
                if value is None:
                    self._map.pop(key, None)
                else:
                    self._map[key] = value
                self._versions.pop(key, None)

    def snapshot(self) -> MemoryStore:
        """See `tessarr.stores.protocols.Snapshot`: a copy of the map, whose values are shared where they cannot change."""
        with _state_lock:
            items = [*self._map.items()]
        return MemoryStore({key: as_bytes(value) for key, value in items}, read_only=True)

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        with _state_lock:
            return iter(self._keys_below(prefix))

    def _keys_below(self, prefix: str) -> _List[str]:
        return [key for key in self._map if key.startswith(prefix)]


class _Place(dict[str, bytes]):
    """A dictionary that supports weak references."""

    __slots__ = ("__weakref__",)


class _Below(MutableMapping[str, Any]):
    """View the part of a map under a prefix as a map."""

    def __init__(self, place: _Place, prefix: str) -> None:
        self.place, self.prefix = place, prefix

    def __getitem__(self, key: str) -> Any:
        return self.place[self.prefix + key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.place[self.prefix + key] = value

    def __delitem__(self, key: str) -> None:
        del self.place[self.prefix + key]

    def __iter__(self) -> Iterator[str]:
        return (key[len(self.prefix) :] for key in [*self.place] if key.startswith(self.prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


_NAMED: dict[str, _Place] = {}
_NAMELESS: weakref.WeakValueDictionary[str, _Place] = weakref.WeakValueDictionary()


class ManagedMemoryStore(MemoryStore):
    """A store in named memory of this process, which all stores of the same `name` share.

    Without `name` the memory is new and private, and exists as long as a store over it; named memory exists as long as the
    process. `path` is a prefix within the memory. Pickles hold only the name, so that they can be loaded only in the process
    that made them.

    >>> ManagedMemoryStore("weather").set("a", b"1")
    >>> ManagedMemoryStore("weather").get("a")
    b'1'
    """

    def __init__(self, name: str | None = None, *, path: str = "", read_only: bool = False) -> None:
        if name is not None and ("/" in name or name == ""):
            raise ValueError(f"the name of a memory store cannot contain '/' or be empty; got {name!r}")
        if name is None:
            place = _Place()
            name = f"anonymous-{next(_NUMBERS)}"
            _NAMELESS[name] = place
        else:
            found = _NAMELESS.get(name)
            place = _NAMED.setdefault(name, _Place()) if found is None else found
        self.name = name
        self.path = normalize_path(path)
        self._place = place
        super().__init__(_Below(place, prefix_of(self.path)) if self.path else place, read_only=read_only)

    @property
    def url(self) -> str:
        """``memory://name/path``."""
        from urllib.parse import quote

        return "memory://" + quote(join(self.name, self.path))

    @property
    def _identity(self) -> int:
        return hash((id(self._place), self.path))

    def lock(self, key: str) -> LockContext:
        self._check_writable(key)
        return KEYED_LOCKS.hold((id(self._place), join(self.path, key)))

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self.name, self.path, self.read_only, os.getpid())


def _reopen(name: str, path: str, read_only: bool, process: int) -> ManagedMemoryStore:
    if process != os.getpid():
        raise StoreError(
            "a memory store cannot be opened in another process",
            store=f"memory://{name}",
            hint="Use a LocalStore, or a MemoryStore, which is copied",
        )
    return ManagedMemoryStore(name, path=path, read_only=read_only)


def is_open(name: str) -> bool:
    """Whether a store of that name is in this process."""
    return name in _OPEN or name in _NAMED or name in _NAMELESS


def open_memory(name: str, path: str = "", *, read_only: bool = False) -> tuple[Store, str]:
    """Open ``memory://name/path``. Returns the store, and the path in the store."""
    store = _OPEN.get(name)
    if store is not None:
        return store if store.read_only == read_only else store.with_read_only(read_only), path
    return ManagedMemoryStore(name or "default", read_only=read_only), path
