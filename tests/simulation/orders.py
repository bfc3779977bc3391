"""Every order in which clients are interrupted at most so many times, less those that cannot come to anything else.

    for outcome in exhaustive(programs, make_bucket, preemptions=2): …

Two neighbouring orders of two clients, of which the first is interrupted before and behind what it does between two of its
points, come to the same where that reads only what the other one does not change before the first goes on, or changes only
what the other one neither reads nor changes (partial order reduction: Godefroid 1996). The orders of one interruption are
searched from the latest to the earliest, so that one run tells which of those before it may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.simulation.simulator import CHANGE, LIST, LOCK, READ, WAIT, Access, Outcome, Program, Segment, World, run


class Replay:
    """Repeats a schedule, and takes the first option behind its end; notes what it could have chosen."""

    def __init__(self, schedule: Sequence[int]) -> None:
        self._schedule = list(schedule)
        self.taken: list[tuple[int, int]] = []
        """What was chosen, of how many."""

    def choose(self, options: int) -> int:
        """See `Chooser`."""
        at = len(self.taken)
        choice = self._schedule[at] if at < len(self._schedule) else 0
        self.taken.append((choice, options))
        return choice

    def successor(self) -> list[int] | None:
        """The schedule that comes after this one in a search of all; ``None`` after the last."""
        taken = list(self.taken)
        while taken:
            choice, options = taken.pop()
            if choice + 1 < options:
                return [*(before for before, _ in taken), choice + 1]
        return None


def exhaustive(
    programs: Sequence[Program], make_bucket: Callable[[], World], *, preemptions: int | None, **faults: Any
) -> Iterator[Outcome]:
    """Every run of `programs`, each on a bucket of its own, in which a client that could go on is interrupted at most
    `preemptions` times (``None``: any number of times)."""
    schedule: list[int] | None = []
    while schedule is not None:
        replay = Replay(schedule)
        yield run(replay, programs, bucket=make_bucket(), preemptions=preemptions, **faults)
        schedule = replay.successor()


def different(programs: Sequence[Program], make_bucket: Callable[[], World]) -> Iterator[Outcome]:
    """The runs of two clients of which one is interrupted at most once, less those that come to what another one comes to."""
    schedule: list[int] | None = []
    while schedule is not None:
        replay = Replay(schedule)
        outcome = run(replay, programs, bucket=make_bucket(), preemptions=1)
        yield outcome
        schedule = replay.successor()
        interrupted = [at for at, (choice, _) in enumerate(replay.taken) if choice and at]
        while schedule is not None and len(interrupted) == 1 and _is_equal(outcome.segments, interrupted[0], schedule):
            schedule = _earlier(schedule)


def _earlier(schedule: list[int]) -> list[int] | None:
    """The schedule whose interruption is one choice before that of `schedule`, or that begins with the other client."""
    if len(schedule) > 2:
        return [*schedule[:-2], 1]
    return [1] if schedule[0] == 0 else None


def _is_equal(segments: Sequence[Segment], interrupted: int, schedule: list[int]) -> bool:
    """Whether the run of `schedule` comes to what that with these segments came to, which was interrupted at a later choice."""
    earlier = len(schedule) - 1
    if not 0 < earlier < interrupted:
        return False  # it begins with the other client
    first = segments[0].client
    between = [at for at, segment in enumerate(segments) if earlier < segment.choices <= interrupted]
    begins = between[-1] + 1
    if any(segments[at].client != first for at in between) or begins != next(
        at for at, segment in enumerate(segments) if segment.client != first
    ):
        return False
    following = [at for at, segment in enumerate(segments) if at > begins and segment.client == first]
    other = segments[begins : following[0] if following else len(segments)]
    return all(_commutes(segments[at], other) for at in between)


def _commutes(segment: Segment, others: Sequence[Segment]) -> bool:
    """Whether what a client did is the same before and behind what another one did."""
    return all(
        _are_independent(one, another) for one in segment.accesses for other in others for another in other.accesses
    ) and all(kind in (READ, LIST, CHANGE) for kind, _ in segment.accesses)


def _are_independent(one: Access, other: Access) -> bool:
    kinds = {one[0], other[0]}
    if kinds <= {READ, LIST, LOCK, WAIT}:
        return True
    if kinds <= {READ, LIST, CHANGE, LOCK}:
        return not any(_meet((one[0], mine), (other[0], theirs)) for mine in one[1] for theirs in other[1])
    return False


def _meet(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether one of two concerns what the other changes: what is at a key or path that is changed, and below it, may be
    another one after it, and a directory lists what is directly in it."""
    (kind, key), (_, changed) = (one, other) if other[0] == CHANGE else (other, one)
    if kind == READ:
        return key.startswith(changed) or changed.rpartition("/")[0] == key
    return key.startswith(changed) or changed.startswith(key)
