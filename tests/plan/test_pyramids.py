"""Plans of pyramids: the levels of `build_pyramid`, whatever disturbs them, in any order that the levels allow."""

from __future__ import annotations

import contextlib
import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.errors import ConflictError, ContainsArrayError, FailedTasksError, UnsupportedOperationError
from tessarr.plan import Plan
from tessarr.plan.strategies.level_boxes import in_level, needs, stages_of
from tessarr.plan.tiling import tiled
from tessarr.storage import MemoryStore, ZipStore
from tessarr.tools.digest import digest
from tessarr.tools.pyramid import build_pyramid
from tessarr.tools.pyramid.grid import level_grid
from tessarr.tools.pyramid.levels import plan as planned_levels
from tessarr.tools.pyramid.pieces import piece
from tessarr.tools.pyramid.reduce import METHODS, Method, halo
from tests.narrow import array_of
from tests.plan.test_kinds import _files, _StoppedAt
from tests.plan.test_strategies import _Counting, _Ranged
from tests.tools.stopping import StoppedError, stop_after

VALUES = np.random.default_rng(8).integers(0, 90, (30, 44)).astype("f4")


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("tessarr.plan.cost.SMALL_BOX", 0)
    with tessarr.config.set({"threading.max_workers": 1}):
        yield


def _image(place: Any, **layout: Any) -> tessarr.Group:
    group = tessarr.create_group(place, attributes={"title": "t"})
    group.create_array("0", data=VALUES, dimension_names=("y", "x"), fill_value=0, **(layout or {"chunks": (4, 4)}))
    return group


def _reopened(group: tessarr.Group) -> tessarr.Group:
    return tessarr.open_group(group.store, path=group.path)


def _planned(group: Any, **options: Any) -> Plan:
    chosen: dict[str, Any] = {"levels": 2, "memory": 4000, "convention": "ome-0.5"} | options
    return tessarr.plan.pyramid(group, "0", **chosen)


def _expected(**options: Any) -> object:
    layout = options.pop("layout", {})
    group = _image({}, **layout)
    chosen: dict[str, Any] = {"levels": 2, "convention": "ome-0.5"} | options
    build_pyramid(group, "0", **chosen)
    return digest(group)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "layout",
    [
        {"chunks": (4, 4)},
        {"chunks": (3, 5)},
        {"chunks": (2, 4), "shards": (6, 8)},
        {"chunks": ((13, 7, 10), (40, 4))},
        {"chunks": (4, 4), "shards": ((8, 12, 12), (44,))},
    ],
)
def test_levels_are_those_of_the_function(method: Method, layout: dict[str, Any]) -> None:
    group = _image({}, **layout)
    plan = _planned(group, method=method, missing=0, factors=(2, 3), memory=60_000)
    assert plan.run(slots=2).finished
    group = _reopened(group)
    assert digest(group) == _expected(layout=layout, method=method, missing=0, factors=(2, 3))
    assert group.attrs["ome"]["multiscales"][0]["datasets"][2]["path"] == "2"


@pytest.mark.parametrize("convention", ["multiscales-0.1", "ome-0.5", "zarr-conventions"])
def test_every_convention_is_written_as_the_function_does(convention: Any) -> None:
    group = _image({})
    _planned(group, convention=convention, missing=float("nan")).run()
    assert digest(_reopened(group)) == _expected(convention=convention, missing=float("nan"))


def test_a_label_image_is_listed_and_never_mixed() -> None:
    labels = tessarr.create_group(MemoryStore()).create_group("labels")
    image = labels.create_group("cells")
    image.create_array("0", data=VALUES.astype("u2"), chunks=(4, 4), dimension_names=("y", "x"))
    _planned(image, labels=True, scale=(0.5, 0.25)).run()
    assert _reopened(labels).attrs["ome"] == {"version": "0.5", "labels": ["cells"]}
    assert set(np.unique(array_of(image["1"])[...])) <= set(np.unique(VALUES))
    with pytest.raises(ValueError, match="labels that do not exist"):
        _planned(image, labels=True, method="mean", overwrite=True)


# -- tasks -------------------------------------------------------------------------------------------------------------


