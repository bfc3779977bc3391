"""Share a campaign between processes, for campaigns whose numbers are independent of each other."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from pathlib import Path

from campaigns.slices import SLICE_S, Slice

BLOCKS = {
    "pairs": 1,
    "simulate": 64,
    "triples": 16,
    "bulk": 16,
    "stateful": 1,
    "differential": 8,
    "faults": 4,
    "interrupts": 16,
    "local_histories": 1,
    "s3_histories": 1,
}
"""Campaign of independent numbers, whose `slices` take an end → numbers that a process does at a time."""
ON_ONE_CORE = frozenset({"pairs", "simulate", "triples", "bulk"})
"""Campaigns whose threads take turns: on a busy machine a turn on another core costs several times as much."""


def shared(name: str, begin: int, seconds: float, jobs: int, slice_s: float = SLICE_S) -> Iterator[Slice]:
    """Do numbers of a campaign from `begin` on, for so long, in `jobs` processes, in slices of `slice_s` seconds.

    A slice is given when all numbers before its end are done, so that a run that is killed counts none twice.
    """
    part, ends = Slice(begin), time.monotonic() + slice_s
    for block in _in_order(_blocks(name, begin, seconds, jobs), begin):
        _add(part, block)
        if time.monotonic() >= ends:
            yield part
            part, ends = Slice(part.to), time.monotonic() + slice_s
    yield part


def _blocks(name: str, begin: int, seconds: float, jobs: int) -> Iterator[tuple[range, Slice]]:
    """Do blocks, which end at multiples of their size, and give each with its numbers when it is done."""
    following, until = begin, time.monotonic() + seconds
    size = BLOCKS[name]
    running: dict[Future[Slice], range] = {}
    has_ended = False
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("forkserver")) as pool:
        while True:
            while len(running) < jobs and not has_ended and (following == begin or time.monotonic() < until):
                numbers = range(following, following + size - following % size)
                running[pool.submit(_block, name, numbers.start, numbers.stop)] = numbers
                following = numbers.stop
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                numbers, block = running.pop(future), future.result()
                has_ended = has_ended or block.to < numbers.stop
                yield numbers, block


def _in_order(blocks: Iterable[tuple[range, Slice]], at: int) -> Iterator[Slice]:
    """Give the blocks of numbers from `at` on in their order."""
    done: dict[int, tuple[int, Slice]] = {}
    for numbers, block in blocks:
        done[numbers.start] = numbers.stop, block
        while at in done:
            at, earliest = done.pop(at)
            yield earliest


def _block(name: str, begin: int, end: int) -> Slice:
    """Do a block of numbers. It ends early where the list of a campaign ends."""
    whole = Slice(begin)
    with _on_one_core() if name in ON_ONE_CORE else nullcontext():
        for part in importlib.import_module(f"campaigns.{name}").slices(begin, math.inf, end):
            _add(whole, part)
    return whole


@contextmanager
def _on_one_core() -> Iterator[None]:
    """Keep this thread, and those that it starts, on the core where it is now; the next block may get another one."""
    if sys.platform != "linux":
        yield
        return
    cores = os.sched_getaffinity(0)
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    os.sched_setaffinity(0, {int(fields[36])})  # proc_pid_stat(5): field 39, `processor`
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _add(whole: Slice, part: Slice) -> None:
    whole.to = max(whole.to, part.to) if part.figures else whole.to
    for figure, times in part.figures.items():
        whole.count(figure, times)
    whole.findings += part.findings
