"""What clients that were killed were writing does not come into the result, and a client that goes on cannot write there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.core.claims.intents import CLAIM
from tessarr.errors import ConflictError
from tessarr.plan import Plan
from tessarr.storage import LocalStore, MemoryStore
from tessarr.stores.local.lock import is_hidden, temporary_name
from tessarr.tools.digest import digest
from tessarr.tools.gc import gc

PLACES: dict[str, Callable[[Path, Path], Plan]] = {
    "a path": lambda source, base: tessarr.plan.copy(source, base),
    "a path that is replaced": lambda source, base: tessarr.plan.copy(source, base, overwrite=True),
    "a node": lambda source, base: tessarr.plan.copy(source, base, path="node"),
    "a node that is replaced": lambda source, base: tessarr.plan.copy(source, base, path="node", overwrite=True),
    "a store": lambda source, base: tessarr.plan.copy(source, LocalStore(base)),
    "a node of a store": lambda source, base: tessarr.plan.copy(source, LocalStore(base), path="node"),
    "staged": lambda source, base: tessarr.plan.rechunk(
        source, base, path="node", chunks=(-1, 2), memory="2kB", strategy="staged"
    ),
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with tessarr.config.set({"threading.max_workers": 1}):  # the memory of a task depends on its threads
        yield


def _source(place: Path) -> Path:
    array = tessarr.create_group(place).create_array("a", shape=(16, 8), chunks=(2, 8), dtype="i4")
    array[...] = np.arange(16 * 8).reshape(16, 8)
    return place


def _planned(kind: str, tmp_path: Path) -> tuple[Plan, Path]:
    base = tmp_path / "base"
    if "replaced" in kind:
        path = "node" if "node" in kind else ""
        tessarr.create_group(base / path if path else base).create_array("old", shape=(3,), dtype="u1")[...] = 1
    return PLACES[kind](_source(tmp_path / "source"), base), base / (
        "node" if "node" in kind or kind == "staged" else ""
    )


def _chunks(tmp_path: Path) -> list[Path]:
    """List the directories, where tasks have written, that hold chunks."""
    found = {path.parent for path in tmp_path.rglob("*") if path.is_file() and "c" in path.relative_to(tmp_path).parts}
    return [path for path in found if not path.is_relative_to(tmp_path / "source") and "plan" not in path.parts]


def _hidden(tmp_path: Path) -> list[str]:
    names = (path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if is_hidden(path.name))
    return sorted(names)


@pytest.mark.parametrize("kind", PLACES)
def test_half_written_files_of_killed_clients_do_not_come_into_the_result(kind: str, tmp_path: Path) -> None:
    plan, dest = _planned(kind, tmp_path)
    plan.save(tmp_path / "plan")
    assert tessarr.plan.load(tmp_path / "plan").run_part(1, 1).missing == 0
    folders = _chunks(tmp_path)
    assert folders
    for folder in folders:
        (folder / temporary_name("0")).write_bytes(b"half")
        (folder / ".0.1a2b-0-3c.tessarr-tmp").write_bytes(b"")
        (folder / ".0.tessarr-lock").touch()
    assert tessarr.plan.load(tmp_path / "plan").finish().finished
    assert _hidden(tmp_path) == []
    assert digest(tessarr.open_group(dest)).differing(digest(tessarr.open_group(tmp_path / "source"))) == []


def test_half_written_files_of_killed_clients_do_not_come_into_a_pyramid(tmp_path: Path) -> None:
    group = tessarr.create_group(tmp_path / "base")
    group.create_array("0", shape=(16, 16), chunks=(4, 4), dtype="u1")[...] = 7
    tessarr.plan.pyramid(group, "0", levels=2).save(tmp_path / "plan")
    before = {path for path in tmp_path.rglob("*") if path.is_dir()}
    tessarr.plan.load(tmp_path / "plan").run_part(1, 1)
    for folder in {path for path in (tmp_path / "base").rglob("*") if path.is_dir()} - before:
        (folder / temporary_name("0")).write_bytes(b"half")
    assert len(_hidden(tmp_path)) > 2
    assert tessarr.plan.load(tmp_path / "plan").finish().finished
    assert _hidden(tmp_path) == []
    assert (np.asarray(tessarr.open_group(tmp_path / "base")["2"][...]) == 7).all()  # type: ignore[index]


@pytest.mark.parametrize("kind", PLACES)
def test_a_writer_of_the_result_keeps_its_file_when_finish_is_repeated(kind: str, tmp_path: Path) -> None:
    plan, dest = _planned(kind, tmp_path)
    plan.save(tmp_path / "plan")
    assert plan.run().finished
    held = dest / "a" / "c" / temporary_name("0")
    held.write_bytes(b"being written")
    assert tessarr.plan.load(tmp_path / "plan").finish().finished
    assert held.read_bytes() == b"being written"


@pytest.mark.parametrize("kind", PLACES)
def test_a_client_that_goes_on_after_the_end_changes_nothing_and_is_cleared_away(kind: str, tmp_path: Path) -> None:
    plan, dest = _planned(kind, tmp_path)
    plan.save(tmp_path / "plan")
    late = tessarr.plan.load(tmp_path / "plan")
    late._opened()
    assert plan.run().finished
    before = {path: path.stat().st_ino for path in dest.rglob("*")}
    late._opened().run(task=0)
    assert {path: path.stat().st_ino for path in dest.rglob("*")} == before
    assert late.finish().finished
    assert [path.name for path in tmp_path.rglob("*") if ".partial" in path.name] == []


def _remove(plan: Path, tmp_path: Path) -> None:
    for path in list(tmp_path.rglob("*.partial")):
        shutil.rmtree(path)


def _collect(plan: Path, tmp_path: Path) -> None:
    gc(tmp_path / "base", grace=timedelta(0))


def _discard(plan: Path, tmp_path: Path) -> None:
    tessarr.plan.load(plan).discard()


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("lose", [_remove, _discard])
@pytest.mark.parametrize("kind", PLACES)
def test_a_plan_is_not_finished_where_what_its_tasks_wrote_was_removed(
    kind: str, lose: Callable[[Path, Path], None], parts: int, tmp_path: Path
) -> None:
    plan, _ = _planned(kind, tmp_path)
    plan.save(tmp_path / "plan")
    tessarr.plan.load(tmp_path / "plan").run_part(parts, parts)
    before = sorted(path for path in (tmp_path / "base").rglob("*") if ".partial" not in str(path))
    lose(tmp_path / "plan", tmp_path)
    for _ in range(2):
        with pytest.raises(ConflictError, match="has removed or replaced what the tasks wrote"):
            tessarr.plan.load(tmp_path / "plan").run()
    assert not tessarr.plan.load(tmp_path / "plan").status().finished
    assert sorted(path for path in (tmp_path / "base").rglob("*") if ".partial" not in str(path)) == before


@pytest.mark.parametrize("lose", [_remove, _discard, _collect])
@pytest.mark.parametrize("stage", [1, 2])
def test_nor_is_a_pyramid(lose: Callable[[Path, Path], None], stage: int, tmp_path: Path) -> None:
    group = tessarr.create_group(tmp_path / "base")
    group.create_array("0", shape=(16, 16), chunks=(4, 4), dtype="u1")[...] = 7
    tessarr.plan.pyramid(group, "0", levels=2).save(tmp_path / "plan")
    for number in range(stage):
        tessarr.plan.load(tmp_path / "plan").run_part(1, 1, stage=number + 1)
    lose(tmp_path / "plan", tmp_path)
    with pytest.raises(ConflictError, match="has removed or replaced what the tasks wrote"):
        tessarr.plan.load(tmp_path / "plan").run()
    assert list(group.array_keys()) == ["0"]


def test_nor_is_one_whose_work_in_a_hierarchy_was_collected(tmp_path: Path) -> None:
    plan, _ = _planned("a node that is replaced", tmp_path)
    plan.save(tmp_path / "plan")
    tessarr.plan.load(tmp_path / "plan").run_part(2, 2)
    gc(tmp_path / "base", grace=timedelta(0))
    with pytest.raises(ConflictError, match="has removed or replaced what the tasks wrote"):
        tessarr.plan.load(tmp_path / "plan").run()


def test_nor_is_one_that_writes_to_its_target_in_memory(tmp_path: Path) -> None:
    store = MemoryStore()
    plan = tessarr.plan.copy(_source(tmp_path / "source"), store)
    plan.run_part(1, 1)
    store.delete_prefix("")
    with pytest.raises(ConflictError, match="has removed or replaced what the tasks wrote"):
        plan.finish()
    plan = tessarr.plan.rechunk(tmp_path / "source", store, chunks=(1, 8), memory="500B")
    assert plan.run_part(2, 2).missing
    store.delete_prefix("")
    with pytest.raises(ConflictError, match="has removed or replaced what the tasks wrote"):
        plan.run()


@pytest.mark.parametrize("kind", PLACES)
def test_no_claim_is_left(kind: str, tmp_path: Path) -> None:
    plan, dest = _planned(kind, tmp_path)
    plan.save(tmp_path / "plan")
    plan.run()
    assert list(dest.rglob(CLAIM)) == []
