"""From one format to another by metadata alone: the chunks stay what and where they are."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr

import tessarr
from tessarr import model
from tessarr.errors import MetadataValidationError
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.model.conversion import downgrade, upgrade
from tessarr.stores.memory.store import MemoryStore
from tests.conformance.documents import array_document, v2_array_document


def v2(**changes: Any) -> dict[str, Any]:
    return v2_array_document((5, 4), (2, 3)) | changes


def upgraded(document: dict[str, Any], attributes: dict[str, Any] | None = None, **options: Any) -> upgrade.Converted:
    documents = {".zarray": document, **({".zattrs": attributes} if attributes else {})}
    return upgrade.array_to_v3(formats.parse_node(2, documents).node, **options)  # type: ignore[arg-type]


def written(document: dict[str, Any], values: Any, **attributes: Any) -> MemoryStore:
    """A store holding a v2 array with these values, written by tessarr."""
    store = MemoryStore()
    store.set(".zarray", json.dumps(document).encode())
    if attributes:
        store.set(".zattrs", json.dumps(attributes).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tessarr.open_array(store, mode="r+")[...] = values
    return store


NUMBERS = (np.arange(20).reshape(5, 4) * 7 - 30).astype("i8")


def times(name: str, unit: str, factor: int) -> dict[str, Any]:
    return {"name": f"numpy.{name}", "configuration": {"unit": unit, "scale_factor": factor}}


DTYPES: list[tuple[Any, Any, Any, str | None]] = [
    ("<i4", NUMBERS, "int32", "little"),
    (">f8", NUMBERS / 3, "float64", "big"),
    ("|b1", NUMBERS % 2 == 0, "bool", None),
    ("|u1", NUMBERS % 256, "uint8", None),
    ("<c16", NUMBERS * 1j, "complex128", "little"),
    (">f2", NUMBERS, "float16", "big"),
    ("<M8[ns]", NUMBERS.astype("M8[ns]"), times("datetime64", "ns", 1), "little"),
    (">m8[25s]", NUMBERS.astype("m8[25s]"), times("timedelta64", "s", 25), "big"),
    ("<U12", NUMBERS.astype("U12"), {"name": "fixed_length_utf32", "configuration": {"length_bytes": 48}}, "little"),
    ("|S10", NUMBERS.astype("S10"), {"name": "null_terminated_bytes", "configuration": {"length_bytes": 10}}, None),
]  # fmt: skip


@pytest.mark.spec("UPG-02", "UPG-03", "ZEP1-02")
@pytest.mark.parametrize(("dtype", "values", "data_type", "endian"), DTYPES, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("separator", [".", "/"])
def test_every_data_type_reads_the_same_chunks_as_v3(
    dtype: str, values: Any, data_type: Any, endian: str | None, separator: str
) -> None:
    fill: Any = None if dtype[1] in "MmUS" else [0, 0] if dtype[1] == "c" else 0
    document = v2(dtype=dtype, fill_value=fill, dimension_separator=separator)
    store = written(document, values)
    new = upgraded(document).metadata.to_dict()
    assert new["data_type"] == data_type
    stated = {"configuration": {"endian": endian}} if endian else {}
    assert new["codecs"] == [{"name": "bytes", **stated}]
    assert new["chunk_key_encoding"] == {"name": "v2", "configuration": {"separator": separator}}
    before = tessarr.open_array(store, mode="r", zarr_format=2)[...]
    store.set("zarr.json", json.dumps(new).encode())
    after = tessarr.open_array(store, mode="r", zarr_format=3)[...]
    np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(after, np.asarray(values).astype(after.dtype))


@pytest.mark.spec("UPG-02")
def test_the_one_chunk_of_a_0d_array_is_found() -> None:
    document = v2(shape=[], chunks=[])
    store = written(document, 7)
    assert store.exists("0")
    store.set("zarr.json", json.dumps(upgraded(document).metadata.to_dict()).encode())
    assert tessarr.open_array(store, mode="r", zarr_format=3)[()] == 7


@pytest.mark.spec("UPG-03")
@pytest.mark.parametrize(
    ("dtype", "data_type"),
    [
        ([["a", "<i2"], ["b", "<f8"], ["c", "|u1"]], ["int16", "float64", "uint8"]),
        ([["a", ">i2"], ["b", [["x", ">f4"], ["y", "|b1"]]]], None),
    ],
)
def test_structured_types_become_struct(dtype: Any, data_type: Any) -> None:
    values = np.zeros((5, 4), [("a", "i2"), ("b", "f8"), ("c", "u1")]) if data_type else None
    document = v2(dtype=dtype, fill_value=None)
    new = upgraded(document)
    assert new.metadata.data_type.name == "struct"
    if values is not None:
        values["a"] = NUMBERS
        values["b"] = NUMBERS / 3
        store = written(document, values)
        store.set("zarr.json", json.dumps(new.metadata.to_dict()).encode())
        np.testing.assert_array_equal(tessarr.open_array(store, mode="r", zarr_format=3)[...], values)


@pytest.mark.spec("UPG-03")
def test_raw_bytes_become_r_bits() -> None:
    document = v2(dtype="|V3", fill_value="AQID")
    new = upgraded(document).metadata.to_dict()
    assert new["data_type"] == "r24"
    assert new["fill_value"] == [1, 2, 3]


@pytest.mark.spec("UPG-03")
def test_objects_that_are_text_become_string() -> None:
    document = v2(dtype="|O", fill_value="", filters=[{"id": "vlen-utf8"}], compressor={"id": "zstd", "level": 1})
    values = np.array([["a", "ü", "", "long" * 99]] * 5, dtype=object)
    store = written(document, values)
    new = upgraded(document).metadata.to_dict()
    assert new["data_type"] == "string"
    assert [codec["name"] for codec in new["codecs"]] == ["vlen-utf8", "zstd"]
    store.set("zarr.json", json.dumps(new).encode())
    assert tessarr.open_array(store, mode="r", zarr_format=3)[...].tolist() == values.tolist()


@pytest.mark.spec("UPG-04")
@pytest.mark.parametrize("dtype", [[["a", "<i2"], ["b", ">i2"]], [["a", "<i2", [3]]]])
def test_records_of_mixed_byte_order_or_with_arrays_are_refused(dtype: Any) -> None:
    with pytest.raises(MetadataValidationError) as caught:
        upgraded(v2(dtype=dtype, fill_value=None))
    assert [problem.loc for problem in caught.value.problems] == [("dtype",)]


@pytest.mark.spec("UPG-05")
def test_order_f_becomes_a_transpose_that_1d_arrays_do_not_need() -> None:
    document = v2(order="F")
    store = written(document, NUMBERS)
    new = upgraded(document).metadata.to_dict()
    assert new["codecs"][0] == {"name": "transpose", "configuration": {"order": [1, 0]}}
    store.set("zarr.json", json.dumps(new).encode())
    np.testing.assert_array_equal(tessarr.open_array(store, mode="r", zarr_format=3)[...], NUMBERS)
    flat = upgraded(v2(order="F", shape=[5], chunks=[2])).metadata.to_dict()
    assert [codec["name"] for codec in flat["codecs"]] == ["bytes"]


def blosc(cname: str, clevel: int, shuffle: str) -> dict[str, Any]:
    members = {"typesize": 4, "cname": cname, "clevel": clevel, "shuffle": shuffle, "blocksize": 0}
    return {"name": "blosc", "configuration": members}


COMPRESSORS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
        blosc("lz4", 5, "shuffle"),
    ),
    (
        {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": -1, "blocksize": 0},
        blosc("zstd", 1, "shuffle"),
    ),
    (
        {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2, "blocksize": 0},
        blosc("zstd", 1, "bitshuffle"),
    ),
    ({"id": "gzip", "level": 3}, {"name": "gzip", "configuration": {"level": 3}}),
    ({"id": "zstd", "level": 3}, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}),
    ({"id": "zlib", "level": 3}, {"name": "numcodecs.zlib", "configuration": {"level": 3}}),
    ({"id": "bz2", "level": 3}, {"name": "numcodecs.bz2", "configuration": {"level": 3}}),
    ({"id": "lz4", "acceleration": 1}, {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}),
    ({"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}, {"name": "numcodecs.lzma"}),
]  # fmt: skip


@pytest.mark.spec("UPG-06")
@pytest.mark.parametrize(("compressor", "codec"), COMPRESSORS, ids=lambda value: str(value)[:24])
def test_every_compressor_has_its_codec(compressor: dict[str, Any], codec: dict[str, Any]) -> None:
    document = v2(compressor=compressor)
    store = written(document, NUMBERS)
    converted = upgraded(document)
    new = converted.metadata.to_dict()["codecs"][-1]
    assert new["name"] == codec["name"]
    if "configuration" in codec:
        assert new["configuration"] == codec["configuration"]
    assert any("not a registered name" in note for note in converted.notes) is codec["name"].startswith("numcodecs")
    store.set("zarr.json", json.dumps(converted.metadata.to_dict()).encode())
    np.testing.assert_array_equal(tessarr.open_array(store, mode="r", zarr_format=3)[...], NUMBERS)


@pytest.mark.spec("UPG-06")
def test_automatic_shuffle_of_single_bytes_is_bitshuffle() -> None:
    compressor = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}
    new = upgraded(v2(dtype="|u1", compressor=compressor)).metadata.to_dict()["codecs"][-1]
    assert new["configuration"]["shuffle"] == "bitshuffle"
    assert new["configuration"]["typesize"] == 1


FILTERS: list[tuple[str, list[dict[str, Any]], list[str]]] = [
    ("<i4", [{"id": "delta", "dtype": "<i4"}], ["numcodecs.delta", "bytes:little"]),
    (">i4", [{"id": "delta", "dtype": ">i4", "astype": ">i2"}], ["numcodecs.delta", "bytes:big"]),
    ("<f8", [{"id": "fixedscaleoffset", "scale": 1, "offset": 0, "dtype": "<f8", "astype": "|u1"}],
     ["numcodecs.fixedscaleoffset", "bytes"]),
    ("<f8", [{"id": "quantize", "digits": 2, "dtype": "<f8", "astype": "<f4"}], ["numcodecs.quantize", "bytes:little"]),
    ("<f4", [{"id": "bitround", "keepbits": 20}], ["numcodecs.bitround", "bytes:little"]),
    ("|b1", [{"id": "packbits"}], ["numcodecs.packbits", "bytes"]),
    ("<i4", [{"id": "shuffle", "elementsize": 4}], ["bytes:little", "numcodecs.shuffle"]),
    ("<i4", [{"id": "delta", "dtype": "<i4"}, {"id": "shuffle", "elementsize": 4}, {"id": "crc32"}],
     ["numcodecs.delta", "bytes:little", "numcodecs.shuffle", "numcodecs.crc32"]),
    ("<i4", [{"id": "crc32c"}], ["bytes:little", "crc32c"]),
    ("<i4", [{"id": "fletcher32"}], ["bytes:little", "numcodecs.fletcher32"]),
]  # fmt: skip


@pytest.mark.spec("UPG-07")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("dtype", "filters", "names"), FILTERS, ids=lambda value: str(value)[:30])
def test_filters_find_their_place_in_the_chain(dtype: str, filters: Any, names: list[str], order: str) -> None:
    document = v2(dtype=dtype, filters=filters, order=order, compressor={"id": "zstd", "level": 0})
    values = np.arange(20).reshape(5, 4).astype(dtype)
    store = written(document, values)
    new = upgraded(document).metadata.to_dict()
    found = [":".join([c["name"], *c.get("configuration", {}).values()]) if c["name"] == "bytes" else c["name"]
             for c in new["codecs"]]  # fmt: skip
    assert found == [*(["transpose"] if order == "F" else []), *names, "zstd"]
    before = tessarr.open_array(store, mode="r", zarr_format=2)[...]
    store.set("zarr.json", json.dumps(new).encode())
    after = tessarr.open_array(store, mode="r", zarr_format=3)[...]
    assert after.tobytes() == before.astype(after.dtype).tobytes()


@pytest.mark.spec("UPG-07")
@pytest.mark.parametrize(
    "changes",
    [
        {"filters": [{"id": "nobody-has-this"}]},
        {"compressor": {"id": "nobody-has-this"}},
        {"filters": [{"id": "shuffle", "elementsize": 4}, {"id": "delta", "dtype": "<i4"}]},
        {"filters": [{"id": "delta", "dtype": "<f8"}]},
        {"dtype": "|O", "filters": [{"id": "json2"}], "fill_value": None},
        {"dtype": "|O", "filters": [{"id": "vlen-array", "dtype": "<i4"}], "fill_value": None},
    ],
)
def test_what_v3_cannot_say_is_refused_with_its_place(changes: Any) -> None:
    with pytest.raises(MetadataValidationError, match="cannot be expressed in Zarr v3") as caught:
        upgraded(v2(**changes))
    assert caught.value.problems
    assert all(problem.loc for problem in caught.value.problems)


@pytest.mark.spec("UPG-08")
@pytest.mark.parametrize(
    ("dtype", "fill", "new"),
    [
        ("<i4", 5, 5),
        ("<i4", None, 0),
        ("|b1", None, False),
        ("<f8", None, 0.0),
        (">f8", "NaN", "NaN"),
        ("<f4", "-Infinity", "-Infinity"),
        ("<f8", 1.5, 1.5),
        ("<M8[s]", None, "NaT"),
        ("<U3", None, ""),
        ("<U3", "ab", "ab"),
        ("|S4", "YWI=", "YWI="),
        ("|V2", "AQI=", [1, 2]),
        ("<c8", [1, "NaN"], [1.0, "NaN"]),
    ],
)
def test_fill_values_keep_their_meaning_and_null_is_decided_and_told(dtype: str, fill: Any, new: Any) -> None:
    converted = upgraded(v2(dtype=dtype, fill_value=fill))
    assert converted.metadata.to_dict()["fill_value"] == new
    assert ([note for note in converted.notes if "fill_value" in note] != []) is (fill is None)


@pytest.mark.spec("UPG-09")
def test_dimension_names_move_and_stay_as_attribute_by_choice() -> None:
    attributes = {"_ARRAY_DIMENSIONS": ["y", "x"], "units": "K"}
    new = upgraded(v2(), attributes).metadata.to_dict()
    assert new["dimension_names"] == ["y", "x"]
    assert new["attributes"] == {"units": "K"}
    kept = upgraded(v2(), attributes, keep_array_dimensions=True).metadata.to_dict()
    assert kept["dimension_names"] == ["y", "x"]
    assert kept["attributes"] == attributes
    odd = upgraded(v2(), {"_ARRAY_DIMENSIONS": "xy"}).metadata.to_dict()
    (said,) = formats.parse_node(2, {".zarray": v2(), ".zattrs": {"_ARRAY_DIMENSIONS": "xy"}}).diagnostics
    assert "_ARRAY_DIMENSIONS" in said.message
    assert odd["attributes"] == {"_ARRAY_DIMENSIONS": "xy"}


@pytest.mark.spec("UPG-01")
@pytest.mark.parametrize(
    ("compression", "options", "compressor"),
    [
        ("zlib", 5, {"id": "zlib", "level": 5}),
        ("bz2", 1, {"id": "bz2", "level": 1}),
        ("none", None, None),
        (None, None, None),
        (
            "blosc",
            {"cname": "lz4", "clevel": 3, "shuffle": 1},
            {"id": "blosc", "cname": "lz4", "clevel": 3, "shuffle": 1},
        ),
        ("lzma", {"format": 1, "preset": 1}, {"id": "lzma", "format": 1, "preset": 1}),
    ],
)
def test_v1_becomes_v2_word_for_word(compression: Any, options: Any, compressor: Any) -> None:
    meta = {
        "zarr_format": 1,
        "shape": [4],
        "chunks": [2],
        "dtype": "<i4",
        "compression": compression,
        "compression_opts": options,
        "fill_value": 3,
        "order": "C",
    }
    old = formats.parse_node(1, {"meta": meta, "attrs": {"a": 1}}).node
    assert isinstance(old, ArrayMetadata)
    assert upgrade.array_to_v2(old).metadata.documents() == {
        ".zarray": {
            "zarr_format": 2,
            "shape": [4],
            "chunks": [2],
            "dtype": "<i4",
            "compressor": compressor,
            "fill_value": 3,
            "order": "C",
            "filters": None,
        },
        ".zattrs": {"a": 1},
    }


@pytest.mark.spec("ZOM-17")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dtype": ">f8", "order": "F", "fill_value": "NaN"},
        {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}},
        {"compressor": {"id": "zstd", "level": 3}, "filters": [{"id": "delta", "dtype": "<i4", "astype": "<i4"}]},
        {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "fill_value": "x"},
        {"dtype": "<U4", "fill_value": "x", "dimension_separator": "/"},
        {"dtype": [["a", "<i2"], ["b", "<f8"]], "fill_value": "AAAAAAAAAAAAAA=="},
    ],
)
def test_v2_to_v3_and_back_is_the_same_model(changes: Any) -> None:
    array = model.from_json({**v2(**changes), "attributes": {"_ARRAY_DIMENSIONS": ["y", "x"], "u": 1}})
    spec = model.GroupSpec(
        zarr_format=2, attributes={"t": 1}, members={"g": model.GroupSpec(zarr_format=2, members={"x": array})}
    )
    new = model.to_v3(spec)
    assert new.spec.zarr_format == 3
    assert model.validate(new.spec) == []
    back = model.to_v2(new.spec)
    assert model.diff(spec, back.spec) == []


@pytest.mark.spec("ZOM-17")
def test_every_blocker_of_every_node_is_told() -> None:
    good = model.from_json(v2())
    bad = model.from_json(v2(compressor={"id": "nobody-has-this"}))
    worse = model.from_json(v2(dtype=[["a", "<i2"], ["b", ">i2"]], fill_value=None))
    spec = model.GroupSpec(zarr_format=2, members={"good": good, "bad": bad, "worse": worse})
    with pytest.raises(MetadataValidationError) as caught:
        model.to_v3(spec)
    assert {problem.loc[0] for problem in caught.value.problems} == {"/bad", "/worse"}


V3 = array_document((4, 6), (2, 3), chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}})
BLOCKERS: list[tuple[dict[str, Any], str]] = [
    ({"chunk_key_encoding": {"name": "default"}}, "other keys"),
    ({"chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [2, [[3, 2]]]}}},
     "rectilinear"),
    ({"codecs": [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 1], "codecs": V3["codecs"], "index_codecs": [*V3["codecs"], "crc32c"]}}]}, "sharding_indexed"),
    ({"codecs": [{"name": "scale_offset", "configuration": {"offset": 1, "scale": 1}}, *V3["codecs"]]}, "scale_offset"),
    ({"shape": [4, 4, 4], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2, 2]}},
      "codecs": [{"name": "transpose", "configuration": {"order": [1, 0, 2]}}, *V3["codecs"]]}, "transpose"),
    ({"dimension_names": ["y", None]}, "without a name"),
]  # fmt: skip


@pytest.mark.spec("ZOM-17")
@pytest.mark.parametrize(("changes", "word"), BLOCKERS, ids=[word for _, word in BLOCKERS])
def test_v3_that_v2_cannot_say_is_refused(changes: Any, word: str) -> None:
    array = formats.parse_node(3, {"zarr.json": {**V3, **changes}}).node
    with pytest.raises(MetadataValidationError, match=word):
        downgrade.array_to_v2(array)  # type: ignore[arg-type]


@pytest.mark.spec("ZOM-17")
def test_a_model_may_change_its_chunk_keys_because_it_has_no_chunks() -> None:
    spec = model.from_json({**V3, "chunk_key_encoding": "default", "dimension_names": ["y", "x"]})
    mapped = model.to_v2(spec, rekey=True)
    assert mapped.spec.dimension_separator == "/"
    assert mapped.spec.attributes == {"_ARRAY_DIMENSIONS": ["y", "x"]}
    assert any("chunk keys change" in note.message for note in mapped.notes)


@pytest.mark.spec("UPG-02", "UPG-06")
@pytest.mark.parametrize("compressor", ["blosc", "zstd", "gzip", "zlib"])
def test_what_zarr_python_wrote_as_v2_it_reads_through_our_v3_document(compressor: str, tmp_path: Path) -> None:
    codec = numcodecs.get_codec({"id": compressor})
    place = tmp_path / "x.zarr"
    array = zarr.create_array(
        place, shape=(5, 4), chunks=(2, 3), dtype=">f4", zarr_format=2, compressors=codec, order="F"
    )
    array[...] = NUMBERS
    documents = {".zarray": json.loads((place / ".zarray").read_text())}
    new = upgrade.array_to_v3(formats.parse_node(2, documents).node)  # type: ignore[arg-type]
    (place / "zarr.json").write_text(json.dumps(new.metadata.to_dict()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = zarr.open_array(place, mode="r", zarr_format=3)
        np.testing.assert_array_equal(found[...], NUMBERS)
