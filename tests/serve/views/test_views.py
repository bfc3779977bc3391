"""Views by URL hold the stored elements in other chunks, codecs and types, for every client, within budgets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr

import tessarr
from tessarr.serve import BackgroundServer, app, serve_background
from tessarr.serve.dynamic import budget
from tessarr.serve.http.messages import Request
from tessarr.tools.pyramid import build_pyramid
from tests.serve.client import Client

AIR = np.arange(2 * 700 * 1100, dtype="f8").reshape(2, 700, 1100)
FLAGS = np.arange(10) % 3 == 0


@pytest.fixture(scope="module", params=[2, 3])
def stored(request: pytest.FixtureRequest) -> tessarr.Group:
    group = tessarr.open_group(tessarr.storage.MemoryStore(), mode="w", zarr_format=request.param)
    names: dict[str, Any] = {"dimension_names": ("time", "lat", "lon")} if request.param == 3 else {}
    attributes = {"units": "K", **({} if names else {"_ARRAY_DIMENSIONS": ["time", "lat", "lon"]})}
    delta = {"name": "numcodecs.delta", "configuration": {"dtype": "<f8"}}
    more: dict[str, Any] = {"filters": [delta]} if names else {}
    group.create_array("deep/air", data=AIR, chunks=(1, 350, 400), attributes=attributes, **names, **more)
    group.create_array("flags", data=FLAGS)
    group.create_array("big", data=np.array([2**40, 1]), fill_value=-(2**60))
    return group


@pytest.fixture(scope="module")
def served(stored: tessarr.Group) -> Iterator[BackgroundServer]:
    with serve_background(app(stored, token="secret", name="d.zarr"), port=0) as running:
        yield running


@pytest.fixture(scope="module")
def client(stored: tessarr.Group) -> Client:
    return Client(app(stored))


@pytest.mark.parametrize("where", ["deep/air/{}", "{}/deep/air", "deep/{}/air"])
@pytest.mark.parametrize(
    ("options", "chunks", "dtype"),
    [
        ("@chunks=1x64x100", (1, 64, 100), "f8"),
        ("@chunks=2x700x1100,codecs=zstd+crc32c", (2, 700, 1100), "f8"),
        ("@dtype=float32", (1, 350, 400), "f4"),
        ("@codecs=gzip,chunks=3x3", (1, 350, 400), "f8"),
    ],
)
def test_a_view_of_an_array_or_a_group_holds_the_stored_elements(
    served: BackgroundServer, where: str, options: str, chunks: tuple[int, ...], dtype: str
) -> None:
    array = tessarr.open_array(f"{served.url}/{where.format(options)}", mode="r")
    assert (array.zarr_format, array.chunks, array.dtype) == (3, chunks, np.dtype(dtype))
    assert array.dimension_names == ("time", "lat", "lon")
    assert array.attrs.asdict() == {"units": "K"}
    np.testing.assert_array_equal(array[1, 300:420, 350:450], AIR[1, 300:420, 350:450].astype(dtype))
    np.testing.assert_array_equal(array[:, -1], AIR[:, -1].astype(dtype))


def test_other_implementations_read_views(served: BackgroundServer) -> None:
    url = f"{served.url}/@chunks=1x128x128,codecs=blosc,dtype=float32"
    group: Any = zarr.open_group(url, mode="r")
    assert sorted(name for name, _ in group.members(max_depth=None)) == ["big", "deep", "deep/air", "flags"]
    np.testing.assert_array_equal(group["deep/air"][0, 100:200, 900:], AIR[0, 100:200, 900:].astype("f4"))
    array = tensorstore.open({"driver": "zarr3", "kvstore": f"{url}/deep/air/"}).result()
    np.testing.assert_array_equal(array[1, ::50, 3].read().result(), AIR[1, ::50, 3].astype("f4"))


def test_a_view_for_a_client_has_its_types_and_an_image_of_levels(served: BackgroundServer) -> None:
    group: Any = tessarr.open_group(f"{served.url}/@for=neuroglancer", mode="r")
    assert group["flags"][...].tolist() == FLAGS.astype("u1").tolist()
    image = group["deep/air"]
    (entry,) = image.attrs["ome"]["multiscales"]
    assert [axis["name"] for axis in entry["axes"]] == ["time", "lat", "lon"]
    assert [level["path"] for level in entry["datasets"]] == ["0", "1", "2"]
    assert entry["datasets"][2]["coordinateTransformations"][0]["scale"] == [1.0, 4.0, 4.0]
    for number in range(3):
        step = 2**number
        array = image[str(number)]
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array[...], AIR[:, ::step, ::step].astype("f4"))
    plain: Any = tessarr.open_group(f"{served.url}/@for=neuroglancer,levels=none", mode="r")
    assert plain["deep/air"].shape == AIR.shape
    assert tessarr.open_array(f"{served.url}/@for=zarrita/deep/air", mode="r").dtype == np.float64


def test_a_level_of_means_has_the_mean_of_its_elements(served: BackgroundServer) -> None:
    level = tessarr.open_array(f"{served.url}/deep/air/@levels=mean/1", mode="r")
    np.testing.assert_array_equal(level[...], AIR.reshape(2, 350, 2, 550, 2).mean(axis=(2, 4)))


def test_levels_that_are_stored_are_not_levels_of_levels() -> None:
    store = tessarr.storage.MemoryStore()
    group = tessarr.open_group(store, mode="w")
    group.create_array("0", data=np.zeros((1300, 1300), "u1"), dimension_names=("y", "x"))
    build_pyramid(group, "0", levels=1, convention="ome-0.5")
    client = Client(app(store))
    assert client.get("/@for=vizarr/zarr.json").json["attributes"] == group.attrs.asdict()
    assert client.get("/@for=vizarr/1/zarr.json").json["shape"] == [650, 650]
    assert client.get("/@for=vizarr/0/1/zarr.json").status == 404


def test_a_number_beyond_the_type_is_an_error_of_its_chunk(client: Client) -> None:
    answer = client.get("/@dtype=int32/big/c/0")
    assert (answer.status, answer.json["error"]["kind"]) == (500, "range")
    assert client.get("/@dtype=int32/big/zarr.json").json["fill_value"] == 0
    assert np.frombuffer(client.get("/@dtype=float64/big/c/0").body, "<f8").tolist() == [2.0**40, 1.0]


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("/@chunks=0x1/zarr.json", "query"),
        ("/@chunks=1,chunks=2/zarr.json", "query"),
        ("/@chunks=1,shards=2/zarr.json", "query"),
        ("/@codecs=bz2/zarr.json", "query"),
        ("/@dtype=object/zarr.json", "query"),
        ("/@for=me/zarr.json", "query"),
        ("/@levels=best/zarr.json", "query"),
        ("/@dtype=int16/deep/air/zarr.json", "view"),
    ],
)
def test_a_view_without_meaning_says_why(client: Client, target: str, kind: str) -> None:
    answer = client.get(target)
    assert (answer.status, answer.json["error"]["kind"]) == (400, kind)
    assert answer.json["error"]["message"]


def test_what_a_view_lacks_is_missing(client: Client, place: Path) -> None:
    for target in ("/@codecs=none/nope/zarr.json", "/nope/@codecs=none/zarr.json", "/@codecs=none/deep/air/c/9/9/9",
                   "/@codecs=none/deep/air/c/0", "/@codecs=none/deep/air/c/00/0/0", "/@codecs=none/deep/air/x",
                   "/@codecs=none/.zattrs", "/@home/zarr.json", "/@codecs=none/@dtype=int8/zarr.json"):  # fmt: skip
        assert client.get(target).status == 404, target
    assert Client(app(place, dynamic=False)).get("/@codecs=none/zarr.json").status == 404
    (place / "secret.txt").write_text("secret")
    (place / ".hidden").mkdir()
    (place / ".hidden" / "zarr.json").write_bytes((place / "zarr.json").read_bytes())
    for target in ("/@codecs=none/secret.txt", "/@codecs=none/.hidden/zarr.json", "/.hidden/@codecs=none/zarr.json"):
        assert Client(app(place)).get(target).status == 404, target


def test_a_node_of_the_hierarchy_has_precedence() -> None:
    store = tessarr.storage.MemoryStore()
    group = tessarr.open_group(store, mode="w")
    group.create_array("@codecs=none", data=np.arange(3))
    assert Client(app(store)).get("/@codecs=none/zarr.json").json["shape"] == [3]


def test_a_view_is_listed_and_conditional_as_any_place(client: Client) -> None:
    assert client.get("/@codecs=none/").links == ["big/", "deep/", "flags/", "zarr.json"]
    assert client.get("/@for=vizarr/deep/air/").links == ["../", "0/", "1/", "2/", "zarr.json"]
    document = client.get("/@codecs=none/zarr.json")
    assert set(document.json["consolidated_metadata"]["metadata"]) == {"big", "deep", "deep/air", "flags"}
    listed = client("PROPFIND", "/deep/@codecs=none/air/", {"Depth": "1"}).body.decode()
    assert "/deep/%40codecs%3Dnone/air/zarr.json" in listed
    chunk = client.get("/@codecs=none/deep/air/c/1/1/2")
    assert (chunk.status, chunk.nbytes) == (200, 350 * 400 * 8)
    assert client.get("/@codecs=none/deep/air/c/1/1/2", if_none_match=chunk.headers["etag"]).status == 304
    part = client.get("/@codecs=none/deep/air/c/1/1/2", range="bytes=-80")
    assert (part.status, part.body) == (206, chunk.body[-80:])
    assert client("HEAD", "/@codecs=none/deep/air/c/1/1/2").nbytes == chunk.nbytes


def test_a_view_follows_the_data(stored: tessarr.Group) -> None:
    store = tessarr.storage.MemoryStore()
    array = tessarr.create_array(store, name="a", data=np.arange(4, dtype="i2"), chunks=2)
    client = Client(app(store))
    first = client.get("/a/@dtype=int32/c/0")
    array[0] = 7
    assert client.get("/a/@dtype=int32/c/0", if_none_match=first.headers["etag"]).body[:4] == b"\7\0\0\0"
    array.resize((6,))
    assert client.get("/a/@dtype=int32/zarr.json").json["shape"] == [6]
    assert client.get("/a/@dtype=int32/c/2").status == 200


def test_chunks_of_a_view_count_as_decoded_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    store = tessarr.storage.MemoryStore()
    tessarr.create_array(store, name="a", shape=(1 << 16, 1 << 16), chunks=(1 << 15, 1 << 15), dtype="u1")
    client = Client(app(store))
    assert client.get("/a/zarr.json").status == 200
    for target in ("/a/@codecs=none/zarr.json", "/a/@chunks=10000x10000/c/0/0"):  # 1 GiB, 100 MB
        answer = client.get(target)
        assert (answer.status, answer.json["error"]["kind"]) == (413, "budget"), target
    assert client.get("/a/@chunks=1024x1024/c/0/0").nbytes == 1 << 20
    monkeypatch.setattr(budget, "MAX_DECODED_NBYTES", 1 << 29)
    assert client.get("/a/@chunks=1024x1024/c/0/0").status == 413
    application = app(store)
    monkeypatch.undo()
    application.respond(Request.of("GET", "/a/@chunks=1024x1024/c/0/0"))
    assert application.served.budget.used == 0
