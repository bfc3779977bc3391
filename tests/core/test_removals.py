"""Where nodes are removed and replaced in several requests, that is documents first, under a claim."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.core.asynchronous import clock
from tessarr.core.claims import removals, settle
from tessarr.core.claims.intents import CLAIM
from tessarr.errors import ConflictError, ContainsGroupError, NodeNotFoundError, StoreError, TessarrError
from tessarr.stores.protocols import ConditionalSet
from tessarr.tools.check import check
from tessarr.tools.convert import convert
from tessarr.tools.gc import gc
from tessarr.tools.repair import repair
from tests.simulation import cases
from tests.simulation.orders import exhaustive
from tests.simulation.simulator import Bucket, Client, Seeded, Simulation, run

VALUES = [*range(1, 9)]
NEW, OTHERS = [*range(11, 19)], [*range(21, 29)]


class Stopped(Client):
    """A client that ends at its change after so many."""

    def __init__(self, bucket: Bucket, left: int) -> None:
        super().__init__("stopped", bucket)
        self.left = left

    def _point(self, kind: str, *keys: str) -> None:
        self.left -= kind == "change"
        if self.left < 0:
            raise StoreError("the connection is gone")


class Unconditional(Client):
    """A client that removes one value at a time, as all do here, and cannot write conditionally (fsspec, a mapping)."""

    def has_ability(self, ability: type) -> bool:
        return ability is not ConditionalSet


class OfMapping(Bucket):
    """A bucket whose clients cannot write conditionally."""

    def connect(self, name: str, simulation: Simulation | None = None) -> Client:
        return Unconditional(name, self, simulation)


class StoppedUnconditional(Stopped, Unconditional):
    """Such a client, that ends at its change after so many."""


def filled(zarr_format: Any = 3, kind: type[Bucket] = Bucket) -> Bucket:
    bucket = kind()
    root = tessarr.create_group(bucket.connect("maker"), zarr_format=zarr_format)
    for name in ("a", "g/b"):
        root.create_array(name, data=np.array(VALUES, "i4"), chunks=(2,), fill_value=0, attributes={"x": 1})
    return bucket


def root_of(bucket: Bucket) -> Any:
    return tessarr.open_group(bucket.connect("next"), mode="r+")


def create(root: Any, *, overwrite: bool = False, chunk: int = 2) -> None:
    root.create_array("a", shape=(8,), chunks=(chunk,), dtype="i4", fill_value=0, overwrite=overwrite)


def delete_array(root: Any) -> None:
    del root["a"]


def delete_group(root: Any) -> None:
    del root["g"]


def replace_array(root: Any) -> None:
    create(root, overwrite=True)


def replace_by_another(root: Any) -> None:
    """Replace the array by one that a follower can tell from it."""
    create(root, overwrite=True, chunk=4)


REMOVALS = [delete_array, delete_group, replace_array]


def stopped(change: Callable[[Any], object], zarr_format: Any = 3, client: type[Stopped] = Stopped) -> list[Bucket]:
    """Buckets in which a change ended before each of its requests."""
    found = []
    for requests in range(100):
        bucket = filled(zarr_format)
        store = client(bucket, requests)
        try:
            change(tessarr.open_group(store, mode="r+"))
        except StoreError:
            found.append(bucket)
            clock.CLOCK.ended.clear()  # as for any other process
        else:
            return found
    raise AssertionError("it does not end")


@pytest.mark.parametrize("client", [Stopped, StoppedUnconditional])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("change", REMOVALS)
def test_a_removal_that_is_stopped_leaves_no_array_without_its_chunks(
    change: Any, zarr_format: Any, client: type[Stopped]
) -> None:
    buckets = stopped(change, zarr_format, client)
    assert len(buckets) > 5
    for bucket in buckets:
        for path in ("a", "g/b"):
            try:
                found = tessarr.open_array(bucket.connect("reader"), path=path, mode="r")[...].tolist()
            except NodeNotFoundError:
                continue
            assert found == VALUES or (change is replace_array and found == [0] * 8)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("change", REMOVALS)
def test_a_removal_that_was_stopped_is_gone_on_with(
    change: Any, zarr_format: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = stopped(change, zarr_format)
    monkeypatch.setattr(removals, "EXPIRE_S", 0)
    for bucket in buckets:
        try:
            change(root_of(bucket))
        except KeyError:  # all but consolidated metadata was done
            assert change is not replace_array
        assert not any(CLAIM in key or "staged" in key for key in bucket.values)
        expected = {"a": False, "g": True} if change is delete_array else {"a": True, "g": change is not delete_group}
        assert {name: name in root_of(bucket) for name in "ag"} == expected
        if change is delete_array:
            create(root_of(bucket))
            assert not root_of(bucket)["a"][...].any()


def test_a_group_that_is_replaced_is_there_all_the_time() -> None:
    def replace_root(root: Any) -> None:
        tessarr.create_group(root.store, overwrite=True, attributes={"new": True})

    buckets = stopped(replace_root)
    assert len(buckets) > 5
    members = [sorted(root_of(bucket)) for bucket in buckets]
    assert members[0] == ["a", "g"]
    assert members[-1] == []


def test_nothing_is_created_where_a_removal_was_stopped_but_to_replace_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claimed = [bucket for bucket in stopped(delete_array) if f"a/{CLAIM}" in bucket.values]
    bare = [bucket for bucket in claimed if "a/zarr.json" not in bucket.values]
    assert len(bare) > 3
    for bucket in bare:
        with pytest.raises(ContainsGroupError, match="another writer is creating or removing"):
            create(root_of(bucket))
        assert "a" not in root_of(bucket)
        with pytest.raises(ConflictError, match="another client is removing or replacing this node"):
            create(root_of(bucket), overwrite=True)
        with pytest.raises(KeyError):
            delete_array(root_of(bucket))
    monkeypatch.setattr(removals, "EXPIRE_S", 0)
    for bucket in bare:
        create(root_of(bucket), overwrite=True)
        assert not root_of(bucket)["a"][...].any()


@pytest.mark.parametrize("how", [repair, gc])
def test_what_a_removal_left_is_found_and_removed_when_it_is_old(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expire_s = settle.EXPIRE_S
    for bucket in stopped(delete_array):
        monkeypatch.setattr(removals, "EXPIRE_S", expire_s)
        before = dict(bucket.values)
        if f"a/{CLAIM}" not in before or "a/zarr.json" in before:
            continue
        store = bucket.connect("repairs")
        assert not [one for one in check(store).findings if one.rule == "REMOVAL-LEFT"]
        monkeypatch.setattr(removals, "EXPIRE_S", 0)
        assert [one.key for one in check(store).findings if one.rule == "REMOVAL-LEFT"] == [f"a/{CLAIM}"]
        if how is repair:
            assert repair(check(store), store, dry_run=False).ok
        else:
            gc(store, grace=timedelta(0), dry_run=False)
        assert not any(key.startswith("a/") for key in bucket.values)
        create(root_of(bucket))


class Interrupted(Client):
    """A client one of whose changes is interrupted, and none after it."""

    def __init__(self, bucket: Bucket, left: int, error: BaseException) -> None:
        super().__init__("interrupted", bucket)
        self.left, self.error = left, error

    def _point(self, kind: str, *keys: str) -> None:
        self.left -= kind == "change"
        if self.left < 0:
            self.left = 1_000_000
            raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoreError("no answer")])
def test_a_removal_that_ends_by_an_error_says_so_and_is_gone_on_with_at_once(error: BaseException) -> None:
    for requests in range(1, 5):  # from the claim on
        bucket = filled()
        with pytest.raises(type(error)):
            delete_array(tessarr.open_group(Interrupted(bucket, requests, error), mode="r+"))
        assert f"a/{CLAIM}" in bucket.values
        delete_array(root_of(bucket))
        assert not any(key.startswith("a/") for key in bucket.values)


def test_who_takes_over_a_removal_stops_the_one_that_seemed_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was stopped behind its first page of chunks; then another client replaced the array, and wrote to it."""
    monkeypatch.setattr(removals, "_PAGE", 2)
    bucket = filled()
    slow = bucket.connect("slow")
    delete_many = slow.delete_many

    def stop_after_chunks(keys: Any) -> None:
        delete_many(keys)
        if any("/c/" in key for key in keys):
            with monkeypatch.context() as patch:
                patch.setattr(removals, "EXPIRE_S", 0)
                root_of(bucket).create_array("a", data=np.array(VALUES, "i4"), chunks=(2,), overwrite=True)

    monkeypatch.setattr(slow, "delete_many", stop_after_chunks)
    with pytest.raises(ConflictError, match="another client has gone on with this removal"):
        delete_array(tessarr.open_group(slow, mode="r+"))
    assert root_of(bucket)["a"][...].tolist() == VALUES
    assert not any(CLAIM in key for key in bucket.values)


