"""The practice that the OGC community standard describes around Zarr v2, and where its text differs from zarr-specs'."""

from __future__ import annotations

import json
import shutil
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr as zarr
from tessarr.errors import NodeNotFoundError, ReadOnlyError, StoreError, ZarrRuntimeWarning, ZarrUserWarning
from tessarr.storage import CountingStore, MemoryStore, ObjectStore, PrefixStore, Store
from tests.narrow import array_of, group_of


def make_tree(store: Any) -> None:
    """A group, an array of 2 × 2 chunks with the values 0 … 35, and attributes."""
    root = zarr.create_group(store, zarr_format=2, attributes={"title": "tree"})
    values = np.arange(36, dtype="<i4").reshape(6, 6)
    root.create_array("sub/x", data=values, chunks=(3, 3), attributes={"_ARRAY_DIMENSIONS": ["y", "x"]})


# -- stores ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("OGC-01")
def test_in_a_directory_store_keys_are_paths_and_the_chunks_of_an_array_stand_in_one_directory(tmp_path: Path) -> None:
    make_tree(zarr.DirectoryStore(str(tmp_path)))
    files = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert files == sorted(zarr.DirectoryStore(str(tmp_path)).list())
    assert {p.name for p in (tmp_path / "sub/x").iterdir()} == {".zarray", ".zattrs", "0.0", "0.1", "1.0", "1.1"}


def nested_without_saying_so(place: Path) -> None:
    """What nested stores wrote before ``.zarray`` could name the separator."""
    make_tree(zarr.NestedDirectoryStore(str(place)))
    document = json.loads((place / "sub/x/.zarray").read_text())
    assert document.pop("dimension_separator") == "/"
    (place / "sub/x/.zarray").write_text(json.dumps(document))


@pytest.mark.spec("OGC-02")
def test_old_nested_data_is_read_with_the_separator_given_or_through_a_nested_store(tmp_path: Path) -> None:
    nested_without_saying_so(tmp_path)
    expected = np.arange(36).reshape(6, 6)
    z = zarr.open_array(tmp_path, path="sub/x", mode="r", dimension_separator="/")
    assert np.array_equal(z[...], expected)
    store = zarr.NestedDirectoryStore(str(tmp_path))
    assert np.array_equal(zarr.open_array(store, path="sub/x", mode="r")[...], expected)
    assert np.array_equal(array_of(zarr.open_group(store, mode="r")["sub/x"])[...], expected)


@pytest.mark.spec("OGC-02")
def test_old_nested_data_reads_as_fill_value_with_a_warning_otherwise(tmp_path: Path) -> None:
    nested_without_saying_so(tmp_path)
    z = zarr.open_array(tmp_path, path="sub/x", mode="r")
    with pytest.warns(ZarrRuntimeWarning, match=r"dimension_separator='/'"):
        assert not z[...].any()


@pytest.mark.spec("OGC-03")
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("with_directories", [False, True])
def test_a_zip_store_is_a_zipped_directory_store(tmp_path: Path, method: int, with_directories: bool) -> None:
    make_tree(tmp_path / "tree")
    with pytest.warns(ZarrUserWarning, match="ASCII"):
        zarr.open_group(tmp_path / "tree", mode="r+").create_group("grün")
    with zipfile.ZipFile(tmp_path / "tree.zip", "w", method) as archive:
        for file in sorted((tmp_path / "tree").rglob("*")):
            if file.is_file() or with_directories:
                archive.write(file, file.relative_to(tmp_path / "tree"))
    shutil.rmtree(tmp_path / "tree")
    root = group_of(zarr.open(str(tmp_path / "tree.zip"), mode="r"))
    assert np.array_equal(array_of(root["sub/x"])[...], np.arange(36).reshape(6, 6))
    assert set(root) == {"sub", "grün"}
    with pytest.raises(ReadOnlyError):
        root.create_group("more")


