"""Other implementations read a served place in few requests: the exact ones, in their order."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import obstore.store
import pytest
import tensorstore
import xarray
import zarr

import tessarr
from tessarr.serve import app, serve_background
from tests.serve.client import Counting
from tests.serve.conftest import SHARD
from tests.stores.remote.servers import installed_servers

ZARRITA = """
import * as zarr from "zarrita";
const root = zarr.root(new zarr.FetchStore(process.argv[2]));
const shard = await zarr.open.v3(root.resolve("shard"), { kind: "array" });
const air = await zarr.open.v3(root.resolve("air"), { kind: "array" });
console.log(await zarr.get(shard, [5, 7]), ...(await zarr.get(air, [3, zarr.slice(2, 5)])).data);
"""


def requests(place: Path, read: Callable[[str], Any]) -> tuple[Any, list[str]]:
    """What `read` returns for the URL, and its requests: method, key and range."""
    counting = Counting(app(place, name="data.zarr", token="secret").served)
    with serve_background(counting, port=0) as running:
        found = read(running.url)
    seen = [
        " ".join([method, path.removeprefix("/t/secret/data.zarr/"), *([wanted] if wanted else [])])
        for method, path, wanted in counting.seen
    ]
    return found, seen


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


INDEX = "GET shard/c/0/0 bytes=-1604"


def chunk(place: Path) -> str:
    """The request of the first chunk of the shard, which is where the threads that wrote the shard put it."""
    start, size = np.frombuffer((place / "shard/c/0/0").read_bytes()[-1604:-4], "<u8")[:2]
    return f"GET shard/c/0/0 bytes={start}-{start + size - 1}"


def test_tessarr_and_zarr_python_open_a_hierarchy_by_its_consolidated_metadata(place: Path) -> None:
    documents = {"GET zarr.json", "GET .zgroup", "GET .zattrs", "GET .zmetadata"}

    def by_tessarr(url: str) -> Any:
        group: Any = tessarr.open_group(url, mode="r")
        return group["shard"][5, 7], group["air"][3, 3]

    def by_zarr_python(url: str) -> Any:
        group: Any = zarr.open_group(url, mode="r")
        return group["shard"][5, 7], group["air"][3, 3]

    for read in (by_tessarr, by_zarr_python):
        found, seen = requests(place, read)
        assert found == (SHARD[5, 7], 33.0)
        assert set(seen) - documents == {INDEX, chunk(place), "GET air/c/0/0"}
        assert len(seen) <= 7


def test_tensorstore_reads_a_chunk_of_a_shard_in_three_requests(place: Path) -> None:
    def read(url: str) -> Any:
        return tensorstore.open({"driver": "zarr3", "kvstore": f"{url}/shard/"}).result()[5, 7].read().result()

    assert requests(place, read) == (SHARD[5, 7], ["GET shard/zarr.json", INDEX, chunk(place)])


def test_obstore_lists_and_reads_by_one_request_each(place: Path) -> None:
    def read(url: str) -> Any:
        host, path = re.match(r"(http://[^/]+)/(.*)", url).groups()  # type: ignore[union-attr]
        store = obstore.store.HTTPStore.from_url(host, client_options={"allow_http": True})
        listed = [str(meta["path"]) for batch in obstore.list(store, prefix=f"{path}/air/c") for meta in batch]
        part = bytes(obstore.get_range(store, f"{path}/shard/c/0/0", start=5, length=7))
        return len(listed), part, len(bytes(obstore.get(store, f"{path}/air/c/0/0").bytes()))

    stored = (place / "shard/c/0/0").read_bytes()
    found, seen = requests(place, read)
    assert found == (4, stored[5:12], (place / "air/c/0/0").stat().st_size)
    assert seen == ["PROPFIND air/c", "GET shard/c/0/0 bytes=5-11", "GET air/c/0/0"]


def test_xarray_opens_a_dataset_by_its_consolidated_metadata(tmp_path: Path) -> None:
    data = xarray.Dataset({"air": ("x", np.arange(6.0)), "x": ("x", np.arange(6))})
    data.to_zarr(tmp_path / "d.zarr", zarr_format=3, consolidated=False)

    def read(url: str) -> Any:
        return xarray.open_zarr(url, chunks=None)["air"].sum().item()

    found, seen = requests(tmp_path / "d.zarr", read)
    assert found == 15.0
    assert [one for one in seen if one.endswith("zarr.json")] == ["GET zarr.json"]
    assert len(seen) <= 8


def test_zarrita_reads_a_shard_by_ranges(place: Path) -> None:
    modules = installed_servers() / "zarrita"
    if shutil.which("node") is None or not (modules / "node_modules" / "zarrita").exists():
        pytest.skip("needs Node.js and zarrita, which `make servers` installs")
    script = modules / "read.mjs"
    script.write_text(ZARRITA, encoding="utf-8")
    found, seen = requests(place, lambda url: run("node", str(script), url))
    assert found.split() == ["5007", "32", "33", "34"]
    assert seen == [
        "GET shard/zarr.json", "GET air/zarr.json", "HEAD shard/c/0/0", "GET shard/c/0/0 bytes=4000000-4001603", chunk(place),
        "GET air/c/0/0",
    ]  # fmt: skip


def test_gdal_reads_v2_by_consolidated_metadata_and_the_listing(place2: Path) -> None:
    if shutil.which("gdallocationinfo") is None:
        pytest.skip("needs the programs of GDAL (Debian: apt-get install gdal-bin)")

    def read(url: str) -> Any:
        return run("gdallocationinfo", "-valonly", f'ZARR:"/vsicurl/{url}/":/air', "3", "4")

    found, seen = requests(place2, read)
    assert found.split() == ["43"]
    assert "GET .zmetadata bytes=0-" in " ".join(seen)
    assert any(one.startswith("GET air/0.0") for one in seen)
    assert len(seen) <= 8


def test_wget_copies_every_node_by_one_request_for_each_page_and_document(place: Path, tmp_path: Path) -> None:
    if shutil.which("wget") is None:
        pytest.skip("wget is not installed")

    def read(url: str) -> None:
        run(
            "wget",
            "-q",
            "-r",
            "-np",
            "-nH",
            "--cut-dirs=2",
            "-e",
            "robots=off",
            "-P",
            str(tmp_path / "copy"),
            f"{url}/",
        )

    _, seen = requests(place, read)
    assert len(seen) == len(set(seen)) == 16
    copy = tmp_path / "copy" / "data.zarr"
    assert (copy / "below" / "x" / "zarr.json").read_bytes() == (place / "below" / "x" / "zarr.json").read_bytes()
