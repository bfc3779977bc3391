"""Chunks as immutable objects, and commits that name them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pickle
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
from tessarr.errors import (
    ChecksumError,
    ConflictError,
    ReadOnlyError,
    StoreError,
    UnsupportedOperationError,
    ZarrUserWarning,
)
from tessarr.storage import LocalStore, MemoryStore, SQLiteStore, Store
from tessarr.stores.transformed.versioned import VersionedStore, VersionedTransformer
from tessarr.tools.check import check
from tests.stores.contract import ENGINES, ConditionalContract, StoreContract
from tests.stores.transformed.test_transformers import HASHED

TRANSFORMER: dict[str, Any] = {"name": "tessarr.versioned", "configuration": {"fanout": [2], "page": 3}}
DATA = np.arange(48, dtype="i4").reshape(8, 6)
PLACES: list[Any] = [
    pytest.param(lambda _: MemoryStore(), id="memory"),
    pytest.param(lambda path: LocalStore(path / "z"), id="local"),
    pytest.param(lambda path: SQLiteStore(path / "z.sqlite"), id="sqlite"),
]


class TestVersionedStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Any:
        made = VersionedStore(MemoryStore(), "", VersionedTransformer())
        yield made
        made.commit("at the end", {})


def made(place: Any, **layout: Any) -> tessarr.Array:
    options = {"shape": DATA.shape, "chunks": (2, 3), "dtype": "i4", "fill_value": -1, "compressors": None, **layout}
    return tessarr.create_array(place, **{"storage_transformers": [TRANSFORMER], **options})


def opened(place: Any, mode: str = "r", **options: Any) -> tessarr.Array:
    return tessarr.open_array(place, mode=mode, **options)


@pytest.mark.spec("ZEP1-13")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "layout", [{}, {"chunks": (1, 3), "shards": (4, 6)}, {"storage_transformers": [HASHED, TRANSFORMER]}]
)
def test_every_version_can_be_read_again(
    tmp_path: Path, place: Callable[[Path], Store], engine: str, layout: Any
) -> None:
    with tessarr.config.set({"engine": engine}):
        store = place(tmp_path)
        z = made(store, **layout)
        z[...] = DATA
        assert (opened(store)[...] == -1).all()
        first = z.commit("first")
        np.testing.assert_array_equal(opened(store)[...], DATA)
        before = opened(store)
        assert before[0, 0] == 0
        z[3:5, 2:4] = 7
        z.attrs["unit"] = "K"
        z.append(DATA[:2])
        second = z.commit("second")
        expected = np.concatenate([DATA, DATA[:2]])
        expected[3:5, 2:4] = 7
        np.testing.assert_array_equal(opened(store)[...], expected)
        assert before[4, 3] == DATA[4, 3]
        assert second.parent == first.id
        assert [one.message for one in opened(store).versions()] == ["second", "first"]
        z.tag("published", first)
        between = first.time + (second.time - first.time) / 2
        for version in (first.id, first, "published", between):
            old = opened(store, version=version)
            np.testing.assert_array_equal(old[...], DATA)
            assert (dict(old.attrs), old.shape) == ({}, DATA.shape)
            with pytest.raises(ReadOnlyError):
                old[...] = 1
        again = asyncio.run(tessarr.open_array_async(store, mode="r", version="published"))
        np.testing.assert_array_equal(again[...], DATA)
        report = check(store, data="decode")
        assert [finding.rule for finding in report.findings] == []


@pytest.mark.spec("ZEP1-11")
def test_equal_chunks_are_one_object_under_its_digest() -> None:
    values: dict[str, bytes] = {}
    z = made(values)
    z[...] = 5
    z.commit()
    name = hashlib.sha256(np.full(6, 5, "<i4").tobytes()).hexdigest()
    assert values[f"o/{name[:2]}/{name}"] == np.full(6, 5, "<i4").tobytes()
    # one chunk, one page of equal digests per three chunks, one commit
    assert len([key for key in values if key.startswith("o/")]) == 1 + 3 + 1
    assert json.loads(values["refs/main.json"])["commit"] == z.versions()[0].id


def test_what_is_not_committed_is_seen_by_its_writer_only_and_warned_of() -> None:
    store = MemoryStore()
    z = made(store)
    z[0] = 3
    assert z[0, 0] == 3
    assert opened(store)[0, 0] == -1
    z.resize((10, 6))
    assert z[0, 0] == 3
    with pytest.raises(UnsupportedOperationError, match="not committed"):
        pickle.dumps(z)
    store_of_chunks = z._bound.store
    with pytest.warns(ZarrUserWarning, match="2 chunks were written to .* and not committed"):
        store_of_chunks.__del__()  # type: ignore[attr-defined]
    z.commit()
    z = opened(store, "r+")
    z[0] = 4
    z.commit()
    assert pickle.loads(pickle.dumps(z))[0, 0] == 4


def test_a_chunk_of_fill_value_is_removed_by_a_commit() -> None:
    store = MemoryStore()
    z = made(store)
    z[...] = DATA
    first = z.commit()
    z[...] = -1
    z.commit()
    assert opened(store).nchunks_initialized == 0
    assert opened(store, version=first).nchunks_initialized == 8


@pytest.mark.parametrize("place", PLACES)
def test_commits_of_different_chunks_are_joined_and_of_the_same_chunk_refused(
    tmp_path: Path, place: Callable[[Path], Store]
) -> None:
    store = place(tmp_path)
    made(store)
    a, b, c = (opened(store, "r+") for _ in range(3))
    a[:2] = 1
    b[2:4] = 2
    c[0, 0] = 3
    a.commit("a")
    b.commit("b")
    with pytest.raises(ConflictError, match="another commit changed the same chunks") as caught:
        c.commit("c")
    assert caught.value.keys == ("c/0/0",)
    assert [one.message for one in opened(store).versions()] == ["b", "a"]
    assert opened(store)[:4, 0].tolist() == [1, 1, 2, 2]
    c._bound.store._staged.clear()  # type: ignore[attr-defined]


@pytest.mark.parametrize("at", [slice(0, 2), slice(6, 8)])
def test_a_commit_whose_answer_was_lost_before_another_one_is_made_once(
    monkeypatch: pytest.MonkeyPatch, at: slice
) -> None:
    store = MemoryStore()
    z = made(store)
    z[...] = DATA
    z.commit("first")
    replace_ref = VersionedStore.replace_ref

    def lose_answer(self: VersionedStore, *ref: Any) -> bool:
        monkeypatch.undo()
        replace_ref(self, *ref)
        other = opened(store, "r+")
        other[at] = 9
        other.commit("other")
        return replace_ref(self, *ref)

    z[:2] = 7
    monkeypatch.setattr(VersionedStore, "replace_ref", lose_answer)
    mine = z.commit("mine")
    assert [commit.message for commit in z.versions()] == ["other", "mine", "first"]
    assert mine == z.versions()[1]
    expected = DATA.copy()
    expected[:2] = 7
    expected[at] = 9
    np.testing.assert_array_equal(opened(store)[...], expected)


def test_concurrent_commits_lose_nothing(tmp_path: Path) -> None:
    made(tmp_path / "z", shape=(16,), chunks=(1,))
    start = threading.Barrier(4)

    def work(number: int) -> None:
        z = opened(tmp_path / "z", "r+")
        start.wait()
        for step in range(4):
            z[4 * number + step] = 10 * number + step
            z.commit(f"{number}.{step}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    z = opened(tmp_path / "z")
    assert z[...].tolist() == [10 * number + step for number in range(4) for step in range(4)]
    assert len(z.versions()) == 16


@given(writes=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(-1, 9), st.booleans()), max_size=12))
def test_any_sequence_of_writes_and_commits_keeps_every_version(writes: list[tuple[int, int, int, bool]]) -> None:
    store = MemoryStore()
    z = made(store)
    values, kept = np.full(DATA.shape, -1, "i4"), []
    for start, stop, value, commits in [*writes, (0, 0, 0, True)]:
        z[start:stop] = value
        values[start:stop] = value
        if commits:
            kept.append((z.commit().id, values.copy()))
    for identifier, expected in kept:
        np.testing.assert_array_equal(z.at_version(identifier)[...], expected)


def test_versions_that_do_not_exist_are_an_error() -> None:
    store = MemoryStore()
    z = made(store)
    for version in ("x", "0" * 64, datetime.now(UTC)):
        with pytest.raises(StoreError, match="no such version"):
            z.at_version(version)
    with pytest.raises(StoreError, match="nothing was committed"):
        z.tag("x")
    z.commit()
    z.tag("x")
    with pytest.raises(ConflictError, match="tag"):
        z.tag("x")
    with pytest.raises(ValueError, match="without slashes"):
        z.at_version("../main")
    with pytest.raises(StoreError, match="no such version"):
        z.at_version(datetime.now(UTC) - timedelta(days=1))
    plain = tessarr.create_array({}, shape=1, dtype="u1")
    with pytest.raises(UnsupportedOperationError, match="keeps no versions"):
        plain.commit()


# -- stored data that lies -----------------------------------------------------------------------------------------------


def damaged(change: Callable[[dict[str, Any], str], None]) -> MemoryStore:
    values: dict[str, Any] = {}
    z = made(values)
    z[...] = DATA
    identifier = z.commit("x").id
    change(values, f"o/{identifier[:2]}/{identifier}")
    return MemoryStore(values)


def replaced_commit(**members: Any) -> Callable[[dict[str, Any], str], None]:
    def change(values: dict[str, Any], key: str) -> None:
        data = json.dumps({**json.loads(values[key]), **members}).encode()
        name = hashlib.sha256(data).hexdigest()
        values[f"o/{name[:2]}/{name}"] = data
        values["refs/main.json"] = json.dumps({"commit": name}).encode()

    return change


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda values, key: values.pop(key), "object of the array is missing"),
        (lambda values, key: values.update({key: b"{}"}), "differs from its digest"),
        (lambda values, _: values.update({"refs/main.json": b"{"}), "not JSON"),
        (lambda values, _: values.update({"refs/main.json": b"[]"}), "malformed"),
        (lambda values, _: values.update({"refs/main.json": b'{"commit": "../../x"}'}), "malformed"),
        (replaced_commit(pages="x"), "malformed"),
        (replaced_commit(pages=["x"]), "malformed"),
        (replaced_commit(parent=7), "malformed"),
        (replaced_commit(time="yesterday"), "malformed"),
        (replaced_commit(document=[]), "malformed"),
    ],
)
def test_damage_is_a_typed_error_and_no_fill_value(change: Any, words: str, engine: str) -> None:
    store = damaged(change)
    findings = check(store, data="decode").findings
    assert {(finding.rule, finding.action) for finding in findings} == {("CHUNK-READ", None)}
    with tessarr.config.set({"engine": engine}), pytest.raises((StoreError, ChecksumError), match=words):
        opened(store)[...]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_changed_object_is_found_when_it_is_read_whole(engine: str) -> None:
    def change(values: dict[str, Any], _: str) -> None:
        chunk = DATA[:2, :3].tobytes()
        key = next(key for key, value in values.items() if value == chunk)
        values[key] = bytes(reversed(chunk))

    with tessarr.config.set({"engine": engine}), pytest.raises(ChecksumError, match="differs from its digest"):
        opened(damaged(change))[...]
