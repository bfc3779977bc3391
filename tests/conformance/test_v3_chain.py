"""Zarr v3: the codec chain, from the document to the stored bytes."""

from __future__ import annotations

import gzip
import json
from typing import Any

import google_crc32c
import numpy as np
import pytest

import tessarr
from tessarr import registry
from tessarr.codecs.base import ChunkSpec, Codec
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.parse import codec_from
from tessarr.dtypes.parse import from_v3
from tessarr.errors import BaseZarrError, CodecError, MetadataValidationError
from tessarr.storage import CountingStore, LatencyStore
from tessarr.stores.memory.store import MemoryStore
from tests.conformance.documents import (
    BIG,
    CRC,
    GZIP,
    LITTLE,
    Place,
    array_document,
    opened,
    regular,
    sharding,
    store_of,
    stored_json,
    transpose,
)  # fmt: skip
from tests.narrow import array_of, calls

T = transpose(1, 0)
SHARDS = sharding([2, 2])
VALUES = np.arange(16, dtype="<i4").reshape(4, 4)


@pytest.mark.spec("V3-CHAIN-01")
@pytest.mark.parametrize(
    ("codecs", "position"),
    [
        ([], None), ([GZIP], 0), ([T], 1), ([LITTLE, LITTLE], 1), ([LITTLE, SHARDS], 1), ([GZIP, LITTLE], 0),
        ([LITTLE, T], 1), ([LITTLE, GZIP, T], 2), ([T, GZIP], 1), ([LITTLE, GZIP, LITTLE], 2),
    ],
)  # fmt: skip
def test_a_codec_out_of_place_is_told_with_its_position(codecs: list[Any], position: int | None) -> None:
    store = store_of({"": array_document((4, 4), codecs=codecs)})
    expected = "codecs" if position is None or not codecs else rf"(codec|position) {position}"
    with pytest.raises(MetadataValidationError, match=expected):
        tessarr.open(store, mode="r+")
    if not any(codec == SHARDS for codec in codecs):
        with pytest.raises(BaseZarrError):
            tessarr.create(shape=(4, 4), dtype="i4", codecs=codecs, store={})


@pytest.mark.spec("V3-CHAIN-01")
def test_a_long_chain_reads_and_writes(place: Place) -> None:
    z = place.open(array_document((4, 4), codecs=[T, T, LITTLE, GZIP, CRC]))
    z[...] = VALUES
    data = place.get("c/0/0")
    assert data is not None
    assert gzip.decompress(data[:-4]) == VALUES.tobytes()
    assert (array_of(tessarr.open(place.store, mode="r"))[...] == VALUES).all()


@pytest.mark.spec("V3-CHAIN-02")
def test_codecs_encode_in_order_and_decode_in_reverse(place: Place) -> None:
    z = place.open(array_document((4, 4), codecs=[LITTLE, GZIP, CRC]))
    z[...] = VALUES
    data = place.get("c/0/0")
    assert data is not None
    assert int.from_bytes(data[-4:], "little") == google_crc32c.value(data[:-4])
    assert gzip.decompress(data[:-4]) == VALUES.tobytes()
    z = place.open(array_document((4, 4), codecs=[LITTLE, CRC, GZIP]))
    z[...] = VALUES
    data = place.get("c/0/0")
    assert data is not None
    inside = gzip.decompress(data)
    assert inside[:-4] == VALUES.tobytes()
    assert int.from_bytes(inside[-4:], "little") == google_crc32c.value(inside[:-4])
    by_hand = gzip.compress(VALUES.tobytes() + google_crc32c.value(VALUES.tobytes()).to_bytes(4, "little"))
    assert (place.open(array_document((4, 4), codecs=[LITTLE, CRC, GZIP]), {"c/0/0": by_hand})[...] == VALUES).all()


