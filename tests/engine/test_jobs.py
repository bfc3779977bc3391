"""Independent work side by side: results in order, a bounded number in work, errors that end it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count, islice

import pytest

from tessarr.engine.jobs import Jobs


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_the_order_of_the_items(jobs: int) -> None:
    with Jobs(jobs) as pool:
        assert list(pool.map(lambda n: n * n, range(20))) == [n * n for n in range(20)]


def test_no_more_items_are_taken_than_may_be_in_work() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in count():
            taken.append(number)
            yield number

    with Jobs(3) as pool:
        assert list(islice(pool.map(str, items()), 4)) == ["0", "1", "2", "3"]
    assert len(taken) <= 4 + 3


def test_as_many_run_at_once_as_were_allowed() -> None:
    together = threading.Barrier(3, timeout=60)
    with Jobs(3) as pool:
        assert sorted(pool.map(lambda _: together.wait(), range(3))) == [0, 1, 2]


def test_work_may_share_the_threads_for_work_of_its_own() -> None:
    with Jobs(2) as pool:
        rows = pool.map(lambda row: sum(pool.map(lambda n: n + row, range(5))), range(10))
        assert list(rows) == [10 + 5 * row for row in range(10)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_error_ends_the_work_when_what_has_begun_has_ended(jobs: int) -> None:
    begun: list[int] = []
    ended: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise KeyError(number)
        ended.append(number)
        return number

    with Jobs(jobs) as pool:
        results = pool.map(work, range(1000))
        assert list(islice(results, 3)) == [0, 1, 2]
        with pytest.raises(KeyError):
            next(results)
    assert len(begun) == len(ended) + 1 < 20
