"""Clients that are stopped between two requests, for longer than others wait, and go on when all others have ended.

No lease is relied upon: what such a client stores when it goes on must not change what was stored meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.claims import intents
from tessarr.core.claims.settle import EXPIRE_S
from tessarr.errors import TessarrError
from tessarr.tools.check import check
from tessarr.tools.repair import repair
from tests.simulation import cases
from tests.simulation.cases import World
from tests.simulation.simulator import Bucket
from tests.transactions.test_publish import Faulty, crash, raised_by

KINDS = ("object", "generations")
ROWS = 8


@pytest.fixture(autouse=True)
def points() -> Iterator[None]:
    with cases.simulating():
        yield


def wait(seconds: float = EXPIRE_S + 1) -> None:
    run_steps(_pause(seconds))


async def _pause(seconds: float) -> None:
    await clock.CLOCK.pause(seconds)


def publish_new(store: Any) -> None:
    """Create an array with a chunk of fill value, and append to another one."""
    with tessarr.transaction(store) as tx:
        tx.group.create_array("n", data=np.repeat([5, 0, 5], 4).astype("i4"), chunks=(4,), fill_value=0)
        tx.group["a"].append(np.full(ROWS, 5, "i4"))


def replace_new(store: Any) -> list[int]:
    """Wait and repair until nothing of a transaction is left; create another array in the place of its own, and write to it."""
    for _ in range(4):
        wait()
        repair(check(store, data="stat", jobs=1, conventions=False), store, dry_run=False)
    root: Any = tessarr.open_group(store, mode="r+")
    if "n" in root:
        del root["n"]
    n: Any = root.create_array("n", shape=(12,), chunks=(4,), dtype="i4", fill_value=0)
    n[0:6] = 8
    found: list[int] = n[...].tolist()
    return found


NEW = [8] * 6 + [0] * 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_transaction_that_goes_on_late_changes_no_array_that_was_created_meanwhile(kind: str) -> None:
    late = []
    for number, outcome in cases.stalled([publish_new, replace_new], cases.maker(World(kind))):
        first, second = outcome.results
        assert first is None or isinstance(first, TessarrError), (number, first)
        n: Any = tessarr.open_array(outcome.bucket.connect("reader"), path="n", mode="r")
        late += [number] if [second, n[...].tolist()] != [NEW, NEW] else []
    assert len(late) <= 1  # the request for the third chunk, which nobody stores meanwhile, was in flight all the time


def committed(kind: str) -> Iterator[Bucket]:
    """Buckets in which a process ended after it had committed, before each of its writes."""
    for left in range(1000):
        bucket = cases.maker(World(kind))()
        if raised_by(lambda bucket=bucket, left=left: publish_new(Faulty(bucket, left, crash))) is None:  # type: ignore[misc]
            return
        if any(b'"committed"' in value for key, value in bucket.values.items() if intents.RECORD in key):
            yield bucket


def complete(store: Any) -> None:
    """Open what a transaction changes for writing, which completes it."""
    tessarr.open_array(store, path="n", mode="r+")


@pytest.mark.parametrize("kind", KINDS)
def test_who_completes_a_transaction_late_changes_no_array_that_was_created_meanwhile(kind: str) -> None:
    for left in committed(kind):
        world = lambda left=left: Bucket(left.etags, dict(left.values), dict(left.generations), left.writes)  # noqa: E731
        for number, outcome in cases.stalled([complete, replace_new], world):
            first, second = outcome.results
            assert first is None or isinstance(first, TessarrError), (number, first)
            assert second == NEW, (number, second)
            root: Any = tessarr.open_group(outcome.bucket.connect("reader"), mode="r")
            assert root["n"][...].tolist() == NEW, (number, first)
            assert root["a"][...].tolist() == [*range(-1, -7, -1), *[5] * ROWS], number


def append_rows(store: Any) -> Any:
    return tessarr.open_array(store, path="a", mode="r+").append(np.full(ROWS, 5, "i4"))


def publish_rows(store: Any) -> Any:
    with tessarr.transaction(store) as tx:
        return tx.group["a"].append(np.full(ROWS, 5, "i4"))


@pytest.mark.parametrize("program", [append_rows, publish_rows])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [5, 8])
def test_an_append_that_goes_on_late_changes_no_rows_that_were_appended_meanwhile(
    kind: str, program: Callable[[Any], Any], value: int
) -> None:
    def shrink_and_append(store: Any) -> list[int]:
        """Wait, and end the append that was begun; remove its rows, and append others, which may be equal."""
        wait()
        a: Any = tessarr.open_array(store, path="a", mode="r+")
        a.append(np.full(1, 6, "i4"), on_hole="void")
        wait()
        a.resize((6,))
        a.append(np.full(ROWS, value, "i4"), on_hole="void")
        found: list[int] = a[...].tolist()
        return found

    expected = [*range(-1, -7, -1), *[value] * ROWS]
    for number, outcome in cases.stalled([program, shrink_and_append], cases.maker(World(kind))):
        first, second = outcome.results
        assert isinstance(first, TessarrError) or first is not None, (number, first)
        assert second == expected, (number, second)
        now = tessarr.open_array(outcome.bucket.connect("reader"), path="a", mode="r")[...].tolist()
        assert now[: len(expected)] == expected, (number, first)


def append_few(store: Any) -> Any:
    """Append rows that share a chunk with those of others."""
    return tessarr.open_array(store, path="a", mode="r+").append(np.full(2, 5, "i4"))


@pytest.mark.parametrize("program", [append_rows, append_few])
@pytest.mark.parametrize("expire", [5, EXPIRE_S])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_which_an_append_says_that_they_are_not_in_the_array_are_not(
    kind: str, zarr_format: int, expire: float, program: Callable[[Any], Any]
) -> None:
    def give_up(store: Any) -> None:
        """Wait, fill what was begun, and append behind it."""
        wait(expire + 1)
        tessarr.open_array(store, path="a", mode="r+").append(np.full(1, 6, "i4"), on_hole="void", expire=expire)

    _check_that_errors_are_right([program, give_up], World(kind, zarr_format, zarr_format == 2))


def _check_that_errors_are_right(programs: list[Callable[[Any], Any]], world: World) -> None:
    """The first program stores rows of 5, the second one a row of 6: there are rows of 5 where the first reports no error."""
    seen = set()
    for number, outcome in cases.stalled(programs, cases.maker(world)):
        found = tessarr.open_array(outcome.bucket.connect("reader"), path="a", mode="r")[...].tolist()
        is_told = isinstance(outcome.results[0], TessarrError)
        seen.add(is_told)
        assert (5 in found) == (not is_told), (number, outcome.results[0], found)
        assert 6 in found
    assert seen == {False, True}


@pytest.mark.parametrize("rows", [2, ROWS])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_transaction_that_another_client_made_void_are_not_in_the_array(kind: str, rows: int) -> None:
    def transact(store: Any) -> None:
        with tessarr.transaction(store) as tx:
            tx.group["a"].append(np.full(rows, 5, "i4"))

    def give_up(store: Any) -> None:
        """Wait, end the transaction and fill what it has begun, and append behind it."""
        wait(EXPIRE_S + 1)
        tessarr.open_array(store, path="a", mode="r+").append(np.full(1, 6, "i4"), on_hole="void")

    _check_that_errors_are_right([transact, give_up], World(kind))
