"""Which keys opening and creating request of a store that a user derived from zarr-python's base class."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import pytest

import tessarr
from tessarr.errors import NodeNotFoundError
from tessarr.facade.zarr3.abc.store import Store
from tessarr.facade.zarr3.buffer.cpu import Buffer
from tessarr.stores.memory.store import MemoryStore


class Recording(Store):
    """A store in memory that records the keys it is asked for, and refuses those that are not of Zarr v2 and v3."""

    supports_writes = supports_deletes = supports_listing = True
    supports_partial_writes = False

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__()
        self.values = values
        self.keys: list[str] = []

    def __eq__(self, other: object) -> bool:
        return self is other

    async def get(self, key: str, prototype: object = None, byte_range: object = None) -> Buffer | None:
        self.keys.append(key)
        if key.rpartition("/")[2] == "meta":
            raise ValueError(f"{key} is no key of Zarr")
        value = self.values.get(key)
        return None if value is None else Buffer.from_bytes(value)

    async def get_partial_values(self, prototype: object, key_ranges: object) -> list[object]:
        raise NotImplementedError

    async def exists(self, key: str) -> bool:
        return key in self.values

    async def set(self, key: str, value: Any) -> None:
        self.values[key] = value.to_bytes()

    async def delete(self, key: str) -> None:
        self.values.pop(key, None)

    async def list(self) -> AsyncIterator[str]:
        for key in [*self.values]:
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in [*self.values]:
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for key in {key.removeprefix(prefix).lstrip("/").partition("/")[0] for key in [*self.values]}:
            yield key


OPENINGS: list[tuple[str, Callable[[Any], object]]] = [
    ("open_array", lambda store: tessarr.open_array(store, mode="r")),
    ("open_group", lambda store: tessarr.open_group(store, mode="r")),
    ("open", lambda store: tessarr.open(store, mode="r")),
    ("below", lambda store: tessarr.open_group(store, path="b", mode="r")),
]


@pytest.mark.parametrize(("name", "opening"), OPENINGS, ids=[name for name, _ in OPENINGS])
def test_a_missing_node_is_looked_for_with_each_key_once(name: str, opening: Callable[[Any], object]) -> None:
    store = Recording({})
    with pytest.raises(NodeNotFoundError):
        opening(store)
    assert sorted({*store.keys}) == sorted(store.keys)
    documents = {key.rpartition("/")[2] for key in store.keys}
    assert (
        {"zarr.json", ".zarray", ".zgroup"} <= documents <= {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}
    )


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nodes_are_opened_and_those_of_the_other_kind_are_named(zarr_format: int) -> None:
    values: dict[str, Any] = {}
    tessarr.create_array(MemoryStore(values), shape=4, dtype="i4", zarr_format=zarr_format)
    store = Recording({key: bytes(value) for key, value in values.items()})
    assert tessarr.open_array(store, mode="r").shape == (4,)
    with pytest.raises(NodeNotFoundError, match=r"no group here.*got an array"):
        tessarr.open_group(store, mode="r")
    with pytest.raises(NodeNotFoundError, match=r"no array here.*got a group"):
        tessarr.open_array(Recording({".zgroup": b'{"zarr_format": 2}'}), mode="r")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_creating_asks_for_no_key_of_v1(zarr_format: Literal[2, 3]) -> None:
    store = Recording({})
    group = tessarr.create_group(store, zarr_format=zarr_format)
    group.create_array("a", shape=4, dtype="i4")
    tessarr.create_array(store, name="b/c", shape=4, dtype="i4", zarr_format=zarr_format)
    assert group.nmembers(max_depth=None) == 3
    assert not [key for key in store.keys if key.endswith("meta")]


@pytest.mark.filterwarnings("ignore:Zarr v1 is deprecated")
def test_stores_of_tessarr_hold_arrays_of_v1() -> None:
    store = MemoryStore()
    tessarr.create(4, store=store, dtype="i4", zarr_format=1)
    assert tessarr.open_array(store, mode="r").zarr_format == 1
