"""Row C1: changing 100 chunks of 3 arrays, by writes and in one transaction."""

from __future__ import annotations

from typing import Any

import numpy as np
from layouts import Layout
from peers.base import Peer
from rows_write import IN_MEMORY, folder_of, new_path, scratch_path
from task import Task, row

LAYOUT = Layout("transaction", (100, 64, 64), (1, 64, 64), "raw", dtype="float32")
NAMES = ("a", "b", "c")
HOW = ("writes", "transaction", "durable writes", "durable transaction")


@row("C1", "change 100 chunks of 3 arrays", [f"{how}, {where}" for where in ("disk", IN_MEMORY) for how in HOW])
def change_arrays(peer: Peer, variant: str) -> Task:
    """Replace all chunks of three arrays: one call per array, or one transaction (in Icechunk: a session and its commit)."""
    how, folder = variant.partition(", ")[0], folder_of(variant)
    durable, in_one = how.startswith("durable"), how.endswith("transaction")
    value = np.random.default_rng(1).random(LAYOUT.shape, dtype="float32")
    everything = (slice(None),) * value.ndim
    handles: list[Any] = []

    def before() -> None:
        path = new_path(peer, folder)
        if in_one:
            handles[:] = [peer.create_together(path, LAYOUT, NAMES, durable=durable)]
        else:
            handles[:] = [peer.create(f"{path}/{name}", LAYOUT, durable=durable) for name in NAMES]
            for array in handles:
                peer.write(array, everything, np.ones_like(value))

    def run() -> None:
        if in_one:
            peer.change_together(handles[0], NAMES, value)
        else:
            for array in handles:
                peer.write(array, everything, value)

    def check(_: object) -> None:
        read = (
            peer.read_together
            if in_one
            else lambda _, name: peer.read(peer.open(f"{scratch_path(peer)}/{name}"), everything)
        )
        for name in NAMES:
            assert np.array_equal(read(handles[0], name), value)

    return Task(run=run, check=check, before=before)
