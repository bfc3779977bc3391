"""Checking stores, and repairing what was found."""

from __future__ import annotations

import json
import os
import shutil
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import MetadataValidationError, NodeNotFoundError, ReadOnlyError, UnsupportedOperationError
from tessarr.storage import WrapperStore
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.protocols import fallback
from tessarr.tools.check import RULES, Finding, Report, check
from tessarr.tools.check.legacy import RULES as LEGACY
from tessarr.tools.repair import repair, restore
from tests.conformance.documents import array_document, v2_array_document

FIXTURES = Path(__file__).parents[1] / "fixtures"


def put(store: Any, key: str, document: Any) -> None:
    store.set(key, document if isinstance(document, bytes) else json.dumps(document).encode())


def get(store: Any, key: str) -> Any:
    return json.loads(bytes(store.get(key)))


def change(store: Any, key: str, **changes: Any) -> None:
    put(store, key, {**get(store, key), **changes})


def contents(store: Any) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list()}


def tree(zarr_format: int = 3, **options: Any) -> MemoryStore:
    store = MemoryStore()
    group = tessarr.create_group(store, zarr_format=zarr_format)
    a = group.create_group("a")
    array = a.create_array("x", shape=(4, 6), chunks=(2, 3), dtype="i4", **options)
    array[...] = np.arange(24).reshape(4, 6)
    return store


def rules(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("data", [None, "stat", "size", "decode"])
def test_a_sound_hierarchy_has_no_findings(zarr_format: int, data: Any) -> None:
    store = tree(zarr_format)
    tessarr.consolidate_metadata(store)
    report = check(store, data=data)
    assert report.findings == []
    assert report.ok
    assert (report.groups, report.arrays) == (2, 1)
    assert report.chunks == (4 if data else 0)
    assert str(report).startswith("memory://")


def test_a_report_goes_to_json_and_back() -> None:
    store = tree()
    store.set("a/x/c/9/9", b"x")
    store.set("a/x/c/0/0", b"")
    report = check(store, data="size")
    again = Report.from_json(json.loads(json.dumps(report.to_json())))
    assert again.findings == report.findings
    assert not again.ok
    assert "KEY-OUTSIDE" in str(again)
    assert all(finding.severity == RULES[finding.rule][0] for finding in again.findings)


def test_nothing_there_is_an_error_and_all_else_is_a_report() -> None:
    with pytest.raises(NodeNotFoundError):
        check(MemoryStore())
    store = tree()
    for broken in (
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"zarr_format": 3}',
        b"\xff",
        b'{"zarr_format": 3, "node_type": "array"}',
    ):
        store.set("a/x/zarr.json", broken)
        found = [finding for finding in check(store, data="decode").findings if finding.path == "a/x"]
        assert found, broken
        assert any(finding.severity == "error" for finding in found), broken


def test_every_problem_of_a_document_is_told_with_its_place() -> None:
    store = tree()
    change(store, "a/x/zarr.json", fill_value="x", codecs=["nobody"])
    found = check(store).of("DOC-INVALID")
    assert {(finding.path, finding.key, finding.loc[0]) for finding in found} == {
        ("a/x", "a/x/zarr.json", "fill_value"),
        ("a/x", "a/x/zarr.json", "codecs"),
    }


def test_names_formats_and_strays_are_told() -> None:
    store = tree()
    put(store, "__hidden/zarr.json", {"zarr_format": 3, "node_type": "group"})
    put(store, "a/old/.zgroup", {"zarr_format": 2})
    put(store, "b/c/zarr.json", {"zarr_format": 3, "node_type": "group"})
    put(store, "a/x/inner/zarr.json", {"zarr_format": 3, "node_type": "group"})
    put(store, "a/.zgroup", {"zarr_format": 2})
    store.set("readme.txt", b"hello")
    store.set("a/zarr.json.0123456789abcdef.partial", b"x")
    report = check(store, data="stat")
    by_rule = {finding.rule: finding for finding in report.findings}
    assert by_rule["DOC-NAME"].path == "__hidden"
    assert by_rule["HIER-MIXED"].path == "a/old"
    assert by_rule["HIER-NOGROUP"].path == "b"
    assert by_rule["HIER-IN-ARRAY"].key == "a/x/inner/zarr.json"
    assert by_rule["DOC-FORMATS"].path == "a"
    assert by_rule["DOC-STRAY"].key == "readme.txt"
    assert by_rule["KEY-TEMPORARY"].key == "a/zarr.json.0123456789abcdef.partial"