@st.composite
def _pyramids(draw: st.DrawFn) -> tuple[Any, list[Any], Method]:
    """An array with a regular or rectilinear grid, the levels of a pyramid of it, and a method."""
    method: Method = draw(st.sampled_from(METHODS))
    factors = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    shape = tuple(draw(st.integers(2, 20)) for _ in factors)
    if draw(st.booleans()):
        chunks: Any = tuple(draw(st.integers(1, 5)) for _ in shape)
    else:
        chunks = []
        for length in shape:
            ends = sorted({*draw(st.lists(st.integers(1, length), max_size=4)), length})
            chunks.append(tuple(np.diff([0, *ends]).tolist()))
    base = tessarr.create_array({}, shape=shape, chunks=tuple(chunks), dtype="i2")
    try:
        levels = planned_levels("0", shape, tuple(factors), count=draw(st.integers(1, 3)), min_size=1, names=None)
    except ValueError:
        levels = []
    return base, levels, method


@given(_pyramids(), st.data())
def test_each_shard_of_every_level_has_one_owner_and_its_task_waits_for_all_that_it_reads(
    pyramid: Any, data: st.DataObject
) -> None:
    base, levels, method = pyramid
    if not levels:
        return
    grids = [level_grid(base, level.total).axes(level.shape) for level in levels[1:]]
    tilings = [tiled(axes, [data.draw(st.integers(1, 9)) for _ in axes]) for axes in grids]
    stages = stages_of(tilings, levels, method)
    covered = [np.full(level.shape, -1) for level in levels]
    blocks = {}
    for task in range(stages.count):
        block, stage, whole = stages.locate(task)
        level = levels[stage + 1]
        box = in_level(whole, level.total)
        assert box in [tilings[stage].box(number) for number in range(tilings[stage].count)]
        assert (covered[stage + 1][box] == -1).all()
        covered[stage + 1][box], blocks[task] = task, block
    assert all((one >= 0).all() for one in covered[1:])
    for task in range(stages.count):
        _, stage, whole = stages.locate(task)
        level = levels[stage + 1]
        margins = [halo(method, factor) for factor in level.factors]
        read = tuple(
            slice(max(0, part.start * factor - low), part.stop * factor + high)
            for part, factor, (low, high) in zip(in_level(whole, level.total), level.factors, margins, strict=True)
        )
        waits = sorted(needs(stages, levels, method, task))
        assert waits == ([] if stage == 0 else sorted(set(covered[stage][read].ravel().tolist())))
        assert {blocks[one] for one in waits} <= {blocks[task]}


def test_a_level_does_not_wait_for_the_whole_level_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessarr.plan.executors.CALL_SECONDS", -1.0)  # as if each task were long
    plan, stages = _planned(_image({}), method="gaussian"), []
    strategy = plan._manifest.nodes[0].strategy
    assert strategy is not None

    def note(_done: int, _total: int, what: str) -> None:
        stages.append(strategy.stages.locate(int(what.removeprefix("task "))).stage)

    plan.run(progress=note)
    counts = [array.tasks for array in plan.describe().arrays]
    assert plan.describe().arrays[0].blocks == 1
    assert len(stages) == plan.tasks == sum(counts)
    assert 2 < stages.index(1) < counts[0] - 2


def test_a_task_that_fails_stops_those_that_read_what_it_would_write(monkeypatch: pytest.MonkeyPatch) -> None:
    group = _image({})
    plan = _planned(group)

    def broken(source: Any, box: Any, *rest: Any) -> Any:
        if source.path == "0" and box[0].start == box[1].start == 0:
            raise OSError("a disk")
        return piece(source, box, *rest)

    monkeypatch.setattr("tessarr.plan.kinds.pyramids.piece", broken)
    with pytest.raises(FailedTasksError, match=r"1 of \d+ tasks failed"):
        plan.run(retries=0)
    left = plan.status().missing
    assert 1 < left < plan.tasks / 2
    assert "1" not in group
    monkeypatch.undo()
    assert plan.run().finished
    assert digest(_reopened(group)) == _expected()


def test_memory_is_bounded_and_predicted() -> None:
    with tessarr.config.set({"threading.max_workers": 1}):
        group = tessarr.create_group({})
        array = group.create_array("0", shape=(2048, 2048), dtype="u2", chunks=(256, 256), compressors=None)
        array[...] = np.arange(2048, dtype="u2")
        build = tessarr.plan.pyramid(group, "0", levels=2, memory=12_000_000)
        predicted = build.describe().peak_memory
        tracemalloc.start()
        build.run()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    held = sum(array_of(group[name]).nbytes for name in ("1", "2"))  # the store is in memory
    assert peak - held <= predicted <= 12_000_000
    with pytest.raises(tessarr.errors.BaseZarrError, match="more memory than it may use"):
        tessarr.plan.pyramid(group, "0", levels=2, memory=100_000, overwrite=True)