def replace_by_values(store: Any) -> None:
    """Replace the array by one with other values."""
    tessarr.open_group(store, mode="r+").create_array("a", data=np.array(NEW, "i4"), chunks=(2,), overwrite=True)


def replace_by_others(store: Any) -> None:
    """Replace the array by one with values that no other client writes."""
    tessarr.open_group(store, mode="r+").create_array("a", data=np.array(OTHERS, "i4"), chunks=(2,), overwrite=True)


def delete(store: Any) -> None:
    """Remove the array."""
    delete_array(tessarr.open_group(store, mode="r+"))


@pytest.mark.parametrize("other", [delete, replace_by_others])
def test_who_replaces_an_array_beside_another_removal_loses_no_chunk_of_the_new_one(other: Any) -> None:
    """Whose removal began first went on among the chunks of the new array."""
    told = set()
    with cases.simulating():
        for outcome in exhaustive([replace_by_values, other], filled, preemptions=1):
            errors = [type(one).__name__ for one in outcome.results if isinstance(one, Exception)]
            told.update(errors)
            assert {*errors} <= {"ConflictError", "KeyError", "NodeNotFoundError"}, errors
            root = root_of(outcome.bucket)
            if "a" in root:
                found = zip(root["a"][...].tolist(), NEW, OTHERS, VALUES, strict=True)  # of two that write both count
                assert all(value in of_clients for value, *of_clients in found), errors
            else:
                assert other is delete
    assert "ConflictError" in told


