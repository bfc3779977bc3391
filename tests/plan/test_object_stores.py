"""Plans and the verbs that carry them out between places in object stores."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.errors import BaseZarrError, ConflictError, NodeNotFoundError
from tessarr.plan import Plan
from tessarr.stores.url import store_from
from tests.stores.remote import servers
from tests.stores.remote.proxy import start_proxy

STORAGE = [word for item in servers.S3_OPTIONS.items() for word in ("--storage", "=".join(item))]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """Start an S3 server."""
    with servers.s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def bucket(server: servers.Server) -> str:
    """Give the URL of the bucket of the S3 server."""
    return f"s3+http://{server.address}/bucket"


@pytest.fixture
def source(tmp_path: Path) -> str:
    tessarr.create_array(tmp_path / "a.zarr", data=[[1, 2], [3, 4]], chunks=(1, 2))
    return str(tmp_path / "a.zarr")


@pytest.mark.parametrize("verb", ["copy", "rechunk", "convert"])
def test_a_node_that_a_url_names_is_replaced(verb: str, bucket: str, source: str) -> None:
    place = f"{bucket}/deep/{verb}.zarr"
    assert main([verb, source, place, *STORAGE]) == 0
    tessarr.create_array(place, data=[9, 9, 9], overwrite=True, storage_options=servers.S3_OPTIONS)
    assert main([verb, source, place, *STORAGE]) == 2
    assert main([verb, source, place, "--overwrite", *STORAGE]) == 0
    store = tessarr.open_array(place, mode="r", storage_options=servers.S3_OPTIONS)
    assert store[...].tolist() == [[1, 2], [3, 4]]
    for url in (f"{bucket}/deep", bucket):  # no group is made above what has none
        above, _ = store_from(url, storage_options=servers.S3_OPTIONS)
        assert not [key for key in above.list_prefix("") if "partial" in key or key == "zarr.json"]


def test_the_node_of_a_saved_plan_is_replaced_when_it_is_finished(bucket: str, source: str, tmp_path: Path) -> None:
    place, plan = f"{bucket}/saved.zarr", str(tmp_path / "PLAN")
    tessarr.create_array(place, data=[9, 9, 9], storage_options=servers.S3_OPTIONS)
    assert main(["plan", "copy", source, place, "--overwrite", "--save", plan, *STORAGE]) == 0
    assert main(["run", plan, "--part", "1/1", *STORAGE]) == 0
    assert tessarr.open_array(place, storage_options=servers.S3_OPTIONS).shape == (3,)
    assert main(["finish", plan, *STORAGE]) == 0
    assert tessarr.open_array(place, storage_options=servers.S3_OPTIONS)[...].tolist() == [[1, 2], [3, 4]]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """Serve the files of the test over HTTP, and give the URL."""
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_options_of_a_bucket_are_not_those_of_a_source_elsewhere(
    bucket: str, host: str, source: str, tmp_path: Path
) -> None:
    place, plan = f"{bucket}/from-http.zarr", str(tmp_path / "PLAN")
    assert main(["plan", "copy", f"{host}/a.zarr", place, "--save", plan, *STORAGE]) == 0
    assert main(["run", plan, *STORAGE]) == 0
    assert tessarr.open_array(place, storage_options=servers.S3_OPTIONS)[0].tolist() == [1, 2]
    assert main(["rechunk", f"{host}/a.zarr", f"{bucket}/at-once.zarr", "--chunks", "2,1", *STORAGE]) == 0


def test_source_and_target_have_options_of_their_own(bucket: str, source: str, tmp_path: Path) -> None:
    here, there, plan = f"{bucket}/own.zarr", f"{bucket}/own-copy.zarr", str(tmp_path / "PLAN")
    assert main(["copy", source, here, *STORAGE]) == 0
    own = ["--source-storage" if word == "--storage" else word for word in STORAGE]
    wrong = [word.replace("testkey", "nobody") for word in STORAGE]
    assert main(["copy", here, str(tmp_path / "down.zarr"), *own]) == 0
    assert main(["copy", here, there, *own, *wrong]) != 0
    assert main(["plan", "copy", here, there, "--save", plan, *STORAGE]) == 0
    refused = ["--source-storage" if word == "--storage" else word for word in wrong]
    assert main(["run", plan, *STORAGE, *refused]) != 0
    assert main(["run", plan, *STORAGE, *own]) == 0
    assert tessarr.plan.load(plan, storage_options=servers.S3_OPTIONS).status().finished


def test_what_a_stopped_verb_wrote_is_removed_with_the_options_of_the_target(
    bucket: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{bucket}/stopped/a.zarr"
    tessarr.create_array(place, data=[9, 9, 9], storage_options=servers.S3_OPTIONS)

    def stopped(plan: Plan, **_: object) -> None:
        plan.run_part(1, 1)
        raise KeyboardInterrupt

    monkeypatch.setattr(Plan, "run", stopped)
    assert main(["copy", source, place, "--overwrite", *STORAGE]) == 130
    assert main(["copy", source, f"{bucket}/stopped/b.zarr", *STORAGE]) == 130
    above, _ = store_from(f"{bucket}/stopped", storage_options=servers.S3_OPTIONS)
    assert {key.partition("/")[0] for key in above.list_prefix("")} == {"a.zarr"}


_MB = 1 << 20
_MOVES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "chunks that the end of the array cuts": (
        {"shape": (678, 553), "chunks": (128, 128)}, {"chunks": (128, 128)}, {"memory": 3 * _MB, "strategy": "staged"}
    ),
    "ranges of intermediate shards": (
        {"shape": (2048, 2100), "chunks": (16, 2100)}, {"chunks": (2048, 20)}, {"memory": 6 * _MB, "strategy": "staged"}
    ),
    "inner chunks far apart": (
        {"shape": (2048, 2048), "chunks": (128, 128), "shards": (1024, 1024)},
        {"chunks": (1000, 100)},
        {"memory": 40 * _MB, "strategy": "direct"},
    ),
    "intermediate chunks far apart": (
        {"shape": (2048, 2100), "chunks": (128, 128), "shards": (1024, 1024)},
        {"chunks": (64, 700)},
        {"memory": 20 * _MB, "strategy": "staged"},
    ),
    "encoded chunks out of a shard into others": (
        {"shape": (2048, 2048), "chunks": (128, 128), "shards": (2048, 2048)},
        {"chunks": (128, 128), "shards": (512, 512)},
        {"memory": 60 * _MB, "strategy": "regroup"},
    ),
    "values that are read in parts": (
        {"shape": (3000, 2700), "chunks": (3000, 2700)}, {"chunks": (1500, 1350)}, {"memory": 400 * _MB, "strategy": "direct"}
    ),
    "values that are stored in parts": (
        {"shape": (4096, 5120), "chunks": (1024, 1024)}, {"chunks": (4096, 5120)}, {"memory": 600 * _MB, "strategy": "direct"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", _MOVES)
def test_requests_and_objects_are_as_predicted(kind: str, server: servers.Server) -> None:
    """Where encoded chunks are as long as their elements, and shards have more than half a MiB."""
    before, after, how = _MOVES[kind]
    options: dict[str, Any] = {"storage_options": servers.S3_OPTIONS}
    with start_proxy(server) as proxy, tessarr.config.set({"threading.max_workers": 2}):
        url = f"s3+http://{proxy.address}/bucket/{kind.replace(' ', '-')}"
        source = tessarr.create_array(f"{url}/a", dtype="u4", compressors=None, **before, **options)
        source[...] = np.random.default_rng(0).integers(1, 1 << 32, source.shape, "u4")
        plan = tessarr.plan.rechunk(f"{url}/a", f"{url}/b", verify=False, **after, **how, **options)
        costs = plan.describe().arrays[0]
        assert costs.strategy == how["strategy"]
        proxy.clear()
        assert plan.run(retries=0).finished
        seen = [one for one in proxy.seen if re.search(r"/c(/\d+)+$", one.key)]
        writes = {one.key for one in seen if one.method == "PUT"}
    assert len(writes) == costs.objects + costs.temporary_objects
    assert len(seen) == costs.requests


def test_what_is_read_of_a_file_without_chunks_is_as_predicted(server: servers.Server, tmp_path: Path) -> None:
    """Rows of it are requested as one, so that boxes follow them, and the memory of a task holds them."""
    values, file = np.arange(6_000_000, dtype="f4").reshape(100, 200, 300), io.BytesIO()
    np.save(file, values)
    options: dict[str, Any] = {"source_storage_options": servers.S3_OPTIONS}
    with start_proxy(server) as proxy, tessarr.config.set({"threading.max_workers": 2}):
        url = f"s3+http://{proxy.address}/bucket"
        store_from(url, storage_options=servers.S3_OPTIONS)[0].set("a.npy", file.getvalue())
        with pytest.raises(BaseZarrError, match="a task needs more memory"):
            tessarr.plan.convert(f"{url}/a.npy", tmp_path / "b.zarr", chunks=(100, 20, 30), memory="4MB", **options)
        plan = tessarr.plan.convert(f"{url}/a.npy", tmp_path / "b.zarr", chunks=(100, 20, 30), memory="60MB", **options)
        costs = plan.describe().arrays[0]
        proxy.clear()
        assert plan.run(retries=0).finished
        seen = [one.range for one in proxy.seen if one.key.endswith("a.npy") and one.range != "bytes=0-0"]
    assert len(seen) == costs.chunks_read == costs.requests - costs.objects == 2 * plan.tasks
    assert (tessarr.open_array(tmp_path / "b.zarr")[...] == values).all()


def test_values_that_change_meanwhile_are_noticed_by_two_listings(server: servers.Server) -> None:
    """One request before the first task, and one when the plan is finished, for up to 1,000 chunks."""
    options: dict[str, Any] = {"storage_options": servers.S3_OPTIONS}
    with start_proxy(server) as proxy:
        url = f"s3+http://{proxy.address}/bucket/values"
        array = tessarr.create_array(f"{url}/a", data=np.arange(40), chunks=(2,), **options)
        plan = tessarr.plan.copy(f"{url}/a", f"{url}/b", **options)
        proxy.clear()
        assert plan.run().finished
        listed = [one for one in proxy.seen if "list-type" in one.target and "values%2Fa%2F" in one.target]
        assert len(listed) == 2
        plan = tessarr.plan.copy(f"{url}/a", f"{url}/c", **options)

        def change(*_of: object) -> None:
            array[0] = 5

        with pytest.raises(ConflictError, match="values of the source changed"):
            plan.run(progress=change)
        with pytest.raises(NodeNotFoundError):
            tessarr.open(f"{url}/c", mode="r", **options)
