"""Slices by URL hold what NumPy selects, decoded by CF, and cost no more than their budgets."""

from __future__ import annotations

import csv
import io
import struct
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.serve import app
from tessarr.serve.contained import ContainedStore
from tessarr.serve.dynamic import budget
from tessarr.serve.dynamic.budget import Budget
from tessarr.serve.dynamic.refusal import Refusal
from tessarr.storage import Store
from tessarr.stores.wrappers.counting import CountingStore
from tests.serve.client import Answer, Client
from tests.waiting import PATIENCE_S

AIR = np.arange(2 * 30 * 40, dtype="i2").reshape(2, 30, 40)
LAT = np.linspace(60.0, 31.0, 30)


@pytest.fixture(scope="module")
def weather() -> Client:
    store = tessarr.storage.MemoryStore()
    group = tessarr.open_group(store, mode="w")
    packed = {"scale_factor": 0.5, "add_offset": 200.0, "_FillValue": 7, "units": "K"}
    names = ("time", "lat", "lon")
    group.create_array("air", data=AIR, chunks=(1, 10, 10), dimension_names=names, attributes=packed)
    days = {"units": "days since 2000-01-01"}
    group.create_array("time", data=np.array([0, 31]), dimension_names=("time",), attributes=days)
    group.create_array("lat", data=LAT, dimension_names=("lat",))
    group.create_array("plain", data=np.arange(12.0).reshape(3, 4) * 1.1)
    group.create_array("deep/air", data=AIR[0], dimension_names=("lat", "lon"))
    return Client(app(store))


def client_of(store: Store | None = None, **arguments: Any) -> Client:
    """A client of a hierarchy with the array ``a``, whose arguments are given."""
    where = tessarr.storage.MemoryStore() if store is None else store
    tessarr.create_array(where, name="a", **arguments)
    return Client(app(where))


def values(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    return np.load(io.BytesIO(answer.body))


def pixels(answer: Answer) -> Any:
    """Decode a PNG of eight bits, red, green, blue and opacity, whose rows have filter 2."""
    assert answer.status == 200, answer.body
    data, at, found = answer.body, 8, b""
    while at < len(data):
        (nbytes,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        part = data[at + 8 : at + 8 + nbytes]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", part[:8])
        found += part if kind == b"IDAT" else b""
        at += 12 + nbytes
    rows = np.frombuffer(zlib.decompress(found), np.uint8).reshape(height, 1 + 4 * width)
    assert set(rows[:, 0]) == {2}
    return np.cumsum(rows[:, 1:], axis=0, dtype=np.uint8).reshape(height, width, 4)


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("", np.s_[...]),
        ("time=1&lat=3:20:4", np.s_[1, 3:20:4]),
        ("lon=-1", np.s_[:, :, -1]),
        ("0=0&2=::7", np.s_[0, :, ::7]),
        ("time=2000-02-01", np.s_[1]),
        ("time=2000-01..2000-01&lon=0", np.s_[0:1, :, 0]),
        ("lat=exact::59", np.s_[:, 1]),
        ("lat=nearest::58.6&lon=2", np.s_[:, 1, 2]),
        ("lat=56.5..59.2", np.s_[:, 1:4]),
        ("lat=5:5", np.s_[:, 5:5]),
    ],
)
def test_a_slice_holds_the_elements_that_numpy_selects(weather: Client, query: str, index: Any) -> None:
    stored = values(weather.get(f"/air.npy?{query}{'&' if query else ''}decode=0"))
    assert stored.dtype == AIR.dtype
    np.testing.assert_array_equal(stored, AIR[index])
    meant = np.where(AIR == 7, np.nan, AIR * 0.5 + 200)
    np.testing.assert_array_equal(values(weather.get(f"/air.npy?{query}")), meant[index])


def test_raw_values_are_little_endian_and_described_in_headers() -> None:
    data = np.arange(6, dtype=">u8").reshape(2, 3) + 2**60
    answer = client_of(data=data).get("/a.raw?0=1")
    assert (answer.headers["x-shape"], answer.headers["x-dtype"]) == ("3", "<u8")
    assert answer.body == data[1].astype("<u8").tobytes()


def test_json_has_coordinates_and_strict_numbers(weather: Client) -> None:
    document = weather.get("/air.json?lat=0&lon=6:9").json
    assert document["dims"] == ["time", "lon"]
    assert document["coords"] == {"time": ["2000-01-01T00:00:00.000000", "2000-02-01T00:00:00.000000"]}
    assert document["data"] == [[203.0, None, 204.0], [803.0, 803.5, 804.0]]
    assert document["units"] == "K"