def test_two_documents_at_one_path_are_told_and_the_array_is_kept() -> None:
    store = tree(2)
    put(store, "a/x/.zgroup", {"zarr_format": 2})
    report = check(store)
    assert "DOC-BOTH" in rules(report)
    repair(report, store, dry_run=False)
    assert not store.exists("a/x/.zgroup")
    assert check(store, data="decode").ok


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_is_held_against_the_truth(zarr_format: int) -> None:
    store = tree(zarr_format)
    tessarr.consolidate_metadata(store)
    key = "a/x/zarr.json" if zarr_format == 3 else "a/x/.zarray"
    change(store, key, shape=[4, 5])
    put(store, "a/new/" + ("zarr.json" if zarr_format == 3 else ".zgroup"),
        {"zarr_format": 3, "node_type": "group"} if zarr_format == 3 else {"zarr_format": 2})  # fmt: skip
    holder = "zarr.json" if zarr_format == 3 else ".zmetadata"
    document = get(store, holder)
    entries = document["consolidated_metadata"]["metadata"] if zarr_format == 3 else document["metadata"]
    ghost = {"zarr_format": 3, "node_type": "group"} if zarr_format == 3 else {"zarr_format": 2}
    entries["ghost" if zarr_format == 3 else "ghost/.zgroup"] = ghost
    put(store, holder, document)
    report = check(store)
    assert {finding.rule for finding in report.findings} == {"CONS-STALE", "CONS-MISSING", "CONS-EXTRA"}
    assert all(finding.repairable for finding in report.findings)
    done = repair(report, store, dry_run=False)
    assert [step.action.kind for step in done.steps] == ["consolidate"]
    assert rules(check(store)) <= {"DOC-STRAY"}


def test_what_real_writers_put_into_consolidated_metadata_is_no_finding() -> None:
    store = tree()
    tessarr.consolidate_metadata(store)
    document = get(store, "zarr.json")
    entries = document["consolidated_metadata"]["metadata"]
    entries["a"]["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": {}}
    put(store, "zarr.json", document)
    assert check(store).ok
    change(store, "zarr.json", consolidated_metadata={"kind": "else", "must_understand": False})
    assert rules(check(store)) == {"CONS-KIND"}


def test_chunks_outside_the_shape_and_stray_keys_are_told_from_the_listing_alone() -> None:
    store = tree()
    store.set("a/x/c/2/0", b"outside")
    store.set("a/x/c/0/0.tmp", b"half")
    store.set("a/x/notes.txt", b"?")
    report = check(store, data="stat")
    assert {(finding.rule, finding.key) for finding in report.findings} == {
        ("KEY-OUTSIDE", "a/x/c/2/0"),
        ("KEY-TEMPORARY", "a/x/c/0/0.tmp"),
        ("KEY-STRAY", "a/x/notes.txt"),
    }
    repair(report, store, dry_run=False)
    assert rules(check(store, data="decode")) == {"KEY-STRAY", "DOC-STRAY"}


@pytest.mark.parametrize("stored", [".", "/"])
def test_a_separator_that_hides_data_is_found_and_mended(stored: str) -> None:
    other = "/" if stored == "." else "."
    store = tree(2, chunk_key_encoding={"name": "v2", "configuration": {"separator": stored}})
    document = get(store, "a/x/.zarray")
    document["dimension_separator"] = other
    put(store, "a/x/.zarray", document)
    report = check(store, data="stat")
    (finding,) = report.of("KEY-SEPARATOR")
    assert finding.severity == "error"
    assert finding.repairable
    repair(report, store, dry_run=False)
    np.testing.assert_array_equal(tessarr.open_array(store, path="a/x", mode="r")[...], np.arange(24).reshape(4, 6))
    assert not check(store, data="stat").of("KEY-SEPARATOR")


def test_two_separators_in_use_are_not_mended_by_guessing() -> None:
    store = tree(2)
    value = bytes(store.get("a/x/0.0") or b"")
    store.set("a/x/1/1", value)
    (finding,) = check(store, data="stat").of("KEY-SEPARATOR")
    assert not finding.repairable


@pytest.mark.parametrize(
    ("value", "data", "rule"),
    [
        (b"", "size", "CHUNK-EMPTY"),
        (b"12345", "size", "CHUNK-SIZE"),
        (b"", "decode", "CHUNK-EMPTY"),
        (b"12345", "decode", "CHUNK-DECODE"),
    ],
)
def test_short_and_empty_chunks_are_told_with_their_place(value: bytes, data: Any, rule: str) -> None:
    store = tree(compressors=None)
    store.set("a/x/c/1/0", value)
    (finding,) = check(store, data=data).findings
    assert (finding.rule, finding.key, finding.chunk, finding.path) == (rule, "a/x/c/1/0", (1, 0), "a/x")
    assert not finding.repairable


