"""`check` tells of appends that do not end, and `repair` ends them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.asynchronous import clock
from tessarr.errors import ConflictError
from tessarr.tools.check import check
from tessarr.tools.migrate import migrate
from tessarr.tools.repair import repair
from tests.simulation.simulator import Bucket, Client


def with_member(place: Path, **member: Any) -> Path:
    """An array of six rows and a member that says what is pending, in a group with consolidated metadata."""
    tessarr.create_array(place / "a", data=np.arange(6), chunks=(4,), fill_value=-1)
    tessarr.create_group(place)
    tessarr.consolidate_metadata(place)
    document = json.loads((place / "a" / "zarr.json").read_text())
    document["tessarr_append"] = {"must_understand": False, "axis": 0, **member}
    (place / "a" / "zarr.json").write_text(json.dumps(document))
    return place


def rules(place: Path) -> list[str]:
    return sorted(finding.rule for finding in check(place).findings)


def test_an_append_that_goes_on_is_no_trouble(tmp_path: Path) -> None:
    place = with_member(tmp_path, stop=9, reserved=[[6, 9, "a", clock.CLOCK.now()]])
    assert rules(place) == ["APPEND-PENDING"]
    assert repair(check(place), dry_run=False).steps == []


@pytest.mark.filterwarnings("ignore:rows 6 to 9:tessarr.errors.ZarrRuntimeWarning")
def test_an_append_that_was_given_up_is_filled_by_a_repair_and_remembered(tmp_path: Path) -> None:
    now = clock.CLOCK.now()
    place = with_member(tmp_path, stop=11, reserved=[[6, 9, "a", 0], [9, 11, "b", now]])
    assert rules(place) == ["APPEND-HOLE", "APPEND-PENDING"]
    done = repair(check(place), dry_run=False)
    assert [step.outcome for step in done.steps] == ["done"]
    assert tessarr.open_array(place / "a", mode="r")[:].tolist() == [0, 1, 2, 3, 4, 5, -1, -1, -1]
    assert rules(place) == ["APPEND-PENDING", "APPEND-VOID"]


@pytest.mark.filterwarnings("ignore:rows 6 to 9:tessarr.errors.ZarrRuntimeWarning")
def test_an_append_that_began_in_the_future_was_given_up(tmp_path: Path) -> None:
    place = with_member(tmp_path, stop=9, reserved=[[6, 9, "a", clock.CLOCK.now() + 100_000]])
    assert rules(place) == ["APPEND-HOLE"]
    assert repair(check(place), dry_run=False).ok
    assert tessarr.open_array(place / "a", mode="r").shape == (9,)


def test_a_resize_that_did_not_end_is_ended_by_a_repair(tmp_path: Path) -> None:
    place = with_member(tmp_path, closed=["a", 0])
    assert rules(place) == ["APPEND-CLOSED"]
    with pytest.raises(ConflictError, match="has not ended"):
        tessarr.open_array(place, path="a", mode="r+").append([1], on_hole="error")
    assert repair(check(place), dry_run=False).ok
    assert rules(place) == []
    assert tessarr.open_array(place, path="a", mode="r+").append([7]) == (7,)


def with_object_beside(place: Path, **member: Any) -> Path:
    """A Zarr v2 array of six rows in a group, and the object beside its document that says what is pending."""
    tessarr.create_group(place, zarr_format=2)
    tessarr.create_array(place / "a", data=np.arange(6), chunks=(4,), fill_value=-1, zarr_format=2)
    (place / "a" / ".tessarr_append").write_text(json.dumps({**member, "epoch": 3}))
    return place


def test_the_counter_beside_a_v2_array_is_no_stray_key(tmp_path: Path) -> None:
    place = with_object_beside(tmp_path)
    assert [finding.rule for finding in check(place, data="stat").findings] == []


@pytest.mark.filterwarnings("ignore:rows 6 to 9:tessarr.errors.ZarrRuntimeWarning")
def test_an_append_to_a_v2_array_that_was_given_up_is_found_and_filled(tmp_path: Path) -> None:
    place = with_object_beside(tmp_path, axis=0, stop=9, reserved=[[6, 9, "a", 0]])
    (finding,) = check(place).findings
    assert (finding.rule, finding.key) == ("APPEND-HOLE", "a/.tessarr_append")
    assert [step.outcome for step in repair(check(place), dry_run=False).steps] == ["done"]
    assert tessarr.open_array(place / "a", mode="r")[:].tolist() == [0, 1, 2, 3, 4, 5, -1, -1, -1]
    assert rules(place) == ["APPEND-VOID"]


def test_rows_of_a_v2_array_whose_shape_does_not_follow_are_found_and_shown(tmp_path: Path) -> None:
    place = with_object_beside(tmp_path, axis=0, stop=8)
    assert rules(place) == ["APPEND-BEHIND"]
    assert [step.outcome for step in repair(check(place), dry_run=False).steps] == ["done"]
    assert tessarr.open_array(place / "a", mode="r").shape == (8,)
    assert rules(place) == []


def test_an_object_beside_a_v2_array_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    assert rules(with_object_beside(tmp_path, axis=7, stop=8)) == ["APPEND-INVALID"]


@pytest.mark.parametrize(
    "member",
    [
        {"axis": 1},
        {"axis": True},
        {"reserved": [[6, 9, "a", 0]]},
        {"stop": 9, "reserved": [[6, 9, "a"]]},
        {"stop": 9, "reserved": [[9, 6, "a", 0]]},
        {"stop": 9, "reserved": [[6, 9, 7, 0]]},
        {"stop": 9, "reserved": [[6, 9, "a", -1]]},
        {"stop": 8, "reserved": [[6, 9, "a", 0]]},
        {"stop": 12, "reserved": [[6, 9, "a", 0], [8, 12, "b", 0]]},
        {"stop": 1e9, "reserved": "all"},
        {"stop": 9, "reserved": [[6, 2**70, "a", 0]]},
        {"closed": "yes"},
        {"closed": ["a", None]},
        {"voided": {}},
    ],
)
def test_reservations_that_nobody_wrote_are_an_error_for_who_appends_and_none_for_who_reads(
    tmp_path: Path, member: dict[str, Any]
) -> None:
    place = with_member(tmp_path, **member)
    assert tessarr.open_array(place / "a", mode="r")[:].tolist() == [0, 1, 2, 3, 4, 5]
    assert rules(place) == ["APPEND-INVALID"]
    before = (place / "a" / "zarr.json").read_bytes()
    with pytest.raises(ValueError, match="invalid reservations"):
        tessarr.open_array(place, path="a", mode="r+").append([1])
    assert (place / "a" / "zarr.json").read_bytes() == before


@pytest.mark.filterwarnings("ignore:Both zarr.json")
@pytest.mark.parametrize("formats", [1, 2])
def test_a_chunk_outside_the_shape_stays_where_an_append_may_be_entered_in_another_description(formats: int) -> None:
    """Found by `simulate`, seed 480266: a repair removed what an append had stored, and then published."""
    store = Client("one", Bucket())
    tessarr.create_group(store, zarr_format=2).create_array("a", data=np.arange(6), chunks=(4,), fill_value=-1)
    if formats == 2:
        migrate(store)
    store.set("a/2", b"outside")
    report = check(store, data="stat")
    assert "a/2" in {finding.key for finding in report.findings if finding.rule == "KEY-OUTSIDE"}
    repair(report, store, dry_run=False)
    assert (store.get("a/2") is not None) == (formats == 2)
