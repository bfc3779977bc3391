"""Places on the command line: what a path stands for, by what is on the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.cli.places import split_place
from tessarr.storage import LMDBStore, SQLiteStore

Run = Callable[..., Any]


@pytest.fixture(params=["plain", "we ird %41#|ü"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory, also of a name that means something in URLs."""
    found: Path = tmp_path / request.param
    found.mkdir()
    return found


def test_an_sqlite_file_is_opened_whatever_its_name(run: Run, directory: Path) -> None:
    with SQLiteStore(directory / "data.any") as store:
        tessarr.open_group(store, mode="w").create_array("air", data=np.arange(3))
    assert run("cat", directory / "data.any", "air").out.strip() == "[0 1 2]"
    assert run("info", directory / "data.any" / "air", "--json").json["shape"] == [3]


def test_a_directory_of_lmdb_is_opened(run: Run, directory: Path) -> None:
    pytest.importorskip("lmdb")
    with LMDBStore(directory / "data") as store:
        tessarr.open_group(store, mode="w").create_array("air", data=np.arange(3))
    assert run("info", directory / "data" / "air", "--json").json["shape"] == [3]


def test_a_container_of_n5_is_opened(run: Run, directory: Path) -> None:
    place = directory / "cells.n5"
    tessarr.create_n5(place, path="v/s0", shape=(3,), chunks=(2,), dtype="u1")[:] = [1, 2, 3]
    assert run("cat", place, "v/s0").out.strip() == run("cat", place / "v" / "s0").out.strip() == "[1 2 3]"
    assert run("info", place / "v" / "s0", "--json").json["axis_order"] == "C"
    assert run("convert", place, directory / "cells.zarr").code == 0
    assert tessarr.open_array(directory / "cells.zarr", path="v/s0")[:].tolist() == [1, 2, 3]
    assert run("bridge", place).code == 0
    assert split_place(str(place)) == (str(place), "")  # which is now Zarr, too


def test_a_repository_of_icechunk_is_opened(run: Run, directory: Path) -> None:
    icechunk = pytest.importorskip("icechunk")
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(directory / "data")))
    session = repository.writable_session("main")
    tessarr.open_group(session.store, mode="w").create_array("air", data=np.arange(3))
    session.commit("air")
    assert run("info", directory / "data" / "air", "--json").json["shape"] == [3]


def test_a_hierarchy_whose_members_have_the_names_of_a_repository_is_no_repository(tmp_path: Path) -> None:
    group = tessarr.open_group(tmp_path / "data", mode="w")
    for name in ("refs", "snapshots"):
        group.create_group(name)
    assert split_place(str(tmp_path / "data")) == (str(tmp_path / "data"), "")


@pytest.mark.parametrize("verb", ["info", "serve"])
def test_references_are_opened_only_by_their_scheme(run: Run, tmp_path: Path, verb: str) -> None:
    (tmp_path / "refs.json").write_text('{".zgroup": "{\\"zarr_format\\": 2}"}')
    ran = run(verb, tmp_path / "refs.json")
    assert ran.code == 2
    assert f"reference:{tmp_path / 'refs.json'}" in ran.err


def test_a_file_of_another_format_is_said_to_be_one(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    ran = run("info", tmp_path / "a.npy")
    assert ran.code == 2
    assert f"tessarr view {tmp_path / 'a.npy'} shows it" in ran.err


@pytest.mark.parametrize("verb", ["info", "serve", "view"])
def test_a_directory_of_hierarchies_names_them(run: Run, tmp_path: Path, verb: str) -> None:
    (tmp_path / "notes.txt").write_text("")
    for name in ("b.zarr", "a.zarr"):
        tessarr.open_group(tmp_path / name, mode="w")
    ran = run(verb, tmp_path)
    assert (ran.code, ran.err.strip().rpartition(". ")[2]) == (2, "There is a.zarr, b.zarr")


@pytest.mark.parametrize("verb", ["serve", "view"])
def test_what_is_not_there_is_named_before_a_server_starts(run: Run, tmp_path: Path, verb: str) -> None:
    tessarr.open_group(tmp_path / "a.zarr", mode="w").create_array("air", data=np.arange(3))
    assert "no such file or directory" in run(verb, tmp_path / "b.zarr").err
    assert "There is air" in run(verb, tmp_path / "a.zarr", "airr").err
