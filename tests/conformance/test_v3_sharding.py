"""Zarr v3: sharding_indexed, in shards written and parsed by hand."""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Mapping
from typing import Any

import google_crc32c
import numpy as np
import pytest

import tessarr
from tessarr.errors import BaseZarrError, MetadataValidationError, ShardIndexError, ZarrUserWarning
from tessarr.storage import LatencyStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.types import ByteRange
from tests.conformance.documents import (
    BIG,
    CRC,
    GZIP,
    LITTLE,
    Place,
    array_document,
    opened,
    sharding,
    store_of,
    stored_json,
    transpose,
)  # fmt: skip
from tests.narrow import array_of, calls

MISSING = 2**64 - 1
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
BLOSC = {
    "name": "blosc",
    "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 8, "blocksize": 0},
}
Entries = list[tuple[int, int]]


def crc(data: bytes) -> bytes:
    return int(google_crc32c.value(data)).to_bytes(4, "little")


def index_bytes(entries: Entries, checksum: bool = True) -> bytes:
    """The little-endian index of these (offset, size) pairs."""
    flat = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    return flat + (crc(flat) if checksum else b"")


def parse_index(data: bytes) -> Entries:
    """The pairs of an index with its checksum, which must be right."""
    assert data[-4:] == crc(data[:-4])
    return [struct.unpack_from("<QQ", data, at) for at in range(0, len(data) - 4, 16)]


def document(shape: Any = (4, 4), chunks: Any = (4, 4), inner: Any = (2, 2), **configuration: Any) -> dict[str, Any]:
    data_type = configuration.pop("data_type", "uint8")
    return array_document(shape, chunks, data_type, fill_value=0, codecs=[sharding(inner, ["bytes"], **configuration)])


VALUES = np.arange(1, 17, dtype="u1").reshape(4, 4)
BLOCKS = [VALUES[i : i + 2, j : j + 2].tobytes() for i in (0, 2) for j in (0, 2)]


def shard_of(blocks: Mapping[int, bytes], order: list[int], gap: bytes = b"") -> bytes:
    """A shard with the index at its end; `blocks` in physical `order`, `gap` before each."""
    body, entries = b"", [(MISSING, MISSING)] * 4
    for number in order:
        body += gap
        entries[number] = len(body), len(blocks[number])
        body += blocks[number]
    return body + index_bytes(entries)


@pytest.mark.spec("V3-SHARD-01")
@pytest.mark.parametrize("name", ["chunk_shape", "codecs", "index_codecs"])
def test_a_missing_member_is_named(name: str) -> None:
    codec = sharding([2, 2])
    codec["configuration"].pop(name)
    with pytest.raises(MetadataValidationError, match=name):
        opened(array_document((4, 4), codecs=[codec]))


@pytest.mark.spec("V3-SHARD-02", "V3-SHARD-03")
@pytest.mark.parametrize(
    "inner", [[2], [2, 2, 2], [], [0, 2], [-2, 2], [2.0, 2], ["2", 2], [True, 2], [3, 2], [8, 8], 2]
)
def test_the_inner_shape_divides_the_shard_on_every_axis(inner: Any) -> None:
    codec = sharding([2, 2])
    codec["configuration"]["chunk_shape"] = inner
    with pytest.raises(MetadataValidationError, match="chunk"):
        opened(array_document((4, 4), codecs=[codec]))
    with pytest.raises(BaseZarrError):
        tessarr.create(shape=(4, 4), chunks=(4, 4), dtype="i4", codecs=[codec], store={})


@pytest.mark.spec("V3-SHARD-03", "V3-SHARD-08")
def test_the_examples_of_inner_grids() -> None:
    for shard, inner, grid in (((64, 64), (32, 2), (2, 32)), ((128, 128), (32, 32), (4, 4))):
        z = opened(document(shard, shard, inner))
        layout = z._bound.chain(shard).shard
        assert layout.grid == grid
        assert layout.index_nbytes == 16 * grid[0] * grid[1] + 4
        assert (z.chunks, z.shards) == (inner, shard)
    with pytest.raises(MetadataValidationError, match="divide"):
        opened(document((64, 64), (64, 64), (30, 2)))


