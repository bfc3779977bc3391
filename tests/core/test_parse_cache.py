"""Documents that were parsed before are not parsed again, and nobody sees a difference."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import registry
from tessarr.codecs.base import BytesToBytes
from tessarr.common.strict_json import FloatLiteral
from tessarr.core.stored import parse_cache
from tessarr.core.stored.walk import Entry
from tessarr.errors import MetadataValidationError, UnknownCodecError, ZarrRuntimeWarning
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.types import ZarrFormat
from tests.conformance.documents import LITTLE, array_document, v2_array_document

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
V3 = array_document(
    (4, 6),
    (2, 3),
    chunk_key_encoding={"name": "default"},
    codecs=[LITTLE, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
    attributes={"a": [1]},
    dimension_names=["y", None],
)
V2 = v2_array_document((4, 6), (2, 3), compressor={"id": "zlib", "level": 1}, filters=[{"id": "delta", "dtype": "<i4"}])


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_cache, "_cache", {})
    monkeypatch.setattr(parse_cache, "_stored", {})
    monkeypatch.setattr(registry, "_extended", set())


def parse3(document: Any) -> ArrayMetadata:
    node = parse_cache.parse_node(3, {"zarr.json": document})
    assert isinstance(node, ArrayMetadata)
    return node


def parse2(document: Any, attributes: Any = None) -> ArrayMetadata:
    node = parse_cache.parse_node(2, {".zarray": document} | ({} if attributes is None else {".zattrs": attributes}))
    assert isinstance(node, ArrayMetadata)
    return node


def test_a_v3_document_that_is_read_again_gives_the_same_with_attributes_of_its_own() -> None:
    first, second = parse3(V3), parse3(copy.deepcopy(V3))
    other = parse3({**V3, "attributes": {"b": 2}})
    assert second.codecs is first.codecs is other.codecs  # not made anew
    assert first == second != other
    assert other.attributes == {"b": 2}
    assert second.dimension_names == other.dimension_names == ("y", None)
    second.attributes["new"] = 1
    assert parse3(V3).attributes == first.attributes == {"a": [1]}
    del (without := dict(V3))["attributes"]
    assert parse3(without).attributes == {}


def test_a_v2_document_that_is_read_again_gives_the_same_with_objects_of_its_own() -> None:
    first, second = parse2(V2, {"_ARRAY_DIMENSIONS": ["y", "x"]}), parse2(V2)
    assert second.codecs is first.codecs
    assert (first.dimension_names, second.dimension_names) == (("y", "x"), None)
    assert isinstance(second.compressor, dict)
    second.compressor["level"] = 9
    assert parse2(V2).compressor == first.compressor == {"id": "zlib", "level": 1}


def test_members_of_others_are_of_each_document_s_own() -> None:
    stated = {**V2, "dimension_separator": ".", "other": {"a": 1}}
    first, second = parse2(stated), parse2(stated)
    assert second.codecs is first.codecs
    assert second.documents() == first.documents()
    second.extra["other"] = None
    assert parse2(stated).documents() == first.documents()
    ours = {**V3, "other": {"must_understand": False, "a": [1]}}
    assert parse3(ours).extra is not parse3(ours).extra


@pytest.mark.parametrize(
    ("member", "value"),
    [("shape", [4, 9]), ("fill_value", 1), ("data_type", "uint32"), ("dimension_names", ["y", "x"])],
)
def test_what_differs_in_anything_but_attributes_is_parsed(member: str, value: Any) -> None:
    parse3(V3)
    found = parse3({**V3, member: value})
    assert found.to_dict()[member] == value


def fill_of(metadata: ArrayMetadata) -> Any:
    assert metadata.fill_value is not None
    return metadata.fill_value


def test_equal_values_of_another_kind_are_another_document() -> None:
    parse3({**V3, "fill_value": 1})
    with pytest.raises(MetadataValidationError):
        parse3({**V3, "fill_value": True})
    negative = {**V3, "data_type": "float32", "fill_value": -0.0}
    assert [bool(np.signbit(fill_of(parse3(d)))) for d in ({**negative, "fill_value": 0.0}, negative)] == [
        False,
        True,
    ]


def test_floats_are_told_by_their_text() -> None:
    def read(text: str) -> ArrayMetadata:
        data = json.dumps({**V3, "data_type": "float32"}).replace('"fill_value": 0', f'"fill_value": {text}').encode()
        return parse3(formats.loads("zarr.json", data, key="zarr.json"))

    nearly = "0.1" + "0" * 20 + "1"
    first, same, other = read("0.1"), read("0.1"), read(nearly)
    assert same.codecs is first.codecs is not other.codecs
    assert fill_of(read("-0.0")).tobytes() != fill_of(read("0.0")).tobytes() == fill_of(read("0")).tobytes()


@pytest.mark.parametrize("wrong", [None, [], 1])
def test_attributes_are_checked_each_time(wrong: Any) -> None:
    parse3(V3)
    with pytest.raises(MetadataValidationError):
        parse3({**V3, "attributes": wrong})
    parse2(V2, {})
    with pytest.raises(MetadataValidationError):
        parse2(V2, wrong or [])


@pytest.mark.parametrize(
    "doubtful",
    [
        {"data_type": {"name": "structured", "configuration": {"fields": [["a", "int32"]]}}, "fill_value": "AAAAAA=="},
        {"dimension_names": None},
        {"codecs": [{"name": "endian", "configuration": {"endian": "little"}}]},
        {"codecs": [{"name": "transpose", "configuration": {"order": "F"}}, V3["codecs"][0]]},
        {"shape": [0, 6], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 3]}}},
    ],
)
def test_a_doubtful_v3_document_is_warned_of_each_time(doubtful: dict[str, Any]) -> None:
    for _ in range(3):
        with pytest.warns(ZarrRuntimeWarning):
            parse3({**V3, **doubtful})


@pytest.mark.parametrize("doubtful", [{"filters": []}, {"dtype": "|S4", "fill_value": 0, "filters": None}])
def test_a_doubtful_v2_document_is_warned_of_each_time(doubtful: dict[str, Any]) -> None:
    for _ in range(3):
        with pytest.warns(ZarrRuntimeWarning):
            parse2({**V2, **doubtful})


def test_a_document_that_is_strictly_wrong_is_so_after_it_was_tolerated() -> None:
    document = {**V3, "dimension_names": None}
    with pytest.warns(ZarrRuntimeWarning):
        parse3(document)
    with tessarr.config.set({"strict": True}), pytest.raises(MetadataValidationError):
        parse3(document)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse3(V3)


def test_nothing_is_kept_once_others_register_extensions() -> None:
    from tessarr.codecs.bytes_to_bytes.zstd import ZstdCodec

    first = parse3(V3)

    class Mine(ZstdCodec):
        """Registered under a name that documents have already been read with."""

    registry.register("codec", "zstd", Mine)
    try:
        assert isinstance(parse3(V3).codecs[1], Mine)
    finally:
        registry.register("codec", "zstd", "tessarr.codecs.bytes_to_bytes.zstd:ZstdCodec")
    assert parse3(V3) == first
    assert parse3(V3).codecs is not first.codecs


def test_a_codec_that_another_package_registered_with_numcodecs_is_made_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from numcodecs import Zlib
    from numcodecs import registry as theirs

    class Theirs(Zlib):  # type: ignore[misc]  # numcodecs has no types
        """Not one of numcodecs' own."""

        codec_id = "theirs"

    document = {**V2, "compressor": {"id": "theirs", "level": 1}}

    def encodes() -> bool:
        try:
            codec = parse2(document).codecs[-1]
            assert isinstance(codec, BytesToBytes)
            return bool(codec.encode(b"1"))
        except UnknownCodecError:
            return False

    assert not encodes()
    with monkeypatch.context() as patch:
        patch.setitem(theirs.codec_registry, "theirs", Theirs)
        assert encodes()
        assert parse2(document).codecs is not parse2(document).codecs
    assert not encodes()


