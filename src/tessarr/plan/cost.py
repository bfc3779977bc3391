"""Choose the boxes in which an array is moved to another chunking, and predict what that costs. Pure.

Reading a box reads every chunk of the source that it touches, whole. So a chunk that lies in several boxes is read several
times; the *amplification* is the number of chunks read over the number of chunks. `choose_box` lets boxes grow where that falls
most, as far as the memory of a task allows.

A thread of the native engine reads and writes local files by itself. It keeps buffers for its next chunk: of up to `KEPT`, and
one of up to `KEPT_ENCODED` for what it encodes. Larger ones go back to the system. So what it holds of one side, and of another
stage, is there while it works on the other, if its buffers are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import gcd, lcm, log, prod
from typing import NamedTuple, Self

from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.bytes_to_bytes.tables import table_nbytes
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.sharding import ShardingCodec
from tessarr.dtypes.base import VARIABLE_ITEMSIZE
from tessarr.errors import BaseZarrError
from tessarr.grids.base import Axis
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.tiling import Cut, Tiling, tiled
from tessarr.types import Shape

FOR_THREADS = 4
"""At most one part in so many of the memory is for what threads hold, where one thread needs less."""
SMALL_BOX = 64 << 20
"""A box of fewer bytes grows further than reading needs: a task takes some milliseconds, whatever its size."""
BAND = 64 << 20
"""The bytes of a band, if they are not chunks for all threads, or longer stored values, that need more."""
_COUNTED = 10_000
"""So many bands are looked at one by one."""
READ_BACK = 1 << 20
"""Bytes of elements that a thread reads back at once, if a chunk has less."""
LONG = 2_000_000
"""Bytes of tables from which they are not overhead."""
_CODE = 2_500_000
"""Bytes of code and tables that a process has loaded once it has moved a box, as measured."""
_CLIENT = 5_000_000
"""Bytes of code and state of a client of object storage."""
_STATE = 300_000
"""Bytes that a thread keeps whatever it encodes, as measured."""
WITH_OVERHEAD = 4
"""The overhead of a process is within what tasks may use that is more than so many times as much."""
FOR_FLIGHT = 8
"""One part in so many of the memory of a task is for chunks that are requested, or stored, at once."""
KEPT = 8 << 20
"""The longest buffer that a thread of the native engine keeps (`KEEP_BYTES` of rust/src/scratch.rs)."""
KEPT_ENCODED = 16 << 20
"""The longest one that it keeps for what it encodes (`with_buffer` of rust/src/write.rs)."""


class Needs(NamedTuple):
    """The buffers that a thread needs at once, by what it does. It keeps those of up to `KEPT`, the longest of each kind."""

    reading: tuple[int, ...]
    writing: tuple[int, ...]
    verifying: tuple[int, ...]
    encoding: int
    """What it encodes into; it keeps that, if it is not longer than `KEPT_ENCODED`."""
    read_back: int
    """Elements that it reads back to compare them."""

    @property
    def kept(self) -> tuple[int, ...]:
        """The buffers that it keeps."""
        phases = (self.reading, self.writing, self.verifying)
        return tuple(max(sizes) for sizes in zip_longest(*(_small(phase) for phase in phases), fillvalue=0))

    @property
    def kept_encoding(self) -> int:
        """What it keeps of what it encodes into."""
        return self.encoding if self.encoding <= KEPT_ENCODED else 0

    @property
    def kept_verifying(self) -> int:
        """What each thread but one keeps of values that are read back: other threads do that than read and write."""
        return sum(_small(self.verifying))

    def held(self, kept: Sequence[int] = (), encoding: int = 0) -> int:
        """Return the most bytes that it holds at once. `kept`, `encoding`: what it keeps of another stage."""
        small = sum(max(sizes) for sizes in zip_longest(self.kept, kept, fillvalue=0))
        rest = max(encoding, self.kept_encoding)
        reading, writing, verifying = (
            sum(size for size in phase if size > KEPT) for phase in (self.reading, self.writing, self.verifying)
        )
        return small + max(reading + rest, writing + max(encoding, self.encoding), verifying + rest + self.read_back)


def _small(sizes: Sequence[int]) -> list[int]:
    return sorted((size for size in sizes if size <= KEPT), reverse=True)


def needs_of_thread(
    read: int,
    write: int,
    *,
    verified: bool,
    decoded: bool = True,
    gathered: bool = True,
    encoded: tuple[bool, bool] = (True, True),
    cut: bool = False,
) -> Needs:
    """Return what a thread needs.

    `read`, `write`: the bytes of a chunk of either side. `verified`: what was written is read back. `decoded`: chunks are
    decoded elsewhere than in their box. `gathered`: chunks are copied from their box to be encoded. `encoded`: whether the
    chunks of either side are not their elements, as they are in memory. `cut`: the end of the array cuts some that are written.

    >>> needs_of_thread(2, 8, verified=False).held(), needs_of_thread(9 << 20, 9 << 20, verified=False).held()
    (18, 28311552)
    """
    return Needs(
        (read,) * (encoded[0] + decoded),
        (write,) * gathered,
        (write,) * (verified * encoded[1] * (1 + cut)),
        write * encoded[1],
        write * verified,
    )


class InFlight(NamedTuple):
    """The most decoded bytes of chunks that are requested, or stored, at once; 0 where each thread does that for its own."""

    reading: int = 0
    writing: int = 0

    def held(self, read: int, write: int, stored: int, threads: int, *, verified: bool) -> int:
        """Return the most bytes that a task holds at once: of chunks that take `read` bytes, in values that are `stored`, or of
        values that take `write`.

        All that is requested at once is held until it is decoded. Of what is stored at once each value is held, and of as many
        as there are threads what they are encoded from.
        """
        values = max(1, self.writing // max(1, write))
        storing = values + min(values, threads) if self.writing else 3 * threads
        again = max(max(self), write) if self.writing else 0
        return max(
            (max(self.reading, stored) if self.reading else 0) + 2 * threads * read,
            storing * write,
            (again + 2 * threads * write) * verified,
        )


NOTHING_IN_FLIGHT = InFlight()


def is_one_piece(part: Sequence[int], whole: Sequence[int]) -> bool:
    """Return whether a part of an array, with these lengths, is one piece of its memory.

    >>> is_one_piece((2, 5, 9), (4, 5, 9)), is_one_piece((1, 5, 9), (4, 8, 9)), is_one_piece((2, 5, 9), (4, 8, 9))
    (True, True, False)
    """
    first = next((axis for axis, length in enumerate(part) if length != 1), len(part))
    return tuple(part[first + 1 :]) == tuple(whole[first + 1 :])


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that decide about boxes: chunks in elements, `itemsize` in bytes."""

    axes: tuple[Axis, ...]
    """The stored chunks of the target (shards, where there are shards)."""
    read: Shape
    """The chunks that the source reads as one."""
    write: Shape
    """The chunks that are encoded as one."""
    itemsize: int
    threads: int
    """How many threads decode and encode within a task."""
    held: int = 0
    """The bytes that a task holds besides."""
    converted: int = 0
    """Bytes of an element of the source, where tasks convert elements to another type, and hold both; 0 where they do not."""
    verified: bool = False
    """Whether tasks read back what they wrote."""
    in_flight: InFlight = NOTHING_IN_FLIGHT
    """The bytes of chunks whose requests a task has in flight."""
    streamed: bool = False
    """Whether inner chunks are encoded and written one by one; else whole shards are encoded in memory."""
    copies: int = 0
    """How often a task holds the elements of its box besides, encoded."""
    tables: int = 0
    """Bytes of the tables of the codecs in each thread."""
    encoded: tuple[bool, bool] = (True, True)
    """Whether the chunks of the source, and of the target, are not their elements, as they are in memory."""
    beside: Needs | None = None
    """What a thread needs for another stage, of which it keeps some."""
    stops: Shape | None = None
    """The stored values of the source, between which tasks may stop reading; ``None``: they read their boxes at once."""

    @classmethod
    def of(cls, metadata: ArrayMetadata, read: Shape, threads: int, *, streamed: bool = False) -> Self:
        """Return the sizes of a target, and of the chunks of its source. `streamed`: inner chunks are encoded one by one."""
        axes = metadata.chunk_grid.axes(metadata.shape)
        itemsize = max(1, metadata.data_type.itemsize or VARIABLE_ITEMSIZE)
        first = metadata.codecs[0] if metadata.codecs else None
        write = first.chunk_shape if streamed and isinstance(first, ShardingCodec) else longest_chunks(axes)
        return cls(axes, read, write, itemsize, threads, streamed=streamed)

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        return tuple(axis.length for axis in self.axes)

    @property
    def source_itemsize(self) -> int:
        """Bytes of an element of the source."""
        return self.converted or self.itemsize

    @property
    def per_element(self) -> int:
        """The bytes that a task holds for an element of its box."""
        return self.itemsize * (1 + self.copies) + self.converted

    @property
    def of_first_stage(self) -> Self:
        """Those of a task that writes its box as one shard of an intermediate array, whose inner chunks are small."""
        return replace(
            self,
            write=(1,) * len(self.shape),
            verified=False,
            copies=int(not self.streamed),
            encoded=(self.encoded[0], True),
        )

    def peak(self, box: Sequence[int]) -> int:
        """Return the most bytes that a task holds for a box: its elements, in each thread a chunk of either side, encoded
        and decoded, and what it holds besides."""
        elements = prod(min(n, size) for n, size in zip(self.shape, box, strict=True))
        return self.per_element * elements + self._held_of_chunks(box) + self.held

    def peak_in_bands(self, box: Sequence[int], sweep: Sweep) -> int:
        """Return the most bytes that a task holds which goes over its box in bands."""
        row = prod(box) // box[sweep.axis]
        elements = row * (self.source_itemsize * sweep.held + (self.itemsize * sweep.band if self.converted else 0))
        return elements + self._held_of_chunks(None) + self.held

    @property
    def overhead(self) -> int:
        """The bytes that a process holds once it has carried out a task, whatever the sizes are."""
        more = max(0, READ_BACK - self.itemsize * prod(self.write)) * self.verified
        return _CODE + any(self.in_flight) * _CLIENT + self.threads * (_STATE + self.tables - self.long_tables + more)

    @property
    def long_tables(self) -> int:
        """The bytes of the tables in each thread, if these are long; else the overhead has them."""
        return self.tables if self.tables > LONG else 0

    @property
    def smallest(self) -> Shape:
        """The smallest box: one stored chunk."""
        return tuple(min(n, size) if n else size for n, size in zip(self.shape, longest_chunks(self.axes), strict=True))

    @property
    def least(self) -> int:
        """The bytes that a task holds at least."""
        return self.peak(self.smallest)

    @property
    def per_thread(self) -> int:
        """The bytes that a thread holds at most."""
        return self._per_thread(None)

    def _held_of_chunks(self, box: Sequence[int] | None) -> int:
        if not any(self.in_flight):
            return self.threads * self._per_thread(box) + (self.threads - 1) * self.needs(box).kept_verifying
        read, write, stored = (
            prod(map(min, self.shape, lengths)) for lengths in (self.read, self.write, self.stops or self.read)
        )
        whole = max(1, self.per_element * prod(self.shape))
        return self.threads * self.long_tables + InFlight(*(min(at_once, whole) for at_once in self.in_flight)).held(
            self.source_itemsize * read,
            self.itemsize * write,
            self.source_itemsize * min(stored, stored if box is None else prod(box)),
            self.threads,
            verified=self.verified,
        )

    def _per_thread(self, box: Sequence[int] | None) -> int:
        if self.beside is None:
            return self.long_tables + self.needs(box).held()
        return self.long_tables + self.needs(box).held(self.beside.kept, self.beside.kept_encoding)

    def needs(self, box: Sequence[int] | None) -> Needs:
        """Return what a thread needs for a box; ``None`` for one of which chunks are never one piece."""
        read, write = (tuple(map(min, self.shape, lengths)) for lengths in (self.read, self.write))
        cut = self._is_cut(self.write)
        return needs_of_thread(
            self.source_itemsize * prod(self.read),
            self.itemsize * prod(self.write),
            verified=self.verified,
            decoded=box is None or not is_one_piece(read, box) or self._is_cut(self.read),
            gathered=box is None or not is_one_piece(write, box) or cut,
            encoded=self.encoded,
            cut=cut,
        )

    def _is_cut(self, lengths: Shape) -> bool:
        """Return whether the end of the array cuts chunks of these lengths."""
        return any(n % length for n, length in zip(self.shape, lengths, strict=True) if length)


