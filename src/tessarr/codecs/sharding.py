"""The ``sharding_indexed`` codec: many inner chunks in one stored value, found through an index.

Source: Zarr v3.1, "Sharding codec" (ZEP 2). v3 name ``sharding_indexed``; not in v2.

>>> ShardingCodec.from_json({"chunk_shape": [32, 32],
...     "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
...     "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}).index_location
'end'

The index is a uint64 array of shape ``chunks per shard + (2,)``: offset from the start of the shard, and size in bytes, of
each inner chunk in C order; 2⁶⁴−1 in both means the inner chunk is not stored (fill value). The order of inner chunks
within the shard and unused bytes between them carry no meaning.

All functions here are pure: `ShardLayout` says which bytes to fetch, parses and checks the index, and packs shards. Engines
fetch the bytes. Where others differ: a shard shorter than its index, a half-set sentinel, entries that reach past the
shard or into the index are errors here (zarr-python < 3.4.1 read some of them as fill value).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from math import prod
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ArrayToBytes, ChunkSpec, Codec
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.is_fill import is_fill
from tessarr.codecs.members import plain_value
from tessarr.common.segments import Piece, flat, join
from tessarr.errors import CodecError, MetadataValidationError, Problem, ShardIndexError, TessarrError
from tessarr.types import JSON, AnyArray, Buffer, ByteRange, Coords, JSONObject, Shape

MISSING = 2**64 - 1
_WRITE_ORDERS = ("morton", "lexicographic", "colexicographic", "unordered")

ShardIndex = npt.NDArray[np.uint64]
"""Shape ``chunks per shard + (2,)``: offset and size of each inner chunk, or twice `MISSING`."""


class ShardingCodecIndexLocation(StrEnum):
    """Values of ``index_location`` of `ShardingCodec`, as zarr-python enumerates them. Each member is the string in
    documents.
    """

    start = "start"
    end = "end"


def _default_index_codecs() -> tuple[Codec, ...]:
    from tessarr.codecs.bytes_to_bytes.crc32c import Crc32cCodec

    return (BytesCodec("little"), Crc32cCodec())


@dataclass(frozen=True, slots=True)
class ShardingCodec(ArrayToBytes):
    """Store inner chunks of `chunk_shape`, encoded by `codecs`, and an index encoded by `index_codecs`."""

    name = "sharding_indexed"
    chunk_shape: Shape
    """Shape of an inner chunk, in the axes of the array that reaches this codec; divides the shard's shape."""
    codecs: tuple[Codec, ...] = (BytesCodec("little"),)
    index_codecs: tuple[Codec, ...] = ()
    """Empty on construction means little-endian bytes and a crc32c."""
    index_location: Literal["start", "end"] | ShardingCodecIndexLocation = "end"
    subchunk_write_order: str = "unordered"
    """Physical order of inner chunks in new shards; never stored. "unordered": as threads finish them."""
    ignored: tuple[str, ...] = ()
    """Unknown inner codecs that need not be understood: such shards can be read, and not written."""

    @property
    def diagnostics(self) -> tuple[str, ...]:
        return tuple(message for codec in (*self.codecs, *self.index_codecs) for message in codec.diagnostics)

    @property
    def is_foreign(self) -> bool:
        return any(codec.is_foreign for codec in (*self.codecs, *self.index_codecs))

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        given: object = self.chunk_shape  # one number is the length of the only axis, as in the `chunks` of arrays
        lengths = (given,) if isinstance(given, int | np.integer) else self.chunk_shape
        set_(self, "chunk_shape", tuple(int(n) for n in lengths))
        for axis, n in enumerate(self.chunk_shape):
            if n < 1:
                raise ValueError(f"Dimension {axis}: chunk edge length must be >= 1, got {n}")
        set_(self, "codecs", tuple(_codec(c) for c in self.codecs))
        set_(self, "index_codecs", tuple(_codec(c) for c in self.index_codecs) or _default_index_codecs())
        if self.subchunk_write_order not in _WRITE_ORDERS:
            raise ValueError(f"subchunk_write_order must be one of {_WRITE_ORDERS}, got {self.subchunk_write_order!r}")
        if type(self.index_location) is not ShardingCodecIndexLocation:
            set_(self, "index_location", plain_value(self.index_location, "ShardingCodec", "index_location"))
        if self.index_location not in ("start", "end"):
            raise ValueError(f"index_location must be one of 'start' and 'end', got {self.index_location!r}")

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        problems: list[Problem] = []
        known = ("chunk_shape", "codecs", "index_codecs", "index_location")
        for name in configuration:
            if name not in known:
                problems.append(Problem((name,), "unknown", "unknown member of the sharding codec"))
        for name in known[:3]:
            if name not in configuration:
                problems.append(Problem((name,), "missing", "required by the sharding codec"))
        shape = configuration.get("chunk_shape", [])
        if not (isinstance(shape, Sequence) and all(type(n) is int and n > 0 for n in shape)):
            problems.append(Problem(("chunk_shape",), "value", f"must be a list of positive integers, got {shape!r}"))
        location = configuration.get("index_location", "end")
        if location not in ("start", "end"):
            problems.append(Problem(("index_location",), "value", f"must be 'start' or 'end', got {location!r}"))
        ignored: list[str] = []
        lists = [_parse_chain(configuration, name, problems, ignored) for name in ("codecs", "index_codecs")]
        if problems:
            raise MetadataValidationError("invalid sharding_indexed codec", problems)
        return cls(tuple(shape), lists[0], lists[1], location, ignored=tuple(ignored))  # type: ignore[arg-type]

    def to_json(self) -> JSONObject:
        configuration: JSONObject = {
            "chunk_shape": list(self.chunk_shape),
            "codecs": [codec.to_json() for codec in self.codecs],
            "index_codecs": [codec.to_json() for codec in self.index_codecs],
            "index_location": self.index_location,
        }
        return {"name": "sharding_indexed", "configuration": configuration}

    def fit(self, spec: ChunkSpec) -> Self:
        """Fit the inner codecs to inner chunks."""
        from dataclasses import replace

        from tessarr.codecs.fit import fit_chain

        inner = spec.with_(shape=self.chunk_shape)
        return replace(self, codecs=fit_chain(self.codecs, inner))

    def layout(self, spec: ChunkSpec) -> ShardLayout:
        """Bind the codec to shards of `spec`."""
        return ShardLayout(self, spec)

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Check that the inner chunks fit, and return ``None``: inner chunks may be left out."""
        return ShardLayout(self, spec).encoded_size

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        return ShardLayout(self, spec).encode(chunk)

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        return ShardLayout(self, spec).decode(data)


def _codec(value: object) -> Codec:
    from tessarr.codecs.parse import codec_from

    return codec_from(value)


def _parse_chain(
    configuration: Mapping[str, JSON], name: str, problems: list[Problem], ignored: list[str]
) -> tuple[Codec, ...]:
    from tessarr.codecs.chain import split
    from tessarr.codecs.parse import parse_codecs

    codecs, skipped = parse_codecs(configuration.get(name, []), (name,), problems)
    ignored += skipped
    if name in configuration and not any(problem.loc[:1] == (name,) for problem in problems):
        try:
            split(codecs)
        except TessarrError as error:
            problems.append(Problem((name,), "value", str(error)))
    return codecs


class ShardLayout:
    """Locate, read and pack the inner chunks of shards of one spec. Immutable."""

    __slots__ = ("codec", "grid", "index_chain", "index_nbytes", "inner", "spec")

    codec: ShardingCodec
    spec: ChunkSpec
    """The shard, as the sharding codec sees it (after transposes before it)."""
    grid: Shape
    """Inner chunks per axis."""
    inner: BoundChain
    """The chain of inner chunks."""
    index_nbytes: int
    """Exact size of the encoded index."""
    encoded_size = None

    def __init__(self, codec: ShardingCodec, spec: ChunkSpec) -> None:
        from tessarr.dtypes.numeric import UInt64

        shape = codec.chunk_shape
        if len(shape) != len(spec.shape) or any(n % m for n, m in zip(spec.shape, shape, strict=True)):
            raise CodecError(
                "the inner chunk shape does not divide the shard shape",
                codec="sharding_indexed",
                expected=f"divisors of {spec.shape}, one per axis",
                got=list(shape),
            )
        self.codec = codec
        self.spec = spec
        self.grid = tuple(n // m for n, m in zip(spec.shape, shape, strict=True))
        self.inner = BoundChain(codec.codecs, spec.with_(shape=shape))
        index_type = UInt64()
        index_spec = ChunkSpec((*self.grid, 2), index_type, index_type.cast_fill(MISSING))
        self.index_chain = BoundChain(codec.index_codecs, index_spec)
        if self.index_chain.encoded_size is None:
            raise CodecError(
                "index_codecs must have a fixed encoded size",
                codec="sharding_indexed",
                got=[c.name for c in codec.index_codecs],
                hint="Compressors cannot be used for the index; use bytes and crc32c",
            )
        self.index_nbytes = self.index_chain.encoded_size

    @property
    def index_range(self) -> ByteRange:
        """The byte range of the index in a stored shard."""
        return (
            ByteRange(0, self.index_nbytes) if self.codec.index_location == "start" else ByteRange(-self.index_nbytes)
        )

    def parse_index(self, data: Buffer) -> ShardIndex:
        """Decode the index from exactly its bytes. Raises `ShardIndexError` when it is short or its checksum is wrong."""
        if memoryview(data).nbytes != self.index_nbytes:
            raise ShardIndexError(
                "a shard is shorter than its index",
                codec="sharding_indexed",
                expected=f"an index of {self.index_nbytes} bytes",
                got=f"{memoryview(data).nbytes} bytes",
                hint="The shard is truncated; restore it from a copy, or run `tessarr repair`",
            )
        try:
            return self.index_chain.decode(data).astype(np.uint64, copy=False)
        except ShardIndexError:
            raise
        except CodecError as error:
            raise ShardIndexError(f"a shard's index cannot be decoded: {error}", codec="sharding_indexed") from error

    def entry(self, index: ShardIndex, coords: Coords, shard_nbytes: int | None = None) -> ByteRange | None:
        """Return the byte range of inner chunk `coords`; ``None`` when it is not stored.

        `shard_nbytes` is the size of the shard, where known. Raises `ShardIndexError` for an impossible entry.
        """
        offset, nbytes = index[coords].tolist()
        if offset == MISSING and nbytes == MISSING:
            return None
        index_end = self.index_nbytes if self.codec.index_location == "start" else 0
        body_end = None if shard_nbytes is None else shard_nbytes - (0 if index_end else self.index_nbytes)
        exact = self.inner.encoded_size
        stop = offset + nbytes
        if (
            MISSING in (offset, nbytes)
            or offset < index_end
            or stop >= 2**63
            or (body_end is not None and stop > body_end)
            or (exact is not None and nbytes != exact)
            or nbytes == 0
        ):
            raise ShardIndexError(
                f"the shard's index entry of inner chunk {coords} is invalid",
                codec="sharding_indexed",
                expected=f"a range within {'the shard' if body_end is None else f'bytes {index_end}-{body_end}'}"
                + ("" if exact is None else f" of {exact} bytes"),
                got=f"offset {offset}, size {nbytes}",
                hint="The shard is corrupt; run `tessarr check --data`",
            )
        return ByteRange(offset, stop)

    def last_byte(self, entries: Sequence[ByteRange]) -> ByteRange:
        """Return a byte that must exist if none of these inner chunks reaches past the shard's end or into its index.

        Reading it with them checks what `entry` cannot check without the size of the shard.
        """
        stop = max(entry.stop or 0 for entry in entries) + (self.codec.index_location == "end") * self.index_nbytes
        return ByteRange(stop - 1, stop)

    def check(self, index: ShardIndex, shard_nbytes: int) -> None:
        """Raise `ShardIndexError` for the first entry that is invalid in a shard of that size."""
        offset, nbytes = index[..., 0], index[..., 1]
        at_start = self.codec.index_location == "start"
        body = self.index_nbytes if at_start else 0, shard_nbytes - (0 if at_start else self.index_nbytes)
        exact = self.inner.encoded_size
        good = (offset >= body[0]) & (offset <= body[1]) & (nbytes > 0)
        good &= nbytes <= np.where(good, body[1] - offset, 0) if exact is None else nbytes == exact
        good &= offset + nbytes <= body[1]
        good |= (offset == MISSING) & (nbytes == MISSING)
        if not good.all():
            self.entry(index, tuple(np.argwhere(~good)[0].tolist()), shard_nbytes)

    def split(self, data: Buffer, wanted: Iterable[Coords] | None = None) -> dict[Coords, memoryview]:
        """Return the encoded inner chunks of a whole stored shard, or those `wanted`, as views; missing ones are left
        out.
        """
        view = flat(data)
        start, stop = self.index_range.bounds(view.nbytes)
        index = self.parse_index(view[start:stop].data)  # which is an error when the shard is shorter than its index
        found = {}
        for coords in self.coords() if wanted is None else wanted:
            where = self.entry(index, coords, view.nbytes)
            if where is not None:
                found[coords] = view[where.start : where.stop].data
        return found

    def pack(self, index: ShardIndex | None, chunks: Mapping[Coords, Buffer | None]) -> list[Piece] | None:
        """Return the pieces of a shard made from the one of `index` (``None``: no shard) by replacing inner chunks.

        `chunks` are the new encoded inner chunks (``None``: to be left out). All others stay, in their order: a new
        inner chunk takes the place of the old one, and one that was not stored before follows all that were, in write
        order. Returns ``None`` when the new shard is empty and need not be stored.
        """
        entries = np.full((prod(self.grid), 2), MISSING, np.uint64) if index is None else index.reshape(-1, 2).copy()
        numbers = {coords: self._number(coords) for coords in chunks}
        old = {coords: int(entries[number, 0]) for coords, number in numbers.items()}
        rank = _ORDER_KEYS[self.codec.subchunk_write_order]
        order = sorted(chunks, key=lambda coords: (old[coords], rank(coords)))  # MISSING is greater than any offset
        entries[list(numbers.values())] = MISSING
        kept = _RetainedChunks(entries)
        at_start = self.codec.index_location == "start"
        offset = self.index_nbytes if at_start else 0
        pieces: list[Piece] = []
        for coords in order:
            data = chunks[coords]
            if data is not None:
                offset = kept.move(old[coords], offset, pieces)
                nbytes = memoryview(data).nbytes
                entries[numbers[coords]] = offset, nbytes
                offset += nbytes
                pieces.append(data)
        kept.move(MISSING, offset, pieces)
        if not pieces:
            return None
        packed = self.index_chain.encode(entries.reshape(*self.grid, 2))
        return [packed, *pieces] if at_start else [*pieces, packed]

    def _number(self, coords: Coords) -> int:
        number = 0
        for i, n in zip(coords, self.grid, strict=True):
            number = number * n + i
        return number

    def encode(self, shard: AnyArray, *, keep_empty: bool = False) -> bytes:
        """Encode the values of a shard; inner chunks that hold only the fill value are left out unless `keep_empty`."""
        chunks = {}
        for coords in self.coords():
            chunk = shard[self.box(coords)]
            if keep_empty or not is_fill(chunk, self.spec.fill):
                chunks[coords] = self.inner.encode(chunk)
        if chunks:
            return join(self.pack(None, chunks) or (), None)
        index = np.full((*self.grid, 2), MISSING, np.uint64)
        return bytes(memoryview(self.index_chain.encode(index)).cast("B"))

    def decode(self, data: Buffer) -> AnyArray:
        """Decode a whole stored shard to a new array."""
        chunks = self.split(data)
        out = np.ndarray(self.spec.shape, self.spec.dtype)
        if len(chunks) < prod(self.grid):
            out[...] = self.spec.fill
        for coords, chunk in chunks.items():
            self.inner.decode_into(chunk, out[self.box(coords)])
        return out

    def box(self, coords: Coords) -> Any:
        """Return the index of inner chunk `coords` in the array of a shard; indexing gives a view (for 0-d, too)."""
        return (*(slice(i * n, (i + 1) * n) for i, n in zip(coords, self.codec.chunk_shape, strict=True)), ...)

    def coords(self) -> Iterator[Coords]:
        """Yield the coords of every inner chunk, in C order."""
        return product(*map(range, self.grid))


class _RetainedChunks:
    """Move the inner chunks of a stored shard that stay, in their stored order, to a new shard."""

    def __init__(self, entries: ShardIndex) -> None:
        self._entries = entries
        kept = np.flatnonzero(entries[:, 0] != MISSING)
        self._numbers = kept[np.argsort(entries[kept, 0], kind="stable")]
        self._starts, self._sizes = entries[self._numbers].T
        self._stops = self._starts + self._sizes
        self._done = 0

    def move(self, before: int, offset: int, pieces: list[Piece]) -> int:
        """Move the inner chunks before byte `before` to `offset`; return the offset after them.

        Updates their index entries, and adds their old byte ranges, merged where adjacent, to `pieces`.
        """
        first, last = self._done, int(np.searchsorted(self._starts, np.uint64(before)))
        if last <= first:
            return offset
        self._done = last
        starts, stops, sizes = self._starts[first:last], self._stops[first:last], self._sizes[first:last]
        ends = offset + np.cumsum(sizes)
        self._entries[self._numbers[first:last], 0] = ends - sizes
        breaks = np.flatnonzero(starts[1:] != stops[:-1])
        begins, finishes = [0, *(breaks + 1).tolist()], [*breaks.tolist(), len(starts) - 1]
        pieces += [ByteRange(int(starts[i]), int(stops[j])) for i, j in zip(begins, finishes, strict=True)]
        return int(ends[-1])


def _morton(coords: Coords) -> int:
    """Interleave the bits of all coordinates: neighbours in space become neighbours in the file.

    The bits of the first axis are the lowest, as in zarr-python.
    """
    ndim = len(coords)
    return sum((index >> bit & 1) << (bit * ndim + axis) for axis, index in enumerate(coords) for bit in range(32))


_ORDER_KEYS: dict[str, Any] = {
    "morton": _morton,
    "lexicographic": lambda coords: coords,
    "colexicographic": lambda coords: coords[::-1],
    "unordered": lambda coords: coords,
}
