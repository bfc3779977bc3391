"""Synchronous calls of stores that are written as coroutines."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import warnings

import pytest

from tests.native.far import FarStore


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