def innermost(metadata: ArrayMetadata) -> BoundChain:
    """Return the codec chain of the chunks that are encoded as one: of inner chunks, where there are shards."""
    fill = metadata.data_type.default_fill() if metadata.fill_value is None else metadata.fill_value
    shape = longest_chunks(metadata.chunk_grid.axes(metadata.shape))
    chain = BoundChain(metadata.codecs, ChunkSpec(shape, metadata.data_type, fill))
    while chain.shard is not None and not chain.after:
        chain = chain.shard.inner
    return chain


def is_plain(chain: BoundChain) -> bool:
    """Return whether encoded chunks are their elements, as they are in memory."""
    spec = chain.middle_spec
    return (
        isinstance(chain.middle, BytesCodec)
        and not chain.before
        and not chain.after
        and spec.nbytes is not None
        and chain.middle.stored_dtype(spec) == spec.dtype
    )


def with_codecs(sizes: Sizes, target: ArrayMetadata, source: ArrayMetadata | None) -> Sizes:
    """Return the sizes with what codecs need in each thread. `source`: ``None`` where that is not known."""
    chains = [innermost(target)] if source is None else [innermost(target), innermost(source)]
    nbytes = chains[0].spec.nbytes or prod(chains[0].spec.shape) * sizes.itemsize
    encoded, after = (source is None or not is_plain(chains[-1]), not is_plain(chains[0])), chains[0].after
    return replace(sizes, encoded=encoded, tables=table_nbytes(after, nbytes))


