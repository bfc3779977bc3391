"""Find chunks in the shards of a Neuroglancer precomputed volume.

A chunk has an id, the *compressed Morton code* of its coordinates. A hash of the id names a shard, a file, and a *minishard*
in it. A shard begins with the place of each minishard's index; an index lists ids, offsets and sizes. So reading takes three
rounds of requests, whatever the number of chunks; indices are kept while the version of their shard is known to be the same.

>>> chunk_id((2, 1, 0), (4, 2, 1)), coords_of(6, (4, 2, 1))
(6, (2, 1, 0))

Source: Neuroglancer, "Neuroglancer Precomputed Sharded Format" and "Compressed morton code"; MurmurHash3 (public domain) by
A. Appleby.
"""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.errors import StoreError
from tessarr.metadata.precomputed import XYZ, Scale, Sharding
from tessarr.stores.base import Store
from tessarr.stores.buffers import as_bytes, byte_view
from tessarr.stores.fetch import Fetch, Version, version_of
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import Remote
from tessarr.types import Buffer, ByteRange

_KEPT_INDICES = 256
_MOST_INDEX_NBYTES = 256 << 20
"""Largest decoded index of a minishard that is read: that of 11 million chunks."""
_ATTEMPTS = 3
_REPLACED = f"a shard was replaced in each of {_ATTEMPTS} attempts to read it"
Minishard: TypeAlias = tuple[int, int]
"""Number of a shard, and of a minishard in it."""


# -- ids -----------------------------------------------------------------------------------------------------------------


def _bit_places(grid: XYZ) -> Iterator[tuple[int, int]]:
    """Yield the axis and the bit of the coordinate for each bit of an id, from the lowest."""
    for bit in range(max(grid).bit_length()):
        for axis in range(3):
            if 1 << bit < grid[axis]:
                yield axis, bit


def chunk_id(coords: XYZ, grid: XYZ) -> int:
    """Return the compressed Morton code of a chunk's coordinates in its grid."""
    return sum((coords[axis] >> bit & 1) << at for at, (axis, bit) in enumerate(_bit_places(grid)))


def coords_of(number: int, grid: XYZ) -> XYZ | None:
    """Return the coordinates of a chunk id; ``None``: the grid has no such chunk."""
    coords = [0, 0, 0]
    for at, (axis, bit) in enumerate(_bit_places(grid)):
        coords[axis] |= (number >> at & 1) << bit
    found = (coords[0], coords[1], coords[2])
    inside = all(n < m for n, m in zip(found, grid, strict=True))
    return found if inside and chunk_id(found, grid) == number else None


def _multiply(a: int, b: int) -> int:
    return a * b & 0xFFFFFFFF


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & 0xFFFFFFFF


def _mix(value: int) -> int:
    value = _multiply(value ^ value >> 16, 0x85EBCA6B)
    value = _multiply(value ^ value >> 13, 0xC2B2AE35)
    return value ^ value >> 16


def murmurhash3(number: int) -> int:
    """Return the lower 64 bits of MurmurHash3_x86_128, seed 0, of 8 little-endian bytes."""
    low, high = number & 0xFFFFFFFF, number >> 32
    first = _multiply(_rotate(_multiply(low, 0x239B961B), 15), 0xAB0E9789) ^ 8
    second = _multiply(_rotate(_multiply(high, 0xAB0E9789), 16), 0x38B34AE5) ^ 8
    first = first + second + 16 & 0xFFFFFFFF
    parts = [_mix(part & 0xFFFFFFFF) for part in (first, second + first, 8 + first, 8 + first)]
    first = sum(parts) & 0xFFFFFFFF
    return first | (parts[1] + first & 0xFFFFFFFF) << 32


def minishard_of(number: int, sharding: Sharding) -> Minishard:
    """Return the shard and the minishard of a chunk id."""
    hashed = number >> sharding.preshift_bits
    if sharding.hash != "identity":
        hashed = murmurhash3(hashed)
    minishard = hashed & (1 << sharding.minishard_bits) - 1
    return hashed >> sharding.minishard_bits & (1 << sharding.shard_bits) - 1, minishard


# -- indices -------------------------------------------------------------------------------------------------------------


class _Index(NamedTuple):
    """The chunks of a minishard."""

    ids: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.uint64]
    """Offsets from the end of the shard's index."""
    sizes: npt.NDArray[np.uint64]
    version: Version | None
    """That of the shard."""


