"""Where a shard has its index and its inner chunks, which entries are errors, and in which order inner chunks are packed."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.bytes_to_bytes.blosc import BloscCodec
from tessarr.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from tessarr.codecs.bytes_to_bytes.gzip import GzipCodec
from tessarr.codecs.sharding import MISSING, ShardingCodec, ShardingCodecIndexLocation, ShardLayout
from tessarr.common.segments import join
from tessarr.dtypes.numeric import Int16, UInt8
from tessarr.errors import CodecError, MetadataValidationError, ShardIndexError, ZarrDeprecationWarning
from tessarr.types import ByteRange, Coords

PLAIN: Any = [{"name": "bytes", "configuration": {"endian": "little"}}]
DOCUMENT: dict[str, Any] = {"chunk_shape": [2, 2], "codecs": PLAIN, "index_codecs": PLAIN}


def spec(shape: tuple[int, ...] = (4, 4), fill: int = 0) -> ChunkSpec:
    return ChunkSpec(shape, UInt8(), UInt8().cast_fill(fill))


def layout(location: Any = "end", *, order: str = "lexicographic", codecs: Any = PLAIN, fill: int = 0) -> ShardLayout:
    codec = ShardingCodec((2, 2), codecs, (BytesCodec("little"),), location, subchunk_write_order=order)
    return ShardLayout(codec.fit(spec(fill=fill)), spec(fill=fill))


def index_of(*entries: tuple[Coords, tuple[int, int]]) -> Any:
    index = np.full((2, 2, 2), MISSING, np.uint64)
    for coords, entry in entries:
        index[coords] = np.array(entry, np.uint64)
    return index


# -- the codec -----------------------------------------------------------------------------------------------------------


def test_what_is_left_out_is_little_endian_a_crc32c_and_an_index_at_the_end() -> None:
    codec = ShardingCodec((3,))
    assert codec.codecs == (BytesCodec("little"),)
    assert codec.index_codecs == (BytesCodec("little"), Crc32cCodec())
    assert codec.index_location == "end"
    assert (codec.subchunk_write_order, codec.ignored, codec.name) == ("unordered", (), "sharding_indexed")
    assert codec.diagnostics == ()
    assert codec.is_foreign is False


@pytest.mark.parametrize("given", [(2, 3), [2, 3], np.array([2, 3]), (np.int64(2), 3)])
def test_lengths_are_ints(given: Any) -> None:
    codec = ShardingCodec(given)
    assert codec.chunk_shape == (2, 3)
    assert [type(n) for n in codec.chunk_shape] == [int, int]
    assert ShardingCodec(np.int64(4)).chunk_shape == (4,)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (2, -1)])
def test_the_dimension_of_an_impossible_length_is_named(shape: tuple[int, ...]) -> None:
    axis = next(number for number, length in enumerate(shape) if length < 1)
    with pytest.raises(ValueError, match=rf"Dimension {axis}: .* got {shape[axis]}"):
        ShardingCodec(shape)


def test_codecs_may_be_documents() -> None:
    codec = ShardingCodec((2,), ({"name": "gzip", "configuration": {"level": 1}},), tuple(PLAIN))  # type: ignore[arg-type]
    assert codec.codecs == (GzipCodec(1),)
    assert codec.index_codecs == (BytesCodec("little"),)


@pytest.mark.parametrize("location", ["start", "end", *ShardingCodecIndexLocation])
def test_locations(location: Any) -> None:
    assert ShardingCodec((2,), index_location=location).index_location == str(location)


class Location(Enum):
    """As another package enumerates locations: its members are no text."""

    first = "start"


def test_a_member_of_another_enumeration_is_taken_for_its_value_with_the_warning_of_zarr_python() -> None:
    own = ShardingCodecIndexLocation.start
    assert ShardingCodec((2,), index_location=own).index_location is own
    message = r"Passing an enum to ShardingCodec\(\.\.\., index_location=\.\.\.\)"
    with tessarr.config.set({"zarr_python.warnings": True}), pytest.warns(ZarrDeprecationWarning, match=message):
        codec = ShardingCodec((2,), index_location=Location.first)  # type: ignore[arg-type]
    assert codec.index_location == "start"
    assert codec.layout(spec((2,))).index_range.start == 0


def test_other_locations_and_orders_are_refused() -> None:
    with pytest.raises(ValueError, match="index_location must be one of 'start' and 'end', got 'middle'"):
        ShardingCodec((2,), index_location="middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"subchunk_write_order must be one of .* got 'random'"):
        ShardingCodec((2,), subchunk_write_order="random")
    for order in ("morton", "lexicographic", "colexicographic", "unordered"):
        assert ShardingCodec((2,), subchunk_write_order=order).subchunk_write_order == order


@pytest.mark.parametrize("location", ["start", "end"])
def test_a_document_comes_back(location: Any) -> None:
    document = {**DOCUMENT, "index_location": location}
    codec = ShardingCodec.from_json(document)
    assert (codec.chunk_shape, codec.index_location) == ((2, 2), location)
    assert codec.codecs == codec.index_codecs == (BytesCodec("little"),)
    assert codec.to_json() == {"name": "sharding_indexed", "configuration": document}
    assert ShardingCodec.from_json(DOCUMENT).index_location == "end"


def problems_of(document: Any) -> list[tuple[Any, str]]:
    with pytest.raises(MetadataValidationError) as caught:
        ShardingCodec.from_json(document)
    return sorted((problem.loc, problem.kind) for problem in caught.value.problems)


def test_each_problem_of_a_document_is_found_at_its_place() -> None:
    missing = sorted(((name,), "missing") for name in DOCUMENT)
    assert problems_of({}) == missing
    assert problems_of({**DOCUMENT, "extra": 1}) == [(("extra",), "unknown")]
    assert problems_of({**DOCUMENT, "index_location": "middle"}) == [(("index_location",), "value")]
    for shape in ([0], [True], [2.0], 4, "12", [2, -1]):
        assert problems_of({**DOCUMENT, "chunk_shape": shape}) == [(("chunk_shape",), "value")]
    for name in ("codecs", "index_codecs"):
        assert problems_of({**DOCUMENT, name: [{"name": "gzip", "configuration": {"level": 1}}]}) == [
            ((name,), "value")
        ]
        assert problems_of({**DOCUMENT, name: []}) == [((name,), "value")]
        found = problems_of({**DOCUMENT, name: [{"name": "there is none"}]})
        assert [loc[0] for loc, _ in found] == [name]


@pytest.mark.parametrize("name", ["codecs", "index_codecs"])
def test_codecs_that_need_not_be_understood_are_remembered(name: str) -> None:
    unknown: Any = {"name": "example.unknown", "must_understand": False}
    assert ShardingCodec.from_json({**DOCUMENT, name: [*PLAIN, unknown]}).ignored == ("example.unknown",)
    assert ShardingCodec.from_json(DOCUMENT).ignored == ()


def test_inner_codecs_are_fitted_to_inner_chunks() -> None:
    fitted = ShardingCodec((2, 2), index_location="start", subchunk_write_order="morton").fit(spec())
    assert fitted.chunk_shape == (2, 2)
    words = ChunkSpec((4, 4), Int16(), Int16().cast_fill(0))
    compressor = ShardingCodec((2, 2), (BytesCodec("little"), BloscCodec())).fit(words).codecs[1]
    assert isinstance(compressor, BloscCodec)
    assert compressor.typesize == 2
    assert (fitted.index_location, fitted.subchunk_write_order) == ("start", "morton")
    assert fitted.layout(spec()).inner.encoded_size == 4
    assert fitted.encoded_size(spec()) is None
    values = np.arange(16, dtype="u1").reshape(4, 4)
    np.testing.assert_array_equal(fitted.decode(fitted.encode(values, spec()), spec()), values)


# -- the layout ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (4,), (4, 4, 4)])
def test_a_shard_that_its_inner_chunks_do_not_divide_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(CodecError, match="does not divide the shard shape"):
        ShardingCodec((2, 2)).layout(spec(shape))


def test_an_index_of_no_fixed_size_is_refused() -> None:
    with pytest.raises(CodecError, match="index_codecs must have a fixed encoded size"):
        ShardingCodec((2, 2), index_codecs=(BytesCodec("little"), GzipCodec())).layout(spec())


def test_the_grid_the_boxes_and_the_index_of_a_shard() -> None:
    one = ShardingCodec((1, 2), index_location="start").layout(spec((3, 4)))
    assert one.grid == (3, 2)
    assert one.index_nbytes == 3 * 2 * 16 + 4
    assert one.index_range == ByteRange(0, 100)
    assert ShardingCodec((1, 2)).layout(spec((3, 4))).index_range == ByteRange(-100)
    assert [*one.coords()] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert one.box((2, 1)) == (slice(2, 3), slice(2, 4), ...)
    assert [one._number(coords) for coords in one.coords()] == [0, 1, 2, 3, 4, 5]


def test_an_index_of_another_size_or_with_a_wrong_checksum_is_an_error() -> None:
    one = ShardingCodec((2, 2)).layout(spec())
    data = bytes(memoryview(one.index_chain.encode(index_of(((0, 1), (5, 4))))))
    found = one.parse_index(data)
    assert found.dtype == np.uint64
    assert found.tolist() == index_of(((0, 1), (5, 4))).tolist()
    for wrong in (data[:-1], data + b"\0", b""):
        with pytest.raises(ShardIndexError, match="shorter than its index"):
            one.parse_index(wrong)
    with pytest.raises(ShardIndexError, match="cannot be decoded"):
        one.parse_index(data[:-1] + bytes([data[-1] ^ 1]))


ENTRIES = [
    # location, entry, size of the shard (None: unknown), fine
    ("end", (0, 4), 68, True),
    ("end", (0, 4), 67, False),
    ("end", (0, 4), None, True),
    ("end", (0, 3), None, False),
    ("end", (0, 5), None, False),
    ("end", (6, 4), 74, True),
    ("end", (7, 4), 74, False),
    ("start", (64, 4), 68, True),
    ("start", (64, 4), 67, False),
    ("start", (63, 4), 68, False),
    ("start", (63, 4), None, False),
    ("start", (64, 4), None, True),
    ("end", (MISSING, 4), None, False),
    ("end", (0, MISSING), None, False),
    ("end", (2**63 - 5, 4), None, True),
    ("end", (2**63 - 4, 4), None, False),
]


@pytest.mark.parametrize(("location", "entry", "size", "fine"), ENTRIES)
def test_entries_are_within_the_shard_and_beside_its_index(
    location: str, entry: tuple[int, int], size: int | None, fine: bool
) -> None:
    one, index = layout(location), index_of(((1, 0), entry))
    assert one.entry(index, (0, 0), size) is None
    if fine:
        assert one.entry(index, (1, 0), size) == ByteRange(entry[0], sum(entry))
    else:
        with pytest.raises(ShardIndexError, match=r"inner chunk \(1, 0\) is invalid"):
            one.entry(index, (1, 0), size)
    if size is not None and fine:
        one.check(index, size)
    elif size is not None:
        with pytest.raises(ShardIndexError, match=r"inner chunk \(1, 0\) is invalid"):
            one.check(index, size)


VALID = [(location, nbytes) for location in ("start", "end") for nbytes in (1, 4, 9)]


@pytest.mark.parametrize(("location", "nbytes"), VALID)
def test_an_invalid_entry_is_found_behind_one_that_is_as_long_as_it_may_be(location: str, nbytes: int) -> None:
    one = layout(location, codecs=PLAIN if nbytes == 4 else (BytesCodec(), GzipCodec()))
    begin = 64 if location == "start" else 0
    size = 64 + nbytes  # the shard ends where the index or the inner chunk does
    one.check(index_of(((0, 1), (begin, nbytes))), size)
    for wrong in ((begin + 1, nbytes), (begin, nbytes + 1), (0, 0)):
        index = index_of(((0, 1), (begin, nbytes)), ((1, 0), wrong))
        with pytest.raises(ShardIndexError, match=r"inner chunk \(1, 0\) is invalid"):
            one.check(index, size)


@pytest.mark.parametrize("nbytes", [1, 3, 9])
def test_inner_chunks_that_are_compressed_may_have_any_size_but_none(nbytes: int) -> None:
    one = layout(codecs=(BytesCodec(), GzipCodec()))
    assert one.entry(index_of(((0, 0), (2, nbytes))), (0, 0)) == ByteRange(2, 2 + nbytes)
    one.check(index_of(((0, 0), (2, nbytes))), 2 + nbytes + 64)
    for wrong, size in (((2, nbytes), 1 + nbytes + 64), ((2, 0), 100)):
        with pytest.raises(ShardIndexError, match="is invalid"):
            one.check(index_of(((0, 0), wrong)), size)
    with pytest.raises(ShardIndexError, match="is invalid"):
        one.entry(index_of(((0, 0), (2, 0))), (0, 0))


def test_the_last_byte_that_must_exist_is_behind_the_farthest_inner_chunk_and_the_index() -> None:
    entries = [ByteRange(70, 74), ByteRange(80, 90), ByteRange(75, 79)]
    assert layout("start").last_byte(entries) == ByteRange(89, 90)
    assert layout("end").last_byte(entries) == ByteRange(89 + 64, 90 + 64)


@pytest.mark.parametrize("location", ["start", "end"])
def test_a_shard_is_split_into_what_is_wanted(location: str) -> None:
    one = layout(location)
    chunks: dict[Coords, Any] = {(0, 1): b"abcd", (1, 1): b"efgh"}
    shard = join(one.pack(None, chunks) or (), None)
    assert {coords: bytes(data) for coords, data in one.split(shard).items()} == chunks
    assert {coords: bytes(data) for coords, data in one.split(shard, [(1, 1), (0, 0)]).items()} == {(1, 1): b"efgh"}
    assert [*one.split(shard, [])] == []
    index = bytearray(shard)
    last = one.index_range.bounds(len(shard))[0] + 3 * 16  # the entry of (1, 1)
    index[last : last + 8] = (len(shard) - 3).to_bytes(8, "little")
    assert {coords: bytes(data) for coords, data in one.split(index, [(0, 1)]).items()} == {(0, 1): b"abcd"}
    with pytest.raises(ShardIndexError, match=r"inner chunk \(1, 1\) is invalid"):
        one.split(index)
    for size in (0, 63):
        with pytest.raises(ShardIndexError, match="shorter than its index"):
            one.split(shard[:size])


def test_inner_chunks_that_stay_keep_their_order_whatever_their_sizes() -> None:
    one = layout(codecs=(BytesCodec(), GzipCodec()))
    index = index_of(((0, 0), (0, 9)), ((0, 1), (9, 5)), ((1, 0), (20, 7)))
    pieces = one.pack(index, {(1, 1): b"new"})
    assert pieces is not None
    assert pieces[:-1] == [ByteRange(0, 14), ByteRange(20, 27), b"new"]
    expected = index_of(((0, 0), (0, 9)), ((0, 1), (9, 5)), ((1, 0), (14, 7)), ((1, 1), (21, 3)))
    assert one.parse_index(pieces[-1]).tolist() == expected.tolist()  # type: ignore[arg-type]


ORDERS = {
    "lexicographic": [(0, 0), (0, 1), (1, 0), (1, 1)],
    "unordered": [(0, 0), (0, 1), (1, 0), (1, 1)],
    "colexicographic": [(0, 0), (1, 0), (0, 1), (1, 1)],
    "morton": [(0, 0), (1, 0), (0, 1), (1, 1)],
}


@pytest.mark.parametrize("order", ORDERS)
def test_new_inner_chunks_are_packed_in_the_order_of_the_codec(order: str) -> None:
    one = layout(order=order)
    chunks: dict[Coords, Any] = {
        coords: bytes([10 * coords[0] + coords[1]] * 4) for coords in reversed(ORDERS["lexicographic"])
    }
    pieces = one.pack(None, chunks)
    assert pieces is not None
    assert [bytes(piece) for piece in pieces[:-1]] == [chunks[coords] for coords in ORDERS[order]]  # type: ignore[arg-type]
    assert one.pack(None, {(0, 0): None}) is None
    assert one.pack(None, {}) is None


def test_the_order_of_morton_interleaves_the_bits_of_each_axis() -> None:
    codec = ShardingCodec((1, 1, 1), subchunk_write_order="morton")
    one = codec.layout(ChunkSpec((4, 2, 3), UInt8(), UInt8().cast_fill(0)))
    pieces = one.pack(None, {coords: bytes([16 * coords[0] + 4 * coords[1] + coords[2]]) for coords in one.coords()})
    assert pieces is not None
    order = [(piece[0] >> 4, piece[0] >> 2 & 3, piece[0] & 3) for piece in map(bytes, pieces[:-1])]  # type: ignore[arg-type]
    assert order[:9] == [
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 0),
        (1, 1, 0),
        (0, 0, 1),
        (1, 0, 1),
        (0, 1, 1),
        (1, 1, 1),
        (2, 0, 0),
    ]
    assert order[-1] == (3, 1, 2)
    assert len(order) == 24


# -- whole shards --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("fill", [0, 7])
def test_a_shard_is_encoded_without_what_is_fill_value(location: str, fill: int) -> None:
    one = layout(location, fill=fill)
    values = np.full((4, 4), fill, "u1")
    values[3, 0] = 1
    shard = one.encode(values)
    assert len(shard) == 4 + 64
    assert [*one.split(shard)] == [(1, 0)]
    np.testing.assert_array_equal(one.decode(shard), values)
    whole = one.encode(values, keep_empty=True)
    assert len(whole) == 16 + 64
    np.testing.assert_array_equal(one.decode(whole), values)
    empty = one.encode(np.full((4, 4), fill, "u1"))
    assert len(empty) == 64
    assert one.parse_index(empty).tolist() == index_of().tolist()
    np.testing.assert_array_equal(one.decode(empty), np.full((4, 4), fill, "u1"))
    assert type(shard) is type(empty) is bytes


def test_elements_and_their_byte_order_are_those_of_the_shard() -> None:
    kind = ChunkSpec((2, 4), Int16(), Int16().cast_fill(-1))
    codec = ShardingCodec((2, 2), (BytesCodec("big"),)).fit(kind)
    values = np.arange(8, dtype="i2").reshape(2, 4)
    shard = codec.encode(values, kind)
    assert bytes(shard)[:8] == values[:, :2].astype(">i2").tobytes()
    np.testing.assert_array_equal(codec.decode(shard, kind), values)
