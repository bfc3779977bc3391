"""Writes the golden bytes with other implementations. Never imports tessarr; run once per new entry, by hand.

python write_golden.py    (needs numcodecs, zarrista, tensorstore, pcodec, zfpy, cast-value-rs)
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import tensorstore
import zarrista
from cast_value_rs import cast_array

HERE = Path(__file__).parent
ENTRIES: list[dict[str, object]] = []
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    n = int(np.prod(shape))
    if dtype == "|b1":
        return np.asarray(np.arange(n) % 3 == 0).reshape(shape)
    return (np.arange(n) * 7 % 101).astype(dtype).reshape(shape)


def add(
    name: str, writer: str, form: str, codec: object, array: np.ndarray, encoded: bytes, decoded: object = None
) -> None:
    (HERE / f"{name}.bin").write_bytes(encoded)
    raw = array if decoded is None else np.asarray(decoded)
    text = raw.dtype.kind in "OT"
    ENTRIES.append(
        {
            "file": f"{name}.bin",
            "writer": writer,
            "form": form,
            "codec": codec,
            "dtype": "string" if text else array.dtype.str,
            "shape": list(array.shape),
            "decoded": raw.ravel().tolist() if text else np.ascontiguousarray(raw).tobytes().hex(),
        }
    )


def from_stdlib() -> None:
    array = values("<i4", (50,))
    data = array.tobytes()
    named = io.BytesIO()
    with gzip.GzipFile("with-a-name.bin", "wb", 9, named, 123456789) as file:
        file.write(data)
    two = gzip.compress(data[:77], 1, mtime=1) + gzip.compress(data[77:], 9, mtime=2)
    codec = {"name": "gzip", "configuration": {"level": 9}}
    add("stdlib-gzip-name", "CPython gzip", "v3", codec, array, named.getvalue())
    add("stdlib-gzip-two-members", "CPython gzip", "v3", codec, array, two)
    add("stdlib-zlib", "CPython zlib", "v2", {"id": "zlib", "level": 9}, array, zlib.compress(data, 9))
    add(
        "stdlib-bz2-two-streams",
        "CPython bz2",
        "v2",
        {"id": "bz2", "level": 9},
        array,
        bz2.compress(data[:9]) + bz2.compress(data[9:]),
    )
    add(
        "stdlib-lzma-alone",
        "CPython lzma",
        "v2",
        {"id": "lzma", "format": 2, "check": -1, "preset": None, "filters": None},
        array,
        lzma.compress(data, lzma.FORMAT_ALONE),
    )


def from_numcodecs() -> None:
    writer = f"numcodecs {version('numcodecs')}"
    configs = [
        ({"id": "blosc", "cname": cname, "clevel": level, "shuffle": shuffle, "blocksize": size}, "<i4", 3000)
        for cname, level, shuffle, size in (
            ("lz4", 5, 1, 0),
            ("lz4hc", 9, 2, 0),
            ("blosclz", 9, 0, 0),
            ("zstd", 1, -1, 1024),
            ("zlib", 3, 1, 0),
            ("lz4", 0, 1, 0),
        )
    ] + [
        ({"id": "zstd", "level": 3, "checksum": True}, "<i4", 50),
        ({"id": "gzip", "level": 1}, "<i4", 50),
        ({"id": "zlib", "level": 1}, ">i2", 50),
        ({"id": "bz2", "level": 1}, "<f8", 50),
        ({"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}, "<f8", 50),
        ({"id": "lz4", "acceleration": 1}, "<i4", 500),
        ({"id": "crc32"}, "<i4", 5),
        ({"id": "crc32", "location": "end"}, "<i4", 5),
        ({"id": "crc32c"}, "<i4", 5),
        ({"id": "crc32c", "location": "start"}, "<i4", 5),
        ({"id": "adler32"}, "<i4", 5),
        ({"id": "fletcher32"}, "<i4", 5),
        ({"id": "jenkins_lookup3", "initval": 3, "prefix": None}, "<i4", 5),
        ({"id": "shuffle", "elementsize": 4}, "<i4", 5),
        ({"id": "base64"}, "<i2", 7),
        ({"id": "packbits"}, "|b1", 13),
        ({"id": "delta", "dtype": "<i4", "astype": "<i2"}, "<i4", 50),
        ({"id": "fixedscaleoffset", "scale": 10, "offset": 3, "dtype": "<f8", "astype": "<i2"}, "<f8", 50),
        ({"id": "quantize", "digits": 1, "dtype": "<f8", "astype": "<f4"}, "<f8", 50),
        ({"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<f8"}, "<f8", 50),
        ({"id": "bitround", "keepbits": 3}, "<f4", 50),
        ({"id": "pcodec", "level": 8}, "<f4", 50),
        ({"id": "zfpy", "mode": 4, "tolerance": 0.01, "rate": -1, "precision": -1}, "<f4", 64),
    ]
    for index, (config, dtype, n) in enumerate(configs):
        array = values(dtype, (n,))
        codec = numcodecs.get_codec(config)
        encoded = codec.encode(array)
        data = np.ascontiguousarray(encoded).tobytes() if isinstance(encoded, np.ndarray) else bytes(encoded)
        raw = codec.decode(data)
        decoded = np.ascontiguousarray(raw if isinstance(raw, np.ndarray) else np.frombuffer(raw, np.uint8)).view(
            np.uint8
        )
        add(f"numcodecs-{index:02}-{config['id']}", writer, "v2", codec.get_config(), array, data, decoded)
    texts = np.array(["", "a", "žluťoučký", "日本語", "x" * 300], object)
    object_configs: tuple[dict[str, Any], ...] = (
        {"id": "vlen-utf8"},
        {"id": "json2"},
        {"id": "msgpack2"},
        {"id": "categorize", "labels": texts[1:].tolist(), "dtype": "|O", "astype": "|u1"},
    )
    for config in object_configs:
        codec = numcodecs.get_codec(dict(config))
        encoded = codec.encode(texts)
        add(
            f"numcodecs-object-{config['id']}",
            writer,
            "object",
            codec.get_config(),
            texts,
            bytes(memoryview(encoded)),
            texts,
        )


def zarrs(data_type: str, codecs: list[dict[str, Any]], array: np.ndarray, fill: object = 0) -> tuple[bytes, bytes]:
    shape = list(array.shape)
    metadata: Any = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "fill_value": fill,
        "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"},
    }
    store = zarrista.store.MemoryStore()
    node = zarrista.Array.from_metadata(metadata, store)
    node.store_chunk([0] * len(shape), zarrista.ArrayBytes(array.tobytes()))
    chunk = node.retrieve_encoded_chunk([0] * len(shape))
    assert chunk is not None
    return bytes(chunk.buffer), np.asarray(node.retrieve_chunk([0] * len(shape))).tobytes()


def from_zarrs() -> None:
    writer = f"zarrs, through zarrista {version('zarrista')}"
    cases: list[tuple[str, str, tuple[int, ...], list[Any]]] = [
        ("bool", "|b1", (3, 5), [{"name": "packbits"}]),
        ("bool", "|b1", (3, 5), [{"name": "packbits", "configuration": {"padding_encoding": "last_byte"}}]),
        (
            "int16",
            "<i2",
            (3, 5),
            [{"name": "packbits", "configuration": {"first_bit": 1, "last_bit": 7, "padding_encoding": "first_byte"}}],
        ),
        ("float32", "<f4", (3, 5), [{"name": "bitround", "configuration": {"keepbits": 3}}, LITTLE]),
        ("float64", "<f8", (3, 5), [{"name": "bitround", "configuration": {"keepbits": 2}}, LITTLE]),
        ("uint8", "|u1", (3, 5), [{"name": "bitround", "configuration": {"keepbits": 3}}, {"name": "bytes"}]),
        ("int32", "<i4", (3, 5), [{"name": "reshape", "configuration": {"shape": [[0, 1]]}}, LITTLE]),
        ("int32", "<i4", (30, 5), [LITTLE, {"name": "gzip", "configuration": {"level": 5}}]),
        ("int32", "<i4", (30, 5), [LITTLE, {"name": "zstd", "configuration": {"level": 5, "checksum": True}}]),
        (
            "int32",
            "<i4",
            (30, 5),
            [
                LITTLE,
                {
                    "name": "blosc",
                    "configuration": {
                        "cname": "zstd",
                        "clevel": 5,
                        "shuffle": "bitshuffle",
                        "typesize": 4,
                        "blocksize": 0,
                    },
                },
            ],
        ),
        ("int32", "<i4", (30, 5), [LITTLE, {"name": "crc32c"}]),
        ("int32", "<i4", (30, 5), [LITTLE, {"name": "numcodecs.zlib", "configuration": {"level": 5}}]),
        ("int32", "<i4", (30, 5), [LITTLE, {"name": "numcodecs.bz2", "configuration": {"level": 5}}]),
        ("int32", "<i4", (30, 5), [LITTLE, {"name": "numcodecs.adler32", "configuration": {"location": "end"}}]),
        ("int32", "<i4", (30, 5), [LITTLE, {"name": "numcodecs.fletcher32", "configuration": {}}]),
        ("int32", "<i4", (30, 5), [LITTLE, {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}]),
        (
            "float32",
            "<f4",
            (4, 5),
            [
                {
                    "name": "numcodecs.pcodec",
                    "configuration": {
                        "level": 8,
                        "mode_spec": "auto",
                        "delta_spec": "auto",
                        "paging_spec": "equal_pages_up_to",
                        "delta_encoding_order": None,
                        "equal_pages_up_to": 262144,
                    },
                }
            ],
        ),
        ("float32", "<f4", (4, 5), [{"name": "numcodecs.zfpy", "configuration": {"mode": 4, "tolerance": 0.01}}]),
    ]
    for index, (data_type, dtype, shape, codecs) in enumerate(cases):
        array = values(dtype, shape)
        try:
            encoded, decoded = zarrs(data_type, codecs, array, False if data_type == "bool" else 0)
        except Exception as error:
            print("zarrs cannot write", codecs[0]["name"], codecs[-1]["name"], str(error)[:150])
            continue
        name = str((codecs[0] if codecs[0] is not LITTLE else codecs[1])["name"])
        add(f"zarrs-{index:02}-{name}", writer, "chain", codecs, array, encoded, np.frombuffer(decoded, np.uint8))


def from_tensorstore() -> None:
    writer = f"tensorstore {version('tensorstore')}"
    array = values("<i4", (30, 5))
    chains: list[list[dict[str, Any]]] = [
        [LITTLE, {"name": "gzip", "configuration": {"level": 5}}],
        [LITTLE, {"name": "zstd", "configuration": {"level": 5}}],
        [
            LITTLE,
            {
                "name": "blosc",
                "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
            },
        ],
        [LITTLE, {"name": "crc32c"}],
    ]
    for codecs in chains:
        metadata = {
            "shape": [30, 5],
            "data_type": "int32",
            "codecs": codecs,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [30, 5]}},
        }
        context = tensorstore.Context()
        node = tensorstore.open(
            {"driver": "zarr3", "kvstore": "memory://", "metadata": metadata}, create=True, context=context
        ).result()
        node.write(array).result()
        kv = tensorstore.KvStore.open("memory://", context=context).result()
        add(f"tensorstore-{codecs[1]['name']}", writer, "chain", codecs, array, kv.read("c/0/0").result().value)


def from_cast_value() -> None:
    array = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 200.0, -200.0, 1e6, 127.5])
    for rounding in ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"):
        for mode in ("clamp", "wrap"):
            stored = cast_array(
                array, target_dtype="int8", rounding_mode=rounding, out_of_range_mode=mode, scalar_map_entries=None
            )
            codec = {
                "name": "cast_value",
                "configuration": {"data_type": "int8", "rounding": rounding, "out_of_range": mode},
            }
            add(
                f"cast-value-rs-{rounding}-{mode}",
                f"cast-value-rs {version('cast-value-rs')}",
                "encode",
                codec,
                array,
                stored.tobytes(),
            )


if __name__ == "__main__":
    from_stdlib()
    from_numcodecs()
    from_zarrs()
    from_tensorstore()
    from_cast_value()
    (HERE / "index.json").write_text(json.dumps(ENTRIES, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(len(ENTRIES), "entries")
