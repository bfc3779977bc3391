"""Measure rows R1 to R6, T1, D1 and G1: reading."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from layouts import CALLS, DATA, GRIDS, LAYOUTS, LINES, SHARDED, UNSHARDED, Layout
from peers.base import NotSupportedError, Peer
from task import Task, row

NAMES_UNSHARDED = [layout.name for layout in UNSHARDED]
NAMES_SHARDED = [layout.name for layout in SHARDED]


def layout_for(peer: Peer, name: str) -> Layout:
    """Return the layout in the format that the peer reads."""
    layout = LAYOUTS.get(name + peer.suffix)
    if layout is None:
        raise NotSupportedError(f"no {name}{peer.suffix}")
    return layout


def slabs(layout: Layout) -> Iterator[tuple[slice, ...]]:
    """Yield boxes that cover the array, so that comparing it needs little memory."""
    step = max(layout.chunk[0], 64)
    for start in range(0, layout.shape[0], step):
        yield (slice(start, start + step), *(slice(None) for _ in layout.shape[1:]))


def assert_whole(layout: Layout, got: np.ndarray) -> None:
    """Assert that every value is the true one, and that the data type is the array's."""
    truth = layout.truth()
    assert got.shape == truth.shape
    assert got.dtype == truth.dtype
    assert all(np.array_equal(got[box], truth[box]) for box in slabs(layout)), "values differ from the truth"


def read_whole(peer: Peer, name: str) -> Task:
    """Read all of an array through a new handle: of the run before, only the page cache remains."""
    layout = layout_for(peer, name)
    return Task(lambda: peer.read_all(layout), lambda got: assert_whole(layout, got), before=peer.forget)


row("R1", "read all", NAMES_UNSHARDED, bar=1.3, limited=True)(read_whole)
row("R2", "read all, shards", NAMES_SHARDED, bar=1.3, limited=True)(read_whole)


