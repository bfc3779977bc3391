"""How one chunk's part of a selection is read: as a generator that asks for bytes and is sent them.

The generators do no I/O and know no thread or event loop. They yield a `Fetch`, are sent the list of buffers (or ``None``
for a missing key), decode, and write into the output. What drives them decides how to wait: one after another on this
thread, many in batched waves, or awaited (`tessarr.engine.reference`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.codecs.chain import BoundChain
from tessarr.codecs.sharding import MISSING, ShardIndex, ShardLayout
from tessarr.engine.bound import BoundArray
from tessarr.engine.indexes import KnownIndex
from tessarr.engine.inward import inward
from tessarr.engine.pool import for_each
from tessarr.errors import BaseZarrError, ChunkNotFoundError, ShardIndexError, StoreError
from tessarr.grids.regular import RegularAxis
from tessarr.indexing.plan import Part, plan
from tessarr.indexing.selection import Outer, Selection
from tessarr.stores.base import Fetch, Version
from tessarr.types import Buffer, ByteRange

Answer: TypeAlias = "list[Buffer] | None"
PartReading: TypeAlias = Generator[Fetch, Answer, None]
Target = npt.NDArray[Any]
_ROUNDS = 5


class Found(list[Buffer]):
    """An answer of a remote store, and the version of the value it is of."""

    def __init__(self, parts: Sequence[Buffer], version: Version | None) -> None:
        super().__init__(parts)
        self.version = version


class _ShardChangedError(Exception):
    """The shard is not the one whose index is at hand."""


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
                    yield from _read_shard(key, None, None, chain, part, out, bound, small)
                    return
                if bound.indexes is not None:
                    bound.indexes.forget(key)
            raise StoreError("the shard changed while it was being read", got=f"{_ROUNDS} times")
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
    key: str,
    within: ByteRange | None,
    outer: KnownIndex | None,
    chain: BoundChain,
    part: Part,
    out: Target,
    bound: BoundArray,
    small: int = 0,
) -> PartReading:
    """Read `part` of a shard, which is the whole value of `key` or, nested in the shard of `outer`, the range `within`."""
    layout = chain.shard
    assert layout is not None
    selection, target = _before_sharding(chain, part, out)
    inner_axes = [RegularAxis(n, m) for n, m in zip(layout.spec.shape, layout.codec.chunk_shape, strict=True)]
    parts = list(plan(selection, inner_axes))
    whole = part.covers or 2 * len(parts) >= prod(layout.grid)
    known = None if whole else _known_index(bound, key, within, outer, parts)
    whole = whole or (known is None and 0 < (chain.spec.nbytes or 0) <= small)
    found: Answer = []
    if known is None:
        found = yield Fetch(key, _ranges(within, None if whole else layout.index_range))
        _same_version(found, outer)
    if found is None:
        _fill(bound, part, out)
        return
    if whole:
        encoded = layout.split(found[0], (inner.coords for inner in parts))
        placed: Sequence[tuple[Part, Buffer | None]] = [(inner, encoded.get(inner.coords)) for inner in parts]
    else:
        index = known.entries if known is not None else layout.parse_index(found[0])
        known = known or _remember(bound, key, within, index, found)
        size = None if within is None or within.stop is None else within.stop - within.start
        entries = [(inner, layout.entry(index, inner.coords, size)) for inner in parts]
        if layout.inner.partial:
            yield from _read_nested(key, within, known, layout, entries, target, bound)
            _scatter(target, part, out, chain)
            return
        wanted = [entry for _, entry in entries if entry is not None]
        last = layout.last_byte(wanted) if size is None and wanted and not bound.store.is_remote else None
        wanted += [] if last is None else [last]
        # A place that is near is asked for the index again, with the data: if it is another, so is the shard.
        again = (_ranges(within, layout.index_range) or ()) if wanted and not (known or bound.store.is_remote) else ()
        answer: Answer = None
        if wanted:
            answer = yield Fetch(key, (*(_shift(within, entry) for entry in wanted), *again))
            _same_version(answer, known)
        if again and (answer is None or bytes(answer[-1]) != bytes(found[0])):
            raise _ShardChangedError
        pieces = iter(answer or ())
        placed = [(inner, None if entry is None else _exactly(next(pieces, b""), entry)) for inner, entry in entries]
        if last is not None:
            _exactly(next(pieces, b""), last)
    if len(placed) > 1:
        for_each(lambda item: _place(layout, *item, target, bound.fill), placed)
    else:
        for inner, data in placed:
            _place(layout, inner, data, target, bound.fill)
    _scatter(target, part, out, chain)


def _known_index(
    bound: BoundArray, key: str, within: ByteRange | None, outer: KnownIndex | None, inners: Sequence[Part]
) -> KnownIndex | None:
    """The index from an earlier read, if some of `inners` are stored by it: their data will tell whether it still holds."""
    known = None if bound.indexes is None else bound.indexes.get(key, within)
    if known is None or (outer is not None and outer.version != known.version):
        return None
    return known if any(known.entries[inner.coords][0] != MISSING for inner in inners) else None


def _remember(
    bound: BoundArray, key: str, within: ByteRange | None, index: ShardIndex, found: Answer
) -> KnownIndex | None:
    """Keep an index that was just read, where the store told its version."""
    if bound.indexes is None or not isinstance(found, Found) or found.version is None:
        return None
    bound.indexes.keep(key, within, KnownIndex(index, found.version))
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
    key: str,
    within: ByteRange | None,
    known: KnownIndex | None,
    layout: ShardLayout,
    entries: list[tuple[Part, ByteRange | None]],
    target: Target,
    bound: BoundArray,
) -> PartReading:
    for inner, entry in entries:
        if entry is None:
            target[inner.out_sel] = bound.fill
        else:
            yield from _read_shard(key, _shift(within, entry), known, layout.inner, inner, target, bound)


def _ranges(within: ByteRange | None, wanted: ByteRange | None) -> tuple[ByteRange, ...] | None:
    if wanted is None:
        return None if within is None else (within,)
    return (_shift(within, wanted),)


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