def test_what_cannot_be_decompressed_is_found_only_by_decoding() -> None:
    store = tree(2, compressors={"id": "zlib", "level": 1})
    store.set("a/x/0.0", b"garbage")
    store.set("a/x/0.1", zlib.compress(b"short"))
    assert check(store, data="size").ok
    found = check(store, data="decode").of("CHUNK-DECODE")
    assert {finding.key for finding in found} == {"a/x/0.0", "a/x/0.1"}


def test_a_checksum_that_does_not_match_has_its_own_rule() -> None:
    store = tree(compressors=[{"name": "crc32c"}])
    value = bytearray(bytes(store.get("a/x/c/0/0") or b""))
    value[0] ^= 1
    store.set("a/x/c/0/0", bytes(value))
    assert rules(check(store, data="decode")) == {"CHUNK-CHECKSUM"}


def sharded(**options: Any) -> tuple[MemoryStore, bytearray]:
    store = MemoryStore()
    array = tessarr.create_array(
        store, shape=(4,), chunks=(1,), shards=(4,), dtype="i4", compressors=None, fill_value=-1, **options
    )
    array[...] = [1, 2, 3, 4]
    return store, bytearray(bytes(store.get("c/0") or b""))


def reindexed(value: bytearray, entries: Any) -> bytes:
    """The shard with other index entries and a right checksum."""
    from google_crc32c import value as crc

    index = np.asarray(entries, "<u8").tobytes()
    return bytes(value[:16]) + index + int(crc(index)).to_bytes(4, "little")


NONE = 2**64 - 1


@pytest.mark.parametrize("data", ["size", "decode"])
@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ([[0, 4], [4, 4], [8, 4], [16, 4]], "SHARD-ENTRY"),
        ([[0, 4], [4, 4], [8, 4], [2**63, 4]], "SHARD-ENTRY"),
        ([[0, 4], [4, 4], [8, 4], [NONE, 4]], "SHARD-ENTRY"),
        ([[0, 4], [4, 4], [8, 4], [10, 4]], "SHARD-OVERLAP"),
        ([[0, 4], [0, 4], [8, 4], [12, 4]], "SHARD-OVERLAP"),
        ([[0, 4], [4, 4], [8, 4], [NONE, NONE]], "SHARD-UNUSED"),
    ],
)
def test_the_index_of_a_shard_is_examined(entries: Any, rule: str, data: Any) -> None:
    store, value = sharded()
    store.set("c/0", reindexed(value, entries))
    assert rule in rules(check(store, data=data))


@pytest.mark.parametrize("data", ["size", "decode"])
def test_a_truncated_shard_and_a_damaged_index_are_told(data: Any) -> None:
    store, value = sharded()
    assert check(store, data=data).findings == []
    store.set("c/0", bytes(value[:30]))
    assert rules(check(store, data=data)) == {"SHARD-INDEX"}
    value[20] ^= 1
    store.set("c/0", bytes(value))
    assert rules(check(store, data=data)) == {"SHARD-INDEX"}


def test_a_damaged_inner_chunk_is_named() -> None:
    store = MemoryStore()
    array = tessarr.create_array(
        store, shape=(4,), chunks=(1,), shards=(4,), dtype="i4", compressors=[{"name": "crc32c"}]
    )
    array[...] = [1, 2, 3, 4]
    value = bytearray(bytes(store.get("c/0") or b""))
    value[9] ^= 1
    store.set("c/0", bytes(value))
    assert check(store, data="size").ok
    (finding,) = check(store, data="decode").findings
    assert finding.rule == "CHUNK-CHECKSUM"
    assert "inner chunk (1,)" in finding.message


