"""Tasks in stages: numbered without gaps, each shard written by one task, begun when what they read is complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.errors import ChunkNotFoundError, FailedTasksError
from tessarr.plan.cost import Sizes, longest_chunks
from tessarr.plan.strategies.ready import Ready
from tessarr.plan.strategies.staged import in_two_stages
from tessarr.plan.strategies.stages import Stages
from tessarr.plan.task import Worker
from tessarr.plan.tiling import Cut, Tiling
from tessarr.types import AnyArray, Shape

from .test_tiling import _grids


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The memory of a task depends on its threads."""
    with tessarr.config.set({"threading.max_workers": 1}):
        yield


@st.composite
def _stages(draw: st.DrawFn) -> Stages:
    """Two or three stages over an array of up to three axes."""
    shape = tuple(draw(st.lists(st.integers(0, 13), max_size=3)))

    def cut(length: int) -> Cut:
        if length and draw(st.booleans()):
            inside = draw(st.sets(st.integers(1, length - 1))) if length > 1 else set()
            return (*sorted(inside), length)
        return draw(st.integers(1, 14))

    count = draw(st.integers(1, 3))
    return Stages.of(*(Tiling(shape, tuple(map(cut, shape))) for _ in range(count)))


@given(_stages())
def test_every_box_of_every_stage_has_one_task_within_its_block(stages: Stages) -> None:
    ranges = [tasks for block in range(stages.blocks.count) for tasks in stages.ranges(block)]
    assert [task for tasks in ranges for task in tasks] == list(range(stages.count))
    written = [np.zeros(stages.blocks.shape, int) for _ in stages.tilings]
    for block in range(stages.blocks.count):
        whole = stages.blocks.box(block)
        for stage, tasks in enumerate(stages.ranges(block)):
            for task in tasks:
                step = stages.locate(task)
                assert step[:2] == (block, stage)
                written[stage][step.box] += 1
                assert all(
                    low.start <= part.start < part.stop <= low.stop for low, part in zip(whole, step.box, strict=True)
                )
    assert all((count == 1).all() for count in written)
    parsed = json.loads(json.dumps(stages.to_json()))
    assert Stages.from_json(stages.blocks.shape, **parsed) == stages


@given(_grids(), st.data())
def test_inner_chunks_of_an_intermediate_divide_its_shards_and_tasks_fit_in_memory(
    grid_of_shape: tuple[Shape, Any], data: st.DataObject
) -> None:
    shape, grid = grid_of_shape
    axes = grid.axes(shape)
    read = tuple(data.draw(st.integers(1, 9)) for _ in shape)
    sizes = Sizes(axes, read, longest_chunks(axes), 8, data.draw(st.integers(1, 4)))
    memory = data.draw(st.integers(1, 40_000))
    found = in_two_stages(sizes, memory)
    if found is None:
        return
    stages, between = found
    first, second = stages.tilings
    assert all(shard % chunk == 0 for shard, chunk in zip(between.shards, between.chunks, strict=True))
    covered = [min(n, shard) for n, shard in zip(shape, between.shards, strict=True)]
    assert covered == [min(n, cut) for n, cut in zip(shape, first.cuts, strict=True) if isinstance(cut, int)]
    for tiling in (first, second):
        for number in range(tiling.count):
            box = tiling.box(number)
            assert prod(part.stop - part.start for part in box) * 8 <= memory


def test_a_stage_begins_when_the_stage_before_has_ended_in_its_block_and_not_if_it_failed() -> None:
    ends: list[tuple[int, bool]] = []
    ready = Ready([(0, ([0, 1], [2])), (1, ([3], [4, 5])), (2, ([], []))], lambda *end: ends.append(end))
    assert [ready.take() for _ in range(4)] == [0, 1, 3, None]
    ready.ended(1, failed=True)
    ready.ended(3)
    assert [ready.take() for _ in range(3)] == [4, 5, None]
    ready.ended(0)
    assert ready.take() is None
    ready.ended(5)
    ready.ended(4)
    assert ready.take() is None
    assert ends == [(1, False), (1, True)]


VALUES = np.random.default_rng(5).integers(0, 1000, (60, 44), "i4")


def _source(place: Path, values: AnyArray = VALUES, **options: Any) -> tessarr.Array:
    array = tessarr.create_array(place, shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return array


def _staged(source: Path, dest: Any, **options: Any) -> tessarr.plan.Plan:
    options = {"chunks": (20, 4), "memory": 2600, "strategy": "staged", **options}
    return tessarr.plan.rechunk(source, dest, **options)


def test_a_plan_in_stages_writes_the_same_bytes_as_one_in_one_step_and_leaves_nothing_else(tmp_path: Path) -> None:
    _source(tmp_path / "a", chunks=(2, 44))
    plan = _staged(tmp_path / "a", tmp_path / "staged")
    costs = plan.describe().arrays[0]
    assert (costs.strategy, costs.blocks, costs.chunks_read) == ("staged", 3, 30)
    assert plan.run(slots=2).finished
    _staged(tmp_path / "a", tmp_path / "direct", strategy="direct").run()
    assert (tessarr.open_array(tmp_path / "staged")[...] == VALUES).all()
    stored = [
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        }
        for name in ("staged", "direct")
    ]
    assert stored[0] == stored[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "direct", "staged"]
    assert sorted(path.name for path in (tmp_path / "staged").iterdir()) == ["c", "zarr.json"]


