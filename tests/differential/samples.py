"""Arrays as other writers may store them: valid ones, with their values, and ones of which one thing is changed.

A number decides about everything. Documents and chunks are made without tessarr (`encoding.py`), so that the values are
known; where something is changed (`changes.py`) they are not.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from tests.differential.changes import V2_CHANGES, V3_CHANGES, change_chunk
from tests.differential.encoding import JSONObject, Values, chunks_of, encode, encode_v2, region

TYPES = (
    "bool", "complex128", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8",
    "uint16", "uint32", "uint64", "uint8",
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """An array in files; `values` are None where something was changed, which `change` names."""

    zarr_format: int
    files: dict[str, bytes]
    values: Values | None
    features: frozenset[str]
    change: str | None = None


def sample(number: int) -> Sample:
    """The sample of a number: every second one is changed, every fourth one has format 2."""
    rng = Random(number)
    made = _v2(rng) if number % 4 >= 2 else _v3(rng)
    return _changed(made, rng) if number % 2 else made


def _changed(made: Sample, rng: Random) -> Sample:
    """The sample with the first of the changes, in a random order, that changes something."""
    name, changes = (".zarray", V2_CHANGES) if made.zarr_format == 2 else ("zarr.json", V3_CHANGES)
    chunks = sorted(made.files.keys() - {name})
    for label in rng.sample(sorted(changes), len(changes)):
        key = name
        if label.startswith("chunk:"):
            if not chunks:
                continue
            key = rng.choice(chunks)
            content = change_chunk(label, made.files[key])
        else:
            document = json.loads(made.files[name])
            text = changes[label](document, rng)
            content = (json.dumps(document) if text is None else text).encode()
        if content != made.files[key]:
            return replace(made, files={**made.files, key: content}, values=None, change=label)
    raise AssertionError("no change changes the sample")


def _values(dtype: str, shape: tuple[int, ...], rng: Random) -> Values:
    kind, size = np.dtype(dtype).kind, math.prod(shape)
    bits = np.random.default_rng(rng.randrange(2**32))
    if kind == "b":
        flat = bits.integers(0, 2, size).astype(bool)
    elif kind in "iu":
        flat = bits.integers(0, 4, size).astype(dtype) if rng.random() < 0.5 else _whole_range(bits, dtype, size)
    else:
        flat = bits.normal(size=size).astype(dtype)
        if size:
            flat[bits.integers(0, size, 2)] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
    return flat.reshape(shape)


def _whole_range(bits: np.random.Generator, dtype: str, size: int) -> Values:
    info = np.iinfo(dtype)
    return bits.integers(info.min, info.max, size, dtype=dtype, endpoint=True)


def _fill(dtype: str, rng: Random) -> tuple[Any, Any]:
    """A fill value: as a document has it, and as NumPy does."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        value: Any = rng.random() < 0.5
        return value, value
    if kind in "iu":
        info = np.iinfo(dtype)
        value = rng.choice([0, 1, 7, info.min, info.max])
        return value, value
    if kind == "c":
        (real, real_value), (imaginary, imaginary_value) = (_fill_float(rng) for _ in range(2))
        return [real, imaginary], complex(real_value, imaginary_value)
    return _fill_float(rng)


def _fill_float(rng: Random) -> tuple[Any, float]:
    return rng.choice(
        [
            (0, 0.0),
            (0.0, 0.0),
            (-1.5, -1.5),
            (-0.0, -0.0),
            ("NaN", math.nan),
            ("Infinity", math.inf),
            ("-Infinity", -math.inf),
        ]
    )


def _common_features(shape: tuple[int, ...], fill: Any) -> set[str]:
    features = {"no elements"} if 0 in shape else set()
    return features | ({"fill value beyond 2**53"} if isinstance(fill, int) and abs(fill) > 2**53 else set())


# -- format 3 ------------------------------------------------------------------------------------------------------------


