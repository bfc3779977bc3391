"""What another client makes at the target of a plan, while the plan is carried out, is neither replaced nor mixed with it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.errors import BaseZarrError, ConflictError, ContainsGroupError
from tessarr.plan import Plan
from tessarr.storage import ANY, ConditionalStore, LocalStore, MemoryStore
from tessarr.stores.url import store_from

VALUES = np.arange(1, 41)


class Bucket(ConditionalStore):
    """A store that replaces one value conditionally, as object storage does."""

    url = "bucket://"

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def get(self, key: str, part: Any = None) -> bytes | None:
        value = self.held.get(key)
        return value if value is None or part is None else value[slice(*part.bounds(len(value)))]

    def version(self, key: str) -> str | None:
        value = self.held.get(key)
        return None if value is None else hashlib.sha256(value).hexdigest()

    def set(self, key: str, value: Any, *, if_match: Any = ANY) -> None:
        if if_match is not ANY and self.version(key) != if_match:
            raise ConflictError("changed", key=key)
        self.held[key] = bytes(value)

    def delete(self, key: str) -> None:
        self.held.pop(key, None)

    def list(self, prefix: str = "") -> Any:
        return iter([key for key in self.held if key.startswith(prefix)])


@pytest.fixture
def source(tmp_path: Path) -> tessarr.Array:
    return tessarr.create_array(tmp_path / "source", data=VALUES, chunks=(4,))


@pytest.mark.parametrize("path", ["", "q"])
@pytest.mark.parametrize("what", ["an array", "a text"])
def test_a_plan_replaces_nothing_that_appeared_meanwhile(
    source: tessarr.Array, path: str, what: str, tmp_path: Path
) -> None:
    place = tmp_path / "root" / "q"
    tessarr.create_group(tmp_path / "root")
    dest = tmp_path / "root" / ("" if path else "q")
    tessarr.plan.rechunk(source, dest, path=path, chunks=(5,)).save(tmp_path / "plan")
    tessarr.plan.load(tmp_path / "plan").run_part(1, 1)
    if what == "an array":
        tessarr.create_array(place, data=[7, 7, 7])
    else:
        place.mkdir()
        (place / "thesis.txt").write_text("x")
    before = {one: one.read_bytes() for one in place.rglob("*") if one.is_file()}
    for _ in range(2):
        with pytest.raises((BaseZarrError, ConflictError), match=r"at the (destination|target)"):
            tessarr.plan.load(tmp_path / "plan").finish()
        assert {one: one.read_bytes() for one in place.rglob("*") if one.is_file()} == before
    assert list(tessarr.open_group(tmp_path / "root", mode="r")) == ["q"] * (what == "an array")
    place.rename(tmp_path / "moved")
    assert tessarr.plan.load(tmp_path / "plan").finish().finished
    assert (tessarr.open_array(place, mode="r")[:] == VALUES).all()
    assert [one.name for one in tmp_path.rglob("*.partial")] == []


@pytest.mark.parametrize("store", [MemoryStore, Bucket])
def test_a_plan_looks_at_its_target_before_its_first_task(source: tessarr.Array, store: Any) -> None:
    where = store()
    plan = tessarr.plan.rechunk(source, where, path="z", chunks=(10,))
    theirs = tessarr.create_array(where, name="z", data=[7, 7, 7], chunks=(2,))
    with pytest.raises(ConflictError, match="another client has created a node at the target"):
        plan.run()
    assert theirs[:].tolist() == [7, 7, 7]


def test_a_plan_looks_at_a_directory_before_its_first_task(source: tessarr.Array, tmp_path: Path) -> None:
    for dest, path in ((tmp_path / "q", ""), (LocalStore(tmp_path / "root"), "q")):
        plan = tessarr.plan.rechunk(source, dest, path=path, chunks=(10,))
        tessarr.create_array(dest, name=path or None, data=[7, 7, 7])
        with pytest.raises((BaseZarrError, ConflictError)):
            plan.run()
        assert [one.name for one in tmp_path.rglob("*.partial")] == []


@pytest.mark.parametrize("store", [MemoryStore, Bucket])
def test_of_two_plans_with_one_new_target_the_second_writes_nothing(source: tessarr.Array, store: Any) -> None:
    where = store()
    one, other = (tessarr.plan.rechunk(source, where, path="z", chunks=(size,)) for size in (10, 7))
    one.run_part(1, 1)
    before = {key: bytes(where.get(key)) for key in where.list()}
    for _ in range(2):
        with pytest.raises(ConflictError, match="another client has claimed this place"):
            other.run()
    assert {key: bytes(where.get(key)) for key in where.list()} == before
    assert one.finish().finished
    made = tessarr.open_array(where, path="z", mode="r")
    assert (made.chunks, made[:].tolist()) == ((10,), VALUES.tolist())
    assert not [key for key in where.list() if "tessarr" in key]


def test_a_plan_with_overwrite_takes_a_claimed_place_over_once(source: tessarr.Array) -> None:
    where = MemoryStore()
    plans = [tessarr.plan.rechunk(source, where, path="z", chunks=(size,), overwrite=True) for size in (10, 7)]
    plans[0].run_part(1, 1)
    plans[1].run_part(1, 1)
    with pytest.raises(ConflictError, match="removed or replaced what the tasks wrote"):
        plans[0].finish()
    assert plans[1].finish().finished
    made = tessarr.open_array(where, path="z", mode="r")
    assert (made.chunks, made[:].tolist()) == ((7,), VALUES.tolist())


def test_a_client_that_creates_a_node_where_a_plan_works_is_refused(source: tessarr.Array) -> None:
    where = Bucket()
    plan = tessarr.plan.rechunk(source, where, path="z", chunks=(10,))
    plan.run_part(1, 1)
    with pytest.raises(ContainsGroupError, match="another writer is creating"):
        tessarr.create_array(where, name="z", data=[7, 7, 7])
    assert plan.finish().finished
    assert tessarr.open_array(where, path="z", mode="r")[:].tolist() == VALUES.tolist()


def test_a_node_that_appears_before_the_documents_stays(source: tessarr.Array) -> None:
    where = MemoryStore()
    plan = tessarr.plan.rechunk(source, where, path="z", chunks=(10,))
    plan.run_part(1, 1)
    tessarr.create_array(where, name="z", data=[7, 7, 7], chunks=(3,), overwrite=True)
    with pytest.raises(ConflictError):
        plan.finish()
    assert tessarr.open_array(where, path="z", mode="r")[:].tolist() == [7, 7, 7]


@pytest.mark.parametrize("memory", [False, True])
def test_a_discarded_plan_leaves_nothing_at_its_target(source: tessarr.Array, tmp_path: Path, memory: bool) -> None:
    url = (tmp_path / "db.sqlite").as_uri().replace("file:", "sqlite:")
    store = MemoryStore() if memory else store_from(url)[0]
    where = store if memory else url
    one, other = (tessarr.plan.rechunk(source, where, path="z", chunks=(size,)) for size in (10, 7))
    one.run_part(1, 1)
    with pytest.raises(ConflictError):
        other.run()
    one.discard()
    assert not list(store.list())
    assert other.run().finished
    one.discard()
    assert tessarr.open_array(where, path="z")[...].tolist() == VALUES.tolist()


def test_a_node_that_is_created_just_before_the_claim_is_noticed(source: tessarr.Array) -> None:
    class Late(Bucket):
        """A store in which another client creates the node just before the claim is stored."""

        late = True

        def set(self, key: str, value: Any, *, if_match: Any = ANY) -> None:
            if key.endswith("claim") and self.late:
                self.late = False
                tessarr.create_array(self, name="z", data=[7, 7, 7], chunks=(2,))
            super().set(key, value, if_match=if_match)

    where = Late()
    plan = tessarr.plan.rechunk(source, where, path="z", chunks=(10,))
    with pytest.raises(ConflictError, match="another client has created a node"):
        plan.run()
    assert tessarr.open_array(where, path="z", mode="r")[:].tolist() == [7, 7, 7]
    assert not [key for key in where.list() if "claim" in key]


def _left(shape: tuple[int, ...], chunks: tuple[int, ...]) -> MemoryStore:
    """Return a store with the chunks that a stopped plan has left at ``b``, without a document."""
    store = MemoryStore()
    tessarr.create_array(store, name="b", data=np.full(shape, 100), chunks=chunks, compressors=None)
    for key in [key for key in store.list() if key.endswith("json")]:
        store.delete(key)
    return store


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_what_a_stopped_plan_left_is_not_in_an_array_that_grows(engine: str) -> None:
    source = tessarr.create_array({}, data=np.arange(1, 7), chunks=(4,), compressors=None)
    with tessarr.config.set({"engine": engine}):
        plans: tuple[Callable[..., Plan], ...] = (partial(tessarr.plan.rechunk, chunks=(4,)), tessarr.plan.copy)
        for plan in plans:
            there = _left((16,), (4,))
            assert plan(source, there, path="b").run().finished
            made = tessarr.open_array(there, path="b", mode="r+")
            assert np.frombuffer(bytes(there["b/c/1"]), "i8").tolist() == [5, 6, 0, 0]
            assert sorted(key for key in there.list() if "/c/" in key) == ["b/c/0", "b/c/1"]
            made.resize((16,))
            assert made[...].tolist() == [1, 2, 3, 4, 5, 6, *[0] * 10]


def test_what_a_stopped_plan_left_is_not_in_a_level_that_grows() -> None:
    there = _left((12, 12), (4, 4))
    left = {key.replace("b/", "1/"): there[key] for key in list(there.list())}
    group = tessarr.create_group(there, overwrite=True)
    group.create_array("0", data=np.ones((10, 10), "i8"), chunks=(4, 4), compressors=None)
    for key, value in left.items():
        there.set(key, value)
    assert tessarr.plan.pyramid(group, "0", levels=1).run().finished
    made = tessarr.open_array(there, path="1", mode="r+")
    made.resize((12, 12))
    assert made[...].sum() == 25


class _Stops(Bucket):
    """Notes the documents that are written, and fails before one of them."""

    def __init__(self, before: str = "") -> None:
        super().__init__()
        self.before = before
        self.documents: list[str] = []

    def set(self, key: str, value: Any, *, if_match: Any = ANY) -> None:
        if key == self.before:
            raise OSError("stopped")
        super().set(key, value, if_match=if_match)
        self.documents += [key] if key.endswith("zarr.json") else []


def _tree() -> tessarr.Group:
    group = tessarr.create_group({}, attributes={"title": "all"})
    for path in ("a", "below/b", "below/further/c"):
        group.create_array(path, data=VALUES, chunks=(4,))
    return group


def test_a_group_has_its_document_when_its_members_have_theirs() -> None:
    there = _Stops()
    assert tessarr.plan.copy(_tree(), there, path="x").run().finished
    written = [key.removesuffix("/zarr.json") for key in there.documents if key != "zarr.json"]
    assert len(written) == 6
    assert [
        (path, above) for path in written for above in written[: written.index(path)] if path.startswith(above)
    ] == []


@pytest.mark.parametrize("stopped", ["x/a/zarr.json", "x/below/zarr.json", "x/zarr.json"])
def test_a_plan_that_is_stopped_between_documents_is_finished_and_notices_a_group_of_others(stopped: str) -> None:
    for other in (False, True):
        there = _Stops(stopped)
        plan = tessarr.plan.copy(_tree(), there, path="x")
        with pytest.raises(OSError, match="stopped"):
            plan.run()
        there.before = ""
        if other:  # such as a client makes that does not know claims, to create a node below
            there.set("x/zarr.json", b'{"zarr_format": 3, "node_type": "group", "attributes": {}}')
            with pytest.raises(ConflictError):
                plan.run()
        else:
            assert plan.run().finished
            assert tessarr.open_group(there, path="x").attrs["title"] == "all"


def test_documents_of_a_level_are_sent_at_once() -> None:
    class Far(Bucket):
        """A store behind a network, whose first answer to a document of an array waits for the second request."""

        requests_at_once = 16
        met = Barrier(2, timeout=60)

        def set(self, key: str, value: Any, *, if_match: Any = ANY) -> None:
            if key in ("x/a/zarr.json", "x/b/zarr.json"):
                self.met.wait()
            super().set(key, value, if_match=if_match)

    group = tessarr.create_group({})
    for name in "ab":
        group.create_array(name, data=VALUES, chunks=(4,))
    there = Far()
    plan = tessarr.plan.copy(group, there, path="x")
    assert plan.run().finished
