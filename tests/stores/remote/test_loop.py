"""Synchronous calls of stores that are written as coroutines."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import obstore.store
import pytest

import tessarr
from tessarr.storage import ObjectStore
from tessarr.stores.remote import loop
from tessarr.stores.remote.limiter import ConcurrencyLimiter
from tessarr.stores.remote.loop import run
from tessarr.stores.remote.retry import Fault
from tessarr.types import ByteRange
from tests.native.far import FarStore
from tests.waiting import until

T = TypeVar("T")


def test_a_synchronous_call_works_where_an_event_loop_is_running() -> None:
    store = FarStore()

    async def main() -> bytes:
        store.set("a", b"1")  # as a cell of a notebook does
        return bytes(store.get("a") or b"")

    assert asyncio.run(main()) == b"1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_leaves_the_loops_of_its_parent_alone() -> None:
    store = FarStore()
    store.set("a", b"1")
    began, forked, found = threading.Event(), threading.Event(), []

    def work() -> None:
        store.get("a")  # the loop of this thread
        began.set()
        forked.wait(60)
        found.append(bytes(store.get("a") or b""))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert began.wait(60)
    child = os.fork()
    if child == 0:
        warnings.simplefilter("ignore")
        gc.collect()  # of what the parent had
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    forked.set()
    thread.join(60)
    assert found == [b"1"]
    assert store.get("a") == b"1"


_ENDS_DURING_A_CALLBACK = """
import _thread, asyncio, atexit, os, threading
import tessarr.stores.remote.loop
exiting, entered = threading.Event(), threading.Event()
atexit.register(exiting.set)  # runs before what was registered earlier
class Loop(asyncio.SelectorEventLoop):
    def _write_to_self(self):
        entered.set()
        exiting.wait(60)
        for _ in range(1000):
            os.sched_yield()
        os.write(1, b"returned")
loop = Loop()
_thread.start_new_thread(lambda: loop.call_soon_threadsafe(int), ())  # `threading` does not know it, as a client's thread
assert entered.wait(60)
"""


def test_the_interpreter_ends_after_the_callbacks_of_clients() -> None:
    # A thread of Rust that Python unwinds at its end aborts the process: status -6 after all work was done.
    done = subprocess.run([sys.executable, "-c", _ENDS_DURING_A_CALLBACK], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "returned", "")


def in_fresh_thread(call: Callable[[], T]) -> T:
    """The result of `call` in a thread that has no event loop yet."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(call).result(60)


def test_a_synchronous_call_for_one_value_makes_no_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore(obstore.store.MemoryStore())
    made: list[asyncio.AbstractEventLoop] = []
    new_event_loop = asyncio.new_event_loop

    def counted() -> asyncio.AbstractEventLoop:
        made.append(new_event_loop())
        return made[-1]

    monkeypatch.setattr(asyncio, "new_event_loop", counted)

    def use() -> list[object]:
        version = store.set("a", b"0123456789")
        found: list[object] = [bytes(store.get("a") or b""), bytes(store.get("a", ByteRange(-2)) or b"")]
        found += [
            store.exists("a"),
            store.exists("b"),
            store.getsize("a"),
            store.version("a") == version,
            store.get("b"),
        ]
        store.update("a", lambda old: bytes(old or b"") + b"!")
        found.append([bytes(part) for part in store.get_ranges("a", [ByteRange(0, 1), ByteRange(10)]) or ()])
        store.delete("a")
        return [*found, store.exists("a")]

    expected: list[object] = [b"0123456789", b"89", True, False, 10, True, None, [b"0", b"!"], False]
    assert in_fresh_thread(use) == expected
    assert len(made) == 1, "one for the two ranges, which are too different to be one request"
    made.clear()
    array = tessarr.create_array(store, shape=(8, 8), chunks=(4, 8), dtype="u1")
    array[...] = np.arange(64).reshape(8, 8)
    made.clear()
    assert in_fresh_thread(lambda: array[1, 2:4].tolist()) == [10, 11]
    assert not made
    assert in_fresh_thread(lambda: array[2:6, 0].tolist()) == [16, 24, 32, 40]
    assert not made, "two chunks are requested side by side, each by a thread"