def longest_chunks(axes: Sequence[Axis]) -> Shape:
    """Return the greatest length of a chunk along each axis."""
    return tuple(
        max(1, axis.uniform or max((axis.size(index) for index in range(axis.nchunks)), default=1)) for axis in axes
    )


def choose_box(sizes: Sizes, memory: int) -> Tiling:
    """Choose the boxes for tasks of at most `memory` bytes. Raises `BaseZarrError` where one stored chunk is too much."""
    shape = sizes.shape
    box = list(sizes.smallest)
    if (least := sizes.least) > memory:
        needed = least if least <= WITH_OVERHEAD * sizes.overhead else least + sizes.overhead
        hint = f"Allow at least {-(-needed // 10**6)} MB, or choose smaller chunks or shards"
        raise BaseZarrError(
            "a task needs more memory than it may use",
            expected=f"at most {memory} bytes",
            got=f"{least} bytes",
            hint=hint,
        )
    while (grown := _best(sizes, box, memory)) is not None:
        box = grown
    for axis in reversed(range(len(box))):
        while prod(box) * sizes.itemsize < SMALL_BOX and box[axis] < shape[axis]:
            wider = [*box[:axis], min(shape[axis], 2 * box[axis]), *box[axis + 1 :]]
            if sizes.peak(wider) > memory:
                break
            box = wider
    return tiled(sizes.axes, _balanced(sizes, box))


