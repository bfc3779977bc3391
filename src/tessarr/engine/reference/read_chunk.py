"""How one chunk's part of a selection is read: as a generator that asks for bytes and is sent them.

The generators do no I/O and know no thread or event loop. They yield a `Fetch`, are sent the list of buffers (or ``None``
for a missing key), decode, and write into the output. What drives them decides how to wait: one after another on this
thread, many in batched waves, or awaited (`tessarr.engine.reference.engine`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.codecs.chain import BoundChain
from tessarr.codecs.sharding import MISSING, ShardIndex, ShardLayout
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.reference.shard_indexes import KnownIndex
from tessarr.engine.reference.transpose import inward
from tessarr.errors import BaseZarrError, ChunkNotFoundError, ShardIndexError
from tessarr.grids.regular import RegularAxis
from tessarr.indexing.plan import Part, plan
from tessarr.indexing.selection import Outer, Selection
from tessarr.stores.base import Fetch, Version
from tessarr.types import Buffer, ByteRange

Answer: TypeAlias = "list[Buffer] | None"
PartReading: TypeAlias = Generator[Fetch, Answer, None]
Target = npt.NDArray[Any]
_ROUNDS = 5
"""How often a shard that keeps changing is read anew by parts."""


class Found(list[Buffer]):
    """An answer of a remote store, and the version of the value it is of."""

    def __init__(self, parts: Sequence[Buffer], version: Version | None) -> None:
        super().__init__(parts)
        self.version = version


class _ShardChangedError(Exception):
    """The shard is not the one whose index is at hand."""


class _Place(NamedTuple):
    """Where a shard is, and what must still be there when it is read, as its place was found by that."""

    key: str
    within: ByteRange | None = None
    """The range of the value that is the shard, if it is nested in another; else the value is the shard."""
    known: KnownIndex | None = None
    """The index that led there, where its version is known."""
    guards: tuple[tuple[ByteRange, bytes], ...] = ()
    """The indices that led there, where the version is not known and the store is near: asked for again, with the data."""

    @property
    def size(self) -> int | None:
        """Bytes of a nested shard; ``None`` for one that is the value, which is not known."""
        return None if self.within is None or self.within.stop is None else self.within.stop - self.within.start


def read_part(bound: BoundArray, part: Part, out: Target, *, small: int = 0) -> PartReading:
    """Read `part` of a selection into its place in `out` (the full-rank result of the whole selection).

    A shard of at most `small` decoded bytes is fetched whole, instead of its index first and what is wanted then.
    """
    shape = bound.chunk_shape(part.coords)
    chain = bound.chain(shape)
    key = bound.key(part.coords)
    try:
        if chain.partial:
            for _ in range(_ROUNDS):
                with suppress(_ShardChangedError):
                    yield from _read_shard(_Place(key), chain, part, out, bound, small=small)
                    return
                if bound.indexes is not None:
                    bound.indexes.forget(key)
            # Writers were always faster: what is fetched at once is of one shard.
            yield from _read_shard(_Place(key), chain, part, out, bound, whole=True)
            return
        found = yield Fetch(key)
        if found is None:
            _fill(bound, part, out)
        elif part.covers and (target := _view(out, part.out_sel)) is not None and target.shape == shape:
            if chain.direct:
                chain.decode_into(found[0], target)
            else:
                target[...] = chain.decode(found[0])
        else:
            out[part.out_sel] = chain.decode(found[0])[part.local.index]
    except BaseZarrError as error:
        error.at(store=bound.store.url, path="/" + bound.path, chunk=part.coords, key=key)
        raise


def _fill(bound: BoundArray, part: Part, out: Target) -> None:
    if not bound.options.read_missing_chunks:
        raise ChunkNotFoundError("a chunk is missing", hint="Set array.read_missing_chunks to read it as fill value")
    out[part.out_sel] = bound.fill


def _view(out: Target, out_sel: Any) -> Target | None:
    """The part of `out` as a view, or ``None`` when index arrays make that impossible."""
    dims = out_sel if isinstance(out_sel, tuple) else (out_sel,)
    return out[(*dims, ...)] if all(isinstance(d, slice) for d in dims) else None


def _read_shard(
    at: _Place, chain: BoundChain, part: Part, out: Target, bound: BoundArray, *, small: int = 0, whole: bool = False
) -> PartReading:
    """Read `part` of the shard `at` a place: by parts, or `whole`, as one of at most `small` decoded bytes is."""
    layout = chain.shard
    assert layout is not None
    selection, target = _before_sharding(chain, part, out)
    inner_axes = [RegularAxis(n, m) for n, m in zip(layout.spec.shape, layout.codec.chunk_shape, strict=True)]
    parts = list(plan(selection, inner_axes))
    whole = whole or part.covers or 2 * len(parts) >= prod(layout.grid)
    known = None if whole else _known_index(bound, at, parts)
    whole = whole or (known is None and 0 < (chain.spec.nbytes or 0) <= small)
    found: Answer = []
    if known is None:
        found = yield from _ask(at, None if whole else (layout.index_range,))
    if found is None:
        _fill(bound, part, out)
        return
    if whole:
        encoded = layout.split(found[0], (inner.coords for inner in parts))
        placed: Sequence[tuple[Part, Buffer | None]] = [(inner, encoded.get(inner.coords)) for inner in parts]
    else:
        index = known.entries if known is not None else layout.parse_index(found[0])
        known = known or _remember(bound, at, index, found)
        if known is not None:
            at = at._replace(known=known)
        elif not bound.store.is_remote:
            at = at._replace(guards=(*at.guards, (_shift(at.within, layout.index_range), bytes(found[0]))))
        entries = [(inner, layout.entry(index, inner.coords, at.size)) for inner in parts]
        if layout.inner.partial:
            yield from _read_nested(at, layout, entries, target, bound)
            _scatter(target, part, out, chain)
            return
        placed = yield from _read_inner(at, layout, entries, bound)
    if len(placed) > 1:
        for_each(lambda item: _place(layout, *item, target, bound.fill), placed)
    else:
        for inner, data in placed:
            _place(layout, inner, data, target, bound.fill)
    _scatter(target, part, out, chain)


def _ask(at: _Place, wanted: Sequence[ByteRange] | None) -> Generator[Fetch, Answer, Answer]:
    """Ranges of the shard `at` a place (``None``: all of it). Raises `_ShardChangedError` if it is not there any more."""
    if wanted is None and at.within is None:
        ranges = None
    else:
        ranges = tuple(_shift(at.within, item) for item in wanted or (ByteRange(0),))
        ranges += tuple(guard for guard, _ in at.guards)
    answer = yield Fetch(at.key, ranges)
    _same_version(answer, at.known)
    if at.guards:
        guarded = [] if answer is None else answer[-len(at.guards) :]
        if [bytes(now) for now in guarded] != [then for _, then in at.guards]:
            raise _ShardChangedError
    return answer


def _read_inner(
    at: _Place, layout: ShardLayout, entries: list[tuple[Part, ByteRange | None]], bound: BoundArray
) -> Generator[Fetch, Answer, list[tuple[Part, Buffer | None]]]:
    """The bytes of inner chunks by their `entries` of the index; ``None`` for one that is not stored."""
    wanted = [entry for _, entry in entries if entry is not None]
    if not wanted:
        return [(inner, None) for inner, _ in entries]
    last = layout.last_byte(wanted) if at.within is None and not bound.store.is_remote else None
    answer = yield from _ask(at, wanted if last is None else [*wanted, last])
    pieces = iter(answer or ())
    found = [(inner, None if entry is None else _exactly(next(pieces, b""), entry)) for inner, entry in entries]
    if last is not None:
        _exactly(next(pieces, b""), last)
    return found


def _known_index(bound: BoundArray, at: _Place, inners: Sequence[Part]) -> KnownIndex | None:
    """The index from an earlier read, if some of `inners` are stored by it: their data will tell whether it still holds."""
    known = None if bound.indexes is None else bound.indexes.get(at.key, at.within)
    if known is None or (at.known is not None and at.known.version != known.version):
        return None
    return known if any(known.entries[inner.coords][0] != MISSING for inner in inners) else None


def _remember(bound: BoundArray, at: _Place, index: ShardIndex, found: Answer) -> KnownIndex | None:
    """Keep an index that was just read, where the store told its version."""
    if bound.indexes is None or not isinstance(found, Found) or found.version is None:
        return None
    bound.indexes.keep(at.key, at.within, KnownIndex(index, found.version))
    return KnownIndex(index, found.version, fresh=True)


def _same_version(answer: Answer, known: KnownIndex | None) -> None:
    """Raise `_ShardChangedError` when `answer` is not of the version that the index `known` is of."""
    if known is None:
        return
    version = answer.version if isinstance(answer, Found) else None
    # Without a version (a range past the end of what is there now) only an index of an earlier read is in doubt.
    if answer is None or (version != known.version and not (version is None and known.fresh)):
        raise _ShardChangedError


def _read_nested(
    at: _Place, layout: ShardLayout, entries: list[tuple[Part, ByteRange | None]], target: Target, bound: BoundArray
) -> PartReading:
    for inner, entry in entries:
        if entry is None:
            target[inner.out_sel] = bound.fill
        else:
            there = at._replace(within=_shift(at.within, entry))
            yield from _read_shard(there, layout.inner, inner, target, bound)


def _shift(within: ByteRange | None, wanted: ByteRange) -> ByteRange:
    """`wanted`, which is relative to the range `within`, relative to the whole value."""
    if within is None:
        return wanted
    assert within.stop is not None
    start, stop = wanted.bounds(within.stop - within.start)
    return ByteRange(within.start + start, within.start + stop)


def _exactly(piece: Buffer, entry: ByteRange) -> Buffer:
    assert entry.stop is not None
    if memoryview(piece).nbytes != entry.stop - entry.start:
        raise ShardIndexError(
            "a shard ends before an inner chunk that its index promises",
            codec="sharding_indexed",
            expected=f"{entry.stop - entry.start} bytes at offset {entry.start}",
            got=f"{memoryview(piece).nbytes} bytes",
        )
    return piece


def _before_sharding(chain: BoundChain, part: Part, out: Target) -> tuple[Selection, Target]:
    """The selection in the axes that the sharding codec sees, and an array in those axes to read it into.

    The array is a view of `out`, or a temporary one when index arrays stand in the way (see `_scatter`).
    """
    selection = part.local
    view = _view(out, part.out_sel)
    target = np.empty(selection.shape, out.dtype) if view is None else view
    return inward(chain, selection, target)


def _scatter(target: Target, part: Part, out: Target, chain: BoundChain) -> None:
    """Move a temporary array of `_before_sharding` to its place; nothing to do for a view."""
    if _view(out, part.out_sel) is not None:
        return
    if isinstance(part.local, Outer):
        for codec, spec in reversed(chain.before):
            target = codec.decode(target, spec)
    out[part.out_sel] = target


def _place(layout: ShardLayout, inner: Part, data: Buffer | None, target: Target, fill: npt.NDArray[Any]) -> None:
    """Decode one inner chunk (``None``: fill value) and put the part of it that was asked for into `target`."""
    if data is None:
        target[inner.out_sel] = fill
        return
    view = _view(target, inner.out_sel) if inner.covers else None
    if view is not None and view.shape == layout.codec.chunk_shape:
        layout.inner.decode_into(data, view)
    else:
        target[inner.out_sel] = layout.inner.decode(data)[inner.local.index]