def random_chunks(layout: Layout, count: int) -> list[tuple[slice, ...]]:
    """Return random boxes of one (inner) chunk each."""
    rng = np.random.default_rng(7)
    grid = [n // c for n, c in zip(layout.shape, layout.chunk, strict=True)]
    picks = rng.integers(0, grid, (count, len(grid)))
    return [tuple(slice(int(i) * c, (int(i) + 1) * c) for i, c in zip(p, layout.chunk, strict=True)) for p in picks]


@row("R3", "one (inner) chunk per call", [*NAMES_UNSHARDED, *NAMES_SHARDED], unit="µs", bar=2.0, limited=True)
def read_chunks(peer: Peer, name: str) -> Task:
    """Read random chunks, one per call, in the same order for every peer; each result is released before the next read."""
    layout = layout_for(peer, name)
    boxes, truth = random_chunks(layout, CALLS), layout.truth()
    handle: list[Any] = []

    def before() -> None:
        peer.forget()
        handle[:] = [peer.open(layout.path)]

    def run() -> list[np.ndarray]:
        array = handle[0]
        return [peer.read(array, box) for box in boxes]

    def timed() -> None:
        array = handle[0]
        for box in boxes:
            peer.read(array, box)

    def check(got: list[np.ndarray]) -> None:
        assert all(np.array_equal(one, truth[box]) for one, box in zip(got, boxes, strict=True))

    return Task(run=run, check=check, before=before, calls=len(boxes), timed=timed)


ELEMENTS = [f"{name}{cached}" for cached in ("", " cached") for name in ("raw64", "blosc64", "shard-blosc32")]


@row("R4", "one element per call", ELEMENTS, unit="µs", bar=2.0, limited=True)
def read_elements(peer: Peer, name: str) -> Task:
    """Read random elements; ``cached``: elements of one chunk, repeatedly."""
    layout_name, _, cached = name.partition(" ")
    if cached and peer.name == "limit":
        raise NotSupportedError("neither a file nor a codec is needed")
    layout = layout_for(peer, layout_name)
    rng, truth = np.random.default_rng(11), layout.truth()
    bound = layout.chunk if cached else layout.shape
    indices = [tuple(map(int, pick)) for pick in rng.integers(0, bound, (CALLS, len(layout.shape)))]
    handle: list[Any] = []

    def before() -> None:
        peer.forget()
        handle[:] = [peer.open(layout.path)]
        if cached:
            peer.read(handle[0], indices[0])

    def run() -> list[np.ndarray]:
        array = handle[0]
        return [peer.read(array, index) for index in indices]

    def check(got: list[np.ndarray]) -> None:
        assert [int(one.reshape(())) for one in got] == [int(truth[index]) for index in indices]

    return Task(run=run, check=check, before=before, calls=len(indices))


@row("R6", "one row of a sparse matrix per call", [layout.name for layout in LINES], unit="µs", bar=2.0)
def read_sparse_rows(peer: Peer, name: str) -> Task:
    """Read random rows of a matrix in CSR form: parts of one axis, of 0 to 400 values each, whose chunks are soon in cache."""
    layout = layout_for(peer, name)
    rng, truth = np.random.default_rng(17), layout.truth()
    ends = np.cumsum(rng.integers(0, 400, layout.shape[0] // 200))
    ends = ends[ends <= layout.shape[0]]
    rows = rng.integers(0, len(ends) - 1, CALLS)
    boxes = [(slice(int(ends[number]), int(ends[number + 1])),) for number in rows]
    handle: list[Any] = []

    def before() -> None:
        peer.forget()
        handle[:] = [peer.open(layout.path)]

    def run() -> list[np.ndarray]:
        return [peer.read(handle[0], box) for box in boxes]

    def check(got: list[np.ndarray]) -> None:
        assert all(np.array_equal(one, truth[box]) for one, box in zip(got, boxes, strict=True))

    return Task(run=run, check=check, before=before, calls=len(boxes))


KINDS, PLANES = ("strided", "oindex", "vindex"), ("plane-zstd256", "plane-shard-zstd256")
FANCY = [f"{kind} {plane}{again}" for again in ("", " again") for plane in PLANES for kind in KINDS]
COUNTS = [1, 2, *(n for n in (4, 8, 16) if n <= len(os.sched_getaffinity(0)))]
THREADS = [f"{n} threads {name}" for name in ("blosc64", "shard-zstd32") for n in COUNTS]


@row("R5", "steps, crosses and points", FANCY, bar=2.0, limited=True)
def read_fancy(peer: Peer, name: str) -> Task:
    """Read ``[::7, ::5]``, an outer product of 500 × 500, and 10,000 points; ``again``: the third time through one handle."""
    kind, layout_name, *again = name.split()
    if again and peer.name == "limit":
        raise NotSupportedError("neither a file nor a codec is needed")
    layout = layout_for(peer, layout_name)
    rng, truth = np.random.default_rng(13), np.asarray(layout.truth())
    count = 10_000 if kind == "vindex" else 500
    rows, columns = (rng.integers(0, n, count) for n in layout.shape)
    if kind == "oindex":
        rows, columns = np.unique(rows), np.unique(columns)
    handle: list[Any] = []

    def before() -> None:
        peer.forget()
        handle[:] = [peer.open(layout.path)]
        for _ in range(2 * len(again)):
            run()

    def run() -> np.ndarray:
        if kind == "strided":
            return peer.read(handle[0], (slice(None, None, 7), slice(None, None, 5)))
        return (peer.outer if kind == "oindex" else peer.points)(handle[0], rows, columns)

    def check(got: np.ndarray) -> None:
        if kind == "strided":
            wanted = truth[::7, ::5]
        else:
            wanted = truth[np.ix_(rows, columns)] if kind == "oindex" else truth[rows, columns]
        assert np.array_equal(got, wanted)

    return Task(run=run, check=check, before=before)


@row("T1", "chunks per second from N threads", THREADS, unit="1/s", larger_is_better=True)
def read_threads(peer: Peer, name: str) -> Task:
    """Read separate chunks in several threads through one handle; each thread releases a chunk before it reads the next."""
    count, _, layout_name = name.partition(" threads ")
    layout = layout_for(peer, layout_name)
    boxes, truth = random_chunks(layout, CALLS), layout.truth()
    array = peer.open(layout.path)
    shares = [boxes[number :: int(count)] for number in range(int(count))]

    def in_threads(keep: Callable[[list[np.ndarray], np.ndarray], object]) -> list[list[np.ndarray]]:
        results: list[list[np.ndarray]] = [[] for _ in shares]

        def read_share(share: list[tuple[slice, ...]], out: list[np.ndarray]) -> None:
            for box in share:
                keep(out, peer.read(array, box))

        threads = [threading.Thread(target=read_share, args=pair) for pair in zip(shares, results, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def run() -> list[list[np.ndarray]]:
        return in_threads(list.append)

    def check(got: list[list[np.ndarray]]) -> None:
        for share, values in zip(shares, got, strict=True):
            assert all(np.array_equal(one, truth[box]) for one, box in zip(values, share, strict=True))

    def measure() -> float:
        peer.forget()
        began = time.perf_counter()
        in_threads(lambda *_: None)
        return len(boxes) / (time.perf_counter() - began)

    return Task(run=run, check=check, measure=measure)


@row("G1", "open and read one chunk as the grid grows", list(GRIDS), unit="ms")
def read_in_grid(peer: Peer, name: str) -> Task:
    """Read the stored chunk of an array of 10³ to 10¹² chunks."""
    if peer.suffix:
        raise NotSupportedError("version 3 only")
    path = str(DATA / f"{name}.zarr")
    box = (slice(4, 8), slice(8, 12), slice(12, 16))

    def check(got: np.ndarray) -> None:
        assert np.array_equal(got, np.arange(64, dtype="uint16").reshape(4, 4, 4))

    return Task(run=lambda: peer.read(peer.open(path), box), check=check)


@row("D1", "8 threads of dask, one task per shard", NAMES_SHARDED, bar=1.0)
def read_by_dask(peer: Peer, name: str) -> Task:
    """Read all of a sharded array as a dask array whose blocks are shards, with dask's threads."""
    layout = layout_for(peer, name)
    array = peer.dask_array(layout.path, layout.shard or layout.chunk)
    import dask

    def run() -> np.ndarray:
        with dask.config.set(scheduler="threads", num_workers=8):
            return np.asarray(array.compute())

    return Task(run, lambda got: assert_whole(layout, got), before=peer.forget)