def test_a_call_without_an_event_loop_is_repeated_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FarStore()
    store.set("a", b"1")
    pauses: list[float] = []
    faults = [Fault("retry", "busy", outcome="slow_down")]

    def before(*_: object) -> None:
        if faults:
            raise faults.pop()

    store.before = before
    monkeypatch.setattr(loop, "time", SimpleNamespace(sleep=pauses.append))
    assert bytes(store.get("a") or b"") == b"1"
    assert len(pauses) == 1
    assert [key for key, _ in store.requests] == ["a"]


def test_a_call_without_an_event_loop_waits_for_a_slot() -> None:
    store = FarStore()
    store.set("a", b"1")
    limiter = store._limiter = ConcurrencyLimiter(start=1, maximum=1)
    run(limiter.acquire())
    with ThreadPoolExecutor(1) as executor:
        found = executor.submit(store.get, "a")
        until(lambda: len(limiter._waiting) == 1, "the call waits for the slot")
        assert not found.done()
        limiter.release("ok")
        assert bytes(found.result(60) or b"") == b"1"
    assert limiter.statistics().in_flight == 0


def test_a_coroutine_that_needs_an_event_loop_is_refused_without_one() -> None:
    async def waits() -> None:
        await asyncio.get_running_loop().create_future()

    async def yields() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="no running event loop"):
        loop.run_blocking(waits())
    with pytest.raises(RuntimeError, match="waits for an event loop, and none is running"):
        loop.run_blocking(yields())


def test_an_interrupt_cancels_what_is_in_flight() -> None:
    cancelled: list[str] = []

    async def request() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("request")
            raise

    async def main() -> None:
        task = asyncio.create_task(request())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(interrupt)
        await task

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(main())
    assert cancelled == ["request"]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this platform cannot signal one of its threads")
