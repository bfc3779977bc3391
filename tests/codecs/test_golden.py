"""Bytes of other implementations are read as they meant them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessarr.codecs.base import ArrayToArray, BytesToBytes, ChunkSpec
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.numcodecs import v2_compressor, v2_filters
from tessarr.codecs.parse import codec_from
from tessarr.dtypes.parse import from_numpy
from tests.codecs.samples import data, spec_of

GOLDEN = Path(__file__).parent / "golden"
ENTRIES: list[dict[str, Any]] = json.loads((GOLDEN / "index.json").read_text(encoding="utf-8"))


def entries(*forms: str) -> list[Any]:
    return [pytest.param(entry, id=entry["file"]) for entry in ENTRIES if entry["form"] in forms]


def stored(entry: dict[str, Any]) -> bytes:
    return (GOLDEN / str(entry["file"])).read_bytes()


def test_every_file_is_in_the_index_and_the_other_way_round() -> None:
    assert {path.name for path in GOLDEN.glob("*.bin")} == {entry["file"] for entry in ENTRIES}
    assert len(ENTRIES) >= 60


@pytest.mark.spec("V3-GZIP-03", "V2-45", "V2-46")
@pytest.mark.parametrize("entry", entries("v3", "v2"))
def test_one_codec_decodes_them(entry: dict[str, Any]) -> None:
    codec = v2_compressor(entry["codec"]) if entry["form"] == "v2" else codec_from(entry["codec"])
    assert isinstance(codec, BytesToBytes)
    expected = bytes.fromhex(entry["decoded"])
    assert data(codec.decode(stored(entry), len(expected))) == expected


COMPRESSORS = ("gzip", "lzma", "zlib", "bz2", "zstd", "zfpy", "pcodec", "blosc", "lz4")
"""Their encoded form depends on the version of a library; only reading it is tested."""
LOSSY = ("quantize", "bitround", "fixedscaleoffset")
"""The index has the values after decoding, not those that were encoded."""


def reproducible(form: str) -> list[Any]:
    """Entries whose bytes every implementation must write alike."""
    kept = []
    for entry in entries(form):
        codec = entry.values[0]["codec"]
        names = {codec["id"]} if form == "v2" else {item["name"] for item in codec}
        if not names & {*COMPRESSORS, *(LOSSY if form == "v2" else ())}:
            kept.append(entry)
    return kept


@pytest.mark.parametrize("entry", reproducible("v2"))
def test_v2_codecs_write_the_same_bytes(entry: dict[str, Any]) -> None:
    codec = v2_compressor(entry["codec"])
    array = np.frombuffer(bytes.fromhex(entry["decoded"]), entry["dtype"])
    assert data(codec.encode(array)) == stored(entry)


@pytest.mark.spec("V2-29")
@pytest.mark.parametrize("entry", entries("object"))
def test_object_codecs_decode_them(entry: dict[str, Any]) -> None:
    data_type = from_numpy(object, object_codec=entry["codec"]["id"])
    codec, rest = v2_filters([entry["codec"]], data_type)
    spec = ChunkSpec(tuple(entry["shape"]), data_type, data_type.default_fill())
    assert rest == []
    assert codec is not None
    assert codec.decode(stored(entry), spec).tolist() == entry["decoded"]


@pytest.mark.parametrize("entry", entries("chain"))
def test_chains_decode_them(entry: dict[str, Any]) -> None:
    dtype = np.dtype(entry["dtype"])
    spec = spec_of(from_numpy(dtype).to_json(), tuple(entry["shape"]))
    chain = BoundChain([codec_from(codec) for codec in entry["codec"]], spec)
    decoded = np.ascontiguousarray(chain.decode(stored(entry)), dtype)
    assert decoded.tobytes() == bytes.fromhex(entry["decoded"])


@pytest.mark.parametrize("entry", reproducible("chain"))
def test_chains_write_the_same_bytes(entry: dict[str, Any]) -> None:
    dtype = np.dtype(entry["dtype"])
    spec = spec_of(from_numpy(dtype).to_json(), tuple(entry["shape"]))
    chain = BoundChain([codec_from(codec) for codec in entry["codec"]], spec)
    chunk = np.frombuffer(bytes.fromhex(entry["decoded"]), dtype).reshape(spec.shape)
    assert data(chain.encode(chunk)) == stored(entry)


@pytest.mark.parametrize("entry", entries("encode"))
def test_casts_give_the_same_bytes(entry: dict[str, Any]) -> None:
    array = np.frombuffer(bytes.fromhex(entry["decoded"]), entry["dtype"])
    codec = codec_from(entry["codec"])
    assert isinstance(codec, ArrayToArray)
    assert data(codec.encode(array, spec_of("float64", array.shape))) == stored(entry)
