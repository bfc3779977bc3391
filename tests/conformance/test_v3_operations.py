"""Zarr v3: creating, finding and erasing nodes, and what remains when a write fails half-way."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.stored import metadata_io
from tessarr.errors import BoundsCheckError, NodeNotFoundError, StoreError
from tessarr.storage import CountingStore, ForwardingStore
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tests.conformance.documents import GROUP, array_document, store_of, stored_json
from tests.conformance.test_v3_stores import WholeStore
from tests.narrow import array_of, bytes_of, calls


@pytest.mark.spec("V3-OPS-01", "V3-GMETA-04")
def test_creating_groups_leaves_the_groups_above_alone() -> None:
    store = store_of({"": {**GROUP, "attributes": {"kept": 1}}, "a": {**GROUP, "attributes": {"too": 2}}})
    before = dict(store)
    tessarr.create_group(store, path="a/b/c", attributes={"new": 3})
    assert {key: store[key] for key in before} == before
    assert stored_json(store, "a/b") == {**GROUP, "attributes": {}}
    assert stored_json(store, "a/b/c")["attributes"] == {"new": 3}


@pytest.mark.spec("V3-OPS-01")
def test_a_group_that_another_writer_creates_meanwhile_keeps_its_attributes() -> None:
    values: dict[str, bytes] = {}

    class Raced(MemoryStore):
        def set_if_not_exists(self, key: str, value: Any) -> bool:
            if key == "a/zarr.json" and key not in values:
                values[key] = json.dumps({**GROUP, "attributes": {"theirs": 1}}).encode()
            return super().set_if_not_exists(key, value)

    tessarr.create_array(Raced(values), name="a/b", shape=2, dtype="i1")
    assert stored_json(values, "a")["attributes"] == {"theirs": 1}


@pytest.mark.spec("V3-OPS-02")
@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_creating_an_array_writes_no_chunk(shards: Any) -> None:
    store: dict[str, bytes] = {}
    tessarr.create_array(store, name="a/z", shape=(8, 8), chunks=(2, 2), shards=shards, dtype="i4", fill_value=5)
    assert sorted(store) == ["a/z/zarr.json", "a/zarr.json", "zarr.json"]


@pytest.mark.spec("V3-OPS-03")
def test_chunks_are_stored_and_retrieved_by_their_key() -> None:
    store: dict[str, bytes] = {}
    z = tessarr.create_array(
        store, name="foo/baz", shape=(4, 4), chunks=(2, 2), dtype="u1", compressors=None, fill_value=0
    )
    assert z.chunk_key((1, 0)) == "foo/baz/c/1/0"
    z.store.set(z.chunk_key((1, 0)), b"\1\2\3\4")
    assert z.blocks[1, 0].tolist() == [[1, 2], [3, 4]]
    z.blocks[0, 1] = 9
    assert bytes_of(z.store.get(z.chunk_key((0, 1)))) == b"\t\t\t\t"
    for wrong in ((2, 0), (-1, 0), (0,), (0, 0, 0)):
        with pytest.raises(BoundsCheckError):
            z.chunk_key(wrong)


EXAMPLE = store_of({"foo/bar": GROUP, "foo/baz/qux": array_document()})


@pytest.mark.spec("V3-OPS-04")
def test_the_example_of_listing_children() -> None:
    store = dict(EXAMPLE)
    assert MemoryStore(store).list_dir("foo/").prefixes == ["foo/bar/", "foo/baz/"]
    with pytest.raises(NodeNotFoundError):
        tessarr.open_group(store, path="foo", mode="r")
    store.update(store_of({"": GROUP, "foo": GROUP}, {"foo/__internal/zarr.json": json.dumps(GROUP).encode()}))
    with tessarr.config.set({"strict": True}):
        foo = tessarr.open_group(store, path="foo", mode="r")
        assert {name: type(node) for name, node in foo.members()} == {"bar": tessarr.Group}
        assert "baz" not in foo
        assert foo.non_members() == ("__internal", "baz")
    assert isinstance(foo["baz/qux"], tessarr.Array)


@pytest.mark.spec("V3-OPS-05", "V3-OPS-06")
def test_recursing_and_one_listing_give_the_same_nodes_and_leave_chunks_alone() -> None:
    values: dict[str, bytes] = {}
    root = tessarr.group(values)
    for path in ("a", "b/x", "b/d/e"):
        z = root.create_array(f"{path}/z", shape=(4, 4), chunks=(1, 1), dtype="i1")
        z[...] = 1
    listed = sorted(key.rpartition("/")[0] for key in values if key.rpartition("/")[2] == "zarr.json")
    assert sorted(["", *(path for path, _ in root.members(None))]) == listed
    store = MemoryStore(values)
    assert sorted(store.list_prefix("")) == sorted(values)
    assert all(not key.startswith("/") for key in store.list())
    asked: list[str] = []

    class Watched(CountingStore):
        def _around(self, method: str, place: str) -> AbstractContextManager[Any]:
            asked.append(place)
            return super()._around(method, place)

    tessarr.open_group(Watched(store), mode="r").members(None)
    assert not [place for place in asked if "/c/" in place or place.endswith(("z/", "/c"))]


@pytest.mark.spec("V3-OPS-07", "V3-STORE-12")
def test_erasing_a_node_erases_all_below_it_and_nothing_else() -> None:
    store: dict[str, bytes] = {}
    root = tessarr.group(store)
    for name in ("a", "ab", "a/b", "A", "a.b"):
        root.create_array(f"{name}/z", shape=4, chunks=2, dtype="i1")[...] = 1
    del root["a"]
    assert sorted({key.partition("/")[0] for key in store}) == ["A", "a.b", "ab", "zarr.json"]
    with pytest.raises(KeyError):
        del root["a"]
    store["stray/key"] = b"1"
    metadata_io.delete_node(root.store, "")
    assert store == {}


@pytest.mark.spec("V3-OPS-08")
def test_a_node_exists_where_its_document_is() -> None:
    store = store_of({"": GROUP, "g": GROUP, "g/z": array_document()}, {"bare/key": b"", "g/z/c/0": b""})
    root = tessarr.open_group(store, mode="r")
    for path in ("g", "g/z", "bare", "nothing", "g/z/c", "zarr.json"):
        parent, _, name = path.rpartition("/")
        document = f"{path}/zarr.json" in store
        assert (path in root) == document
        above = root[parent] if parent else root
        if isinstance(above, tessarr.Group):
            assert (name in list(above)) == document


# -- faults ------------------------------------------------------------------------------------------------------------


class Faulty(ForwardingStore):
    """Fails at write number `failing` (from 0) and at every later one, as a process that died would."""

    def __init__(self, store: Any, failing: int) -> None:
        super().__init__(store)
        self.failing = failing
        self.writes = 0

    def _around(self, method: str, place: str) -> AbstractContextManager[Any]:
        if method.startswith(("set", "update", "splice", "delete", "replace")):
            self.writes += 1
            if self.writes > self.failing:
                raise StoreError("injected", key=place)
        return nullcontext()


class FaultyPieces(WholeStore):
    """`Faulty` for a store without operations of its own on several keys: each value written or deleted may fail."""

    def __init__(self, values: dict[str, bytes], failing: int) -> None:
        super().__init__(values)
        self.failing = failing
        self.writes = 0

    def _count(self, key: str) -> None:
        self.writes += 1
        if self.writes > self.failing:
            raise StoreError("injected", key=key)

    def set(self, key: str, value: Any, **options: Any) -> Any:
        self._count(key)
        return super().set(key, value, **options)

    def delete(self, key: str) -> None:
        self._count(key)
        super().delete(key)


OLD = np.arange(1, 17, dtype="i4").reshape(4, 4)


def old_array(store: Any) -> None:
    tessarr.create_array(store, name="g/z", shape=(4, 4), chunks=(2, 2), dtype="i4", fill_value=-5)[...] = OLD


def replace(store: Any) -> None:
    """The overwrite that is interrupted: other shape, type, chunks and fill value."""
    tessarr.create_array(store, name="g/z", shape=(6,), chunks=(2,), dtype="f8", fill_value=0.5, overwrite=True)


def is_old(z: Any) -> bool:
    return z.shape == (4, 4) and bool((z[...] == OLD).all())


def is_new(z: Any) -> bool:
    return bool(z.shape == (6,) and z[...].tolist() == [0.5] * 6)


@pytest.mark.spec("V3-OPS-10")
@pytest.mark.parametrize("kind", ["memory", "directory"])
def test_an_overwrite_that_fails_leaves_the_old_array_or_the_new_one(kind: str, tmp_path: Path) -> None:
    outcomes = []
    for failing in range(20):
        store = MemoryStore() if kind == "memory" else LocalStore(tmp_path / str(failing))
        old_array(store)
        faulty = Faulty(store, failing)
        try:
            replace(faulty)
        except StoreError as error:
            assert "injected" in str(error)  # noqa: PT017 - later faults do not happen
            finished = False
        else:
            finished = True
        z = tessarr.open_group(store, mode="r")["g/z"]
        assert is_old(z) or is_new(z)
        outcomes.append(is_new(z))
        if finished:
            assert is_new(z)
            break
    assert outcomes[0] is False
    assert outcomes[-1] is True


@pytest.mark.spec("V3-OPS-10")
def test_without_a_swap_metadata_never_meets_the_chunks_of_another_array() -> None:
    seen = set()
    for failing in range(40):
        values: dict[str, bytes] = {}
        old_array(values)
        faulty = FaultyPieces(values, failing)
        try:
            replace(faulty)
        except StoreError:
            finished = False
        else:
            finished = True
        root = tessarr.open_group(values, mode="r")
        z = array_of(root["g/z"]) if "g/z" in root else None  # documents are removed first
        if z is None:
            seen.add("gone")
        elif z.shape == (4, 4):
            assert is_old(z)  # never without a part of its chunks
            seen.add("old")
        else:
            assert is_new(z)
            seen.add("new")
        replace(values)  # works again afterwards
        assert is_new(tessarr.open_group(values, mode="r")["g/z"])
        assert sorted(values) == ["g/z/zarr.json", "g/zarr.json", "zarr.json"]
        if finished:
            break
    assert finished
    assert seen == {"old", "gone", "new"}


@pytest.mark.spec("V3-OPS-10")
def test_a_creation_that_fails_leaves_no_half_an_array() -> None:
    for zarr_format in (2, 3):
        for failing in range(8):
            values: dict[str, bytes] = {}
            with suppress(StoreError):
                tessarr.create_array(
                    FaultyPieces(values, failing), name="a/b/z", shape=4, dtype="i4", fill_value=7,
                    attributes={"a": 1}, zarr_format=zarr_format,
                )  # fmt: skip
            try:
                z = array_of(tessarr.open(values, path="a/b/z", mode="r"))
            except NodeNotFoundError:
                continue
            assert z[...].tolist() == [7] * 4
            assert z.attrs.asdict() == {"a": 1}
            assert "z" in tessarr.open_group(values, path="a/b", mode="r")


@pytest.mark.spec("V3-OPS-10")
@pytest.mark.parametrize(
    "wrong",
    [
        {"dtype": "no such type"}, {"chunks": (0,)}, {"fill_value": "x"}, {"compressors": ["unknown"]},
        {"dimension_names": ["x", "y"]}, {"attributes": {"a": float("nan")}}, {"shards": (3,), "chunks": (2,)},
        {"shape": (-1,)}, {"filters": ["gzip"]}, {"chunk_key_encoding": "unknown"},
    ],
    ids=repr,
)  # fmt: skip
def test_nothing_is_touched_when_the_replacement_is_not_valid(wrong: dict[str, Any]) -> None:
    values: dict[str, bytes] = {}
    old_array(values)
    before = dict(values)
    arguments = {"shape": (6,), "chunks": (2,), "dtype": "f8", **wrong}
    for create in calls(
        lambda: tessarr.create_array(values, name="g/z", overwrite=True, **arguments),
        lambda: tessarr.open_group(values, mode="r+").create_array("g/z", overwrite=True, **arguments),
        lambda: tessarr.open_group(values, mode="r+").create_array("new/er", **arguments),
    ):
        with pytest.raises((ValueError, TypeError)):
            create()
        assert values == before


@pytest.mark.spec("V3-OPS-10")
def test_an_array_cannot_be_replaced_by_what_it_is_read_from() -> None:
    values: dict[str, bytes] = {}
    old_array(values)
    z = tessarr.open(values, path="g/z", mode="r+")
    with pytest.raises(ValueError, match="overwrite"):
        tessarr.create_array(values, name="g/z", data=z, overwrite=True)
    assert is_old(z)
