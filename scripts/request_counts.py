"""Print the costs of arrays on object storage: requests, consecutive round trips, and bytes.

    python scripts/request_counts.py

An in-memory object store counts its requests and delays each response by 100 ms; a round trip is 100 ms of waiting.
Needs obstore (the extra ``cloud``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from obstore.store import MemoryStore

import tessarr
from tessarr.stores.remote.loop import sleep
from tessarr.stores.remote.obstore.store import ObjectStore
from tessarr.types import SelectionLike

LATENCY_S = 0.1
SIDE = 2048
_guard = threading.Lock()


class CountedStore(ObjectStore):
    """Count and delay every request."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.requests = 0
        self.nbytes = 0

    async def _send(self, key: str, operation: str, call: Callable[[], Any], **options: Any) -> Any:
        async def late() -> Any:
            await sleep(self.latency_s)
            with _guard:
                self.requests += 1  # a key that is missing costs a request, too
            answer = await call()
            with _guard:
                self.nbytes += memoryview(answer.body).nbytes if hasattr(answer, "body") else 0
            return answer

        return await super()._send(key, operation, late, **options)

    latency_s = 0.0


def cost(store: CountedStore, call: Callable[[], Any]) -> str:
    """Measure the requests, round trips and kilobytes read of one call."""
    store.requests = store.nbytes = 0
    CountedStore.latency_s = LATENCY_S
    began = time.perf_counter()
    call()
    elapsed = time.perf_counter() - began
    CountedStore.latency_s = 0.0
    # Threads that are slow to start make a round trip longer, not shorter.
    return f"{store.requests:>4} requests  {int(elapsed / LATENCY_S):>2} round trips  {store.nbytes / 1000:>8,.0f} kB"


def layouts() -> dict[str, dict[str, Any]]:
    """Return three divisions of an array of 2048 × 2048 16-bit numbers (8 MiB) into chunks and shards."""
    return {
        "chunks 64 x 64": {"chunks": (64, 64)},
        "chunks 512 x 512": {"chunks": (512, 512)},
        "shards 1024 x 1024, chunks 64 x 64": {"shards": (1024, 1024), "chunks": (64, 64)},
    }


def layouts_table() -> None:
    """Format the costs of the same reads and writes with each layout."""
    values = np.random.default_rng(1).integers(0, 1000, (SIDE, SIDE), "u2")
    reads: dict[str, SelectionLike] = {
        "everything": np.s_[...],
        "a tile of 100 x 100": np.s_[1100:1200, 1100:1200],
        "a row": np.s_[700],
        "a column": np.s_[:, 700],
    }
    for name, layout in layouts().items():
        print(f"\n{name}")
        store = CountedStore()
        made = tessarr.create_array(store, shape=values.shape, dtype="u2", compressors=None, **layout)
        print(f"  {'write everything':<26}{cost(store, partial(made.__setitem__, ..., values))}")
        for what, selection in reads.items():
            tessarr.clear_chunk_cache()
            array = tessarr.open_array(store, mode="r")
            print(f"  {'read ' + what:<26}{cost(store, partial(array.__getitem__, selection))}")
        print(f"  {'  … the column again':<26}{cost(store, partial(array.__getitem__, np.s_[:, 700]))}")
        print(f"  {'write a tile':<26}{cost(store, partial(made.__setitem__, np.s_[1100:1200, 1100:1200], 7))}")


def nodes_table() -> None:
    """Format the costs of opening, creating and changing nodes."""
    store = CountedStore()
    tessarr.create_array(store, name="warm/up", data=[1])[...]  # loads the modules
    store = CountedStore()
    print("\nnodes")
    steps: dict[str, Callable[[], Any]] = {
        "create group/a/x": lambda: tessarr.create_array(store, name="group/a/x", shape=(9,), chunks=(3,), dtype="u1"),
        "create group/a/y": lambda: tessarr.create_array(store, name="group/a/y", shape=(9,), chunks=(3,), dtype="u1"),
        "open an array": lambda: tessarr.open_array(store, path="group/a/x", mode="r"),
        "  … of format 3": lambda: tessarr.open_array(store, path="group/a/x", mode="r", zarr_format=3),
        "change attributes": lambda: tessarr.open_array(store, path="group/a/x", zarr_format=3).attrs.update(units="K"),
        "members of a group": lambda: [*tessarr.open_group(store, path="group/a", mode="r").members()],
    }
    for what, step in steps.items():
        print(f"  {what:<26}{cost(store, step)}")
    tessarr.consolidate_metadata(store, path="group")
    group = tessarr.open_group(store, path="group", mode="r")
    print(f"  {'  … consolidated':<26}{cost(store, lambda: [*group.members(None)])}")
    x, y = group.get_array("a/x"), group.get_array("a/y")
    x_y: list[tuple[tessarr.Array, Any]] = [(x, ...), (y, ...), (x, slice(2))]
    print(f"  {'read_many, 3 at once':<26}{cost(store, lambda: tessarr.read_many(x_y))}")


if __name__ == "__main__":
    nodes_table()
    layouts_table()