V3 = array_document((4,), (2,), attributes={})
V2 = v2_array_document((4,), (2,))
TEXT = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 4}}
CODECS: list[Any] = V3["codecs"]
BLOSC = {"cname": "zstd", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
START = {"padding_encoding": "start_byte"}


def cast(word: str) -> dict[str, Any]:
    """The codec cast_value with a map that has infinity, so spelled, in it."""
    scalars = {"encode": [["NaN", 0], [word, 255]]}
    return {"name": "cast_value", "configuration": {"data_type": "uint8", "scalar_map": scalars}}


LITTLE = {"endian": "little"}
OLD_STRUCT = {
    "data_type": {"name": "structured", "configuration": {"fields": [["a", "int16"]]}},
    "fill_value": "AAA=",
    "codecs": [{"name": "bytes"}],
}
DOCUMENTS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("LEGACY-ENDIAN", "zarr.json", {"codecs": [{"name": "endian", "configuration": LITTLE}]}, {"codecs": V3["codecs"]}),
    (
        "LEGACY-ORDER",
        "zarr.json",
        {"codecs": [{"name": "transpose", "configuration": {"order": "F"}}, *V3["codecs"]]},
        {"codecs": [{"name": "transpose", "configuration": {"order": [0]}}, *V3["codecs"]]},
    ),
    ("LEGACY-NULL", "zarr.json", {"storage_transformers": None}, {}),
    (
        "LEGACY-SHORT",
        "zarr.json",
        {"data_type": "int8", "codecs": ["bytes"]},
        {"data_type": "int8", "codecs": [{"name": "bytes"}]},
    ),
    (
        "LEGACY-CHUNK0",
        "zarr.json",
        {"shape": [0], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0]}}},
        {"shape": [0], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}},
    ),
    ("LEGACY-CHUNK0", ".zarray", {"shape": [0], "chunks": [False]}, {"shape": [0], "chunks": [1]}),
    (
        "LEGACY-CHUNK0",
        "zarr.json",
        {"shape": [0], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [False]}}},
        {"shape": [0], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}},
    ),
    ("LEGACY-BOOL", ".zarray", {"chunks": [True]}, {"chunks": [1]}),
    (
        "LEGACY-GRID",
        "zarr.json",
        {"shape": [4, 4], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, [1, 3]]}}},
        {
            "shape": [4, 4],
            "chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [2, [1, 3]]}},
        },
    ),
    (
        "LEGACY-WORDS",
        "zarr.json",
        {"data_type": "bool", "fill_value": False, "codecs": [{"name": "packbits", "configuration": START}]},
        {
            "data_type": "bool",
            "fill_value": False,
            "codecs": [{"name": "packbits", "configuration": {"padding_encoding": "first_byte"}}],
        },
    ),
    (
        "LEGACY-WORDS",
        "zarr.json",
        {"codecs": [*CODECS, {"name": "zstd", "configuration": {"level": 5.0, "checksum": False}}]},
        {"codecs": [*CODECS, {"name": "zstd", "configuration": {"level": 5, "checksum": False}}]},
    ),
    (
        "LEGACY-WORDS",
        "zarr.json",
        {"codecs": [*CODECS, {"name": "blosc", "configuration": {"level": 6, **BLOSC}}]},
        {"codecs": [*CODECS, {"name": "blosc", "configuration": BLOSC}]},
    ),
    (
        "LEGACY-WORDS",
        "zarr.json",
        {"data_type": "float32", "codecs": [cast("+Infinity"), {"name": "bytes"}]},
        {"data_type": "float32", "codecs": [cast("Infinity"), {"name": "bytes"}]},
    ),
    (
        "LEGACY-BOOLFILL",
        "zarr.json",
        {"data_type": "bool", "fill_value": 1, "codecs": [{"name": "bytes"}]},
        {"data_type": "bool", "fill_value": True, "codecs": [{"name": "bytes"}]},
    ),
    (
        "LEGACY-TEXTORDER",
        "zarr.json",
        {"data_type": TEXT, "fill_value": "", "codecs": [{"name": "bytes"}]},
        {"data_type": TEXT, "fill_value": "", "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]},
    ),
    (
        "LEGACY-STRUCT",
        "zarr.json",
        OLD_STRUCT,
        {
            "data_type": {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int16"}]}},
            "fill_value": {"a": 0},
            "codecs": V3["codecs"],
        },
    ),
    ("LEGACY-FILL", ".zarray", {"dtype": "|S3", "fill_value": 0}, {"dtype": "|S3", "fill_value": "AAAA"}),
    ("LEGACY-BYTEORDER", ".zarray", {"dtype": "<u1"}, {"dtype": "|u1"}),
    ("LEGACY-FILTERS", ".zarray", {"filters": []}, {}),
    (
        "LEGACY-STRINGS",
        ".zarray",
        {"dtype": "|O", "fill_value": "", "compressor": {"id": "vlen-utf8"}},
        {"dtype": "|O", "fill_value": "", "filters": [{"id": "vlen-utf8"}]},
    ),
    (
        "LEGACY-CODEC",
        ".zarray",
        {"compressor": {"id": "zstd", "level": 0, "checksum": False}},
        {"compressor": {"id": "zstd", "level": 0}},
    ),
    ("LEGACY-NAN", ".zarray", {"dtype": "<f4", "fill_value": float("nan")}, {"dtype": "<f4", "fill_value": "NaN"}),
]


@pytest.mark.parametrize(("rule", "name", "wrong", "right"), DOCUMENTS)
def test_a_document_that_a_library_wrote_wrongly_is_put_right(rule: str, name: str, wrong: Any, right: Any) -> None:
    base = V3 if name == "zarr.json" else V2
    store = MemoryStore()
    put(store, name, {**base, **wrong})
    before = contents(store)
    report = check(store)
    (finding,) = report.of(rule)
    assert finding.repairable
    said = repair(report, store)
    assert [step.outcome for step in said.steps] == ["planned"]
    assert contents(store) == before
    done = repair(report, store, dry_run=False)
    assert [step.outcome for step in done.steps] == ["done"]
    assert get(store, name) == {**base, **right}
    assert bytes(store.get(f"{done.backup}{name}") or b"") == before[name]
    after = check(store)
    assert not after.of(rule)
    assert after.ok
    tessarr.open_array(store, mode="r")


def test_every_legacy_rule_is_shown() -> None:
    assert {rule for rule, *_ in DOCUMENTS} | {"LEGACY-BLOCK", "LEGACY-CODECS"} == set(LEGACY)


REFUSED = ("LEGACY-BOOL", "LEGACY-CODECS")
"""Rules about documents that the specifications want refused."""
QUIET = ("LEGACY-SHORT", "LEGACY-CODEC", "LEGACY-NAN")
"""Rules about documents that break no specification, or one that nobody keeps."""


@pytest.mark.parametrize(("rule", "name", "wrong", "right"), [item for item in DOCUMENTS if item[0] not in REFUSED])
def test_what_is_put_right_could_be_read_before_with_a_warning(rule: str, name: str, wrong: Any, right: Any) -> None:
    base = V3 if name == "zarr.json" else V2
    store, mended = MemoryStore(), MemoryStore()
    put(store, name, {**base, **wrong})
    put(mended, name, {**base, **right})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        array = tessarr.open_array(store, mode="r")
    assert bool(caught) is (rule not in QUIET)
    twin = tessarr.open_array(mended, mode="r")
    assert (array.dtype, array.metadata.chunk_grid) == (twin.dtype, twin.metadata.chunk_grid)
    np.testing.assert_array_equal(array[...], twin[...])


@pytest.mark.parametrize("key", ["byte_cf1.zr3/Band1", "byte_cf1.zr3/x"])
def test_early_files_of_gdal_without_codecs_are_read_after_a_repair(key: str, tmp_path: Path) -> None:
    place = tmp_path / "x.zarr"
    shutil.copytree(FIXTURES / "gdal" / key, place)
    with pytest.raises(MetadataValidationError, match="codecs"):
        tessarr.open_array(place, mode="r")
    repair(check(place), place, dry_run=False, rules=("LEGACY-CODECS",))
    with np.load(FIXTURES / "gdal" / "lenient.npz") as lenient:
        np.testing.assert_array_equal(tessarr.open_array(place, mode="r")[...], lenient[key])


def test_the_setting_strict_refuses_what_only_its_rule_makes_readable() -> None:
    store = MemoryStore()
    put(store, ".zarray", {**V2, "shape": [0], "chunks": [False]})
    with tessarr.config.set({"strict": True}), pytest.raises(MetadataValidationError, match="chunks"):
        tessarr.open_array(store, mode="r")


@pytest.mark.parametrize("chunks", [[0, 2], [False, 2]])
@pytest.mark.filterwarnings("ignore")
def test_a_legacy_array_that_grows_is_stored_in_the_form_that_it_was_read_in(chunks: Any) -> None:
    store = MemoryStore()
    put(store, ".zarray", {**V2, "shape": [0, 4], "chunks": chunks})
    array = tessarr.open_array(store, mode="r+")
    array.append(np.ones((3, 4), "i4"))
    assert get(store, ".zarray")["chunks"] == [1, 2]
    assert tessarr.open_array(store, mode="r")[...].tolist() == [[1] * 4] * 3


def test_several_rules_for_one_document_are_all_applied() -> None:
    store = MemoryStore()
    put(
        store,
        ".zarray",
        {**V2, "dtype": "<u1", "filters": [], "compressor": {"id": "zstd", "level": 0, "checksum": False}},
    )
    put(store, ".zattrs", {})
    report = check(store)
    assert rules(report) >= {"LEGACY-BYTEORDER", "LEGACY-FILTERS", "LEGACY-CODEC"}
    done = repair(report, store, dry_run=False)
    assert done.ok
    assert get(store, ".zarray") == {**V2, "dtype": "|u1", "compressor": {"id": "zstd", "level": 0}}


def test_a_stray_block_in_a_zgroup_is_removed() -> None:
    store = tree(2)
    put(store, "a/.zgroup", {"zarr_format": 2, "consolidated_metadata": {"metadata": {}}})
    report = check(store)
    assert rules(report) == {"LEGACY-BLOCK"}
    repair(report, store, dry_run=False)
    assert get(store, "a/.zgroup") == {"zarr_format": 2}


def test_a_missing_group_is_created() -> None:
    store = tree()
    put(store, "b/c/zarr.json", {"zarr_format": 3, "node_type": "group"})
    report = check(store)
    assert rules(report) == {"HIER-NOGROUP"}
    repair(report, store, dry_run=False)
    assert sorted(name for name, _ in tessarr.open_group(store, mode="r").members(max_depth=None)) == [
        "a",
        "a/x",
        "b",
        "b/c",
    ]


def test_damaged_chunks_are_moved_away_only_when_data_is_given_up() -> None:
    store = tree(compressors=None)
    store.set("a/x/c/0/0", b"short")
    report = check(store, data="size")
    assert repair(report, store, dry_run=False).steps == []
    done = repair(report, store, dry_run=False, give_up_data=True)
    assert [step.outcome for step in done.steps] == ["done"]
    assert tessarr.open_array(store, path="a/x", mode="r")[0, 0] == 0
    assert restore(store, done.backup or "") == ["a/x/c/0/0"]
    assert bytes(store.get("a/x/c/0/0") or b"") == b"short"


def test_a_repair_looks_again_before_it_changes_anything() -> None:
    store = MemoryStore()
    put(store, ".zarray", {**V2, "filters": []})
    report = check(store)
    put(store, ".zarray", V2)
    done = repair(report, store, dry_run=False)
    assert [step.outcome for step in done.steps] == ["not needed"]
    assert done.backup is None


def test_hidden_temporary_files_of_killed_writers_are_found_and_removed(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path, shape=(2,), dtype="i4")[...] = 1
    old, young = tmp_path / "c" / ".0.123456.tessarr-tmp", tmp_path / ".zarr.json.654321.tessarr-tmp"
    for file in (old, young):
        file.write_bytes(b"half")
    os.utime(old, (0, 0))
    report = check(tmp_path, data="stat")
    assert [(finding.rule, finding.key) for finding in report.findings] == [
        ("KEY-TEMPORARY", "c/.0.123456.tessarr-tmp")
    ]
    assert [step.outcome for step in repair(report, dry_run=False).steps] == ["done"]
    assert not old.exists()
    assert young.exists()
    assert check(tmp_path, data="stat").ok


def test_looking_at_a_path_changes_nothing_there(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "x.zarr", shape=(2,), dtype="i4")[...] = 1
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    check(tmp_path / "x.zarr", data="decode")
    check(str(tmp_path / "x.zarr"))
    with pytest.raises(NodeNotFoundError):
        check(tmp_path / "nope.zarr")
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


def test_only_the_rules_asked_for_are_repaired() -> None:
    store = MemoryStore()
    put(store, ".zarray", {**V2, "filters": [], "dtype": "<u1"})
    repair(check(store), store, dry_run=False, rules=("LEGACY-FILTERS",))
    assert get(store, ".zarray") == {**V2, "dtype": "<u1"}


def test_a_read_only_store_is_not_repaired() -> None:
    store = MemoryStore()
    put(store, ".zarray", {**V2, "filters": []})
    report = check(store)
    with pytest.raises(ReadOnlyError):
        repair(report, store.with_read_only(), dry_run=False)


def test_a_check_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    class Counting(LocalStore):
        reads = 0

        def get(self, key: str, byte_range: Any = None) -> Any:
            Counting.reads += "/c/" in key
            return super().get(key, byte_range)

    place = tmp_path / "tree"
    group = tessarr.create_group(place)
    for name in ("p", "q"):
        group.create_array(name, shape=(8,), chunks=(2,), dtype="i4")[...] = np.arange(8) + 1
    store = Counting(place)
    store.set("p/c/0", b"?")
    journal = tmp_path / "journal"
    whole = check(store, data="decode", resume=journal)
    assert Counting.reads == 8
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(lines[:2]) + '\n{"path": "q", "chu')  # stopped while q was being noted
    Counting.reads = 0
    again = check(store, data="decode", resume=journal)
    assert Counting.reads == 4
    assert again.to_json() == whole.to_json()
    check(store, data="size", resume=journal)  # another check: the journal begins anew
    assert json.loads(journal.read_text().splitlines()[0])["data"] == "size"


