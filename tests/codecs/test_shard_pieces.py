"""Changing some inner chunks of a stored shard gives the shard that holds the others as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.bytes_to_bytes.gzip import GzipCodec
from tessarr.codecs.sharding import MISSING, ShardIndex, ShardingCodec, ShardLayout
from tessarr.common.segments import StoredBytes, join
from tessarr.dtypes.numeric import UInt8
from tessarr.errors import ShardIndexError
from tessarr.types import ByteRange, Coords

_COORDS = [(i, j) for i in range(3) for j in range(4)]
_COMPRESSED = (BytesCodec(), GzipCodec())
_BODIES = st.dictionaries(st.sampled_from(_COORDS), st.binary(min_size=1, max_size=9))
_CHANGES = st.dictionaries(st.sampled_from(_COORDS), st.none() | st.binary(min_size=1, max_size=9))


def _layout(location: Any = "end", order: str = "lexicographic", codecs: Any = _COMPRESSED) -> ShardLayout:
    spec = ChunkSpec((6, 8), UInt8(), UInt8().cast_fill(0))
    codec = ShardingCodec((2, 2), codecs, index_location=location, subchunk_write_order=order)
    return ShardLayout(codec.fit(spec), spec)


def _index(layout: ShardLayout, stored: StoredBytes) -> ShardIndex:
    index = layout.parse_index(stored.read(layout.index_range))
    layout.check(index, stored.nbytes)
    return index


def _stored(layout: ShardLayout, shard: bytes | None) -> dict[Coords, bytes]:
    return {} if shard is None else {coords: bytes(data) for coords, data in layout.split(shard).items()}


@given(
    _BODIES,
    st.lists(_CHANGES, max_size=4),
    st.sampled_from(["start", "end"]),
    st.sampled_from(["morton", "lexicographic"]),
)
def test_a_changed_shard_holds_the_new_inner_chunks_and_all_others(
    bodies: dict[Coords, bytes], rounds: list[dict[Coords, bytes | None]], location: str, order: str
) -> None:
    layout = _layout(location, order)
    pieces = layout.pack(None, bodies)
    shard = None if pieces is None else join(pieces, None)
    assert _stored(layout, shard) == bodies
    for changes in rounds:
        old = None if shard is None else StoredBytes(shard)
        pieces = layout.pack(None if old is None else _index(layout, old), changes)
        shard = None if pieces is None else join(pieces, old)
        bodies = {coords: data for coords, data in {**bodies, **changes}.items() if data is not None}
        assert _stored(layout, shard) == bodies
        if shard is not None:
            assert len(shard) == sum(map(len, bodies.values())) + layout.index_nbytes


def test_what_is_not_touched_is_kept_in_as_few_ranges_as_can_be_and_in_order() -> None:
    layout = _layout()
    shard = join(layout.pack(None, {coords: bytes([n]) * 2 for n, coords in enumerate(_COORDS)}) or (), None)
    pieces = layout.pack(_index(layout, StoredBytes(shard)), {(1, 0): b"new"})
    assert pieces is not None
    assert pieces[:3] == [ByteRange(0, 8), b"new", ByteRange(10, 24)]
    assert len(pieces) == 4


def test_inner_chunks_that_share_bytes_or_leave_gaps_are_kept() -> None:
    layout = _layout()
    entries = np.full((3, 4, 2), MISSING, np.uint64)
    entries[0, 0], entries[0, 1], entries[2, 3] = (0, 4), (2, 4), (8, 1)
    body = b"abcdefghi"
    shard = body + bytes(memoryview(layout.index_chain.encode(entries)))
    old = StoredBytes(shard)
    new = join(layout.pack(_index(layout, old), {(1, 1): b"X"}) or (), old)
    assert _stored(layout, new) == {(0, 0): b"abcd", (0, 1): b"cdef", (2, 3): b"i", (1, 1): b"X"}


@pytest.mark.parametrize(
    "entry",
    [(0, 0), (MISSING, 3), (3, MISSING), (8, 3), (2**63, 1), (2**64 - 2, 2), (11, 1), (0, 2**64 - 2)],
)
@pytest.mark.parametrize("location", ["start", "end"])
def test_an_impossible_entry_anywhere_is_an_error_when_a_shard_is_changed(
    entry: tuple[int, int], location: Any
) -> None:
    layout = _layout(location)
    entries = np.full((3, 4, 2), MISSING, np.uint64)
    entries[2, 2] = np.array(entry, np.uint64)
    if location == "start" and entry[0] < 2**63:
        entries[2, 2, 0] += np.uint64(layout.index_nbytes)
    index = bytes(memoryview(layout.index_chain.encode(entries)))
    shard = index + b"0123456789" if location == "start" else b"0123456789" + index
    with pytest.raises(ShardIndexError, match=r"\(2, 2\) is invalid"):
        _index(layout, StoredBytes(shard))


def test_inner_chunks_of_a_known_size_must_have_it() -> None:
    layout = _layout(codecs=(BytesCodec(),))
    for nbytes, fine in ((3, False), (4, True), (5, False)):
        entries = np.full((3, 4, 2), MISSING, np.uint64)
        entries[0, 1] = 0, nbytes
        shard = b"012345" + bytes(memoryview(layout.index_chain.encode(entries)))
        if fine:
            _index(layout, StoredBytes(shard))
        else:
            with pytest.raises(ShardIndexError, match=r"\(0, 1\) is invalid"):
                _index(layout, StoredBytes(shard))
