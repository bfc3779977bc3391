"""Every kind of plan: the same bytes, after a cut at any task, by two clients, and not from a source that changed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.core.stored import move as moving
from tessarr.errors import ConflictError, FailedTasksError, UnsupportedOperationError
from tessarr.plan import Plan
from tessarr.plan.kinds import copying
from tessarr.storage import MemoryStore
from tessarr.stores.base import ANY
from tessarr.tools.check import Level
from tessarr.tools.digest import digest
from tessarr.types import JSONObject
from tests.tools.stopping import StoppedError, stop_after

Make: TypeAlias = Callable[[Path, Path], Plan]
"""Makes a plan from a source and a target."""

KINDS: dict[str, Make] = {
    "rechunk": lambda source, dest: tessarr.plan.rechunk(source, dest, chunks=(6, 4), memory=1300),
    "convert": lambda source, dest: tessarr.plan.convert(source, dest, zarr_format=2, memory=2600),
    "copy": tessarr.plan.copy,
}


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Copies of a few chunks each; the memory of a task depends on its threads."""
    monkeypatch.setattr("tessarr.plan.cost.SMALL_BOX", 600)
    with tessarr.config.set({"threading.max_workers": 1}):
        yield


def _source(place: Path) -> Path:
    group = tessarr.create_group(place, attributes={"title": "t"})
    values = np.arange(20 * 12, dtype="i4").reshape(20, 12)
    for name, shards in {"plain": None, "sharded": (8, 12)}.items():
        array = group.create_array(
            name, shape=values.shape, dtype="i4", chunks=(4, 6), shards=shards, attributes={"unit": "m"}
        )
        array[...] = values
    group.create_array("sparse", shape=(40,), dtype="f8", chunks=(3,), fill_value=np.nan)[7:9] = 5
    group.create_group("below").create_array("scalar", shape=(), dtype="u1")[...] = 9
    return place


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return _source(tmp_path / "source.zarr")


