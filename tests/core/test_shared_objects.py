"""Threads that share one array or group object: each call sees one state of it, and no thread undoes what another did.

The interleavings are forced, so that these tests say the same with and without the interpreter's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.array_parts import state as array_state
from tessarr.core.stored import read_nodes
from tessarr.engine.bound import bind
from tessarr.storage import WrapperStore
from tessarr.stores.base import Store
from tessarr.stores.memory.store import MemoryStore
from tests.narrow import array_of
from tests.threads import together

PATIENCE_S = 60.0


class Pausing(WrapperStore):
    """Stops in one call of `method`: after it was done, until `release` is called."""

    def __init__(self, store: Store, method: str) -> None:
        super().__init__(store)
        self.method = method
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.armed = False

    def _pause(self, method: str) -> None:
        if self.armed and method == self.method:
            self.armed = False
            self.reached.set()
            assert self.go_on.wait(PATIENCE_S)

    def update(self, key: str, change: Callable[[Any], Any]) -> None:
        super().update(key, change)
        self._pause("update")

    def fetch(self, requests: Any) -> Any:
        found = super().fetch(requests)
        self._pause("fetch")
        return found


def while_paused(store: Pausing, slow: Callable[[], Any], quick: Callable[[], Any]) -> None:
    """`slow` up to where `store` stops it; then all of `quick`; then the rest of `slow`."""
    with ThreadPoolExecutor(1) as pool:
        store.armed = True
        running = pool.submit(slow)
        try:
            assert store.reached.wait(PATIENCE_S)
            quick()
        finally:
            store.go_on.set()
        running.result()


def make(method: str, **options: Any) -> tuple[Pausing, Any]:
    """A store that can pause, and an array of eight elements in it."""
    store = Pausing(MemoryStore(), method)
    z = tessarr.create_array(store, shape=(8,), chunks=(4,), dtype="i4", fill_value=0, **options)
    z[...] = np.arange(8)
    return store, z


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_that_two_threads_set_are_both_there_whoever_returns_last(zarr_format: int) -> None:
    store, z = make("update", zarr_format=zarr_format)
    while_paused(store, lambda: z.attrs.update(a=1), lambda: z.attrs.update(b=2))
    assert z.attrs.asdict() == {"a": 1, "b": 2} == tessarr.open(store).attrs.asdict()


def test_attributes_of_a_group_that_two_threads_set_are_both_there_whoever_returns_last() -> None:
    store = Pausing(MemoryStore(), "update")
    group = tessarr.create_group(store)
    while_paused(store, lambda: group.attrs.update(a=1), lambda: group.attrs.update(b=2))
    assert group.attrs.asdict() == {"a": 1, "b": 2}


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_setting_an_attribute_does_not_bring_an_old_list_of_members_back() -> None:
    store = Pausing(MemoryStore(), "update")
    group = tessarr.create_group(store)
    tessarr.consolidate_metadata(store)
    group = tessarr.open_consolidated(store, mode="r+")
    while_paused(store, lambda: group.attrs.update(a=1), lambda: group.create_array("new", shape=(1,), dtype="i4"))
    assert list(group) == ["new"]
    assert group.attrs["a"] == 1


def test_an_array_is_not_made_smaller_again_by_a_thread_that_sets_an_attribute() -> None:
    store, z = make("update")
    while_paused(store, lambda: z.attrs.update(a=1), lambda: z.resize(12))
    assert z.shape == (12,)
    assert z[...].tolist() == [*range(8), 0, 0, 0, 0]
    assert z.attrs["a"] == 1


def test_of_two_resizes_one_waits_and_the_array_has_the_shape_that_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    store, z = make("update")
    other = threading.Thread(target=z.resize, args=(16,))

    def begin_the_other() -> None:
        asked, lock = threading.Event(), store.lock

        def asked_lock(key: str) -> Any:
            asked.set()
            return lock(key)

        monkeypatch.setattr(store, "lock", asked_lock)
        other.start()
        assert asked.wait(PATIENCE_S)
        assert other.is_alive()

    while_paused(store, lambda: z.resize(12), begin_the_other)
    other.join(PATIENCE_S)
    assert z.shape == tessarr.open(store).shape == z._bound.shape == (16,)


def test_a_refresh_that_read_the_document_before_a_resize_does_not_undo_it() -> None:
    store, z = make("fetch")
    while_paused(store, z.refresh, lambda: z.resize(12))
    assert z.shape == z._bound.shape == (12,)


def test_a_refresh_that_read_the_document_before_an_attribute_was_set_does_not_undo_it() -> None:
    store = Pausing(MemoryStore(), "fetch")
    group = tessarr.create_group(store)
    while_paused(store, group.refresh, lambda: group.attrs.update(a=1))
    assert group.attrs.asdict() == {"a": 1}


def test_a_fill_value_set_beside_a_resize_leaves_the_new_shape() -> None:
    store, z = make("update")

    def set_fill_value() -> None:
        z.fill_value = 7

    while_paused(store, set_fill_value, lambda: z.resize(12))
    assert (z.shape, z.fill_value) == ((12,), 7)
    assert z[8:].tolist() == [7] * 4


def test_what_was_bound_before_a_resize_is_not_used_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store, z = make("update")
    z = array_of(tessarr.open(store, mode="r+"))
    reached, go_on = threading.Event(), threading.Event()
    original = bind

    def slow(*args: Any, **kwargs: Any) -> Any:
        bound = original(*args, **kwargs)
        if not reached.is_set():
            reached.set()
            assert go_on.wait(PATIENCE_S)
        return bound

    monkeypatch.setattr(array_state, "bind", slow)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: z[...])
        assert reached.wait(PATIENCE_S)
        other = tessarr.open(store, mode="r+")
        other.resize(12)
        z.refresh()
        go_on.set()
        assert len(reading.result()) == 12
    assert z[...].shape == z.shape == (12,)


def test_threads_that_use_an_array_first_share_what_was_bound() -> None:
    _, made = make("update")
    for _ in range(20):
        z = array_of(tessarr.open(made.store, mode="r+"))
        seen = together(8, lambda _: (z._bound, z._engine))  # noqa: B023 - called at once
        assert len({id(bound) for bound, _ in seen}) == 1
        assert len({id(engine) for _, engine in seen}) == 1


@pytest.mark.parametrize("write", [
    lambda z, value: z.__setitem__(slice(None), value),
    lambda z, value: z.set_basic_selection(slice(0, 8), value),
    lambda z, value: z.set_coordinate_selection([0, 7], value[[0, 7]] if isinstance(value, np.ndarray) else value),
    lambda z, value: z.set_block_selection(slice(None), value),
])  # fmt: skip
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_write_that_began_before_the_array_shrank_ends_as_it_began(write: Any, engine: str) -> None:
    class Late:
        """A value that is only worked out when the selection is known; the array shrinks meanwhile."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            z.resize(4)
            return np.asarray(5, dtype)

    with tessarr.config.set({"engine": engine}):
        _, z = make("update")
        write(z, Late())
        assert z.shape == (4,)
        assert z[0] == 5