def test_progress_is_told_and_conventions_can_be_left_out() -> None:
    store = tree()
    tessarr.open_group(store, path="a", mode="r+").attrs["zarr_conventions"] = ["units-v1"]
    seen: list[str] = []
    report = check(store, data="decode", progress=lambda *told: seen.append(told[2]), jobs=2)
    assert "/a/x values" in seen
    (finding,) = report.of("ZC-ENTRY")
    assert finding.path == "a"
    assert finding.loc[:2] == ("attributes", "zarr_conventions")
    assert check(store, conventions=False).ok


def test_a_store_that_cannot_list_is_checked_by_its_consolidated_metadata() -> None:
    class Unlisted(WrapperStore):
        @fallback
        def list(self, prefix: str = "") -> Iterator[str]:
            raise UnsupportedOperationError("this store cannot list its keys")

    store = tree()
    tessarr.consolidate_metadata(store)
    report = check(Unlisted(store), data="decode")
    assert rules(report) == {"CHECK-SKIPPED"}
    assert report.arrays == 1


@pytest.mark.spec("OGC-13")
def test_the_documents_of_nczarr_are_no_finding_and_no_members() -> None:
    store = tree(2)
    put(store, ".nczgroup", {})
    put(store, "a/.nczattr", {})
    put(store, "a/x/.nczarray", {})
    report = check(store, data="stat")
    assert {finding.rule for finding in report.findings} <= {"KEY-STRAY"}
    assert list(tessarr.open_group(store, mode="r")) == ["a"]


