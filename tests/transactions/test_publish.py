"""Transactions in a store that replaces one value conditionally, and no two at once: level *publish*."""

from __future__ import annotations

import contextvars
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call
from tessarr.core.claims import intents
from tessarr.core.claims.settle import EXPIRE_S
from tessarr.errors import ConflictError, JournalError, PendingCommitError, StoreError, UnsupportedOperationError
from tessarr.tools.check import check
from tessarr.tools.repair import repair
from tests.simulation.operations import make
from tests.simulation.simulator import Bucket, Client, Crashed

ROWS = {"a": 6, "g/b": 8}


class Time(clock.Clock):
    """Time that passes only in pauses."""

    seconds = 1_700_000_000

    def now(self) -> int:
        return self.seconds

    def pause(self, seconds: float) -> Call:
        def wait() -> None:
            self.seconds += 1

        return clock.Clock.pause(self, 0)._replace(now=wait)


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(clock, "CLOCK", made)
    return made


@pytest.fixture(params=["content", "generation"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    return filled(request.param)


def filled(etags: str = "content", *, consolidated: bool = True, zarr_format: int = 3) -> Bucket:
    made = Bucket(etags)
    make(made.connect("maker"), zarr_format, consolidated=consolidated)
    return made


class Faulty(Client):
    """A client that does something before one of its requests that write."""

    def __init__(self, bucket: Bucket, left: int, fault: Callable[[], None]) -> None:
        super().__init__("faulty", bucket)
        self.left, self.fault = left, fault

    def _write(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.fault()

    def set(self, key: str, value: Any, **given: Any) -> Any:
        self._write()
        return super().set(key, value, **given)

    def delete(self, key: str) -> None:
        self._write()
        super().delete(key)


class FailingOnce(Client):
    """A client of which one request fails, and is not carried out."""

    def __init__(self, bucket: Bucket, left: int) -> None:
        super().__init__("failing", bucket)
        self.left = left

    def _point(self, kind: str, *keys: str) -> None:
        self.left -= 1
        if self.left == -1:
            raise StoreError("the connection was lost")


def crash() -> None:
    raise Crashed


def raised_by(work: Callable[[], object]) -> BaseException | None:
    """The exception that `work` ends with."""
    try:
        work()
    except BaseException as error:
        return error
    return None


def publish(store: Any, number: int = 7) -> None:
    with tessarr.transaction(store) as tx:
        for path in ROWS:
            tx.group[path].append(np.full(3, number, "i4"))
        tx.group.attrs["n"] = tx.group["a"].attrs["n"] = number


def found(bucket: Bucket, *, consolidated: bool | None = None) -> tuple[Any, ...]:
    """What a reader of the library finds."""
    return found_by(bucket.connect("reader").with_read_only(True), consolidated=consolidated)


def found_by(store: Any, *, consolidated: bool | None = None) -> tuple[Any, ...]:
    root: Any = tessarr.open_group(store, mode="r", use_consolidated=consolidated)
    return (*(root[path][...].tolist() for path in ROWS), root.attrs.get("n"), root["a"].attrs.get("n"))


OLD = (list(range(-1, -7, -1)), list(range(-11, -19, -1)), None, None)
NEW = ([*OLD[0], 7, 7, 7], [*OLD[1], 7, 7, 7], 7, 7)


def members(bucket: Bucket) -> list[str]:
    """Everything that a transaction may leave, but a record."""
    return [key for key, value in bucket.values.items() if b"tessarr_" in value and intents.RECORD not in key]


def test_arrays_and_attributes_change_at_once(bucket: Bucket) -> None:
    with tessarr.transaction(bucket.connect("one")) as tx:
        for path in ROWS:
            tx.group[path].append(np.full(3, 7, "i4"))
        tx.group.attrs["n"] = tx.group["a"].attrs["n"] = 7
        assert found(bucket) == OLD
        plan = tx.plan()
    assert plan.level == "publish"
    assert {"a/zarr.json", "g/b/zarr.json", "zarr.json"} <= {*plan.set}
    assert found(bucket) == found(bucket, consolidated=True) == NEW
    assert members(bucket) == []
    assert not any(intents.RECORD in key for key in bucket.values)


def test_a_group_below_consolidated_metadata_is_changed_with_them(bucket: Bucket) -> None:
    with tessarr.transaction(tessarr.open_group(bucket.connect("one"), mode="r+", path="g")) as tx:
        tx.group["b"].append([7])
        tx.group.attrs["n"] = 7
    for consolidated in (False, True):
        g: Any = tessarr.open_group(bucket.connect("reader"), mode="r", use_consolidated=consolidated)["g"]
        assert (g["b"][...].tolist(), g.attrs["n"]) == ([*OLD[1], 7], 7)
    assert members(bucket) == []
    assert not any(intents.RECORD in key for key in bucket.values)


def test_a_process_that_ends_at_any_request_leaves_all_or_nothing(time: Time) -> None:
    seen = set()
    for left in range(1000):
        bucket = filled()
        if raised_by(lambda bucket=bucket, left=left: publish(Faulty(bucket, left, crash))) is None:  # type: ignore[misc]
            break
        state = found(bucket)
        assert state in (OLD, NEW), left
        for value in bucket.values.values():
            if value[:1] == b"{":
                json.loads(value)
        time.seconds += EXPIRE_S
        root: Any = tessarr.open_group(bucket.connect("next"), mode="r+")
        root["a"].attrs["m"] = root["g/b"].attrs["m"] = root.attrs["m"] = 1
        assert found(bucket) == state, left
        assert found(bucket, consolidated=True) == state, left
        assert not any(b"tessarr_transaction" in bucket.values[key] for key in members(bucket)), left
        with pytest.warns() if members(bucket) else nullcontext():
            root["a"].append(np.full(2, 9, "i4"), on_hole="void")
        rows = found(bucket)[0]
        assert rows in ([*state[0], 9, 9], [*OLD[0], 0, 0, 0, 9, 9]), left
        seen.add((state == NEW, 0 in rows))
    assert seen == {(False, False), (False, True), (True, False)}


def test_a_store_that_fails_at_any_request_leaves_all_or_nothing_and_says_which() -> None:
    told = set()
    for left in range(1000):
        bucket = filled()
        store = FailingOnce(bucket, left)
        error = raised_by(lambda store=store: publish(store))  # type: ignore[misc]
        told.add(type(error))
        rows, others, *attributes = now = found(bucket)
        if isinstance(error, StoreError) and not isinstance(error, PendingCommitError):
            assert (rows[:6], attributes) == (OLD[0], [None, None]), (left, error)
            assert 7 not in rows + others, left
            assert not any(b"tessarr_transaction" in bucket.values[key] for key in members(bucket)), left
        else:
            assert now == NEW, (left, error)
        if store.left >= 0:
            break
    assert told == {type(None), StoreError, PendingCommitError}


@pytest.mark.parametrize("etags", ["content", "generation"])
@pytest.mark.parametrize("error", [StoreError("the answer was lost"), ConflictError("the first try was carried out")])
def test_an_answer_that_is_lost_leaves_all_or_nothing(etags: str, error: StoreError) -> None:
    for left in range(100):
        bucket = filled(etags)
        store = Deaf(bucket, left, error)
        raised = raised_by(lambda store=store: publish(store))  # type: ignore[misc]
        if raised is None or isinstance(raised, PendingCommitError):
            assert found(bucket) == NEW, left
        else:
            assert isinstance(raised, StoreError), left
            assert found(bucket)[2:] == (None, None), left
        if store.left >= 0:
            break
    else:
        raise AssertionError("the transaction has fewer than 100 writes")


class Deaf(Client):
    """A client that does not get the answer to one of its writes, which is carried out."""

    def __init__(self, bucket: Bucket, left: int, error: StoreError) -> None:
        super().__init__("deaf", bucket)
        self.left, self.error = left, error

    def _land(self, key: str, value: bytes, if_match: Any) -> None:
        super()._land(key, value, if_match)
        self.left -= 1
        if self.left == -1:
            raise self.error


def test_a_writer_waits_for_a_transaction_and_makes_it_void_when_it_does_not_end(bucket: Bucket, time: Time) -> None:
    before = time.seconds
    stopped = stop_before_commit(bucket)
    root: Any = tessarr.open_group(bucket.connect("other"), mode="r+")
    root["a"].attrs["m"] = 1
    assert time.seconds - before >= EXPIRE_S
    assert found(bucket) == OLD
    with pytest.raises(ConflictError, match="void"):
        next(stopped)
    assert found(bucket) == OLD
    assert tessarr.open_array(bucket.connect("reader"), path="a", mode="r").attrs["m"] == 1


def stop_before_commit(bucket: Bucket) -> Iterator[None]:
    """Run a transaction up to its commit point; it goes on when the iterator does."""
    reached, go_on = threading.Event(), threading.Event()

    class Stopping(Client):
        def set(self, key: str, value: Any, **given: Any) -> Any:
            if intents.RECORD in key and b'"committed"' in bytes(value):
                reached.set()
                go_on.wait()
            return super().set(key, value, **given)

    raised: list[BaseException] = []

    def run() -> None:
        try:
            publish(Stopping("stopping", bucket))
        except BaseException as error:
            raised.append(error)
        reached.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert reached.wait(60)

    def end() -> Iterator[None]:
        go_on.set()
        thread.join()
        if raised:
            raise raised[0]
        yield

    return end()


def test_of_two_transactions_of_one_array_the_second_is_a_conflict(bucket: Bucket) -> None:
    one = tessarr.transaction(bucket.connect("one"))
    one.__enter__()
    one.group["a"].append([7])
    contextvars.Context().run(lambda: publish(bucket.connect("other"), 8))
    with pytest.raises(ConflictError) as caught:
        one.commit()
    assert "zarr.json" in caught.value.keys or "a/zarr.json" in caught.value.keys
    assert found(bucket)[0] == [*OLD[0], 8, 8, 8]


def test_documents_that_others_changed_are_merged(bucket: Bucket) -> None:
    with tessarr.transaction(bucket.connect("one"), on_conflict="merge") as tx:
        tx.group["a"].append([7])
        tx.group["a"].attrs["x"] = 1

        def other() -> None:
            tessarr.open_array(bucket.connect("other"), path="a", mode="r+").attrs["y"] = 2

        contextvars.Context().run(other)
    a = tessarr.open_array(bucket.connect("reader"), path="a", mode="r")
    assert (dict(a.attrs), a[-1]) == ({"x": 1, "y": 2}, 7)


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "a chunk that is there": (lambda root: root["a"].__setitem__(0, 3), "chunks that are there"),
    "with an append": (lambda root: (root["a"].append([1]), root["a"].__setitem__(5, 3)), "chunks that are there"),
    "a shrink": (lambda root: root["a"].resize((2,)), "replacement|chunks that are there"),
    "an array in another's place": (
        lambda root: root.create_array("a", data=np.arange(3.0), overwrite=True),
        "replacement",
    ),
    "a deletion": (lambda root: root.__delitem__("a"), "the removal of a node"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_published_is_refused_before_anything_is_written(what: str, bucket: Bucket) -> None:
    before = dict(bucket.values)
    change, message = REFUSED[what]
    tx = tessarr.transaction(bucket.connect("one"))
    tx.__enter__()
    change(tx.group)
    with pytest.raises(UnsupportedOperationError, match=message):
        tx.commit()
    assert bucket.values == before


def test_zarr_2_is_refused_naming_migrate() -> None:
    bucket = filled(zarr_format=2, consolidated=False)
    tx = tessarr.transaction(bucket.connect("one"))
    tx.__enter__()
    tx.group["a"].append([1])
    with pytest.raises(UnsupportedOperationError, match="migrate"):
        tx.commit()
    assert found(bucket) == OLD


def test_a_record_that_is_damaged_is_an_error_and_nothing_is_changed(bucket: Bucket) -> None:
    with pytest.raises(Crashed):
        publish(Faulty(bucket, first_left_with_intents(bucket), crash))
    (record,) = [key for key in bucket.values if intents.RECORD in key]
    for damaged in (b"", b"{}", b"[1]", b'{"id":1,"state":"committed","since":1,"stores":false,"changes":{}}'):
        bucket.values[record] = damaged
        before = dict(bucket.values)
        with pytest.raises(JournalError, match="damaged"):
            tessarr.open_array(bucket.connect("reader"), path="a", mode="r")
        assert bucket.values == before


def left_at_any_request() -> Iterator[Bucket]:
    """Buckets in which a process ended before its nth request that writes."""
    for left in range(1000):
        bucket = filled()
        if raised_by(lambda bucket=bucket, left=left: publish(Faulty(bucket, left, crash))) is None:  # type: ignore[misc]
            return
        yield bucket


def test_a_record_that_appends_along_an_axis_that_is_not_there_is_an_error() -> None:
    old = b'{"zarr_format":3,"node_type":"array","shape":[6]}'
    with pytest.raises(JournalError, match="no such array"):
        intents.Change(old, old, intents.Region(1, 3)).claimed("zarr.json", intents.Intent("0", 0), 0)


def test_check_finds_the_records_of_transactions_and_repair_ends_them(time: Time) -> None:
    told = set()
    for bucket in left_at_any_request():
        if not any(intents.RECORD in key for key in bucket.values):
            continue
        state, reader = found(bucket), bucket.connect("checks").with_read_only(True)
        before = dict(bucket.values)
        (finding,) = [one for one in check(reader).findings if intents.RECORD in (one.key or "")]
        assert (finding.rule, finding.repairable) == ("TRANSACTION-PENDING", False)
        assert repair(check(reader), bucket.connect("repairs"), dry_run=False).ok
        assert dict(bucket.values) == before
        time.seconds += EXPIRE_S
        (finding,) = [one for one in check(reader).findings if intents.RECORD in (one.key or "")]
        assert finding.rule == "TRANSACTION-LEFT"
        assert dict(bucket.values) == before
        assert repair(check(reader), bucket.connect("repairs"), dry_run=False).ok
        assert found(bucket) == found(bucket, consolidated=True) == state
        told.add(finding.message.split()[-1])
        assert not any(b"tessarr_transaction" in value or intents.RECORD in key for key, value in bucket.values.items())
    assert told == {"pending", "committed"}


WRITING: dict[str, Callable[[Any], object]] = {
    "open": lambda store: tessarr.open_group(store, mode="r+"),
    "open an array": lambda store: tessarr.open_array(store, path="a", mode="a"),
    "consolidate": tessarr.consolidate_metadata,
    "transaction": lambda store: tessarr.transaction(store).__enter__().abort(),
}


@pytest.mark.parametrize("how", WRITING)
def test_who_opens_for_writing_completes_what_is_committed(how: str) -> None:
    completed = 0
    for bucket in left_at_any_request():
        state = found_by(bucket.connect("reader").with_read_only(True))
        claimed = [key for key in ("zarr.json", "a/zarr.json") if b"tessarr_transaction" in bucket.values[key]]
        if state == NEW and len(claimed) == 2:
            WRITING[how](bucket.connect("next"))
            assert members(bucket) == []
            assert found_by(bucket.connect("reader").with_read_only(True)) == NEW
            completed += 1
    assert completed


def test_who_opens_for_reading_completes_nothing() -> None:
    for bucket in left_at_any_request():
        before = dict(bucket.values)
        assert found_by(bucket.connect("reader").with_read_only(True)) in (OLD, NEW)
        assert bucket.values == before


def first_left_with_intents(bucket: Bucket) -> int:
    """After how many requests the first document has an intent."""
    for left in range(1000):
        copy = Bucket(bucket.etags, dict(bucket.values), dict(bucket.generations), bucket.writes)
        with suppress(Crashed):
            publish(Faulty(copy, left, crash))
        if b"tessarr_transaction" in copy.values["a/zarr.json"]:
            return left
    raise AssertionError


def test_an_append_that_is_pending_is_a_conflict(bucket: Bucket) -> None:
    reserved = json.loads(bucket.values["a/zarr.json"])
    reserved["tessarr_append"] = {"must_understand": False, "axis": 0, "stop": 8, "reserved": [[6, 8, "x", 1]]}
    bucket.put("a/zarr.json", json.dumps(reserved).encode())
    tx = tessarr.transaction(bucket.connect("one"))
    tx.__enter__()
    with pytest.raises(ConflictError, match="has not ended"):
        tx.group["a"].append([1])
    tx.abort()


def test_a_follower_hands_out_the_rows_of_a_transaction_whose_process_ended_after_the_commit() -> None:
    committed = 0
    for bucket in left_at_any_request():
        store = bucket.connect("follower").with_read_only(True)
        opened = tessarr.open_array(store, path="a", mode="r")
        rows = [row for _, block in opened.follow(timeout=0) for row in block.tolist()]
        assert rows in (OLD[0], NEW[0])
        assert rows == found(bucket)[0]
        committed += rows == NEW[0] and b"tessarr_transaction" in bucket.values["a/zarr.json"]
    assert committed


def test_a_follower_sees_the_commit_of_a_transaction_that_claimed_the_document(bucket: Bucket) -> None:
    stopped = stop_before_commit(bucket)
    store = bucket.connect("follower").with_read_only(True)
    follower = tessarr.open_array(store, path="a", mode="r").follow(start=-1, min_rows=3, poll=0.001)
    assert b"tessarr_transaction" in bucket.values["a/zarr.json"]
    assert [*tessarr.open_array(store, path="a", mode="r").follow(start=-1, timeout=0)] == []
    next(stopped)
    assert next(follower)[1].tolist() == [7, 7, 7]


def test_a_transaction_that_began_in_the_future_is_not_waited_for(bucket: Bucket, time: Time) -> None:
    time.seconds += 10 * EXPIRE_S
    with pytest.raises(Crashed):
        publish(Faulty(bucket, first_left_with_intents(bucket), crash))
    time.seconds -= 10 * EXPIRE_S
    before = time.seconds
    tessarr.open_array(bucket.connect("other"), path="a", mode="r+").attrs["m"] = 1
    assert time.seconds - before < EXPIRE_S
    assert found(bucket) == OLD


class Counting(Client):
    """A machine that counts its requests that write, those for chunks left out."""

    def __init__(self, bucket: Bucket) -> None:
        super().__init__("counts", bucket)
        self.count = 0

    def _land(self, key: str, value: bytes, if_match: Any) -> None:
        self.count += "/c/" not in key
        super()._land(key, value, if_match)

    def delete(self, key: str) -> None:
        self.count += "/c/" not in key
        super().delete(key)


def _set_attributes(tx: Any) -> None:
    tx.group.attrs["n"] = tx.group["a"].attrs["n"] = 7


def _append(tx: Any) -> None:
    for path in ROWS:
        tx.group[path].append(np.full(4, 7, "i4"))


def _create(tx: Any) -> None:
    for name in ("one", "two"):
        tx.group.create_array(name, data=[1, 2, 3], chunks=(2,))


def _read(tx: Any) -> None:
    tx.group["g"].attrs["n"] = len(tx.group["a"][...])


@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("change", [_set_attributes, _append, _create, _read])
def test_a_plan_says_how_many_requests_a_commit_sends(change: Callable[[Any], None], consolidated: bool) -> None:
    store = Counting(filled(consolidated=consolidated))
    with tessarr.transaction(store) as tx:
        change(tx)
        planned = tx.plan().requests
        assert store.count == 0
    assert store.count == planned


@pytest.mark.parametrize("gone", ["a", "g/b"])
def test_a_transaction_that_fails_because_an_array_is_gone_leaves_no_rows_reserved_in_the_other(gone: str) -> None:
    """Found by `simulate`, seeds 780868 and 780900: who appends there waited for as long as others may take."""
    outcomes = set()
    for left in range(12):
        bucket = filled()

        def remove(bucket: Bucket = bucket) -> None:
            for key in [key for key in bucket.values if key.startswith(f"{gone}/")]:
                del bucket.values[key]

        client = Faulty(bucket, left, remove)
        try:
            with tessarr.transaction(client) as tx:
                for path in ("a", "g/b"):
                    tx.group[path].append(np.full(3, 7, "i4"))
        except (ConflictError, PendingCommitError) as error:
            outcomes.add(type(error))
        (other,) = {"a", "g/b"} - {gone}
        array = tessarr.open_array(bucket.connect("other"), path=other, mode="r+", use_consolidated=False)
        before = array.shape[0]
        assert array.append(np.full(2, 8, "i4"), on_hole="error")[0] == before + 2, left
        array.resize((before + 7,))
        assert array[before:].tolist() == [8, 8, 0, 0, 0, 0, 0], left
    assert ConflictError in outcomes


@pytest.mark.parametrize("left", range(12))
def test_rows_of_a_transaction_that_failed_are_not_shown_by_an_array_that_grows(left: int) -> None:
    bucket = filled()

    def remove() -> None:
        for key in [key for key in bucket.values if key.startswith("a/")]:
            del bucket.values[key]

    with suppress(ConflictError), tessarr.transaction(Faulty(bucket, left, remove)) as tx:
        for path in ("a", "g/b"):
            tx.group[path].append(np.full(3, 7, "i4"))
    array = tessarr.open_array(bucket.connect("other"), path="g/b", mode="r+", use_consolidated=False)
    before = array.shape[0]
    assert before in (8, 11)
    array.resize((before + 5,))
    assert array[before:].tolist() == [0] * 5