@pytest.mark.filterwarnings("ignore::tessarr.errors.ZarrUserWarning")
def test_documents_of_many_writers_say_the_same_when_they_are_read_again() -> None:
    def read(name: str, data: bytes) -> Any:
        try:
            document = formats.loads(name, data, key=name)
            node = parse_cache.parse_node(3 if name == "zarr.json" else 2, {name: document})
        except MetadataValidationError as error:
            return str(error)
        return node.documents() if isinstance(node, ArrayMetadata) else None

    count = 0
    for name in ("zarr.json", ".zarray"):
        for path in FIXTURES.rglob(name):
            first, again = read(name, path.read_bytes()), read(name, path.read_bytes())
            parse_cache._cache.clear()
            assert again == first == read(name, path.read_bytes()), path
            count += first is not None
    assert count > 50
    assert parse_cache._cache


def test_what_is_kept_is_bounded() -> None:
    for length in range(parse_cache._MAX_ENTRIES + 10):
        parse3({**V3, "shape": [length + 1, 6]})
    assert len(parse_cache._cache) <= parse_cache._MAX_ENTRIES
    sizes = [1] * (2 * parse_cache._MAX_KEY_NBYTES)
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [sizes, [6]]}}
    before = len(parse_cache._cache)
    parse3({**V3, "shape": [len(sizes), 6], "chunk_grid": grid})
    assert len(parse_cache._cache) == before