@pytest.mark.spec("OGC-21")
def test_a_member_that_the_ogc_standard_forbids_is_noted() -> None:
    store = tree(2)
    change(store, "a/x/.zarray", foo=1)
    (finding,) = check(store).of("DOC-KEY")
    assert finding.severity == "info"
    assert "'foo'" in finding.message


@pytest.mark.parametrize("source", ["zarr-python-2", "zarr.js", "zarrita.js", "jzarr"])
def test_the_data_of_other_writers_decodes_without_errors(source: str) -> None:
    checked = 0
    for document in sorted((FIXTURES / source).rglob("*")):
        if document.name in (".zarray", "zarr.json") and document.is_file() and b"pickle" not in document.read_bytes():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                report = check(document.parent, data="decode", conventions=False)
            if report.arrays == 1 and report.groups == 0:
                checked += 1
                assert not [finding for finding in report.findings if finding.severity == "error"], str(report)
    assert checked


def test_a_finding_says_what_to_do() -> None:
    finding = Finding("CHUNK-SIZE", "3 bytes", "a", "a/c/0", (0,), fix="Restore the value from a copy")
    assert str(finding) == "error   CHUNK-SIZE       a/c/0: 3 bytes\n" + " " * 25 + "Restore the value from a copy"


def test_nodes_below_what_is_no_group_are_checked_and_all_groups_that_are_missing_are_made_at_once() -> None:
    store = tree(2, compressors=None)
    for key, value in contents(store).items():
        if key.startswith("a/x/"):
            store.set(f"b/c/d/{key[2:]}", value)
    store.set("b/c/d/x/0.0", b"short")
    report = check(store, data="size")
    assert [finding.path for finding in report.of("HIER-NOGROUP")] == ["b", "b/c", "b/c/d"]
    assert [finding.key for finding in report.of("CHUNK-SIZE")] == ["b/c/d/x/0.0"]
    repair(report, store, dry_run=False)
    assert rules(check(store)) <= {"DOC-STRAY"}
    assert tessarr.open_group(store, mode="r")["b/c/d/x"].shape == tessarr.open_group(store, mode="r")["a/x"].shape


