"""Measure rows L1 and L2: reads over HTTP from a server with latency; seconds, and number of requests."""

from __future__ import annotations

import atexit
import contextlib
import functools
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from latency_server import COUNT, running
from layouts import DATA, LAYOUTS, Layout
from peers.base import NotSupportedError, Peer
from rows_read import assert_whole
from task import Task, printed, row

LAYOUT, CHUNKED = "shard-blosc32", "raw32"
WORK = ("open + slice", "open + whole", "open + 64 chunks")
VARIANTS = [f"{milliseconds} ms {work}" for milliseconds in (10, 50) for work in WORK[:2]]
VARIANTS += [f"{milliseconds} ms {WORK[2]}" for milliseconds in (10, 30, 100)]
READERS, FIRST = "50 ms ten open + chunk", [f"{milliseconds} ms first open of a process" for milliseconds in (10, 100)]
FIRST_OPEN = """
import sys, time, numpy
from peers.base import load
peer, began = load(sys.argv[1]), time.perf_counter()
peer.open_url(sys.argv[2])
print(time.perf_counter() - began)
"""
"""A process that imports a peer and prints how long opening an array takes, with what it imports only now."""
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


def array_url(peer: Peer, variant: str, layout: Layout) -> str:
    """Return the URL of an array, at a server with the latency of the variant."""
    if peer.suffix:
        raise NotSupportedError("version 3 only")
    return f"{url_of(int(variant.partition(' ms ')[0]))}/{layout.name}.zarr"


def remote_read(peer: Peer, variant: str, *, requests: bool) -> Task:
    """Open an array by URL and read one plane of a shard, or all shards; or of an array without shards 64 chunks."""
    latency, _, work = variant.partition(" ms ")
    layout = LAYOUTS[CHUNKED if work == WORK[2] else LAYOUT]
    url = array_url(peer, variant, layout)
    whole = work == WORK[1]
    box: tuple[Any, ...] = (layout.chunk[0], slice(0, layout.chunk[1]), slice(None))
    if work != WORK[0]:
        box = (slice(None),) * 3 if whole else tuple(slice(0, 4 * n) for n in layout.chunk)

    def run() -> np.ndarray:
        return peer.read(peer.open_url(url), box)

    def check(got: np.ndarray) -> None:
        if whole:
            assert_whole(layout, got)
        else:
            assert np.array_equal(got, layout.truth()[box])

    return Task(
        run=run, check=check, before=peer.forget, measure=measured(run, url_of(int(latency)), requests=requests)
    )


def read_by_ten(peer: Peer, variant: str) -> Task:
    """Let ten threads at once open an array and read a chunk, each one of its own; until the last has it."""
    layout = LAYOUTS[CHUNKED]
    url = array_url(peer, variant, layout)
    threads, side = ThreadPoolExecutor(10), layout.chunk[0]

    def box(number: int) -> tuple[slice, ...]:
        start = number * side % layout.shape[0]
        return slice(start, start + side), slice(0, layout.chunk[1]), slice(0, layout.chunk[2])

    def run() -> list[np.ndarray]:
        return list(threads.map(lambda number: peer.read(peer.open_url(url), box(number)), range(10)))

    def check(got: list[np.ndarray]) -> None:
        for number, values in enumerate(got):
            assert np.array_equal(values, layout.truth()[box(number)])

    return Task(run=run, check=check, before=peer.forget)


@row("L1", "over HTTP with latency", [*VARIANTS, READERS, *FIRST], bar=2.0)
def read_remotely(peer: Peer, variant: str) -> Task:
    """Measure the seconds of remote reads."""
    if variant == READERS:
        return read_by_ten(peer, variant)
    if variant in FIRST:
        url = array_url(peer, variant, LAYOUTS[LAYOUT])
        return Task(
            run=lambda: peer.open_url(url),
            check=lambda _: None,
            measure=lambda: printed(FIRST_OPEN, peer.name, url),
        )
    return remote_read(peer, variant, requests=False)


@row("L2", "requests of the same", VARIANTS, unit="requests", most_rounds=3)
def count_requests(peer: Peer, variant: str) -> Any:
    """Count the requests of remote reads."""
    return remote_read(peer, variant, requests=True)
