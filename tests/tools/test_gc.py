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
from tessarr import plan
from tessarr.cli import main
from tessarr.core.asynchronous import clock
from tessarr.core.claims.intents import RECORD
from tessarr.core.claims.settle import EXPIRE_S
from tessarr.errors import ChecksumError, ConflictError, StoreError
from tessarr.storage import LocalStore, MemoryStore, SQLiteStore
from tessarr.stores.transformed import versioned
from tessarr.tools.gc import gc
from tessarr.tools.gc.idle import SEEN
from tests.tools.test_pending_appends import with_member
from tests.transactions.test_publish import Time, time  # noqa: F401 - a fixture
from tests.transactions.test_publish_new import cut, found, left

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
    for commit in opened(store).versions():
        opened(store, version=commit.id, mode="r")[:]


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


# -- what stopped processes left -----------------------------------------------------------------------------------------


def backdated(path: Path) -> None:
    """Make a file, or a tree, a week old."""
    for one in [path, *path.rglob("*")]:
        os.utime(one, (one.stat().st_mtime - 8 * 86_400,) * 2)


def removed(report: Any) -> list[str]:
    """The names of places of work that were removed."""
    return sorted(Path(item.path).name for item in report.items if item.kind == "work" and item.removed)


def test_partial_results_in_a_directory_go_when_they_are_old(tmp_path: Path) -> None:
    root = tmp_path / "g.zarr"
    tessarr.create_group(root)
    tessarr.create_array(root / "a", data=np.arange(4))
    names = [
        ".a.0123abcd.partial",
        ".g.zarr.0123abcd.partial",
        ".a.0123abce.partial",
        ".gone.0123abcd.partial",
        ".gone.0123abcf.partial.old",
    ]
    places = [(tmp_path if name.startswith(".g.") else root) / name for name in names]
    for place in places:
        (place / "c").mkdir(parents=True)
        (place / "c" / "0").write_bytes(b"x")
        if "gone" in place.name:
            (place / "zarr.json").write_text(
                '{"zarr_format":3,"node_type":"group"}'
            )  # complete: the process was killed between two renames
        if "abce" not in place.name:
            backdated(place)
    assert removed(gc(root, dry_run=True)) == []
    assert all(place.exists() for place in places)
    assert removed(gc(root)) == names[:2]
    assert [place.exists() for place in places] == [False, False, True, True, True]
    assert tessarr.open_array(root / "a")[:].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("place", [PLACES[0], PLACES[2]])
def test_partial_results_elsewhere_go_when_nobody_wrote_to_them_between_two_calls(place: Any, tmp_path: Path) -> None:
    store = place(tmp_path)
    tessarr.create_group(store).create_array("a", data=np.arange(4))
    over = ("a-0123abcd.partial/c/0", ".d-0123abcd.new.partial/zarr.json")
    for key in (*over, "0123abcd.stages/0/c/0", "b-0123abcd.partial/zarr.json", "c-0123abcd.part/0"):
        store.set(key, b'{"zarr_format":3,"node_type":"group"}' if key.endswith("zarr.json") else b"x")
    first = set(store.list())
    assert removed(gc(store, dry_run=True)) == []
    assert set(store.list()) == first
    assert removed(gc(store)) == removed(gc(store)) == []
    store.set("0123abcd.stages/0/c/1", b"y")  # of a task that goes on
    later(store)
    assert sorted(removed(gc(store))) == [".d-0123abcd.new.partial", "a-0123abcd.partial"]
    later(store)
    assert removed(gc(store)) == ["0123abcd.stages"]
    kept = {key for key in first if not key.startswith((".d-", "a-", "0123"))}
    assert (
        set(store.list()) == kept
    )  # with the complete one, whose target is missing, and what is no name of this package


def later(store: Any) -> None:
    """Let a week pass since the last call."""
    seen = json.loads(bytes(store.get(SEEN)))
    for entry in seen.values():
        entry["since"] = (datetime.fromisoformat(entry["since"]) - timedelta(days=8)).isoformat()
    store.set(SEEN, json.dumps(seen).encode())


@pytest.mark.filterwarnings("ignore:rows 6 to 9:tessarr.errors.ZarrRuntimeWarning")
def test_rows_that_were_never_published_are_filled_after_the_grace(tmp_path: Path) -> None:
    for days in (1, 8):
        place = with_member(tmp_path / str(days), stop=9, reserved=[[6, 9, "a", clock.CLOCK.now() - days * 86_400]])
        assert [item.removed for item in gc(place, dry_run=True).items if item.kind == "appends"] == [0]
        assert [item.removed for item in gc(place).items if item.kind == "appends"] == [int(days == 8)]
        assert tessarr.open_array(place, path="a", mode="r").shape == ((9,) if days == 8 else (6,))


@pytest.mark.filterwarnings("ignore:rows 6 to 9:tessarr.errors.ZarrRuntimeWarning")
def test_transactions_that_nobody_ends_are_ended_after_the_grace(time: Time) -> None:  # noqa: F811
    told: set[tuple[str, int]] = set()
    for number, bucket in cut():
        state = found(bucket)
        time.seconds += EXPIRE_S
        pending = [key for key in left(bucket) if RECORD in key and b'"pending"' in bucket.values[key]]
        assert all(not item.removed for item in gc(bucket.connect("gc"), dry_run=True).items), number
        gc(bucket.connect("gc"))
        assert set(pending) <= set(left(bucket)), number  # it may still go on; one that is committed is completed
        for _ in range(4):  # claims of what was undone are found by the next call, and removed by one that is later
            time.seconds += int(WEEK.total_seconds())
            report = gc(bucket.connect("gc"))
            told |= {(item.kind, item.removed) for item in report.items}
            if SEEN in bucket.values:
                later(bucket.connect("test"))
        assert [key for key in left(bucket) if not key.startswith("__")] == [], number
        assert found(bucket)[1:] == state[1:], number
    assert ("transactions", 1) in told


@pytest.mark.parametrize("beside", [False, True])
def test_what_an_unfinished_plan_wrote_goes_and_the_plan_can_be_run_again(tmp_path: Path, beside: bool) -> None:
    source = tessarr.create_array(tmp_path / "a", data=np.arange(64).reshape(8, 8), chunks=(1, 8))
    store = SQLiteStore(tmp_path / "z.sqlite")
    dest: Any = {"dest": store, "path": "b"} if beside else {"dest": tmp_path / "b"}
    made = plan.rechunk(source, **dest, chunks=(8, 1), memory=4096, strategy="staged")
    made.save(tmp_path / "plan")
    made.run_part(1, 1, stage=1)
    assert made.status().done
    (live,) = gc(tmp_path / "plan").items
    assert (live.kind, live.removed) == ("plan", 0)
    for one in tmp_path.iterdir():
        backdated(one)
    assert gc(tmp_path / "plan", dry_run=True).items[0].removed == 0
    assert made.status().done
    report = gc(tmp_path / "plan", grace=WEEK if not beside else NONE).items[0]
    assert report.removed == report.unused > 0
    again = plan.Plan.load(tmp_path / "plan")
    assert again.status().done == 0
    assert [key for key in store.list() if not key.startswith("__")] == []
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".partial")] == []
    source[0] = 5  # no task has read it
    again.run()
    found = tessarr.open_array(store, path="b") if beside else tessarr.open_array(tmp_path / "b")
    assert found[...].tolist() == source[...].tolist()
    assert gc(tmp_path / "plan", grace=NONE).items[0].unused == 0
    assert found[...].tolist() == source[...].tolist()