class Sweep(NamedTuple):
    """How a task goes over its box."""

    axis: int
    band: int
    """The length of a band: whole stored values of the target."""
    held: int
    """The most positions along the axis that are read, and not written yet."""
    stop: int
    """Reading stops at multiples of this, and at the end of the box."""


def sweep_of(sizes: Sizes, box: Sequence[int]) -> Sweep | None:
    """Choose how tasks go over boxes of these lengths, the longest: along the axis on which they hold least.

    ``None`` where that is about the whole box.
    """
    if sizes.stops is None or 0 in sizes.shape:
        return None
    best, least = None, 0.75 * prod(box)
    nbytes = max(BAND, 4 * sizes.threads * sizes.source_itemsize * prod(map(min, sizes.shape, sizes.read)))
    for axis, (length, read) in enumerate(zip(box, sizes.stops, strict=True)):
        chunk, row = sizes.axes[axis].uniform, prod(box) // length
        if not chunk:
            continue
        least_band, common = -(-nbytes // (row * sizes.source_itemsize * chunk)) * chunk, lcm(chunk, read)
        bands = [band for band in (least_band, -(-least_band // common) * common) if band < length]
        if not bands:
            continue
        held, band = min((_most_held(sizes.shape[axis], length, band, read), band) for band in bands)
        if row * held < least:
            best, least = Sweep(axis, band, held, read), row * held
    return best


def _most_held(n: int, length: int, band: int, read: int) -> int:
    """Return the most positions that a band needs of an axis of `n`, in boxes of `length`: up to a multiple of `read`."""
    if n // band > _COUNTED:
        return band + read - gcd(band, 0 if length >= n else length, read)
    boxes = ((low, min(n, low + length)) for low in range(0, n, length))
    return max(
        min(high, -(-min(high, at + band) // read) * read) - at for low, high in boxes for at in range(low, high, band)
    )


def _balanced(sizes: Sizes, box: list[int]) -> list[int]:
    """Shorten a box to about equal lengths along each axis where that reads no more: tasks take as long, and hold less."""
    lengths = []
    for axis, most, read in zip(sizes.axes, box, sizes.read, strict=True):
        length, chunk = most, axis.uniform
        if chunk and most < axis.length:
            length = max(chunk, most // chunk * chunk)
            equal = -(-axis.nchunks // -(-axis.length // length)) * chunk
            if reads_along(axis.length, equal, read) <= reads_along(axis.length, length, read):
                length = equal
        lengths.append(length)
    return lengths


def _best(sizes: Sizes, box: list[int], memory: int) -> list[int] | None:
    """Return the longer box whose amplification falls most per byte; ``None`` when none falls, or fits."""
    best, gain = None, 1e-9
    elements = prod(box) * sizes.per_element
    room = (memory - sizes.peak(box) + elements) // max(1, elements)
    for axis, (n, length, chunk, read) in enumerate(
        zip(sizes.shape, box, longest_chunks(sizes.axes), sizes.read, strict=True)
    ):
        common = lcm(chunk, max(1, read))
        for longer in {min(n, size) for size in (length + chunk, (length // common + 1) * common, length * room, n)}:
            if longer <= length:
                continue
            grown = [*box[:axis], longer, *box[axis + 1 :]]
            if sizes.peak(grown) > memory:
                continue
            fall = log(reads_along(n, length, read) / reads_along(n, longer, read)) / log(longer / length)
            if fall > gain:
                best, gain = grown, fall
    return best


def reads_along(length: int, cut: Cut, read: int) -> int:
    """Count the chunks of length `read` that are read along one axis: once for every interval that touches them.

    >>> reads_along(12, 4, 3), reads_along(12, (4, 12), 3), reads_along(12, 6, 3)
    (6, 5, 4)
    """
    read = max(1, read)
    whole = -(-length // read)
    if isinstance(cut, int):
        return whole + (length - 1) // cut - (length - 1) // lcm(cut, read) if length else 0
    return whole + sum(end % read != 0 for end in cut[:-1])


def chunks_read(tiling: Tiling, read: Shape) -> int:
    """Count the chunks of the source that all boxes read."""
    return prod(reads_along(n, cut, size) for n, cut, size in zip(tiling.shape, tiling.cuts, read, strict=True))
