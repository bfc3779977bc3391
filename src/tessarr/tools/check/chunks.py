"""Check the stored values of an array: their keys (stat), sizes and shard indexes (size), and content (decode).

Values of an array with storage transformers are checked through these, and have no repair: their keys are not keys of the
store.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Lock
from typing import Any, TypeAlias

from tessarr.core.array_parts.reservation_io import BESIDE
from tessarr.engine.bound import BoundArray, RuntimeOptions, bind
from tessarr.engine.jobs import Jobs
from tessarr.engine.transformers import transformed
from tessarr.errors import ChecksumError, CodecError, ShardIndexError, StoreError, TessarrError
from tessarr.keys.default import DefaultKeyEncoding
from tessarr.keys.v2 import V2KeyEncoding
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import List
from tessarr.tools.check.report import Action, Finding, Level, Report
from tessarr.types import JSON, Coords

Keys: TypeAlias = Callable[[str], Iterable[str]]
_TEMPORARY = (".partial", ".tmp", ".temp", ".part")
"""Suffixes of files that killed writers leave behind (zarr-python, zarr-java, rsync-like tools)."""
UNKNOWN = "No reader uses it: remove it if it is not needed"
_BACKUPS = "__tessarr_repair"
STAGING = ("__tessarr_staged", _BACKUPS)


def kept(path: str, prefix: str) -> Finding:
    """Describe values below `prefix`, at the node `path`, that are there on purpose."""
    message = "values that a repair replaced, or a writer staged"
    return Finding("DOC-STRAY", message, path, prefix, fix="Remove it when it is no longer needed")


@dataclass(frozen=True, slots=True)
class Share:
    """The part of an array that one of several checks examines."""

    chunks: tuple[range, ...]
    """Coords of chunks along each axis."""
    first: bool
    """Whether this check reports what concerns no chunk of the array, such as other keys."""

    def holds(self, coords: Coords) -> bool:
        """Return whether a chunk belongs to this part."""
        return all(index in own for index, own in zip(coords, self.chunks, strict=True))


class ArrayCheck:
    """Check the stored values of one array in one pass over its keys."""

    def __init__(
        self,
        store: Store,
        path: str,
        metadata: ArrayMetadata,
        level: Level,
        pool: Jobs,
        keys: Keys | None = None,
        share: Share | None = None,
    ) -> None:
        """Set up the check; `pool` reads chunks, and may be shared; `keys` lists a prefix, instead of the store.

        `share`: the part of the array to check, where several checks divide it; ``None``: all.
        """
        self.store = store
        self.path = path
        self.prefix = prefix_of(path)
        self.metadata = metadata
        self.level = level
        self.pool = pool
        self.keys = store.list_prefix if keys is None else keys
        self.share = share
        self.chunks = 0
        self.nbytes = 0
        self._first = share is None or share.first
        self._listed = 0
        self._lock = Lock()
        self._nested: set[str] = set()

    def findings(self) -> Iterator[Finding]:
        """Yield the problems of the stored values."""
        if not self.metadata.storage_transformers:
            yield from self._findings()
            return
        try:
            store = transformed(self.store, self.path, self.metadata)
            keys = [*store.list_prefix(self.prefix)] if isinstance(store, List) else []
        except TessarrError as error:
            if self._first:
                yield Finding("CHUNK-READ", str(error), self.path)
            return
        self.keys = lambda _prefix: keys
        for finding in self._findings():
            yield replace(finding, action=None)

    def _findings(self) -> Iterator[Finding]:
        if not isinstance(self.store, List):
            if self._first:
                yield Finding("CHECK-SKIPPED", "the store cannot list, so stored keys are not checked", self.path)
            return
        other = _other_separator(self.metadata)
        misplaced: list[str] = []
        chunks = self._sorted_keys(misplaced, other)
        if self.level == "stat":
            for item in chunks:
                if isinstance(item, Finding):
                    yield item
        else:
            try:
                bound = bind(self.store, self.path, self.metadata, RuntimeOptions())
            except TessarrError as error:
                if self._first:
                    yield Finding("CHECK-SKIPPED", f"chunks cannot be checked: {error}", self.path)
                return
            yield from self._examined(chunks, bound)
        if self._first:
            yield from self._separator(misplaced, other)

    # -- keys ------------------------------------------------------------------------------------------------------

    def _sorted_keys(self, misplaced: list[str], other: object) -> Iterator[Finding | Coords]:
        """Yield the coords of every chunk, and findings for all other keys."""
        encoding, ndim = self.metadata.chunk_key_encoding, self.metadata.ndim
        counts = [axis.nchunks for axis in self.metadata.chunk_grid.axes(self.metadata.shape)]
        for key in self.keys(self.prefix):
            name = key[len(self.prefix) :]
            if "/" not in name and (name in formats.DOCUMENT_NAMES or name == BESIDE):
                continue
            coords = encoding.decode(name, ndim)
            if coords is None:
                finding = self._stray(key, name, misplaced, other)
                if finding is not None and self._first:
                    yield finding
            elif any(index >= count for index, count in zip(coords, counts, strict=True)):
                message = f"the grid has {counts} chunks"
                action = Action("delete_outside", key, self.path)
                if self._first:
                    yield Finding("KEY-OUTSIDE", message, self.path, key, coords, action=action)
            else:
                self._listed += 1
                if self.share is None or self.share.holds(coords):
                    self.chunks += 1
                    yield coords

    def _stray(self, key: str, name: str, misplaced: list[str], other: Any) -> Finding | None:
        first, last = name.partition("/")[0], name.rpartition("/")[2]
        if first == _BACKUPS:
            if first in self._nested:
                return None
            self._nested.add(first)
            return kept(self.path, self.prefix + first)
        if last.endswith(_TEMPORARY) or name.startswith(STAGING):
            return Finding(
                "KEY-TEMPORARY", "left by a writer that was stopped", self.path, key, action=Action("delete", key)
            )
        if last in formats.DOCUMENT_NAMES and "/" in name:
            node = key.rpartition("/")[0]
            if node in self._nested:
                return None
            self._nested.add(node)
            message = f"/{node} is inside the array /{self.path}"
            return Finding("HIER-IN-ARRAY", message, self.path, key, fix="Move it to a group")
        if other is not None and other.decode(name, self.metadata.ndim) is not None:
            misplaced.append(key)
            return None
        return Finding("KEY-STRAY", "neither a chunk nor a document", self.path, key, fix=UNKNOWN)

    def _separator(self, misplaced: list[str], other: Any) -> Iterator[Finding]:
        if not misplaced:
            return
        stated, meant = self.metadata.dimension_separator, other.separator
        message = (
            f"{len(misplaced)} chunks are stored with {meant!r}, the metadata says {stated!r}: they read as fill value"
        )
        fix = f"{misplaced[0]} is one of them"
        action = None
        if self._listed == 0 and self.metadata.zarr_format in (2, 3) and not self._outside_root(misplaced):
            name = "zarr.json" if self.metadata.zarr_format == 3 else ".zarray"
            action = Action("separator", self.prefix + name, meant)
        else:
            fix += "; both spellings are in use, so move the chunks by hand"
        yield Finding("KEY-SEPARATOR", message, self.path, misplaced[0], fix=fix, action=action)

    def _outside_root(self, keys: list[str]) -> bool:
        return not all(key.startswith(self.prefix) for key in keys)

    # -- values ----------------------------------------------------------------------------------------------------

    def _examined(self, items: Iterable[Finding | Coords], bound: BoundArray) -> Iterator[Finding]:
        def examine(item: Finding | Coords) -> list[Finding]:
            return [item] if isinstance(item, Finding) else self._chunk(bound, item)

        for found in self.pool.map(examine, items):
            yield from found

    def _count(self, nbytes: int) -> None:
        with self._lock:
            self.nbytes += nbytes

    def _chunk(self, bound: BoundArray, coords: Coords) -> list[Finding]:
        key = bound.key(coords)
        make = _FindingFactory(self.path, key, coords)
        try:
            if self.level == "size":
                return list(self._sized(bound, coords, key, make))
            return list(self._decoded(bound, coords, key, make))
        except StoreError as error:
            return [make("CHUNK-READ", str(error))]

    def _sized(self, bound: BoundArray, coords: Coords, key: str, make: _FindingFactory) -> Iterator[Finding]:
        nbytes = bound.store.getsize(key)
        if nbytes is None:
            return  # deleted after listing
        self._count(nbytes)
        chain = bound.chain(bound.chunk_shape(coords))
        if nbytes == 0 and chain.encoded_size != 0:
            yield make("CHUNK-EMPTY", "0 bytes", quarantine=True)
        elif chain.shard is not None and not chain.after:
            if nbytes < chain.shard.index_nbytes:
                message = f"{nbytes} bytes are shorter than the index of {chain.shard.index_nbytes}"
                yield make("SHARD-INDEX", message, quarantine=True)
            else:
                index = bound.store.get(key, chain.shard.index_range)
                if index is not None:
                    yield from shard_findings(chain.shard, index, nbytes, make)
        elif chain.encoded_size is not None and chain.encoded_size != nbytes:
            yield make("CHUNK-SIZE", f"{nbytes} bytes, {chain.encoded_size} expected", quarantine=True)

    def _decoded(self, bound: BoundArray, coords: Coords, key: str, make: _FindingFactory) -> Iterator[Finding]:
        data: Any = bound.store.get(key)
        if data is None:
            return
        nbytes = memoryview(data).nbytes
        self._count(nbytes)
        chain = bound.chain(bound.chunk_shape(coords))
        if nbytes == 0 and chain.encoded_size != 0:
            yield make("CHUNK-EMPTY", "0 bytes", quarantine=True)
            return
        if chain.shard is None or chain.after:
            yield from _decode(chain.decode, data, make)
            return
        shard, view = chain.shard, memoryview(data).cast("B")
        start, stop = shard.index_range.bounds(nbytes)
        broken = list(shard_findings(shard, view[start:stop], nbytes, make))
        yield from broken
        if any(finding.rule == "SHARD-INDEX" for finding in broken):
            return
        index = shard.parse_index(view[start:stop])
        for inner in shard.coords():
            try:
                where = shard.entry(index, inner, nbytes)
            except ShardIndexError:
                continue  # reported by shard_findings
            if where is not None:
                for finding in _decode(shard.inner.decode, view[where.start : where.stop], make):
                    yield make(finding.rule, f"inner chunk {inner}: {finding.message}", quarantine=True)


class _FindingFactory:
    """Make findings about one stored chunk."""

    def __init__(self, path: str, key: str, coords: Coords) -> None:
        self.path, self.key, self.coords = path, key, coords

    def __call__(self, rule: str, message: str, *, quarantine: bool = False) -> Finding:
        action = Action("quarantine", self.key) if quarantine else None
        fix = "Restore the value from a copy" if quarantine else ""
        return Finding(rule, message, self.path, self.key, self.coords, fix=fix, action=action)


class Listed:
    """Index the keys of a store in memory, which would scan all keys for each prefix."""

    def __init__(self, store: Store) -> None:
        self.keys = sorted(store.list())

    def below(self, prefix: str) -> list[str]:
        """Return the keys that begin with `prefix`."""
        start = bisect_left(self.keys, prefix)
        stop = bisect_left(self.keys, prefix + chr(sys.maxunicode), start) if prefix else len(self.keys)
        return self.keys[start:stop]


def examined(check: ArrayCheck) -> dict[str, JSON]:
    """Carry out a check; return its findings and counts as JSON, for `add_examined`."""
    found = [finding.to_json() for finding in check.findings()]
    return {"chunks": check.chunks, "nbytes": check.nbytes, "findings": found}


def add_examined(report: Report, done: Mapping[str, Any]) -> None:
    """Add what `examined` returned to a report."""
    report.chunks += done["chunks"]
    report.nbytes += done["nbytes"]
    report.add(Finding.from_json(item) for item in done["findings"])


def _decode(decode: Callable[[Any], Any], data: Any, make: _FindingFactory) -> Iterator[Finding]:
    try:
        decode(data)
    except ChecksumError as error:
        yield make("CHUNK-CHECKSUM", str(error), quarantine=True)
    except ShardIndexError as error:
        yield make("SHARD-INDEX", str(error), quarantine=True)
    except CodecError as error:
        yield make("CHUNK-DECODE", str(error), quarantine=True)
    except TessarrError as error:
        yield make("CHUNK-DECODE", str(error))


def shard_findings(shard: Any, index_data: Any, nbytes: int, make: _FindingFactory) -> Iterator[Finding]:
    """Yield the problems of the index of one shard of `nbytes` stored bytes."""
    try:
        index = shard.parse_index(index_data)
    except CodecError as error:
        yield make("SHARD-INDEX", str(error), quarantine=True)
        return
    ranges = []
    broken = 0
    for inner in shard.coords():
        try:
            where = shard.entry(index, inner, nbytes)
        except ShardIndexError as error:
            broken += 1
            yield make("SHARD-ENTRY", str(error), quarantine=True)
            continue
        if where is not None:
            ranges.append((where.start, where.stop, inner))
    ranges.sort()
    for (start, stop, inner), (next_start, _, following) in pairwise(ranges):
        if next_start < stop:
            message = f"inner chunks {inner} and {following} share bytes {next_start}-{stop} (from {start})"
            yield make("SHARD-OVERLAP", message, quarantine=True)
    used = sum(stop - start for start, stop, _ in ranges) + shard.index_nbytes
    if not broken and used < nbytes:
        yield make("SHARD-UNUSED", f"{nbytes - used} of {nbytes} bytes belong to no inner chunk")


def _other_separator(metadata: ArrayMetadata) -> object:
    """Return the chunk key encoding with the other separator; ``None`` where the keys are the same."""
    encoding = metadata.chunk_key_encoding
    if metadata.ndim < 1 or not isinstance(encoding, V2KeyEncoding | DefaultKeyEncoding):
        return None
    if isinstance(encoding, V2KeyEncoding) and metadata.ndim < 2:
        return None
    return type(encoding)("/" if encoding.separator == "." else ".")
