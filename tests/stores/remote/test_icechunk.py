"""Sessions of Icechunk: every operation in them, and branches that URLs open."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest
import xarray as xr

import tessarr
import tessarr.xarray
from tessarr.cli import main
from tessarr.errors import ConflictError, StoreError, UnsupportedOperationError
from tessarr.stores.virtual.branches import committing
from tessarr.tools.convert import convert
from tessarr.tools.pyramid import build_pyramid
from tests.narrow import array_of


def _session() -> tessarr.Group:
    session = icechunk.Repository.create(icechunk.in_memory_storage()).writable_session("main")
    return tessarr.open_group(session.store, mode="a")


def test_nodes_of_an_icechunk_session_are_moved_and_replaced_by_conversions(tmp_path: Path) -> None:
    group = _session()
    group.create_array("a/x", data=np.arange(10), chunks=(3,))
    group.move("a", "b/c")
    chunks = [f"b/c/x/c/{number}" for number in range(4)]
    assert sorted(group._store.list()) == [*chunks, "b/c/x/zarr.json", "b/c/zarr.json", "b/zarr.json", "zarr.json"]
    assert array_of(group["b/c/x"])[...].tolist() == [*range(10)]
    np.save(tmp_path / "five.npy", np.arange(5))
    convert(tmp_path / "five.npy", group._store, path="b/c", overwrite=True)
    assert array_of(group["b/c"])[...].tolist() == [*range(5)]


def test_a_move_in_an_icechunk_session_that_fails_leaves_the_node_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    group = _session()
    group.create_array("x", data=np.arange(10), chunks=(3,))
    before = sorted(group._store.list())
    real = icechunk.IcechunkStore.set

    async def fails(self: Any, key: str, value: Any) -> None:
        if key == "y/c/2":
            raise OSError("no")
        await real(self, key, value)

    monkeypatch.setattr(icechunk.IcechunkStore, "set", fails)
    with pytest.raises(StoreError, match="OSError: no"):
        group.move("x", "y")
    assert sorted(group._store.list()) == before
    assert array_of(group["x"])[...].tolist() == [*range(10)]


def test_members_of_an_icechunk_session_may_have_the_names_of_chunks() -> None:
    group = _session()
    group.create_array("c/0", data=np.arange(4).reshape(2, 2), chunks=(1, 1))
    assert [path for path, _ in group.members(max_depth=None)] == ["c", "c/0"]
    assert group._store.get("c") is None
    assert sorted(group._store.list_prefix("c/0/c/1/")) == ["c/0/c/1/0", "c/0/c/1/1"]
    assert [*group._store.list_prefix("no/such/node/")] == []


def test_levels_are_built_in_an_icechunk_session() -> None:
    group = _session()
    group.create_array("a", data=np.arange(64, dtype="f8").reshape(8, 8), chunks=(2, 2))
    made = [level.name for level in build_pyramid(group, "a", min_size=2)]
    assert [array_of(group[name]).shape for name in made] == [(8, 8), (4, 4), (2, 2)]
    assert array_of(group[made[2]])[0, 0] == np.arange(64).reshape(8, 8)[:4, :4].mean()
    assert all(key.endswith("zarr.json") or "/c/" in key for key in group._store.list())


def test_transactions_and_snapshots_of_icechunk_are_its_sessions() -> None:
    group = _session()
    with pytest.raises(UnsupportedOperationError, match="A session of Icechunk is one transaction"):
        tessarr.transaction(group).__enter__()
    with pytest.raises(UnsupportedOperationError, match="Open a read-only session"):
        tessarr.snapshot(group)


@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_rows_are_appended_in_an_icechunk_session(shards: tuple[int, int] | None) -> None:
    group = _session()
    data = np.arange(1, 71).reshape(7, 10)
    z = group.create_array("x", data=data[:3, :5], chunks=(2, 2), shards=shards)
    assert z.append(data[3:6, :5]) == (6, 5)
    assert z.append(data[:6, 5:], axis=1) == (6, 10)
    with tessarr.appender(z, batch=2) as out:
        out.append(data[6:])
    assert array_of(group["x"])[...].tolist() == data.tolist()


@pytest.mark.parametrize("trouble", [OSError("no"), KeyboardInterrupt()])
def test_an_append_in_an_icechunk_session_that_fails_is_undone(
    trouble: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = _session()
    z = group.create_array("x", data=np.arange(1, 6), chunks=(4,))
    before = sorted(group._store.list())
    written = type(z._engine).write
    failures = iter([trouble])

    def fails(*arguments: Any) -> None:
        written(*arguments)
        for one in failures:
            raise one

    monkeypatch.setattr(type(z._engine), "write", fails)
    with pytest.raises((OSError, KeyboardInterrupt)):
        z.append(np.full(20, 9))
    for thread in threading.enumerate():
        if thread.name == "tessarr-detached":  # which undoes it after an interruption
            thread.join()
    assert sorted(group._store.list()) == before
    assert z.shape == (5,)
    z.resize(8)
    assert z[...].tolist() == [1, 2, 3, 4, 5, 0, 0, 0]


# -- branches that URLs open -------------------------------------------------------------------------------------------------


@pytest.fixture
def branch(tmp_path: Path) -> str:
    """The URL of the branch of a new repository with a group."""
    session = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo"))).writable_session(
        "main"
    )
    tessarr.create_group(session.store)
    session.commit("a group")
    return f"{(tmp_path / 'repo').as_uri()}|icechunk:"


def _commit(array: tessarr.Array) -> None:
    store: Any = array.store
    store.store.session.commit("why")


def _members(branch: str) -> list[str]:
    return sorted(path for path, _ in tessarr.open_group(branch, mode="r").members(max_depth=None))


def test_who_opens_a_branch_by_its_url_and_gives_nothing_back_commits_it(branch: str, tmp_path: Path) -> None:
    np.save(tmp_path / "three.npy", np.arange(3))
    convert(tmp_path / "three.npy", branch, path="converted")
    tessarr.save(branch, np.arange(3), path="saved")
    tessarr.save(branch, np.arange(3), np.arange(2), path="group")
    tessarr.copy_store({"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'}, branch, dest_path="copied")
    tessarr.xarray.to_zarr(xr.Dataset({"v": ("t", [1.0, 2.0])}), branch, group="dataset")
    build_pyramid(branch, "converted", min_size=1, factors=[2])
    written = {"converted", "converted_1", "copied", "dataset/v", "group/arr_0", "group/arr_1", "saved"}
    assert written <= {*_members(branch)}
    assert array_of(tessarr.open(branch, path="saved", mode="r"))[...].tolist() == [0, 1, 2]


def test_the_command_line_commits_what_it_writes_to_a_branch(branch: str, tmp_path: Path) -> None:
    np.save(tmp_path / "three.npy", np.arange(3))
    assert main(["convert", str(tmp_path / "three.npy"), branch, "--path", "x"]) == 0
    assert _members(branch) == ["x"]
    assert main(["convert", str(tmp_path / "three.npy"), branch, "--path", "x"]) == 2  # it is there


def test_nothing_is_committed_after_an_error(branch: str) -> None:

    def write() -> None:
        with committing("fails"):
            tessarr.create_array(branch, name="x", data=[1, 2])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()
    gc.collect()
    assert _members(branch) == []


def test_a_commit_that_meets_another_one_of_the_same_chunk_stores_nothing_and_says_so(branch: str) -> None:
    tessarr.save(branch, np.arange(4), path="x")

    def write() -> None:
        with committing("one"):
            array = tessarr.open_array(branch, path="x")
            array[0] = 7
            other = tessarr.open_array(branch, path="x")
            other[1] = 8
            _commit(other)

    with pytest.raises(ConflictError, match="nothing of this is stored"):
        write()
    assert tessarr.open_array(branch, path="x", mode="r")[...].tolist() == [0, 8, 2, 3]
    with committing("two"):
        tessarr.create_array(branch, name="y", data=[1])
        other = tessarr.create_array(branch, name="z", data=[2])
        _commit(other)
    assert _members(branch) == ["x", "y", "z"]


def test_changes_of_a_branch_that_are_lost_are_told(branch: str) -> None:
    lines = [
        "import tessarr",
        f"array = tessarr.create_array({branch!r}, name='x', data=[1, 2])",
        "array.store.with_read_only()",
    ]
    commit = ["array.store.store.session.commit('why')"]
    lost = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert lost.stderr.count("was not committed, and is lost") == 1
    assert _members(branch) == []
    kept = subprocess.run([sys.executable, "-c", "\n".join(lines + commit)], capture_output=True, text=True, check=True)
    assert "not committed" not in kept.stderr
    assert _members(branch) == ["x"]


def test_the_copies_of_a_store_share_its_session(branch: str) -> None:
    array: Any = tessarr.open_array(tessarr.create_array(branch, name="x", data=[1, 2]).store, path="x")
    assert array.store.with_read_only().branch is array.store.branch
    _commit(array)
