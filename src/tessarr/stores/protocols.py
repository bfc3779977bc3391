"""The abilities of stores as Protocols: callers check ``isinstance(store, GetRanges)``.

Every store has `Get`, `Set`, `Delete` and `List` (a read-only store: `Get`). Each other Protocol is one additional ability;
`tessarr.stores.functions` implements missing abilities by means of the others.

An object has an ability when it has the method. Three marks restrict this:

- `fallback`: the method calls other methods, or only raises, and is not an ability. `Store` marks its defaults so.
- `forwarding`: the method calls the method of the same name of the wrapped store, and is an ability if that one is.
- `only_if`: the method is an ability if an attribute of the store is true.

>>> from tessarr.storage import CountingStore, MemoryStore, Store
>>> isinstance(MemoryStore(), ConditionalSet), isinstance(MemoryStore(), Remote), isinstance(CountingStore(Store()), GetRanges)
(True, False, False)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from tessarr.common.segments import Piece, Stored
from tessarr.stores.fetch import Fetch, Fetched, Unchanged, Version
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


LockContext: TypeAlias = AbstractContextManager[object]
"""Result of `Lock.lock`: entering the context acquires the lock, leaving releases the lock."""
_List = list
"""`list`, where a method of that name hides it."""
JOURNAL = ".tessarr-journal"
"""Name of the key at a node by which an unfinished transaction is detected (`Settle`). Never a key of data."""


# -- marks --------------------------------------------------------------------------------------------------------------


def fallback(method: _M) -> _M:
    """Mark a method that calls other methods, or only raises, as no ability."""
    setattr(method, _MARK, _never)
    return method


def _never(_: object) -> bool:
    return False


def forwarding(method: _M) -> _M:
    """Mark a method of a wrapper as an ability if the method of that name of ``self.store`` is one."""
    name = method.__name__
    setattr(method, _MARK, lambda store: has_own(store.store, name))
    return method


def only_if(attribute: str) -> Callable[[_M], _M]:
    """Mark a method as an ability of stores whose `attribute` is true."""

    def mark(method: _M) -> _M:
        setattr(method, _MARK, lambda store: bool(getattr(store, attribute)))
        return method

    return mark


def has_own(store: object, name: str) -> bool:
    """Whether `store` has a method (or attribute) `name` that is an ability by its marks."""
    method = getattr(type(store), name, None)
    if method is None:
        return getattr(store, name, None) is not None
    counts = _mark(method)
    return counts is None or counts(store)


class _Ability(_ProtocolMeta):
    """Metaclass of the Protocols here, whose `isinstance` respects the marks."""

    def __instancecheck__(cls, store: object) -> bool:  # noqa: N805 - the class of classes
        known = _KNOWN.get((cls, type(store)))
        if known is None:
            known = _KNOWN[cls, type(store)] = _of_class(cls, type(store))
        if isinstance(known, bool):
            return known
        return getattr(store, known, None) is not None if isinstance(known, str) else known(store)


_KNOWN: dict[tuple[type, type], bool | str | Callable[[object], bool]] = {}
"""``(ability, class)`` → whether all objects of the class have the ability, or the attribute or function that decides."""
_MEMBERS: dict[type, frozenset[str]] = {}


def _of_class(ability: type, kind: type) -> bool | str | Callable[[object], bool]:
    if not vars(ability).get("_is_protocol"):  # a class that inherits a Protocol
        return issubclass(kind, ability)
    members = _members(ability)
    missing = [name for name in members if not hasattr(kind, name)]
    if missing:  # an object may have attributes that its class lacks
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


# -- the abilities that a store needs ------------------------------------------------------------------------------------


@runtime_checkable
class Get(Protocol, metaclass=_Ability):
    """Values can be read."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        """Read the value of `key`, or the part in `byte_range`; ``None``: no such key. A range is cut at the value's end."""
        ...


@runtime_checkable
class Set(Protocol, metaclass=_Ability):
    """Values can be replaced."""

    def set(self, key: str, value: Buffer) -> object:
        """Replace the value of `key` atomically, keeping no reference to the memory of `value`."""
        ...


@runtime_checkable
class Delete(Protocol, metaclass=_Ability):
    """Values can be removed."""

    def delete(self, key: str) -> object:
        """Remove `key`; a missing key is not an error."""
        ...


@runtime_checkable
class List(Protocol, metaclass=_Ability):
    """Keys can be listed."""

    def list(self, prefix: str = "") -> Iterable[str]:
        """List every key under `prefix`, once, in no particular order."""
        ...


# -- additional abilities ------------------------------------------------------------------------------------------------


@runtime_checkable
class GetRanges(Protocol, metaclass=_Ability):
    """Several parts of one value can be read together, at less cost than the whole value."""

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """Read the parts in `ranges`, in order, all of one version; ``None``: no such key."""
        ...


@runtime_checkable
class FetchOne(Protocol, metaclass=_Ability):
    """Each request is sent by a separate coroutine, so that each response can be used as soon as it arrives."""

    async def fetch_one(self, request: Fetch) -> Fetched | None:
        """Send one request; ``None``: no such key."""
        ...