@pytest.mark.spec("V3-SHARD-04", "V3-SHARD-05")
@pytest.mark.parametrize("member", ["codecs", "index_codecs"])
@pytest.mark.parametrize(
    "codecs",
    [[], [CRC], [transpose(0, 1)], [LITTLE, LITTLE], [CRC, LITTLE], [LITTLE, transpose(0, 1)], None, "bytes",
     [{"name": "example.unknown"}], [LITTLE, CRC, LITTLE]],
    ids=json.dumps,
)  # fmt: skip
def test_inner_chains_have_one_array_to_bytes_codec_in_its_place(member: str, codecs: Any) -> None:
    codec = sharding([2, 2])
    codec["configuration"][member] = codecs
    with pytest.raises(MetadataValidationError, match=member):
        opened(array_document((4, 4), codecs=[codec]))


@pytest.mark.spec("V3-SHARD-05")
@pytest.mark.parametrize("codec", [GZIP, ZSTD, BLOSC], ids=lambda codec: codec["name"])
def test_the_index_cannot_be_compressed(codec: Any) -> None:
    with pytest.raises(MetadataValidationError, match="index_codecs"):
        opened(document(index_codecs=[LITTLE, codec]))
    codecs = [sharding([2, 2], [LITTLE], [LITTLE, codec])]
    with pytest.raises(BaseZarrError, match="index_codecs"):
        tessarr.create(shape=(4, 4), chunks=(4, 4), dtype="i4", codecs=codecs, store={})


@pytest.mark.spec("V3-SHARD-06", "V3-SHARD-07", "V3-SHARD-15")
def test_what_the_writer_chooses() -> None:
    store: dict[str, bytes] = {}
    tessarr.create_array(store, shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="i4", compressors=None)
    assert stored_json(store)["codecs"] == [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 2], "codecs": [LITTLE], "index_codecs": [LITTLE, CRC], "index_location": "end",
            },
        }
    ]  # fmt: skip
    assert stored_json(store)["chunk_grid"]["configuration"]["chunk_shape"] == [4, 4]
    for order in ("morton", "lexicographic", "colexicographic", "unordered"):
        ordered = {"shape": (4, 4), "subchunk_write_order": order}
        tessarr.create_array(
            store, shape=(8, 8), chunks=(2, 2), shards=ordered, dtype="i4", compressors=None, overwrite=True
        )
        assert order not in store["zarr.json"].decode()


@pytest.mark.spec("V3-SHARD-07", "V3-SHARD-09", "V3-SHARD-10")
@pytest.mark.parametrize("location", [None, "end", "start"])
def test_the_index_is_where_the_document_says_and_counts_from_the_start(place: Place, location: str | None) -> None:
    told = {} if location is None else {"index_location": location}
    z = place.open(document((64, 64), (64, 64), (32, 32), **told))
    values = np.arange(64 * 64, dtype="u2").astype("u1").reshape(64, 64)
    values[0, 0] = 1
    z[...] = values
    data = place.get("c/0/0")
    assert data is not None
    assert len(data) == 4 * 1024 + 68
    entries = parse_index(data[:68] if location == "start" else data[-68:])
    assert sorted(entries)[0] == (68 if location == "start" else 0, 1024)
    for (offset, nbytes), (i, j) in zip(entries, [(0, 0), (0, 32), (32, 0), (32, 32)], strict=True):
        assert data[offset : offset + nbytes] == values[i : i + 32, j : j + 32].tobytes()


@pytest.mark.spec("V3-SHARD-07", "V3-SHARD-10")
def test_a_shard_with_its_index_at_the_start_is_read(place: Place) -> None:
    entries = [(68 + 4 * number, 4) for number in range(4)]
    z = place.open(document(index_location="start"), {"c/0/0": index_bytes(entries) + b"".join(BLOCKS)})
    assert (z[...] == VALUES).all()
    assert z[3, 0] == VALUES[3, 0]


@pytest.mark.spec("V3-SHARD-07")
@pytest.mark.parametrize("location", ["middle", None, 0, "END"])
def test_another_place_for_the_index_is_refused(location: Any) -> None:
    with pytest.raises(MetadataValidationError, match="index_location"):
        opened(document(index_location=location))


