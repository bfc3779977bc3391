"""Plans and the verbs that carry them out between places in object stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tessarr
from tessarr.cli import main
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
    beside, _ = store_from(f"{bucket}/deep", storage_options=servers.S3_OPTIONS)
    assert not [key for key in beside.list_prefix("") if "partial" in key]


def test_the_node_of_a_saved_plan_is_replaced_when_it_is_finished(bucket: str, source: str, tmp_path: Path) -> None:
    place, plan = f"{bucket}/saved.zarr", str(tmp_path / "PLAN")
    tessarr.create_array(place, data=[9, 9, 9], storage_options=servers.S3_OPTIONS)
    assert main(["plan", "copy", source, place, "--overwrite", "--save", plan, *STORAGE]) == 0
    assert main(["run", plan, "--part", "1/1", *STORAGE]) == 0
    assert tessarr.open_array(place, storage_options=servers.S3_OPTIONS).shape == (3,)
    assert main(["finish", plan, *STORAGE]) == 0
    assert tessarr.open_array(place, storage_options=servers.S3_OPTIONS)[...].tolist() == [[1, 2], [3, 4]]
