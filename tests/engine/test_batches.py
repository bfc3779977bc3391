"""What is requested and stored at once is bounded by ``async.nbytes``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tessarr
from tessarr.engine.run import LITTLE_NBYTES
from tessarr.storage import MemoryStore

CHUNK = LITTLE_NBYTES // 2


class Counting(MemoryStore):
    """A store that counts what is requested at once."""

    most = 0

    def fetch(self, requests: Sequence[Any]) -> Any:
        self.most = max(self.most, len(requests))
        return super().fetch(requests)


def test_no_more_is_requested_at_once_than_the_setting_says() -> None:
    store = Counting()
    values = np.random.default_rng(1).integers(0, 255, 12 * CHUNK, "u1")
    tessarr.create_array(store, data=values, chunks=(CHUNK,))
    with tessarr.config.set({"engine": "reference"}):
        array = tessarr.open_array(store)
        for nbytes, most in ((3 * CHUNK, 3), (1, 1), (256 << 20, 12)):
            store.most = 0
            with tessarr.config.set({"async.nbytes": nbytes}):
                assert np.array_equal(array[...], values)
            assert store.most == most
