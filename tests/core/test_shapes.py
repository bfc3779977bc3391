"""Appends and resizes of one array by several handles: none is undone by another."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.common.strict_json import dumps
from tessarr.core.array_parts import region_io
from tessarr.core.asynchronous import clock
from tessarr.errors import ConflictError, UnsupportedOperationError, ZarrUserWarning
from tessarr.metadata.reservations import MEMBER
from tessarr.storage import LocalStore, MemoryStore
from tessarr.tools.check import check
from tessarr.tools.repair import repair
from tests.simulation.simulator import Bucket, Client
from tests.waiting import until, until_async

MINUTE_S = 60
V1 = {
    "zarr_format": 1,
    "chunks": [2],
    "dtype": "<i4",
    "compression": None,
    "compression_opts": None,
    "fill_value": 0,
    "order": "C",
}


@pytest.fixture(params=["local", "memory", "shared"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "local":
        return LocalStore(tmp_path / "a.zarr")
    return MemoryStore() if request.param == "memory" else Client("a", Bucket())


@pytest.fixture(params=[2, 3])
def zarr_format(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def two(store: Any, zarr_format: int = 3, rows: int = 100) -> tuple[Any, Any]:
    """Two handles of an array of ones."""
    tessarr.create_array(store, data=np.ones(rows, "i4"), chunks=(10,), fill_value=0, zarr_format=zarr_format)
    return tessarr.open_array(store, mode="r+"), tessarr.open_array(store, mode="r+")


def when_locking(array: Any, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a lock is asked for through `array`."""
    asked, lock = threading.Event(), array.store.lock

    def asking(key: str) -> Any:
        asked.set()
        return lock(key)

    monkeypatch.setattr(array.store, "lock", asking)
    return asked


@pytest.mark.parametrize("length", [50, 200])
@pytest.mark.parametrize("clear", [False, True])
def test_a_resize_from_another_shape_than_the_stored_one_changes_nothing(
    store: Any, zarr_format: int, length: int, clear: bool
) -> None:
    a, b = two(store, zarr_format)
    b.resize((120,))
    b[100:] = 2
    keys = sorted(store.list())
    with pytest.raises(ConflictError, match="another writer changed the shape"):
        a.resize((length,), clear=clear)
    assert sorted(store.list()) == keys
    assert tessarr.open_array(store, mode="r")[:].tolist() == [1] * 100 + [2] * 20
    a.refresh()
    a.resize((length,), clear=clear)
    assert tessarr.open_array(store, mode="r").shape == (length,)


