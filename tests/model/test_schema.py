"""The JSON Schemas of the model, held against a real validator and against the parser that opens arrays."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import tessarr
from tessarr import model, registry
from tessarr.common import strict_json
from tessarr.errors import TessarrError
from tessarr.metadata import formats
from tests.model import zep6

FIXTURES = Path(__file__).parents[1] / "fixtures"
VALIDATORS = {number: jsonschema.Draft202012Validator(model.json_schema(number)) for number in (2, 3)}

V3: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "int32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "codecs": [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "bytes", "configuration": {"endian": "little"}},
        {
            "name": "blosc",
            "configuration": {"typesize": 4, "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0},
        },
        {"name": "zstd", "configuration": {"level": 1, "checksum": True}},
        {"name": "gzip", "configuration": {"level": 5}},
        {"name": "crc32c"},
    ],
    "attributes": {"a": 1},
    "dimension_names": ["y", None],
    "storage_transformers": [],
    "extra": {"must_understand": False},
}
SHARDED: dict[str, Any] = {
    **V3,
    "codecs": [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 3],
                "codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}},
                    {"name": "zstd", "configuration": {"level": 1}},
                ],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                "index_location": "end",
            },
        }
    ],
}
V2: dict[str, Any] = {
    "zarr_format": 2,
    "shape": [4, 6],
    "chunks": [2, 3],
    "dtype": "<f8",
    "compressor": {"id": "zlib", "level": 1},
    "fill_value": "NaN",
    "order": "C",
    "filters": [{"id": "delta", "dtype": "<f8"}],
    "dimension_separator": "/",
}
STRUCTURED: dict[str, Any] = {**V2, "dtype": [["a", "<i4"], ["b", "|S3", [2]]], "fill_value": None, "filters": None}

WRONG: tuple[Any, ...] = (None, True, -1, 0, 2.5, "x", [], {}, [None])
RELATIONS = (
    "one per dimension",
    "one entry per dimension",
    "does not divide",
    "does not fit the chunk",
    "permutation",
    "must state the byte order",
    "expected a positive integer, got 0",
    "Base64",
)
"""What the parser says about relations between members, which no JSON Schema can express (tessarr.model.schema.schema)."""


def complaint(document: dict[str, Any]) -> str | None:
    """What the parser has against a document."""
    number = document["zarr_format"]
    name = "zarr.json" if number == 3 else ".zarray" if document.keys() & {"shape", "dtype"} else ".zgroup"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            formats.parse_node(number, {name: document})
        except TessarrError as error:
            return str(error)
    return None


def mutations(document: Any, loc: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], bool, Any]]:
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(items):
        if (*loc, key) == ("zarr_format",) or loc[:1] == ("attributes",):
            continue
        yield (*loc, key), True, None
        for new in WRONG:
            yield (*loc, key), False, new
        if isinstance(value, dict | list):
            yield from mutations(value, (*loc, key))


def mutated(document: Any, loc: tuple[Any, ...], removed: bool, new: Any) -> Any:
    result = copy.deepcopy(document)
    place = result
    for key in loc[:-1]:
        place = place[key]
    if removed:
        del place[loc[-1]]
    else:
        place[loc[-1]] = copy.deepcopy(new)
    return result


@pytest.mark.spec("ZOM-14", "ZOM-15")
@pytest.mark.parametrize("number", [2, 3])
def test_the_schema_is_a_valid_schema(number: Any) -> None:
    schema = model.json_schema(number)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.spec("ZOM-14", "ZOM-15", "ZOM-16")
@pytest.mark.parametrize("document", [V3, SHARDED, V2, STRUCTURED], ids=["v3", "sharded", "v2", "structured"])
def test_schema_and_parser_agree_on_every_mutation_of_a_document(document: dict[str, Any]) -> None:
    validator = VALIDATORS[document["zarr_format"]]
    assert complaint(document) is None
    assert validator.is_valid(document)
    compared = 0
    for loc, removed, new in mutations(document):
        if document is SHARDED and loc[0] != "codecs":
            continue
        changed = mutated(document, loc, removed, new)
        said, valid = complaint(changed), validator.is_valid(changed)
        if said is None:
            assert valid, (loc, removed, new)
        elif valid:
            assert any(phrase in said for phrase in RELATIONS), (loc, removed, new, said)
        compared += 1
    assert compared > 100


FILLS: dict[str, tuple[list[Any], list[Any]]] = {
    "bool": ([True, False], [0, "true", None]),
    "int8": ([-128, 127], [128, -129, 1.5, "1", True, None]),
    "uint64": ([0, 2**64 - 1], [-1, 2**64]),
    "float16": ([1.5, "NaN", "Infinity", "0x7e00"], ["0x7e0", "nan", [1], None]),
    "float64": ([1, "NaN", "-Infinity", "0x7ff8000000000000"], ["0x7ff8", "inf", True]),
    "float8_e4m3fn": ([1, "NaN", "0x7f"], ["Infinity"]),
    "float4_e2m1fn": ([1], ["NaN", "Infinity"]),
    "complex64": ([[0, 1], ["NaN", "Infinity"]], [0, [1], [1, 2, 3]]),
    "r24": ([[1, 2, 255]], [[1, 2, 256], "AQID", 0]),
    "string": (["", "foo"], [0, None]),
    "bytes": ([[1, 2], "AQID"], [0, [256], "???"]),
}


def meant(name: str, value: Any) -> bool:
    """Whether a fill value that breaks the specification is read as what its writer meant."""
    return name == "bool" and type(value) is int and value in (0, 1)


@pytest.mark.spec("ZOM-16")
@pytest.mark.parametrize("name", FILLS)
def test_schema_and_parser_agree_on_fill_values(name: str) -> None:
    middle = {"string": "vlen-utf8", "bytes": "vlen-bytes"}.get(name)
    codecs = [middle or {"name": "bytes", "configuration": {"endian": "little"}}]
    good, bad = FILLS[name]
    for value in (*good, *bad):
        document = {**V3, "data_type": name, "fill_value": value, "codecs": codecs}
        with tessarr.config.set({"strict": True}):  # otherwise 0 and 1 are read as booleans, with a warning
            assert VALIDATORS[3].is_valid(document) is (complaint(document) is None), value
        assert (complaint(document) is None) is (
            (value in good and type(value) in map(type, good)) or meant(name, value)
        ), value


@pytest.mark.spec("ZOM-16")
def test_the_faults_of_the_drafts_schemas_are_not_copied() -> None:
    sound = [
        V2,  # the draft wants "attributess" and "zarr_version"
        {**V2, "compressor": None, "filters": None},
        STRUCTURED,
        {**V3, "data_type": "uint8", "codecs": ["bytes", "crc32c"]},  # short-hand, no configuration
        {**V3, "dimension_names": [None, None]},
        {
            **V3,
            "data_type": {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}},
            "fill_value": "NaT",
            "codecs": V3["codecs"][1:2],
        },
        {
            **V3,
            "data_type": {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int16"}]}},
            "fill_value": {"a": 1},
            "codecs": V3["codecs"][1:2],
        },
        V3,  # a further member with must_understand false
    ]
    for document in sound:
        assert complaint(document) is None, document
        assert VALIDATORS[document["zarr_format"]].is_valid(document), document
    assert not VALIDATORS[3].is_valid({**V3, "extra": {"must_understand": True}})


@pytest.mark.spec("ZOM-11", "ZOM-14", "ZOM-15")
def test_the_examples_of_the_draft_are_judged_as_the_parser_judges_them() -> None:
    assert VALIDATORS[3].is_valid(zep6.V3_MENDED)
    assert not VALIDATORS[3].is_valid(zep6.V3_PRINTED)
    assert VALIDATORS[2].is_valid(zep6.V2_MENDED)
    assert not VALIDATORS[2].is_valid(zep6.V2_PRINTED)
    assert VALIDATORS[2].is_valid(zep6.V2_SEVERAL_GROUPS)
    for name in ("__x", "a/b", "..", "zarr.json"):
        assert not VALIDATORS[3].is_valid({"zarr_format": 3, "node_type": "group", "members": {name: V3}})
    assert not VALIDATORS[3].is_valid({**V3, "members": {}})


@pytest.mark.spec("ZOM-14", "ZOM-15")
def test_every_document_of_other_writers_is_judged_as_the_parser_judges_it() -> None:
    validators = {
        number: jsonschema.Draft202012Validator(model.json_schema(number, members=False)) for number in (2, 3)
    }
    judged = 0
    for file in sorted(FIXTURES.rglob("*")):
        if file.name not in ("zarr.json", ".zarray", ".zgroup") or not file.is_file():
            continue
        try:
            document = strict_json.loads(file.read_bytes(), key=str(file), allow_nan=True)
        except TessarrError:
            continue
        if isinstance(document, dict) and document.get("zarr_format") in (2, 3):
            judged += 1
            valid = validators[document["zarr_format"]].is_valid(document)
            assert valid is (complaint(document) is None), file
    assert judged > 100


@pytest.mark.spec("ZOM-14")
def test_registered_names_are_part_of_the_schema() -> None:
    name = "test.model.codec"
    document = {**V3, "codecs": [*V3["codecs"], name]}
    assert not VALIDATORS[3].is_valid(document)
    registry.register("codec", name, "tessarr.codecs.bytes_to_bytes.crc32c:Crc32cCodec")
    try:
        schema: Any = model.json_schema(3)
        assert jsonschema.Draft202012Validator(schema).is_valid(document)
    finally:
        registry._TABLE["codec"].pop(name)
