"""Measure rows L1 and L2: reads over HTTP from a server with latency; seconds, and number of requests."""

from __future__ import annotations

import atexit
import contextlib
import functools
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
from latency_server import COUNT, running
from layouts import DATA, LAYOUTS
from peers.base import NotSupportedError, Peer
from rows_read import assert_whole
from task import Task, row

LAYOUT, CHUNKED = "shard-blosc32", "raw32"
WORK = ("open + slice", "open + whole", "open + 64 chunks")
VARIANTS = [f"{milliseconds} ms {work}" for milliseconds in (10, 50) for work in WORK[:2]]
VARIANTS += [f"{milliseconds} ms {WORK[2]}" for milliseconds in (10, 30, 100)]
_servers = contextlib.ExitStack()
atexit.register(_servers.close)


@functools.cache
def url_of(milliseconds: int) -> str:
    """Return the URL of a server with that latency, which runs as long as this process."""
    return _servers.enter_context(running(DATA, milliseconds / 1000))


def count(url: str) -> int:
    """Return the number of requests since the last call."""
    with urllib.request.urlopen(url + COUNT) as answer:
        return int(answer.read())


def measured(run: Callable[[], object], url: str, *, requests: bool) -> Callable[[], float]:
    """Return a function that calls `run` and returns its seconds, or how many requests the server at `url` answered."""

    def measure() -> float:
        count(url)
        began = time.perf_counter()
        run()
        elapsed = time.perf_counter() - began
        return count(url) if requests else elapsed

    return measure


def remote_read(peer: Peer, variant: str, *, requests: bool) -> Task:
    """Open an array by URL and read one plane of a shard, or all shards; or of an array without shards 64 chunks."""
    if peer.suffix:
        raise NotSupportedError("version 3 only")
    latency, _, work = variant.partition(" ms ")
    layout = LAYOUTS[CHUNKED if work == WORK[2] else LAYOUT]
    url = url_of(int(latency))
    whole = work == WORK[1]
    box: tuple[Any, ...] = (layout.chunk[0], slice(0, layout.chunk[1]), slice(None))
    if work != WORK[0]:
        box = (slice(None),) * 3 if whole else tuple(slice(0, 4 * n) for n in layout.chunk)

    def run() -> np.ndarray:
        return peer.read(peer.open_url(f"{url}/{layout.name}.zarr"), box)

    def check(got: np.ndarray) -> None:
        if whole:
            assert_whole(layout, got)
        else:
            assert np.array_equal(got, layout.truth()[box])

    return Task(run=run, check=check, before=peer.forget, measure=measured(run, url, requests=requests))


@row("L1", "over HTTP with latency", VARIANTS, bar=2.0)
def read_remotely(peer: Peer, variant: str) -> Task:
    """Measure the seconds of remote reads."""
    return remote_read(peer, variant, requests=False)


@row("L2", "requests of the same", VARIANTS, unit="requests", most_rounds=3)
def count_requests(peer: Peer, variant: str) -> Any:
    """Count the requests of remote reads."""
    return remote_read(peer, variant, requests=True)
