"""Object storage of which one request fails, or each one from some moment on, before or after it was carried out.

What replaces, moves or copies nodes leaves the old node, or the new one, or says in its error where the new one is; a node that
is there has all its values.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Literal

import obstore.store
import pytest

import tessarr
from tessarr.core.claims import removals
from tessarr.errors import (
    MetadataValidationError,
    NodeNotFoundError,
    PendingCommitError,
    StaleConsolidatedError,
    StoreError,
)
from tessarr.storage import MemoryStore, ObjectStore
from tessarr.stores.base import Store
from tessarr.stores.wrappers.base import ForwardingStore
from tessarr.tools.check import check
from tessarr.tools.convert import convert
from tessarr.tools.migrate import migrate
from tessarr.tools.repair import repair
from tests.narrow import array_of

REQUESTS = (
    *("get", "fetch", "list_prefix", "list_dir", "list", "exists", "version"),
    *("set", "set_if", "set_if_not_exists", "update", "splice", "delete", "delete_many", "delete_prefix"),
)
REQUESTS_OF_CHUNKS = ("fetch_async", "set_async", "set_if_not_exists_async", "splice_async", "delete_async")
OLD, NEW = [*range(1, 11)], [*range(101, 113)]
HOW = ["before", "after", "lasting before", "lasting after"]
INTERRUPTED = ["interrupted before", "interrupted after"]
"""By `KeyboardInterrupt`, after which the process goes on, as a notebook does."""
Format = Literal[2, 3]


class Plan:
    """Which request fails, and how."""

    def __init__(self, number: int, how: str) -> None:
        self.number, self.how, self.count = number, how, 0

    def call(self, request: Callable[[], Any]) -> Any:
        """Make a request, or let it fail."""
        fails = self._fails()
        if fails and self.how.endswith("after"):
            request()
        if fails:
            raise self._error()
        return request()

    async def call_async(self, request: Callable[[], Awaitable[Any]]) -> Any:
        """Do what `call` does."""
        fails = self._fails()
        if fails and self.how.endswith("after"):
            await request()
        if fails:
            raise self._error()
        return await request()

    def _error(self) -> BaseException:
        return KeyboardInterrupt() if self.how in INTERRUPTED else StoreError("the request failed")

    def _fails(self) -> bool:
        self.count += 1
        return self.count == self.number or (self.how.startswith("lasting") and self.count > self.number > 0)


class Failing(ForwardingStore):
    """Requests to the wrapped store, of which some fail."""

    def __init__(self, store: Store, plan: Plan) -> None:
        super().__init__(store)
        self.plan = plan


def _failing(name: str) -> Callable[..., Any]:
    def call(self: Failing, *args: Any, **options: Any) -> Any:
        return self.plan.call(lambda: getattr(ForwardingStore, name)(self, *args, **options))

    return call


def _failing_async(name: str) -> Callable[..., Any]:
    async def call(self: Failing, *args: Any, **options: Any) -> Any:
        return await self.plan.call_async(lambda: getattr(ForwardingStore, name)(self, *args, **options))

    return call


for _name in REQUESTS:
    setattr(Failing, _name, _failing(_name))
for _name in REQUESTS_OF_CHUNKS:
    setattr(Failing, _name, _failing_async(_name))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removals, "_PAUSES_S", (0.0, 0.0))


def _source(zarr_format: Format) -> MemoryStore:
    store = MemoryStore()
    group = tessarr.create_group(store, zarr_format=zarr_format)
    for name in ("b", "c"):
        group.create_array(name, data=NEW, chunks=(4,))
    return store


def _filled(zarr_format: Format) -> Store:
    store = ObjectStore(obstore.store.MemoryStore())
    group = tessarr.create_group(store, zarr_format=zarr_format)
    group.create_array("g/b", data=OLD, chunks=(3,))
    return store


def _values(store: Store, path: str) -> list[int] | None:
    """The values of the array at a path; ``None``: there is none."""
    try:
        found: list[int] = tessarr.open_array(store, path=path, mode="r")[...].tolist()
    except NodeNotFoundError:
        return None
    return found


def _runs(
    zarr_format: Format, how: str, do: Callable[[Store], object], prepare: Callable[[Store], object] = lambda _: None
) -> Iterator[tuple[Store, BaseException]]:
    """Run `do` once for each of its requests, which fails, and give what is left, and the error."""
    number = 1
    while True:
        store, plan = _filled(zarr_format), Plan(number, how)
        prepare(store)
        try:
            do(Failing(store, plan))
        except (StoreError, KeyboardInterrupt) as error:
            for thread in threading.enumerate():
                if thread.name == "tessarr-detached":
                    thread.join()
            yield store, error
        if plan.count < number:
            assert number > 5
            return
        number += 1


@pytest.mark.parametrize("how", HOW + INTERRUPTED)
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_group_that_is_moved_is_whole_wherever_it_is_found(zarr_format: Format, how: str) -> None:
    for store, _ in _runs(zarr_format, how, lambda failing: tessarr.open_group(failing).move("g", "m")):
        found = {path: _values(store, path) for path in ("g/b", "m/b")}
        assert OLD in found.values(), found
        assert {*map(str, found.values())} <= {str(OLD), "None"}


@pytest.mark.parametrize("how", HOW + INTERRUPTED)
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_group_that_is_replaced_is_the_old_one_or_the_new_one_or_the_error_says_where_it_is(
    zarr_format: Format, how: str
) -> None:
    source = _source(zarr_format)

    def replace(failing: Store) -> None:
        convert(source, failing, path="g", overwrite=True, zarr_format=zarr_format)

    seen = set()
    for store, error in _runs(zarr_format, how, replace):
        found = _values(store, "g/b")
        seen.add(str(found))
        if found is None:
            (note,) = error.__notes__
            place = note.partition("the new one is at /")[2].partition(":")[0]
            assert [_values(store, f"{place}/{name}") for name in ("b", "c")] == [NEW, NEW]
        else:
            assert found in (OLD, NEW)
    assert seen == {str(OLD), str(NEW), "None"}


@pytest.mark.parametrize("how", HOW + INTERRUPTED)
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_keys_that_are_copied_make_no_array_without_its_chunks(zarr_format: Format, how: str) -> None:
    source = _source(zarr_format)
    for store, _ in _runs(zarr_format, how, lambda failing: tessarr.copy_store(source, failing, dest_path="s")):
        assert _values(store, "s/b") in (NEW, None)


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_conversion_to_a_new_path_that_fails_leaves_nothing(zarr_format: Format, how: str) -> None:
    source = _source(zarr_format)

    def make(failing: Store) -> None:
        convert(source, failing, path="n", zarr_format=zarr_format)

    for store, _ in _runs(zarr_format, how, make):
        assert _values(store, "n/b") in (NEW, None)


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_an_array_gets_its_values_where_consolidated_metadata_cannot_be_updated(zarr_format: Format) -> None:
    def create(failing: Store) -> None:
        tessarr.open_group(failing).create_array("n", data=NEW, chunks=(4,))

    def copy(failing: Store) -> None:
        tessarr.copy(tessarr.open_group(source)["b"], tessarr.open_group(failing), name="n")

    source = _source(zarr_format)
    for do in (create, copy):
        late = [store for store, error in _runs(zarr_format, "before", do) if isinstance(error, StaleConsolidatedError)]
        assert late
        assert [_values(store, "n") for store in late] == [NEW] * len(late)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_an_array_that_lacks_values_after_its_creation_is_named_in_the_error(zarr_format: Format, how: str) -> None:
    def create(failing: Store) -> None:
        tessarr.create_array(failing, name="n", data=NEW, chunks=(4,), zarr_format=zarr_format)

    lacking = 0
    for store, error in _runs(zarr_format, how, create):
        if _values(store, "n") not in (NEW, None):
            lacking += 1
            assert "an array may be at /n that lacks values" in error.__notes__[-1]
            tessarr.create_array(store, name="n", data=NEW, chunks=(4,), zarr_format=zarr_format, overwrite=True)
            assert _values(store, "n") == NEW
    assert lacking


@pytest.mark.parametrize("how", HOW + INTERRUPTED)
def test_a_transaction_is_whole_or_left_out_and_its_error_says_which(how: str) -> None:
    def change(failing: Store) -> None:
        with tessarr.transaction(failing) as tx:
            array_of(tx.group["g/b"]).append([11])
            tx.group.create_array("n", data=NEW)

    seen = set()
    for store, error in _runs(3, how, change):
        tessarr.open_group(store, mode="r+")  # completes what was committed
        found = _values(store, "g/b"), _values(store, "n")
        seen.add(str(found))
        if found == ([*OLD, 11], NEW):
            told = "is unknown", "is committed"
            assert isinstance(error, PendingCommitError) or any(words in error.__notes__[0] for words in told)
        else:
            assert found == (OLD, None)
            assert not isinstance(error, PendingCommitError)
    assert len(seen) == 2


@pytest.mark.filterwarnings("ignore:Both zarr.json")
@pytest.mark.parametrize("how", HOW + INTERRUPTED)
def test_a_migration_that_fails_leaves_a_hierarchy_with_its_members(how: str) -> None:
    def change(failing: Store) -> None:
        try:
            migrate(failing)
        except MetadataValidationError as error:  # it lists what cannot be read
            raise StoreError("a request failed") from error

    for store, _ in _runs(2, how, change):
        assert _values(store, "g/b") == OLD
        assert [path for path, _ in tessarr.open_group(store).members(max_depth=None)] == ["g", "g/b"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_creation_that_is_repeated_is_in_consolidated_metadata_with_the_groups_above(
    zarr_format: Format, how: str
) -> None:
    def create(store: Store) -> None:
        tessarr.open_group(store).create_array("n/m", data=NEW, chunks=(4,), overwrite=True)

    for store, _ in _runs(zarr_format, how, create, lambda store: tessarr.consolidate_metadata(store)):
        create(store)
        assert _values(store, "n/m") == NEW
        found = tessarr.open_consolidated(store)
        assert sorted(path for path, _ in found.members(max_depth=None)) == ["g", "g/b", "n", "n/m"]


def _overwrite(store: Store) -> None:
    tessarr.open_group(store).create_array("g/b", data=NEW, chunks=(4,), overwrite=True)


def _delete(store: Store) -> None:
    group = tessarr.open_group(store)
    if "g/b" in group:
        del group["g/b"]


def _shrink(store: Store) -> None:
    tessarr.open_array(store, path="g/b").resize((4,))


def _copy(store: Store) -> None:
    group = tessarr.open_group(store)
    tessarr.copy(group["g"], group, "k", if_exists="replace")


def _replace_all(store: Store) -> None:
    group = tessarr.open_group(store)
    tessarr.copy_all(
        tessarr.open_group(_source(3 if group.zarr_format == 3 else 2)), group.get_group("g"), if_exists="replace"
    )


@pytest.mark.parametrize(
    ("zarr_format", "how"), [*((3, how) for how in HOW + INTERRUPTED), (2, "after"), (2, "lasting before")]
)
@pytest.mark.parametrize("do", [_overwrite, _delete, _shrink, _copy, _replace_all])
def test_what_failed_is_completed_by_the_same_call(do: Callable[[Store], None], zarr_format: Format, how: str) -> None:
    """In the same process at once, whatever its first call could not say in the store."""
    expected = _filled(zarr_format)
    tessarr.consolidate_metadata(expected)
    do(expected)
    for store, error in _runs(zarr_format, how, do, tessarr.consolidate_metadata):
        strays = {*store.list_prefix("g/b/")} - {*expected.list_prefix("g/b/")}
        if do is _shrink and tessarr.open_array(store, path="g/b").shape == (4,) and strays:
            assert "tessarr repair" in "".join(error.__notes__)
            repair(check(store, data="stat"), store, dry_run=False)
            store.delete_prefix("__tessarr_repair/")
        do(store)
        assert {*store.list()} == {*expected.list()}
        for path in ("g/b", "k/b", "g/c"):
            assert _values(store, path) == _values(expected, path)
        members = [
            [path for path, _ in tessarr.open_consolidated(one).members(max_depth=None)] for one in (store, expected)
        ]
        assert sorted(members[0]) == sorted(members[1])
