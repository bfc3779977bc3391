"""Changes of one thing in an array's files, each with a label by which the ledger explains what readers make of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tests.differential.encoding import JSONObject

_Change = Callable[[JSONObject, Random], str | None]
"""It changes a document, or returns another text in its place."""


def change_chunk(label: str, data: bytes) -> bytes:
    """The bytes of a chunk, changed."""
    if label == "chunk: truncated":
        return data[:-1]
    if label == "chunk: followed by a byte":
        return data + b"\1"
    return b""


def _remove(member: str) -> _Change:
    def change(document: JSONObject, _: Random) -> None:
        document.pop(member, None)

    return change


def _set(member: str, *values: Any) -> _Change:
    def change(document: JSONObject, rng: Random) -> None:
        document[member] = rng.choice(values)

    return change


def _codecs(document: JSONObject) -> Iterator[JSONObject]:
    """All codecs, those within shards included."""
    waiting: list[Any] = list(document["codecs"])
    while waiting:
        codec = waiting.pop()
        yield codec
        configuration = codec.get("configuration", {})
        waiting += [*configuration.get("codecs", []), *configuration.get("index_codecs", [])]


def _configure(name: str, member: str, *values: Any) -> _Change:
    """Set a member of the configuration of one codec, or remove it where there is no value."""

    def change(document: JSONObject, rng: Random) -> None:
        found = [codec for codec in _codecs(document) if codec["name"] == name]
        if not found:
            return
        configuration = rng.choice(found).setdefault("configuration", {})
        if values:
            configuration[member] = rng.choice(values)
        else:
            configuration.pop(member, None)

    return change


def _element(member: str, *values: Any) -> _Change:
    """Replace one element of a list."""

    def change(document: JSONObject, rng: Random) -> None:
        elements: list[Any] = document.get(member) or []
        if elements:
            elements[rng.randrange(len(elements))] = rng.choice(values)

    return change


def _chunk_shape(*values: Any) -> _Change:
    return lambda document, rng: _element("chunk_shape", *values)(document["chunk_grid"]["configuration"], rng)


def _grid(member: str, value: Any) -> _Change:
    def change(document: JSONObject, _: Random) -> None:
        document["chunk_grid"]["configuration"][member] = value

    return change


def _fill(kinds: tuple[str, ...], *values: Any) -> _Change:
    """Another fill value, for data types whose names begin so."""

    def change(document: JSONObject, rng: Random) -> None:
        dtype: str = document["data_type"] if document["zarr_format"] == 3 else document["dtype"]
        if dtype.startswith(kinds):
            document["fill_value"] = rng.choice(values)

    return change


def _insert_codec(at: int, codec: Any) -> _Change:
    def change(document: JSONObject, _: Random) -> None:
        document["codecs"].insert(at if at >= 0 else len(document["codecs"]), codec)

    return change


def _short_names(document: JSONObject, _: Random) -> None:
    document["codecs"] = [codec if codec.get("configuration") else codec["name"] for codec in document["codecs"]]


def _reverse_codecs(document: JSONObject, _: Random) -> None:
    document["codecs"].reverse()


def _rename_key_encoding(document: JSONObject, _: Random) -> None:
    document["chunk_key_encoding"] = document["chunk_key_encoding"]["name"]


def _separator(document: JSONObject, rng: Random) -> None:
    document["chunk_key_encoding"]["configuration"] = {"separator": rng.choice(["-", "", None, "//"])}


def _another_axis(member: str) -> _Change:
    def change(document: JSONObject, _: Random) -> None:
        document[member] = [*document[member], 1]

    return change


def _twice(member: str, value: Any) -> _Change:
    """The document with a member a second time, at its end."""

    def change(document: JSONObject, _: Random) -> str:
        return json.dumps(document)[:-1] + f", {json.dumps(member)}: {json.dumps(value)}}}"

    return change


def _text(make: Callable[[str], str]) -> _Change:
    return lambda document, _: make(json.dumps(document))


_CHUNKS: dict[str, _Change] = {
    f"chunk: {what}": lambda _document, _rng: None for what in ("truncated", "followed by a byte", "emptied")
}
_BOTH: dict[str, _Change] = {
    "shape: negative": _element("shape", -1),
    "shape: a float": _element("shape", 4.0),
    "shape: not whole": _element("shape", 3.5),
    "shape: a text": _element("shape", "4"),
    "shape: null": _element("shape", None),
    "shape: true": _element("shape", True),
    "shape: one axis more": _another_axis("shape"),
    "zarr_format: a text": _text(
        lambda text: text.replace('"zarr_format": 3', '"zarr_format": "3"').replace(
            '"zarr_format": 2', '"zarr_format": "2"'
        )
    ),
    "zarr_format: a float": _text(
        lambda text: text.replace('"zarr_format": 3', '"zarr_format": 3.0').replace(
            '"zarr_format": 2', '"zarr_format": 2.0'
        )
    ),
    "zarr_format: unknown": _set("zarr_format", 4, 30, None),
    "document: a member twice": _twice("shape", [1]),
    "document: something behind it": _text(lambda text: text + " x"),
    "document: a comma too many": _text(lambda text: text[:-1] + ",}"),
    "document: a byte order mark": _text(lambda text: "\ufeff" + text),
    "document: space around it": _text(lambda text: f"\n\t {text}\r\n"),
    "fill_value: missing": _remove("fill_value"),
}
V3_CHANGES: dict[str, _Change] = {
    **_CHUNKS,
    **_BOTH,
    **{
        f"{member}: missing": _remove(member)
        for member in ("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "codecs")
    },
    "a member that nobody knows": _set("something", 1, "x", [], {"name": "x"}),
    "a member that nobody knows, to be understood": _set("something", {"must_understand": True}),
    "a member that nobody knows, to be ignored": _set("something", {"must_understand": False}),
    "node_type: group": _set("node_type", "group"),
    "node_type: unknown": _set("node_type", "table", None),
    "data_type: unknown": _set("data_type", "int3", "", "float128"),
    "data_type: of NumPy": _set("data_type", "<i4", "f8", "i2"),
    "data_type: in capitals": _set("data_type", "Int32", "FLOAT32"),
    "data_type: an object": _set("data_type", {"name": "int16"}, {"name": "int16", "configuration": {}}),
    "data_type: null": _set("data_type", None, 1),
    "chunk_shape: 0": _chunk_shape(0),
    "chunk_shape: negative": _chunk_shape(-1),
    "chunk_shape: a float": _chunk_shape(2.0),
    "chunk_shape: a text": _chunk_shape("2"),
    "chunk_shape: one axis more": lambda document, rng: _another_axis("chunk_shape")(
        document["chunk_grid"]["configuration"], rng
    ),
    "chunk_grid: unknown": _set("chunk_grid", {"name": "irregular", "configuration": {"chunk_shape": [1]}}),
    "chunk_grid: a text": _set("chunk_grid", "regular"),
    "chunk_grid: a member that nobody knows": _grid("something", 1),
    "chunk_key_encoding: a text": _rename_key_encoding,
    "chunk_key_encoding: unknown": _set("chunk_key_encoding", {"name": "v4"}, {"name": ""}),
    "chunk_key_encoding: separator": _separator,
    "fill_value: null": _set("fill_value", None),
    "fill_value: a number as text": _set("fill_value", "0", "1"),
    "fill_value: out of range": _fill(("uint8", "uint1", "uint3"), -1, 2**40),
    "fill_value: whole float of an integer": _fill(("int", "uin"), 1.0),
    "fill_value: not whole of an integer": _fill(("int", "uin"), 1.5),
    "fill_value: true of a number": _fill(("int", "uin", "flo"), True),
    "fill_value: number of a bool": _fill(("bool",), 0, 1, 2),
    "fill_value: text of a bool": _fill(("bool",), "true", "false"),
    "fill_value: nan in other words": _fill(("float",), "nan", "+Infinity", "inf", "Inf", "-inf"),
    "fill_value: bits": _fill(("float32",), "0x7fc00001", "0x3f800000"),
    "fill_value: bits of another length": _fill(("float",), "0x0", "0x7fc0000000000000000"),
    "fill_value: bits in capitals": _fill(("float32",), "0x7FC00001"),
    "fill_value: a number of a complex": _fill(("complex",), 1, 1.5, "NaN"),
    "fill_value: three numbers of a complex": _fill(("complex",), [1, 2, 3], [1]),
    "fill_value: a list": _fill(("int", "uin", "flo"), [0], []),
    "codecs: none": _set("codecs", []),
    "codecs: null": _set("codecs", None),
    "codecs: short names": _short_names,
    "codecs: reversed": _reverse_codecs,
    "codecs: two that make bytes": _insert_codec(0, {"name": "bytes", "configuration": {"endian": "little"}}),
    "codecs: unknown": _insert_codec(-1, {"name": "nonesuch", "configuration": {}}),
    "codecs: unknown, to be ignored": _insert_codec(-1, {"name": "nonesuch", "must_understand": False}),
    "codecs: compression first": _insert_codec(0, {"name": "gzip", "configuration": {"level": 1}}),
    "codecs: transposition last": _insert_codec(-1, {"name": "transpose", "configuration": {"order": [0]}}),
    "codecs: a text": _insert_codec(-1, 5),
    "bytes: no byte order": _configure("bytes", "endian"),
    "bytes: another byte order": _configure("bytes", "endian", "middle", "Little", None, 1),
    "bytes: a member that nobody knows": _configure("bytes", "something", 1),
    "gzip: no level": _configure("gzip", "level"),
    "gzip: level": _configure("gzip", "level", 10, -1, "5", 1.5, None),
    "gzip: a member that nobody knows": _configure("gzip", "something", 1),
    "zstd: no level": _configure("zstd", "level"),
    "zstd: level": _configure("zstd", "level", 23, -200000, "5", 1.5, None),
    "zstd: no checksum": _configure("zstd", "checksum"),
    "zstd: checksum": _configure("zstd", "checksum", "true", 1, None),
    "blosc: no typesize": _configure("blosc", "typesize"),
    "blosc: typesize": _configure("blosc", "typesize", 0, 300, "4", None),
    "blosc: shuffle": _configure("blosc", "shuffle", 1, "Shuffle", None, "auto"),
    "blosc: cname": _configure("blosc", "cname", "lz5", "LZ4", None),
    "blosc: clevel": _configure("blosc", "clevel", 10, -1, "5"),
    "blosc: no blocksize": _configure("blosc", "blocksize"),
    "blosc: blocksize": _configure("blosc", "blocksize", -1, "0", None),
    "crc32c: a member that nobody knows": _configure("crc32c", "something", 1),
    "transpose: order": _configure("transpose", "order", [0, 0], [5], "C", "F", None, [-1], ["0"]),
    "sharding: inner chunks that do not fit": _configure("sharding_indexed", "chunk_shape", [5], [5, 5], [5, 5, 5]),
    "sharding: no chunk_shape": _configure("sharding_indexed", "chunk_shape"),
    "sharding: no codecs": _configure("sharding_indexed", "codecs"),
    "sharding: no index_codecs": _configure("sharding_indexed", "index_codecs"),
    "sharding: compressed index": _configure(
        "sharding_indexed",
        "index_codecs",
        [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}],
    ),
    "sharding: index_location": _configure("sharding_indexed", "index_location", "middle", None, 1),
    "sharding: a member that nobody knows": _configure("sharding_indexed", "something", 1),
    "dimension_names: too many": _set("dimension_names", ["a", "b", "c", "d"]),
    "dimension_names: numbers": lambda document, _: document.update(dimension_names=[1] * len(document["shape"])),
    "dimension_names: null": _set("dimension_names", None),
    "dimension_names: a text": _set("dimension_names", "xy"),
    "dimension_names: the same": lambda document, _: document.update(dimension_names=["x"] * len(document["shape"])),
    "attributes: null": _set("attributes", None),
    "attributes: a list": _set("attributes", [], [1]),
    "attributes: a member twice": _text(lambda text: text[:-1] + ', "attributes": {"a": 1, "a": 2}}'),
    "storage_transformers: none": _set("storage_transformers", []),
    "storage_transformers: unknown": _set("storage_transformers", [{"name": "nonesuch", "configuration": {}}]),
}
V2_CHANGES: dict[str, _Change] = {
    **_CHUNKS,
    **_BOTH,
    **{
        f"{member}: missing": _remove(member)
        for member in ("zarr_format", "shape", "chunks", "dtype", "compressor", "order", "filters")
    },
    "a member that nobody knows": _set("something", 1, {"must_understand": True}),
    "dtype: unknown": _set("dtype", "<x4", "", "<i3", "int3"),
    "dtype: without byte order": _set("dtype", "i4", "f8", "u2"),
    "dtype: a name": _set("dtype", "int32", "float64"),
    "dtype: null": _set("dtype", None, 1, []),
    "dtype: byte order of the machine": _set("dtype", "=i4", "|i4"),
    "dtype: byte order of a byte": _set("dtype", "<i1", ">u1", "<b1"),
    "chunks: 0": _element("chunks", 0),
    "chunks: negative": _element("chunks", -1),
    "chunks: a float": _element("chunks", 2.0),
    "chunks: a text": _element("chunks", "2"),
    "chunks: one axis more": _another_axis("chunks"),
    "chunks: false": _set("chunks", False, True, None),
    "order: unknown": _set("order", "K", "c", None),
    "fill_value: null": _set("fill_value", None),
    "fill_value: a number as text": _set("fill_value", "0", "1"),
    "fill_value: out of range": _fill(("|u1", "<u2"), -1, 2**40),
    "fill_value: not whole of an integer": _fill(("<i", ">i", "|i"), 1.5),
    "fill_value: whole float of an integer": _fill(("<i", ">i", "|i"), 1.0),
    "fill_value: true of a number": _fill(("<i", ">i", "|i", "<f"), True),
    "fill_value: number of a bool": _fill(("|b",), 0, 1, 2),
    "fill_value: nan in other words": _fill(("<f", ">f"), "nan", "inf"),
    "fill_value: a list": _fill(("<i", "<f"), [0], []),
    "filters: none": _set("filters", []),
    "filters: unknown": _set("filters", [{"id": "nonesuch"}]),
    "filters: a number": _set("filters", 1, "delta"),
    "compressor: unknown": _set("compressor", {"id": "nonesuch"}),
    "compressor: no id": _set("compressor", {}, {"level": 1}),
    "compressor: a text": _set("compressor", "zlib"),
    "compressor: a member that nobody knows": lambda document, _: (
        document["compressor"].update(something=1) if document["compressor"] else None
    ),
    "compressor: level": lambda document, _: (
        document["compressor"].update(level=99) if document["compressor"] else None
    ),
    "dimension_separator: unknown": _set("dimension_separator", "-", "", None),
}
