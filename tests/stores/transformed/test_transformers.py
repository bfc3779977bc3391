"""What all storage transformers of tessarr have in common: both engines, tools, copies, and what they refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.cli import main
from tessarr.errors import MetadataValidationError, ReadOnlyError
from tessarr.storage import LocalStore, MemoryStore, ZipStore
from tessarr.stores.protocols import Locate
from tessarr.tools.check import check
from tessarr.tools.digest import digest
from tests.conformance.documents import array_document, store_of, stored_json
from tests.narrow import array_of
from tests.stores.contract import ENGINES

HASHED: dict[str, Any] = {"name": "tessarr.hashed", "configuration": {"hash": "crc32c", "digits": 2}}
PARTS: dict[str, Any] = {
    "name": "concat-parts",
    "configuration": {"parts": [{"key_suffix": ".h", "size": 3}, {"key_suffix": ""}, {"key_suffix": ".i", "size": 9}]},
}
VERSIONED: dict[str, Any] = {"name": "tessarr.versioned", "configuration": {"page": 3}}
MANIFEST: dict[str, Any] = {"name": "chunk-manifest-json", "configuration": {"manifest": "./m.json"}}
KINDS = [
    pytest.param([HASHED], id="hashed"),
    pytest.param([PARTS], id="parts"),
    pytest.param([HASHED, PARTS], id="both"),
]
LAYOUTS: list[dict[str, Any]] = [{"chunks": (4, 3)}, {"chunks": (2, 3), "shards": (4, 6)}]
DATA = np.arange(143, dtype="<i4").reshape(13, 11)


def made(place: Any, transformers: list[dict[str, Any]], **layout: Any) -> tessarr.Array:
    options = {"shape": DATA.shape, "dtype": "i4", "fill_value": -1, "compressors": None, **(layout or LAYOUTS[0])}
    return tessarr.create_array(place, storage_transformers=transformers, **options)


@pytest.mark.parametrize("transformers", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("writer", ENGINES)
@pytest.mark.parametrize("place", [LocalStore, lambda _: MemoryStore()], ids=["local", "memory"])
def test_both_engines_read_and_write_through(
    tmp_path: Path, transformers: Any, layout: Any, writer: str, place: Callable[[Path], Any]
) -> None:
    store = place(tmp_path / "z")
    with tessarr.config.set({"engine": writer}):
        z = made(store, transformers, **layout)
        z[...] = DATA
        z[3:9, 2:5] = 7
        z[5, 5] = -2
        z.append(DATA[:2])
        z.resize((14, 11))
    expected = np.concatenate([DATA, DATA[:1]])
    expected[3:9, 2:5] = 7
    expected[5, 5] = -2
    keys = {key for key in store.list() if key != "zarr.json"}
    assert keys
    assert not any(key in keys for key in ("c/0/0",)) or transformers == [PARTS]
    for name in ("native", "reference"):
        with tessarr.config.set({"engine": name}):
            for reader in (store, store.with_read_only(True)):
                found = tessarr.open_array(reader, mode="r")
                np.testing.assert_array_equal(found[...], expected)
                np.testing.assert_array_equal(found[2:12:3, 4:1:-1], expected[2:12:3, 4:1:-1])
                assert found[5, 5] == -2
                assert len([*found.stored_chunks()]) == (16 if found.shards is None else 8)
                np.testing.assert_array_equal(asyncio.run(found.read_async((slice(3), 1))), expected[:3, 1])
    z = tessarr.open_array(store, mode="r+")
    z.resize((16, 12))  # chunks that the end cuts keep what lay beyond it
    z[...] = -1
    assert not [key for key in store.list() if key != "zarr.json"]


@pytest.mark.parametrize("transformers", KINDS[:2])
def test_rust_reads_the_files_of_a_read_only_directory(tmp_path: Path, transformers: Any) -> None:
    made(tmp_path / "z", transformers)[...] = DATA
    found = tessarr.open_array(tmp_path / "z", mode="r")
    store = found._bound.store
    assert isinstance(store, Locate)

    def refuse(*_: Any) -> Any:
        raise AssertionError("values were read in Python")

    for method in ("get", "get_ranges", "fetch"):
        setattr(store, method, refuse)
    np.testing.assert_array_equal(found[...], DATA)


def assert_tools_see_through(place: Path, transformers: list[dict[str, Any]], values: Any, chunks: int) -> None:
    """Consolidate, check, convert, digest, copy and move the array `a` in the directory `place`."""
    store = LocalStore(place)
    tessarr.consolidate_metadata(store)
    found = array_of(tessarr.open_consolidated(store)["a"])
    assert found._metadata.storage_transformers == tuple(transformers)
    np.testing.assert_array_equal(found[...], values)
    report = check(store, data="decode")
    assert (report.chunks, [finding.rule for finding in report.findings]) == (chunks, [])
    assert main(["convert", "--plain", str(place), str(place.with_name("plain"))]) == 0
    plain = array_of(tessarr.open_group(place.with_name("plain"), mode="r")["a"])
    assert plain._metadata.storage_transformers == ()
    assert digest(plain).root == digest(found).root
    copied: dict[str, bytes] = {}
    tessarr.copy_store(store, MemoryStore(copied))
    np.testing.assert_array_equal(array_of(tessarr.open_group(copied)["a"])[...], values)
    tessarr.copy(found, tessarr.open_group(other := MemoryStore(), mode="w"), name="c")
    np.testing.assert_array_equal(tessarr.open_array(other, path="c")[...], values)
    tessarr.open_group(store).move("a", "b")
    np.testing.assert_array_equal(tessarr.open_array(store, path="b", mode="r")[...], values)


@pytest.mark.parametrize("transformers", [*KINDS, pytest.param([VERSIONED], id="versioned")])
def test_tools_see_through(tmp_path: Path, transformers: Any) -> None:
    root = tessarr.open_group(tmp_path / "z", mode="w")
    z = root.create_array("a", shape=DATA.shape, chunks=(4, 3), dtype="i4", storage_transformers=transformers)
    z[...] = DATA
    if VERSIONED in transformers:
        z.commit("all")
    assert_tools_see_through(tmp_path / "z", transformers, DATA, chunks=16)
    moved = array_of(tessarr.open_group(tmp_path / "z")["b"])
    before = moved.hexdigest()
    moved[0, 0] = 99
    if VERSIONED in transformers:
        moved.commit("again")
        assert [one.message for one in moved.versions()] == ["again", "all"]
    assert moved.hexdigest() != before


def test_info_names_the_transformers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "z", [HASHED, PARTS])
    assert main(["info", str(tmp_path / "z")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "transformers   tessarr.hashed(hash=crc32c, digits=2)" in lines
    assert main(["info", str(tmp_path / "z"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["storage_transformers"] == [HASHED, PARTS]


@pytest.mark.parametrize("transformers", KINDS)
def test_damage_is_found_and_has_no_repair(tmp_path: Path, transformers: Any) -> None:
    z = made(tmp_path / "z", transformers)
    z[...] = DATA
    key = min(key for key in LocalStore(tmp_path / "z").list() if key != "zarr.json")
    (tmp_path / "z" / key).write_bytes(b"x")
    findings = check(tmp_path / "z", data="size").findings
    assert {finding.rule for finding in findings} <= {"CHUNK-SIZE", "CHUNK-READ"}
    assert len(findings) == 1
    assert findings[0].action is None


@pytest.mark.parametrize("transformers", KINDS[:2])
def test_archives_hold_transformed_arrays(tmp_path: Path, transformers: Any) -> None:
    source = MemoryStore()
    made(source, transformers)[...] = DATA
    with ZipStore(tmp_path / "z.zip", mode="w") as archive:
        tessarr.copy_store(source, archive)
    np.testing.assert_array_equal(tessarr.open_array(tmp_path / "z.zip", mode="r")[...], DATA)


@pytest.mark.spec("ZEP1-10")
@given(
    order=st.permutations([HASHED, PARTS]), start=st.integers(0, 12), stop=st.integers(0, 13), value=st.integers(-2, 9)
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_stacked_transformers_keep_values_in_any_order(order: Any, start: int, stop: int, value: int) -> None:
    expected = DATA.copy()
    expected[start:stop] = value
    z = made(store := MemoryStore(), [*order])
    z[...] = DATA
    z[start:stop] = value
    for engine in ("native", "reference"):
        with tessarr.config.set({"engine": engine}):
            np.testing.assert_array_equal(tessarr.open_array(store, mode="r")[...], expected)


# -- documents -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transformer", [HASHED, PARTS, VERSIONED, MANIFEST])
def test_a_layout_that_readers_may_skip_is_refused(transformer: Any) -> None:
    skippable = {**transformer, "must_understand": False}
    with pytest.raises(MetadataValidationError, match="must_understand"):
        made({}, [skippable])
    store = store_of({"": array_document((4,), (2,), "uint8", storage_transformers=[skippable])})
    z = array_of(tessarr.open(store, mode="r+"))
    with pytest.raises(ReadOnlyError, match="may skip"):
        z[...] = 1
    if transformer is not MANIFEST:  # whose manifest is missing
        assert z[...].tolist() == [0] * 4


@pytest.mark.parametrize(
    ("name", "configuration", "loc"),
    [
        ("tessarr.hashed", {"digits": 0}, "digits"),
        ("tessarr.hashed", {"digits": 2.0}, "digits"),
        ("tessarr.hashed", {"hash": "md5"}, "hash"),
        ("tessarr.hashed", {"digit": 2}, "digit"),
        ("concat-parts", {}, "parts"),
        ("concat-parts", {"parts": []}, "parts"),
        ("concat-parts", {"parts": "abc"}, "parts"),
        ("concat-parts", {"parts": [{"key_suffix": ""}, {"key_suffix": ""}]}, "parts"),
        ("concat-parts", {"parts": [{"key_suffix": "/../x"}]}, "0"),
        ("concat-parts", {"parts": [{"key_suffix": "", "size": -1}]}, "0"),
        ("concat-parts", {"parts": [{"size": 1}]}, "0"),
        ("concat-parts", {"parts": [{"key_suffix": "", "x": 1}]}, "0"),
        ("concat-parts", {"parts": [7]}, "0"),
        ("chunk-manifest-json", {}, "manifest"),
        ("chunk-manifest-json", {"manifest": "../m.json"}, "manifest"),
        ("chunk-manifest-json", {"manifest": "/etc/m.json"}, "manifest"),
        ("chunk-manifest-json", {"manifest": "a/../../m.json"}, "manifest"),
        ("chunk-manifest-json", {"manifest": 7}, "manifest"),
    ],
)
def test_a_wrong_configuration_is_refused_when_read_and_when_created(name: str, configuration: Any, loc: str) -> None:
    wrong = {"name": name, "configuration": configuration}
    stored = store_of({"": array_document((4,), (2,), "uint8", storage_transformers=[wrong])})
    attempts: list[Callable[[], object]] = [lambda: made({}, [wrong]), lambda: tessarr.open(stored, mode="r")]
    for attempt in attempts:
        with pytest.raises(MetadataValidationError) as caught:
            attempt()
        found = [problem.loc for problem in caught.value.problems]
        assert any(
            place[:3] == ("storage_transformers", 0, "configuration") and loc in map(str, place) for place in found
        )


def test_documents_keep_the_transformers_as_they_are_spelled() -> None:
    store: dict[str, bytes] = {}
    z = made(store, [HASHED, PARTS])
    z.attrs["a"] = 1
    assert stored_json(store, "")["storage_transformers"] == [HASHED, PARTS]
    assert json.loads(bytes(store["zarr.json"]))["attributes"] == {"a": 1}
