"""A place behind a network is served with few requests: one server here reads from another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.serve import BackgroundServer, app, serve_background
from tessarr.serve.content import WINDOW
from tests.serve.client import Client, Counting
from tests.serve.conftest import SHARD


@pytest.fixture
def origin(place: Path) -> Counting:
    tessarr.consolidate_metadata(place)
    return Counting(app(place).served)


@pytest.fixture
def behind(origin: Counting) -> Iterator[BackgroundServer]:
    with serve_background(origin, port=0) as running:
        yield running


def test_values_and_ranges_pass_through(origin: Counting, behind: BackgroundServer, place: Path) -> None:
    client = Client(app(behind.url))
    stored = (place / "shard" / "c" / "0" / "0").read_bytes()
    assert client.get("/air/c/0/0").body == (place / "air" / "c" / "0" / "0").read_bytes()
    assert client.get("/shard/c/0/0").body == stored
    part = client.get("/shard/c/0/0", range="bytes=-20")
    assert (part.status, part.body) == (206, stored[-20:])
    assert part.headers["content-range"] == f"bytes {len(stored) - 20}-{len(stored) - 1}/{len(stored)}"
    several = client.get("/shard/c/0/0", range="bytes=0-3,100-103")
    assert several.status == 206
    assert stored[100:104] in several.body
    assert client.get("/air/c/5/5").status == 404
    assert client.get("/air/c/0/0", if_none_match=client.get("/air/c/0/0").headers["etag"]).status == 304


def test_a_range_of_a_known_array_is_one_request(origin: Counting, behind: BackgroundServer) -> None:
    client = Client(app(behind.url))
    client.get("/shard/c/0/0", range="bytes=0-3")
    origin.seen.clear()
    assert client.get("/shard/c/0/0", range="bytes=100-199").nbytes == 100
    assert origin.seen == [("GET", "/shard/c/0/0", "bytes=100-199")]


def test_a_large_value_is_read_in_windows(origin: Counting, behind: BackgroundServer, place: Path) -> None:
    client = Client(app(behind.url))
    client.get("/shard/c/0/0", range="bytes=0-3")
    origin.seen.clear()
    answer = client.get("/shard/c/0/0")
    assert answer.nbytes == (place / "shard" / "c" / "0" / "0").stat().st_size
    assert len(origin.seen) == -(-answer.nbytes // WINDOW)


def test_an_array_is_read_through_two_servers(behind: BackgroundServer) -> None:
    with serve_background(app(behind.url), port=0) as outer:
        array = tessarr.open_array(f"{outer.url}/shard", mode="r")
        assert np.array_equal(array[500:510, 500:700], SHARD[500:510, 500:700])


def test_a_place_that_cannot_be_reached_is_a_500(origin: Counting, behind: BackgroundServer) -> None:
    client = Client(app(behind.url, storage_options={"retry_config": {"max_retries": 0}}))
    behind.shutdown()
    answer = client.get("/air/c/0/0")
    assert answer.status == 500
    assert b"not missing" in answer.body