def test_csv_has_a_row_per_element_that_reads_back_exactly(weather: Client) -> None:
    rows = list(csv.reader(io.StringIO(weather.get("/plain.csv").body.decode())))
    assert rows[0] == ["dim_0", "dim_1", "plain"]
    assert [float(row[2]) for row in rows[1:]] == (np.arange(12.0) * 1.1).tolist()
    assert rows[7][:2] == ["1", "2"]


def test_labels_are_found_in_groups_above(weather: Client) -> None:
    np.testing.assert_array_equal(values(weather.get("/deep/air.npy?lat=exact::40")), AIR[0, 20])


def test_labels_of_an_array_that_is_served_alone_are_beside_it(tmp_path: Path) -> None:
    group = tessarr.open_group(tmp_path / "w.zarr", mode="w")
    group.create_array("air", data=np.arange(6.0).reshape(2, 3), dimension_names=("time", "lat"))
    days = {"units": "days since 2000-01-01"}
    group.create_array("time", data=np.array([0, 31]), dimension_names=("time",), attributes=days)
    group.create_array("lat", data=np.array([10.0, 20.0]), dimension_names=("lat",))  # of another length
    group.create_array("secret", data=np.arange(3))
    (tmp_path / "link.zarr").mkdir()
    (tmp_path / "link.zarr" / "zarr.json").write_bytes((tmp_path / "w.zarr" / "zarr.json").read_bytes())
    (tmp_path / "link.zarr" / "time").symlink_to(tmp_path / "w.zarr" / "time")
    (tmp_path / "w.zarr" / "air").rename(tmp_path / "air")
    for place, path in (("w.zarr/air", ""), ("w.zarr", "air")):
        (tmp_path / "air").rename(tmp_path / "w.zarr" / "air")
        alone = Client(app(tmp_path / place, path))
        assert alone.get("/?json").json["coordinates"] == ["time", None]
        assert [one[:10] for one in alone.get("/time.json").json["data"]] == ["2000-01-01", "2000-02-01"]
        assert alone.get("/.json?time=2000-02-01").json["data"] == [3.0, 4.0, 5.0]
        assert [alone.get(f"/{name}.json").status for name in ("lat", "secret", "air", "..%2Ftime")] == [404] * 4
        assert [alone.get(target).status for target in ("/time/zarr.json", "/time/c/0", "/secret/c/0")] == [404] * 3
        (tmp_path / "w.zarr" / "air").rename(tmp_path / "air")
    (tmp_path / "air").rename(tmp_path / "link.zarr" / "air")
    outside = Client(app(tmp_path / "link.zarr" / "air"))
    assert outside.get("/?json").json["coordinates"] == [None, None], "a link out of the group is not followed"


def test_an_array_of_coordinates_that_is_served_alone_is_its_own(tmp_path: Path) -> None:
    group = tessarr.open_group(tmp_path / "w.zarr", mode="w")
    group.create_array("lat", data=np.array([10.0, 20.0]), dimension_names=("lat",))
    assert Client(app(tmp_path / "w.zarr" / "lat")).get("/?json").json["coordinates"] == [""]
    assert Client(app(tmp_path / "w.zarr")).get("/lat/?json").json["coordinates"] == ["lat"]
    assert Client(app(tmp_path / "w.zarr" / "lat")).get("/.json?lat=exact::20").json["data"] == 20.0


def test_looking_for_labels_beside_an_array_asks_for_the_group_and_one_array_per_dimension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tessarr.open_group(tmp_path / "w.zarr", mode="w")
    group.create_array("air", data=np.ones((2, 3, 4)), dimension_names=("time", "lat", None))
    for number in range(20):
        group.create_array(f"other{number}", data=np.ones(2))
    alone = Client(app(tmp_path / "w.zarr" / "air"))
    asked: list[str] = []
    fetched = ContainedStore._fetched

    def counted(self: ContainedStore, key: str, ranges: Any) -> Any:
        if self.root != tmp_path / "w.zarr" / "air":
            asked.append(key.rpartition("/")[0])
        return fetched(self, key, ranges)

    monkeypatch.setattr(ContainedStore, "_fetched", counted)
    assert alone.get("/?json").json["coordinates"] == [None] * 3
    assert set(asked) == {"", "time", "lat"}


