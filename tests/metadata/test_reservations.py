"""Reservations of appends: what each change makes of them, and how they are stored."""

from __future__ import annotations

from typing import Any

import pytest

from tessarr.errors import MetadataValidationError
from tessarr.metadata.reservations import MEMBER, Region, Reservations, parse, parse_member

A, B, C = Region(10, 13, "a", 100), Region(13, 14, "b", 105), Region(14, 20, "c", 90)
THREE = Reservations(axis=0, stop=20, reserved=(A, B, C))


def test_rows_are_visible_up_to_the_first_region_that_is_not_published() -> None:
    assert THREE.published() == 10
    assert THREE.publish("b").published() == 10
    assert THREE.publish("a").published() == 13
    assert THREE.publish("a").publish("b").publish("c").published() == 20


def test_a_region_follows_all_others() -> None:
    reserved = THREE.reserve(4, "d", 200)
    assert reserved.of("d") == Region(20, 24, "d", 200)
    assert (reserved.stop, reserved.reserved[:3]) == (24, (A, B, C))
    assert THREE.of("d") is None


def test_only_the_last_region_is_given_back() -> None:
    assert THREE.retract("a") is None
    assert THREE.retract("d") is None
    given = THREE.retract("c")
    assert given == Reservations(axis=0, stop=14, reserved=(A, B))


def test_a_region_that_is_taken_over_is_recorded_once_with_its_first_owner() -> None:
    taken = THREE.take_over(B, "d", 300)
    assert taken.reserved == (A, Region(13, 14, "d", 300), C)
    assert taken.voided == (B,)
    assert (taken.was_voided("b"), taken.was_voided("d"), THREE.was_voided("b")) == (True, False, False)
    again = taken.take_over(taken.reserved[1], "e", 400)
    assert (again.voided, again.of("e")) == ((B,), Region(13, 14, "e", 400))
    both = taken.take_over(A, "f", 500)
    assert both.voided == (B, A)


@pytest.mark.parametrize(
    ("now", "before", "found"),
    [
        (105, None, (C,)),
        (110, None, (A, C)),
        (115, None, (A, B, C)),
        (110, 14, (A,)),
        (110, 10, ()),
        (80, None, (A, B, C)),
    ],
)
def test_regions_are_abandoned_after_some_time_or_when_they_are_from_the_future(
    now: int, before: int | None, found: tuple[Region, ...]
) -> None:
    assert THREE.abandoned(now, 10, before) == found


STORED: list[tuple[Reservations, int, dict[str, Any] | None]] = [
    (Reservations(axis=0, stop=5), 5, None),
    (Reservations(axis=1, stop=5), 4, {"axis": 1, "stop": 5}),
    (Reservations(axis=0, stop=20, reserved=(C,)), 14, {"axis": 0, "stop": 20, "reserved": [[14, 20, "c", 90]]}),
    (Reservations(axis=0, stop=20, reserved=(C,)), 20, {"axis": 0, "stop": 20, "reserved": [[14, 20, "c", 90]]}),
    (Reservations(axis=0, stop=20, voided=(C,)), 20, {"axis": 0, "voided": [[14, 20, "c", 90]]}),
    (Reservations(axis=0, stop=20, closed=("x", 7)), 20, {"axis": 0, "closed": ["x", 7]}),
]


@pytest.mark.parametrize(("pending", "length", "stored"), STORED)
def test_reservations_are_stored_and_parsed(pending: Reservations, length: int, stored: dict[str, Any] | None) -> None:
    shape = [3, 3]
    shape[pending.axis] = length
    document = pending.with_member({"shape": shape, "other": 1, MEMBER: {"old": True}})
    expected = None if stored is None else {"must_understand": False, **stored}
    assert pending.to_json(length) == document.get(MEMBER) == expected
    assert (MEMBER in document) == (stored is not None)
    assert (document["shape"], document["other"]) == (shape, 1)
    assert parse(document) == (None if stored is None else pending)


WRONG: list[tuple[Any, tuple[Any, ...]]] = [
    ([], ()),
    ([], ("axis",)),
    ({"axis": 2}, ("axis",)),
    ({"axis": -1}, ("axis",)),
    ({"axis": True}, ("axis",)),
    ({"axis": 0, "reserved": "regions"}, ("reserved",)),
    ({"axis": 0, "stop": 9, "reserved": [[5, 9, "a"]]}, ("reserved", 0)),
    ({"axis": 0, "stop": 9, "reserved": [[5, 9, "a", 1, 2]]}, ("reserved", 0)),
    ({"axis": 0, "stop": 9, "reserved": ["abcd"]}, ("reserved", 0)),
    ({"axis": 0, "stop": 9, "reserved": [7]}, ("reserved", 0)),
    ({"axis": 0, "stop": 9, "reserved": 7}, ("reserved",)),
    ({"axis": 0, "stop": 9, "reserved": [[5, 5, "a", 1]]}, ("reserved", 0)),
    ({"axis": 0, "stop": 9, "reserved": [[5, 9, 1, 1]]}, ("reserved", 0)),
    ({"axis": 0, "stop": 9, "reserved": [[5, 9, "a", -1]]}, ("reserved", 0)),
    ({"axis": 0, "stop": 9, "voided": [[5, 9, "a", 1], [5, "9", "a", 1]]}, ("voided", 1)),
    ({"axis": 0, "stop": 8, "reserved": [[5, 9, "a", 1]]}, ("reserved",)),
    ({"axis": 0, "stop": 20, "reserved": [[5, 9, "a", 1], [8, 12, "b", 1]]}, ("reserved",)),
    ({"axis": 0, "reserved": [[5, 9, "a", 1]]}, ("reserved",)),
    ({"axis": 0, "stop": -1}, ("reserved",)),
    ({"axis": 0, "closed": ["x"]}, ("closed",)),
    ({"axis": 0, "closed": ["x", -1]}, ("closed",)),
    ({"axis": 0, "closed": [1, 7]}, ("closed",)),
    ({"axis": 0, "closed": "xy"}, ("closed",)),
]


@pytest.mark.parametrize(("member", "loc"), WRONG)
def test_what_is_wrong_is_named(member: Any, loc: tuple[Any, ...]) -> None:
    with pytest.raises(MetadataValidationError) as caught:
        parse_member(member, [5, 5])
    problems = caught.value.problems
    assert (MEMBER, *loc) in [problem.loc for problem in problems]
    assert {problem.kind for problem in problems} == {"value"}


def test_regions_that_touch_and_end_before_the_next_one_are_valid() -> None:
    member = {"axis": 0, "stop": 30, "reserved": [list(A), list(B), list(C)], "closed": ["x", 0]}
    assert parse_member(member, (10,)) == Reservations(axis=0, stop=30, reserved=(A, B, C), closed=("x", 0))
    assert parse({"shape": [5]}) is None


def test_a_member_of_more_regions_than_any_writer_leaves_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessarr.metadata.reservations._MOST", 3)
    regions = [list(A), list(B), list(C)]
    assert parse_member({"axis": 0, "stop": 20, "reserved": regions}, [10]).reserved == (A, B, C)
    with pytest.raises(MetadataValidationError, match="at most 3 regions"):
        parse_member({"axis": 0, "stop": 21, "reserved": [*regions, [20, 21, "d", 0]]}, [10])
