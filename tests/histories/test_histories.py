"""The short form of `scripts/campaigns/histories.py`, and whether the checker finds what is wrong."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.histories import judge
from tests.histories.checker import Event, published, register, rows
from tests.histories.clients import rows_of
from tests.histories.judge import End, Refusal

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from campaigns import histories  # noqa: E402

OPEN = math.inf


def event(do: str, given: Any, got: Any, begun: float, ended: float, on: str = "") -> Event:
    return Event(0, do, on, given, got, begun, ended)


def write(value: int, begun: float, ended: float) -> Event:
    return event("write", value, None, begun, ended)


def read(value: int, begun: float, ended: float) -> Event:
    return event("read", None, value, begun, ended)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are stopped by signals of POSIX")
def test_processes_that_are_killed_and_stopped_leave_a_history_that_an_order_explains(tmp_path: Path) -> None:
    for operations in (40, 160, 640, 2560):  # as many as a quick machine takes long enough for
        (folder := tmp_path / str(operations)).mkdir()
        history, wrong, figures = histories.run("local", 1, folder, processes=4, operations=operations)
        assert wrong == []
        assert history.acknowledged > 80
        if figures["kills"] + figures["stops"]:
            return
    pytest.fail("no process was killed or stopped")


EXPLAINED = {
    "a read while a value is written finds the old one or the new one": [write(1, 1, 4), read(0, 2, 3), read(1, 2, 3)],
    "two writes at once may come in either order": [write(1, 1, 4), write(2, 2, 3), read(1, 5, 6), read(1, 7, 8)],
    "a write that was not answered may have happened": [write(1, 1, OPEN), read(0, 2, 3), read(1, 4, 5)],
    "or not": [write(1, 1, OPEN), read(0, 2, 3), read(0, 4, 5)],
    "a write whose request was sent again may be there twice": [
        write(1, 1, 9)._replace(is_repeated=True), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7), read(1, 10, 11),
    ],
}  # fmt: skip
WRONG = {
    "a lost write": [write(1, 1, 2), read(0, 3, 4)],
    "a value that comes back": [write(1, 1, 2), write(2, 3, 4), read(1, 5, 6)],
    "a read that goes back": [write(1, 1, 6), read(1, 2, 3), read(0, 4, 5)],
    "a write that was not answered and comes back": [write(1, 1, OPEN), write(2, 2, 3), read(1, 4, 5), read(2, 6, 7)],
    "a read of what nobody wrote": [read(7, 1, 2)],
    "a read before the write": [read(1, 1, 2), write(1, 3, 4)],
    "a write that was sent again only before another one": [
        write(1, 1, 3)._replace(is_repeated=True), write(2, 4, 5), read(2, 6, 7), read(1, 10, 11),
    ],
    "and one that was sent once": [write(1, 1, 9), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7), read(1, 10, 11)],
    "a write that was sent again and is there while another one is": [
        write(1, 3, 9)._replace(is_repeated=True), write(2, 1, 2), read(2, 4, 5), read(1, 6, 7), read(2, 8, 10),
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", EXPLAINED)
def test_a_register_is_explained(what: str) -> None:
    assert register(EXPLAINED[what], 0) is None


@pytest.mark.parametrize("what", WRONG)
def test_a_register_is_wrong(what: str) -> None:
    assert register(WRONG[what], 0) is not None


FIRST, SECOND = [1, 1, 2], [2, 1, 1]
STORED = [*rows_of(FIRST), *rows_of(SECOND)]
FIRST_ROW = STORED[0]


def appends(*, first_ends: float = 2.0, second_begins: float = 3.0) -> list[Event]:
    return [event("append", FIRST, [2, 4], 1, first_ends), event("append", SECOND, [3, 4], second_begins, 4)]


def test_rows_are_whole_once_and_in_order() -> None:
    nothing = (0, 0, 0, 0)
    assert rows(appends(), STORED, rows_of) is None
    assert rows(appends(), [*rows_of(FIRST), nothing, *rows_of(SECOND)], rows_of) is None
    assert rows(appends(first_ends=OPEN), rows_of(SECOND), rows_of) is None
    assert "lost" in str(rows(appends(), rows_of(SECOND), rows_of))
    assert "twice" in str(rows(appends(), [*STORED, *rows_of(SECOND)], rows_of))
    assert "a part of" in str(rows(appends(), STORED[:1], rows_of))
    assert "begins no append" in str(rows(appends(), [*STORED, (9, 9, 1, 1)], rows_of))
    swapped = [*rows_of(SECOND), *rows_of(FIRST)]
    assert rows(appends(first_ends=3.5), swapped, rows_of) is None
    assert "lies behind" in str(rows(appends(), swapped, rows_of))


def test_readers_see_prefixes_that_grow() -> None:
    def look(length: int, begun: float) -> Event:
        return event("look", None, [length, 0, [list(row) for row in STORED[:length]]], begun, begun + 1)

    assert published([look(1, 1), look(3, 3)], STORED) is None
    assert "after 3 had been seen" in str(published([look(3, 1), look(1, 3)], STORED))
    assert "not those in the end" in str(published([look(2, 1)], STORED[1:]))
    filled = [*STORED[:-1], (0, 0, 0, 0)]
    assert published([look(3, 1)], filled, {STORED[-1]}) is None
    assert "not those in the end" in str(published([look(3, 1)], filled))
    assert "not those in the end" in str(published([look(3, 1)], [*STORED[:-1], FIRST_ROW], {STORED[-1]}))


def judged(*events: Event, is_local: bool = True) -> list[str]:
    return judge.judge(events, End({"log": [], "pairs/p": [], "pairs/q": []}, 0), is_local=is_local)


def test_names_hold_one_node_each() -> None:
    on = "family f1"
    made, contains = event("create", ["a", 7], None, 1, 2, on), Refusal("ContainsArrayError")
    assert judged(made, event("create", ["a", 8], contains, 3, 4, on), event("read", ["a"], 7, 5, 6, on)) == []
    assert judged(made, event("move", ["a"], None, 3, 4, on), event("read", ["b"], 7, 5, 6, on)) == []
    assert judged(made, event("create", ["a", 8], None, 3, 4, on)) != []
    assert judged(made, event("read", ["a"], 0, 3, 4, on)) != []
    assert judged(made, event("delete", ["a"], None, 3, 4, on), event("read", ["a"], 7, 5, 6, on)) != []
    assert judged(made, event("move", ["a"], Refusal("NodeNotFoundError"), 3, 4, on)) != []
    assert judged(made, event("replace", ["a", 8], None, 3, OPEN, on), event("read", ["a"], 8, 5, 6, on)) == []


def test_a_length_is_that_of_resizes_and_appends() -> None:
    on = "length 1"
    grown = event("append", 3, 11, 1, 2, on)
    refused = Refusal("ConflictError")
    assert judged(grown, event("resize", [11, 5], None, 3, 4, on), event("append", 1, 6, 5, 6, on)) == []
    assert judged(grown, event("resize", [8, 5], refused, 3, 4, on)) == []
    assert judged(grown, event("resize", [8, 5], None, 3, 4, on)) != []
    assert judged(grown, event("resize", [11, 5], refused, 3, 4, on)) != []
    assert judged(grown, event("resize", [11, 5], refused, 3, 4, on), is_local=False) == []
    twice = (event("resize", [11, 5], None, 3, 5, on), event("resize", [11, 5], None, 4, 6, on))
    assert judged(grown, *twice) != []
    assert judged(grown, *twice, is_local=False) == []
    assert judged(grown, event("resize", [8, 5], None, 3, 4, on), is_local=False) != []
    assert judged(grown, event("append", 1, 15, 3, 4, on)) != []
    assert judged(grown, event("append", 1, 15, 3, 4, on), is_local=False) == []


def test_transactions_are_whole_and_counted() -> None:
    def pairs(p: list[Any], q: list[Any], count: int, *events: Event) -> list[str]:
        return judge.judge(events, End({"log": [], "pairs/p": p, "pairs/q": q}, count), is_local=True)

    one = [1, 1, 1]
    done, row = event("commit", one, 1, 1, 2, "pairs"), rows_of(one)
    assert pairs(row, row, 1, done) == []
    assert pairs(row, [], 1, done) != []
    assert pairs([], [], 0, done) != []
    assert pairs(row, row, 2, done) != []
    assert pairs(row, row, 1, done, event("look", None, [1, 0, True], 3, 4, "pairs")) != []
    assert pairs(row, row, 1, done, event("look", None, [1, 1, False], 3, 4, "pairs")) != []


def test_what_a_process_wrote_down_is_read_up_to_where_it_was_killed(tmp_path: Path) -> None:
    file = tmp_path / "0-0.jsonl"
    file.write_text(
        '{"client": 0, "do": "write", "on": "cell 1", "given": 5, "begun": 1.0}\n{"got": null, "ended": 2.0}\n'
        '{"client": 0, "do": "delete", "on": "f", "given": ["a"], "begun": 3.0}\n'
        '{"error": "KeyError", "told": "", "typed": true, "ended": 4.0}\n{"repeated": "reset"}\n'
        '{"client": 0, "do": "write", "on": "cell 1", "given": 6, "begun": 5.0}\n{"repeated": "reset"}\n'
        '{"error": "ZeroDivisionError", "told": "by zero", "typed": false, "ended": 6.0}\n'
        '{"client": 0, "do": "write", "on": "cell 1", "given": 7, "begun": 7.0}\n{"got": nu'
    )
    history = judge.read([file])
    assert [(one.given, one.got, one.ended) for one in history.events] == [
        (5, None, 2.0),
        (["a"], "KeyError", 4.0),
        (6, None, OPEN),
        (7, None, OPEN),
    ]
    assert [one.is_repeated for one in history.events] == [False, False, True, False]
    assert (history.acknowledged, history.refused, history.open) == (1, 1, 2)
    assert len(history.wrong) == 1
    assert "ZeroDivisionError" in history.wrong[0]
