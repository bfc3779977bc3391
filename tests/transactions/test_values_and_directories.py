"""Where a transaction stores a value in the place of a directory, or makes a directory where a value is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import JournalError, StoreError, UnsupportedOperationError
from tessarr.storage import LocalStore
from tests.transactions.cuts import process
from tests.transactions.test_cuts import copy_of, hidden, needs_exchange
from tests.transactions.test_transactions import MAKERS

OLD, NEW = [[1, 1], [1, 1]], 5


@pytest.fixture(params=["array", "group"])
def template(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An array with chunks in ``n/c/``, as itself or as a group with an array ``c``."""
    made = tmp_path / "template.zarr"
    root = tessarr.create_group(made, attributes={"kind": request.param})
    name = "n" if request.param == "array" else "n/c"
    root.create_array(name, data=np.ones((2, 2), "i4"), chunks=(1, 1), fill_value=0)
    return made


def change(place: Path, mode: Any = "auto", durable: bool = False) -> None:
    with tessarr.transaction(place, mode, durable=durable) as tx:
        tx.group.create_array("n", data=np.array(NEW, "i4"), overwrite=True)  # its chunk is the value n/c


def make_younger(one: Path, other: Path) -> None:
    while one.stat().st_ctime_ns <= other.stat().st_ctime_ns:
        os.utime(one)


def content(place: Path) -> Any:
    root: Any = tessarr.open_group(place, mode="r")
    name = "n/c" if "n/c" in root else "n"
    return root[name][...].tolist()


@pytest.mark.parametrize("mode", ["journal", pytest.param("swap", marks=needs_exchange)])
def test_a_chunk_in_the_place_of_a_directory_is_stored_whole_or_left_out(
    template: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    seen: list[bool] = []
    ends_at, is_cut = 0, True
    while is_cut:
        place = copy_of(template, "cut")
        with process(monkeypatch, ends_at) as running:
            change(place, mode)
        is_cut = running.is_dead
        read_only = content(place)
        assert read_only in (OLD, NEW), ends_at
        tessarr.open_group(place, mode="r+")
        assert content(place) == read_only, ends_at
        assert not (place / ".tessarr-journal").exists()
        LocalStore(place).remove_leftovers(older_than_s=0)
        assert content(place) == read_only, ends_at
        assert hidden(place.parent) == []
        seen.append(read_only == NEW)
        ends_at += 1 if mode == "journal" else 4
    assert seen == sorted(seen), "there is one commit point"
    assert seen[-1] > seen[0]


def test_a_durable_transaction_syncs_the_directories_that_are_left(template: Path) -> None:
    change(template, durable=True)
    assert content(template) == NEW


def test_a_recovery_removes_no_value_that_the_transaction_does_not(
    template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal of a stranger, or a directory that was changed by hand, is refused; what came since is of no array."""
    ends_at = 0
    place = copy_of(template, "cut")
    while not (place / ".tessarr-journal").exists():
        place = copy_of(template, "cut")
        with process(monkeypatch, ends_at):
            change(place)
        ends_at += 1
    (place / "n" / "c" / "late").write_bytes(b"late")
    make_younger(place / ".tessarr-journal", place / "n" / "c" / "late")
    with pytest.raises(JournalError, match="does not remove everything"):
        tessarr.open_group(place, mode="r+")
    assert (place / "n" / "c" / "late").exists()
    (place / "n" / "c" / "late").unlink()
    (place / "n" / "c" / "late").write_bytes(b"late")
    make_younger(place / "n" / "c" / "late", place / ".tessarr-journal")
    tessarr.open_group(place, mode="r+")
    assert content(place) == NEW


def test_a_value_does_not_replace_a_directory_with_other_values(template: Path) -> None:
    for mode in ("auto", "swap"):
        with pytest.raises((StoreError, UnsupportedOperationError)), tessarr.transaction(template, mode) as tx:
            tx.group.store.set("n/c", b"x")
        assert content(template) == OLD
        assert hidden(template.parent) == []


def test_a_directory_where_a_value_is_is_refused_before_the_commit(tmp_path: Path) -> None:
    place = tmp_path / "data.zarr"
    tessarr.create_group(place).create_array("n", data=np.array(NEW, "i4"))
    with (
        pytest.raises(UnsupportedOperationError, match=r"cannot make a directory where a value is.*mode='swap'"),
        tessarr.transaction(place) as tx,
    ):
        tx.group.create_array("n", data=np.array(OLD, "i4"), chunks=(1, 1), overwrite=True)
    assert content(place) == NEW
    assert hidden(place.parent) == []
    with tessarr.transaction(place) as tx:
        del tx.group["n"]
    with tessarr.transaction(place) as tx:
        tx.group.create_array("n", data=np.array(OLD, "i4"), chunks=(1, 1))
    assert content(place) == OLD


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "zip"])
def test_an_array_without_axes_takes_the_place_of_one_with_axes(kind: str, tmp_path: Path) -> None:
    with MAKERS[kind](tmp_path) as store:
        root: Any = tessarr.create_group(store)
        for name in ("t", "u"):
            root.create_array(name, data=np.ones(6, "i4"), chunks=(2,))
        with tessarr.transaction(store) as tx:
            tx.group.create_array("t", data=np.array(NEW, "i4"), overwrite=True)
            del tx.group["u"]
            tx.group.create_array("u", data=np.array(NEW, "i4"))
        root = tessarr.open_group(store, mode="r")
        assert [root[name][...].tolist() for name in ("t", "u")] == [NEW, NEW]
