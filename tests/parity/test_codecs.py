"""Chunks go both ways between tessarr and other implementations: what one encodes, the other decodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr
import zarr.storage
import zarrista

from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.fit import fit_chain
from tessarr.codecs.numcodecs import v2_compressor, v2_config, v2_filters
from tessarr.codecs.parse import codec_from
from tessarr.codecs.raw import flat_bytes
from tessarr.dtypes.parse import from_numpy
from tests.codecs.samples import v2_of
from tests.narrow import numpy_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning"),
    pytest.mark.filterwarnings("ignore:.*not in the Zarr version 3 specification"),
]
SHAPE = (30, 7)
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
CORE: dict[str, list[dict[str, Any]]] = {
    "gzip": [LITTLE, {"name": "gzip", "configuration": {"level": 5}}],
    "zstd": [LITTLE, {"name": "zstd", "configuration": {"level": 3, "checksum": True}}],
    "zstd-plain": [LITTLE, {"name": "zstd", "configuration": {"level": -3, "checksum": False}}],
    **{
        f"blosc-{cname}-{shuffle}": [
            LITTLE,
            {"name": "blosc", "configuration": {**BLOSC, "cname": cname, "shuffle": shuffle}},
        ]
        for cname in ("lz4", "lz4hc", "blosclz", "zstd", "zlib")
        for shuffle in ("noshuffle", "shuffle", "bitshuffle")
    },
    "crc32c": [LITTLE, {"name": "crc32c"}],
    "big-transpose-zstd-crc32c": [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
        {"name": "crc32c"},
    ],
}
ONLY_ZARR_PYTHON: dict[str, list[dict[str, Any]]] = {
    f"numcodecs.{name}": [LITTLE, {"name": f"numcodecs.{name}", "configuration": configuration}]
    for name, configuration in {
        "blosc": {"cname": "zstd", "clevel": 3, "shuffle": 1, "blocksize": 0},
        "zlib": {"level": 5},
        "gzip": {"level": 5},
        "bz2": {"level": 5},
        "lzma": {"preset": 1},
        "lz4": {"acceleration": 1},
        "zstd": {"level": 1},
        "shuffle": {"elementsize": 4},
        "crc32": {},
        "crc32c": {},
        "adler32": {"location": "end"},
        "fletcher32": {},
        "jenkins_lookup3": {"initval": 3},
    }.items()
}
ONLY_ZARR_PYTHON |= {
    f"numcodecs.{name}": [{"name": f"numcodecs.{name}", "configuration": configuration}, LITTLE]
    for name, configuration in {
        "delta": {"dtype": "<i4", "astype": "<i2"},
        "astype": {"encode_dtype": "<i2", "decode_dtype": "<i4"},
        "fixedscaleoffset": {"scale": 2, "offset": 1, "dtype": "<i4", "astype": "<i2"},
    }.items()
}
ONLY_ZARR_PYTHON["numcodecs.pcodec"] = [{"name": "numcodecs.pcodec", "configuration": {"level": 8}}]
ONLY_ZARRS: dict[str, list[dict[str, Any]]] = {
    "packbits": [
        {"name": "packbits", "configuration": {"padding_encoding": "first_byte", "first_bit": 0, "last_bit": 9}}
    ],
    "packbits-whole": [{"name": "packbits"}],
    "reshape": [{"name": "reshape", "configuration": {"shape": [[0, 1]]}}, LITTLE],
    "bitround": [{"name": "bitround", "configuration": {"keepbits": 7}}, LITTLE],
}
CHUNK = (np.arange(210, dtype="<i4") * 7 % 101).reshape(SHAPE)


def chain_of(codecs: list[dict[str, Any]], dtype: str = "int32") -> BoundChain:
    data_type = from_numpy(dtype)
    spec = ChunkSpec(SHAPE, data_type, data_type.default_fill())
    return BoundChain(fit_chain([codec_from(codec) for codec in codecs], spec), spec)


def document(codecs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(SHAPE),
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(SHAPE)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": codecs,
        "attributes": {},
    }


def assert_both_ways(codecs: list[dict[str, Any]], theirs: bytes, decode: Any) -> None:
    """`theirs`: the chunk as they encoded it; `decode`: their decoder for one stored chunk."""
    chain = chain_of(codecs)
    assert np.array_equal(chain.decode(theirs), CHUNK)
    assert np.array_equal(decode(flat_bytes(chain.encode(CHUNK)).tobytes()), CHUNK)


@pytest.mark.parametrize("name", [*CORE, *ONLY_ZARR_PYTHON])
def test_zarr_python_in_v3(name: str) -> None:
    codecs = {**CORE, **ONLY_ZARR_PYTHON}[name]
    store: dict[str, Any] = {}
    meta = zarr.core.buffer.cpu.Buffer.from_bytes(json.dumps(document(codecs)).encode())
    store["zarr.json"] = meta
    array = zarr.open_array(zarr.storage.MemoryStore(store), mode="r+")
    array[...] = CHUNK

    def decode(stored: bytes) -> np.ndarray:
        store["c/0/0"] = zarr.core.buffer.cpu.Buffer.from_bytes(stored)
        return numpy_of(array[...])

    assert_both_ways(codecs, store["c/0/0"].to_bytes(), decode)


@pytest.mark.parametrize("name", CORE)
def test_tensorstore_in_v3(name: str) -> None:
    context = tensorstore.Context()
    metadata = {key: value for key, value in document(CORE[name]).items() if key != "attributes"}
    array = tensorstore.open(
        {"driver": "zarr3", "kvstore": "memory://", "metadata": metadata}, create=True, context=context
    ).result()
    array.write(CHUNK).result()
    store = tensorstore.KvStore.open("memory://", context=context).result()

    def decode(stored: bytes) -> np.ndarray:
        store.write("c/0/0", stored).result()
        return array.read().result()

    assert_both_ways(CORE[name], store.read("c/0/0").result().value, decode)


@pytest.mark.parametrize("name", [*CORE, *ONLY_ZARRS])
def test_zarrs_in_v3(name: str) -> None:
    codecs = {**CORE, **ONLY_ZARRS}[name]
    metadata: Any = document(codecs)
    array = zarrista.Array.from_metadata(metadata, zarrista.store.MemoryStore())
    array.store_chunk([0, 0], zarrista.ArrayBytes(CHUNK.tobytes()))
    chunk = array.retrieve_encoded_chunk([0, 0])
    assert chunk is not None
    stored = bytes(chunk.buffer)

    def decode(stored: bytes) -> np.ndarray:
        array.store_encoded_chunk([0, 0], stored)
        return np.asarray(array.retrieve_chunk([0, 0]))

    assert_both_ways(codecs, stored, decode)


V2_COMPRESSORS: list[dict[str, Any]] = [
    {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": -1, "blocksize": 0},
    {"id": "zstd", "level": 3},
    {"id": "zlib", "level": 3},
    {"id": "gzip", "level": 3},
    {"id": "bz2", "level": 3},
    {"id": "lz4"},
    {"id": "lzma", "preset": 1},
]
TENSORSTORE_V2 = ("blosc", "zstd", "zlib", "gzip", "bz2")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("filters", [None, [{"id": "delta", "dtype": "<i4"}], [{"id": "shuffle", "elementsize": 4}]])
@pytest.mark.parametrize("config", V2_COMPRESSORS, ids=lambda config: f"{config['id']}{config.get('shuffle', '')}")
def test_zarr_python_in_v2(
    config: dict[str, Any], filters: list[dict[str, Any]] | None, order: Literal["C", "F"], tmp_path: Path
) -> None:
    compressor = v2_compressor(v2_config(config))
    middle, codecs = v2_filters([v2_config(item) for item in filters or ()], from_numpy("<i4"))
    assert middle is None
    array = zarr.create_array(
        tmp_path / "a",
        shape=SHAPE,
        chunks=SHAPE,
        dtype="<i4",
        compressors=numcodecs.get_codec(v2_of(compressor)),
        filters=[numcodecs.get_codec(v2_of(codec)) for codec in codecs] or None,
        order=order,
        zarr_format=2,
        fill_value=0,
    )
    written = json.loads((tmp_path / "a" / ".zarray").read_bytes())
    assert written["compressor"] == v2_of(compressor)
    assert (written["filters"] or []) == [v2_of(codec) for codec in codecs]
    array[...] = CHUNK
    data_type = from_numpy("<i4")
    spec = ChunkSpec(SHAPE, data_type, data_type.default_fill())
    transpose = [codec_from({"name": "transpose", "configuration": {"order": [1, 0]}})] if order == "F" else []
    chain = BoundChain([*transpose, BytesCodec(None), *codecs, compressor], spec)
    assert np.array_equal(chain.decode((tmp_path / "a" / "0.0").read_bytes()), CHUNK)
    (tmp_path / "a" / "0.0").write_bytes(flat_bytes(chain.encode(CHUNK)).tobytes())
    assert np.array_equal(array[...], CHUNK)


@pytest.mark.parametrize(
    "config", [c for c in V2_COMPRESSORS if c["id"] in TENSORSTORE_V2], ids=lambda c: f"{c['id']}{c.get('shuffle', '')}"
)
def test_tensorstore_opens_v2_documents_with_our_configuration(config: dict[str, Any]) -> None:
    compressor = v2_compressor(v2_config(config))
    document = {
        "zarr_format": 2, "shape": list(SHAPE), "chunks": list(SHAPE), "dtype": "<i4", "compressor": v2_of(compressor),
        "filters": None, "fill_value": 0, "order": "C",
    }  # fmt: skip
    context = tensorstore.Context()
    store = tensorstore.KvStore.open("memory://", context=context).result()
    store.write(".zarray", json.dumps(document).encode()).result()
    store.write("0.0", flat_bytes(compressor.encode(CHUNK)).tobytes()).result()
    array = tensorstore.open({"driver": "zarr", "kvstore": "memory://"}, context=context).result()
    assert np.array_equal(array.read().result(), CHUNK)
    array.write(CHUNK + 1).result()
    stored = store.read("0.0").result().value
    assert np.array_equal(
        np.frombuffer(flat_bytes(compressor.decode(stored, CHUNK.nbytes)), "<i4"), (CHUNK + 1).ravel()
    )
