"""A value of a local store is created alike by one call of the Rust module and step by step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tessarr.common import extension
from tessarr.errors import StoreError
from tessarr.storage import LocalStore
from tessarr.stores.local import lock as filelock
from tessarr.stores.local import store as module
from tessarr.stores.local.create import create

WAYS = ("one call", "steps")


@pytest.fixture(params=WAYS)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    native = getattr(extension.module(), "create_file", None)
    if request.param == "steps":
        monkeypatch.setattr(module, "create", lambda *_, **__: None)
    elif native is None:
        pytest.skip("the Rust module is not built")
    return LocalStore(tmp_path / "root")


def files(store: LocalStore) -> list[str]:
    return sorted(name for _, _, names in os.walk(store.root) for name in names)


def test_the_first_creator_wins_and_nothing_else_stays(store: LocalStore) -> None:
    assert store.set_if_not_exists("a/b", b"1")
    assert not store.set_if_not_exists("a/b", b"2")
    assert store.get("a/b") == b"1"
    assert files(store) == ["b"]


def test_a_directory_in_the_way_is_an_error_that_names_the_key(store: LocalStore) -> None:
    store.set("a/b/c", b"1")
    with pytest.raises(StoreError, match=r"a/b"):
        store.set_if_not_exists("a/b", b"2")
    assert files(store) == ["c"]


def test_a_link_that_leads_nowhere_is_no_value(store: LocalStore) -> None:
    store.set("other", b"1")
    os.symlink(store.root / "missing", store.root / "a")
    assert store.set_if_not_exists("a", b"2")
    assert store.get("a") == b"2"


def test_a_name_too_long_for_hidden_names_is_created(store: LocalStore) -> None:
    name = "x" * 230
    assert store.set_if_not_exists(name, b"1")
    assert not store.set_if_not_exists(name, b"2")


def test_an_empty_lock_file_of_a_killed_holder_is_used_and_removed(store: LocalStore) -> None:
    store.set("a/c", b"1")
    (store.root / "a" / filelock.lock_name("b")).touch()
    assert store.set_if_not_exists("a/b", b"1")
    assert files(store) == ["b", "c"]


def test_what_a_killed_creator_wrote_into_its_lock_file_is_ignored(store: LocalStore) -> None:
    store.set("a/c", b"1")
    (store.root / "a" / filelock.lock_name("b")).write_bytes(b'{"zarr_format": 3, "node_')
    assert store.set_if_not_exists("a/b", b"1")
    assert store.get("a/b") == b"1"
    assert files(store) == ["b", "c"]


MARKS: list[tuple[str, Callable[[Path], object]]] = [
    ("a lock file with a mark", lambda root: (root / filelock.lock_name("a")).write_bytes(b"mark")),
    ("a directory in the way", lambda root: (root / "a").mkdir()),
]


@pytest.mark.skipif(extension.module() is None, reason="the Rust module is not built")
@pytest.mark.parametrize("prepare", [prepare for _, prepare in MARKS], ids=[name for name, _ in MARKS])
def test_one_call_leaves_what_it_cannot_decide_to_the_steps(tmp_path: Path, prepare: Callable[[Path], object]) -> None:
    prepare(tmp_path)
    before = sorted(os.listdir(tmp_path))
    assert create(f"{tmp_path}{os.sep}a", f"{tmp_path}{os.sep}", b"1", probe=True) is None
    assert sorted(os.listdir(tmp_path)) == before