@runtime_checkable
class GetIfChanged(Protocol, metaclass=_Ability):
    """A read can be conditional on the version, so that an unchanged value is not transferred (HTTP ``If-None-Match``)."""

    def get_if_changed(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        """Read the value, unless it has that version (`UNCHANGED`); ``None``: no such key."""
        ...


@runtime_checkable
class GetPartialValues(Protocol, metaclass=_Ability):
    """Parts of several values can be read together."""

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        """Read one part per ``(key, range)``, in order; ``None`` where there is no such key."""
        ...


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
        ...


@runtime_checkable
class ListDir(Protocol, metaclass=_Ability):
    """The direct children of a prefix can be listed without the keys below them."""

    def list_dir(self, prefix: str) -> Listing:
        """List the direct children of `prefix`."""
        ...


@runtime_checkable
class ListPrefix(Protocol, metaclass=_Ability):
    """Only the keys under a prefix can be listed, though `List.list` has no parameter `prefix`."""

    def list_prefix(self, prefix: str) -> Iterable[str]:
        """List every key under `prefix`."""
        ...


@runtime_checkable
class DeleteMany(Protocol, metaclass=_Ability):
    """Several values can be removed with one call."""

    def delete_many(self, keys: Iterable[str]) -> None:
        """Remove `keys`; a missing key is not an error."""


@runtime_checkable
class ConditionalSet(Protocol, metaclass=_Ability):
    """Values have versions, and a write can be conditional on a version (compare-and-swap)."""

    def version(self, key: str) -> Version | None:
        """Return the version of the value, which changes with the value; ``None``: no such key."""
        ...

    def set_if(self, key: str, value: Buffer, version: Version | None) -> Version | None:
        """Replace the value if it has that version (``None``: if the key is missing), atomically.

        Returns the new version where the store knows it. Raises `ConflictError` where the key has another version.
        """
        ...


@runtime_checkable
class ConditionalDelete(Protocol, metaclass=_Ability):
    """A removal can be conditional on the version."""

    def delete_if(self, key: str, version: Version | None) -> None:
        """Remove the value if it has that version, atomically. Raises `ConflictError` where the key has another version."""


@runtime_checkable
class RenamePrefix(Protocol, metaclass=_Ability):
    """All values under a prefix can be renamed in one atomic step."""

    def rename_prefix(self, source: str, dest: str) -> bool:
        """Rename every key under the prefix `source` to one under `dest`, in one step.

        Returns ``False``, having done nothing, when nothing is under `source`, when something is under `dest`, or where it
        cannot be done in one step (another file system, a symbolic link).
        """
        ...


@runtime_checkable
class Lock(Protocol, metaclass=_Ability):
    """A lock excludes every other writer of the place: all processes that may write it, and machines where there are some."""

    def lock(self, key: str) -> LockContext:
        """Return a context manager that holds the lock of `key`. The lock is not re-entrant."""
        ...


@runtime_checkable
class Update(Protocol, metaclass=_Ability):
    """A value can be read, changed and replaced in one atomic step, also against concurrent plain `set` and `delete`."""

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """Replace the value of `key` by ``change(value)``; ``None`` stands for a missing key."""


@runtime_checkable
class Splice(Protocol, metaclass=_Ability):
    """Parts of a value can be changed in one atomic step, as by `Update`, without reading and writing the whole value."""

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        """Replace the value of `key` by the pieces that `change` returns, some of them ranges of the old value."""


@runtime_checkable
class Commit(Protocol, metaclass=_Ability):
    """Several values can be replaced and removed in one atomic step, which a crash makes whole or leaves out."""

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        durable: bool | None = None,
    ) -> None:
        """Make `changes` (key → value; ``None``: remove), if each key in `expected` has that version (``None``: is missing).

        `durable`: when the call returns, the changes are on the disk; ``None``: as the store is set. Raises `ConflictError`,
        having changed nothing, with the `keys` that have other versions.
        """


@runtime_checkable
class Settle(Protocol, metaclass=_Ability):
    """A process that ended may have left a committed transaction unfinished: its journal is the key `JOURNAL` at a node."""

    def settle(self, path: str) -> None:
        """Complete the transaction whose journal is at the node `path`; a read-only store shows its values from then on."""


@runtime_checkable
class PlainFiles(Protocol, metaclass=_Ability):
    """Values are plain files, which other code may read and write by the protocol of `tessarr.stores.local.lock`."""

    @property
    def directory(self) -> str:
        """The root directory, with a separator at its end."""
        ...


@runtime_checkable
class Remote(Protocol, metaclass=_Ability):
    """A call waits for a round trip (a network): engines send requests concurrently, and await the responses."""

    requests_at_once: int
    """Number of values that a writer sends concurrently."""


class Writable(Get, Set, Delete, Protocol, metaclass=_Ability):
    """The abilities that an update of a value needs."""
