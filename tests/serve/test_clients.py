"""Clients that read Zarr over HTTP find every value, list what they can list, and read shards by ranges."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import obstore
import pytest
import tensorstore
import zarr
from obstore.store import HTTPStore

import tessarr
from tessarr.serve import BackgroundServer, app, serve_background
from tests.serve.conftest import SHARD

AIR = np.arange(100.0).reshape(10, 10)


@pytest.fixture(params=["v3", "v2"])
def served(request: pytest.FixtureRequest, place: Path, place2: Path) -> Iterator[BackgroundServer]:
    at = place if request.param == "v3" else place2
    with serve_background(app(at, name="d t.zarr", token="secret"), port=0) as running:
        yield running


@pytest.fixture
def served3(place: Path) -> Iterator[BackgroundServer]:
    with serve_background(app(place, name="data.zarr", token="secret"), port=0) as running:
        yield running


def test_tessarr_reads_a_hierarchy(served: BackgroundServer) -> None:
    group = tessarr.open_group(served.url, mode="r")
    assert sorted(name for name, _ in group.arrays()) == [
        "air",
        "point",
        *(["shard"] if group.zarr_format == 3 else []),
    ]
    array = tessarr.open_array(f"{served.url}/air", mode="r")
    assert np.array_equal(array[...], AIR)
    assert tessarr.open_array(f"{served.url}/point", mode="r")[()] == 7


def test_tessarr_reads_a_shard_by_ranges(served3: BackgroundServer) -> None:
    array = tessarr.open_array(f"{served3.url}/shard", mode="r")
    assert np.array_equal(array[123:456, 7], SHARD[123:456, 7])


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_zarr_python_reads_a_hierarchy_through_fsspec(served: BackgroundServer) -> None:
    pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp, which is not installed")
    group = zarr.open_group(served.url, mode="r")
    assert {name for name, _ in group.members(max_depth=None)} >= {"air", "point", "below", "below/x"}
    air, x = group["air"], group["below/x"]
    assert isinstance(air, zarr.Array)
    assert isinstance(x, zarr.Array)
    assert np.array_equal(np.asarray(air[...]), AIR)
    assert np.array_equal(np.asarray(x[...]), np.arange(6))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_fsspec_lists_by_links(served3: BackgroundServer) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp, which is not installed")
    files = fsspec.filesystem("http")
    names = {name.rstrip("/").rpartition("/")[2] for name in files.ls(f"{served3.url}/", detail=False)}
    assert {"air", "below", "point", "shard", "zarr.json"} <= names
    assert files.info(f"{served3.url}/shard/c/0/0")["size"] == 4001604


def test_tensorstore_reads_arrays_and_shards(served: BackgroundServer) -> None:
    is_v3 = tessarr.open_group(served.url, mode="r").zarr_format == 3
    driver = "zarr3" if is_v3 else "zarr"
    array = tensorstore.open({"driver": driver, "kvstore": f"{served.url}/air/"}).result()
    assert np.array_equal(array.read().result(), AIR)
    if is_v3:
        shard = tensorstore.open({"driver": "zarr3", "kvstore": f"{served.url}/shard/"}).result()
        assert np.array_equal(shard[123:456, 7].read().result(), SHARD[123:456, 7])


def test_obstore_reads_and_lists(served3: BackgroundServer, place: Path) -> None:
    host, _, path = served3.url.removeprefix("http://").partition("/")
    store = HTTPStore.from_url(f"http://{host}", client_options={"allow_http": True})
    found = {str(meta["path"]) for batch in obstore.list(store, prefix=path) for meta in batch}
    assert f"{path}/air/c/1/1" in found
    assert f"{path}/below/x/zarr.json" in found
    key = f"{path}/shard/c/0/0"
    stored = (place / "shard" / "c" / "0" / "0").read_bytes()
    assert bytes(obstore.get_range(store, key, start=5, length=7)) == stored[5:12]
    assert [bytes(part) for part in obstore.get_ranges(store, key, starts=[0, 4000000], lengths=[4, 4])] == [
        stored[:4],
        stored[4000000:4000004],
    ]
    assert obstore.head(store, key)["size"] == len(stored)
    etag = obstore.head(store, key)["e_tag"]
    with pytest.raises(obstore.exceptions.NotModifiedError):
        obstore.get(store, key, options={"if_none_match": etag})
    with pytest.raises(FileNotFoundError):
        obstore.get(store, f"{path}/air/c/7/7")


def test_curl_reads_ranges_and_conditions(served3: BackgroundServer, place: Path) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    url = f"{served3.url}/shard/c/0/0"
    stored = (place / "shard" / "c" / "0" / "0").read_bytes()

    def run(*arguments: str) -> bytes:
        return subprocess.run([str(curl), "-s", *arguments], capture_output=True, check=True, timeout=60).stdout

    assert run(url) == stored
    assert run("-r", "-100", url) == stored[-100:]
    assert run("-r", "100-199", "--compressed", url) == stored[100:200]
    status = ("-o", "/dev/null", "-w", "%{http_code}")
    assert run(*status, "-r", "9999999-", url) == b"416"
    assert run(*status, "-X", "PUT", "-d", "x", url) == b"405"
    assert run(*status, "--path-as-is", f"{served3.url}/../../../../etc/passwd") == b"404"


def test_wget_follows_the_links(served3: BackgroundServer, place: Path, tmp_path: Path) -> None:
    wget = shutil.which("wget")
    if wget is None:
        pytest.skip("wget is not installed")
    command = [wget, "-q", "-r", "-np", "-nH", "--cut-dirs=2", "-e", "robots=off", f"{served3.url}/"]
    subprocess.run(command, cwd=tmp_path, check=False, timeout=60)
    copy = tmp_path / "data.zarr"
    assert (copy / "air" / "zarr.json").read_bytes() == (place / "air" / "zarr.json").read_bytes()
    assert (copy / "below" / "x" / "zarr.json").exists()
