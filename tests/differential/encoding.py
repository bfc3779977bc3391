"""Encode chunks as the specifications say, by NumPy and the codecs' libraries alone, without tessarr."""

from __future__ import annotations

import gzip
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import google_crc32c
import numcodecs
import numpy as np

Values: TypeAlias = np.ndarray[Any, np.dtype[Any]]
JSONObject: TypeAlias = dict[str, Any]

MISSING = 2**64 - 1


def _swap(values: Values, configuration: JSONObject) -> bytes:
    order = "<" if configuration.get("endian", "little") == "little" else ">"
    return values.astype(f"{order}{values.dtype.str[1:]}").tobytes()


def _blosc(data: bytes, configuration: JSONObject) -> bytes:
    size = configuration["typesize"]
    shuffle = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}[configuration["shuffle"]]
    codec = numcodecs.Blosc(configuration["cname"], configuration["clevel"], shuffle, configuration["blocksize"])
    whole = np.frombuffer(data, np.dtype(("V", size)) if len(data) % size == 0 else "u1")
    return bytes(codec.encode(whole))


_STEPS: dict[str, Callable[[bytes, JSONObject], bytes]] = {
    "gzip": lambda data, configuration: gzip.compress(data, configuration["level"], mtime=0),
    "zstd": lambda data, configuration: bytes(numcodecs.Zstd(configuration["level"]).encode(data)),
    "blosc": _blosc,
    "crc32c": lambda data, _: data + google_crc32c.value(data).to_bytes(4, "little"),
}


def encode(values: Values, codecs: Sequence[JSONObject]) -> bytes:
    """The bytes of one chunk under a list of codecs of format 3."""
    data = b""
    for codec in codecs:
        name, configuration = codec["name"], codec.get("configuration", {})
        if name == "transpose":
            values = values.transpose(configuration["order"])
        elif name == "bytes":
            data = _swap(values, configuration)
        elif name == "sharding_indexed":
            data = _shard(values, configuration)
        else:
            data = _STEPS[name](data, configuration)
    return data


def _shard(values: Values, configuration: JSONObject) -> bytes:
    """A shard whose inner chunks that hold only zeros are missing."""
    lengths = configuration["chunk_shape"]
    counts = [size // length for size, length in zip(values.shape, lengths, strict=True)]
    index = np.full((*counts, 2), MISSING, "u8")
    at_start = configuration.get("index_location", "end") == "start"
    index_size = len(encode(index, configuration["index_codecs"]))
    parts, offset = [], index_size if at_start else 0
    for coords in itertools.product(*map(range, counts)):
        inner = np.asarray(values[region(coords, lengths)])
        if not inner.tobytes().strip(b"\0"):
            continue
        part = encode(inner, configuration["codecs"])
        index[coords] = offset, len(part)
        parts.append(part)
        offset += len(part)
    encoded = encode(index, configuration["index_codecs"])
    return b"".join([encoded, *parts] if at_start else [*parts, encoded])


def encode_v2(values: Values, document: JSONObject) -> bytes:
    """The bytes of one chunk under a document of format 2."""
    data: Any = np.frombuffer(values.astype(document["dtype"]).tobytes(order=document["order"]), document["dtype"])
    for configuration in [*(document["filters"] or ()), *filter(None, [document["compressor"]])]:
        if configuration["id"] == "gzip":
            data = _STEPS["gzip"](bytes(data), configuration)  # without the time, which numcodecs writes
        else:
            data = numcodecs.get_codec(dict(configuration)).encode(data)
    return bytes(data)


def chunks_of(values: Values, lengths: Sequence[int], fill: Any) -> dict[tuple[int, ...], Values]:
    """The chunks of an array by their coords, those at its edge filled up."""
    counts = [math.ceil(size / length) for size, length in zip(values.shape, lengths, strict=True)]
    whole = np.full([count * length for count, length in zip(counts, lengths, strict=True)], fill, values.dtype)
    whole[tuple(map(slice, values.shape))] = values
    return {coords: np.asarray(whole[region(coords, lengths)]) for coords in itertools.product(*map(range, counts))}


def region(coords: Sequence[int], lengths: Sequence[int]) -> tuple[slice, ...]:
    """The elements of a chunk in its array."""
    return tuple(slice(at * length, (at + 1) * length) for at, length in zip(coords, lengths, strict=True))
