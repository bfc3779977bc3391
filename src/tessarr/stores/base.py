"""The contract of a store: a map from keys to bytes, with the abilities of the place where the bytes are.

A *key* is a non-empty Unicode string of segments joined by ``/``; it neither begins nor ends with ``/`` and no segment
is empty, ``.`` or ``..`` (`tessarr.stores.path.check_key`). A *prefix* is ``""`` (everything) or ends with ``/``.

`Store` is the class to inherit: implement `get`, `set`, `delete` and `list`, by which every other method works
(`tessarr.stores.functions`). Override a method that the place can do better; the method is then an ability that callers
detect (`tessarr.stores.protocols`). A missing key is ``None``; a failure (permission, network, a truncated body) is a
`StoreError`, never ``None``. `set` replaces the whole value atomically: a reader, another process or a crash sees the old
value or the new one.

Every method that does I/O has an async variant ``…_async`` with the same arguments, result and errors. The async variants of
this class run the synchronous method in a thread; a store written as coroutines inherits
`tessarr.stores.asynchronous.AsyncStore`.

Source: Zarr v3.1 core, "Abstract store interface"; the spec's erase, erase_values and erase_prefix are `delete`,
`delete_many` and `delete_prefix` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, final

from tessarr.common.segments import Piece, Stored
from tessarr.errors import ReadOnlyError, UnsupportedOperationError
from tessarr.stores import functions
from tessarr.stores.buffers import byte_view, merge_parts, parts_by_key
from tessarr.stores.fetch import Fetch as Fetch
from tessarr.stores.fetch import Fetched, Unchanged
from tessarr.stores.fetch import Version as Version
from tessarr.stores.functions import spliced as spliced
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.mapping_methods import AsMapping
from tessarr.stores.protocols import Delete as Delete
from tessarr.stores.protocols import GetPartialValues, Remote, SetPartialValues, fallback
from tessarr.stores.protocols import List as List
from tessarr.stores.protocols import Listing as Listing
from tessarr.stores.protocols import LockContext as LockContext
from tessarr.stores.protocols import Set as Set
from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    from tessarr.stores.transformed.manifest_options import ManifestOptions

_List = list
"""`list`, where a method of that name hides it."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_S = TypeVar("_S", bound="Store")


