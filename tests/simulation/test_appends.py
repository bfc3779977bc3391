"""Appends and resizes of clients that share nothing but a bucket: whatever the schedule, nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.array_parts.reservation_io import BESIDE
from tessarr.errors import ConflictError, PendingAppendError, StoreError
from tessarr.tools.check import check
from tessarr.tools.repair import repair
from tests.simulation.orders import exhaustive
from tests.simulation.simulator import Bucket, Client, Crashed, Outcome, Program, Seeded, run

CHUNK = 4


@cache
def _made(rows: int, zarr_format: Any) -> Bucket:
    bucket, data = Bucket(), -1 - np.arange(rows, dtype="i4")
    tessarr.create_array(Client("maker", bucket), data=data, chunks=(CHUNK,), fill_value=0, zarr_format=zarr_format)
    return bucket


def with_array(etags: str = "content", rows: int = 6, zarr_format: int = 3) -> Bucket:
    """A bucket with an array of `rows` rows of chunks of 4, the last of which is not full."""
    made = _made(rows, zarr_format)
    return Bucket(etags, dict(made.values), dict(made.generations), made.writes)


def opened(client: Client) -> Any:
    return tessarr.open_array(client, mode="r+", path=None)


def appends(value: int, rows: int = 3, **options: Any) -> Program:
    """A program that appends rows of `value`."""

    def program(client: Client) -> Any:
        return opened(client).append(np.full(rows, value, "i4"), **options)

    return program


def content(bucket: Bucket) -> list[int]:
    values: list[int] = tessarr.open_array(Client("reader", bucket), mode="r")[:].tolist()
    return values


def blocks(values: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of equal values, with their lengths."""
    found: list[tuple[int, int]] = []
    for value in values:
        if found and found[-1][0] == value:
            found[-1] = (value, found[-1][1] + 1)
        else:
            found.append((value, 1))
    return found


def check_appends(outcome: Outcome, values: Sequence[int], rows: int = 3, before: int = 6) -> None:
    """Every append that returned is there, once and whole; one that did not, once or not at all."""
    found = content(outcome.bucket)
    assert found[:before] == [-1 - i for i in range(before)], outcome.schedule
    appended = blocks(found[before:])
    for value, result in zip(values, outcome.results, strict=True):
        times = appended.count((value, rows))
        if isinstance(result, tuple):
            assert times == 1, (outcome.schedule, result, found)
            assert found[result[0] - rows : result[0]] == [value] * rows, (outcome.schedule, result, found)
        else:
            assert times <= 1, (outcome.schedule, result, found)
    assert {block for block in appended if block[0] != 0} <= {(value, rows) for value in values}, outcome.schedule


@pytest.mark.parametrize(("etags", "zarr_format"), [("content", 3), ("generation", 3), ("content", 2)])
def test_appends_of_two_clients_are_never_lost_in_any_schedule(etags: str, zarr_format: int) -> None:
    runs = 0
    preemptions = 2 if zarr_format == 3 else 1
    for outcome in exhaustive(
        [appends(1), appends(2)], lambda: with_array(etags, zarr_format=zarr_format), preemptions=preemptions
    ):
        runs += 1
        assert all(isinstance(result, tuple) for result in outcome.results), (outcome.results, outcome.schedule)
        check_appends(outcome, [1, 2])
        if zarr_format == 3:
            assert b"tessarr_append" not in outcome.bucket.values["zarr.json"], outcome.schedule
        else:
            assert json.loads(outcome.bucket.values[".tessarr_append"]).keys() == {"epoch"}, outcome.schedule
    assert runs > 20


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_appends_of_three_clients_are_never_lost(zarr_format: int) -> None:
    for seed in range(100):
        bucket = with_array(zarr_format=zarr_format)
        outcome = run(Seeded(seed), [appends(1), appends(2), appends(3)], bucket=bucket)
        assert all(isinstance(result, tuple) for result in outcome.results), (seed, outcome.results)
        check_appends(outcome, [1, 2, 3])


