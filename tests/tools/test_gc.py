"""`gc` removes what nothing needs, and never what a version, a tag or a session refers to."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.cli import main
from tessarr.errors import ChecksumError, ConflictError, StoreError
from tessarr.storage import LocalStore, MemoryStore, SQLiteStore
from tessarr.stores.transformed import versioned
from tessarr.tools.gc import gc

TRANSFORMER: dict[str, Any] = {"name": "tessarr.versioned", "configuration": {"fanout": [2], "page": 3}}
NONE, WEEK = timedelta(0), timedelta(days=7)
PLACES: list[Any] = [
    pytest.param(lambda _: MemoryStore(), id="memory"),
    pytest.param(lambda path: LocalStore(path / "z"), id="local"),
    pytest.param(lambda path: SQLiteStore(path / "z.sqlite"), id="sqlite"),
]


def made(store: Any) -> tessarr.Array:
    return tessarr.create_array(store, shape=8, chunks=2, dtype="i4", storage_transformers=[TRANSFORMER])


def opened(store: Any, **options: Any) -> tessarr.Array:
    return tessarr.open_array(store, **{"mode": "r+", **options})


def objects(store: Any) -> set[str]:
    return {key for key in store.list() if key.startswith("o/")}


def aged(store: Any) -> None:
    """Make the list of unused objects a week old."""
    document = json.loads(bytes(store.get("refs/gc.json")))
    document["time"] = (datetime.now(UTC) - timedelta(days=8)).isoformat()
    store.set("refs/gc.json", json.dumps(document).encode())


@pytest.mark.parametrize("place", PLACES)
def test_what_no_version_needs_goes_after_the_grace(place: Any, tmp_path: Path) -> None:
    store = place(tmp_path)
    z = made(store)
    z[:] = 1
    z[:2] = 5  # the object of the first value stays in use by the other chunks
    z[2:4] = 7
    z[2:4] = 6  # that of 7 does not
    first = z.commit()
    z[:] = 9
    z.commit()
    z.tag("first", first)
    before = objects(store)
    assert [(item.unused, item.removed) for item in gc(store, dry_run=True).items][:1] == [(1, 0)]
    assert "refs/gc.json" not in set(store.list())
    assert gc(store).items[0].removed == 0
    assert gc(store).items[0].removed == 0
    aged(store)
    report = gc(store).items[0]
    assert (report.kind, report.path, report.unused, report.removed) == ("objects", "/", 1, 1)
    assert report.nbytes is not None
    assert len(before - objects(store)) == 1
    assert "refs/gc.json" not in set(store.list())
    assert gc(store).items[0].unused == 0
    assert opened(store, version="first", mode="r")[:].tolist() == [5, 5, 6, 6, 1, 1, 1, 1]
    assert opened(store)[:].tolist() == [9] * 8


def test_a_session_that_meets_listed_objects_keeps_them() -> None:
    store = MemoryStore()
    z = made(store)
    z[:] = 3
    z.commit()
    lost = opened(store)
    lost[:2] = 4
    lost._chunk_store()._staged.clear()  # type: ignore[attr-defined] # the session ended
    gc(store)
    session = opened(store)
    session[:2] = 4  # there already, and listed
    session.commit()
    aged(store)
    assert gc(store).items[0].removed == 0
    assert opened(store)[:].tolist() == [4, 4, 3, 3, 3, 3, 3, 3]


def test_a_session_that_lost_its_objects_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    z = made(store)
    z[:] = 3
    z.commit()
    for is_old in (False, True):
        session = opened(store)
        session[:2] = 40 + is_old
        if not is_old:
            session._chunk_store()._met.update(session._chunk_store()._staged.values())  # type: ignore[attr-defined]
        gc(store, grace=NONE)
        monkeypatch.setattr(versioned, "OLD_S", -1 if is_old else 1e9)
        with pytest.raises(ConflictError, match="removed by a collection"):
            session.commit()
        session._chunk_store()._staged.clear()  # type: ignore[attr-defined]
    assert opened(store)[:].tolist() == [3] * 8


def test_a_commit_does_not_refer_to_what_is_being_removed() -> None:
    store = MemoryStore()
    session = made(store)
    session[:] = 3
    gc(store)
    document = json.loads(bytes(store.get("refs/gc.json") or b""))
    store.set("refs/gc.json", json.dumps({**document, "removing": True}).encode())
    with pytest.raises(ConflictError, match="being removed"):
        session.commit()
    assert gc(store).items[0].removed == 1  # a collection that was killed is completed
    session[:] = 3
    session.commit()
    assert opened(store)[:].tolist() == [3] * 8


def test_two_collections_at_once_and_new_garbage() -> None:
    store = MemoryStore()
    z = made(store)
    for value in (1, 2):
        z[:] = value
    z.commit()
    gc(store)
    aged(store)
    z[:] = 8
    z[:] = 9
    z.commit()
    assert (gc(store).items[0].removed, gc(store, dry_run=True).items[0].unused) == (1, 1)
    assert "refs/gc.json" in set(store.list())


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"{",
        b'{"time": "x", "removing": false, "objects": []}',
        b'{"time": 1, "removing": 1, "objects": ["../x"]}',
    ],
)
def test_lists_that_lie_and_broken_versions_remove_nothing(text: bytes) -> None:
    store = MemoryStore()
    z = made(store)
    z[:] = 1
    z[:] = 2
    z.commit()
    store.set("refs/gc.json", text)
    before = objects(store)
    with pytest.raises(StoreError):
        gc(store, grace=NONE)
    store.delete("refs/gc.json")
    page = opened(store).versions()[0].pages[0]
    key = f"o/{page[:2]}/{page}"
    store.set(key, bytes(store.get(key) or b"") + b" ")
    with pytest.raises(ChecksumError):
        gc(store, grace=NONE)
    assert objects(store) == before


steps = st.lists(st.tuples(st.sampled_from("wwwcrga"), st.integers(0, 3), st.integers(0, 2)), max_size=25)


@pytest.mark.spec("ZEP1-18")
@given(steps)
@settings(max_examples=60, deadline=None)
@pytest.mark.filterwarnings("ignore:.*not committed")
def test_no_order_of_writers_and_collections_loses_a_committed_chunk(actions: Any) -> None:
    """w: write by one of two sessions; c: commit it; r: begin it again; g: collect; a: a week goes by."""
    store = MemoryStore()
    made(store)
    sessions = [opened(store), opened(store)]
    for action, number, who in actions:
        session = sessions[who % 2]
        if action == "w":
            session[2 * number : 2 * number + 2] = who
        elif action == "c":
            try:
                session.commit()
            except ConflictError:
                sessions[who % 2] = opened(store)
        elif action == "r":
            sessions[who % 2] = opened(store)
        elif action == "g":
            gc(store)
        elif store.exists("refs/gc.json"):
            aged(store)
    for revision in opened(store).versions():
        opened(store, version=revision.id, mode="r")[:]


def test_temporary_files_go_when_they_are_old(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tessarr.create_group(tmp_path / "g.zarr")
    root.create_array("x", data=np.arange(4))
    old, new = (tmp_path / f"g.zarr/x/.c.{n}.tessarr-tmp" for n in (1, 2))
    for file in (old, new):
        file.write_bytes(b"x")
    os.utime(old, (old.stat().st_mtime - 8 * 86_400,) * 2)
    assert main(["gc", str(tmp_path / "g.zarr"), "--dry-run"]) == 0
    assert "1 temporary file; 0 removed" in capsys.readouterr().out
    assert old.exists()
    assert main(["gc", str(tmp_path / "g.zarr"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["removed"] == 1
    assert (old.exists(), new.exists()) == (False, True)
    with pytest.raises(ValueError, match="grace"):
        gc(tmp_path / "g.zarr", grace=timedelta(-1))