def entry_of(**documents: object) -> Entry:
    names = {"zarr": "zarr.json", "zarray": ".zarray", "zattrs": ".zattrs"}
    return Entry("a", {names[name]: json.dumps(document).encode() for name, document in documents.items()})


@pytest.mark.parametrize(
    ("zarr_format", "documents"),
    [
        (3, {"zarr": V3}),
        (2, {"zarray": V2}),
        (2, {"zarray": V2, "zattrs": {"a": [1], "_ARRAY_DIMENSIONS": ["y", "x"]}}),
    ],
)
def test_equal_stored_documents_are_decoded_once_and_each_node_owns_its_attributes(
    zarr_format: ZarrFormat, documents: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = parse_cache.parse_entry(entry_of(**documents), zarr_format)
    decoded: list[str] = []
    monkeypatch.setattr(Entry, "json", lambda _self, name: decoded.append(name))
    second = parse_cache.parse_entry(entry_of(**documents), zarr_format)
    assert decoded == []
    assert isinstance(first, ArrayMetadata)
    assert first == second
    assert second.attributes is not first.attributes
    for value in first.attributes.values():
        value.append(7)
    assert parse_cache.parse_entry(entry_of(**documents), zarr_format) == second != first or not first.attributes


def test_other_stored_documents_and_other_strictness_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = parse_cache.parse_entry(entry_of(zarr=V3), 3)
    assert isinstance(first, ArrayMetadata)
    other = parse_cache.parse_entry(entry_of(zarr={**V3, "shape": [5, 6]}), 3)
    assert isinstance(other, ArrayMetadata)
    assert (first.shape, other.shape) == ((4, 6), (5, 6))
    assert parse_cache.parse_entry(entry_of(zarray=V2, zattrs={"a": 1}), 2).attributes == {"a": 1}
    assert parse_cache.parse_entry(entry_of(zarray=V2, zattrs={"a": 2}), 2).attributes == {"a": 2}
    assert parse_cache.parse_entry(entry_of(zarray=V2), 2).attributes == {}


def test_attributes_with_floats_keep_their_text() -> None:
    for _ in range(2):
        node = parse_cache.parse_entry(entry_of(zarr={**V3, "attributes": {"scale": 0.1}}), 3)
        assert json.loads(json.dumps(node.attributes)) == {"scale": 0.1}
        assert isinstance(node.attributes["scale"], FloatLiteral)


def test_an_unusual_stored_document_warns_at_each_reading() -> None:
    for _ in range(2):
        with pytest.warns(ZarrRuntimeWarning, match="_ARRAY_DIMENSIONS"):
            parse_cache.parse_entry(entry_of(zarray=V2, zattrs={"_ARRAY_DIMENSIONS": ["y"]}), 2)
