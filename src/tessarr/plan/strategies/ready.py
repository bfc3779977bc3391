"""Hand out the tasks that may start. Pure.

A stage of a block begins when the stage before it has ended there (`Ready`), or each of its tasks when those have ended whose
values it reads (`ReadyOneByOne`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

EndOfStage = Callable[[int, bool], None]
"""Called with the number of a block when one of its stages has ended, and whether that was the last one."""


class Hands(Protocol):
    """Hands out tasks."""

    def take(self) -> int | None:
        """Return a task that may start, and count it as running; ``None`` when none may before another has ended."""
        ...

    def ended(self, task: int, *, failed: bool = False) -> None:
        """Note that a task has ended."""
        ...


@dataclass(slots=True)
class _Block:
    number: int
    stages: Iterator[Iterable[int]]
    """The stages that have not begun."""
    tasks: Iterator[int] = field(default_factory=lambda: iter(()))
    """The tasks of the present stage that have not started."""
    begun: bool = False
    running: int = 0
    failed: bool = False
    exhausted: bool = False
    """Whether all tasks of the present stage have started."""


class Ready:
    """Tasks that may start now. Blocks do not wait for each other: where none of a block may start, the next one begins.

    >>> ready = Ready([(0, ([0, 1], [2])), (1, ([3], [4]))], lambda block, last: print("end of", block, last))
    >>> [ready.take(), ready.take(), ready.take(), ready.take()]
    [0, 1, 3, None]
    >>> ready.ended(3)
    end of 1 False
    >>> ready.take()
    4
    """

    def __init__(self, blocks: Iterable[tuple[int, Iterable[Iterable[int]]]], end_of_stage: EndOfStage) -> None:
        self._blocks = iter(blocks)
        self._end_of_stage = end_of_stage
        self._open: deque[_Block] = deque()
        self._running: dict[int, _Block] = {}

    def take(self) -> int | None:
        """Return a task that may start, and count it as running; ``None`` when none may before another has ended."""
        while True:
            if not self._open:
                number, stages = next(self._blocks, (-1, ()))
                if number < 0:
                    return None
                self._begin_stage(_Block(number, iter(stages)))
                continue
            block = self._open[0]
            for task in block.tasks:
                block.running, block.begun = block.running + 1, True
                self._running[task] = block
                return task
            self._open.popleft().exhausted = True
            self._end_stage(block)

    def ended(self, task: int, *, failed: bool = False) -> None:
        """Note that a task has ended. Where it failed, the further stages of its block do not begin."""
        block = self._running.pop(task)
        block.running -= 1
        block.failed = block.failed or failed
        self._end_stage(block)

    def _end_stage(self, block: _Block) -> None:
        if block.running or block.failed or not block.exhausted:
            return
        last = not self._begin_stage(block)
        if block.begun:
            self._end_of_stage(block.number, last)

    def _begin_stage(self, block: _Block) -> bool:
        """Begin the next stage of a block; return whether there is one."""
        tasks = next(block.stages, None)
        if tasks is None:
            return False
        block.tasks, block.exhausted = iter(tasks), False
        self._open.appendleft(block)
        return True


class _Stage:
    """The tasks of a stage that have not started, the first of which is at hand."""

    def __init__(self, tasks: Iterable[int], needs: Callable[[int], Iterable[int]]) -> None:
        self._tasks, self._needs = iter(tasks), needs
        self.first: int | None = None
        self.needed: list[int] = []
        self.advance()

    def advance(self) -> None:
        """Go on to the next task."""
        self.first = next(self._tasks, None)
        self.needed = [] if self.first is None else list(self._needs(self.first))


class ReadyOneByOne:
    """Tasks that may start now, where each waits only for the tasks that it `needs`.

    Stages are taken in order of their tasks, the last stage that can go on first, so that little is between them.
    `done`: the tasks that have ended; a task that needs one that failed is never handed out.

    >>> done = {0}
    >>> ready = ReadyOneByOne([(0, ([1, 2], [3, 4]))], lambda task: [task - 3, task - 2] if task > 2 else [], done)
    >>> ready.take(), ready.take(), ready.take()
    (1, 2, None)
    >>> done.add(1); ready.ended(1)
    >>> ready.take(), ready.take()
    (3, None)
    """

    def __init__(
        self, blocks: Iterable[tuple[int, Iterable[Iterable[int]]]], needs: Callable[[int], Iterable[int]], done: Container[int]
    ) -> None:  # fmt: skip
        self._blocks = iter(blocks)
        self._needs, self._done = needs, done
        self._open: list[list[_Stage]] = []
        self._failed: set[int] = set()

    def take(self) -> int | None:
        """Return a task that may start, and count it as running; ``None`` when none may before another has ended."""
        while True:
            for stages in self._open:
                for stage in reversed(stages):
                    if (task := self._first(stage)) is not None:
                        stage.advance()
                        return task
            self._open = [stages for stages in self._open if any(stage.first is not None for stage in stages)]
            number, tasks = next(self._blocks, (-1, ()))
            if number < 0:
                return None
            self._open.append([_Stage(stage, self._needs) for stage in tasks])

    def _first(self, stage: _Stage) -> int | None:
        """Return the first task of a stage, if it may start. Skips those that never may."""
        while stage.first is not None and not self._failed.isdisjoint(stage.needed):
            self._failed.add(stage.first)
            stage.advance()
        return stage.first if all(task in self._done for task in stage.needed) else None

    def ended(self, task: int, *, failed: bool = False) -> None:
        """Note that a task has ended."""
        if failed:
            self._failed.add(task)
