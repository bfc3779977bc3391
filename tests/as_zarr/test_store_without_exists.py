"""A store of zarr-python's contract without `exists`, as VirtualiZarr's is: its groups are listed all the same."""

from __future__ import annotations

from typing import Any

import numpy as np

import tessarr
from tessarr.facade.zarr3.storage import MemoryStore, WrapperStore


class WithoutExists(WrapperStore[Any]):
    async def exists(self, key: str) -> bool:
        raise NotImplementedError


def test_the_members_of_a_group_are_listed() -> None:
    store = MemoryStore()
    array = tessarr.create_array(store, name="g/a", shape=3, dtype="i4")
    array[:] = [1, 2, 3]
    group = tessarr.open_group(WithoutExists(store), mode="r")
    assert sorted(group["g"].array_keys()) == ["a"]  # type: ignore[union-attr]
    assert sorted(group.group_keys()) == ["g"]
    np.testing.assert_array_equal(group["g/a"][:], [1, 2, 3])  # type: ignore[index]
