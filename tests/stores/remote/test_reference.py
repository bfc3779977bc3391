"""Reference files in JSON and Parquet, over files on disk, behind HTTP and in S3."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray
import zarr.storage

import tessarr
from tessarr.errors import StoreError
from tessarr.stores.base import Fetch, Store
from tessarr.stores.remote.fsspec import FsspecStore
from tessarr.stores.url import open_url
from tessarr.stores.virtual.reference import ReferenceStore
from tessarr.stores.virtual.templates import expand_references, fill
from tessarr.stores.virtual.zarr_python import ZarrPythonStore
from tessarr.types import JSON, ByteRange
from tests.stores.contract import SEED, ReadContract, plain
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS, Server

_number = itertools.count()


def references_of_seed(url: str) -> tuple[dict[str, Any], bytes]:
    """References to `SEED` in one file at `url`, and the file."""
    data = b"head"
    refs: dict[str, Any] = {}
    for key, value in SEED.items():
        if key == "zarr.json":
            refs[key] = value.decode()
        elif key == "a/c/d":
            refs[key] = "base64:" + base64.b64encode(value).decode()
        else:
            refs[key] = [url, len(data), len(value)]
            data += value + b"gap"
    return refs, data


class TestOverHTTP(ReadContract):
    @pytest.fixture
    def seeded(self, nginx: Server) -> Store:
        name = f"ref{next(_number)}.bin"
        refs, data = references_of_seed("{{u}}")
        (nginx.root / "data" / name).write_bytes(data)
        templates = {"u": f"http://{nginx.address}/{name}"}
        return ReferenceStore({"version": 1, "templates": templates, "refs": refs})


class TestOverLocalFiles(ReadContract):
    @pytest.fixture
    def seeded(self, tmp_path: Path) -> Store:
        refs, data = references_of_seed("data.bin")
        (tmp_path / "data.bin").write_bytes(data)
        (tmp_path / "refs.json").write_text(json.dumps(refs))
        return open_url(f"reference:{tmp_path}/refs.json")


def test_parts_of_one_file_are_fetched_in_one_wave(s3_proxy: Proxy) -> None:
    place = f"s3+http://{s3_proxy.address}/bucket/r{next(_number)}"
    data = np.random.default_rng(0).bytes(20_000_000)
    open_url(place, storage_options=S3_OPTIONS).set("data.h5", data)
    s3_proxy.clear()
    refs = {f"t/{number}": [f"{place}/data.h5", number * 1_000_000, 50_000] for number in range(20)}
    store = ReferenceStore(refs, storage_options=S3_OPTIONS)
    s3_proxy.clear()
    found = store.fetch([Fetch(f"t/{number}") for number in range(20)])
    assert [plain(parts) for parts in found] == [[data[n * 1_000_000 :][:50_000]] for n in range(20)]
    assert s3_proxy.counts() == {"GET": 20}
    assert s3_proxy.most_at_once > 1
    again = asyncio.run(store.fetch_async([Fetch("t/3", (ByteRange(5, 9), ByteRange(-2))), Fetch("t/99")]))
    assert plain(again[0]) == [data[3_000_005:3_000_009], data[3_049_998:3_050_000]]
    assert again[1] is None


def test_references_into_several_stores_are_read_from_synchronous_and_from_asynchronous_code(tmp_path: Path) -> None:
    """One of them a store of zarr-python, whose coroutines need its event loop."""
    inner = zarr.storage.MemoryStore()
    given = ZarrPythonStore(inner)
    given.set("data", b"0123456789")
    (tmp_path / "data").write_bytes(b"abcdefghij")
    refs = {"a": [f"{given.url}/data", 2, 3], "b": [str(tmp_path / "data"), 2, 3], "c": [f"{given.url}/data"]}
    wanted = [Fetch("a"), Fetch("b", (ByteRange(-1),)), Fetch("none")]
    store = ReferenceStore(refs)
    assert plain(store.get("a")) == b"234"  # of one store: without an event loop
    assert (store.getsize("a"), store.getsize("c")) == (3, 10)
    assert [plain(found) for found in store.fetch(wanted)] == [[b"234"], [b"e"], None]

    async def read() -> list[list[Any] | None]:
        assert await store.getsize_async("c") == 10
        assert [plain(found) for found in store.fetch(wanted)] == [[b"234"], [b"e"], None]
        return await store.fetch_async(wanted)

    assert [plain(found) for found in asyncio.run(read())] == [[b"234"], [b"e"], None]


def test_templates_and_generated_keys_are_expanded() -> None:
    document: dict[str, JSON] = {
        "version": 1,
        "templates": {"u": "server.domain/path", "f": "{{c}}"},
        "gen": [
            {
                "key": "gen_key{{i}}",
                "url": "http://{{u}}_{{i}}",
                "offset": "{{(i + 1) * 1000}}",
                "length": "1000",
                "dimensions": {"i": {"stop": 3}},
            }
        ],
        "refs": {"key0": "data", "key1": ["http://target_url", 10000, 100], "key2": ["http://{{u}}", 10000, 100],
                 "key3": ["http://{{f(c='text')}}", 10000, 100], "key4": ["http://target_url"]},
    }  # fmt: skip
    assert expand_references(document) == {
        "key0": "data",
        "key1": ["http://target_url", 10000, 100],
        "key2": ["http://server.domain/path", 10000, 100],
        "key3": ["http://text", 10000, 100],
        "key4": ["http://target_url"],
        "gen_key0": ["http://server.domain/path_0", 1000, 1000],
        "gen_key1": ["http://server.domain/path_1", 2000, 1000],
        "gen_key2": ["http://server.domain/path_2", 3000, 1000],
    }


@pytest.mark.parametrize(
    "text", ["{{__import__('os')}}", "{{u.__class__}}", "{{2 ** 9}}", "{{[1]}}", "{{unknown}}", "{{1 // 0}}", "{{(}}"]
)
def test_a_template_is_never_code(text: str) -> None:
    with pytest.raises(StoreError):
        fill(text, {"u": "x"})


def test_too_many_generated_keys_are_refused() -> None:
    rule: dict[str, JSON] = {"key": "{{i}}", "url": "x", "dimensions": {"i": {"stop": 10**9}}}
    with pytest.raises(StoreError, match="too many"):
        expand_references({"version": 1, "refs": {}, "gen": [rule]})


@pytest.mark.parametrize(
    "document",
    [
        {"refs": True},
        {"refs": {}, "templates": [1]},
        {"refs": {}, "gen": [{"url": "x", "dimensions": {"i": [1]}}]},
        {"refs": {}, "gen": [{"key": 1, "url": "x", "dimensions": {"i": [1]}}]},
        {"refs": {}, "gen": [{"key": "{{i}}", "url": "x", "dimensions": {"i": ["{{i}}"]}}]},
        {"refs": {}, "gen": [{"key": "{{i}}", "url": "x", "dimensions": {"i": {"stop": 10**30}}}]},
        {"refs": {"k": ["{{u}}"]}, "templates": {"u": "{{v}}", "v": "{{u}}"}},
    ],
)
def test_a_malformed_document_is_a_typed_error(document: dict[str, Any]) -> None:
    with pytest.raises(StoreError):
        ReferenceStore(document)


@pytest.mark.parametrize("found", [["u", 1], ["u", -1, 2], ["u", 0, float("inf")], ["u", True, 1], ["u", 0, None], [1]])
def test_a_malformed_reference_is_a_typed_error(found: list[Any]) -> None:
    with pytest.raises(StoreError, match="malformed"):
        ReferenceStore({"k": found}).get("k")


@pytest.mark.parametrize("text", ["base64:A", "base64:A A=", "base64:é", "base64:\ud800", "\ud800"])
def test_a_malformed_value_is_a_typed_error(text: str) -> None:
    with pytest.raises(StoreError, match=r"base64|UTF-8"):
        ReferenceStore({"k": text}).get("k")


def test_a_missing_or_short_file_is_an_error_and_no_missing_chunk(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"123")
    store = ReferenceStore(
        {"a/0": ["none", 0, 4], "a/1": ["short", 0, 4], "a/2": [1], "a/3": "base64:?"}, base=str(tmp_path)
    )
    with pytest.raises(StoreError, match="missing"):
        store.get("a/0")
    with pytest.raises(StoreError, match="too short"):
        store.get("a/1")
    with pytest.raises(StoreError, match="malformed"):
        store.get("a/2")
    with pytest.raises(StoreError, match="base64"):
        store.get("a/3")


def test_parquet_references_are_read_record_by_record(tmp_path: Path) -> None:
    (tmp_path / "refs" / "g" / "t").mkdir(parents=True)
    (tmp_path / "data.bin").write_bytes(bytes(range(100)))
    array = {"shape": [5, 3], "chunks": [2, 2], "dtype": "|u1", "zarr_format": 2}
    metadata = {
        ".zgroup": {"zarr_format": 2},
        "g/t/.zarray": json.dumps(array),
        "g/s/.zarray": {"shape": [], "chunks": []},
    }
    (tmp_path / "refs" / ".zmetadata").write_text(json.dumps({"metadata": metadata, "record_size": 4}))
    path = str(tmp_path / "data.bin")
    rows = [(path, 10, 4, None), (path, 0, 0, None), (None, 0, 0, b"raw"), (None, 0, 0, None), (path, 20, 2, None)]
    rows += [(None, 0, 0, None)] * 3
    for record in range(2):
        part = rows[record * 4 : record * 4 + 4]
        columns = dict(zip(("path", "offset", "size", "raw"), map(list, zip(*part, strict=True)), strict=True))
        schema = pa.schema([("path", pa.string()), ("offset", pa.int64()), ("size", pa.int64()), ("raw", pa.binary())])
        pq.write_table(pa.table(columns, schema=schema), tmp_path / "refs" / "g" / "t" / f"refs.{record}.parq")
    schema = pa.table({"path": [path], "offset": [7], "size": [1]})
    (tmp_path / "refs" / "g" / "s").mkdir()
    pq.write_table(schema, tmp_path / "refs" / "g" / "s" / "refs.0.parq")
    store = open_url(f"reference:{tmp_path}/refs")
    expected = {"0.0": bytes(range(10, 14)), "0.1": bytes(range(100)), "1.0": b"raw", "1.1": None, "2.0": b"\x14\x15"}
    assert {key: plain(store.get(f"g/t/{key}")) for key in expected} == expected
    assert plain(store.get("g/s/0")) == b"\7"
    assert json.loads(plain(store.get("g/t/.zarray"))) == array
    assert [store.get(f"g/t/{key}") for key in ("3.0", "0.2", "x", "0", "0.0.0")] == [None] * 5
    assert sorted(store.list_prefix("g/t/")) == ["g/t/.zarray", "g/t/0.0", "g/t/0.1", "g/t/1.0", "g/t/2.0"]
    assert plain(pickle.loads(pickle.dumps(store)).get("g/s/0")) == b"\7"
    store.close()


def test_a_pickle_of_json_references_holds_no_credentials(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"0123")
    store = ReferenceStore(
        {"k": ["data", 1, 2]}, base=str(tmp_path), storage_options={"s3": {"secret": "hush"}, "token": "hush"}
    )
    pickled = pickle.dumps(store)
    assert b"hush" not in pickled
    assert plain(pickle.loads(pickled).get("k")) == b"12"


def fsspec_options(place: Path) -> dict[str, dict[str, Any]]:
    """The forms of storage options by which users of fsspec name references; the file is beside the data."""
    array = {"shape": [4], "chunks": [2], "dtype": "<i4", "compressor": None, "filters": None, "fill_value": None}
    (place / "data.bin").write_bytes(b"head" + np.arange(4, dtype="<i4").tobytes())
    url = str(place / "data.bin")
    refs: dict[str, Any] = {
        ".zgroup": '{"zarr_format": 2}',
        "x/.zarray": json.dumps({"zarr_format": 2, "order": "C"} | array),
    }
    refs |= {"x/.zattrs": '{"_ARRAY_DIMENSIONS": ["t"]}', "x/0": [url, 4, 8], "x/1": [url, 12, 8]}
    document = {"version": 1, "refs": refs}
    (place / "refs.json").write_text(json.dumps(document))
    path = str(place / "refs.json")
    return {
        "path": {"fo": path},
        "url": {"fo": f"file://{path}", "target_options": {"auto_mkdir": False}},
        "document": {"fo": document},
        "plain document": {"fo": refs, "skip_instance_cache": True},
        "options": {"fo": path, "remote_protocol": "file", "remote_options": {"auto_mkdir": False}},
        "asynchronous": {"fo": path, "asynchronous": True, "remote_options": {"asynchronous": True}},
    }


@pytest.mark.parametrize("form", ["path", "url", "document", "plain document", "options", "asynchronous"])
def test_references_that_the_options_of_fsspec_name_are_opened(tmp_path: Path, form: str) -> None:
    options = fsspec_options(tmp_path)[form]
    group = tessarr.open_group("reference://", mode="r", storage_options=options)
    assert [*group.array_keys()] == ["x"]
    assert group.get_array("x")[...].tolist() == [0, 1, 2, 3]
    assert isinstance(group.store, FsspecStore)
    with xarray.open_dataset("reference://", engine="tessarr", storage_options=options, consolidated=False) as found:
        assert found["x"].values.tolist() == [0, 1, 2, 3]


def test_the_flag_of_asynchronous_filesystems_is_removed_from_the_options_of_referenced_files(nginx: Server) -> None:
    name = f"ref{next(_number)}.bin"
    refs, data = references_of_seed(f"http://{nginx.address}/{name}")
    (nginx.root / "data" / name).write_bytes(data)
    options = {"fo": refs, "remote_protocol": "http", "asynchronous": True, "remote_options": {"asynchronous": True}}
    store = open_url("reference://", storage_options=options)
    key = next(key for key, found in refs.items() if isinstance(found, list))
    assert plain([store.get(key)]) == [SEED[key]]


def test_a_url_without_references_says_what_names_them() -> None:
    with pytest.raises(
        StoreError, match=r"names no references.*reference:PATH, or reference:// with the storage option fo"
    ):
        open_url("reference://")