def test_reading_plans_and_reads_by_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    _, z = make("update")
    full = type(z)._full

    def shrink(self: Any, *args: Any) -> Any:
        if self.shape == (8,):
            self.resize(4)
        return full(self, *args)

    monkeypatch.setattr(type(z), "_full", shrink)
    assert z.get_basic_selection(slice(None)).tolist() == [0, 1, 2, 3, 0, 0, 0, 0]
    assert z.get_orthogonal_selection(slice(None)).tolist() == [0, 1, 2, 3]


def test_a_node_that_was_pickled_takes_later_changes() -> None:
    import pickle

    group = tessarr.create_group(MemoryStore())
    group.attrs["a"] = 1
    twin = pickle.loads(pickle.dumps(group))
    assert "_attributes_order" not in vars(twin)
    twin.attrs["b"] = 2
    assert twin.attrs.asdict() == {"a": 1, "b": 2}


def test_many_threads_set_attributes_of_one_object() -> None:
    for node in (make("none")[1], tessarr.create_group(MemoryStore())):

        def work(number: int, node: Any = node) -> None:
            for turn in range(5):
                node.attrs[f"k{number}"] = turn
                assert node.attrs[f"k{number}"] == turn

        together(8, work)
        assert node.attrs.asdict() == {f"k{number}": 4 for number in range(8)}


def test_reading_a_node_asks_for_documents_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    require_node_steps = read_nodes.require_node_steps
    _, z = make("update")

    def counted(*args: Any) -> Any:
        calls.append(1)
        return require_node_steps(*args)

    monkeypatch.setattr(read_nodes, "require_node_steps", counted)
    z.refresh()
    assert calls == [1]
