"""URL pipelines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.memory.store import ManagedMemoryStore
from tessarr.stores.url import open_url
from tessarr.stores.virtual.pipeline import join, open_pipeline, parse
from tessarr.stores.zip.store import ZipStore
from tests.narrow import array_of, bytes_of
from tests.stores.contract import plain
from tests.stores.remote.servers import S3_OPTIONS, Server
from tests.stores.remote.test_remote_zip import archive


@pytest.mark.parametrize(
    ("base", "relative", "expected"),
    [
        (
            "gs://bucket/path/to/outer.zip|zip:path/to/inner.zip",
            "|..:other/zarr/hierarchy|zarr3:path/to/array",
            "gs://bucket/path/to/other/zarr/hierarchy/|zarr3:path/to/array",
        ),
        ("gs://bucket/path/to/", "file.zip|zip:path/within/zip", "gs://bucket/path/to/file.zip|zip:path/within/zip"),
        ("gs://bucket/path/to/", "/file.zip|zip:path/within/zip", "gs://bucket/file.zip|zip:path/within/zip"),
        (
            "gs://bucket/path/to/file.zip|zip:path/within/zip",
            "..:/path/to/other.zip|zip:path/in/other/zip",
            "gs://bucket/path/to/other.zip|zip:path/in/other/zip",
        ),
        ("s3://b/a.zip|zip:x/y", "z", "s3://b/a.zip|zip:x/z"),
        ("s3://b/a/", "https://e.com/b|zip", "https://e.com/b|zip:"),
        ("file:a/b/", "c", "file:a/b/c"),
    ],
)
def test_a_relative_pipeline_is_seen_from_its_base(base: str, relative: str, expected: str) -> None:
    assert join(base, relative) == expected


@pytest.mark.parametrize(
    "url", ["a.zip|zip:", "|zip:", "s3://b/a|", "s3://b/a|..:x", "s3://b/a|zip:../x", "s3://b/a|z p:"]
)
def test_a_malformed_pipeline_is_refused(url: str) -> None:
    with pytest.raises(StoreError):
        parse(url)


def test_unknown_adapters_and_misplaced_formats_are_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="ocdbt"):
        open_pipeline("memory://pipeline/x|ocdbt:")
    with pytest.raises(StoreError, match="last"):
        open_pipeline("memory://pipeline/x|zarr3:a|zip:")


def test_a_pipeline_opens_zips_in_zips_with_path_and_format() -> None:
    inner = archive({"g/zarr.json": b"{}"})
    store = ManagedMemoryStore("pipeline")
    store.set("dir/outer.zip", archive({"in/inner.zip": inner}))
    opened = open_pipeline("memory://pipeline/dir/outer.zip|zip:in/inner.zip|zip|zarr3:g")
    assert (opened.path, opened.zarr_format) == ("g", 3)
    assert plain(opened.store.get("g/zarr.json")) == b"{}"
    assert open_url(opened.store.url) == opened.store
    prefixed = open_url("memory://pipeline/dir/outer.zip|zip:in/inner.zip|zip:g/")
    assert plain(prefixed.get("zarr.json")) == b"{}"


def test_local_and_http_archives_open(tmp_path: Path, nginx: Server) -> None:
    data = archive({"a/zarr.json": b"{}"})
    (tmp_path / "x.zip").write_bytes(data)
    (nginx.root / "data" / "x.zip").write_bytes(data)
    url = f"http://{nginx.address}/x.zip"
    for place in (f"{(tmp_path / 'x.zip').as_uri()}|zip:a", f"{url}|zip:a", f"zip://a::{url}"):
        assert plain(open_url(place).get("zarr.json")) == b"{}"
    assert plain(open_url(url).get("a/zarr.json")) == b"{}"
    assert plain(open_url(f"zip::{url}").get("a/zarr.json")) == b"{}"


def test_a_pipeline_is_a_place_like_any_other(tmp_path: Path, s3: Server) -> None:
    import tessarr

    with ZipStore(tmp_path / "a b.zip", mode="w") as made:
        tessarr.create_array(made, name="in side/x", data=[1, 2, 3])
    data = (tmp_path / "a b.zip").read_bytes()
    open_url(f"s3+http://{s3.address}/bucket/arch", storage_options=S3_OPTIONS).set("a b.zip", data)
    for root, options in (
        ((tmp_path / "a b.zip").as_uri(), None),
        (f"s3+http://{s3.address}/bucket/arch/a%20b.zip", S3_OPTIONS),
    ):
        url = f"{root}|zip:in%20side/|zarr3:x"
        assert array_of(tessarr.open(url, mode="r", storage_options=options))[...].tolist() == [1, 2, 3]
        store = open_url(f"{root}|zip:in%20side", storage_options=options)
        assert tessarr.open_array(store.url, path="x", mode="r", storage_options=options)[1] == 2


def test_a_path_may_have_a_bar_in_it(tmp_path: Path) -> None:
    import tessarr

    tessarr.create_array(str(tmp_path / "a|b"), data=[1])
    assert (tmp_path / "a|b" / "zarr.json").is_file()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_format_at_the_end_of_a_url_is_the_only_one_opened_and_created(tmp_path: Path, zarr_format: int) -> None:
    other = 5 - zarr_format
    url = f"{tmp_path.as_uri()}/a"
    made = tessarr.create_array(f"{url}|zarr{zarr_format}:", data=np.arange(4))
    assert made.zarr_format == zarr_format
    for opens in (tessarr.open, tessarr.open_array):
        assert opens(f"{url}|zarr{zarr_format}:", mode="r").zarr_format == zarr_format
        assert opens(f"{url}|zarr:", mode="r").zarr_format == zarr_format
        with pytest.raises(tessarr.errors.NodeNotFoundError, match=f"no Zarr v{other}"):
            opens(f"{url}|zarr{other}:", mode="r")
    with pytest.raises(ValueError, match="the URL asks for"):
        tessarr.open(f"{url}|zarr{zarr_format}:", mode="r", zarr_format=other)
    group = tessarr.open_group(f"{tmp_path.as_uri()}/g|zarr{zarr_format}:", mode="a")
    assert group.zarr_format == zarr_format
    assert tessarr.group(f"{tmp_path.as_uri()}/h|zarr{zarr_format}:").zarr_format == zarr_format


def test_the_format_at_the_end_decides_where_both_are_stored(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a", data=np.zeros(4), zarr_format=2)
    new = tessarr.create_array(tmp_path / "b", data=np.ones(4), zarr_format=3)
    (tmp_path / "a" / "zarr.json").write_bytes(bytes_of(new.store.get("zarr.json")))
    for zarr_format in (2, 3):
        assert tessarr.open(f"{tmp_path.as_uri()}/a|zarr{zarr_format}:", mode="r").zarr_format == zarr_format


def test_a_local_archive_is_written_through_its_url(tmp_path: Path) -> None:
    url = f"{tmp_path.as_uri()}/new.zip|zip:group"
    with tessarr.create_array(f"{url}|zarr2:x", data=np.arange(4)).store:
        pass
    found = array_of(tessarr.open(f"{url}|zarr2:x", mode="r"))
    assert (found[:].tolist(), found.zarr_format) == ([0, 1, 2, 3], 2)
    assert (tmp_path / "new.zip").is_file()


def test_a_path_with_adapters_behind_it_is_a_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ZipStore("a.zip", mode="w") as archive:
        tessarr.create_array(archive, name="in/x", data=[1, 2])
    tessarr.create_array("g.zarr", name="x", data=[3], zarr_format=2)
    for place in (
        "a.zip|zip:in/x",
        str(tmp_path / "a.zip|zip:in|zarr3:x"),
        "zip://in/x::a.zip",
        f"zip://in/x::{tmp_path}/a.zip",
    ):
        assert tessarr.open_array(place, mode="r")[...].tolist() == [1, 2], place
    assert tessarr.open_array("g.zarr|zarr2:x", mode="r")[...].tolist() == [3]
    with pytest.raises(tessarr.errors.NodeNotFoundError, match="no Zarr v3"):
        tessarr.open_array("g.zarr|zarr3:x", mode="r")