def test_the_simulator_finds_appends_that_are_lost_where_nothing_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle can fail: with a lock that reaches no other machine, as it was, it finds the loss at once."""
    monkeypatch.setattr("tessarr.core.array_parts.resize.notices_writes", lambda _: False)
    lost = 0
    with tessarr.config.set({"append.one_process": True}):
        for outcome in exhaustive([appends(1), appends(2)], with_array, preemptions=1):
            found = content(outcome.bucket)
            lost += any(isinstance(r, tuple) and v not in found for v, r in zip((1, 2), outcome.results, strict=True))
    assert lost


@pytest.mark.filterwarnings("ignore::tessarr.errors.ZarrRuntimeWarning")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_append_whose_answers_get_lost_is_there_once_or_says_that_it_is_not_there_or_that_nobody_knows(
    zarr_format: int,
) -> None:
    errors = 0
    for seed in range(150):
        programs = [appends(value, on_hole="void", expire=5) for value in (1, 2)]
        outcome = run(Seeded(seed), programs, bucket=with_array(zarr_format=zarr_format), lost_answers=2)
        check_appends(outcome, [1, 2])
        found = content(outcome.bucket)
        for value, result in zip((1, 2), outcome.results, strict=True):
            if not isinstance(result, tuple):
                errors += 1
                assert isinstance(result, StoreError), (seed, result)
                told = isinstance(result, PendingAppendError) or any(
                    "could not release" in note for note in getattr(result, "__notes__", ())
                )
                assert told or value not in found, (seed, result, found)
    assert errors


@pytest.mark.filterwarnings("ignore::tessarr.errors.ZarrRuntimeWarning")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("etags", ["content", "generation"])
@pytest.mark.parametrize(("before", "rows"), [(6, 3), (8, 4), (6, 9)])
def test_a_chunk_that_is_delivered_after_its_append_has_failed_is_in_no_other_append(
    zarr_format: int, etags: str, before: int, rows: int
) -> None:
    failed = voids = 0
    for seed in range(30):
        bucket = with_array(etags, rows=before, zarr_format=zarr_format)
        programs = [appends(value, rows, on_hole="void", expire=5) for value in (1, 2, 3)]
        outcome = run(Seeded(seed), programs, bucket=bucket, late_writes=2)
        found = content(outcome.bucket)
        assert found[:before] == [-1 - i for i in range(before)], (seed, found)
        for value, result in zip((1, 2, 3), outcome.results, strict=True):
            if isinstance(result, tuple):
                assert found[result[0] - rows : result[0]] == [value] * rows, (seed, outcome.results, found)
                assert found.count(value) == rows, (seed, found)
            else:
                failed += 1
                assert isinstance(result, StoreError), (seed, result)
                (note,) = result.__notes__  # to fill the rows may have failed as well
                assert "hold fill value" in note or "could not release" in note, (seed, note)
                voids += "hold fill value" in note and 0 in found[before:]
    assert failed
    assert voids


@pytest.mark.filterwarnings("ignore::tessarr.errors.ZarrRuntimeWarning")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_a_crashed_client_reserved_is_void_and_nobody_else_s(zarr_format: int) -> None:
    voids = 0
    for seed in range(100):
        programs = [appends(value, on_hole="void", expire=5) for value in (1, 2, 3)]
        outcome = run(Seeded(seed), programs, bucket=with_array(zarr_format=zarr_format), crashes=1)
        assert sum(result is Crashed for result in outcome.results) <= 1
        assert all(isinstance(r, tuple) or r is Crashed for r in outcome.results), (seed, outcome.results)
        check_appends(outcome, [1, 2, 3])
        voids += 0 in content(outcome.bucket)[6:]
    assert voids


@pytest.mark.filterwarnings("ignore::tessarr.errors.ZarrRuntimeWarning")
def test_an_append_that_waits_too_long_for_another_is_told() -> None:
    seen = set()
    for seed in range(60):
        programs = [appends(value, on_hole="error", expire=5) for value in (1, 2)]
        outcome = run(Seeded(seed), programs, bucket=with_array(), crashes=1)
        for result in outcome.results:
            assert isinstance(result, tuple | ConflictError) or result is Crashed, (seed, result)
            seen.add(type(result))
        check_appends(outcome, [1, 2])
    assert PendingAppendError in seen


def resizes(length: int) -> Program:
    """A program that sets the length, if it is what it was when the program began."""

    def program(client: Client) -> Any:
        opened(client).resize((length,))
        return length

    return program


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("length", [4, 12])
def test_a_resize_and_an_append_are_one_after_the_other_or_the_resize_is_refused(length: int, zarr_format: int) -> None:
    before = [-1 - i for i in range(6)]
    resized = [*before, *[0] * 6][:length]
    refused = 0
    preemptions = 2 if zarr_format == 3 else 1
    for outcome in exhaustive(
        [appends(7), resizes(length)], lambda: with_array(zarr_format=zarr_format), preemptions=preemptions
    ):
        appended, result = outcome.results
        assert isinstance(appended, tuple), (outcome.schedule, appended)
        if isinstance(result, ConflictError):
            refused += 1
            expected = [[*before, 7, 7, 7]]
        else:
            assert result == length, (outcome.schedule, result)
            expected = [[*resized, 7, 7, 7], [*before, 7, 7, 7, *[0] * 6][:length]]
        assert content(outcome.bucket) in expected, (outcome.schedule, outcome.results)
    assert refused


def test_readers_see_complete_appends_only() -> None:
    def reads(client: Client) -> Any:
        return [tessarr.open_array(client, mode="r")[:].tolist() for _ in range(3)]

    for outcome in exhaustive([reads, appends(1), appends(2)], with_array, preemptions=1):
        for values in outcome.results[0]:
            assert {length for _, length in blocks(values[6:])} <= {3}, (outcome.schedule, values)
            assert 0 not in values, (outcome.schedule, values)


@pytest.mark.parametrize("etags", ["content", "generation"])
@pytest.mark.parametrize("change", ["repair", "shrink"])
def test_what_an_append_to_v2_publishes_while_the_array_is_closed_is_not_removed(etags: str, change: str) -> None:
    """Rows are published in the object beside the document first: who closes the array then must see them."""
    states: list[dict[str, bytes]] = []

    class Recording(Client):
        def update(self, key: str, change: Any) -> Any:
            states.append(dict(self.bucket.values))
            return super().update(key, change)

    appended = with_array(etags, rows=4, zarr_format=2)
    opened(Recording("appender", appended)).append(np.full(3, 7, "i4"))
    published = next(
        n
        for n, state in enumerate(states)
        if b'"stop": 7' in state.get(BESIDE, b"") and b'"reserved"' not in state[BESIDE]
    )
    assert json.loads(states[published][".zarray"])["shape"] == [4]

    class Meanwhile(Client):
        def update(self, key: str, change: Any) -> Any:
            if key == BESIDE and BESIDE not in self.bucket.values:
                for name, value in states[published].items():
                    self.bucket.put(name, value)
            return super().update(key, change)

    bucket = with_array(etags, rows=4, zarr_format=2)
    bucket.put("1", states[published]["1"])  # the append has stored its chunk, and what follows is not seen yet
    store = Meanwhile("other", bucket)
    if change == "repair":
        repair(check(bucket.connect("checker"), data="stat", jobs=1, conventions=False), store, dry_run=False)
    else:
        with pytest.raises(ConflictError, match="another writer changed the shape"):
            opened(store).resize((2,))
    assert content(bucket)[4:] == [7, 7, 7]