@pytest.mark.parametrize("method", ["mean", "gaussian"])
@pytest.mark.parametrize("layout", [{"chunks": (4, 4)}, {"chunks": (7, 3)}, {"chunks": ((13, 7, 10), (40, 4))}])
@pytest.mark.parametrize("memory", [30_000, 100_000])
def test_chunks_and_objects_are_as_predicted(method: Method, layout: dict[str, Any], memory: int) -> None:
    store = MemoryStore()
    _image(store, **layout)
    counting = _Counting(store)
    plan = _planned(tessarr.open_group(counting, mode="r+"), method=method, memory=memory, verify=False)
    predicted = {array.path: array for array in plan.describe().arrays}
    plan.run()
    for name, array in predicted.items():
        read = [key for key in counting.read if key.startswith(f"{int(name) - 1}/c/")]
        assert len(read) == array.chunks_read
    for name, array in predicted.items():
        keys = [key for key in store.list_prefix(f"{name}/") if not key.endswith(".json")]
        assert len(keys) == array.objects


@pytest.mark.parametrize("shards", [None, (256, 256)])
def test_chunks_are_read_once_also_where_memory_is_small_and_requests_are_as_predicted(
    shards: tuple[int, int] | None,
) -> None:
    store = MemoryStore()
    image = tessarr.create_group(store).create_array(
        "0", shape=(512, 512), chunks=(64, 64), shards=shards, dtype="u2", dimension_names=("y", "x")
    )
    image[...] = np.random.default_rng(0).integers(0, 1000, image.shape)
    counting = _Ranged(store)
    memory = (
        700_000 if shards else 100_000
    )  # reducing a chunk at once takes more than the quarter of it that is for that
    plan = _planned(tessarr.open_group(counting, mode="r+"), method="mean", memory=memory, verify=False)
    predicted = plan.describe().arrays
    plan.run()
    assert [array.amplification for array in predicted] == [1.0, 1.0]
    for array in predicted:
        read = [key for key in counting.read if key.startswith(f"{int(array.path) - 1}/c/")]
        assert len(read) == array.requests - array.objects
    expected = image[...]
    for name in ("1", "2"):
        sides = expected.shape[0] // 2
        expected = np.rint(expected.reshape(sides, 2, sides, 2).mean((1, 3))).astype("u2")
        assert (array_of(tessarr.open_group(store)[name])[...] == expected).all()


# -- disturbed ---------------------------------------------------------------------------------------------------------


def test_a_plan_gives_the_same_bytes_whole_in_parts_by_stages_and_after_a_cut_at_any_task(tmp_path: Path) -> None:
    whole = _planned(_image(tmp_path / "whole"))
    whole.run(slots=2)
    expected = _files(tmp_path / "whole")
    for cut in range(1, whole.tasks + 1, 5):
        dest, place = tmp_path / f"{cut}", tmp_path / f"plan{cut}"
        _planned(_image(dest)).save(place)
        with pytest.raises(StoppedError):
            tessarr.plan.load(place).run(progress=stop_after(cut))
        assert sorted(tessarr.open_group(dest).keys()) == ["0"]
        assert "ome" not in tessarr.open_group(dest).attrs
        assert tessarr.plan.load(place).status().done >= cut
        assert tessarr.plan.load(place).run().finished
        assert _files(dest) == expected
    _planned(_image(tmp_path / "parts")).save(tmp_path / "plan")
    for part in (3, 1, 2):
        tessarr.plan.load(tmp_path / "plan").run_part(part, 3)
    assert tessarr.plan.load(tmp_path / "plan").finish().finished
    assert _files(tmp_path / "parts") == expected
    _planned(_image(tmp_path / "stages")).save(tmp_path / "staged")
    with pytest.raises(FailedTasksError, match="stage 1 is not done"):
        tessarr.plan.load(tmp_path / "staged").run_part(1, 2, stage=2)
    for stage, part in product((1, 2), (2, 1)):
        tessarr.plan.load(tmp_path / "staged").run_part(part, 2, stage=stage)
    assert tessarr.plan.load(tmp_path / "staged").finish().finished
    assert _files(tmp_path / "stages") == expected


def test_blocks_are_dealt_to_parts(tmp_path: Path) -> None:
    place = tmp_path / "plan"
    _planned(_image(tmp_path / "a")).save(place)
    done = []
    for part in (1, 2):
        before = tessarr.plan.load(place).status().done
        done.append(tessarr.plan.load(place).run_part(part, 2).done - before)
    assert min(done) > 5
    assert sum(done) == tessarr.plan.load(place).tasks
    assert _planned(_image(tmp_path / "b"), method="gaussian").describe().arrays[0].blocks == 1


