"""Many chunks of one read, and many readers of one process: they are in flight together, and share connections."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import obstore.store
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
from tessarr._native import clear_cache
from tessarr.storage import ObjectStore
from tessarr.stores.remote import loop
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS
from tests.waiting import until

READERS = 10
DATA = np.random.default_rng(3).integers(0, 60000, (64, 64)).astype("u2")


@contextmanager
def loops_made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The event loops that are made within the block."""
    made: list[object] = []
    new_event_loop = asyncio.new_event_loop

    def counted() -> asyncio.AbstractEventLoop:
        made.append(new_event_loop())
        return made[-1]  # type: ignore[return-value]

    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "new_event_loop", counted)
        yield made


def in_threads(calls: list[Callable[[], Any]]) -> list[Any]:
    """What the calls return, each made in a thread that is new, all at once."""
    start, found = threading.Barrier(len(calls)), [None] * len(calls)

    def work(number: int, call: Callable[[], Any]) -> None:
        start.wait()
        found[number] = call()

    threads = [threading.Thread(target=work, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.fixture(scope="module")
def places() -> dict[str, ObjectStore]:
    """Arrays of DATA, of 64 chunks: without and with shards, and of a part that was never written."""
    stores = {name: ObjectStore(obstore.store.MemoryStore()) for name in ("chunks", "shards", "missing")}
    for name, store in stores.items():
        shards = (32, 32) if name == "shards" else None
        array = tessarr.create_array(store, shape=DATA.shape, chunks=(8, 8), shards=shards, dtype="u2")
        array[slice(None) if name != "missing" else slice(0, 20)] = DATA[: 20 if name == "missing" else None]
    return stores


@pytest.mark.parametrize("engine", ["native", "reference"])
@given(data=st.data(), where=st.sampled_from(["chunks", "shards", "missing"]))
def test_a_read_by_threads_equals_one_in_an_event_loop(
    engine: Literal["native", "reference"], places: dict[str, ObjectStore], data: st.DataObject, where: str
) -> None:
    bounds = [sorted((data.draw(st.integers(0, 64)), data.draw(st.integers(0, 64)))) for _ in DATA.shape]
    box = tuple(slice(start, stop, data.draw(st.integers(1, 9))) for start, stop in bounds)
    with tessarr.config.set({"engine": engine}):
        array = tessarr.open_array(places[where], mode="r")
        by_threads = array[box]
        clear_cache()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "_reserved", loop.THREADS)  # no threads are left for requests
            in_loop = array[box]
    expected = DATA.copy()
    expected[20 if where == "missing" else 64 :] = 0
    np.testing.assert_array_equal(by_threads, expected[box])
    np.testing.assert_array_equal(in_loop, expected[box])


def test_chunks_are_requested_by_threads_unless_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore(obstore.store.MemoryStore())
    array = tessarr.create_array(store, shape=(loop.THREADS + 1,), chunks=(1,), dtype="u1")
    array[...] = np.arange(loop.THREADS + 1)
    with loops_made(monkeypatch) as made:
        assert in_threads([lambda: array[1:].tolist()]) == [[*range(1, loop.THREADS + 1)]]
        assert not made
        assert in_threads([lambda: array[...].tolist()]) == [[*range(loop.THREADS + 1)]]
        assert len(made) == 1


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this platform cannot signal one of its threads")
def test_an_interrupt_ends_the_wait_for_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore(obstore.store.MemoryStore())
    array = tessarr.create_array(store, shape=(8,), chunks=(1,), dtype="u1")
    array[...] = np.arange(8)
    answer, here, asked = threading.Event(), threading.get_ident(), []

    class Client(obstore.store.MemoryStore):
        def get(self, *arguments: Any, **options: Any) -> Any:
            asked.append(arguments)
            answer.wait(60)
            return client.get(*arguments, **options)

    def send() -> None:
        until(lambda: len(asked) == 8, "all chunks are requested")
        signal.pthread_kill(here, signal.SIGUSR1)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    client = store._client
    before = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=send)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(store, "_client", Client())
            sender.start()
            with pytest.raises(KeyboardInterrupt):
                array[...]
        assert not answer.is_set()
    finally:
        answer.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    until(lambda: store._limiter.statistics().in_flight == 0, "the requests have ended")
    assert loop._reserved == 0
    assert array[...].tolist() == [*range(8)]


def test_ten_readers_make_the_requests_and_round_trips_of_one_each_and_share_connections(s3_proxy: Proxy) -> None:
    url = f"s3+http://{s3_proxy.address}/bucket/readers"
    tessarr.create_array(url, shape=DATA.shape, chunks=(8, 8), dtype="u2", storage_options=S3_OPTIONS)[...] = DATA

    def read() -> Any:
        return tessarr.open_array(url, mode="r", storage_options=S3_OPTIONS)[:16, :16]

    def cost(readers: int) -> tuple[int, int, int]:
        """Requests, round trips and new connections."""
        s3_proxy.clear()
        s3_proxy.latency_s = 0.05
        try:
            found = in_threads([read] * readers)
        finally:
            s3_proxy.latency_s = 0
        assert all(np.array_equal(one, DATA[:16, :16]) for one in found)
        return len(s3_proxy.seen), s3_proxy.rounds(), s3_proxy.connections

    requests, rounds, _ = cost(1)
    assert rounds == 2
    all_requests, all_rounds, opened = cost(READERS)
    assert (all_requests, all_rounds) == (READERS * requests, rounds)
    one, other = (tessarr.open_array(url, storage_options=S3_OPTIONS).store for _ in range(2))
    assert isinstance(one, ObjectStore)
    assert isinstance(other, ObjectStore)
    assert one.store is other.store
    # A connection goes back to the pool a moment after its response was read, so that some requests miss it. Readers that did
    # not share a client would need as many as each has documents to request.
    assert opened < all_requests // 2
