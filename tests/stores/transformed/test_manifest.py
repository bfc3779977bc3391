"""Chunks that a manifest places in other files, and manifests that lie."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import serve
from tessarr.cli import main
from tessarr.engine.transformers import transformed
from tessarr.errors import ForbiddenPlaceError, ReadOnlyError, StoreError
from tessarr.storage import LocalStore, MemoryStore, Store
from tessarr.stores.transformed import manifest
from tessarr.tools.check import check
from tests.conformance.documents import array_document
from tests.narrow import array_of
from tests.serve.client import Client
from tests.stores.contract import ENGINES, SEED, ReadContract
from tests.stores.transformed.test_transformers import assert_tools_see_through

TRANSFORMER = {"name": "chunk-manifest-json", "configuration": {"manifest": "./manifest.json"}}
RAW = np.arange(16, dtype="<i4").reshape(4, 4)


def document(**members: Any) -> bytes:
    return json.dumps(
        array_document(
            (4, 4), (2, 4), "int32",
            **{"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], **members},
            storage_transformers=[TRANSFORMER],
        )
    ).encode()  # fmt: skip


def place(path: Any, offset: Any = 0, length: Any = 32) -> dict[str, Any]:
    return {"path": path, "offset": offset, "length": length}


def stored(store: Any, entries: Any, at: str = "") -> Any:
    prefix = f"{at}/" if at else ""
    store.set(f"{prefix}zarr.json", document())
    store.set(f"{prefix}manifest.json", entries if isinstance(entries, bytes) else json.dumps(entries).encode())
    return store


def read(store: Any, allow: Any = None, path: str = "") -> Any:
    options = None if allow is None else {"manifest": {"allow": allow}}
    return tessarr.open_array(store, path=path, mode="r", storage_options=options)


@pytest.mark.spec("ZEP1-14")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("spelling", ["0.0 1.0", "0/0 1/0", "c/0/0 c/1/0"])
def test_chunks_are_read_where_the_manifest_says(tmp_path: Path, engine: str, spelling: str) -> None:
    (tmp_path / "old.nc").write_bytes(b"header" + RAW.tobytes())
    store = LocalStore(tmp_path / "z")
    store.set("inside.bin", RAW[2:].tobytes())
    first, second = spelling.split()
    old = (tmp_path / "old.nc").as_uri()
    stored(store, {first: place(old, 6), second: place("./inside.bin")})
    with tessarr.config.set({"engine": engine}):
        z = read(tmp_path / "z", [tmp_path.as_uri()])
        np.testing.assert_array_equal(z[...], RAW)
        assert z[3, 3] == 15
        assert sorted(coords for coords, _ in z.stored_chunks()) == [(0, 0), (1, 0)]
        np.testing.assert_array_equal(read(pickle.loads(pickle.dumps(z.store)))[...], RAW)
    assert [finding.rule for finding in check(z.store, data="decode").findings] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_places_relative_to_the_array_are_read_from_any_store(engine: str) -> None:
    store = MemoryStore({"a/b/x.bin": b"xx" + RAW.tobytes()})
    stored(store, {"0.0": place("x.bin", 2), "1.0": place("y/../x.bin", 34)}, "a/b")
    with tessarr.config.set({"engine": engine}):
        np.testing.assert_array_equal(read(store, path="a/b")[...], RAW)


def test_a_chunk_that_is_not_named_or_has_an_empty_path_is_missing() -> None:
    z = read(stored(MemoryStore(), {"1.0": place("")}))
    assert not z[...].any()
    assert list(z.stored_chunks()) == []
    assert z.nchunks_initialized == 0


def test_a_scalar_has_one_chunk() -> None:
    store = MemoryStore({"x": RAW[1].tobytes()[:4]})
    bytes_ = [{"name": "bytes", "configuration": {"endian": "little"}}]
    scalar = array_document((), (), "int32", codecs=bytes_, storage_transformers=[TRANSFORMER])
    store.set("zarr.json", json.dumps(scalar).encode())
    store.set("manifest.json", json.dumps({"0": place("x", 0, 4)}).encode())
    assert read(store)[()] == 4
    assert [key for _, key in read(store).stored_chunks()] == ["c"]


def test_an_array_with_a_manifest_is_read_only() -> None:
    z = tessarr.open_array(stored(MemoryStore(), {}), mode="r+")
    with pytest.raises(ReadOnlyError, match="storage transformer"):
        z[...] = 1


# -- places that were not allowed ----------------------------------------------------------------------------------------

OUTSIDE = [
    "/etc/passwd", "file:///etc/passwd", "file:/etc/passwd", "file://localhost/etc/passwd", "../secret", "a/../../secret",
    "../../../../etc/passwd", "..", "http://169.254.169.254/latest", "s3://bucket/key", "https://example.com/x",
    "memory://other/x", "sqlite:/etc/passwd", "reference:/etc/passwd", "lmdb:/etc", "zip::file:///etc/passwd",
    "simplecache::https://example.com/x", "https://example.com/a.zip|zip:x", "fsspec+file:///etc/passwd", "a//b",
]  # fmt: skip


@pytest.mark.spec("REG-23")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["local", "memory"])
@pytest.mark.parametrize("path", OUTSIDE)
def test_a_place_outside_the_array_is_refused(tmp_path: Path, path: str, kind: str, engine: str) -> None:
    store = LocalStore(tmp_path) if kind == "local" else MemoryStore()
    store.set("secret", RAW.tobytes())
    stored(store, {"0.0": place(path)}, "z")
    with tessarr.config.set({"engine": engine}):
        z = read(store, path="z")
        if path == "a//b":  # the same place as a/b, which is missing
            with pytest.raises(StoreError, match="missing"):
                z[...]
            return
        with pytest.raises(PermissionError, match="not allowed") as caught:
            z[...]
    assert isinstance(caught.value, ForbiddenPlaceError)
    assert (caught.value.kind, caught.value.got) == ("forbidden_place", path)
    assert [finding.rule for finding in check(store, path="z", data="decode").findings] == ["CHUNK-READ"]


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("s3://bucket-of-others/x", ["s3://bucket"]),
        ("s3://bucket/../other/x", ["s3://bucket/"]),
        ("https://good.example/%2e%2e/x", ["https://good.example/data/"]),
        ("https://good.example/data/../x", ["https://good.example/data/"]),
        ("https://good.example@bad.example/x", ["https://good.example"]),
        ("https://good.example.bad.example/x", ["https://good.example"]),
        ("S3://bucket/x", ["s3://bucket/"]),
    ],
)
def test_a_place_that_only_looks_like_an_allowed_one_is_refused(path: str, allow: list[str]) -> None:
    with pytest.raises(ForbiddenPlaceError, match="not allowed"):
        read(stored(MemoryStore(), {"0.0": place(path)}), allow)[...]


@pytest.mark.spec("REG-23")
@pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_link_that_leads_out_is_refused(tmp_path: Path, engine: str) -> None:
    (tmp_path / "secret").write_bytes(RAW.tobytes())
    store = stored(LocalStore(tmp_path / "z"), {"0.0": place("link"), "1.0": place((tmp_path / "z" / "link").as_uri())})
    (tmp_path / "z" / "link").symlink_to(tmp_path / "secret")
    with tessarr.config.set({"engine": engine}):
        for part in (slice(0, 2), slice(2, 4)):
            with pytest.raises(ForbiddenPlaceError):
                read(store)[part]
        np.testing.assert_array_equal(read(store, [str(tmp_path)])[:2], RAW[:2])


def test_a_directory_may_be_allowed_by_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_bytes(RAW.tobytes())
    (tmp_path / "link").symlink_to(tmp_path / "data")
    store = stored(MemoryStore(), {"0.0": place(str(tmp_path / "link" / "x"))})
    np.testing.assert_array_equal(read(store, [str(tmp_path / "link")])[:2], RAW[:2])


def test_allowing_opens_nothing_for_other_users_of_a_store(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(RAW.tobytes())
    store = stored(LocalStore(tmp_path / "z"), {"0.0": place(str(tmp_path / "x"))})
    np.testing.assert_array_equal(read(store, [str(tmp_path)])[:2], RAW[:2])
    with pytest.raises(ForbiddenPlaceError):
        read(store)[:2]


@pytest.fixture
def referring(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A hierarchy whose array `a` refers to a file outside, and the options that allow it."""
    (tmp_path / "x").write_bytes(RAW.tobytes())
    entries = {"0.0": place(str(tmp_path / "x")), "1.0": place(str(tmp_path / "x"), 32)}
    store = stored(LocalStore(tmp_path / "z"), entries, "a")
    store.set("zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
    tessarr.consolidate_metadata(store)
    return tmp_path / "z", {"manifest": {"allow": [str(tmp_path)]}}


def test_every_opener_takes_the_prefixes(referring: tuple[Path, dict[str, Any]]) -> None:
    path, options = referring
    url, root = path.as_uri(), tessarr.open_group(path, mode="r")
    with pytest.raises(ForbiddenPlaceError):
        array_of(root["a"])[...]
    groups: list[Any] = [
        tessarr.open_group(path, mode="r", storage_options=options),
        tessarr.open_group(url, storage_options=options),
        tessarr.open(str(path), mode="r", storage_options=options),
        tessarr.open_consolidated(path, storage_options=options),
        asyncio.run(tessarr.open_async(path, mode="r", storage_options=options)),
        asyncio.run(tessarr.open_group_async(url, storage_options=options)),
        tessarr.open_group(root, storage_options=options),
        tessarr.open_group(root.store, storage_options=options),
    ]
    arrays: list[Any] = [
        *(group["a"] for group in groups),
        tessarr.open_array(path / "a", mode="r", storage_options=options),
        tessarr.open_array(f"{url}/a", mode="r", storage_options=options),
        tessarr.open(path, path="a", mode="r", storage_options=options),
        tessarr.open_array(root, path="a", storage_options=options),
        tessarr.open_array(root["a"], storage_options=options),
        asyncio.run(tessarr.open_array_async(path / "a", mode="r", storage_options=options)),
    ]
    for array in arrays:
        np.testing.assert_array_equal(array_of(array)[...], RAW)
    with tessarr.snapshot(path, storage_options=options) as group:
        np.testing.assert_array_equal(array_of(group["a"])[...], RAW)
    with tessarr.transaction(path, storage_options=options) as changes:
        np.testing.assert_array_equal(array_of(changes.group["a"])[...], RAW)
    response = Client(serve.app(path, storage_options=options)).get("/a.npy?0=3")
    assert np.load(io.BytesIO(response.body)).tolist() == RAW[3].tolist()
    with pytest.raises(TypeError, match="allow"):
        tessarr.open(url, storage_options={"manifest": {"allow": "s3://x"}})


def test_the_engine_of_xarray_takes_the_prefixes(referring: tuple[Path, dict[str, Any]]) -> None:
    xarray = pytest.importorskip("xarray")
    path, options = referring
    array = json.loads((path / "a" / "zarr.json").read_bytes())
    (path / "a" / "zarr.json").write_text(json.dumps({**array, "dimension_names": ["y", "x"]}))
    tessarr.consolidate_metadata(path)
    with xarray.open_dataset(path, engine="tessarr", storage_options=options) as dataset:
        np.testing.assert_array_equal(dataset["a"].values, RAW)


def test_doors_of_zarr_python_take_the_prefixes(referring: tuple[Path, dict[str, Any]]) -> None:
    path, options = referring
    script = """
import sys
import tessarr.as_zarr
tessarr.as_zarr.install()
import zarr
options = {"manifest": {"allow": [sys.argv[2]]}}
for group in (zarr.open(sys.argv[1], mode="r", storage_options=options), zarr.open_group(sys.argv[1], storage_options=options),
              zarr.open_group(zarr.storage.LocalStore(sys.argv[1]), mode="r", storage_options=options)):
    assert group["a"][3, 3] == 15
assert zarr.open_array(sys.argv[1] + "/a", storage_options=options)[0, 1] == 1
"""
    subprocess.run([sys.executable, "-c", script, str(path), options["manifest"]["allow"][0]], check=True)


def test_the_command_line_takes_the_prefixes(
    referring: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, options = referring
    given = f"manifest={json.dumps(options['manifest'])}"
    assert main(["check", str(path), "--data"]) == 1
    for verb in (["info"], ["check", "--data"], ["digest"], ["show"]):
        assert main([*verb, str(path / "a"), "--storage", given]) == 0
    assert main(["convert", "--plain", str(path), str(tmp_path / "plain"), "--source-storage", given]) == 0
    np.testing.assert_array_equal(tessarr.open_array(tmp_path / "plain", path="a")[...], RAW)
    for wrong in ("manifest={", 'manifest={"allow": 7}'):
        assert main(["info", str(path), "--storage", wrong]) == 2
        assert "allow" in capsys.readouterr().err


def test_tools_see_through(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "z")
    store.set("zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
    store.set("a/x.bin", RAW.tobytes())
    stored(store, {"0.0": place("x.bin"), "1.0": place("./x.bin", 32)}, "a")
    assert_tools_see_through(tmp_path / "z", [TRANSFORMER], RAW, chunks=2)
    store.set("b/x.bin", RAW.tobytes()[:40])
    (finding,) = check(store, data="decode").findings
    assert (finding.rule, finding.action) == ("CHUNK-READ", None)


class TestManifestStore(ReadContract):
    @pytest.fixture
    def seeded(self) -> Store:
        entries, data = {}, b"head"
        for key, value in SEED.items():
            entries[key] = place("data.bin", len(data), len(value))
            data += value + b"gap"
        store = stored(MemoryStore({"data.bin": data}), entries)
        return transformed(store, "", read(store)._metadata)


# -- manifests that lie ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"0.0": 1, "0.0": 2}', "not JSON"),
        (b"[]", "not a JSON object"),
        ({"0.0": 7}, "malformed entry"),
        ({"0.0": {"path": 7, "offset": 0, "length": 4}}, "malformed entry"),
        ({"0.0": {"path": "x", "offset": -1, "length": 4}}, "malformed entry"),
        ({"0.0": {"path": "x", "offset": 0, "length": 2**70}}, "malformed entry"),
        ({"0.0": {"path": "x", "offset": 0.0, "length": 4}}, "malformed entry"),
        ({"0.0": {"path": "x", "offset": 0}}, "malformed entry"),
        ({"0.0": place("x", 2**62)}, "too short"),
        ({"0.0": place("x", 0, 2**62)}, "too short"),
        ({"0.0": place("gone")}, "missing"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_malformed_manifest_is_a_typed_error(tmp_path: Path, entries: Any, words: str, engine: str) -> None:
    for store in (MemoryStore(), LocalStore(tmp_path)):
        store.set("x", b"short")
        stored(store, entries)
        with tessarr.config.set({"engine": engine}), pytest.raises(StoreError, match=words):
            read(store)[...]


def test_a_manifest_that_is_missing_is_an_error_and_no_fill_value() -> None:
    store = MemoryStore({"zarr.json": document()})
    with pytest.raises(StoreError, match="manifest of the array is missing"):
        read(store)[...]
    assert [finding.rule for finding in check(store, data="size").findings] == ["CHUNK-READ"]


def test_a_manifest_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored(MemoryStore(), {"0.0": place("x")})
    monkeypatch.setattr(manifest, "MOST_NBYTES", 10)
    with pytest.raises(StoreError, match="too large"):
        read(store)[...]


def test_a_manifest_may_name_itself(tmp_path: Path) -> None:
    store = stored(LocalStore(tmp_path), {"0.0": place("manifest.json", 0, 32)})
    assert read(store)[...].shape == (4, 4)