def test_every_finding_about_a_store_says_what_to_do() -> None:
    store = tree(2)
    put(store, "a/x/inner/.zgroup", {"zarr_format": 2})
    put(store, "a/x/junk", b"1")
    put(store, "README", b"1")
    found = check(store, data="stat").findings
    assert {finding.rule for finding in found} == {"HIER-IN-ARRAY", "KEY-STRAY", "DOC-STRAY"}
    assert all(finding.fix or finding.action for finding in found)


def test_many_arrays_in_memory_are_checked_without_looking_through_all_keys_for_each() -> None:
    prefixes: list[str] = []

    class Looking(MemoryStore):
        """Remembers for which prefixes all keys were looked through."""

        def list_prefix(self, prefix: str) -> Any:
            prefixes.append(prefix)
            return super().list_prefix(prefix)

    store = Looking()
    root = tessarr.open_group(store, mode="w")
    for number in range(20):
        root.create_array(f"x{number}", data=np.arange(4), chunks=(2,))
    prefixes.clear()
    report = check(store, data="decode", jobs=3)
    assert (report.ok, report.arrays, report.chunks) == (True, 20, 40)
    assert prefixes == [""]  # the children of the group


def test_consolidated_metadata_that_spells_defaults_out_is_not_stale() -> None:
    store = MemoryStore()
    tessarr.open_group(store, mode="w")
    put(store, "x/zarr.json", {**V3, "chunk_key_encoding": "default"})
    spelled = {**V3, "storage_transformers": [], "dimension_names": None, "fill_value": 0.0}
    root = get(store, "zarr.json")
    block = {"kind": "inline", "must_understand": False, "metadata": {"x": spelled}}
    put(store, "zarr.json", {**root, "consolidated_metadata": block})
    assert not check(store).of("CONS-STALE")
    put(store, "x/zarr.json", {**V3, "shape": [5]})
    assert check(store).of("CONS-STALE")


