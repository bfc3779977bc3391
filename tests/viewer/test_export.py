"""``tessarr view --export`` writes a page that needs no server of tessarr."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.cli import main
from tessarr.errors import NodeNotFoundError, UnsupportedOperationError
from tessarr.storage import MemoryStore
from tessarr.viewer import export, page_files


def test_the_directory_holds_the_page_and_what_a_server_would_say(tmp_path: Path) -> None:
    place = tmp_path / "data #1.zarr"
    group = tessarr.open_group(place, mode="w", attributes={"title": "x"})
    days = {"units": "days since 2000-01-01"}
    group.create_array("time", data=np.arange(3), dimension_names=("time",), attributes=days)
    group.create_array("below/air", data=np.arange(6.0).reshape(3, 2), dimension_names=("time", "x"))
    group.create_array("below/time", data=np.arange(3), dimension_names=("time",), attributes=days)
    assert main(["view", str(place), "--export", str(tmp_path / "site" / "page")]) == 0
    found = {one.name: one for one in (tmp_path / "site" / "page").iterdir()}
    assert set(found) == {*page_files(), "place.json", "nodes.json"}
    about = json.loads(found["place.json"].read_text())
    assert about == {"root": "../../data%20%231.zarr", "name": "data #1.zarr", "nodes": "nodes.json"}
    content = json.loads(found["nodes.json"].read_text())
    assert sorted(content["nodes"]) == ["", "below", "below/air", "below/time", "time"]
    air = content["nodes"]["below/air"]
    assert air["shape"] == [3, 2]
    assert air["findings"] == []
    assert air["coordinates"] == ["below/time", None]
    assert content["coordinates"]["below/time"]["data"][1].startswith("2000-01-02")
    assert str(tmp_path) not in found["nodes.json"].read_text()


def test_the_page_of_one_array_has_the_coordinates_beside_it(tmp_path: Path) -> None:
    group = tessarr.open_group(tmp_path / "w.zarr", mode="w")
    group.create_array("air", data=np.arange(6.0).reshape(3, 2), dimension_names=("lat", "x"))
    group.create_array("lat", data=np.array([10.0, 20.0, 30.0]), dimension_names=("lat",))
    assert export.export(tmp_path / "w.zarr" / "air", tmp_path / "page", url="../w.zarr/air") == 1
    content = json.loads((tmp_path / "page" / "nodes.json").read_text())
    assert content["nodes"][""]["coordinates"] == ["lat", None]
    assert content["coordinates"]["lat"]["data"] == [10.0, 20.0, 30.0]


def test_all_members_of_a_large_group_are_described(tmp_path: Path) -> None:
    store = MemoryStore()
    tessarr.open_group(store, mode="w")
    document = bytes(
        tessarr.create_array(store, name="a0000", shape=(1,), dtype="i1").store.get("a0000/zarr.json") or b""
    )
    for number in range(1, 1205):
        store.set(f"a{number:04d}/zarr.json", document)
    assert export.export(store, tmp_path, url="https://example.org/x.zarr") == 1206
    content = json.loads((tmp_path / "nodes.json").read_text())
    members = content["nodes"][""]["members"]
    assert [one["name"] for one in members] == [f"a{number:04d}" for number in range(1205)]
    assert content["nodes"][""]["next"] is None


def test_too_many_nodes_no_node_and_no_address_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    with pytest.raises(NodeNotFoundError):
        export.export(store, tmp_path / "page", url="x")
    tessarr.create_array(store, name="a", shape=(1,), dtype="i1")
    monkeypatch.setattr(export, "MAX_NODES", 1)
    with pytest.raises(UnsupportedOperationError, match="2 nodes"):
        export.export(store, tmp_path / "page", url="x")
    assert not (tmp_path / "page").exists()
    assert main(["view", "memory://nothing", "--export", str(tmp_path / "page")]) == 2
