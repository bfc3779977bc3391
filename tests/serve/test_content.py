"""Values over HTTP: methods, ranges, conditions, and that no content has bytes of two versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.errors import StoreError
from tessarr.serve import App, app, store_app
from tessarr.serve.content import WINDOW
from tessarr.serve.http import ranges
from tessarr.serve.http.messages import Request
from tessarr.storage import LocalStore, LoggingStore, MemoryStore, WrapperStore
from tessarr.types import Buffer, ByteRange
from tests.serve.client import Client, parts_of
from tests.serve.conftest import ODD

BIG = "/shard/c/0/0"


@pytest.fixture
def big(place: Path) -> bytes:
    return (place / "shard" / "c" / "0" / "0").read_bytes()


def test_a_value_is_sent_as_it_is_stored(client: Client, place: Path, big: bytes) -> None:
    answer = client.get(BIG)
    assert (answer.status, answer.body, answer.nbytes) == (200, big, len(big))
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "content-encoding" not in answer.headers
    assert answer.headers["etag"].startswith('"')


def test_a_large_value_is_read_in_windows(client: Client, big: bytes) -> None:
    answer = client.get(BIG)
    assert answer.windows == -(-len(big) // WINDOW) == 4


def test_names_with_every_odd_letter_are_served(client: Client, place: Path) -> None:
    from tessarr.serve.http.paths import quoted

    answer = client.get(f"/{quoted(ODD)}/y/zarr.json")
    assert answer.body == (place / ODD / "y" / "zarr.json").read_bytes()
    assert client.get("/a b/y/zarr.json").status == 404


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-9", (0, 10)),
        ("bytes=5-5", (5, 6)),
        ("bytes=10-", (10, None)),
        ("bytes=-8", (-8, None)),
        ("bytes=-99999999", (0, None)),
        ("bytes=4001600-9999999", (4001600, None)),
        ("BYTES=0-9", (0, 10)),
        ("bytes= 0-9 ", (0, 10)),
        ("bytes=,0-9,", (0, 10)),
        ("bytes=0-2000000", (0, 2000001)),
    ],
)
def test_one_range_is_a_206(client: Client, big: bytes, header: str, expected: tuple[int, int | None]) -> None:
    answer = client.get(BIG, range=header)
    part = big[slice(*expected)]
    start = len(big) + expected[0] if expected[0] < 0 else expected[0]
    assert (answer.status, answer.body, answer.nbytes) == (206, part, len(part))
    assert answer.headers["content-range"] == f"bytes {start}-{start + len(part) - 1}/{len(big)}"


@pytest.mark.parametrize(
    "header", ["bytes=4001604-", "bytes=9-0", "bytes=-0", "bytes=99999999-999999999", "bytes=-0,5000000-"]
)
def test_a_range_outside_is_a_416_with_the_size(client: Client, big: bytes, header: str) -> None:
    answer = client.get(BIG, range=header)
    assert answer.status == 416
    assert answer.headers["content-range"] == f"bytes */{len(big)}"
    assert len(answer.body) < 200


@pytest.mark.parametrize("header", ["bytes=a-b", "lines=0-9", "bytes", "bytes=", "bytes=0-1x", "bytes=--1"])
def test_a_malformed_range_is_ignored(client: Client, big: bytes, header: str) -> None:
    answer = client.get(BIG, range=header)
    assert (answer.status, answer.nbytes) == (200, len(big))
    assert "content-range" not in answer.headers


def test_several_ranges_are_one_multipart_content(client: Client, big: bytes) -> None:
    answer = client.get(BIG, range="bytes=100-109, 0-4, -3")
    assert answer.status == 206
    assert answer.nbytes == len(answer.body)
    assert parts_of(answer) == [
        (f"bytes 100-109/{len(big)}", big[100:110]),
        (f"bytes 0-4/{len(big)}", big[:5]),
        (f"bytes {len(big) - 3}-{len(big) - 1}/{len(big)}", big[-3:]),
    ]


def test_several_small_ranges_are_one_read_of_the_store(place: Path) -> None:
    class Counting(WrapperStore):
        reads = 0

        def fetch(self, requests: Any) -> Any:
            self.reads += sum(1 for request in requests if request.ranges and request.ranges != (ByteRange(0, 0),))
            return super().fetch(requests)

    store = Counting(LocalStore(place))
    header = "bytes=" + ",".join(f"{start}-{start + 9}" for start in range(0, 2000, 20))
    answer = Client(store_app(store)).get(BIG, range=header)
    assert len(parts_of(answer)) == 100
    assert store.reads == 1


def test_ranges_that_overlap_are_merged(client: Client, big: bytes) -> None:
    header = "bytes=" + ",".join(["0-"] * 100)
    answer = client.get(BIG, range=header)
    assert (answer.status, answer.body) == (206, big)


def test_too_many_ranges_are_refused_and_not_answered_by_the_whole_value(client: Client) -> None:
    answer = client.get(BIG, range="bytes=" + ",".join(f"{n * 2}-{n * 2}" for n in range(101)))
    assert (answer.status, len(answer.body) < 200) == (416, True)
    assert client.get("/zarr.json", range="bytes=" + "0-1," * 5000).status == 416


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 60),
    st.lists(st.tuples(st.integers(0, 70), st.one_of(st.none(), st.integers(0, 70))), min_size=1, max_size=8),
)
def test_ranges_cover_the_requested_bytes_once(size: int, wanted: list[tuple[int, int | None]]) -> None:
    specs = [ranges.Spec(first, last) for first, last in wanted if last is None or last >= first]
    found = ranges.resolve(specs, size)
    covered = [byte for one in found for byte in range(one.start, one.stop)]
    named = {b for s in specs for b in range(s.first or 0, size if s.last is None else min(size, s.last + 1))}
    assert sorted(covered) == sorted(named)


def test_head_has_the_headers_of_get_and_no_content(client: Client, big: bytes) -> None:
    for target in (BIG, "/zarr.json", "/"):
        got, head = client.get(target), client("HEAD", target)
        assert head.body == b""
        assert (head.status, head.nbytes, head.headers) == (got.status, got.nbytes, got.headers)
    head = client("HEAD", BIG, {"Range": "bytes=0-9"})
    assert (head.status, head.nbytes) == (206, 10)


def test_head_reads_no_content(place: Path) -> None:
    class Sized(WrapperStore):
        nbytes = 0

        def fetch(self, requests: Any) -> Any:
            found = super().fetch(requests)
            self.nbytes += sum(memoryview(part).nbytes for parts in found if parts for part in parts)
            return found

    store = Sized(LocalStore(place))
    assert Client(store_app(store))("HEAD", BIG).nbytes == 4001604
    assert store.nbytes == 0


def test_a_missing_value_is_a_404(client: Client) -> None:
    assert client.get("/air/c/9/9").status == 404
    assert client.get("/nothing/zarr.json").status == 404
    assert client("HEAD", "/air/c/0/2").status == 404


def test_conditions_follow_the_entity_tag(client: Client) -> None:
    etag = client.get(BIG).headers["etag"]
    unchanged = client.get(BIG, if_none_match=f'"other", W/{etag}')
    assert (unchanged.status, unchanged.body, unchanged.headers["etag"]) == (304, b"", etag)
    assert client.get(BIG, if_none_match="*").status == 304
    assert client.get(BIG, if_none_match='"other"').status == 200
    assert client.get(BIG, if_none_match="malformed").status == 200
    assert client.get(BIG, if_match=etag).status == 200
    assert client.get(BIG, if_match="*").status == 200
    assert client.get(BIG, if_match='"other"').status == 412
    assert client.get(BIG, if_match=f"W/{etag}").status == 412
    assert client.get(BIG, if_match='"other"', if_none_match=etag).status == 412
    assert client.get(BIG, range="bytes=0-9", if_range=etag).status == 206
    assert client.get(BIG, range="bytes=0-9", if_range='"other"').status == 200
    assert client.get(BIG, range="bytes=0-9", if_range=f"W/{etag}").status == 200
    assert client.get(BIG, range="bytes=0-9", if_range="Sun, 06 Nov 1994 08:49:37 GMT").status == 200
    assert client.get(BIG, range="bytes=0-9", if_none_match=etag).status == 304


def test_another_value_has_another_entity_tag(client: Client, place: Path) -> None:
    before = client.get("/air/c/0/0").headers["etag"]
    other = client.get("/air/c/0/1").headers["etag"]
    tessarr.open_array(place / "air")[0, 0] = -1
    assert len({before, other, client.get("/air/c/0/0").headers["etag"]}) == 3


def test_a_store_without_versions_has_entity_tags_of_the_content() -> None:
    class Unversioned(MemoryStore):
        def version(self, key: str) -> None:
            return None

    store = Unversioned({"k": b"0123456789"})
    client = Client(store_app(store))
    first = client.get("/k", range="bytes=2-4")
    assert (first.status, first.body) == (206, b"234")
    assert client.get("/k", if_none_match=first.headers["etag"]).status == 304
    store.set("k", b"9876543210")
    assert client.get("/k").headers["etag"] != first.headers["etag"]


def test_an_empty_value_is_a_value() -> None:
    client = Client(store_app(MemoryStore({"k": b""})))
    assert (client.get("/k").status, client.get("/k").nbytes) == (200, 0)
    assert client.get("/k", range="bytes=0-").status == 416
    assert client.get("/k", range="bytes=-5").status == 416


def test_a_value_that_is_replaced_while_it_is_sent_ends_the_response(place: Path) -> None:
    application = app(place)
    response = application.respond(Request.of("GET", BIG))
    from tessarr.core.asynchronous.sans_io import run_steps

    tessarr.open_array(place / "shard")[0, 0] = -1
    window = response.windows[1]
    assert callable(window)
    with pytest.raises(StoreError, match="changed while it was sent"):
        run_steps(window())


def test_a_value_that_is_replaced_while_it_is_looked_at_is_read_again() -> None:
    class Moving(MemoryStore):
        turns = 0

        def getsize(self, key: str) -> int | None:
            if self.turns < 2:
                self.turns += 1
                self.set(key, b"x" * (10 + self.turns))
            return super().getsize(key)

    answer = Client(store_app(Moving({"k": b"old"}))).get("/k")
    assert answer.body == b"x" * 12


def test_a_failure_of_the_store_is_a_500_and_never_a_404(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryStore):
        def get_ranges(self, key: str, wanted: Any) -> list[Buffer] | None:
            raise StoreError("the disk is gone", key=key)

        def fetch(self, requests: Any) -> Any:
            raise StoreError("the disk is gone")

    client = Client(store_app(Broken({"k": b"1"})))
    answer = client.get("/k")
    assert answer.status == 500
    assert b"not missing" in answer.body
    assert b"disk" not in answer.body
    assert "the disk is gone" in caplog.text


def test_a_directory_is_not_a_value(client: Client) -> None:
    assert client.get("/air").status == 404
    assert client.get("/air/c").status == 404
    moved = client.get("/air", accept="text/html,*/*")
    assert (moved.status, moved.headers["location"]) == (308, "air/")
    assert client.get("/nothing", accept="text/html").status == 404


def test_a_chunk_of_a_scalar_is_not_a_listing(client: Client, place: Path) -> None:
    answer = client.get("/point/c", accept="text/html")
    assert answer.body == (place / "point" / "c").read_bytes()


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "MKCOL", "TRACE", "CONNECT", "get", "COPY"])
def test_methods_that_write_are_refused(client: Client, method: str) -> None:
    answer = client(method, BIG)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS, PROPFIND")


def test_every_store_answers_alike(place: Path, tmp_path: Path) -> None:
    targets = ["/zarr.json", "/air/zarr.json", "/air/c/0/0", "/air/c/0/7", "/shard/c/0/0", "/below/x/c/1"]
    memory = MemoryStore({key: LocalStore(place).get(key) for key in LocalStore(place).list()})
    with tessarr.storage.ZipStore(tmp_path / "z.zip", mode="w") as archive:
        tessarr.copy_store(LocalStore(place), archive)
    sqlite = tessarr.storage.SQLiteStore(tmp_path / "s.sqlite")
    tessarr.copy_store(LocalStore(place), sqlite)
    logging = LoggingStore(LocalStore(place))
    expected = [(one.status, one.body) for one in map(Client(app(place)).get, targets)]
    for store in (memory, tmp_path / "z.zip", sqlite, logging):
        client = Client(app(store))
        assert [(one.status, one.body) for one in map(client.get, targets)] == expected
        assert client.get("/shard/c/0/0", range="bytes=-16").body == expected[4][1][-16:]
    sqlite.close()


def test_an_array_of_a_group_is_served_as_the_root(place: Path) -> None:
    client = Client(app(place, "below/x"))
    assert client.get("/zarr.json").json["shape"] == [6]
    assert client.get("/c/0").status == 200
    assert client.get("/c/2").status == 404
    assert client.get("/../zarr.json").status == 404


def test_an_app_has_a_representation_without_its_token(place: Path) -> None:
    application: App = app(place, token="hush-hush")
    assert "hush" not in repr(application)
