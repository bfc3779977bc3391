"""The abilities of stores as Protocols: callers check ``isinstance(store, GetRanges)``.

Every store has `Get`, `Set`, `Delete` and `List` (a read-only store: `Get`). Each other Protocol is one additional ability;
`tessarr.stores.functions` implements missing abilities by means of the others.

A store has an ability when it has the methods. Two statements in its class restrict this:

- The decorator `fallback` says of one method that it calls other methods, or only raises: it is not an ability. `Store` has
  every method, so that programs may call them of every store, and those that it derives are fallbacks.
- The method ``has_ability(ability)`` (`HasAbility`) decides for one object. A local store has no `Lock` where its file system
  has none, and a wrapper has the abilities of the wrapped store.

>>> from tessarr.storage import CountingStore, MemoryStore, Store
>>> isinstance(MemoryStore(), ConditionalSet), isinstance(MemoryStore(), Remote), isinstance(CountingStore(Store()), GetRanges)
(True, False, False)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from tessarr.common.segments import Piece, Stored
from tessarr.stores.fetch import Fetch, Fetched, Located, Unchanged, Version
from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    from abc import ABCMeta as _ProtocolMeta

    from tessarr.stores.base import Store
    from tessarr.stores.local.transactions.many import StagedFiles
else:
    _ProtocolMeta = type(Protocol)

_M = TypeVar("_M", bound=Callable[..., Any])


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
CLAIM = "tessarr_transaction"
"""Member of a document by which a transaction claims it (`tessarr.core.claims`)."""
_CLAIM = CLAIM.encode()


def may_be_claimed(data: Buffer) -> bool:
    """Whether a document has the word `CLAIM`: looked for in every document that is opened, and then parsed for."""
    return _CLAIM in bytes(data)


# -- what an ability is -------------------------------------------------------------------------------------------------


class _Fallback(Protocol):
    __isfallback__: bool


def fallback(method: _M) -> _M:
    """Declare that a method calls other methods, or only raises, and is not an ability.

    As `abc.abstractmethod` does, this records the declaration at the function, so that a subclass revokes it by overriding
    the method.
    """
    cast("_Fallback", method).__isfallback__ = True
    return method


class _AbilityMeta(_ProtocolMeta):
    """Metaclass of the Protocols here. `isinstance` compares names of methods, and considers `fallback` and `HasAbility`."""

    def __instancecheck__(cls, store: object) -> bool:  # noqa: N805 - the class of classes
        try:
            needs = _KNOWN[cls, type(store)]
        except KeyError:
            needs = _KNOWN[cls, type(store)] = _needs_of(cls, type(store))
        if needs is None:
            return False
        for name in needs.attributes:
            if getattr(store, name, None) is None:
                return False
        for ability in needs.asked:  # noqa: SIM110 - without frames for a generator and `cast`: this is called for every request
            if not store.has_ability(ability):  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
                return False
        return True


class _Needs(NamedTuple):
    """What decides whether an object of a class has an ability, beyond the methods that the class has."""

    attributes: Sequence[str] = ()
    """Attributes that the class lacks."""
    asked: Sequence[type] = ()
    """What `HasAbility.has_ability` is called with."""


_KNOWN: dict[tuple[type, type], _Needs | None] = {}
"""``(ability, class)`` → what objects of the class need; ``None``: none has the ability."""


def _needs_of(ability: type, kind: type) -> _Needs | None:
    if not vars(ability).get("_is_protocol"):  # a class that inherits a Protocol
        return _Needs() if issubclass(kind, ability) else None
    members = sorted(_members(ability))
    if any(_is_fallback(getattr(kind, name, None)) for name in members):
        return None
    parts = [base for base in ability.__mro__ if vars(base).get("_is_protocol") and _own_members(base)]
    return _Needs(
        [name for name in members if getattr(kind, name, None) is None], parts if hasattr(kind, "has_ability") else ()
    )


def _is_fallback(method: object) -> bool:
    return bool(getattr(method, "__isfallback__", False))


def _members(ability: type) -> frozenset[str]:
    """List the names of the methods (and attributes) that make an ability."""
    return frozenset(name for base in ability.__mro__ for name in _own_members(base))


def _own_members(protocol: type) -> list[str]:
    names = [*vars(protocol), *vars(protocol).get("__annotations__", ())]
    return [name for name in names if not name.startswith("_")]


class HasAbility(Protocol):
    """The objects of one class differ in their abilities."""

    def has_ability(self, ability: type) -> bool:
        """Whether this object has `ability`, a Protocol whose methods its class has. Called by `isinstance`."""
        ...


class _Ability(Protocol, metaclass=_AbilityMeta):
    """The base of the Protocols here."""


class _FurtherAbility(_Ability, Protocol):
    """The base of abilities that a store need not have.

    `Store` has a method of each, so that type checkers would take ``isinstance(store, Lock)`` for always true, and skip
    what is done otherwise. For them each class lacks one member, until `isinstance` has found the ability.
    """

    if TYPE_CHECKING:
        _found_by_isinstance: bool


# -- the abilities that a store needs ------------------------------------------------------------------------------------


@runtime_checkable
class Get(_Ability, Protocol):
    """Values can be read."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        """Read the value of `key`, or the part in `byte_range`; ``None``: no such key. A range is cut at the value's end."""
        ...