def under_prefix(store: Store, prefix: str) -> Store:
    return PrefixStore(store, prefix)


@pytest.mark.spec("OGC-04")
@pytest.mark.parametrize("prefix", ["data/tree", "data/tree/", "/data/tree/"])
def test_keys_in_a_bucket_are_relative_to_a_prefix_with_or_without_a_slash_at_its_end(prefix: str) -> None:
    from obstore.store import MemoryStore as Bucket

    bucket = ObjectStore(Bucket())
    make_tree(under_prefix(bucket, prefix))
    assert {key for key in bucket.list() if "/0." not in key and "/1." not in key} == {
        "data/tree/.zgroup",
        "data/tree/.zattrs",
        "data/tree/sub/.zgroup",
        "data/tree/sub/x/.zarray",
        "data/tree/sub/x/.zattrs",
    }
    assert array_of(zarr.open(bucket, path="data/tree/sub/x", mode="r"))[5, 5] == 35
    assert list(zarr.open_group(under_prefix(bucket, "data/tree"), mode="r")) == ["sub"]


# -- HTTP ------------------------------------------------------------------------------------------------------------


@contextmanager
def served(root: Path, *, status: dict[str, int] | None = None, plain: bool = False) -> Iterator[str]:
    """The URL of a server over a directory that answers GET; `status`: path suffix → answer. `plain`: nothing but GET."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            file = root / self.path.strip("/")
            forced = next((code for suffix, code in (status or {}).items() if self.path.endswith(suffix)), None)
            if forced is not None or not file.is_file():
                self.send_response(forced or 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            data = file.read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


FAST = {"retry_config": {"max_retries": 0}}


@pytest.mark.spec("OGC-05", "OGC-06")
def test_over_http_keys_are_relative_to_the_root_url_and_what_is_missing_is_fill_value(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree")
    (tmp_path / "tree/sub/x/0.1").unlink()
    with served(tmp_path) as url:
        z = zarr.open_array(f"{url}/tree", path="sub/x", mode="r", storage_options=FAST)
        assert z[:3, 3:].tolist() == [[0, 0, 0]] * 3
        assert z[3:, 3:].tolist() == [[21, 22, 23], [27, 28, 29], [33, 34, 35]]
        assert array_of(zarr.open_group(f"{url}/tree/", mode="r", storage_options=FAST)["sub/x"])[0, 1] == 1
        with pytest.raises(NodeNotFoundError):
            zarr.open(f"{url}/tree/nothing", mode="r", storage_options=FAST)


@pytest.mark.spec("OGC-05")
@pytest.mark.parametrize("code", [401, 403, 500, 503])
def test_over_http_what_is_forbidden_or_fails_is_an_error_and_never_fill_value(tmp_path: Path, code: int) -> None:
    make_tree(tmp_path / "tree")
    with served(tmp_path, status={"/0.1": code, "/y/.zarray": code}) as url:
        z = zarr.open_array(f"{url}/tree/sub/x", mode="r", storage_options=FAST)
        assert z[0, 0] == 0
        with pytest.raises(StoreError, match=str(code)):
            z[...]
        with pytest.raises(StoreError, match=str(code)):
            zarr.open(f"{url}/tree/y", mode="r", storage_options=FAST)


@pytest.mark.spec("OGC-05")
def test_an_array_opened_over_http_to_be_read_is_read_only(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree")
    with served(tmp_path) as url:
        z = zarr.open_array(f"{url}/tree/sub/x", mode="r", storage_options=FAST)
        assert z.read_only
        with pytest.raises(ReadOnlyError):
            z[0, 0] = 1
        with pytest.raises(ReadOnlyError):
            z.attrs["a"] = 1


# -- names of dimensions, NCZarr -------------------------------------------------------------------------------------


@pytest.mark.spec("OGC-08")
def test_named_dimensions_of_v2_are_the_attribute_array_dimensions() -> None:
    store: dict[str, bytes] = {}
    make_tree(store)
    z = zarr.open_array(store, path="sub/x", mode="r")
    assert z.dims == z.dimension_names == ("y", "x")
    made = zarr.create_array({}, shape=(2, 3), dtype="i4", zarr_format=2, dimension_names=["a", "b"])
    assert made.attrs["_ARRAY_DIMENSIONS"] == ["a", "b"]
    assert made.dims == ("a", "b")


@pytest.mark.spec("OGC-09")
@pytest.mark.parametrize("wrong", [["y"], ["y", "x", "z"], "yx", [1, 2], {"y": 0}])
def test_names_of_dimensions_are_optional_and_wrong_ones_are_warned_of(wrong: Any) -> None:
    store: dict[str, bytes] = {}
    make_tree(store)
    store["sub/x/.zattrs"] = json.dumps({"_ARRAY_DIMENSIONS": wrong}).encode()
    with pytest.warns(ZarrRuntimeWarning, match="_ARRAY_DIMENSIONS"):
        z = zarr.open_array(store, path="sub/x", mode="r")
    assert z.dims is None
    assert z[0, 1] == 1
    del store["sub/x/.zattrs"]
    assert zarr.open_array(store, path="sub/x", mode="r").dims is None


@pytest.mark.spec("OGC-13")
def test_the_documents_of_nczarr_neither_hinder_nor_are_members(tmp_path: Path) -> None:
    make_tree(tmp_path)
    for name, text in [
        (".nczarr", '{"nczarr_version": "2.0.0"}'),
        (".nczgroup", '{"dims": {"y": 6}, "vars": ["x"], "groups": ["sub"]}'),
        ("sub/x/.nczarray", '{"dimrefs": ["/y", "/x"], "storage": "chunked"}'),
        ("sub/x/.nczattr", '{"types": {}}'),
    ]:
        (tmp_path / name).write_text(text)
    root = zarr.open_group(tmp_path, mode="r")
    assert list(root) == ["sub"]
    assert list(root["sub"]) == ["x"]
    assert array_of(root["sub/x"])[5, 5] == 35


# -- where the two texts differ --------------------------------------------------------------------------------------


@pytest.mark.spec("OGC-20", "OGC-21")
def test_what_is_written_with_periods_has_no_member_that_either_text_forbids() -> None:
    store: dict[str, bytes] = {}
    zarr.create(shape=(4, 4), chunks=(2, 2), dtype="i4", store=store, zarr_format=2, dimension_separator=".")
    members = {"zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters"}
    assert json.loads(store[".zarray"]).keys() == members
    zarr.open_array(store, mode="r+").resize(8, 8)
    assert json.loads(store[".zarray"]).keys() == members


@pytest.mark.spec("OGC-22")
def test_the_first_chunk_of_1000_rows_ends_before_row_1000() -> None:
    store: dict[str, bytes] = {}
    z = zarr.create(shape=2000, chunks=1000, dtype="u1", store=store, zarr_format=2, compressor=zarr.Zlib())
    z[999] = 1
    assert sorted(store) == [".zarray", "0"]
    z[1000] = 2
    assert sorted(store) == [".zarray", "0", "1"]
    assert zlib.decompress(store["1"])[0] == 2


@pytest.mark.spec("OGC-23")
def test_attributes_may_be_nested() -> None:
    store: dict[str, bytes] = {}
    zarr.create_group(store, zarr_format=2, attributes={"a": {"b": [{"c": None}]}})
    assert zarr.open_group(store, mode="r").attrs["a"] == {"b": [{"c": None}]}


@pytest.mark.spec("OGC-07")
def test_a_store_of_the_user_s_needs_only_the_documented_methods() -> None:
    counted = CountingStore(MemoryStore())
    make_tree(counted)
    assert zarr.open_array(counted, path="sub/x", mode="r")[5, 5] == 35