@pytest.mark.spec("V3-CHAIN-03")
@pytest.mark.parametrize(
    "changes",
    [
        {"codecs": [transpose(0, 1, 2), LITTLE]}, {"codecs": [transpose(0), LITTLE]},
        {"codecs": [sharding([3, 2])]}, {"codecs": [sharding([2])]}, {"codecs": [sharding([8, 8])]},
        {"codecs": [{"name": "vlen-utf8"}]}, {"codecs": [T, {"name": "vlen-bytes"}]},
        {"codecs": [LITTLE], "data_type": "string", "fill_value": ""},
        {"codecs": [sharding([2, 2], [{"name": "vlen-utf8"}])]}, {"codecs": [sharding([2, 2], [transpose(0), LITTLE])]},
        {"codecs": [{"name": "packbits"}], "data_type": "string", "fill_value": ""},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_chain_that_cannot_encode_the_chunks_is_refused_at_open_and_at_create(changes: dict[str, Any]) -> None:
    store = store_of({"": array_document((4, 4), **changes)}, {"c/0/0": b"never read"})
    counting = CountingStore(MemoryStore(store))
    before = dict(store)
    with pytest.raises(MetadataValidationError, match="codecs"):
        tessarr.open(counting, mode="r+")
    assert store == before
    empty: dict[str, bytes] = {}
    with pytest.raises(BaseZarrError):
        tessarr.create(
            shape=(4, 4), chunks=(4, 4), dtype=changes.get("data_type", "i4").replace("string", "str"),
            codecs=changes["codecs"], store=empty,
        )  # fmt: skip
    assert empty == {}


@pytest.mark.spec("V3-CHAIN-04")
def test_the_chain_gets_chunks_of_the_arrays_type_and_the_chunk_shape() -> None:
    z = opened(array_document((5, 7), (2, 3), codecs=[T, LITTLE]))
    chain = z._bound.chain(z._bound.chunk_shape((2, 2)))
    assert (chain.spec.shape, chain.spec.dtype) == ((2, 3), np.int32)
    assert chain.middle_spec.shape == (3, 2)


@pytest.mark.spec("V3-CHAIN-05")
@pytest.mark.parametrize(
    ("codecs", "size"),
    [([LITTLE], 64), ([LITTLE, CRC], 68), ([T, BIG, CRC, CRC], 72), ([LITTLE, GZIP], None), ([SHARDS], None),
     ([LITTLE, GZIP, CRC], None), ([LITTLE, {"name": "zstd", "configuration": {"level": 1, "checksum": False}}], None)],
)  # fmt: skip
def test_the_encoded_size_is_known_for_codecs_of_fixed_size(codecs: list[Any], size: int | None) -> None:
    spec = ChunkSpec((4, 4), from_v3("int32"), from_v3("int32").default_fill())
    assert BoundChain([codec_from(codec) for codec in codecs], spec).encoded_size == size


@pytest.mark.spec("V3-CHAIN-06")
@pytest.mark.parametrize("location", ["start", "end"])
def test_one_inner_chunk_takes_two_requests(location: str) -> None:
    # A shard of 4 MiB: a remote one that is small is read whole, with one request.
    document = array_document((1024, 1024), (1024, 1024), codecs=[sharding([8, 8], index_location=location)])
    store = store_of({"": document})
    values = np.arange(1024 * 1024).reshape(1024, 1024)
    array_of(tessarr.open(store, mode="r+"))[...] = values
    for over in (MemoryStore(store), LatencyStore(MemoryStore(store))):
        counting = CountingStore(over)
        with tessarr.config.set({"engine": "reference"}):
            z = array_of(tessarr.open(counting, mode="r"))
            counting.counter.clear()
            assert (z[9:12, 17:20] == values[9:12, 17:20]).all()
        assert counting.counter == {"fetch": 2}
        assert (z[...] == values).all()


@pytest.mark.spec("V3-CHAIN-07", "V3-SHARD-22")
def test_a_codec_without_partial_decoding_is_decoded_whole(place: Place) -> None:
    z = place.open(array_document((4, 4), codecs=[SHARDS, GZIP]))
    z[...] = VALUES
    z[1, 2] = 99
    expected = VALUES.copy()
    expected[1, 2] = 99
    z = array_of(tessarr.open(place.store, mode="r"))
    assert z[1, 2] == 99
    assert (z[1:3, ::2] == expected[1:3, ::2]).all()
    assert (z[...] == expected).all()
    data = place.get("c/0/0")
    assert data is not None
    plain = place.open(array_document((4, 4), codecs=[SHARDS]), {"c/0/0": gzip.decompress(data)})
    assert (plain[...] == expected).all()


@pytest.mark.spec("V3-CHAIN-08")
@pytest.mark.parametrize(
    "codecs",
    [[LITTLE], [T, BIG], [LITTLE, GZIP], [LITTLE, CRC], [LITTLE, GZIP, CRC], [LITTLE, CRC, GZIP]],
    ids=json.dumps,
)
@pytest.mark.parametrize("change", [-1, -4, -64, 1, 64])
def test_a_chunk_that_decodes_to_another_size_is_an_error(place: Place, codecs: list[Any], change: int) -> None:
    wrong = (VALUES.tobytes() + bytes(64))[: 64 + change]
    encoded: Any = wrong
    for codec in codecs:
        if codec == GZIP:
            encoded = gzip.compress(encoded)
        elif codec == CRC:
            encoded = encoded + google_crc32c.value(encoded).to_bytes(4, "little")
    z = place.open(array_document((4, 4), codecs=codecs), {"c/0/0": encoded})
    for read in calls(lambda: z[...], lambda: z[0, 0], lambda: z[1:3, ::2]):
        with pytest.raises(CodecError) as raised:
            read()
        assert raised.value.key == "c/0/0"
        assert raised.value.chunk == (0, 0)


@pytest.mark.spec("V3-CHAIN-08")
def test_a_damaged_chunk_is_not_overwritten_by_a_partial_write(place: Place) -> None:
    z = place.open(array_document((4, 4)), {"c/0/0": b"short"})
    with pytest.raises(CodecError):
        z[0, 0] = 1
    assert place.get("c/0/0") == b"short"
    z[...] = VALUES
    assert (z[...] == VALUES).all()


@pytest.mark.spec("V3-CHAIN-09")
def test_runtime_options_are_never_stored() -> None:
    from tessarr.codecs.sharding import ShardingCodec

    store: dict[str, bytes] = {}
    tessarr.create_array(
        store, shape=(4, 4), chunks=(2, 2), dtype="i4", config={"write_empty_chunks": True, "order": "F"},
        shards={"shape": (4, 4), "subchunk_write_order": "morton", "index_location": "start"},
    )  # fmt: skip
    document = stored_json(store)
    assert set(document["codecs"][0]["configuration"]) == {"chunk_shape", "codecs", "index_codecs", "index_location"}
    assert "morton" not in str(document)
    assert ShardingCodec((2, 2), subchunk_write_order="morton").to_json() == ShardingCodec((2, 2)).to_json()


@pytest.mark.spec("V3-CHAIN-09")
@pytest.mark.parametrize(
    "codec", [LITTLE, BIG, T, GZIP, CRC, SHARDS, {"name": "bytes"}, {"name": "vlen-utf8"}], ids=json.dumps
)
def test_a_codec_and_its_document_say_the_same(codec: dict[str, Any]) -> None:
    made = codec_from(codec)
    implementation = registry.get("codec", codec["name"])
    assert isinstance(made, Codec)
    assert implementation is type(made)
    again = codec_from(json.loads(json.dumps(made.to_json())))
    assert again == made
    assert made.to_json()["name"] == codec["name"]
    assert type(made).from_dict(made.to_dict()) == made


@pytest.mark.spec("V3-CHAIN-03", "V3-TRANS-05")
def test_the_spec_of_a_shard_is_that_behind_the_transposes() -> None:
    document = array_document((8, 16), chunk_grid=regular((8, 16)), codecs=[T, sharding([8, 4])])
    z = opened(document)
    assert z._bound.chain((8, 16)).shard.grid == (2, 2)
    with pytest.raises(MetadataValidationError, match="divide"):
        opened(array_document((8, 16), codecs=[T, sharding([3, 4])]))
