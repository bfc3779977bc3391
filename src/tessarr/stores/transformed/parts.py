"""The storage transformer ``concat-parts``: each chunk is the concatenation of several values.

    {"name": "concat-parts", "configuration": {"parts": [
        {"key_suffix": ".header", "size": 64}, {"key_suffix": ""}, {"key_suffix": ".index", "size": 1604}]}}

The value of the key ``c/0`` here is that of ``c/0.header``, ``c/0`` and ``c/0.index``, in this order. A part with `size` has so
many bytes. The *main part* is the one without `size`, or else the first: where it is missing, the chunk is. Each other
part that is missing or has another size is a `StoreError`: the value is torn.

Writing needs all sizes but one, and a store that changes several values in one step (`tessarr.stores.protocols.Commit`).

Source: zarr-extensions pull request 39.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple, Self, TypeVar

from tessarr.codecs.members import integer
from tessarr.errors import ConflictError, MetadataValidationError, Problem, StoreError, UnsupportedOperationError
from tessarr.stores import functions
from tessarr.stores.base import ANY, Any_, Fetch, Listing, Store, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import Extent, Located
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import (
    Commit,
    ConditionalDelete,
    ConditionalSet,
    Delete,
    ListDir,
    Locate,
    PlainFiles,
    Set,
    Settle,
)
from tessarr.stores.wrappers.base import WrapperStore, innermost
from tessarr.types import JSON, Buffer, ByteRange

_List = list
_ATTEMPTS = 20
"""How often the parts of a value are read again because a writer replaced them meanwhile."""
_size = integer(0, 2**63 - 1)
Result = TypeVar("Result")


class Part(NamedTuple):
    """One part of each value: the suffix of its key, and its size; ``None``: any size."""

    key_suffix: str
    size: int | None = None


class PartsTransformer:
    """Make stores of chunks that are in parts."""

    changes_layout = True

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        problems = [Problem((name,), "unknown", "unknown member") for name in configuration if name != "parts"]
        listed = configuration.get("parts")
        parts: list[Part] = []
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
            problems.append(Problem(("parts",), "type", f"must be a list of at least one part, got {listed!r}"))
            listed = []
        for position, item in enumerate(listed):
            message = _wrong_part(item)
            if message is not None:
                problems.append(Problem(("parts", position), "value", message))
            elif isinstance(item, Mapping):
                parts.append(Part(str(item["key_suffix"]), item.get("size")))  # type: ignore[arg-type]
        if len({part.key_suffix for part in parts}) < len(parts):
            problems.append(Problem(("parts",), "value", "two parts have the same key_suffix"))
        if problems:
            raise MetadataValidationError("invalid concat-parts storage transformer", problems)
        return cls(parts)

    def wrap(self, store: Store, path: str, metadata: object) -> Store:
        return PartsStore(store, self.parts, path)


def _wrong_part(item: object) -> str | None:
    if not isinstance(item, Mapping) or not item.keys() <= {"key_suffix", "size"}:
        return f'must be {{"key_suffix": text, "size": integer}}, got {item!r}'
    suffix = item.get("key_suffix")
    if not isinstance(suffix, str) or "/" in suffix or "\0" in suffix:
        return f"key_suffix must be text without a slash, got {suffix!r}"
    return _size(item["size"]) if "size" in item else None


class PartsStore(WrapperStore):
    """A store over values that are in `parts` in the wrapped store."""

    def __init__(self, store: Store, parts: Sequence[Part], path: str = "") -> None:
        super().__init__(store)
        self.parts = tuple(parts)
        below = innermost(store)
        self._journals: _List[tuple[Settle, str]] = (
            [(below, node) for node in sorted({"", path})] if isinstance(below, Settle) else []
        )
        """The nodes at which a commit of another process may have left a journal, and the store that completes it."""
        unsized = [part for part in parts if part.size is None]
        self._main = unsized[0] if unsized else parts[0]
        self._divides = len(unsized) < 2
        """Whether a new value can be divided."""

    def has_ability(self, ability: type) -> bool:
        """Whether all parts together have `ability`: writing takes a store that can `Commit`."""
        if ability is Locate:
            return isinstance(self.store, PlainFiles)
        if ability in (Set, Delete, ConditionalSet, ConditionalDelete):
            deletes = ability in (Set, ConditionalSet) or isinstance(self.store, Delete)
            return (
                deletes and self._divides and isinstance(self.store, Commit) and isinstance(self.store, ConditionalSet)
            )
        return ability not in (Commit, ListDir) and super().has_ability(ability)

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        if byte_range is not None:
            found = self.get_ranges(key, [byte_range])
            return None if found is None else found[0]
        parts = self._get_parts(key)
        return None if parts is None else b"".join(parts)

    def _get_parts(self, key: str) -> _List[memoryview] | None:
        """Read all parts, of one version of the value. Raises `StoreError` for a torn value."""
        check_key(key)
        requests = [Fetch(key + part.key_suffix) for part in self.parts]
        return self._checked(key, self._of_one_version(key, lambda: self.store.fetch(requests)))

    def _of_one_version(self, key: str, read: Callable[[], Result]) -> Result:
        """Call `read` until the value of `key` has the same version before and afterwards.

        Versions in databases are digests, so that an equal value may have come back; there one `fetch` is of one moment.
        """
        for _ in range(_ATTEMPTS):
            before = self.version(key)
            found = read()
            self._settle()
            if before == self.version(key):
                return found
        raise ConflictError("the parts of the value are replaced faster than they can be read", store=self.url, key=key)

    def _settle(self) -> None:
        """Complete pending commits.

        A commit to files replaces the parts one after another, while there is a journal. Without a journal at this moment,
        versions that are the same before and afterwards are of one commit.
        """
        for below, node in self._journals:
            below.settle(node)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """See `Store.get_ranges`: requests ranges of the parts. A range within the last sized parts needs no other part."""
        check_key(key)
        found = self._of_one_version(key, lambda: self._get_pieces(key, ranges))
        if found is not None:
            return found
        parts = self._get_parts(key)  # explains what is missing
        if parts is None:
            return None
        whole = b"".join(parts)
        return [whole[slice(*part.bounds(len(whole)))] for part in ranges]

    def _get_pieces(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """Read `ranges` of the value; ``None`` if a part is missing, or does not have the size that it should have or had."""
        last = self._last_sizes(ranges)
        sizes = self._sizes(key) if last is None else last
        if sizes is None:
            return None
        wanted: _List[_List[ByteRange]] = [[] for _ in self.parts]
        """Per part the ranges to request."""
        pieces: _List[_List[tuple[int, int]]] = []
        """Per range of the value its pieces: numbers of the part, and of the range that is requested of it."""
        for start, stop in (byte_range.bounds(sum(sizes)) for byte_range in ranges):
            pieces.append([])
            for number, (size, end) in enumerate(zip(sizes, accumulate(sizes), strict=True)):
                low, high = max(start - end + size, 0), min(stop - end + size, size)
                if low < high:
                    pieces[-1].append((number, len(wanted[number])))
                    wanted[number].append(ByteRange(low, high))
        if not all(pieces):
            wanted[self.parts.index(self._main)].append(ByteRange(0, 0))
        if last is None:  # where a part has another size by now, there are more or fewer bytes around its end
            for part, size, of_part in zip(self.parts, sizes, wanted, strict=True):
                if part.size is None:
                    of_part.append(ByteRange(max(size - 1, 0), size + 1))
        found = self._fetch_parts(key, sizes, wanted)
        if found is None:
            return None
        return [b"".join(found[number][position] for number, position in of_range) for of_range in pieces]

    def _fetch_parts(
        self, key: str, sizes: Sequence[int], wanted: Sequence[Sequence[ByteRange]]
    ) -> _List[_List[memoryview]] | None:
        """Read the ranges `wanted` of each part; ``None`` if a part is missing, or these are not parts of these sizes."""
        requests = [
            Fetch(key + part.key_suffix, tuple(of_part)) for part, of_part in zip(self.parts, wanted) if of_part
        ]
        responses = iter(self.store.fetch(requests))
        found: _List[_List[memoryview]] = []
        for size, of_part in zip(sizes, wanted, strict=True):
            response = next(responses) if of_part else []
            if response is None:
                return None
            views = [byte_view(buffer) for buffer in response]
            bounds = [byte_range.bounds(size) for byte_range in of_part]
            if [view.nbytes for view in views] != [stop - start for start, stop in bounds]:
                return None
            found.append(views)
        return found

    def _last_sizes(self, ranges: Sequence[ByteRange]) -> _List[int] | None:
        """Return the sizes of the last parts, and 0 for the others, if `ranges` name bytes of the last parts only."""
        sizes = [part.size for part in self.parts]
        last = [size for size in takewhile(lambda size: size is not None, reversed(sizes)) if size is not None]
        if len(last) < len(sizes) and all(-sum(last) <= part.start < 0 and part.stop is None for part in ranges):
            return [0] * (len(sizes) - len(last)) + last[::-1]
        return None

    def _sizes(self, key: str) -> _List[int] | None:
        """Return the sizes of the parts; ``None`` if one is missing."""
        found = [self.store.getsize(key + part.key_suffix) if part.size is None else part.size for part in self.parts]
        return None if None in found else [size or 0 for size in found]

    def _checked(self, key: str, found: Sequence[Sequence[Buffer] | None]) -> _List[memoryview] | None:
        if found[self.parts.index(self._main)] is None and not any(found):
            return None
        views = [None if parts is None else byte_view(parts[0]) for parts in found]
        for part, view in zip(self.parts, views, strict=True):
            if view is None or part.size not in (None, view.nbytes):
                raise StoreError(
                    "a part of the value is missing, or has another size",
                    store=self.url,
                    key=key + part.key_suffix,
                    expected="bytes" if part.size is None else f"{part.size} bytes",
                    got="nothing" if view is None else f"{view.nbytes} bytes",
                    hint="The value is torn: restore the part from a copy, or delete all parts",
                )
        return [view for view in views if view is not None]

    def locate(self, keys: Sequence[str]) -> _List[Located | None] | None:
        """See `tessarr.stores.protocols.Locate`: the parts, if all are there."""
        versions = [self._part_versions(key) for key in keys]
        located: _List[Located | None] = []
        for key, of_parts in zip(keys, versions, strict=True):
            sizes = self._stored_sizes(key)
            if sizes is None:
                located.append(None)
                continue
            if None in sizes.values() or any(part.size not in (None, sizes[part.key_suffix]) for part in self.parts):
                return None  # torn: `get` explains it
            extents = zip(sizes.items(), of_parts, strict=True)
            located.append(
                Located(tuple(Extent(self.store, key + name, 0, n, version) for (name, n), version in extents))
            )
        self._settle()
        return located if versions == [self._part_versions(key) for key in keys] else None

    def _stored_sizes(self, key: str) -> dict[str, int | None] | None:
        """Return the size of each part by its suffix; ``None`` where all are missing."""
        sizes = {part.key_suffix: self.store.getsize(key + part.key_suffix) for part in self.parts}
        return sizes if any(size is not None for size in sizes.values()) else None

    def getsize(self, key: str) -> int | None:
        sizes = self._stored_sizes(key)
        return None if sizes is None else sum(size or 0 for size in sizes.values())

    def version(self, key: str) -> Version | None:
        """Return the versions of all parts, joined; ``None`` where all are missing, or the store has no versions."""
        versions = self._part_versions(key)
        return None if not any(versions) else "|".join(version or "" for version in versions)

    def _part_versions(self, key: str) -> _List[Version | None]:
        return [self.store.version(key + part.key_suffix) for part in self.parts]

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        view = byte_view(value)
        sizes = [part.size for part in self.parts]
        spare = view.nbytes - sum(size or 0 for size in sizes)
        if not self._divides or spare < 0 or (None not in sizes and spare):
            raise StoreError(
                "the value cannot be divided into its parts",
                store=self.url,
                key=key,
                expected="; ".join(f"{part.key_suffix!r}: {part.size or 'any'} bytes" for part in self.parts),
                got=f"{view.nbytes} bytes",
            )
        ends = list(accumulate(spare if size is None else size for size in sizes))
        starts = [0, *ends[:-1]]
        self._commit(key, [view[start:end] for start, end in zip(starts, ends, strict=True)], if_match)
        return None

    def delete(self, key: str) -> None:
        self._commit(key, [None] * len(self.parts), ANY)

    def delete_if(self, key: str, version: Version | None) -> None:
        self._commit(key, [None] * len(self.parts), version)

    def _commit(self, key: str, values: Sequence[Buffer | None], if_match: Version | None | Any_) -> None:
        check_key(key)
        self._check_writable(key)
        if not isinstance(self.store, Commit):
            raise UnsupportedOperationError(
                "the parts of a value are written in one step, which this store cannot do",
                store=self.url,
                key=key,
                hint="Write to a directory, memory, SQLite or LMDB, and copy",
            )
        keys = [key + part.key_suffix for part in self.parts]
        expected = {} if isinstance(if_match, Any_) else dict(zip(keys, self._versions(if_match), strict=True))
        self.store.commit(dict(zip(keys, values, strict=True)), expected)

    def _versions(self, joined: Version | None) -> _List[Version | None]:
        if joined is None:
            return [None] * len(self.parts)
        return [version or None for version in joined.split("|")]

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        """List the keys whose main part is there."""
        check_prefix(prefix)
        suffix = self._main.key_suffix
        longer = tuple(part.key_suffix for part in self.parts if len(part.key_suffix) > len(suffix))
        for key in self.store.list_prefix(prefix):
            if key.endswith(suffix) and not (longer and key.endswith(longer)):
                yield key.removesuffix(suffix)

    def list_dir(self, prefix: str) -> Listing:
        return functions.children(self.list(prefix), prefix)
