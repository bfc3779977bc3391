"""What a store can do, as Protocols: ``isinstance(store, GetRanges)`` is the question that callers ask.

`Get`, `Set`, `Delete` and `List` are what a store needs (a read-only place: `Get`). Each other Protocol is one ability that
a place may have beyond that; `tessarr.stores.functions` makes what is missing out of what is there.

An object has an ability when it has the method and the method is its own. Three marks say that a method is less than that:

- `fallback`: it is made of other methods, or only raises. The methods that `Store` offers to its subclasses are marked so.
- `forwarding`: it calls the method of the same name of the wrapped store, and counts where that one counts.
- `only_if`: it counts where an attribute of the store is true.

>>> from tessarr.storage import CountingStore, MemoryStore, Store
>>> isinstance(MemoryStore(), ConditionalSet), isinstance(MemoryStore(), Remote), isinstance(CountingStore(Store()), GetRanges)
(True, False, False)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from tessarr.common.segments import Piece, Stored
from tessarr.stores.fetch import Fetch, Fetched, Version
from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    from abc import ABCMeta as _ProtocolMeta
else:
    _ProtocolMeta = type(Protocol)

_M = TypeVar("_M", bound=Callable[..., Any])
_MARK = "__is_ability_of__"


class Listing(NamedTuple):
    """The direct children of a prefix."""

    keys: list[str]
    """Full keys, sorted."""
    prefixes: list[str]
    """Full prefixes (each ends with ``/``), sorted."""


LockContext: TypeAlias = AbstractContextManager[Any]
"""What `Lock.lock` returns: entering waits until the lock is free and acquires it, leaving releases it."""
_List: TypeAlias = list
"""`list`, where a method of that name hides it."""


# -- marks --------------------------------------------------------------------------------------------------------------


def fallback(method: _M) -> _M:
    """Mark a method that is made of others, or that only raises: it is no ability."""
    setattr(method, _MARK, _never)
    return method


def _never(_: object) -> bool:
    return False


def forwarding(method: _M) -> _M:
    """Mark a method of a wrapper: it is an ability where the method of that name of ``self.store`` is one."""
    name = method.__name__
    setattr(method, _MARK, lambda store: has_own(store.store, name))
    return method


def only_if(attribute: str) -> Callable[[_M], _M]:
    """Mark a method that is an ability where `attribute` of the store is true."""

    def mark(method: _M) -> _M:
        setattr(method, _MARK, lambda store: bool(getattr(store, attribute)))
        return method

    return mark


def has_own(store: object, name: str) -> bool:
    """Whether `store` has a method (or datum) `name` that the marks do not take back."""
    method = getattr(type(store), name, None)
    if method is None:
        return getattr(store, name, None) is not None
    counts = _mark(method)
    return counts is None or counts(store)


class _Ability(_ProtocolMeta):
    """The class of the Protocols here: `isinstance` sees the marks."""

    def __instancecheck__(cls, store: object) -> bool:  # noqa: N805 - the class of classes
        known = _KNOWN.get((cls, type(store)))
        if known is None:
            known = _KNOWN[cls, type(store)] = _of_class(cls, type(store))
        if isinstance(known, bool):
            return known
        return getattr(store, known, None) is not None if isinstance(known, str) else known(store)


_KNOWN: dict[tuple[type, type], bool | str | Callable[[object], bool]] = {}
"""Whether the objects of a class have an ability, or what says so of each: an attribute, a function."""
_MEMBERS: dict[type, frozenset[str]] = {}


def _of_class(ability: type, kind: type) -> bool | str | Callable[[object], bool]:
    if not vars(ability).get("_is_protocol"):  # a class that inherits a Protocol
        return issubclass(kind, ability)
    members = _members(ability)
    missing = [name for name in members if not hasattr(kind, name)]
    if missing:  # an object may have what its class has not
        if len(members) == 1:
            return missing[0]
        return lambda store: all(map(has_own, repeat(store), members))
    marks = {_mark(getattr(kind, name)) for name in members} - {None}
    if _never in marks:
        return False
    return (lambda store: all(mark(store) for mark in marks if mark is not None)) if marks else True


def _mark(method: object) -> Callable[[object], bool] | None:
    return getattr(getattr(method, "fget", method), _MARK, None)


def _members(protocol: type) -> frozenset[str]:
    found = _MEMBERS.get(protocol)
    if found is None:
        named = (name for base in protocol.__mro__ for name in [*vars(base), *vars(base).get("__annotations__", ())])
        found = _MEMBERS[protocol] = frozenset(name for name in named if not name.startswith("_"))
    return found


# -- what a store needs --------------------------------------------------------------------------------------------------


@runtime_checkable
class Get(Protocol, metaclass=_Ability):
    """Values can be read."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        """Return the value of `key`, or the part in `byte_range`; ``None``: no such key. A range ends with the value."""


@runtime_checkable
class Set(Protocol, metaclass=_Ability):
    """Values can be replaced."""

    def set(self, key: str, value: Buffer) -> object:
        """Replace the value of `key` atomically; keep no reference to the memory of `value`."""


@runtime_checkable
class Delete(Protocol, metaclass=_Ability):
    """Values can be removed."""

    def delete(self, key: str) -> object:
        """Remove `key`; a missing key is no error."""


@runtime_checkable
class List(Protocol, metaclass=_Ability):
    """Keys can be listed."""

    def list(self, prefix: str = "") -> Iterable[str]:
        """Return every key under `prefix`, once, in no particular order."""


# -- what a place may be able to do beyond that ------------------------------------------------------------------------


@runtime_checkable
class GetRanges(Protocol, metaclass=_Ability):
    """Several parts of one value can be read together, for less than the whole value."""

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """Return the parts in `ranges`, in order, all of one version; ``None``: no such key."""


@runtime_checkable
class FetchOne(Protocol, metaclass=_Ability):
    """Each request is sent by itself, as a coroutine, so that each response can be used as soon as it is there."""

    async def fetch_one(self, request: Fetch) -> Fetched | None:
        """Send one request; ``None``: no such key."""


@runtime_checkable
class GetPartialValues(Protocol, metaclass=_Ability):
    """Parts of several values can be read together."""

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        """Return one part per ``(key, range)``, in order; ``None`` where there is no such key."""


@runtime_checkable
class SetPartialValues(Protocol, metaclass=_Ability):
    """Parts of values can be replaced."""

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """Write each ``(key, start, bytes)``."""


@runtime_checkable
class Size(Protocol, metaclass=_Ability):
    """Sizes are known without reading values."""

    def getsize(self, key: str) -> int | None:
        """Return the bytes of the value of `key`; ``None``: no such key."""


@runtime_checkable
class ListDir(Protocol, metaclass=_Ability):
    """The direct children of a prefix can be listed without what is below them."""

    def list_dir(self, prefix: str) -> Listing:
        """Return the direct children of `prefix`."""


@runtime_checkable
class ListPrefix(Protocol, metaclass=_Ability):
    """Keys under a prefix can be listed by themselves, where `List.list` has no parameter for one."""

    def list_prefix(self, prefix: str) -> Iterable[str]:
        """Return every key under `prefix`."""


@runtime_checkable
class DeleteMany(Protocol, metaclass=_Ability):
    """Several values can be removed with one call."""

    def delete_many(self, keys: Iterable[str]) -> None:
        """Remove `keys`; a missing key is no error."""


@runtime_checkable
class ConditionalSet(Protocol, metaclass=_Ability):
    """Values have versions, and a write can depend on one (compare-and-swap)."""

    def version(self, key: str) -> Version | None:
        """Return what changes with the value; ``None``: no such key."""

    def set_if(self, key: str, value: Buffer, version: Version | None) -> Version | None:
        """Replace the value of that version (``None``: create it), atomically; return the new version where it is known.

        Raises `ConflictError` where the key has another version.
        """


@runtime_checkable
class ConditionalDelete(Protocol, metaclass=_Ability):
    """A removal can depend on the version."""

    def delete_if(self, key: str, version: Version | None) -> None:
        """Remove the value of that version, atomically. Raises `ConflictError` where the key has another version."""


@runtime_checkable
class Lock(Protocol, metaclass=_Ability):
    """A lock excludes every other writer of the place: all processes that may write it, and machines where there are some."""

    def lock(self, key: str) -> LockContext:
        """Return a context manager that excludes other holders of the lock of `key`. It is not re-entrant."""


@runtime_checkable
class Update(Protocol, metaclass=_Ability):
    """A value can be read, changed and replaced as one step, which plain `set` and `delete` of others cannot break."""

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """Replace the value of `key` by ``change(value)``; ``None`` is no value."""


@runtime_checkable
class Splice(Protocol, metaclass=_Ability):
    """As `Update`, for less than the whole value."""

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        """Replace the value of `key` by the pieces that `change` returns, some of them ranges of the old value."""


@runtime_checkable
class PlainFiles(Protocol, metaclass=_Ability):
    """Values are plain files, which code beside the store may read and write by the rules of `tessarr.stores.local`."""

    @property
    def directory(self) -> str:
        """The root, with a separator at its end."""


@runtime_checkable
class Remote(Protocol, metaclass=_Ability):
    """A call is a round trip that waits (a network): engines send requests together, and await them."""

    requests_at_once: int
    """Values that a writer sends side by side."""


class Writable(Get, Set, Delete, Protocol, metaclass=_Ability):
    """What updates of a value need."""