def _v3(rng: Random) -> Sample:
    dtype, rank = rng.choice(TYPES), rng.choice([0, 1, 1, 2, 2, 3])
    lengths = tuple(rng.choice([1, 2, 4, 6]) for _ in range(rank))
    shape = tuple(rng.choice([0, 1, 3, 4, 7, 9]) if rng.random() < 0.9 else length for length in lengths)
    stored_fill, fill = _fill(dtype, rng)
    codecs = _sharded(rng, dtype, lengths) if rng.random() < 0.3 else _chain(rng, dtype, rank)
    document: JSONObject = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(lengths)}},
        "chunk_key_encoding": _key_encoding(rng),
        "fill_value": stored_fill,
        "codecs": codecs,
    }
    if rng.random() < 0.5:
        document["attributes"] = rng.choice([{}, {"a": 1}, {"units": "m", "nested": {"b": [1, None]}}])
    if rng.random() < 0.5:
        document["dimension_names"] = [rng.choice(["x", "y", None, ""]) for _ in range(rank)]
    values = _values(dtype, shape, rng)
    if codecs[0]["name"] == "sharding_indexed":
        document["fill_value"], fill = {"b": (False, False), "c": ([0, 0], 0)}.get(np.dtype(dtype).kind, (0, 0))
    files = {"zarr.json": json.dumps(document).encode()}
    for coords, chunk in chunks_of(values, lengths, fill).items():
        if rng.random() < 0.15:
            values[region(coords, lengths)] = fill
        else:
            files[_key(document["chunk_key_encoding"], coords)] = encode(chunk, codecs)
    features = {f"type {dtype}", f"rank {rank}", *(f"codec {codec['name']}" for codec in codecs)}
    features |= _common_features(shape, stored_fill) | {f"key encoding {document['chunk_key_encoding']['name']}"}
    features |= {"repeated dimension names"} if _repeated(document.get("dimension_names", [])) else set()
    features |= {"big-endian bool"} if dtype == "bool" and '"endian": "big"' in json.dumps(codecs) else set()
    features |= {"blosc of encoded bytes"} if _ends_with_blosc(codecs) else set()
    if codecs[0]["name"] == "sharding_indexed":
        features |= _shard_features(codecs[0]["configuration"])
    return Sample(3, files, values, frozenset(features))


def _chain(rng: Random, dtype: str, rank: int) -> list[JSONObject]:
    size = np.dtype(dtype).itemsize
    codecs: list[JSONObject] = []
    if rank and rng.random() < 0.3:
        codecs.append({"name": "transpose", "configuration": {"order": rng.sample(range(rank), rank)}})
    endian = {"endian": rng.choice(["little", "little", "big"])}
    codecs.append({"name": "bytes", "configuration": endian} if size > 1 or rng.random() < 0.5 else {"name": "bytes"})
    for name in rng.sample(["gzip", "zstd", "blosc", "crc32c"], rng.choice([0, 0, 1, 1, 2])):
        codecs.append(_compressor(name, size, rng))
    return codecs


def _compressor(name: str, size: int, rng: Random) -> JSONObject:
    if name == "gzip":
        return {"name": name, "configuration": {"level": rng.randrange(1, 10)}}
    if name == "zstd":
        return {"name": name, "configuration": {"level": rng.randrange(1, 10), "checksum": rng.random() < 0.5}}
    if name == "crc32c":
        return {"name": name}
    return {
        "name": name,
        "configuration": {
            "cname": rng.choice(["lz4", "lz4hc", "zstd", "zlib", "blosclz"]),
            "clevel": rng.randrange(10),
            "shuffle": rng.choice(["noshuffle", "shuffle", "bitshuffle"]),
            "typesize": size,
            "blocksize": 0,
        },
    }


def _sharded(rng: Random, dtype: str, lengths: tuple[int, ...]) -> list[JSONObject]:
    inner = [rng.choice([part for part in range(1, length + 1) if length % part == 0]) for length in lengths]
    index: list[JSONObject] = [{"name": "bytes", "configuration": {"endian": rng.choice(["little", "little", "big"])}}]
    if rng.random() < 0.8:
        index.append({"name": "crc32c"})
    configuration: JSONObject = {
        "chunk_shape": inner,
        "codecs": _chain(rng, dtype, len(lengths)),
        "index_codecs": index,
    }
    if rng.random() < 0.7:
        configuration["index_location"] = rng.choice(["start", "end"])
    return [{"name": "sharding_indexed", "configuration": configuration}]