@runtime_checkable
class Set(_Ability, Protocol):
    """Values can be replaced."""

    def set(self, key: str, value: Buffer) -> object:
        """Replace the value of `key` atomically, keeping no reference to the memory of `value`."""
        ...


@runtime_checkable
class Delete(_Ability, Protocol):
    """Values can be removed."""

    def delete(self, key: str) -> object:
        """Remove `key`; a missing key is not an error."""
        ...


@runtime_checkable
class List(_FurtherAbility, Protocol):
    """Keys can be listed."""

    def list(self, prefix: str = "") -> Iterable[str]:
        """List every key under `prefix`, once, in no particular order."""
        ...


# -- additional abilities ------------------------------------------------------------------------------------------------


@runtime_checkable
class GetRanges(_FurtherAbility, Protocol):
    """Several parts of one value can be read together, at less cost than the whole value."""

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """Read the parts in `ranges`, in order, all of one version; ``None``: no such key."""
        ...


@runtime_checkable
class FetchOne(_FurtherAbility, Protocol):
    """Each request is sent by a separate coroutine, so that each response can be used as soon as it arrives."""

    async def fetch_one(self, request: Fetch) -> Fetched | None:
        """Send one request; ``None``: no such key."""
        ...


@runtime_checkable
class GetIfChanged(_FurtherAbility, Protocol):
    """A read can be conditional on the version, so that an unchanged value is not transferred (HTTP ``If-None-Match``)."""

    def get_if_changed(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        """Read the value, unless it has that version (`UNCHANGED`); ``None``: no such key."""
        ...


@runtime_checkable
class GetPartialValues(_FurtherAbility, Protocol):
    """Parts of several values can be read together."""

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        """Read one part per ``(key, range)``, in order; ``None`` where there is no such key."""
        ...


@runtime_checkable
class SetPartialValues(_FurtherAbility, Protocol):
    """Parts of values can be replaced."""

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """Write each ``(key, start, bytes)``."""


@runtime_checkable
class Size(_FurtherAbility, Protocol):
    """Sizes are known without reading values."""

    def getsize(self, key: str) -> int | None:
        """Return the bytes of the value of `key`; ``None``: no such key."""
        ...


@runtime_checkable
class ListDir(_FurtherAbility, Protocol):
    """The direct children of a prefix can be listed without the keys below them."""

    def list_dir(self, prefix: str) -> Listing:
        """List the direct children of `prefix`."""
        ...


@runtime_checkable
class ListPrefix(_FurtherAbility, Protocol):
    """Only the keys under a prefix can be listed, though `List.list` has no parameter `prefix`."""

    def list_prefix(self, prefix: str) -> Iterable[str]:
        """List every key under `prefix`."""
        ...


@runtime_checkable
class DeleteMany(_FurtherAbility, Protocol):
    """Several values can be removed with one call."""

    def delete_many(self, keys: Iterable[str]) -> None:
        """Remove `keys`; a missing key is not an error."""


@runtime_checkable
class ConditionalSet(_FurtherAbility, Protocol):
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
class ConditionalDelete(_FurtherAbility, Protocol):
    """A removal can be conditional on the version."""

    def delete_if(self, key: str, version: Version | None) -> None:
        """Remove the value if it has that version, atomically. Raises `ConflictError` where the key has another version."""


@runtime_checkable
class RenamePrefix(_FurtherAbility, Protocol):
    """All values under a prefix can be renamed in one atomic step."""

    def rename_prefix(self, source: str, dest: str) -> bool:
        """Rename every key under the prefix `source` to one under `dest`, in one step.

        Returns ``False``, having done nothing, when nothing is under `source`, when something is under `dest`, or where it
        cannot be done in one step (another file system, a symbolic link).
        """
        ...


@runtime_checkable
class ExchangePrefixes(_FurtherAbility, Protocol):
    """The values under two prefixes can be exchanged in one atomic step."""

    def exchange_prefixes(self, one: str, other: str) -> bool:
        """Rename every key under `one` to one under `other`, and the reverse, in one step.

        Returns ``False``, having done nothing, when nothing is under one of them, or where it cannot be done in one step.
        """
        ...


@runtime_checkable
class ReplacePrefix(_FurtherAbility, Protocol):
    """All values under a prefix are removed, and replaced by others, in one step: no caller finds a part of them gone."""

    def delete_prefix(self, prefix: str) -> None:
        """Remove every key under `prefix`, and only those, in one step."""
        ...

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        """Replace all values under `prefix` by `items` (full keys → values), in one step."""
        ...


@runtime_checkable
class Lock(_FurtherAbility, Protocol):
    """A lock excludes every other writer of the place: all processes that may write it, and machines where there are some."""

    def lock(self, key: str) -> LockContext:
        """Return a context manager that holds the lock of `key`. The lock is not re-entrant."""
        ...


@runtime_checkable
class Update(_FurtherAbility, Protocol):
    """A value can be read, changed and replaced in one atomic step, also against concurrent plain `set` and `delete`."""

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """Replace the value of `key` by ``change(value)``; ``None`` stands for a missing key."""


@runtime_checkable
class SetMany(_FurtherAbility, Protocol):
    """Several values are set by one call in less time than one by one. Wrappers do not forward it: they get each value."""

    def set_many(
        self,
        path: str,
        encode: Callable[[], Sequence[tuple[str, Buffer | None]] | None],
        write: Callable[[StagedFiles], Sequence[tuple[str, tuple[Version, int] | None]] | None],
    ) -> Sequence[str] | None:
        """Set values of the array at `path`: those that `encode` returns, or, where the store has files for them, `write`.

        `write` returns versions and bytes of the files that it wrote. ``None`` for a key: remove the value. ``None`` for all:
        they cannot be encoded, or written, at once. Returns the keys, or ``None``, as `encode` does.
        """
        ...


@runtime_checkable
class Splice(_FurtherAbility, Protocol):
    """Parts of a value can be changed in one atomic step, as by `Update`, without reading and writing the whole value."""

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        """Replace the value of `key` by the pieces that `change` returns, some of them ranges of the old value."""


@runtime_checkable
class Commit(_FurtherAbility, Protocol):
    """Several values can be replaced and removed in one atomic step, which a crash makes whole or leaves out."""

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        """Make `changes` (key → value; ``None``: remove), if each key in `expected` has that version (``None``: is missing).

        `listed`: prefixes under which there is no key, but those in `changes` and `expected`. `durable`: when the call returns,
        the changes are on the disk; ``None``: as the store is set. Raises `ConflictError`, having changed nothing, with the
        `keys` that have other versions, or are new.
        """


@runtime_checkable
class Snapshot(_FurtherAbility, Protocol):
    """The values of one moment can be read, whatever is written later, and writers do not wait for that."""

    def snapshot(self) -> Store:
        """Return a read-only store of the values of this moment, until it is closed.

        Raises `UnsupportedOperationError` where the place, as it is now, has no such snapshots.
        """
        ...


@runtime_checkable
class ListVersions(_FurtherAbility, Protocol):
    """The versions of values can be listed with their keys, in far fewer requests than one for each."""

    def list_versions(self, prefix: str) -> Mapping[str, Version]:
        """Return the version of each key under `prefix`."""
        ...


@runtime_checkable
class Stamp(_FurtherAbility, Protocol):
    """A listing says whether values changed (`tessarr.common.stamps`)."""

    def stamp(self, prefix: str, counts: Callable[[str], bool]) -> str:
        """Return a digest of the keys under `prefix` that count, and of what a listing says of their values.

        It changes when a value is replaced, is the same in every process, and needs no request for each value.
        """
        ...


@runtime_checkable
class Settle(_FurtherAbility, Protocol):
    """A process that ended may have left a committed transaction unfinished: its journal is the key `JOURNAL` at a node."""

    def settle(self, path: str) -> None:
        """Complete the transaction whose journal is at the node `path`; a read-only store shows its values from then on."""


@runtime_checkable
class PlainFiles(_FurtherAbility, Protocol):
    """Values are plain files, which other code may read and write by the protocol of `tessarr.stores.local.lock`."""

    @property
    def directory(self) -> str:
        """The root directory, with a separator at its end."""
        ...


@runtime_checkable
class Locate(_FurtherAbility, Protocol):
    """Values are extents of values of other stores: members of an archive, chunks of a file of another format.

    A caller may read the extents itself, instead of the values by `Get`. If one is missing, too short, or has another version
    than is named, it reads the value by `Get`, which knows what that means.
    """

    def locate(self, keys: Sequence[str]) -> Sequence[Located | None] | None:
        """Return where the value of each key is, all of one moment; ``None`` in the place of a missing key.

        Returns ``None`` if one of the values is not made of extents: it is compressed, or in memory.
        """
        ...


@runtime_checkable
class Remote(_FurtherAbility, Protocol):
    """A call waits for a round trip (a network): engines send requests concurrently, and await the responses."""

    requests_at_once: int
    """Number of values that a writer sends concurrently."""


class Writable(Get, Set, Delete, Protocol):
    """The abilities that an update of a value needs."""


DELETING = (Delete, DeleteMany, ReplacePrefix)
WRITING = (Set, *DELETING)
LISTING = (List, ListDir)
"""Abilities that a place has or lacks together, for `HasAbility.has_ability`."""
