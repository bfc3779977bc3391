"""Transactions of level *publish* that create nodes."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.claims import intents
from tessarr.core.claims.settle import EXPIRE_S
from tessarr.errors import (
    ConflictError,
    ContainsArrayError,
    ContainsGroupError,
    PendingCommitError,
    StoreError,
    UnsupportedOperationError,
)
from tessarr.tools.check import check
from tessarr.tools.repair import repair
from tests.simulation.orders import exhaustive
from tests.simulation.simulator import Bucket, Crashed
from tests.transactions.test_publish import Deaf, FailingOnce, Faulty, Time, crash, filled, raised_by, time  # noqa: F401

OLD = (6, None, None)
NEW = (9, list(range(10)), {"by": "transaction", "m": [0, 0, 3]})


def create(store: Any) -> None:
    """Append to an array, create one below a group that is there, and a group with another one."""
    with tessarr.transaction(store) as tx:
        tx.group["a"].append(np.full(3, 7, "i4"))
        tx.group.create_array("g/n", data=np.arange(10), chunks=(4,))
        h = tx.group.create_group("h", attributes={"by": "transaction"})
        m = h.create_array("m", shape=(3,), chunks=(1,), dtype="i4", fill_value=0)
        m[2] = 3


def found(bucket: Bucket, *, consolidated: bool | None = None, writable: bool = False) -> tuple[Any, ...]:
    """What a reader of the library finds."""
    store = bucket.connect("reader")
    root: Any = tessarr.open_group(
        store if writable else store.with_read_only(True), mode="r", use_consolidated=consolidated
    )
    n = root["g/n"][...].tolist() if "g/n" in root else None
    h = {**root["h"].attrs, "m": root["h/m"][...].tolist() if "h/m" in root else None} if "h" in root else None
    assert ("h" in {name for name, _ in root.members()}) == (h is not None)
    return root["a"].shape[0], n, h


def left(bucket: Bucket) -> list[str]:
    """Everything that a transaction may leave."""
    return [
        key
        for key, value in bucket.values.items()
        if b"tessarr_transaction" in value or intents.RECORD in key or key.endswith(intents.CLAIM)
    ]


def cut() -> Iterator[tuple[int, Bucket]]:
    """Buckets in which a process ended before its nth request that writes."""
    for number in range(1000):
        bucket = filled()
        error = raised_by(lambda bucket=bucket, number=number: create(Faulty(bucket, number, crash)))  # type: ignore[misc]
        if error is None:
            return
        assert isinstance(error, Crashed), number
        yield number, bucket


@pytest.mark.parametrize("etags", ["content", "generation"])
@pytest.mark.parametrize("consolidated", [False, True])
def test_nodes_are_created_with_the_other_changes(etags: str, consolidated: bool) -> None:
    bucket = filled(etags, consolidated=consolidated)
    create(bucket.connect("one"))
    assert found(bucket) == NEW
    assert left(bucket) == []
    if consolidated:
        assert found(bucket, consolidated=True) == NEW
    assert check(bucket.connect("checks")).ok


@pytest.mark.parametrize("name", ["né", "日本", "a b", "x" * 200, "🌍/ü", "c:d?"])
def test_names_may_be_any_text(name: str) -> None:
    bucket = Bucket()
    tessarr.create_group(bucket.connect("writer"))
    with tessarr.transaction(bucket.connect("writer")) as tx:
        tx.group.create_array(f"{name}/a", data=np.arange(4))
    with tessarr.transaction(bucket.connect("writer")) as tx:
        group: Any = tx.group
        group[name].attrs["title"] = name
        group[f"{name}/a"].append([4])
    root: Any = tessarr.open_group(bucket.connect("reader"), mode="r")
    assert root[name].attrs["title"] == name
    assert root[f"{name}/a"][...].tolist() == [0, 1, 2, 3, 4]
    assert left(bucket) == []


def test_nothing_is_seen_before_the_commit() -> None:
    seen = set()
    for number, bucket in cut():
        before = dict(bucket.values)
        state = found(bucket)
        assert state in (OLD, NEW), number
        plain = json.loads(bucket.values["a/zarr.json"])["shape"] != [6] or "h/zarr.json" in bucket.values
        assert state == NEW or not plain
        assert bucket.values == before
        seen.add(state == NEW)
    assert seen == {False, True}


@pytest.mark.filterwarnings("ignore:rows 6 to 9:tessarr.errors.ZarrRuntimeWarning")
def test_a_process_that_ends_at_any_request_leaves_all_or_nothing_and_a_repair_ends_it(time: Time) -> None:  # noqa: F811
    for number, bucket in cut():
        state = found(bucket)
        for _ in range(3):  # the next one finds the claims of what was undone, and chunks of appends that were ended
            time.seconds += EXPIRE_S
            done = repair(check(bucket.connect("checks"), data="stat"), bucket.connect("repairs"), dry_run=False)
        assert done.ok, number
        assert found(bucket) == found(bucket, consolidated=True), number
        assert found(bucket)[1:] == state[1:], number
        assert [key for key in left(bucket) if not key.startswith("__")] == [], number
        if state == OLD:
            a = tessarr.open_group(bucket.connect("next"), mode="r+").create_array(
                "h/m", shape=(3,), chunks=(1,), dtype="i4"
            )
            assert a[...].tolist() == [0, 0, 0], number


def test_who_opens_for_writing_completes_it() -> None:
    completed = 0
    for number, bucket in cut():
        if found(bucket) == NEW and "h/zarr.json" not in bucket.values:
            h = tessarr.open_array(bucket.connect("next"), path="h/m", mode="r+")
            h[0] = 5
            assert tessarr.open_group(bucket.connect("other"), mode="r")["a"].shape == (9,), number
            assert not any(
                b"tessarr_transaction" in value for key, value in bucket.values.items() if intents.RECORD not in key
            )
            completed += 1
    assert completed


def test_a_store_that_fails_at_any_request_leaves_all_or_nothing_and_says_which() -> None:
    told = set()
    for number in range(1000):
        bucket = filled()
        store = FailingOnce(bucket, number)
        error = raised_by(lambda store=store: create(store))  # type: ignore[misc]
        told.add(type(error))
        undone = isinstance(error, StoreError) and not isinstance(error, PendingCommitError)
        assert found(bucket, writable=True) == (OLD if undone else NEW), (number, error)
        if store.left >= 0:
            break
    assert told == {type(None), StoreError, PendingCommitError}


@pytest.mark.parametrize("error", [StoreError("the answer was lost"), ConflictError("the first try was carried out")])
def test_an_answer_that_is_lost_leaves_all_or_nothing(error: StoreError) -> None:
    for number in range(1000):
        bucket = filled()
        store = Deaf(bucket, number, error)
        raised = raised_by(lambda store=store: create(store))  # type: ignore[misc]
        done = raised is None or isinstance(raised, PendingCommitError)
        assert found(bucket, writable=True) == (NEW if done else OLD), (number, raised)
        if store.left >= 0:
            break


def test_another_writer_waits_and_then_finds_the_node(time: Time) -> None:  # noqa: F811
    told = set()
    for number, bucket in cut():
        root: Any = tessarr.open_group(bucket.connect("other"), mode="r+")
        error = raised_by(lambda root=root: root.create_group("h", attributes={"by": "other"}))  # type: ignore[misc]
        now = found(bucket)
        if error is None:
            assert now[1:] == (None, {"by": "other", "m": None}), number
        else:
            assert isinstance(error, (ContainsGroupError, ContainsArrayError)), (number, error)
        told.add((type(error), now == NEW))
    assert {(ContainsGroupError, True)} <= told
    assert any(kind is type(None) for kind, _ in told)


def test_a_node_that_another_writer_creates_meanwhile_is_a_conflict() -> None:
    bucket = filled()
    tx = tessarr.transaction(bucket.connect("one"))
    tx.__enter__()
    tx.group.create_array("n", data=np.arange(3), chunks=(1,))
    contextvars.Context().run(lambda: tessarr.create_group(bucket.connect("two"), path="n"))
    with pytest.raises(ConflictError) as caught:
        tx.commit()
    assert caught.value.keys == ("n/zarr.json",)
    assert left(bucket) == []
    assert [key for key in bucket.values if key.startswith("n/")] == ["n/zarr.json"]


def test_a_transaction_in_a_place_without_a_node_creates_it() -> None:
    bucket = Bucket("content")
    with tessarr.transaction(bucket.connect("one")) as tx:
        tx.group.create_array("x", data=[1, 2, 3])
    assert sorted(tessarr.open_group(bucket.connect("two"), mode="r")) == ["x"]
    with tessarr.transaction(tessarr.storage.StorePath(bucket.connect("one"), "p/q")) as tx:
        tx.group.attrs["deep"] = True
    assert tessarr.open_group(bucket.connect("two"), path="p/q", mode="r").attrs["deep"]
    assert left(bucket) == []


def test_a_new_array_with_a_storage_transformer_is_refused() -> None:
    bucket = filled()
    before = dict(bucket.values)
    tx = tessarr.transaction(bucket.connect("one"))
    tx.__enter__()
    tx.group.create_array("v", shape=(4,), dtype="i4", storage_transformers=[{"name": "tessarr.versioned"}])
    with pytest.raises(UnsupportedOperationError):
        tx.commit()
    assert bucket.values == before


class Foreign:
    """A program that knows nothing of transactions: it changes an attribute, and keeps no member that it does not know."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self.bucket, self.key = bucket, key

    def __call__(self) -> None:
        document = json.loads(self.bucket.values[self.key])
        known = {name: value for name, value in document.items() if not name.startswith("tessarr_")}
        known["attributes"] = {**known.get("attributes", {}), "foreign": 1}
        self.bucket.put(self.key, json.dumps(known).encode())