@pytest.mark.parametrize("replaced", [False, True])
def test_a_client_may_be_stopped_at_any_moment_of_finishing(
    replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _expected()
    for moment in range(1, 200):
        base, place = tmp_path / str(moment), tmp_path / f"plan{moment}"
        group = _image(base)
        if replaced:
            for name in ("1", "2"):
                group.create_array(name, shape=(3,), dtype="u1")[...] = 1
        tessarr.consolidate_metadata(base)
        _planned(base, overwrite=replaced).save(place)
        tessarr.plan.load(place).run_part(1, 1)
        if replaced:
            assert group["1"].shape == (3,)
        with monkeypatch.context() as patch:
            stopped = _StoppedAt(moment, patch)
            with contextlib.suppress(StoppedError):
                tessarr.plan.load(place).finish()
        assert tessarr.plan.load(place).finish().finished
        tessarr.plan.load(place).finish()
        assert digest(tessarr.open_group(base)) == expected
        assert digest(tessarr.open_group(base, use_consolidated=True)) == expected
        assert [left.name for left in base.rglob("*") if left.name.endswith(".partial")] == []
        if stopped.left > 0:
            assert moment > 4
            return
    pytest.fail("there are more moments than were tried")


def test_what_a_stopped_plan_left_does_not_come_into_the_next_one() -> None:
    store = MemoryStore()
    group = _image(store)
    array = array_of(group["0"])
    first = _planned(group)
    with pytest.raises(StoppedError):
        first.run(progress=stop_after(first.tasks))
    array[...] = 0
    assert _planned(group).run().finished
    assert not array_of(group["1"])[...].any()
    assert [key for key in store.list_prefix("1/") if not key.endswith(".json")] == []


def test_what_a_plan_wrote_can_be_discarded(tmp_path: Path) -> None:
    group = _image(tmp_path / "a")
    group.create_array("1", shape=(3,), dtype="u1")[...] = 1
    before = _files(tmp_path / "a")
    plan = _planned(tmp_path / "a", overwrite=True)
    plan.save(tmp_path / "plan")
    plan.run_part(1, 1)
    assert _files(tmp_path / "a") != before
    tessarr.plan.load(tmp_path / "plan").discard()
    assert _files(tmp_path / "a") == before
    here = _image(MemoryStore())
    listed = {*here.store.list()}
    plan = _planned(here)
    plan.run_part(1, 1)
    assert listed != {*here.store.list()}
    plan.discard()
    assert listed == {*here.store.list()}


def test_levels_that_are_there_an_array_that_changed_and_archives_are_refused(tmp_path: Path) -> None:
    group = _image(tmp_path / "a")
    _planned(group).save(tmp_path / "plan")
    array_of(group["0"]).update_attributes({"unit": "km"})
    with pytest.raises(ConflictError, match="source has changed"):
        tessarr.plan.load(tmp_path / "plan").run()
    _planned(group).run()
    with pytest.raises(ContainsArrayError, match="path of a level is occupied"):
        _planned(group)
    with ZipStore(tmp_path / "a.zip", mode="w") as archive:
        _image(archive)
        with pytest.raises(UnsupportedOperationError, match="cannot delete"):
            _planned(archive)


def test_consolidated_metadata_above_a_pyramid_is_kept_in_step(tmp_path: Path) -> None:
    _image(tmp_path / "a")
    tessarr.consolidate_metadata(tmp_path / "a")
    _planned(tmp_path / "a").run()
    opened = tessarr.open_group(tmp_path / "a", use_consolidated=True)
    assert sorted(opened.keys()) == ["0", "1", "2"]
    assert opened.attrs["ome"]["multiscales"][0]["datasets"][1]["path"] == "1"


def test_an_array_that_is_small_enough_has_no_levels_but_is_described() -> None:
    group = _image({})
    plan = tessarr.plan.pyramid(group, "0")
    assert (plan.tasks, plan.describe().tasks, plan.run().finished) == (0, 0, True)
    assert _reopened(group).attrs["multiscales"][0]["datasets"] == [{"path": "0"}]


def test_the_command_line_plans_a_pyramid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _image(tmp_path / "a")
    options = ["--levels", "2", "--convention", "ome-0.5", "--memory", "4kB"]
    assert main(["plan", "pyramid", str(tmp_path / "a"), "0", *options, "--dry-run"]) == 0
    assert "pyramid: " in capsys.readouterr().out
    assert main(["plan", "pyramid", str(tmp_path / "a"), "0", *options, "--save", str(tmp_path / "plan")]) == 0
    assert main(["run", str(tmp_path / "plan")]) == 0
    assert digest(tessarr.open_group(tmp_path / "a")) == _expected()