@pytest.mark.spec("V3-SHARD-11", "V3-SHARD-16")
def test_inner_chunks_that_are_not_stored_read_as_fill(place: Place) -> None:
    z = place.open(document())
    z[0, 2] = 7
    data = place.get("c/0/0")
    assert data is not None
    assert data[:4] == b"\7\0\0\0"
    assert parse_index(data[4:]) == [(MISSING, MISSING), (0, 4), (MISSING, MISSING), (MISSING, MISSING)]
    assert z[...].sum() == 7
    by_hand = place.open(document(), {"c/0/0": shard_of({2: BLOCKS[2]}, [2])})
    assert by_hand[...].tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [9, 10, 0, 0], [13, 14, 0, 0]]


@pytest.mark.spec("V3-SHARD-11", "V3-SHARD-23")
def test_the_golden_bytes_of_empty_indexes(place: Place) -> None:
    golden = b"\xff" * 64 + bytes.fromhex("664ecd2f")
    z = place.open(document(), {"c/0/0": golden})
    assert z[...].tolist() == np.zeros((4, 4)).tolist()
    assert z._bound.chain((4, 4)).shard.encode(np.zeros((4, 4), "u1")) == golden
    scalar = b"\xff" * 16 + bytes.fromhex("104c2fef")
    z = place.open(document((), (), ()), {"c": scalar})
    assert z[()] == 0
    assert z._bound.chain(()).shard.encode(np.zeros((), "u1")) == scalar


BAD_ENTRIES = {
    "offset missing": (MISSING, 4), "size missing": (0, MISSING), "past the end": (13, 4), "far away": (2**63, 4),
    "overflow": (MISSING - 2, 4), "in the index": (16, 4), "empty": (4, 0), "short": (0, 3), "long": (0, 5),
}  # fmt: skip


@pytest.mark.spec("V3-SHARD-12")
@pytest.mark.parametrize(("name", "entry"), BAD_ENTRIES.items(), ids=BAD_ENTRIES)
@pytest.mark.parametrize("inner", ["raw", "gzip"])
def test_an_impossible_entry_is_an_error(place: Place, name: str, entry: tuple[int, int], inner: str) -> None:
    if inner == "gzip" and name in ("short", "long"):
        return  # compressed chunks may have any size
    codec = sharding([2, 2], ["bytes"] if inner == "raw" else ["bytes", GZIP])
    data = b"".join(BLOCKS) + index_bytes([(0, 4), (4, 4), (8, 4), entry])
    z = place.open(array_document((4, 4), data_type="uint8", codecs=[codec]), {"c/0/0": data})
    for read in calls(lambda: z[...], lambda: z[3, 3]):
        with pytest.raises(ShardIndexError) as raised:
            read()
        assert raised.value.key == "c/0/0"
    with pytest.raises(ShardIndexError):
        z[0, 0] = 1
    assert place.get("c/0/0") == data


@pytest.mark.spec("V3-SHARD-12", "V3-SHARD-10")
def test_an_entry_inside_an_index_at_the_start_is_an_error(place: Place) -> None:
    entries = [(68, 4), (64, 4), (76, 4), (80, 4)]
    z = place.open(document(index_location="start"), {"c/0/0": index_bytes(entries) + b"".join(BLOCKS)})
    for read in calls(lambda: z[...], lambda: z[0, 2]):
        with pytest.raises(ShardIndexError):
            read()


@pytest.mark.spec("V3-SHARD-13")
def test_the_index_of_a_shard_at_the_edge_is_of_full_size(place: Place) -> None:
    z = place.open(document((50, 20), (64, 64), (32, 32)))
    z[...] = 1
    data = place.get("c/0/0")
    assert data is not None
    entries = parse_index(data[-68:])
    assert [entry[1] for entry in entries[::2]] == [1024, 1024]
    assert array_of(tessarr.open(place.store, mode="r"))[...].sum() == 1000
    body = bytes([1]) * 1024
    for outside in ((MISSING, MISSING), (0, 1024)):
        shard = body + index_bytes([(0, 1024), outside, (0, 1024), outside])
        z = place.open(document((50, 20), (64, 64), (32, 32)), {"c/0/0": shard})
        assert z[...].sum() == 1000
        assert z[49, 19] == 1
        z[0, 0] = 5
        assert z[...].sum() == 1004