def test_a_document_that_a_foreign_program_replaces_is_never_lost_silently() -> None:
    told = set()
    for number in range(1000):
        bucket = filled(consolidated=False)
        done: list[int] = []

        def fault(bucket: Bucket = bucket, done: list[int] = done) -> None:
            if not done:
                done.append(1)
                Foreign(bucket, "a/zarr.json")()

        error = raised_by(lambda fault=fault, bucket=bucket, number=number: create(Faulty(bucket, number, fault)))  # type: ignore[misc]
        if not done:
            break
        a = tessarr.open_array(bucket.connect("reader"), path="a", mode="r")
        assert a.attrs["foreign"] == 1, number
        if error is None:
            assert a.shape == (9,), number
        elif isinstance(error, PendingCommitError):
            assert "a/zarr.json" in str(error)
            assert a.shape == (6,), number
            assert found(bucket)[1:] == NEW[1:]
        else:
            assert isinstance(error, ConflictError), (number, error)
            assert found(bucket) == OLD, number
        told.add(type(error))
    assert told == {type(None), ConflictError, PendingCommitError}


class Extending(Foreign):
    """A program that makes an array longer, and keeps the members that it does not know."""

    def __call__(self) -> None:
        document = json.loads(self.bucket.values[self.key])
        document["shape"][0] += 3
        self.bucket.put(self.key, json.dumps(document).encode())


