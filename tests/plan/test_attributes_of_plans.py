"""Attributes that JSON cannot say: NaN and infinity, which other implementations of Zarr write as tokens of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import tessarr
import tessarr.plan
import tessarr.tools.digest
from tessarr.plan import Plan

PLANS: Mapping[str, Callable[[Path, Path], Plan]] = {
    "copy": tessarr.plan.copy,
    "rechunk": lambda source, dest: tessarr.plan.rechunk(source, dest, chunks=(5,)),
    "convert": tessarr.plan.convert,
    "pyramid": lambda source, _dest: tessarr.plan.pyramid(source, "a", levels=1),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A hierarchy of version 2 with NaN and infinity in its attributes."""
    place = tmp_path / "source.zarr"
    with tessarr.config.set({"attributes.allow_nan": True}):
        group = tessarr.create_group(place, zarr_format=2, attributes={"missing": float("nan")})
        values = group.create_array("a", shape=(10,), chunks=(2,), dtype="f4", attributes={"limit": float("inf")})
        values[...] = range(10)
    return place


def test_digests_and_checks_are_planned(source: Path, tmp_path: Path) -> None:
    plan = tessarr.plan.digest(source)
    plan.save(tmp_path / "DIGEST")
    assert tessarr.plan.load(tmp_path / "DIGEST").run().finished
    assert tessarr.plan.load(tmp_path / "DIGEST").result() == tessarr.tools.digest.digest(tessarr.open_group(source))
    tessarr.plan.check(source, data="decode").save(tmp_path / "CHECK")
    assert tessarr.plan.load(tmp_path / "CHECK").run().finished


@pytest.mark.parametrize("operation", PLANS)
def test_a_plan_that_could_not_write_them_is_refused_when_it_is_made(
    operation: str, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"missing is nan.*attributes\.allow_nan"):
        PLANS[operation](source, tmp_path / "dest.zarr")


@pytest.mark.parametrize("operation", PLANS)
def test_where_the_setting_allows_them_they_are_kept(operation: str, source: Path, tmp_path: Path) -> None:
    with tessarr.config.set({"attributes.allow_nan": True}):
        plan = PLANS[operation](source, tmp_path / "dest.zarr")
        plan.save(tmp_path / "PLAN")
        assert tessarr.plan.load(tmp_path / "PLAN").run().finished
        made = tessarr.open_group(source if operation == "pyramid" else tmp_path / "dest.zarr")
        array = made[plan.describe().arrays[0].path]
        assert str(made.attrs["missing"]) == "nan"
        assert array.attrs["limit"] == float("inf")