@pytest.mark.spec("V3-SHARD-14")
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 2, 1, 3], [3, 1, 0, 2], [3, 2, 1, 0]])
@pytest.mark.parametrize("gap", [b"", b"unused"])
def test_any_physical_order_with_gaps_is_read(place: Place, order: list[int], gap: bytes) -> None:
    z = place.open(document(), {"c/0/0": shard_of(dict(enumerate(BLOCKS)), order, gap)})
    assert (z[...] == VALUES).all()
    assert (z[1:3, 1:3] == VALUES[1:3, 1:3]).all()
    z[0, 0] = 99
    expected = VALUES.copy()
    expected[0, 0] = 99
    assert (z[...] == expected).all()


@pytest.mark.spec("V3-SHARD-14")
def test_a_shard_that_was_appended_to_is_read_by_its_last_index(place: Place) -> None:
    old = shard_of(dict.fromkeys(range(4), b"\xee" * 4), [0, 1, 2, 3])
    entries = [(len(old) + 4 * number, 4) for number in range(4)]
    z = place.open(document(), {"c/0/0": old + b"".join(BLOCKS) + index_bytes(entries)})
    assert (z[...] == VALUES).all()


@pytest.mark.spec("V3-SHARD-14")
def test_two_entries_may_share_bytes(place: Place) -> None:
    z = place.open(document(), {"c/0/0": BLOCKS[0] + index_bytes([(0, 4)] * 4)})
    assert z[...].tolist() == np.tile(VALUES[:2, :2], (2, 2)).tolist()


@pytest.mark.spec("V3-SHARD-14")
@pytest.mark.parametrize("order", ["morton", "lexicographic", "colexicographic", "unordered"])
def test_shards_of_every_write_order_are_read(order: str, place: Place) -> None:
    shards = {"shape": (4, 6), "subchunk_write_order": order}
    z = tessarr.create_array(place.store, shape=(4, 6), chunks=(1, 2), shards=shards, dtype="u1", compressors=None)
    z[...] = values = np.arange(24, dtype="u1").reshape(4, 6) + 1
    assert (array_of(tessarr.open(place.store, mode="r"))[...] == values).all()
    data = place.get("c/0/0")
    assert data is not None
    by_column = values.reshape(4, 3, 2).transpose(1, 0, 2).tobytes()
    assert {"lexicographic": values.tobytes(), "colexicographic": by_column}.get(order, data[:24]) == data[:24]


@pytest.mark.spec("V3-SHARD-16")
def test_updating_one_inner_chunk_keeps_the_others_bit_exact(place: Place) -> None:
    import gzip

    codec = sharding([2, 2], ["bytes", GZIP])
    foreign = {number: gzip.compress(block, 9, mtime=77) for number, block in enumerate(BLOCKS)}
    z = place.open(
        array_document((4, 4), data_type="uint8", codecs=[codec]), {"c/0/0": shard_of(foreign, [2, 0, 3, 1])}
    )
    z[1, 3] = 77
    data = place.get("c/0/0")
    assert data is not None
    pieces = [data[offset : offset + nbytes] for offset, nbytes in parse_index(data[-68:])]
    assert [pieces[0], pieces[2], pieces[3]] == [foreign[0], foreign[2], foreign[3]]
    assert gzip.decompress(pieces[1]) == bytes([3, 4, 7, 77])


@pytest.mark.spec("V3-SHARD-17")
def test_a_missing_shard_is_fill_and_an_empty_one_is_removed(place: Place) -> None:
    z = place.open(document((8, 4)))
    assert z[...].sum() == 0
    z[...] = 0
    assert place.keys() == []
    z[5, 1] = 3
    assert place.keys() == ["c/1/0"]
    z[5, 1] = 0
    assert place.keys() == []


@pytest.mark.spec("V3-SHARD-17")
def test_empty_inner_chunks_are_stored_when_asked_for(place: Place) -> None:
    place.open(document())
    z = array_of(tessarr.open(place.store, mode="r+", config={"write_empty_chunks": True}))
    z[:2, :2] = 0
    data = place.get("c/0/0")
    assert data is not None
    assert parse_index(data[-68:])[0] == (0, 4)