def disturbed(disturb: Callable[[Bucket], object]) -> Iterator[tuple[int, Bucket, BaseException | None]]:
    """Run the transaction while another program does something before the nth of its requests that write."""
    for number in range(1000):
        bucket = filled(consolidated=False)
        done: list[int] = []

        def fault(bucket: Bucket = bucket, done: list[int] = done) -> None:
            if not done:
                done.append(1)
                disturb(bucket)

        error = raised_by(lambda fault=fault, bucket=bucket, number=number: create(Faulty(bucket, number, fault)))  # type: ignore[misc]
        if not done:
            return
        yield number, bucket, error


@pytest.mark.filterwarnings("ignore::tessarr.errors.ZarrRuntimeWarning")
def test_rows_are_not_lost_silently_where_another_program_makes_the_array_longer() -> None:
    told = set()
    for number, bucket, error in disturbed(lambda bucket: Extending(bucket, "a/zarr.json")()):
        shape = json.loads(bucket.values["a/zarr.json"])["shape"]
        if error is None:  # it came after the commit was carried out
            assert shape == [12], number
        else:
            assert shape == [9], (number, error)
            assert isinstance(error, (ConflictError, PendingCommitError)), (number, error)
            assert "a/zarr.json" in str(error), number
        told.add(type(error))
    assert told == {type(None), ConflictError, PendingCommitError}


def test_a_chunk_of_another_program_at_the_place_of_a_new_array_stays() -> None:
    told = set()
    for number, bucket, error in disturbed(lambda bucket: bucket.put("g/n/c/0", b"foreign")):
        assert bucket.values["g/n/c/0"] == b"foreign", (number, error)
        assert error is None or (isinstance(error, ConflictError) and error.keys == ("g/n/c/0",)), (number, error)
        assert ("g/n/zarr.json" in bucket.values) == (error is None), number
        told.add(type(error))
    assert told == {type(None), ConflictError}


def test_a_claim_that_is_gone_after_the_commit_is_told() -> None:
    """As after another client removed it that had been stopped in the middle of an earlier transaction of the same node."""
    told = set()
    for number, bucket, error in disturbed(lambda bucket: bucket.values.pop("g/n/.tessarr_claim", None)):
        if error is None:
            assert found(bucket) == NEW, number
        else:
            assert isinstance(error, (ConflictError, PendingCommitError)), (number, error)
            assert "g/n/zarr.json" in str(error), number
            assert found(bucket)[1] is None, number
        told.add(type(error))
    assert told == {type(None), ConflictError, PendingCommitError}


def ended_after_commit() -> Bucket:
    """A bucket in which a process committed a transaction that creates a group, and ended."""
    for number in range(100):
        bucket = filled()

        def create_group(store: Any) -> None:
            with tessarr.transaction(store) as tx:
                tx.group.create_group("p", attributes={"by": "transaction"})

        raised_by(lambda bucket=bucket, number=number: create_group(Faulty(bucket, number, crash)))  # type: ignore[misc]
        if any(intents.RECORD in key and b'"committed"' in value for key, value in bucket.values.items()):
            return bucket
    raise AssertionError("no transaction commits")


def test_two_that_complete_a_transaction_at_once_keep_what_it_created() -> None:
    ended = ended_after_commit()
    outcomes = 0
    for outcome in exhaustive(
        [lambda store: "p" in tessarr.open_group(store, mode="r+")] * 2,
        lambda: Bucket("generation", dict(ended.values), dict(ended.generations), ended.writes),
        preemptions=2,
    ):
        outcomes += 1
        assert outcome.results == [True, True], outcome.schedule
        store = outcome.bucket.connect("reader")
        assert dict(tessarr.open_group(store, path="p", mode="r").attrs) == {"by": "transaction"}, outcome.schedule
    assert outcomes > 100
