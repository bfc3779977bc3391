"""Simulate many workers that carry out a plan and are killed now and then. Pure: nothing is read or written.

The simulation hands out tasks as a client does (`tessarr.plan.strategies.ready`), and lets each take the time that its
requests, bytes and elements need. What a killed worker or a failed task has moved is moved again.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, log10
from typing import NamedTuple

from tessarr.common.counted import counted
from tessarr.errors import UnsupportedOperationError
from tessarr.plan.strategies.ready import Hands


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """What a cluster has. Rates are in bytes per second, times in seconds."""

    count: int
    network: float = 1.25e9
    """Of one worker, in each direction: 10 Gbit/s."""
    shared: float = inf
    """Of all workers at work together: what the storage delivers. A task keeps the share that it began with."""
    codecs: float = 1e9
    """Elements, in bytes, that one worker decodes or encodes."""
    stored: float = 1.0
    """Stored bytes per byte of elements."""
    latency: float = 0.05
    """Until a request is answered."""
    in_flight: int = 8
    """Requests of one worker at once."""
    lifetime: float = inf
    """After which a worker is killed, on average; the times are distributed exponentially."""
    restart: float = 60.0
    """Until a killed worker is replaced."""
    failing: float = 0.0
    """The part of tasks that fail, at their end."""


class TaskCosts(NamedTuple):
    """What a task moves: bytes of elements, and requests."""

    read: float
    written: float
    requests: float


@dataclass(slots=True)
class Expected:
    """What to expect of a plan on many workers."""

    seconds: float = 0.0
    """Until the last task has ended."""
    attempts: int = 0
    """Tasks that were begun, repeated ones included."""
    killed: int = 0
    """Workers that were killed while they carried out a task."""
    failed: int = 0
    read: float = 0.0
    """Bytes that were transferred to workers, stored as they are."""
    written: float = 0.0
    lost: float = 0.0
    """Bytes of both that repeated tasks transferred, and no result holds."""
    requests: float = 0.0
    busy: float = 0.0
    """The part of the time of all workers in which they carried out tasks that ended."""

    def __str__(self) -> str:
        took = f"{self.seconds / 3600:.2f} hours" if self.seconds >= 360 else f"{self.seconds:.1f} seconds"
        read, written, lost = (in_bytes(nbytes) for nbytes in (self.read, self.written, self.lost))
        count = f"{self.requests / 1e6:.1f} million" if self.requests >= 1e6 else f"{self.requests:,.0f}"
        return (
            f"{took} with workers {self.busy:.0%} busy\n"
            f"{counted(self.attempts, 'attempt')}, of which {self.killed:,} were killed and {self.failed:,} failed\n"
            f"{read} read and {written} written, {lost} of it lost, by {count} requests"
        )


def in_bytes(nbytes: float) -> str:
    """Format bytes in units of powers of 1000, with one decimal.

    >>> in_bytes(179.5e12), in_bytes(3200)
    ('179.5 TB', '3.2 kB')
    """
    if nbytes < 1e3:
        return f"{nbytes:.0f} B"
    power = min(4, int(log10(nbytes) / 3 + 1e-9))
    return f"{nbytes / 1000**power:.1f} {' kMGT'[power]}B"


_NOTHING = TaskCosts(0.0, 0.0, 0.0)
_PATIENCE = 8.0
"""A task that takes so many lifetimes of a worker is not simulated: one attempt in three thousand would end."""


@dataclass(slots=True)
class _Worker:
    number: int
    dies: float
    task: int = -1
    moves: TaskCosts = _NOTHING
    began: float = 0.0
    seconds: float = 0.0
    """What its task takes."""


@dataclass(slots=True)
class _Cluster:
    """The workers, and the tasks that they carry out."""

    workers: Workers
    hands: Hands
    costs: Callable[[int], TaskCosts]
    ended: Callable[[int], object]
    chance: random.Random
    found: Expected = field(default_factory=Expected)
    events: list[tuple[float, int, _Worker]] = field(default_factory=list)
    idle: deque[_Worker] = field(default_factory=deque)
    again: deque[int] = field(default_factory=deque)
    running: int = 0

    def run(self) -> Expected:
        useful = 0.0
        self.idle.extend(_Worker(number, self._death(0.0)) for number in range(self.workers.count))
        self._begin(0.0)
        while self.events:
            now, _, worker = heapq.heappop(self.events)
            task, worker.task = worker.task, -1
            self.running -= task >= 0
            if task >= 0 and not self._is_lost(worker, task, now):
                useful += worker.seconds
                self.found.seconds = now
                self.ended(task)
                self.hands.ended(task)
            if now >= worker.dies:
                worker.dies = self._death(now + self.workers.restart)
                heapq.heappush(self.events, (now + self.workers.restart, worker.number, worker))
            else:
                self.idle.append(worker)
            self._begin(now)
        self.found.busy = useful / (self.workers.count * self.found.seconds) if self.found.seconds else 1.0
        return self.found

    def _begin(self, now: float) -> None:
        """Let idle workers begin tasks; they share what the storage delivers with all that are at work then."""
        begun = []
        while self.idle and (task := self.again.popleft() if self.again else self.hands.take()) is not None:
            worker = self.idle.popleft()
            if worker.dies <= now:  # it was killed while it waited, and has been replaced
                worker.dies = self._death(now)
            worker.task, worker.began, worker.moves = task, now, self.costs(task)
            begun.append(worker)
        self.running += len(begun)
        self.found.attempts += len(begun)
        for worker in begun:
            worker.seconds = self._seconds(worker.moves)
            heapq.heappush(self.events, (min(now + worker.seconds, worker.dies), worker.number, worker))

    def _is_lost(self, worker: _Worker, task: int, now: float) -> bool:
        """Count what an attempt moved; return whether it has to be repeated."""
        killed = now >= worker.dies
        part = (now - worker.began) / worker.seconds if killed else 1.0
        failed = not killed and self.chance.random() < self.workers.failing
        read, written, requests = worker.moves
        moved = part * self.workers.stored
        self.found.read += moved * read
        self.found.written += moved * written
        self.found.requests += part * requests
        self.found.killed += killed
        self.found.failed += failed
        if killed or failed:
            self.found.lost += moved * (read + written)
            self.again.append(task)
        return killed or failed

    def _seconds(self, moves: TaskCosts) -> float:
        read, written, requests = moves
        have = self.workers
        rate = min(have.network, have.shared / self.running)
        moving = (read + written) * have.stored / rate
        seconds = moving + (read + written) / have.codecs + requests * have.latency / have.in_flight
        if seconds > _PATIENCE * have.lifetime:
            raise UnsupportedOperationError(
                "a task takes much longer than workers live",
                expected=f"tasks of less than {_PATIENCE * have.lifetime:.0f} s",
                got=f"a task that takes {seconds:.0f} s",
                hint="Plan with less memory, so that tasks are smaller, or with another strategy",
            )
        return seconds

    def _death(self, now: float) -> float:
        return now + self.chance.expovariate(1 / self.workers.lifetime) if self.workers.lifetime < inf else inf


def simulated(
    workers: Workers, hands: Hands, costs: Callable[[int], TaskCosts], ended: Callable[[int], object], seed: int
) -> Expected:
    """Simulate the tasks that `hands` hands out; `ended` is called with each that has ended. The same `seed`, the same result.

    Raises `UnsupportedOperationError` for tasks that take many lifetimes of a worker, `ValueError` for numbers that fit no
    cluster.
    """
    positive = (workers.network, workers.shared, workers.codecs, workers.stored, workers.in_flight, workers.lifetime)
    if (
        workers.count < 1
        or not 0 <= workers.failing < 1
        or min(positive) <= 0
        or min(workers.latency, workers.restart) < 0
    ):
        raise ValueError(
            f"there is at least one worker, rates are positive, and less than all tasks fail, got {workers}"
        )
    return _Cluster(workers, hands, costs, ended, random.Random(seed)).run()