@pytest.mark.spec("V3-SHARD-18")
@pytest.mark.parametrize("damage", ["short", "empty", "truncated", "flipped", "checksum"])
@pytest.mark.parametrize("location", ["start", "end"])
def test_a_damaged_index_is_an_error_and_never_fill(place: Place, damage: str, location: str) -> None:
    at_start = location == "start"
    index = index_bytes([(68 * at_start + 4 * number, 4) for number in range(4)])
    body = b"".join(BLOCKS)
    good = index + body if at_start else body + index
    where = 0 if at_start else len(body)
    bad = {
        "short": good[:67],
        "empty": b"",
        "truncated": good[:60] if at_start else good[:-1],
        "flipped": good[: where + 1] + bytes([good[where + 1] ^ 1]) + good[where + 2 :],
        "checksum": good[: where + 66] + bytes([good[where + 66] ^ 1]) + good[where + 67 :],
    }[damage]
    z = place.open(document(index_location=location), {"c/0/0": bad})
    for read in calls(lambda: z[...], lambda: z[0, 0]):
        with pytest.raises(ShardIndexError):
            read()
    with pytest.raises(ShardIndexError):
        z[0, 0] = 1
    assert place.get("c/0/0") == bad


@pytest.mark.spec("V3-SHARD-19", "V3-CHAIN-06")
def test_a_partial_read_asks_for_the_index_and_then_all_ranges_at_once() -> None:
    store = store_of({"": document((2048, 2048), (2048, 2048), (256, 256))})
    values = np.arange(2048 * 2048).astype("u1").reshape(2048, 2048)
    array_of(tessarr.open(store, mode="r+"))[...] = values
    asked: list[Any] = []

    class Remote(LatencyStore):
        def fetch(self, requests: Any) -> Any:
            asked.append(list(requests))
            return super().fetch(requests)

    z = array_of(tessarr.open(Remote(MemoryStore(store)), mode="r"))
    asked.clear()
    assert (z[200:300, 700:800] == values[200:300, 700:800]).all()
    index, data = asked
    assert index == [("c/0/0", (ByteRange(-64 * 16 - 4),))]
    [(key, ranges)] = data
    assert key == "c/0/0"
    # The inner chunks that the selection meets are two in each of two rows: one range for all, or one for each.
    lengths = [stop - start for start, stop in ranges]
    assert lengths in ([10 * 256 * 256], [256 * 256] * 4)
    met = {
        chunk for chunk in range(64) if any(start <= chunk << 16 and chunk + 1 << 16 <= stop for start, stop in ranges)
    }
    assert met >= {2, 3, 10, 11}
    asked.clear()
    assert (z[...] == values).all()
    assert asked == [[("c/0/0", None)]]


@pytest.mark.spec("V3-SHARD-20", "V3-SHARD-24")
@pytest.mark.parametrize(
    ("index_codecs", "nbytes"),
    [([LITTLE], 64), ([BIG], 64), ([LITTLE, CRC], 68), ([BIG, CRC, CRC], 72), ([transpose(2, 1, 0), LITTLE, CRC], 68)],
    ids=["little", "big", "crc", "two", "transpose"],
)
@pytest.mark.parametrize("location", ["start", "end"])
def test_the_index_is_encoded_as_its_codecs_say(
    place: Place, index_codecs: list[Any], nbytes: int, location: str
) -> None:
    z = place.open(document(index_codecs=index_codecs, index_location=location))
    z[...] = VALUES
    data = place.get("c/0/0")
    assert data is not None
    assert len(data) == nbytes + 16
    stored = np.frombuffer((data[:nbytes] if location == "start" else data[-nbytes:])[:64], "<u8")
    index = stored.byteswap() if BIG in index_codecs else stored
    index = index.reshape(2, 2, 2).transpose(2, 1, 0) if len(index_codecs) == 3 and nbytes == 68 else index
    for (offset, size), block in zip(index.reshape(4, 2).tolist(), BLOCKS, strict=True):
        assert data[offset : offset + size] == block
    z = array_of(tessarr.open(place.store, mode="r"))
    assert (z[...] == VALUES).all()
    assert z[3, 0] == VALUES[3, 0]


