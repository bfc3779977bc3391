"""Synchronous calls of stores that are written as coroutines."""

from __future__ import annotations

import asyncio
import gc
import os
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