def test_an_interrupt_ends_the_wait_for_a_client_that_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore(obstore.store.MemoryStore())
    store.set("a", b"1")
    asked, answer, interrupted, here = threading.Event(), threading.Event(), threading.Event(), threading.get_ident()

    class Client(obstore.store.MemoryStore):
        def get(self, *arguments: Any, **options: Any) -> Any:
            asked.set()
            answer.wait(60)
            return client.get(*arguments, **options)

    def send() -> None:
        asked.wait(60)
        while not interrupted.is_set():  # Python loses one that comes between its look for signals and the wait
            signal.pthread_kill(here, signal.SIGUSR1)
            interrupted.wait(1)

    def interrupt(*_: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    client = store._client
    monkeypatch.setattr(store, "_client", Client())
    before = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            store.get("a")
        assert not answer.is_set()
        assert store._limiter.statistics().in_flight == 0
    finally:
        answer.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    assert bytes(store.get("a") or b"") == b"1"


def test_coroutines_in_threads_give_what_an_event_loop_gives() -> None:
    store = ObjectStore(obstore.store.MemoryStore())
    for number in range(8):
        store.set(f"k{number}", bytes([number]) * (number + 1))
    keys = [f"k{number}" for number in range(12)]

    def calls() -> list[Any]:
        return [store.get_async(key, ByteRange(0, 3)) for key in keys]

    in_loop = run(loop.gather_or_cancel(calls()))
    assert list(map(bytes, filter(None, loop._gather_in_threads(calls())))) == list(map(bytes, filter(None, in_loop)))
    assert [answer is None for answer in loop._gather_in_threads(calls())] == [number >= 8 for number in range(12)]

    async def fails(number: int) -> int:
        await loop.sleep(0)
        if number % 2:
            raise LookupError(number)
        return number

    for gather in (lambda them: run(loop.gather_or_cancel(them)), loop._gather_in_threads):
        with pytest.raises(LookupError, match="1"):
            gather([fails(number) for number in range(4)])


def test_a_group_in_threads_gives_what_it_gives_in_a_loop() -> None:
    async def double(number: int) -> int:
        await loop.sleep(0)
        return 2 * number

    async def collect(count: int) -> dict[str, int]:
        group: loop.TaskGroup[str, int] = loop.TaskGroup()
        for number in range(count):
            group.start(f"k{number}", double(number))
        found: dict[str, int] = {}
        while group:
            found |= dict(await group.take())
        await group.cancel()
        return found

    expected = {f"k{number}": 2 * number for number in range(20)}
    assert loop.run_blocking(collect(20)) == run(collect(20)) == expected


def test_an_error_in_a_group_is_raised_and_the_rest_is_cancelled() -> None:
    started: list[int] = []

    async def call(number: int) -> int:
        started.append(number)
        if number == 0:
            raise LookupError(number)
        if loop.running_loop() is not None:
            await asyncio.sleep(60)
        return number

    async def collect() -> None:
        group: loop.TaskGroup[int, int] = loop.TaskGroup()
        try:
            for number in range(3 * loop.THREADS):
                group.start(number, call(number))
            while group:
                await group.take()
        finally:
            await group.cancel()

    with pytest.raises(LookupError, match="0"):
        loop.run_blocking(collect())
    with pytest.raises(LookupError, match="0"):
        run(collect())


def test_threads_are_reserved_for_as_many_requests_as_there_are_threads() -> None:
    assert [loop._reserve(loop.THREADS - 1), loop._reserve(1), loop._reserve(1)] == [True, True, False]
    loop._reserve(-loop.THREADS)
    assert [loop._reserve(loop.THREADS + 1), loop._reserve(loop.THREADS)] == [False, True]
    loop._reserve(-loop.THREADS)


_FIRST_REQUESTS = """
import sys
import obstore.store
client = obstore.store.MemoryStore()
import tessarr
from tessarr.storage import ObjectStore
store = ObjectStore(client)
store.set("zarr.json", DOCUMENT)
for number in range(3):
    store.set(f"c/{number}", bytes([number] * 4))
assert "asyncio" not in sys.modules
array = tessarr.open_array(store, mode="r")
assert array[...].tolist() == [0] * 4 + [1] * 4 + [2] * 4
"""


def test_the_first_requests_of_a_process_wait_for_no_import_of_asyncio() -> None:
    made: dict[str, bytes] = {}
    tessarr.create_array(made, shape=(12,), chunks=(4,), dtype="u1", compressors=None)
    code = _FIRST_REQUESTS.replace("DOCUMENT", repr(bytes(made["zarr.json"])))
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("ends_at", "imported"), [("a", ["a"]), ("b", ["a", "b"]), ("c", ["a", "b", "c"])])
def test_modules_are_imported_as_long_as_the_first_requests_wait(
    monkeypatch: pytest.MonkeyPatch, ends_at: str, imported: list[str]
) -> None:
    answered, found = threading.Event(), []

    def import_module(name: str) -> None:
        found.append(name)
        if name == ends_at:
            answered.set()
            for thread in threading.enumerate():
                if thread.name == "tessarr-first":
                    thread.join()

    async def request(number: int) -> int:
        answered.wait()
        return number

    monkeypatch.setattr(loop, "_NEEDED_NEXT", ("a", "b", "c"))
    monkeypatch.setattr(loop, "importlib", SimpleNamespace(import_module=import_module))
    assert loop._gather_in_threads([request(number) for number in range(3)]) == [0, 1, 2]
    assert found == imported


@pytest.mark.parametrize(("more", "sender"), [(0, "tessarr-first"), (1, "a loop")])
def test_many_first_requests_have_no_thread_each(monkeypatch: pytest.MonkeyPatch, more: int, sender: str) -> None:
    async def request() -> str:
        return threading.current_thread().name

    calls = [request() for _ in range(loop._MOST_IN_THREADS + more)]

    def in_loop(gathered: Any) -> list[str]:
        gathered.close()
        for call in calls:
            call.close()
        return ["a loop"] * len(calls)

    monkeypatch.setattr(loop, "run", in_loop)
    monkeypatch.setattr(loop, "running_loop", loop._running_loop)
    monkeypatch.setattr(loop, "_NEEDED_NEXT", ())
    monkeypatch.delitem(sys.modules, "asyncio")
    with pytest.raises(StopIteration) as ended:
        loop.gather_or_cancel(calls).send(None)
    assert ended.value.value == [sender] * len(calls)


def test_a_loop_is_found_once_asyncio_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "running_loop", loop._running_loop)
    monkeypatch.delitem(sys.modules, "asyncio")
    assert loop.running_loop() is None
    assert loop.running_loop is loop._running_loop
    monkeypatch.setitem(sys.modules, "asyncio", asyncio)

    async def here() -> bool:
        return loop.running_loop() is asyncio.get_running_loop()

    assert asyncio.run(here())
    assert loop.running_loop is asyncio._get_running_loop