@pytest.mark.spec("V3-SHARD-21")
def test_shards_within_shards_read_and_write(place: Place) -> None:
    three = sharding([8, 8], [sharding([4, 4], [sharding([2, 2], ["bytes"], index_location="start")])])
    z = place.open(array_document((16, 32), (16, 16), "uint8", codecs=[three]))
    values = (np.arange(512) % 251 + 1).astype("u1").reshape(16, 32)
    z[...] = values
    assert (z[...] == values).all()
    z[3, 21] = 0
    z[5:7, 3:9] = 9
    values[3, 21], values[5:7, 3:9] = 0, 9
    z = array_of(tessarr.open(place.store, mode="r"))
    assert (z[...] == values).all()
    for selection in ((3, 21), (slice(4, 8), slice(2, 20, 3)), (slice(None), 31)):
        assert (z[selection] == values[selection]).all()
    assert (z.vindex[[3, 15], [21, 0]] == values[[3, 15], [21, 0]]).all()
    data = place.get("c/0/1")
    assert data is not None
    offset, nbytes = parse_index(data[-68:])[0]
    offset, nbytes = offset, nbytes
    level2 = data[offset : offset + nbytes]
    start, size = parse_index(level2[-68:])[1]  # rows 0-3, columns 20-23
    level3 = level2[start : start + size]
    entry = parse_index(level3[:68])[2]  # rows 2-3, columns 20-21
    assert level3[entry[0] : sum(entry)] == values[2:4, 20:22].tobytes()


@pytest.mark.spec("V3-SHARD-22")
def test_compression_around_shards_is_legal_and_creating_it_warns() -> None:
    store: dict[str, bytes] = {}
    codecs = [sharding([2, 2]), GZIP]
    with pytest.warns(ZarrUserWarning, match="`sharding_indexed` codec disables partial reads"):
        z = tessarr.create(shape=(4, 4), chunks=(4, 4), dtype="i4", codecs=codecs, store=store)
    z[...] = VALUES
    assert (array_of(tessarr.open(store))[1:3, 1:3] == VALUES[1:3, 1:3]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tessarr.create(shape=(4, 4), chunks=(4, 4), dtype="i4", codecs=[sharding([2, 2])], store={})


@pytest.mark.spec("V3-SHARD-23")
def test_an_array_without_axes_has_one_inner_chunk(place: Place) -> None:
    z = place.open(document((), (), ()))
    z[...] = 7
    data = place.get("c")
    assert data is not None
    assert data[:1] == b"\7"
    assert parse_index(data[1:]) == [(0, 1)]
    assert array_of(tessarr.open(place.store))[()] == 7


@pytest.mark.spec("V3-SHARD-25")
def test_text_in_inner_chunks(place: Place) -> None:
    codec = sharding([2], [{"name": "vlen-utf8"}, ZSTD])
    z = place.open(array_document((6,), (6,), "string", fill_value="-", codecs=[codec]))
    z[1:4] = ["π", "", "three"]
    assert array_of(tessarr.open(place.store))[...].tolist() == ["-", "π", "", "three", "-", "-"]
    z[3] = "-"
    z[2] = "-"
    data = place.get("c/0")
    assert data is not None
    assert [entry == (MISSING, MISSING) for entry in parse_index(data[-52:])] == [False, True, True]


@pytest.mark.spec("V3-SHARD-26")
def test_the_example_of_the_specification() -> None:
    codec = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [32, 32],
            "codecs": [LITTLE, {"name": "gzip", "configuration": {"level": 1}}],
            "index_codecs": [LITTLE, {"name": "crc32c"}],
            "index_location": "end",
        },
    }
    z = opened(array_document((64, 64), codecs=[codec]))
    assert (z.chunks, z.shards) == ((32, 32), (64, 64))
    assert z.metadata.to_dict()["codecs"] == [codec]


@pytest.mark.spec("V3-SHARD-22", "V3-SHARD-23")
@pytest.mark.parametrize("outside", ["crc32c", "shard"])
@pytest.mark.parametrize("data_type", ["float64", "complex64"])
def test_a_shard_of_one_element_may_have_codecs_around_it(place: Place, outside: str, data_type: str) -> None:
    wide = {**document((), (), ()), "data_type": data_type, "fill_value": 0 if data_type == "float64" else [0, 0]}
    inner = sharding((), codecs=[{"name": "bytes", "configuration": {"endian": "big"}}])
    wide["codecs"] = [inner, {"name": "crc32c"}] if outside == "crc32c" else [sharding((), codecs=[inner])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZarrUserWarning)
        z = place.open(wide)
        z[...] = 2.5
        assert z[()] == 2.5
        z[...] = -1.5
        assert z[()] == -1.5