def plan_over(store: Any) -> None:
    """Replace the array by a plan."""
    root: Any = tessarr.open_group(store, mode="r+")
    tessarr.plan.rechunk(root["g/b"], store, path="a", chunks=(4,), overwrite=True).run()


@pytest.mark.parametrize("seed", range(12))
def test_of_two_plans_that_replace_one_array_one_has_all_values(seed: int) -> None:
    """One succeeded with fill values, or both failed and nothing was left: whose chunks come first, the other one removed."""
    with cases.simulating():
        outcome = run(Seeded(seed), [plan_over, plan_over], bucket=filled())
    errors = [one for one in outcome.results if isinstance(one, Exception)]
    assert len(errors) < 2
    assert {type(one) for one in errors} <= {ConflictError}, errors
    assert root_of(outcome.bucket)["a"][...].tolist() == VALUES


class Hasty(Client):
    """A client at whose first attempt to create the document there is one of a client that has not looked for the claim yet."""

    hurries = True

    def _land(self, key: str, value: bytes, if_match: Any) -> None:
        if key == "a/zarr.json" and if_match is None and self.hurries:
            self.hurries = False
            raise ConflictError("another writer was faster", store=self.url, key=key)
        super()._land(key, value, if_match)


def convert_over(store: Any) -> None:
    """Replace the array by a conversion of another one."""
    convert(tessarr.open_group(store, mode="r+")["g/b"], store, path="a", zarr_format="keep", overwrite=True)


@pytest.mark.parametrize("change", [plan_over, convert_over, replace_by_values])
def test_who_replaces_a_node_waits_for_a_client_that_takes_its_document_back(change: Any) -> None:
    """Both failed, and nothing was left."""
    bucket = filled()
    client = Hasty("hasty", bucket)
    change(client)
    assert not client.hurries
    assert root_of(bucket)["a"][...].tolist() == (NEW if change is replace_by_values else VALUES)


def test_consolidated_metadata_follow_the_last_change_where_versions_are_hashes_of_values() -> None:
    """The entries before and after were equal, so that the one who wrote last had read a document that was gone by then."""

    def consolidated() -> Bucket:
        bucket = filled(2)
        tessarr.consolidate_metadata(bucket.connect("maker"))
        return bucket

    with cases.simulating():
        for outcome in exhaustive([convert_over, delete], consolidated, preemptions=1):
            assert all(one is None or isinstance(one, TessarrError | KeyError) for one in outcome.results), (
                outcome.results
            )
            root = root_of(outcome.bucket)
            stored = tessarr.open_group(outcome.bucket.connect("next"), mode="r", use_consolidated=False)
            assert sorted(root) == sorted(stored), outcome.results


def copy(store: Any) -> list[int]:
    """Copy the array, and return the values of the copy."""
    root: Any = tessarr.open_group(store, mode="r+")
    tessarr.copy(root["a"], root, "z")
    found: list[int] = root["z"][...].tolist()
    return found


def carry_out(store: Any) -> list[int]:
    """Rechunk the array by a plan, and return the values of the result."""
    root: Any = tessarr.open_group(store, mode="r+")
    tessarr.plan.rechunk(root["a"], store, path="z", chunks=(4,)).run()
    found: list[int] = root["z"][...].tolist()
    return found


def follow(store: Any) -> list[int]:
    """Follow the array to its end."""
    rows = tessarr.open_array(store, path="a", mode="r").follow(timeout=0, max_rows=4)
    return [int(value) for _, block in rows for value in block]


@pytest.mark.parametrize("kind", [Bucket, OfMapping])
@pytest.mark.parametrize("reader", [copy, carry_out, follow])
@pytest.mark.parametrize("change", [delete_array, replace_by_another])
def test_who_reads_an_array_while_it_is_removed_takes_no_missing_chunk_for_fill_value(
    reader: Any, change: Any, kind: type[Bucket]
) -> None:
    """Chunks were removed before the document: a copy of the half of an array succeeded."""
    told = set()
    with cases.simulating():
        for outcome in exhaustive(
            [reader, lambda store: change(tessarr.open_group(store, mode="r+"))],
            lambda: filled(kind=kind),
            preemptions=1,
        ):
            result = outcome.results[0]
            if isinstance(result, Exception):
                assert isinstance(result, ConflictError | NodeNotFoundError | KeyError), result
                told.add("an error")
            else:
                assert result == VALUES or (change is replace_by_another and not any(result)), result
                told.add("values")
    assert told == {"an error", "values"}