class Place(NamedTuple):
    """Where the encoded bytes of a chunk are."""

    key: str
    range: ByteRange
    version: Version | None


class ShardedChunks:
    """The chunks of one scale of a volume in `store`."""

    def __init__(self, store: Store, scale: Scale) -> None:
        assert scale.sharding is not None
        self._store, self._scale, self._sharding = store, scale, scale.sharding
        self._kept: OrderedDict[Minishard, _Index] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> tuple[Store, Scale]:
        return self._store, self._scale

    def __setstate__(self, state: tuple[Store, Scale]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def fetch(self, wanted: Sequence[XYZ]) -> list[tuple[Buffer, Version | None] | None]:
        """Read the encoded bytes of chunks, with the version of their shard; ``None`` for a missing chunk.

        Raises `StoreError` for a shard that is too short, malformed, or replaced in every attempt to read it.
        """
        for _ in range(_ATTEMPTS):
            places = self.locate(wanted)
            found = self._read([None if place is None else place[:2] for place in places])
            stale = {
                minishard_of(chunk_id(coords, self._scale.grid), self._sharding)
                for coords, place, answer in zip(wanted, places, found, strict=True)
                if place is not None and (answer is None or answer[1] != place.version)
            }
            if not stale:
                return found
            with self._lock:
                for minishard in stale:
                    self._kept.pop(minishard, None)
        raise StoreError(_REPLACED, store=self._store.url, key=self._scale.key)

    def locate(self, wanted: Sequence[XYZ]) -> list[Place | None]:
        """Return where the encoded bytes of chunks are; ``None`` for a missing chunk."""
        ids = [chunk_id(coords, self._scale.grid) for coords in wanted]
        homes = [minishard_of(number, self._sharding) for number in ids]
        indices = self._indices(list(dict.fromkeys(homes)))
        return [self._place(number, home, indices[home]) for number, home in zip(ids, homes, strict=True)]

    def every(self) -> Iterator[XYZ]:
        """Yield the coordinates of every stored chunk."""
        digits = -(-self._sharding.shard_bits // 4)
        for key in self._store.list_dir(prefix_of(self._scale.key)).keys:
            name, _, suffix = key.rpartition("/")[2].partition(".")
            try:
                shard = int(name, 16)
            except ValueError:
                continue
            if suffix != "shard" or name != f"{shard:0{digits}x}" or shard >> self._sharding.shard_bits:
                continue
            for index in self._indices(self._filled(shard)).values():
                for number in [] if index is None else index.ids.tolist():
                    coords = coords_of(number, self._scale.grid)
                    if coords is not None:
                        yield coords

    def _filled(self, shard: int) -> list[Minishard]:
        """List the minishards of a shard that have an index."""
        (answer,) = self._read([(self._key(shard), ByteRange(0, self._header_nbytes))])
        if answer is None:
            return []
        places = np.frombuffer(as_bytes(answer[0]), "<u8").reshape(-1, 2)
        return [(shard, int(number)) for number in np.flatnonzero(places[:, 0] != places[:, 1])]

    @property
    def _header_nbytes(self) -> int:
        return 16 << self._sharding.minishard_bits

    def _key(self, shard: int) -> str:
        digits = -(-self._sharding.shard_bits // 4)
        return f"{self._scale.key}/{shard:0{digits}x}.shard"

    def _place(self, number: int, home: Minishard, index: _Index | None) -> Place | None:
        if index is None:
            return None
        at = np.flatnonzero(index.ids == np.uint64(number))
        if not len(at):
            return None
        start, size = int(index.starts[at[0]]) + self._header_nbytes, int(index.sizes[at[0]])
        if start + size >= 1 << 63:
            raise self._wrong(self._key(home[0]), "a chunk is at an impossible place", f"{size} bytes at {start}")
        return Place(self._key(home[0]), ByteRange(start, start + size), index.version)

    def _indices(self, wanted: Sequence[Minishard]) -> dict[Minishard, _Index | None]:
        """Return the indices of minishards; ``None``: the minishard is empty."""
        with self._lock:
            found: dict[Minishard, _Index | None] = {one: self._kept[one] for one in wanted if one in self._kept}
        missing = [one for one in wanted if one not in found]
        for one, index in zip(missing, self._read_indices(missing), strict=True):
            found[one] = index
            if index is not None and index.version is not None:
                with self._lock:
                    self._kept[one] = index
                    while len(self._kept) > _KEPT_INDICES:
                        self._kept.popitem(last=False)
        return found

    def _read_indices(self, wanted: Sequence[Minishard]) -> list[_Index | None]:
        for _ in range(_ATTEMPTS):
            heads = self._read([(self._key(shard), ByteRange(16 * at, 16 * at + 16)) for shard, at in wanted])
            places = [
                None if head is None else self._index_place(one, head[0])
                for one, head in zip(wanted, heads, strict=True)
            ]
            bodies = self._read(places)
            pairs = zip(places, heads, bodies, strict=True)
            if all(place is None or (head and body and head[1] == body[1]) for place, head, body in pairs):
                return [
                    None if body is None else self._parse(one, *body) for one, body in zip(wanted, bodies, strict=True)
                ]
        raise StoreError(_REPLACED, store=self._store.url, key=self._scale.key)

    def _index_place(self, minishard: Minishard, head: Buffer) -> tuple[str, ByteRange] | None:
        start, stop = (int(n) for n in np.frombuffer(as_bytes(head), "<u8"))
        key = self._key(minishard[0])
        if start > stop or stop >= (1 << 63) - self._header_nbytes:
            raise self._wrong(key, "the index of a minishard is at an impossible place", f"{start} to {stop}")
        return None if start == stop else (key, ByteRange(start + self._header_nbytes, stop + self._header_nbytes))

    def _parse(self, minishard: Minishard, data: Buffer, version: Version | None) -> _Index:
        encoded = as_bytes(data)
        key = self._key(minishard[0])
        if self._sharding.minishard_index_encoding == "gzip":
            encoded = self._unzip(key, encoded)
        if len(encoded) % 24:
            raise self._wrong(key, "the index of a minishard is malformed", f"{len(encoded)} bytes")
        ids, starts, sizes = np.frombuffer(encoded, "<u8").astype(np.uint64, copy=False).reshape(3, -1)
        ends = np.cumsum(starts + sizes, dtype=np.uint64)
        return _Index(np.cumsum(ids, dtype=np.uint64), ends - sizes, sizes, version)

    def _unzip(self, key: str, encoded: bytes) -> bytes:
        stream = zlib.decompressobj(wbits=31)
        try:
            decoded = stream.decompress(encoded, _MOST_INDEX_NBYTES)
        except zlib.error as error:
            raise self._wrong(key, "the index of a minishard is not gzip", str(error)) from error
        if not stream.eof or stream.unused_data:
            raise self._wrong(key, "the index of a minishard is not whole, or too large", f"{len(encoded)} bytes")
        return decoded

    def _read(self, places: Sequence[tuple[str, ByteRange] | None]) -> list[tuple[Buffer, Version | None] | None]:
        """Read ranges in one `fetch`, those of one shard together; ``None``: no place, or no such shard."""
        by_key: dict[str, list[int]] = {}
        for number, place in enumerate(places):
            if place is not None:
                by_key.setdefault(place[0], []).append(number)
        requests = [
            Fetch(key, tuple(place[1] for number in numbers if (place := places[number]) is not None))
            for key, numbers in by_key.items()
        ]
        found: list[tuple[Buffer, Version | None] | None] = [None] * len(places)
        if not requests:
            return found
        before = self._versions(by_key)
        answers = self._store.fetch(requests)
        after = self._versions(by_key)
        for request, numbers, answer in zip(requests, by_key.values(), answers, strict=True):
            version, then = version_of(answer or []) or before[request.key], after[request.key]
            if version is not None and then not in (None, version):
                version = f"{version} and then {then}"  # which no other version equals: what was read is not used
            for number, wanted, part in zip(numbers, request.ranges or (), answer or (), strict=False):
                if byte_view(part).nbytes != (wanted.stop or 0) - wanted.start:
                    raise self._wrong(
                        request.key, "a shard is too short", f"{byte_view(part).nbytes} bytes of {wanted}"
                    )
                found[number] = part, version
        return found

    def _versions(self, keys: Iterable[str]) -> dict[str, Version | None]:
        """Return the versions of values; of a remote store ``None``: they come with its responses."""
        return {key: None if isinstance(self._store, Remote) else self._store.version(key) for key in keys}

    def _wrong(self, key: str, what: str, got: str) -> StoreError:
        hint = "The shard is damaged or truncated, or of another format"
        return StoreError(what, store=self._store.url, key=key, got=got, hint=hint)
