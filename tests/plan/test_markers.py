"""Markers of ended tasks: what they hold, and what is not computed where there are none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.tools.digest import block_digest, box_digest


def _plan(
    place: Path, values: np.ndarray, *, chunks: tuple[int, int], shards: tuple[int, int] | None
) -> tessarr.plan.Plan:
    array = tessarr.create_array(place / "a.zarr", data=values, chunks=(2, 8), overwrite=True)
    return tessarr.plan.rechunk(array, place / "b.zarr", chunks=chunks, shards=shards, memory=2000)


def _marked(
    place: Path, values: np.ndarray, chunks: tuple[int, int], shards: tuple[int, int] | None = None
) -> set[str]:
    """Carry a plan out in parts of one task each, and return the digests of its markers."""
    plan = _plan(place, values, chunks=chunks, shards=shards)
    plan.save(place / "plan")
    for part in range(1, plan.tasks + 1):
        tessarr.plan.load(place / "plan").run_part(part, plan.tasks)
    return {json.loads(file.read_bytes())["digest"] for file in (place / "plan" / "done").glob("*.json")}


@pytest.mark.parametrize("shards", [None, (8, 8)], ids=["moved", "regrouped"])
def test_markers_hold_digests_of_what_was_written(tmp_path: Path, shards: tuple[int, int] | None) -> None:
    """Equal values have equal digests, one other element another digest in one marker."""
    chunks = (8, 2) if shards is None else (2, 8)
    values = np.arange(64, dtype="i4").reshape(8, 8)
    first = _marked(tmp_path / "1", values, chunks, shards)
    assert first == _marked(tmp_path / "2", values, chunks, shards)
    assert all(len(digest) == 64 for digest in first)
    values[3, 5] += 1
    other = _marked(tmp_path / "3", values, chunks, shards)
    assert len(first - other) == len(other - first) == 1


def test_a_plan_that_is_not_saved_computes_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests cost as much as to encode: they are computed for markers only."""

    def refused(_values: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr("tessarr.plan.task.box_digest", refused)
    values = np.arange(64, dtype="i4").reshape(8, 8)
    plan = _plan(tmp_path, values, chunks=(8, 2), shards=None)
    assert plan.run(retries=0).finished
    assert np.array_equal(tessarr.open_array(tmp_path / "b.zarr")[...], values)
    again = _plan(tmp_path / "saved", values, chunks=(8, 2), shards=None)
    again.save(tmp_path / "saved" / "plan")
    with pytest.raises(tessarr.errors.FailedTasksError):
        again.run(retries=0)


@pytest.mark.parametrize("dtype", ["<f8", ">f8"])
def test_a_digest_does_not_depend_on_the_layout_in_memory(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The elements count, as little-endian bytes in C order."""
    monkeypatch.setattr("tessarr.tools.digest._ELEMENTS_AT_ONCE", 7)
    values = np.arange(6 * 35, dtype="<f8").reshape(6, 5, 7)
    expected = block_digest(values.ravel())
    laid_out = np.asfortranarray(values.astype(dtype))
    assert block_digest(laid_out) == block_digest(laid_out[::-1][::-1]) == expected
    assert box_digest(laid_out) == box_digest(values)