def test_the_array_at_the_root_has_slices(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a.zarr", data=np.arange(4))
    assert values(Client(app(tmp_path / "a.zarr", name="a.zarr", token="x")).get("/t/x/a.zarr.npy?0=2")) == 2
    assert values(Client(app(tmp_path / "a.zarr")).get("/.npy?0=3")) == 3


def test_text_structs_and_complex_numbers_are_json() -> None:
    store = tessarr.storage.MemoryStore()
    group = tessarr.open_group(store, mode="w")
    group.create_array("text", data=np.array(["a", "ü"], dtype="T" if hasattr(np.dtypes, "StringDType") else object))
    group.create_array("wave", data=np.array([1 + 2j, np.nan + 0j]))
    group.create_array("moment", data=np.array(["2000-01-01", "NaT"], dtype="M8[s]"))
    client = Client(app(store))
    assert client.get("/text.json").json["data"] == ["a", "ü"]
    assert values(client.get("/text.npy")).tolist() == ["a", "ü"]
    assert client.get("/wave.json").json["data"] == [[1.0, 2.0], [None, 0.0]]
    assert client.get("/moment.json").json["data"] == ["2000-01-01T00:00:00", None]
    assert client.get("/text.raw").json["error"]["hint"] == "Use .json or .csv"


def test_a_picture_has_the_colours_of_the_values(weather: Client) -> None:
    found = pixels(weather.get("/plain.png?cmap=gray&limits=0,12.1"))
    np.testing.assert_array_equal(found[..., 0], np.rint(np.arange(12.0).reshape(3, 4) * 1.1 / 12.1 * 255))
    assert pixels(weather.get("/air.png?decode=1")).shape == (30, 40, 4)
    assert pixels(weather.get("/air.png"))[0, 7, 3] == 0  # missing is transparent
    assert pixels(weather.get("/air.png?size=10")).shape == (10, 10, 4)
    assert pixels(weather.get("/air.png?lat=5")).shape == (2, 40, 4)


@pytest.mark.parametrize(
    ("target", "status", "word"),
    [
        ("/air.json?height=1", 400, "query"),
        ("/air.json?lat=30", 400, "query"),
        ("/air.json?lat=1&1=2", 400, "query"),
        ("/air.json?lat=::0", 400, "query"),
        ("/air.json?lon=x", 400, "query"),
        ("/air.json?lat=77.5", 404, "label"),
        ("/air.json?lat=1..2", 404, "label"),
        ("/air.json?time=yesterday", 400, "query"),
        ("/air.png?cmap=rainbow", 400, "query"),
        ("/air.png?limits=a,b", 400, "query"),
        ("/air.png?time=0&lat=0", 400, "query"),
        ("/air.png?size=0", 400, "query"),
        ("/air.json?%ff=1", 400, "query"),
    ],
)
def test_what_cannot_be_answered_says_why(weather: Client, target: str, status: int, word: str) -> None:
    answer = weather.get(target)
    assert (answer.status, answer.json["error"]["kind"]) == (status, word)
    assert answer.json["error"]["message"]


def test_elements_of_an_array_with_invalid_metadata_are_refused_with_what_is_wrong(tmp_path: Path) -> None:
    tessarr.open_group(tmp_path, mode="w").create_array("air", data=np.arange(3))
    document = tmp_path / "air" / "zarr.json"
    document.write_text(document.read_text().replace('"codecs"', '"codes"'))
    answer = Client(app(tmp_path)).get("/air.json")
    assert (answer.status, answer.json["error"]["kind"]) == (500, "metadata")
    assert "codecs: required" in answer.json["error"]["message"]
    assert str(tmp_path) not in answer.body.decode()


def test_nothing_is_computed_for_what_is_not_an_array_or_private(place: Path) -> None:
    client = Client(app(place))
    tessarr.create_array(place / ".hidden" / "x", data=np.arange(3))
    assert [client.get(path).status for path in ("/nope.npy", "/below.npy", "/.hidden/x.npy", "/air.txt", "/air.npy")] == [
        404, 404, 404, 404, 200,
    ]  # fmt: skip
    assert Client(app(place, dynamic=False)).get("/air.npy").status == 404
    assert Client(tessarr.serve.node_app(place)).get("/air.npy").status == 404


def test_a_key_of_the_hierarchy_has_precedence(tmp_path: Path) -> None:
    group = tessarr.open_group(tmp_path, mode="w")
    group.create_array("air", data=np.arange(3))
    group.create_array("air.npy", data=np.arange(4))
    client = Client(app(tmp_path))
    assert client.get("/air.npy/zarr.json").json["shape"] == [4]
    assert len(values(client.get("/air.npy"))) == 3
    assert len(values(client.get("/air.npy.npy"))) == 4


def test_equal_content_has_an_equal_entity_tag(weather: Client) -> None:
    first = weather.get("/air.npy?time=0")
    assert weather.get("/air.npy?time=0", If_None_Match=first.headers["etag"]).status == 304
    assert weather.get("/air.npy?time=1", If_None_Match=first.headers["etag"]).status == 200


def test_a_plane_of_ten_to_the_twelfth_elements_has_a_picture_of_256_chunks() -> None:
    store = CountingStore(tessarr.storage.MemoryStore())
    client = client_of(store, shape=(10**6, 10**6), chunks=(500, 500), dtype="u1")
    tessarr.open_array(store, path="a")[250_000:250_500, 250_000:250_500] = 9
    before = sum(store.counter.values())
    answer = client.get("/a.png?size=256")
    assert pixels(answer).shape == (256, 256, 4)
    assert answer.headers["x-sample"] == "1"
    assert sum(store.counter.values()) - before < 300


def test_a_sample_shows_where_values_are() -> None:
    data = np.zeros((4000, 4000), "f4")
    data[2000:, :1200] = 5
    found = values(client_of(data=data, chunks=(100, 100)).get("/a.npy?0=::10&1=::10&sample=100"))
    expected = np.zeros((400, 400))
    expected[200:, :120] = 5
    np.testing.assert_array_equal(found, expected)


def test_statistics_are_those_of_the_decoded_values(weather: Client) -> None:
    found = weather.get("/air.stats?time=0&bins=10").json
    meant = np.where(AIR[0] == 7, np.nan, AIR[0] * 0.5 + 200)
    assert (found["count"], found["finite"], found["is_sample"]) == (1200, 1199, False)
    assert (found["min"], found["max"], found["mean"]) == pytest.approx((200, 799.5, np.nanmean(meant)))
    assert found["percentiles"]["50"] == pytest.approx(np.nanpercentile(meant, 50))
    assert sum(found["histogram"]["counts"]) == 1199


def test_stored_chunks_are_told_from_missing_ones() -> None:
    data = np.zeros((8, 8), "u1")
    data[5, 1] = 1
    found = client_of(data=data, chunks=(2, 2), shards=(4, 4)).get("/a.chunks").json
    assert found == {
        "chunks": [[0, 2, 4, 6, 8]] * 2, "values": [[0, 4, 8]] * 2, "unit": "shard", "grid": [2, 2], "stored": "0010",
    }  # fmt: skip


def test_what_is_too_large_is_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CountingStore(tessarr.storage.MemoryStore())
    client = client_of(store, shape=10**10, chunks=10**8, dtype="f8")
    before = store.counter["get"]
    for target in ("/a.npy", "/a.npy?0=::1000000", "/a.json?0=:2000000"):
        answer = client.get(target)
        assert (answer.status, answer.json["error"]["kind"]) == (413, "budget")
        assert answer.json["error"]["hint"]
    assert store.counter["get"] - before <= 3  # documents
    monkeypatch.setattr(budget, "MAX_RESULT_NBYTES", 100)
    assert client.get("/a.npy?0=:12&sample=1").status == 200
    assert client.get("/a.npy?0=:13&sample=1").status == 413


def test_a_shard_under_a_compressor_counts_as_a_whole() -> None:
    sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1 << 20], "codecs": [{"name": "bytes"}]}}
    large: dict[str, Any] = {"shape": 4 << 30, "chunks": 2 << 30, "dtype": "u1", "serializer": sharding}
    assert client_of(**large, compressors=None).get("/a.npy?0=:5").status == 200
    with pytest.warns(UserWarning, match="partial"):
        compressed = client_of(**large, compressors={"name": "gzip", "configuration": {"level": 1}})
    assert compressed.get("/a.npy?0=:5").json["error"]["kind"] == "budget"


def test_requests_share_a_budget_and_wait_for_it() -> None:
    shared = Budget(10, wait_s=0.0)
    with shared.share(6), pytest.raises(Refusal) as caught, shared.share(6):
        pass
    assert caught.value.status == 503
    assert caught.value.response().header("Retry-After") == "2"
    patient = Budget(10, wait_s=PATIENCE_S)
    entered = threading.Event()

    def second() -> None:
        with patient.share(100):  # more than there is: alone
            entered.set()

    with patient.share(6):
        thread = threading.Thread(target=second)
        thread.start()
        assert not entered.is_set()
    thread.join(PATIENCE_S)
    assert entered.is_set()
    assert patient.used == 0
