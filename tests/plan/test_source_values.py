"""Values of the source that change while tasks read them: noticed when a plan is finished, or allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.errors import ConflictError
from tessarr.plan.plan import Plan
from tessarr.storage import MemoryStore

VALUES = np.arange(240, dtype="i4").reshape(24, 10)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    group = tessarr.create_group(tmp_path / "source.zarr")
    group.create_array("a", data=VALUES, chunks=(2, 10))
    group.create_array("b/c", data=VALUES + 1, chunks=(2, 10))
    return tmp_path / "source.zarr"


def _rechunked(source: Any, target: Path) -> Plan:
    return tessarr.plan.rechunk(source, target, chunks=(24, 1), memory=40_000, strategy="direct")


def _copied(source: Any, target: Path) -> Plan:
    return tessarr.plan.copy(source, target)


def _converted(source: Any, target: Path) -> Plan:
    return tessarr.plan.convert(source, target, zarr_format=2, chunks=(6, 5))


def _digested(source: Any, target: Path) -> Plan:
    return tessarr.plan.digest(source)


def _built(source: Any, target: Path) -> Plan:
    return tessarr.plan.pyramid(source, "a", levels=1)


_MAKERS = [_rechunked, _copied, _converted, _digested, _built]


def _write(source: Path, path: str = "a") -> None:
    tessarr.open_array(source, path=path, mode="r+")[3] = -1


@pytest.mark.parametrize("make", _MAKERS)
@pytest.mark.parametrize("parts", [1, 3])
def test_values_that_change_before_the_end_are_an_error(make: Any, parts: int, source: Path, tmp_path: Path) -> None:
    make(source, tmp_path / "target.zarr").save(tmp_path / "plan")
    for part in range(1, parts + 1):
        tessarr.plan.load(tmp_path / "plan").run_part(part, parts)
        if part == 1:
            _write(source)
    with pytest.raises(ConflictError, match="values of the source changed") as caught:
        tessarr.plan.load(tmp_path / "plan").finish()
    assert str(caught.value.got) == "arrays that changed: /a" or make is _built
    assert not (tmp_path / "target.zarr").exists()
    assert not tessarr.plan.load(tmp_path / "plan").status().finished
    assert tessarr.plan.load(tmp_path / "plan").finish(allow_changed_values=True).finished


@pytest.mark.parametrize("make", _MAKERS)
def test_values_that_change_before_the_first_task_are_the_new_ones(make: Any, source: Path, tmp_path: Path) -> None:
    make(source, tmp_path / "target.zarr").save(tmp_path / "plan")
    _write(source)
    assert tessarr.plan.load(tmp_path / "plan").run().finished


def test_other_changes_of_the_source_are_none_of_values(source: Path, tmp_path: Path) -> None:
    """A node beside the one that is read, and the temporary file of a writer."""
    plan = _rechunked(source / "a", tmp_path / "target.zarr")
    plan.save(tmp_path / "plan")
    plan.run_part(1, 1)
    _write(source, "b/c")
    (source / "a" / "c" / "0" / ".0.partial").write_bytes(b"")
    assert tessarr.plan.load(tmp_path / "plan").finish().finished


@pytest.mark.parametrize("change", ["removed", "added", "same size"])
def test_each_change_of_a_chunk_is_noticed(change: str, source: Path, tmp_path: Path) -> None:
    array = tessarr.create_array(tmp_path / "one.zarr", shape=(4, 10), chunks=(2, 10), dtype="i4", compressors=None)
    array[:2] = 5
    plan = _copied(tmp_path / "one.zarr", tmp_path / "target.zarr")
    plan.save(tmp_path / "plan")
    plan.run_part(1, 1)
    if change == "removed":
        (tmp_path / "one.zarr" / "c" / "0" / "0").unlink()
    elif change == "added":
        array[2:] = 6
    else:
        array[:2] = 6
    with pytest.raises(ConflictError, match="values of the source changed"):
        plan.finish()


def test_a_plan_in_memory_notices_them_too(source: Path) -> None:
    memory, target = MemoryStore(), MemoryStore()
    array = tessarr.create_array(memory, shape=(4, 4), chunks=(1, 4), dtype="i4")
    array[...] = 1
    plan = tessarr.plan.rechunk(array, target, path="a", chunks=(4, 1), memory=40_000, strategy="direct")
    seen: list[int] = []

    def change(done: int, _tasks: int, _what: str) -> None:
        seen.append(done)
        array[0] = done

    with pytest.raises(ConflictError, match="values of the source changed"):
        plan.run(progress=change)
    assert seen
    assert tessarr.plan.rechunk(array, target, path="b", chunks=(4, 1)).run(
        progress=change, allow_changed_values=True
    ).finished  # fmt: skip


def test_the_command_line_says_so_and_allows_it(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, target = str(tmp_path / "plan"), str(tmp_path / "target.zarr")
    assert main(["plan", "copy", str(source), target, "--save", plan]) == 0
    assert main(["run", plan, "--part", "1/1"]) == 0
    _write(source)
    capsys.readouterr()
    assert main(["finish", plan]) == 1
    said = capsys.readouterr().err
    assert "values of the source changed while tasks read them" in said
    assert "--allow-changed-values" in said
    assert main(["finish", plan, "--allow-changed-values"]) == 0
    assert main(["copy", str(source), str(tmp_path / "other.zarr"), "--allow-changed-values"]) == 0


def test_a_zip_file_that_is_replaced_by_one_of_other_values_is_noticed(tmp_path: Path) -> None:
    def zipped(name: str, values: Any) -> Path:
        with tessarr.storage.ZipStore(tmp_path / name, mode="w") as store:
            tessarr.create_array(store, name="a", data=values, chunks=(2, 10))
        return tmp_path / name

    place = f"{zipped('source.zip', VALUES)}|zip:a"
    _rechunked(place, tmp_path / "target.zarr").save(tmp_path / "plan")
    tessarr.plan.load(tmp_path / "plan").run_part(1, 1)
    zipped("other.zip", VALUES + 1).replace(tmp_path / "source.zip")
    with pytest.raises(ConflictError, match="source"):
        tessarr.plan.load(tmp_path / "plan").finish()
    assert not (tmp_path / "target.zarr").exists()