def _files(place: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def _same_digest(source: Path, dest: Path) -> bool:
    return digest(tessarr.open_group(dest)).differing(digest(tessarr.open_group(source))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_gives_the_same_values_whole_in_parts_and_after_a_cut_at_any_task(
    kind: str, source: Path, tmp_path: Path
) -> None:
    whole = KINDS[kind](source, tmp_path / "whole.zarr")
    assert whole.tasks == whole.describe().tasks > 4
    whole.run(slots=2)
    assert _same_digest(source, tmp_path / "whole.zarr")
    expected = _files(tmp_path / "whole.zarr")
    for cut in range(1, whole.tasks + 1):
        dest, place = tmp_path / f"{cut}.zarr", tmp_path / f"plan{cut}"
        KINDS[kind](source, dest).save(place)
        with pytest.raises(StoppedError):
            tessarr.plan.load(place).run(progress=stop_after(cut))
        assert not dest.exists()
        assert tessarr.plan.load(place).status().done >= cut  # those that ran besides are kept
        assert tessarr.plan.load(place).run().finished
        assert _files(dest) == expected
    KINDS[kind](source, tmp_path / "parts.zarr").save(tmp_path / "plan")
    for part in (3, 1, 2):
        tessarr.plan.load(tmp_path / "plan").run_part(part, 3)
    tessarr.plan.load(tmp_path / "plan").finish()
    assert _files(tmp_path / "parts.zarr") == expected


@pytest.mark.parametrize("kind", KINDS)
def test_two_clients_may_run_one_plan(kind: str, source: Path, tmp_path: Path) -> None:
    KINDS[kind](source, tmp_path / "dest.zarr").save(tmp_path / "plan")
    first, second = tessarr.plan.load(tmp_path / "plan"), tessarr.plan.load(tmp_path / "plan")
    second_status: list[bool] = []

    def meanwhile(done: int, total: int, what: str) -> None:
        if done == 3:
            second_status.append(second.run().finished)

    assert first.run(progress=meanwhile).finished
    assert second_status == [True]
    assert _same_digest(source, tmp_path / "dest.zarr")
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".partial")] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_of_relative_paths_runs_from_elsewhere(
    kind: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    KINDS[kind](Path(source.name), Path("dest.zarr")).save("plan")
    written = json.loads((tmp_path / "plan" / "plan.json").read_bytes())
    assert all(
        Path(written[place]["url"].removeprefix("file://")).is_absolute() for place in ("source", "target", "work")
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert tessarr.plan.load("../plan").run().finished
    assert _same_digest(source, tmp_path / "dest.zarr")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_changed_is_an_error(kind: str, source: Path, tmp_path: Path) -> None:
    KINDS[kind](source, tmp_path / "dest.zarr").save(tmp_path / "plan")
    tessarr.open_array(source, path="plain", mode="r+").update_attributes({"unit": "km"})
    with pytest.raises(ConflictError, match="source has changed"):
        tessarr.plan.load(tmp_path / "plan").run()


class _StoppedAt:
    """Stops a client at one of the moments before and after each write of a store; then it lets all pass, or nothing where
    the client `dies`."""

    def __init__(self, moment: int, patch: pytest.MonkeyPatch, *, dies: bool = False) -> None:
        self.left, self.dies = moment, dies
        for owner, name in (
            *product(
                (tessarr.storage.LocalStore, tessarr.storage.SQLiteStore),
                ("set", "update", "delete_many", "delete_prefix"),
            ),
            (os, "rename"),
            (shutil, "rmtree"),
            (moving, "exchange_nodes"),
        ):
            patch.setattr(owner, name, self._stopping(getattr(owner, name)))

    def _stopping(self, work: Callable[..., object]) -> Callable[..., object]:
        def stopping(*arguments: object, **options: object) -> object:
            self._moment()
            done = work(*arguments, **options)
            self._moment()
            return done

        return stopping

    def _moment(self) -> None:
        self.left -= 1
        if self.left == 0 or (self.dies and self.left < 0):
            raise StoppedError


@pytest.mark.parametrize("path", ["", "node"])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_client_may_be_stopped_at_any_moment_of_finishing(
    path: str, replaced: bool, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 0
    while True:
        moment += 1
        base, place = tmp_path / str(moment), tmp_path / f"plan{moment}"
        dest = base / path if path else base
        if path:
            tessarr.create_group(base)
        if replaced:
            tessarr.create_group(dest).create_array("old", shape=(3,), dtype="u1")[...] = 1
        if path:
            tessarr.consolidate_metadata(base)
        tessarr.plan.copy(source, base, path=path, overwrite=replaced).save(place)
        tessarr.plan.load(place).run_part(1, 1)
        with monkeypatch.context() as patch:
            stopped = _StoppedAt(moment, patch)
            with contextlib.suppress(StoppedError):
                tessarr.plan.load(place).finish()
            assert stopped.left >= 0
        assert tessarr.plan.load(place).finish().finished
        tessarr.plan.load(place).finish()
        assert _same_digest(source, dest)
        if path:
            listed = tessarr.open_group(base, use_consolidated=True)[path]
            assert digest(listed).differing(digest(tessarr.open_group(dest))) == []
        assert [left.name for left in [*tmp_path.iterdir(), *base.rglob("*")] if left.name.endswith(".partial")] == []
        if stopped.left > 0:
            break
    assert moment > 4


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_client_may_be_stopped_at_any_moment_of_replacing_a_node_where_values_are_moved_one_by_one(
    zarr_format: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tessarr.create_group(tmp_path / "a.zarr", zarr_format=zarr_format, attributes={"title": "t"})
    group.create_array("x", shape=(2,), chunks=(1,), dtype="i4", attributes={"unit": "m"})[...] = 5
    for moment in range(1, 200):
        file, place = tmp_path / f"{moment}.sqlite", tmp_path / f"plan{moment}"
        with tessarr.storage.SQLiteStore(file) as store:
            old = tessarr.create_group(store, path="node", zarr_format=zarr_format)
            old.create_array("x", shape=(2,), dtype="i4")[...] = 1
        tessarr.plan.copy(tmp_path / "a.zarr", f"sqlite:{file}", path="node", overwrite=True).save(place)
        tessarr.plan.load(place).run_part(1, 1)
        with monkeypatch.context() as patch:
            stopped = _StoppedAt(moment, patch)
            with contextlib.suppress(StoppedError):
                tessarr.plan.load(place).finish()
        assert tessarr.plan.load(place).finish().finished
        with tessarr.storage.SQLiteStore(file) as store:
            found = digest(tessarr.open_group(store, path="node"))
            assert found.differing(digest(tessarr.open_group(tmp_path / "a.zarr"))) == []
            assert [key for key in store.list() if ".partial" in key] == []
        if stopped.left > 0:
            assert moment > 12
            return
    pytest.fail("there are more moments than were tried")


@pytest.mark.parametrize("kind", ["local", "renames", "sqlite"])
def test_a_client_may_be_killed_at_any_moment_of_replacing_a_node_that_has_the_same_documents(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = np.arange(1, 7)
    tessarr.create_array(tmp_path / "new", data=new, chunks=(2,))
    for moment in range(1, 200):
        place = tmp_path / f"plan{moment}"
        url = f"sqlite:{tmp_path / f'{moment}.sqlite'}" if kind == "sqlite" else str(tmp_path / str(moment))
        tessarr.create_array(url, name="node", data=np.full_like(new, 9), chunks=(2,))
        tessarr.plan.copy(tmp_path / "new", url, path="node", overwrite=True).save(place)
        tessarr.plan.load(place).run_part(1, 1)
        with monkeypatch.context() as patch:
            if kind == "renames":  # as where a file system cannot exchange names
                patch.setattr(moving, "exchange_nodes", lambda *_: False)
            stopped = _StoppedAt(moment, patch, dies=True)
            with contextlib.suppress(StoppedError):
                tessarr.plan.load(place).finish()
        assert tessarr.plan.load(place).finish().finished
        assert tessarr.open_array(url, path="node", mode="r")[:].tolist() == new.tolist(), moment
        if stopped.left > 0:
            assert moment > 8
            return
    pytest.fail("there are more moments than were tried")


@pytest.mark.parametrize("kind", ["local", "sqlite"])
def test_what_another_client_creates_while_the_old_node_is_replaced_is_not_taken_for_the_result(
    kind: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:{tmp_path / 'b.sqlite'}" if kind == "sqlite" else str(tmp_path / "b")
    tessarr.create_array(url, name="node", data=[1, 2])
    tessarr.plan.copy(source, url, path="node", overwrite=True).save(tmp_path / "plan")
    tessarr.plan.load(tmp_path / "plan").run_part(1, 1)

    def stop(store: Any, new: str, path: str, old_is_away: Callable[[], object], owner: str | None) -> None:
        old_is_away()
        tessarr.create_array(store, name=path, data=[3, 4], overwrite=True)
        raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr(moving, "exchange_nodes", lambda *_: False)
        patch.setattr(moving, "move_over", stop)
        with pytest.raises(StoppedError):
            tessarr.plan.load(tmp_path / "plan").finish()
    assert tessarr.plan.load(tmp_path / "plan").finish().finished
    found = digest(tessarr.open_group(url, path="node", mode="r"))
    assert found.differing(digest(tessarr.open_group(source, mode="r"))) == []


# -- copies --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_copy_holds_the_same_objects(zarr_format: int, tmp_path: Path) -> None:
    group = tessarr.create_group(tmp_path / "a.zarr", zarr_format=zarr_format)
    group.create_array("x", shape=(9, 5), dtype="f4", chunks=(2, 2))[...] = 1.5
    tessarr.consolidate_metadata(tmp_path / "a.zarr")
    tessarr.plan.copy(tmp_path / "a.zarr", tmp_path / "b.zarr").run()
    source, made = _files(tmp_path / "a.zarr"), _files(tmp_path / "b.zarr")
    assert made.keys() == source.keys()
    assert {key: made[key] for key in made if "x/" in key} == {key: source[key] for key in source if "x/" in key}
    opened = tessarr.open_group(tmp_path / "b.zarr", use_consolidated=True)["x"]
    assert isinstance(opened, tessarr.Array)
    assert opened[8, 4] == 1.5


def test_an_absent_chunk_is_absent_in_the_copy_whatever_a_stopped_writer_left(source: Path, tmp_path: Path) -> None:
    left = tmp_path / "dest.zarr" / "sparse" / "c" / "0"
    store = tessarr.storage.LocalStore(tmp_path / "all")
    store.set("dest/sparse/c/0", b"what a stopped writer left")
    tessarr.plan.copy(source, store, path="dest").run()
    assert not store.exists("dest/sparse/c/0")
    assert not left.exists()
    assert np.isnan(tessarr.open_array(store, path="dest/sparse")[:3]).all()


class _Changing(MemoryStore):
    """A store whose values change after they are set."""

    def set(self, key, value, **options):  # type: ignore[no-untyped-def]
        return super().set(key, bytes(value)[:-1] + b"?" if "/c/" in key else value, **options)


def test_a_copied_value_that_reads_back_differently_is_an_error(source: Path) -> None:
    with pytest.raises(FailedTasksError, match="differs from the source"):
        tessarr.plan.copy(source, _Changing(), path="a").run(retries=0)
    assert tessarr.plan.copy(source, _Changing(), path="a", verify=False).run().finished


def test_other_formats_and_storage_transformers_are_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(UnsupportedOperationError, match="only Zarr data"):
        tessarr.plan.copy(tmp_path / "a.npy", tmp_path / "b.zarr")


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), max_size=3), st.integers(1, 300))
def test_every_stored_value_of_any_array_is_copied_once(axes: list[tuple[int, int]], nbytes: int) -> None:
    shape, chunks = tuple(n for n, _ in axes), tuple(size for _, size in axes)
    source, target = MemoryStore(), MemoryStore()
    array = tessarr.create_array(source, name="a", shape=shape, chunks=chunks, dtype="u2")
    array[...] = np.arange(1, array.size + 1, dtype="u2").reshape(shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tessarr.plan.cost.SMALL_BOX", nbytes)
        plan = tessarr.plan.copy(array, target, path="a")
    names = [
        name
        for number in range(plan.tasks)
        for node, box in [plan._manifest.locate(number)]
        if node.tiling is not None
        for name in copying._names(array._metadata, node.tiling.box(box))
    ]
    assert len(names) == len(set(names))
    plan.run()
    assert dict(target.items()) == dict(source.items())


# -- plans that write nothing --------------------------------------------------------------------------------------------

FINDING: dict[str, Make] = {
    "digest": lambda source, _: tessarr.plan.digest(source),
    "check": lambda source, _: tessarr.plan.check(source, data="decode"),
}
FOUND: dict[str, Callable[[Path], JSONObject]] = {
    "digest": lambda source: digest(tessarr.open_group(source)).to_json(),
    "check": lambda source: tessarr.tools.check.check(source, data="decode").to_json(),
}


def _sorted(found: JSONObject) -> JSONObject:
    """The findings of a check in one order."""
    return {name: sorted(map(str, value)) if isinstance(value, list) else value for name, value in found.items()}


def _damage(source: Path) -> None:
    """Something wrong of every kind, so that a check has findings."""
    chunks = sorted(path for path in (source / "plain" / "c").rglob("*") if path.is_file())
    chunks[0].write_bytes(b"")
    chunks[3].write_bytes(b"no chunk")
    for stray in ("plain/c/99/0", "plain/stray", "sparse/c/x.partial", "below/what"):
        (source / stray).parent.mkdir(exist_ok=True, parents=True)
        (source / stray).write_bytes(b"?")


def test_a_plan_digests_text_without_dimensions() -> None:
    text = tessarr.create_array({}, shape=(), dtype="string")
    text[...] = "abc"
    plan = tessarr.plan.digest(text)
    assert plan.run().finished
    text[...] = "abd"
    again = tessarr.plan.digest(text)
    assert again.run().finished
    assert again.result() != plan.result()


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks for the arrays here; digests are others then."""
    monkeypatch.setattr("tessarr.tools.digest.BLOCK_ELEMENTS", 60)
    monkeypatch.setattr("tessarr.plan.kinds.checking._CHUNKS", 2)


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("kind", FINDING)
def test_what_a_plan_finds_is_the_same_after_a_cut_at_any_task_and_by_two_clients(
    kind: str, source: Path, tmp_path: Path
) -> None:
    if kind == "check":
        _damage(source)
    expected = _sorted(FOUND[kind](source))
    whole = FINDING[kind](source, tmp_path)
    with pytest.raises(UnsupportedOperationError, match="not finished"):
        whole.result()
    assert whole.run(slots=2).finished
    assert _sorted(whole.result().to_json()) == expected
    assert whole.tasks > 8
    for cut in range(1, whole.tasks + 1):
        place = tmp_path / f"plan{cut}"
        FINDING[kind](source, tmp_path).save(place)
        with pytest.raises(StoppedError):
            tessarr.plan.load(place).run(progress=stop_after(cut))
        other = tessarr.plan.load(place)
        assert other.status().done >= cut  # those that ran besides are kept
        tessarr.plan.load(place).run_part(2, 2)
        assert other.run().finished
        assert _sorted(tessarr.plan.load(place).result().to_json()) == _sorted(other.result().to_json()) == expected


@pytest.mark.parametrize("kind", FINDING)
def test_a_plan_that_writes_nothing_notices_a_source_that_changed(kind: str, source: Path, tmp_path: Path) -> None:
    FINDING[kind](source, tmp_path).save(tmp_path / "plan")
    tessarr.open_array(source, path="plain", mode="r+").update_attributes({"unit": "km"})
    with pytest.raises(ConflictError, match="source has changed"):
        tessarr.plan.load(tmp_path / "plan").run()


def test_a_plan_that_writes_has_no_result(source: Path) -> None:
    plan = tessarr.plan.copy(source, MemoryStore(), path="a")
    plan.run()
    with pytest.raises(UnsupportedOperationError, match="a plan that writes has no result"):
        plan.result()


def test_the_verb_digest_prints_what_the_plan_and_the_function_find(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = digest(tessarr.open_group(source))
    assert main(["digest", str(source)]) == 0
    assert capsys.readouterr().out == f"{expected}\n"
    assert main(["plan", "digest", str(source), "--save", str(tmp_path / "plan")]) == 0
    assert main(["run", str(tmp_path / "plan"), "--part", "1/1"]) == 0
    capsys.readouterr()
    assert main(["finish", str(tmp_path / "plan"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"] == expected.to_json()


@pytest.mark.parametrize("level", [None, "stat", "size", "decode"])
def test_a_check_finds_the_same_at_every_level_in_any_number_of_tasks(
    level: Level | None, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _damage(source)
    tessarr.create_array(source, name="empty", shape=(0, 3), dtype="u1", config={"write_empty_chunks": True})
    (source / "empty" / "stray").write_bytes(b"?")
    expected = tessarr.tools.check.check(source, data=level).to_json()
    assert len(list(expected["findings"])) > (0 if level is None else 4)
    for chunks in (1, 3, 10**6):
        monkeypatch.setattr("tessarr.plan.kinds.checking._CHUNKS", chunks)
        plan = tessarr.plan.check(source, data=level)
        plan.run()
        assert _sorted(plan.result().to_json()) == _sorted(expected)
    assert list(plan.result().to_json().items()) == list(expected.items()), "one task per array: in the same order too"


def test_the_verb_that_checks_in_parts_ends_with_1_where_there_are_findings(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "check", str(source), "--data=decode", "--save", str(tmp_path / "plan")]) == 0
    assert main(["run", str(tmp_path / "plan")]) == 0
    _damage(source)
    assert main(["plan", "check", str(source), "--data=decode", "--save", str(tmp_path / "other")]) == 0
    assert main(["run", str(tmp_path / "other")]) == 1
    assert "CHUNK-EMPTY" in capsys.readouterr().out


def test_the_verb_run_takes_the_address_of_a_dask_scheduler(source: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="belongs to the extra [dask]")
    tessarr.plan.copy(source, tmp_path / "dest.zarr").save(tmp_path / "plan")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as cluster:
        assert main(["run", str(tmp_path / "plan"), "--dask", cluster.scheduler_address]) == 0
    assert _same_digest(source, tmp_path / "dest.zarr")


def test_control_c_stops_a_plan_and_says_how_to_go_on(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan"
    tessarr.plan.copy(source, tmp_path / "dest.zarr").save(plan)

    def interrupted(done: int, total: int, what: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tessarr.cli.verbs.plans.run.bar", lambda **_: contextlib.nullcontext(interrupted))
        assert main(["run", str(plan)]) == 130
        assert f"Go on with: tessarr run {plan}\n" in capsys.readouterr().err
        assert tessarr.plan.load(plan).status().done >= 2
        tessarr.plan.copy(source, tmp_path / "other.zarr").save(tmp_path / "other")
        assert main(["run", str(tmp_path / "other"), "--part", "1/1", "--stage", "1"]) == 130
        assert "other --part 1/1 --stage 1\n" in capsys.readouterr().err
        patch.setattr("tessarr.cli.at_once.bar", lambda **_: contextlib.nullcontext(interrupted))
        before = sorted(path.name for path in tmp_path.iterdir())
        assert main(["copy", str(source), str(tmp_path / "other.zarr")]) == 130
        assert sorted(path.name for path in tmp_path.iterdir()) == before, "nothing is left"
    assert main(["run", str(plan)]) == 0
    assert _same_digest(source, tmp_path / "dest.zarr")


def test_control_c_while_the_command_starts_is_the_same_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tessarr.cli.parser", interrupted)
    assert main(["run", "plan"]) == 130


def test_a_task_that_fails_names_the_chunk_that_it_could_not_read(source: Path, tmp_path: Path) -> None:
    (source / "plain" / "c" / "1" / "0").write_bytes(b"")
    plan = tessarr.plan.rechunk(source, tmp_path / "dest.zarr", compressors=None)
    with pytest.raises(FailedTasksError, match=r"task \d+: \w+Error: .*path '/plain'.*chunk \(1, 0\)"):
        plan.run(retries=0)


# -- conversions ---------------------------------------------------------------------------------------------------------


def test_a_file_is_converted_as_tasks_that_other_processes_may_carry_out(tmp_path: Path) -> None:
    values = np.arange(600, dtype=">f8").reshape(30, 20)
    np.save(tmp_path / "a.npy", values)
    plan = tessarr.plan.convert(tmp_path / "a.npy", tmp_path / "a.zarr", chunks=(7, 20), memory=20_000)
    plan.save(tmp_path / "plan")
    assert tessarr.plan.load(tmp_path / "plan").run().finished
    assert (tessarr.open_array(tmp_path / "a.zarr")[...] == values).all()


def test_the_command_line_plans_conversions_with_the_options_of_the_verb_convert(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [str(source), "--format", "2", "--chunks", "5,5", "--compressor", "zstd:3", "--rename", "plain=other"]
    plan, dest = str(tmp_path / "plan"), tmp_path / "dest.zarr"
    assert main(["plan", "convert", *options, str(dest), "--memory", "1MB", "--save", plan]) == 0
    assert main(["run", plan]) == 0
    assert main(["convert", *options, str(tmp_path / "expected.zarr")]) == 0
    assert _files(dest) == _files(tmp_path / "expected.zarr")
    assert {"other", "sharded"} < {path.name for path in dest.iterdir()}


def test_a_conversion_writes_consolidated_metadata_where_wanted(source: Path, tmp_path: Path) -> None:
    tessarr.plan.convert(source, tmp_path / "b.zarr", zarr_format=2, consolidate=True, exclude=["below"]).run()
    assert (tmp_path / "b.zarr" / ".zmetadata").exists()
    assert not (tmp_path / "b.zarr" / "below").exists()


# -- the command line ----------------------------------------------------------------------------------------------------


def test_the_verbs_copy_and_rechunk_carry_their_plans_out_at_once(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["copy", str(source), str(tmp_path / "b.zarr"), "--jobs", "2"]) == 0
    assert capsys.readouterr().out.endswith("finished\n")
    assert _same_digest(source, tmp_path / "b.zarr")
    assert main(["rechunk", str(source), str(tmp_path / "c.zarr"), "--chunks", "5,5", "--dry-run"]) == 0
    assert "rechunk: " in capsys.readouterr().out
    assert not (tmp_path / "c.zarr").exists()
    assert main(["rechunk", str(source), str(tmp_path / "c.zarr"), "--chunks", "5,5"]) == 0
    assert tessarr.open_array(tmp_path / "c.zarr", path="plain").chunks == (5, 5)
    assert main(["plan", "copy", str(source), str(tmp_path / "b.zarr"), "--dry-run"]) == 2
    assert "something is at the destination" in capsys.readouterr().err


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_group_that_another_client_is_creating_is_not_taken_for_that_of_a_plan(zarr_format: Any) -> None:
    """Its document is equal, and is removed again by the one who has created it, which finds the claim of the plan."""
    document = "n/zarr.json" if zarr_format == 3 else "n/.zgroup"

    class Raced(MemoryStore):
        """Another client stores the document just before the plan does."""

        raced = False

        def set(self, key: str, value: Any, *, if_match: Any = ANY) -> Any:
            if key == document and if_match is None and not self.raced:
                self.raced = True
                super().set(key, value)
            return super().set(key, value, if_match=if_match)

    source, store = tessarr.create_group(MemoryStore(), zarr_format=zarr_format), Raced()
    source.create_array("x", data=[1, 2])
    tessarr.create_group(store, zarr_format=zarr_format)
    with pytest.raises(ConflictError, match="another client has created a node at the target"):
        tessarr.plan.copy(source, store, path="n").run()
    assert store.raced
    assert [key for key in store.list() if "x/" in key and key.endswith((".zarray", "zarr.json", ".zattrs"))] == []
    assert document in store
