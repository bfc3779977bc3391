"""The requests of a read are sent in batches of bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import tessarr
from tessarr.storage import MemoryStore
from tessarr.stores.fetch import Fetch
from tessarr.types import Buffer


class Batches(MemoryStore):
    """Remember how many values each call of `fetch` requests."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def fetch(self, requests: Sequence[Fetch]) -> list[list[Buffer] | None]:
        self.sizes.append(len(requests))
        return super().fetch(requests)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_many_small_chunks_are_requested_some_thousand_at_a_time(engine: str) -> None:
    store = Batches()
    values = np.arange(10_000, dtype="u2")
    with tessarr.config.set({"engine": engine}):
        array = tessarr.create_array(store, shape=values.shape, chunks=(1,), dtype="u2", compressors=None)
        array[::3] = values[::3]
        store.sizes.clear()
        assert np.array_equal(array[:], np.where(values % 3 == 0, values, 0))
    assert len(store.sizes) == 3
    assert sum(store.sizes) == len(values)
    assert max(store.sizes) <= 4096


def test_large_chunks_are_requested_together() -> None:
    store = Batches()
    array = tessarr.create_array(store, shape=(64, 64 << 10), chunks=(1, 64 << 10), dtype="u1", compressors=None)
    array[:] = 1
    store.sizes.clear()
    assert (array[:] == 1).all()
    assert store.sizes == [64]
