"""Plans and the verbs that carry them out between places in object stores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.plan import Plan
from tessarr.stores.url import store_from
from tests.stores.remote import servers

STORAGE = [word for item in servers.S3_OPTIONS.items() for word in ("--storage", "=".join(item))]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start an S3 server, and give the URL of its bucket."""
    root = tmp_path_factory.mktemp("s3")
    with servers.s3_server(root) as server:
        yield f"s3+http://{server.address}/bucket"


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