def test_duplicate_keys_are_found_and_the_document_is_written_again() -> None:
    store = MemoryStore()
    tessarr.create_array(store, shape=(4,), dtype="int8", attributes={"units": "K"})
    text = bytes(store.get("zarr.json") or b"").decode()
    text = text.replace('"units": "K"', '"units": "m", "units": "K"').replace(
        '"shape": [', '"shape": [9], "shape": [', 1
    )
    store.set("zarr.json", text.encode())
    report = check(store)
    assert [(found.rule, found.loc) for found in report.findings] == [
        ("DOC-DUPLICATE", ("shape",)),
        ("ATTR-DUPLICATE", ("attributes", "units")),
    ]
    with pytest.raises(MetadataValidationError, match="shape: occurs more than once"):
        tessarr.open_array(store, mode="r")
    done = repair(report, store, dry_run=False)
    assert done.ok
    assert check(store).ok
    opened = tessarr.open_array(store, mode="r")
    assert (opened.shape, opened.attrs.asdict()) == ((4,), {"units": "K"})
    assert bytes(store.get(f"{done.backup}zarr.json") or b"").decode() == text


@pytest.mark.parametrize("path", ["", "a"])
def test_the_backup_of_a_repair_is_no_warning_and_is_not_repaired_away(path: str) -> None:
    store = MemoryStore()
    tessarr.create_array(store, name=path or None, data=np.arange(4), chunks=(2,), attributes={"units": "K"})
    key = f"{path}/zarr.json".lstrip("/")
    text = bytes(store.get(key) or b"").decode()
    store.set(key, text.replace('"units": "K"', '"units": "m", "units": "K"').encode())
    done = repair(check(store), store, dry_run=False)
    report = check(store, data="size")
    assert [(found.rule, found.severity, found.key) for found in report.findings] == [
        ("DOC-STRAY", "info", "__tessarr_repair")
    ]
    assert repair(report, store, dry_run=False).steps == []
    assert bytes(store.get(f"{done.backup}{key}") or b"").decode().count("units") == 2


def test_a_repair_keeps_what_another_writer_changes_meanwhile() -> None:
    class Raced(MemoryStore):
        """Another writer sets an attribute after the repair has read the document."""

        def set(self, key: str, value: Any, **options: Any) -> Any:
            if key.startswith("__tessarr_repair"):
                document = json.loads(bytes(self.get("zarr.json") or b""))
                super().set("zarr.json", json.dumps({**document, "attributes": {"late": 1}}).encode())
            return super().set(key, value, **options)

    store = Raced()
    store.set("zarr.json", b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": 1, "a": 2}}')
    assert repair(check(store), store, dry_run=False).ok
    assert tessarr.open_group(store, mode="r").attrs.asdict() == {"late": 1}


def test_names_that_differ_only_in_unicode_normalization_are_reported() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    store = MemoryStore()
    root = tessarr.create_group(store)
    root.create_array("plain", data=[1])
    for name in (composed, decomposed):
        root.create_array(name, data=[1])
    found = [(finding.rule, finding.key) for finding in check(store).findings]
    assert found == [("KEY-UNICODE", decomposed), ("KEY-ALIKE", composed)]