def _shard_features(configuration: JSONObject) -> set[str]:
    features = {f"inner codec {codec['name']}" for codec in configuration["codecs"]}
    features.add(f"index at {configuration.get('index_location', 'end')}")
    features.add(f"index {configuration['index_codecs'][0]['configuration']['endian']}-endian")
    return features | ({"blosc of encoded bytes"} if _ends_with_blosc(configuration["codecs"]) else set())


def _ends_with_blosc(codecs: list[JSONObject]) -> bool:
    """Whether blosc follows another codec that makes bytes of bytes."""
    names = [codec["name"] for codec in codecs]
    return "blosc" in names and names[names.index("blosc") - 1] != "bytes"


def _repeated(names: list[str | None]) -> bool:
    given = [name for name in names if name]
    return len(set(given)) < len(given)


def _key_encoding(rng: Random) -> JSONObject:
    encoding: JSONObject = {"name": rng.choice(["default", "default", "v2"])}
    if rng.random() < 0.8:
        encoding["configuration"] = {"separator": rng.choice(["/", "."])}
    return encoding


def _key(encoding: JSONObject, coords: tuple[int, ...]) -> str:
    default = {"default": "/", "v2": "."}[encoding["name"]]
    separator: str = encoding.get("configuration", {}).get("separator", default)
    if encoding["name"] == "v2":
        return separator.join(map(str, coords)) or "0"
    return separator.join(map(str, ("c", *coords)))


# -- format 2 ------------------------------------------------------------------------------------------------------------


def _v2(rng: Random) -> Sample:
    name, rank = rng.choice(TYPES), rng.choice([0, 1, 1, 2, 2, 3])
    dtype = np.dtype(f"{rng.choice('<<>')}{np.dtype(name).str[1:]}")
    lengths = tuple(rng.choice([1, 2, 4, 6]) for _ in range(rank))
    shape = tuple(rng.choice([0, 1, 3, 4, 7, 9]) for _ in range(rank))
    stored_fill, fill = _fill(name, rng)
    document: JSONObject = {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(lengths),
        "dtype": dtype.str,
        "compressor": _v2_compressor(rng),
        "fill_value": stored_fill,
        "order": rng.choice("CCF"),
        "filters": None,
    }
    if np.dtype(name).kind in "iu" and rng.random() < 0.3:
        document["filters"] = [{"id": "delta", "dtype": dtype.str, "astype": dtype.str}]
    if rng.random() < 0.5:
        document["dimension_separator"] = rng.choice("./")
    values = _values(name, shape, rng)
    files = {".zarray": json.dumps(document).encode()}
    for coords, chunk in chunks_of(values, lengths, fill).items():
        if rng.random() < 0.15:
            values[region(coords, lengths)] = fill
        else:
            key = document.get("dimension_separator", ".").join(map(str, coords)) or "0"
            files[key] = encode_v2(chunk, document)
    compressor = document["compressor"]
    features = {f"type {name}", f"rank {rank}", f"order {document['order']}"} | _common_features(shape, stored_fill)
    features |= {f"compressor {compressor['id']}"} if compressor else set()
    features |= {"filter delta"} if document["filters"] else set()
    features |= {"big-endian"} if dtype.str[0] == ">" else set()
    return Sample(2, files, values, frozenset(features))


def _v2_compressor(rng: Random) -> JSONObject | None:
    return rng.choice(
        [
            None,
            {"id": "zlib", "level": rng.randrange(1, 10)},
            {"id": "gzip", "level": rng.randrange(1, 10)},
            {"id": "bz2", "level": rng.randrange(1, 10)},
            {"id": "zstd", "level": rng.randrange(1, 10)},
            {"id": "lz4", "acceleration": 1},
            {
                "id": "blosc",
                "cname": rng.choice(["lz4", "zstd"]),
                "clevel": rng.randrange(10),
                "shuffle": rng.choice([0, 1, 2]),
                "blocksize": 0,
            },
        ]
    )