def test_a_plan_in_stages_goes_on_after_any_task(tmp_path: Path) -> None:
    _source(tmp_path / "a", chunks=(2, 44))
    count = _staged(tmp_path / "a", tmp_path / "b").tasks

    class Cut(BaseException):
        """The client is stopped."""

    for task in range(1, count):
        place = tmp_path / f"plan{task}"
        _staged(tmp_path / "a", tmp_path / f"b{task}").save(place)

        def stop(done: int, _total: int, _what: str, last: int = task) -> None:
            if done == last:
                raise Cut

        with pytest.raises(Cut):
            tessarr.plan.load(place).run(progress=stop)
        again = tessarr.plan.load(place)
        assert again.status().done >= task
        assert again.run().finished
        assert (tessarr.open_array(tmp_path / f"b{task}")[...] == VALUES).all()


def test_each_part_owns_whole_blocks(tmp_path: Path) -> None:
    _source(tmp_path / "a", chunks=(2, 44))
    _staged(tmp_path / "a", tmp_path / "b").save(tmp_path / "plan")
    for part in (5, 1, 4, 2, 3):
        tessarr.plan.load(tmp_path / "plan").run_part(part, 5)
    assert tessarr.plan.load(tmp_path / "plan").finish().finished
    assert (tessarr.open_array(tmp_path / "b")[...] == VALUES).all()


def test_a_plan_of_one_block_runs_stage_by_stage_in_parts(tmp_path: Path) -> None:
    _source(tmp_path / "a", chunks=(2, 44))
    _staged(tmp_path / "a", tmp_path / "b", chunks=(60, 4), memory=6000).save(tmp_path / "plan")
    plan = tessarr.plan.load(tmp_path / "plan")
    assert plan.describe().arrays[0].blocks == 1
    plan.run_part(2, 3, stage=1)
    with pytest.raises(FailedTasksError, match=r"stage 1 is not done; got tasks missing: 0"):
        tessarr.plan.load(tmp_path / "plan").run_part(1, 3, stage=2)
    for part, stage in [(1, 1), (3, 1), (3, 2), (1, 2)]:
        tessarr.plan.load(tmp_path / "plan").run_part(part, 3, stage=stage)
    for words in (["--part", "1/3", "--stage", "3"], ["--part", "1/3", "--stage", "0"], ["--stage", "1"]):
        assert main(["run", str(tmp_path / "plan"), *words]) == 2  # nothing is run, rather than another stage, or all
    assert tessarr.plan.load(tmp_path / "plan").status().missing > 0
    assert main(["run", str(tmp_path / "plan"), "--part", "2/3", "--stage", "2"]) == 0
    assert tessarr.plan.load(tmp_path / "plan").finish().finished
    assert (tessarr.open_array(tmp_path / "b")[...] == VALUES).all()
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["c", "zarr.json"]


def test_a_task_whose_intermediate_is_gone_fails_and_writes_nothing(tmp_path: Path) -> None:
    _source(tmp_path / "a", chunks=(2, 44))
    plan = _staged(tmp_path / "a", tmp_path / "b")
    plan.save(tmp_path / "plan")
    first, second = next(plan._manifest.tasks_of_blocks(range(1)))
    worker = plan._opened()
    assert isinstance(worker, Worker)
    for task in first:
        worker.run(task)
    written = worker.run(second[0])
    worker.end_block(0)
    with pytest.raises(ChunkNotFoundError):
        worker.run(second[0])
    assert written.digest
    assert plan.run().finished


@settings(max_examples=30, deadline=None)
@given(_grids(), _grids(), st.data())
def test_staged_and_direct_plans_copy_any_grid(
    given_source: tuple[Shape, Any], given_target: tuple[Shape, Any], data: st.DataObject
) -> None:
    shape, grid = given_source
    values = np.arange(prod(shape), dtype="i8").reshape(shape)
    source = tessarr.create_array({}, shape=shape, chunks=grid, dtype="i8")
    source[...] = values
    chunks = tuple(data.draw(st.integers(1, 8)) for _ in shape)
    for strategy in ("direct", "staged"):
        target = tessarr.storage.MemoryStore()
        options: Any = {"chunks": chunks, "memory": data.draw(st.integers(6_000, 60_000)), "strategy": strategy}
        try:
            plan = tessarr.plan.rechunk(source, target, path="b", **options)
        except (tessarr.errors.BaseZarrError, tessarr.errors.UnsupportedOperationError):
            continue
        plan.run()
        assert (tessarr.open_array(target, path="b")[...] == values).all()
        assert not [key for key in target.list() if "stages" in key]