@pytest.mark.parametrize("length", [50, 200])
def test_a_resize_that_comes_while_another_handle_appends_waits_and_is_refused(
    tmp_path: Path, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = two(tmp_path / "a.zarr")
    outcome: list[Any] = []
    waits = when_locking(b, monkeypatch)

    def resize() -> None:
        try:
            outcome.append(b.resize((length,)))
        except ConflictError as error:
            outcome.append(error)

    other = threading.Thread(target=resize)
    write = region_io.write_call

    def write_late(*args: Any) -> Any:
        other.start()
        assert waits.wait(MINUTE_S)
        return write(*args)

    monkeypatch.setattr("tessarr.core.array_parts.append.write_call", write_late)
    assert a.append(np.full(10, 2, "i4")) == (110,)
    other.join()
    assert isinstance(outcome[0], ConflictError)
    assert tessarr.open_array(tmp_path / "a.zarr", mode="r")[:].tolist() == [1] * 100 + [2] * 10


def test_a_resize_within_an_append_of_the_same_thread_is_an_error_and_does_not_wait_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = two(tmp_path / "a.zarr")
    write = region_io.write_call

    def write_late(*args: Any) -> Any:
        b.resize((200,))
        return write(*args)

    monkeypatch.setattr("tessarr.core.array_parts.append.write_call", write_late)
    with pytest.raises(ConflictError, match="this thread"):
        a.append(np.full(10, 2, "i4"))
    monkeypatch.undo()
    assert a.append(np.full(10, 2, "i4")) == (110,)


def test_resizes_and_appends_of_one_array_wait_for_each_other_in_a_loop(store: Any) -> None:
    z, _ = two(store)

    async def work() -> None:
        await asyncio.gather(*(z.append_async(np.full(3, i, "i4")) for i in range(2, 6)))
        await z.resize_async((120,))

    asyncio.run(work())
    assert sorted(z[100:112].tolist()) == sorted([2, 3, 4, 5] * 3)
    assert z[112:].tolist() == [0] * 8


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_shrinking_a_huge_grid_by_few_chunks_deletes_just_these(zarr_format: Any) -> None:
    """Found by a test of zarr-python: the chunks that stay were listed too, after the shape was stored."""
    store = MemoryStore()
    rows = 2**40
    z = tessarr.create_array(store, name="a", shape=(rows, 2), chunks=(1, 1), dtype="u1", zarr_format=zarr_format)
    z[-2:] = 7
    before = set(store.list_prefix(""))
    z.resize((rows - 1, 2))
    assert z.shape == (rows - 1, 2)
    assert len(before - set(store.list_prefix(""))) == 2
    np.testing.assert_array_equal(z[-2:], [[0, 0], [7, 7]])


def test_a_resize_of_an_array_that_is_gone_is_an_error(store: Any) -> None:
    a, _ = two(store)
    store.delete("zarr.json")
    with pytest.raises(ConflictError, match="no array"):
        a.resize((50,))
    assert not store.exists("zarr.json")


def test_the_warning_of_kept_chunks_names_the_line_that_resized(store: Any) -> None:
    a, _ = two(store)
    with pytest.warns(ZarrUserWarning, match="their data reappears") as caught:
        a.resize((50,), delete_outside_chunks=False)
    assert caught[0].filename == __file__


def test_appends_that_cannot_be_made_safe_are_refused_before_anything_is_written() -> None:
    store = Client("a", Bucket())
    store.set("meta", dumps({**V1, "shape": [4]}))
    store.set("attrs", b"{}")
    before = dict(store.bucket.values)
    with pytest.raises(UnsupportedOperationError, match="tessarr migrate"):
        tessarr.open_array(store, mode="r+").append([1, 2])
    assert store.bucket.values == before


def test_a_zarr_1_array_in_a_shared_store_grows_and_does_not_delete_chunks() -> None:
    store = Client("a", Bucket())
    store.set("meta", dumps({**V1, "shape": [6]}))
    store.set("attrs", b"{}")
    array = tessarr.open_array(store, mode="r+")
    array[...] = 1
    before = dict(store.bucket.values)
    with pytest.raises(UnsupportedOperationError, match="tessarr migrate"):
        array.resize((2,))
    assert store.bucket.values == before
    with pytest.warns(ZarrUserWarning, match="their data reappears"):
        array.resize((2,), delete_outside_chunks=False)
    array.resize((8,))
    assert tessarr.open_array(store, mode="r")[:].tolist() == [1] * 6 + [0] * 2


class Slow(Client):
    """A store behind a network, whose first value of a chunk arrives only when `arrives` is set."""

    requests_at_once = 16

    def __init__(self) -> None:
        super().__init__("slow", Bucket())
        self.sent, self.arrives = threading.Event(), threading.Event()

    def set(self, key: str, value: Any, **options: Any) -> Any:
        if key.startswith("c/") and not self.sent.is_set():
            self.sent.set()
            assert self.arrives.wait(MINUTE_S)
        return super().set(key, value, **options)


def test_what_a_cancelled_append_sent_does_not_arrive_in_another_s_rows() -> None:
    store = Slow()
    array = tessarr.create_array(store, shape=(0,), chunks=(4,), dtype="i4", fill_value=0)

    async def cancelled() -> None:
        task = asyncio.ensure_future(array.append_async(np.full(4, 1)))
        await until_async(store.sent.is_set, "a chunk is sent")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    shapes: list[Any] = []
    other = tessarr.open_array(Client("b", store.bucket), mode="r+")
    second = threading.Thread(target=lambda: shapes.append(other.append(np.full(4, 2))))

    async def cancelled_then_appended() -> None:
        await cancelled()
        second.start()
        await until_async(lambda: shapes or pending().get("stop") == 8, "the second append has gone on")
        store.arrives.set()

    def pending() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(store.bucket.values["zarr.json"]).get("tessarr_append", {})
        return found

    asyncio.run(cancelled_then_appended())
    second.join(MINUTE_S)
    until(lambda: "reserved" not in pending(), "the cancelled append has given its rows back")
    stop = shapes[0][0]
    found = tessarr.open_array(store, mode="r")[...].tolist()
    assert found[stop - 4 : stop] == [2] * 4
    assert 1 not in found


def test_a_resize_in_zarr_2_keeps_the_fill_value_that_another_handle_stored(store: Any) -> None:
    a, b = two(store, 2, rows=10)
    b.fill_value = 9
    a.resize((12,))
    assert tessarr.open_array(store, mode="r")[8:].tolist() == [1, 1, 9, 9]


@pytest.mark.parametrize(("token", "text"), [("NaN", "NaN"), ("-Infinity", "-Infinity"), ("0.5", 0.5), ("null", None)])
def test_a_resize_in_zarr_2_stores_no_bare_nan(token: str, text: object) -> None:
    store = MemoryStore()
    tessarr.create_array(store, shape=(4,), chunks=(2,), dtype="f8", fill_value=7.25, zarr_format=2)
    store.set(".zarray", bytes(store.get(".zarray") or b"").replace(b"7.25", token.encode()))
    tessarr.open_array(store, mode="r+").resize((6,))
    assert json.loads(bytes(store.get(".zarray") or b""))["fill_value"] == text


@pytest.mark.parametrize("begun_s", [-(10**4), 10**7])
def test_a_resize_that_did_not_end_is_found_whatever_the_clock_of_its_machine_said(begun_s: int) -> None:
    store = Client("a", Bucket())
    tessarr.create_array(store, data=np.arange(6), chunks=(4,))
    document = json.loads(bytes(store.get("zarr.json") or b""))
    closed = ["dead", clock.CLOCK.now() + begun_s]
    store.set(
        "zarr.json", dumps({**document, MEMBER: {"must_understand": False, "axis": 0, "stop": 6, "closed": closed}})
    )
    z = tessarr.open_array(store, mode="r+")
    with pytest.raises(ConflictError, match="a resize of / has not ended"):
        z.append([6], on_hole="error", expire=60)
    report = check(store)
    assert [finding.rule for finding in report.findings if finding.rule.startswith("APPEND")] == ["APPEND-CLOSED"]
    assert "end what appends and resizes have left" in str(report)
    repair(report, store, dry_run=False)
    assert z.append([6]) == (7,)
