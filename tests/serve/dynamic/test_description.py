"""A description says what a node is, strictly in JSON, and lists members page by page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.serve import app
from tessarr.serve.dynamic import answers
from tests.serve.client import Client
from tests.serve.conftest import ODD


def test_a_group_lists_its_members_with_type_and_shape(client: Client) -> None:
    found = client.get("/?json").json
    members = {member["name"]: member for member in found["members"]}
    assert set(members) == {"air", "point", "below", ODD, "shard"}
    assert members["air"] == {
        "name": "air", "kind": "array", "dtype": "float64", "shape": [10, 10], "dimensions": [None, None],
    }  # fmt: skip
    assert members["below"] == {"name": "below", "kind": "group"}
    assert found["attributes"] == {"title": "served"}
    assert json.loads(found["documents"]["zarr.json"])["node_type"] == "group"


def test_an_array_is_described_with_its_grid(client: Client) -> None:
    found = client.get("/shard/?json").json
    assert found["grid"] == {"chunks": [100, 100], "shards": [1000, 1000]}
    assert (found["numpy"], found["itemsize"], found["is_raw"]) == ("<i4", 4, True)


def test_members_come_in_pages(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PAGE", 2)
    client, seen, target = Client(app(place)), [], "/?json"
    for _ in range(3):
        found = client.get(target).json
        seen += [member["name"] for member in found["members"]]
        target = f"/?json&after={found['next']}".replace("%", "%25").replace("+", "%2B").replace("#", "%23")
    assert seen == sorted(["air", "point", "below", ODD, "shard"])
    assert found["next"] is None


def test_pyramids_name_their_levels_and_levels_their_pyramid() -> None:
    store = tessarr.storage.MemoryStore()
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    datasets = [
        {"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": [2.0**level] * 2}]}
        for level in (0, 1)
    ]
    ome = {"ome": {"version": "0.5", "multiscales": [{"name": "cells", "axes": axes, "datasets": datasets}]}}
    group = tessarr.open_group(store, path="image", mode="w", attributes=ome)
    for level in (0, 1):
        group.create_array(str(level), data=np.zeros((8 >> level, 8 >> level)))
    client = Client(app(store, path="image"))
    (pyramid,) = client.get("/?json").json["pyramids"]
    assert (pyramid["paths"], pyramid["scales"]) == (["0", "1"], [[1.0, 1.0], [2.0, 2.0]])
    assert client.get("/1/?json").json["pyramid"]["group"] == ""
    assert client.get("/1/?json").json["pyramid"]["name"] == "cells"


def test_what_cannot_be_parsed_is_described_with_its_problem(place: Path) -> None:
    (place / "air" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array", "attributes": {}}')
    client = Client(app(place))
    found = client.get("/air/?json")
    assert found.status == 200
    assert "shape" in found.json["problem"]
    assert next(member for member in client.get("/?json").json["members"] if member["name"] == "air")["problem"]


def test_nan_in_attributes_is_null(place2: Path) -> None:
    (place2 / "air" / ".zattrs").write_text('{"a": [NaN, {"b": Infinity}]}')
    body = Client(app(place2)).get("/air/?json").body
    strict = json.loads(body, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))
    assert strict["attributes"] == {"a": [None, {"b": "Infinity"}]}


def test_files_of_a_page_are_beside_the_hierarchy(place: Path) -> None:
    page = {"index.html": (b"<title>x</title>", "text/html; charset=utf-8"), "a.js": (b"1", "text/javascript")}
    client = Client(app(place, name="data.zarr", token="T", page=page))
    found = client.get("/t/T/@view/")
    assert (found.status, found.body) == (200, b"<title>x</title>")
    assert "script-src 'self'" in found.headers["content-security-policy"]
    assert client.get("/t/T/@view/place.json").json == {"root": "../data.zarr", "name": "data.zarr"}
    assert client.get("/t/T/@view/a.js", If_None_Match=client.get("/t/T/@view/a.js").headers["etag"]).status == 304
    assert [client.get(path).status for path in ("/t/T/@view/b.js", "/@view/", "/t/T/@view/../a.js")] == [404, 401, 404]
    assert client.get("/t/T/").headers["location"] == "/t/T/@view/"
    assert Client(app(place)).get("/@view/").status == 404
