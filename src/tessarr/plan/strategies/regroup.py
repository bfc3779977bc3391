"""Move encoded chunks between shards, or into and out of them, without decoding.

This needs the same chunks on both sides: inner chunks of a shard, or chunks of an array without shards; of one shape, encoded
by the same codecs, with one fill value. Then the bytes of a chunk are right wherever they are stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

from tessarr.codecs.base import Codec
from tessarr.codecs.sharding import ShardingCodec, ShardLayout
from tessarr.common.segments import Stored
from tessarr.core.array import Array
from tessarr.engine.jobs import Jobs
from tessarr.engine.processors import processors
from tessarr.errors import BaseZarrError
from tessarr.indexing.boxes import Box
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.strategies.strategy import READ_BACK
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.protocols import Remote, Splice
from tessarr.types import Buffer, ByteRange, Coords, Shape

_REQUESTS = 8
"""Values in flight to a remote store within a task."""


class _Chunks(NamedTuple):
    """The chunks of an array that are encoded one by one."""

    shape: Shape
    codecs: tuple[Codec, ...]


def _chunks(metadata: ArrayMetadata) -> _Chunks | None:
    """Return the chunks of an array; ``None`` where they cannot be moved alone."""
    shape, codecs = metadata.chunk_grid.chunk_shape, tuple(metadata.codecs)
    if shape is None or metadata.storage_transformers:
        return None
    if not any(isinstance(codec, ShardingCodec) for codec in codecs):
        return _Chunks(shape, codecs)
    sharding = codecs[0]
    return (
        _Chunks(sharding.chunk_shape, sharding.codecs)
        if len(codecs) == 1 and isinstance(sharding, ShardingCodec)
        else None
    )


def can_regroup(source: ArrayMetadata, target: ArrayMetadata) -> bool:
    """Return whether encoded chunks of `source` are chunks of `target`, too."""
    if source.fill_value is None or target.fill_value is None:
        return False
    same_fill = source.fill_value.tobytes() == target.fill_value.tobytes()
    chunks = _chunks(source)
    return (
        same_fill
        and source.shape == target.shape
        and source.dtype == target.dtype
        and source.dtype.kind not in "OT"
        and chunks is not None
        and chunks == _chunks(target)
    )


class Moved(NamedTuple):
    """What was moved."""

    nbytes: int
    """Encoded bytes."""
    digest: str
    """SHA-256 of the stored values; empty unless requested."""


def regroup(source: Array, target: Array, box: Box, *, verify: bool, digested: bool) -> Moved:
    """Write the stored values of `target` in a box of whole ones, from encoded chunks of `source`.

    Raises `BaseZarrError` where a value that is read back differs.
    """
    bound = target._bound
    spans = (
        range(axis.find(part.start), axis.find(part.stop - 1) + 1) for axis, part in zip(bound.axes, box, strict=True)
    )
    digest = hashlib.sha256() if digested else None
    nbytes = sum(_regroup_one(source, target, coords, verify=verify, digest=digest) for coords in product(*spans))
    return Moved(nbytes, "" if digest is None else digest.hexdigest())


def _regroup_one(source: Array, target: Array, coords: Coords, *, verify: bool, digest: hashlib._Hash | None) -> int:
    """Write one stored value; no other is held meanwhile. Returns its encoded bytes."""
    store, bound = target._bound.store, target._bound
    key, nbytes = bound.key(coords), 0
    pieces = _pieces(source, bound.chain(bound.chunk_shape(coords)).shard, coords)
    if not pieces:
        store.delete(key)  # what a stopped plan left there
        return 0
    if isinstance(store, Splice):
        store.splice(key, partial(_replaced, pieces))
    else:  # which would read the value that is replaced
        store.set(key, b"".join(map(byte_view, pieces)))
    if verify:
        _compare(store, key, pieces)
    for piece in pieces:
        nbytes += byte_view(piece).nbytes
        if digest is not None:
            digest.update(byte_view(piece))
    return nbytes


def _replaced(pieces: list[Buffer], _stored: Stored | None) -> list[Buffer]:
    return pieces


def _pieces(source: Array, layout: ShardLayout | None, coords: Coords) -> list[Buffer]:
    """Return the stored value at `coords` of the target in pieces; none where it is all fill value."""
    if layout is None:
        found = dict(_encoded(source, [coords]))
        return list(found.values())
    grid = [
        range(index * count, min((index + 1) * count, -(-n // length)))
        for index, count, length, n in zip(coords, layout.grid, layout.codec.chunk_shape, source.shape, strict=True)
    ]
    corner = [part.start for part in grid]
    found = {
        tuple(at - low for at, low in zip(chunk, corner, strict=True)): data
        for chunk, data in _encoded(source, list(product(*grid)))
    }
    return [piece for piece in layout.pack(None, found) or () if not isinstance(piece, tuple)]


def _encoded(source: Array, chunks: list[Coords]) -> Iterator[tuple[Coords, Buffer]]:
    """Yield the encoded chunks that are stored, in order of the values that hold them."""
    bound = source._bound
    values: dict[Coords, list[Coords]] = {}
    layout = bound.chain(bound.chunk_shape((0,) * len(bound.axes))).shard
    grid = (1,) * len(bound.axes) if layout is None else layout.grid
    for chunk in chunks:
        values.setdefault(tuple(at // count for at, count in zip(chunk, grid, strict=True)), []).append(chunk)

    def read(coords: Coords) -> list[tuple[Coords, Buffer]]:
        key = bound.key(coords)
        if layout is None:
            value = bound.store.get(key)
            return [] if value is None else [(coords, value)]
        return _of_shard(bound.store, key, layout, values[coords])

    with Jobs(_REQUESTS if isinstance(bound.store, Remote) else processors()) as jobs:
        for found in jobs.map(read, values):
            yield from found


def _of_shard(store: Store, key: str, layout: ShardLayout, chunks: list[Coords]) -> list[tuple[Coords, Buffer]]:
    """Return the encoded chunks that a shard holds: its index is read, then their ranges."""
    data = store.get(key, layout.index_range)
    if data is None:
        return []
    index = layout.parse_index(data)
    entries = [
        (chunk, entry)
        for chunk in chunks
        if (entry := layout.entry(index, tuple(at % count for at, count in zip(chunk, layout.grid, strict=True))))
        is not None
    ]
    read = store.get_ranges(key, [entry for _, entry in entries]) if entries else []
    if read is None:
        raise BaseZarrError(
            "a shard was removed while it was read", store=store.url, key=key, hint="Run the plan again"
        )
    return [(chunk, part) for (chunk, _), part in zip(entries, read, strict=True)]


def _compare(store: Store, key: str, pieces: list[Buffer]) -> None:
    """Raise `BaseZarrError` unless a value consists of `pieces`; it is read back in parts of about `READ_BACK` bytes."""
    batches, at, same = list(_batches(pieces)), 0, True
    for number, batch in enumerate(batches, 1):
        nbytes = sum(written.nbytes for written in batch)
        stop = None if number == len(batches) else at + nbytes  # the last part is all that is left
        stored = store.get(key, ByteRange(at, stop))
        view = memoryview(b"") if stored is None else byte_view(stored)
        same, within = same and view.nbytes == nbytes, 0
        for written in batch:
            same = same and view[within : within + written.nbytes] == written
            within += written.nbytes
        at += nbytes
    if not same:
        raise BaseZarrError("the value read back differs from the source", store=store.url, key=key)


def _batches(pieces: list[Buffer]) -> Iterator[list[memoryview]]:
    """Yield consecutive pieces, of at most `READ_BACK` bytes together; longer ones are cut."""
    some, nbytes = list[memoryview](), 0
    for piece in pieces:
        whole = byte_view(piece)
        for start in range(0, whole.nbytes, READ_BACK):
            part = whole[start : start + READ_BACK]
            if some and nbytes + part.nbytes > READ_BACK:
                yield some
                some, nbytes = [], 0
            some.append(part)
            nbytes += part.nbytes
    if some:
        yield some
