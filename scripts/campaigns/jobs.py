"""Share a campaign between processes, for campaigns whose numbers are independent of each other."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

from campaigns.slices import SLICE_S, Slice

BLOCKS = {
    "pairs": 1,
    "simulate": 64,
    "triples": 16,
    "stateful": 1,
    "differential": 8,
    "faults": 4,
    "local_histories": 1,
    "s3_histories": 1,
}
"""Campaign of independent numbers, whose `slices` take an end → numbers that a process does at a time."""


def shared(name: str, begin: int, seconds: float, jobs: int, slice_s: float = SLICE_S) -> Iterator[Slice]:
    """Do numbers of a campaign from `begin` on, for so long, in `jobs` processes, in slices of `slice_s` seconds.

    A slice is given when all numbers before its end are done, so that a run that is killed counts none twice.
    """
    part, ends = Slice(begin), time.monotonic() + slice_s
    for block in _in_order(_blocks(name, begin, seconds, jobs), begin, BLOCKS[name]):
        _add(part, block)
        if time.monotonic() >= ends:
            yield part
            part, ends = Slice(part.to), time.monotonic() + slice_s
    yield part


def _blocks(name: str, begin: int, seconds: float, jobs: int) -> Iterator[tuple[int, Slice]]:
    """Do blocks, and give each with its beginning when it is done."""
    following, until = begin, time.monotonic() + seconds
    size = BLOCKS[name]
    running: dict[Future[Slice], int] = {}
    has_ended = False
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("forkserver")) as pool:
        while True:
            while len(running) < jobs and not has_ended and (following == begin or time.monotonic() < until):
                running[pool.submit(_block, name, following, following + size)] = following
                following += size
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                first, block = running.pop(future), future.result()
                has_ended = has_ended or block.to < first + size
                yield first, block


def _in_order(blocks: Iterable[tuple[int, Slice]], at: int, size: int) -> Iterator[Slice]:
    """Give the blocks of `size` numbers from `at` on in their order."""
    done: dict[int, Slice] = {}
    for first, block in blocks:
        done[first] = block
        while at in done:
            yield done.pop(at)
            at += size


def _block(name: str, begin: int, end: int) -> Slice:
    """Do a block of numbers. It ends early where the list of a campaign ends."""
    whole = Slice(begin)
    for part in importlib.import_module(f"campaigns.{name}").slices(begin, math.inf, end):
        _add(whole, part)
    return whole


def _add(whole: Slice, part: Slice) -> None:
    whole.to = max(whole.to, part.to) if part.figures else whole.to
    for figure, times in part.figures.items():
        whole.count(figure, times)
    whole.findings += part.findings