async def _in_thread(function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    import asyncio  # imported here so that synchronous programs do not load asyncio

    return await asyncio.to_thread(function, *args, **kwargs)


@final
class Any_:  # noqa: N801 - the type of one constant
    """The type of `ANY`."""

    def __repr__(self) -> str:
        return "ANY"


ANY = Any_()
"""``if_match=ANY``: write unconditionally."""


class Store(AsMapping):
    """A key/value store. See the head of this file for the contract."""

    read_only: bool = False
    """Writes raise `ReadOnlyError`."""
    given: Any = None  # the object that `Array.store` returns instead: see `tessarr.stores.url`
    dimension_separator: str | None = None
    """Separator of chunk indices in v2 arrays that are new, or whose document names none; ``None``: the store sets none."""
    manifest_options: ManifestOptions | None = None
    """Places to which manifests of chunks in this store may refer; ``None``: below their array."""

    def __init__(self, *, read_only: bool = False) -> None:
        """Set `read_only`. A subclass need not call this method."""
        self.read_only = read_only

    def _invalidate_cached(self, prefix: str, is_stale: Callable[[str], bool]) -> None:
        """Remove what this store, or one below, has cached of the keys under `prefix` whose rest ``is_stale(rest)``.

        For values that other writers may have replaced, where what is stored decides; without a cache nothing is done.
        """

    def _stamp_below(self, prefix: str, counts: Callable[[str], bool]) -> str | None:
        """Return the stamp of another store that has the same values; see `tessarr.stores.functions.stamp_below`."""
        return None

    # -- zarr-python's attributes ------------------------------------------------------------------------------

    @property
    def supports_writes(self) -> bool:
        """Whether values can be written, under zarr-python's name: ``isinstance(store, Set)``."""
        return isinstance(self, Set)

    @property
    def supports_deletes(self) -> bool:
        """Whether values can be removed, under zarr-python's name: ``isinstance(store, Delete)``."""
        return isinstance(self, Delete)

    @property
    def supports_listing(self) -> bool:
        """Whether keys can be listed, under zarr-python's name: ``isinstance(store, List)``."""
        return isinstance(self, List)

    @property
    def supports_partial_writes(self) -> bool:
        """``False``, as in zarr-python: parts of values are written by `update`."""
        return False

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Whether consolidated metadata in the store may be used."""
        return True

    @property
    def may_hold_v1(self) -> bool:
        """Whether the key of Zarr v1 is requested where no format is given; stores of zarr-python's contract may refuse it."""
        return True

    @property
    def refuses_chunks_beyond_shape(self) -> bool:
        """Whether the store takes chunks only within the shape that the document of their array has, as Icechunk does."""
        return False

    # -- identity ----------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The canonical URL, without credentials. Opens the same place again where that is possible."""
        return f"{type(self).__name__.lower()}://{id(self):x}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __str__(self) -> str:
        return self.url

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """Identify the store for dask by its place, not by its values."""
        return (type(self).__qualname__, self.url, self.read_only)

    def with_read_only(self, read_only: bool = True) -> Self:
        """Return a store over the same place, read-only or writable."""
        import copy

        copied = copy.copy(self)
        copied.read_only = read_only
        return copied

    def close(self) -> None:
        """Publish pending writes and release resources. May be called twice."""

    async def close_async(self) -> None:
        await _in_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- reading -----------------------------------------------------------------------------------------------

    @fallback
    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        """Read the value of `key`, or the part in `byte_range`; ``None`` when there is no such key.

        The caller may keep the buffer but must not write to it. A class may implement `get_partial_values` instead.
        """
        if not isinstance(self, GetPartialValues):
            raise self._missing_method("get(key, byte_range=None)")
        return self.get_partial_values([(key, byte_range)])[0]

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return await _in_thread(self.get, key, byte_range)

    @fallback
    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """Read several parts of one value, in the order of `ranges`; ``None`` when there is no such key."""
        return functions.ranges_by_get(self, key, ranges)

    async def get_ranges_async(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return await _in_thread(self.get_ranges, key, ranges)

    @fallback
    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        """Read parts of several values, in the order of `key_ranges`; ``None`` for each missing key. Keys may repeat."""
        return [self.get(key, byte_range) for key, byte_range in key_ranges]

    async def get_partial_values_async(
        self, key_ranges: Iterable[tuple[str, ByteRange | None]]
    ) -> _List[Buffer | None]:
        import asyncio

        return list(await asyncio.gather(*(self.get_async(key, part) for key, part in key_ranges)))

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """Read several values or parts of values at once: per request a list (one buffer for a whole value), or ``None``.

        A store that knows the version of a value returns a `tessarr.stores.fetch.Fetched`. A `Remote` store sends the
        requests concurrently.
        """
        if len(requests) > 1 and isinstance(self, Remote):
            return functions.fetch(self, requests)
        return [
            self.get_ranges(key, ranges)
            if ranges is not None
            else None
            if (value := self.get(key)) is None
            else [value]
            for key, ranges in requests
        ]

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        return await _in_thread(self.fetch, requests)

    @fallback
    def get_if_changed(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        """Read a value with its version, unless it has that version (`UNCHANGED`); ``None``: no such key.

        The returned version is not newer than the value, so that the next conditional read misses no change; it is ``None``
        where the store has no versions, and the value is then read each time.
        """
        return functions.get_if_changed(self, key, version)

    async def get_if_changed_async(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        return await _in_thread(self.get_if_changed, key, version)

    def exists(self, key: str) -> bool:
        """Whether `key` has a value."""
        return self.get(key, ByteRange(0, 0)) is not None

    async def exists_async(self, key: str) -> bool:
        return await _in_thread(self.exists, key)

    @fallback
    def getsize(self, key: str) -> int | None:
        """Return the size of the value of `key` in bytes; ``None`` when there is no such key."""
        value = self.get(key)
        return None if value is None else byte_view(value).nbytes

    async def getsize_async(self, key: str) -> int | None:
        return await _in_thread(self.getsize, key)

    def getsize_prefix(self, prefix: str) -> int:
        """Add up the bytes of all values under `prefix`."""
        return sum(self.getsize(key) or 0 for key in self.list_prefix(prefix))

    async def getsize_prefix_async(self, prefix: str) -> int:
        return await _in_thread(self.getsize_prefix, prefix)

    @fallback
    def version(self, key: str) -> Version | None:
        """Return the version of the value of `key`, which changes with the value; ``None``: no such key, or no versions."""
        return None

    # -- writing -----------------------------------------------------------------------------------------------

    @fallback
    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        """Replace the value of `key` atomically. The store keeps no reference to the memory of `value`.

        With `if_match` the write is conditional on that version (``None``: on the key being missing), and raises
        `ConflictError` for another version; a store that is no `ConditionalSet` raises `UnsupportedOperationError`.
        Returns the new version where the store knows it.
        """
        self._check_writable(key)
        if not isinstance(if_match, Any_):
            raise functions.no_conditional_writes(self, key)
        if not isinstance(self, SetPartialValues):
            raise self._missing_method("set(key, value)")
        self.delete(key)
        self.set_partial_values([(key, 0, value)])
        return None

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        return await _in_thread(self._set_if_match, key, value, if_match)

    def _set_if_match(self, key: str, value: Buffer, if_match: Version | None | Any_) -> Version | None:
        # A store without conditional writes may define `set` without the parameter `if_match`.
        return self.set(key, value) if isinstance(if_match, Any_) else self.set(key, value, if_match=if_match)

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        """Write `value` unless `key` has a value. Returns whether `value` was written."""
        self._check_writable(key)
        return functions.set_if_not_exists(self, key, value)

    async def set_if_not_exists_async(self, key: str, value: Buffer) -> bool:
        return await _in_thread(self.set_if_not_exists, key, value)

    @fallback
    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """Write parts of values: ``(key, start, bytes)``; keys may repeat, ranges of one key may not overlap.

        A missing key is created, a gap is filled with zero bytes, a write past the end extends the value.
        Raises `ValueError` for overlapping ranges, having written nothing.
        """
        for key, parts in parts_by_key(key_start_values).items():
            self.update(key, lambda old, parts=parts: merge_parts(old, parts))  # type: ignore[misc]

    async def set_partial_values_async(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        await _in_thread(self.set_partial_values, list(key_start_values))

    @fallback
    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """Read, change and replace one value so that no concurrent update of it, in any thread or process, is lost.

        `change` gets the present value (``None``: missing) and returns the new one (``None``: delete). `change` may be
        called several times, so that it must depend on its argument only. See `tessarr.stores.functions`.
        """
        self._check_writable(key)
        functions.update_by_set(self, key, change)

    async def update_async(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        await _in_thread(self.update, key, change)

    @fallback
    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        """Read and replace parts of one value in one atomic step, as `update` does for whole values.

        `change` gets the present value to read from (``None``: missing) and returns the pieces of the new value:
        bytes, and ranges of the present value that stay (``None``: delete). This default reads the whole value.
        """
        self.update(key, spliced(change))

    async def splice_async(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        await _in_thread(self.splice, key, change)

    @fallback
    def lock(self, key: str) -> LockContext:
        """Return a context manager that holds the lock of `key`, which excludes threads of this process, and, in a store with
        the ability `Lock`, other processes. Not re-entrant."""
        return KEYED_LOCKS.hold((self.url, key))

    # -- deleting ----------------------------------------------------------------------------------------------

    @fallback
    def delete(self, key: str) -> None:
        """Remove `key`; a missing key is not an error."""
        self._check_writable(key)
        raise UnsupportedOperationError("this store cannot delete", store=self.url, key=key)

    async def delete_async(self, key: str) -> None:
        await _in_thread(self.delete, key)

    @fallback
    def delete_many(self, keys: Iterable[str]) -> None:
        """Remove several keys."""
        self._check_writable("")
        for key in keys:
            self.delete(key)

    async def delete_many_async(self, keys: Iterable[str]) -> None:
        await _in_thread(self.delete_many, list(keys))

    @fallback
    def delete_prefix(self, prefix: str) -> None:
        """Remove every key under `prefix`, and only those."""
        self._check_writable(prefix)
        self.delete_many(list(self.list_prefix(prefix)))

    async def delete_prefix_async(self, prefix: str) -> None:
        await _in_thread(self.delete_prefix, prefix)

    @fallback
    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        """Replace all values under `prefix` by `items` (full keys → values).

        No old value is removed before every new value is stored. This default stages the new values under another
        prefix, then removes the old keys, then writes the new values under their keys.
        """
        self._check_writable(prefix)
        functions.replace_prefix(self, prefix, items)

    async def replace_prefix_async(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        await _in_thread(self.replace_prefix, prefix, items)

    def delete_dir(self, prefix: str) -> None:
        """Remove every key under `prefix`, under zarr-python's name; `prefix` may lack the slash at its end."""
        self.delete_prefix(f"{prefix.rstrip('/')}/" if prefix else "")

    def clear(self) -> None:
        """Remove every key."""
        self.delete_prefix("")

    async def clear_async(self) -> None:
        await self.delete_prefix_async("")

    # -- listing -----------------------------------------------------------------------------------------------

    @fallback
    def list(self, prefix: str = "") -> Iterator[str]:
        """List every key under `prefix`, once, in no particular order."""
        raise UnsupportedOperationError("this store cannot list its keys", store=self.url)

    def is_empty(self, prefix: str) -> bool:
        """Whether there is no key under `prefix`, which may lack the slash at its end."""
        return next(iter(self.list_prefix(f"{prefix.rstrip('/')}/" if prefix else "")), None) is None

    async def is_empty_async(self, prefix: str) -> bool:
        return await _in_thread(self.is_empty, prefix)

    @fallback
    def list_prefix(self, prefix: str) -> Iterator[str]:
        """List every key under `prefix` (full keys), in no particular order.

        Raises `KeyValidationError` for a prefix that is neither ``""`` nor ends with ``/``.
        """
        return functions.prefix_by_list(self, prefix)

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        """List every key under `prefix`, as `list_prefix` does."""
        return await _in_thread(lambda: [*self.list_prefix(prefix)])

    @fallback
    def list_dir(self, prefix: str) -> Listing:
        """List the direct children of `prefix`; two empty lists when there are none."""
        return functions.children(self.list_prefix(prefix), prefix)

    async def list_dir_async(self, prefix: str) -> Listing:
        return await _in_thread(self.list_dir, prefix)

    # -- for implementations -------------------------------------------------------------------------------------

    def _check_writable(self, key: str) -> None:
        if self.read_only:
            raise ReadOnlyError("the store is read-only", store=self.url, key=key, hint="Open it with mode='r+' or 'a'")

    def _missing_method(self, signature: str) -> UnsupportedOperationError:
        """Make the error for a class that implements neither a method nor the methods that its default calls."""
        name = signature.partition("(")[0]
        hint = f"Implement {signature} in the class"
        return UnsupportedOperationError(f"{type(self).__name__} does not implement {name}", store=self.url, hint=hint)


class ConditionalStore(Store):
    """Base class of stores with a conditional `set` (`if_match`) and `version`: updates use compare-and-swap.

    So no part of a chunk or shard that is written from several processes or machines is lost. An update that deletes a value
    checks the version first, with a race between the check and the deletion; a class without this race defines
    ``delete_if(key, version)``.
    """

    def set_if(self, key: str, value: Buffer, version: Version | None) -> Version | None:
        """Replace the value if it has that version (``None``: if the key is missing), by `set` with `if_match`."""
        return self.set(key, value, if_match=version)


def shared_copy(store: _S) -> _S:
    """Implement `__copy__` for stores with a custom pickle: the copy shares the place and the connections of the original."""
    copied = type(store).__new__(type(store))
    copied.__dict__.update(store.__dict__)
    return copied
