"""The frame of the campaigns: runs go on where the log says, and the page says what the log says."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import campaign  # noqa: E402
from campaigns import jobs, log, slices  # noqa: E402
from campaigns.slices import Slice, timed  # noqa: E402

from tests.simulation import cases  # noqa: E402


def pretended(begin: int, seconds: float) -> Any:
    """A campaign that does ten numbers in two slices; of each number that ends with 7 something is wrong."""
    for at in (begin, begin + 5):
        part = Slice(at + 5)
        for number in range(at, at + 5):
            part.count("things")
            if number % 10 == 7:
                part.find(number, "seven")
        yield part


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(campaign, "campaign", lambda _: SimpleNamespace(slices=pretended))
    return tmp_path / "log.jsonl"


def test_a_run_goes_on_where_the_log_says_and_adds_a_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.run("simulate", 1, file) == 1
    assert campaign.run("other", 1, file) == 1
    first = log.read(file)[0]
    assert {key: first[key] for key in ("campaign", "from", "to", "figures", "findings")} == {
        "campaign": "simulate",
        "from": 0,
        "to": 10,
        "figures": {"things": 10},
        "findings": 1,
    }
    assert log.position("simulate", log.read(file)) == 10
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["simulate: FINDING --repeat 7: seven", "simulate: 0 to 10: 10 things, 1 findings"]


def test_a_run_that_begins_farther_leaves_no_number_out(file: Path) -> None:
    campaign.run("simulate", 1, file, begin=30)
    assert [(line["from"], line["to"]) for line in log.read(file)] == [(30, 40)]
    lines = [{"campaign": "simulate", "from": begin, "to": begin + 10} for begin in (4, 30, 14)]
    assert log.position("simulate", lines) == 24
    assert log.position("simulate", [*lines, {"campaign": "simulate", "from": 24, "to": 30}]) == 40


def test_a_run_that_is_killed_has_logged_its_slices(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(begin: int, seconds: float) -> Any:
        yield from pretended(begin, seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign, "campaign", lambda _: SimpleNamespace(slices=killed))
    with pytest.raises(KeyboardInterrupt):
        campaign.run("simulate", 1, file)
    (line,) = log.read(file)
    assert (line["from"], line["to"]) == (0, 10)


def test_a_number_that_takes_long_is_told_slice_by_slice_and_done_again_when_the_run_ends() -> None:
    def endless(number: int, part: Slice) -> Any:
        while True:
            part.count("steps")
            yield

    parts = timed(3, 60, endless, slice_s=0)
    assert [(part.to, part.figures) for part, _ in zip(parts, range(3), strict=False)] == [(3, {"steps": 1})] * 3


def test_a_run_whose_numbers_take_longer_than_a_slice_ends_with_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(slices, "time", SimpleNamespace(monotonic=lambda: next(seconds)))

    def long(number: int, part: Slice) -> Iterator[None]:
        for _ in range(50):
            part.count("steps")
            yield
        assert number < 20, "it does not end"

    assert [*timed(0, 90, long, slice_s=10)][-1].to < 5


def test_processes_share_the_numbers_of_a_run_and_leave_none_out() -> None:
    parts = [*jobs.shared("simulate", 3, 1, 2, slice_s=0)]
    assert len(parts) > 2
    for before, part in zip([Slice(3), *parts], parts, strict=False):
        assert part.figures.get("seeds", 0) == part.to - before.to


def test_processes_that_share_a_list_stop_at_its_end() -> None:
    last = len(cases.pairs())
    assert [*jobs.shared("pairs", last, 60, 2)] == [Slice(last)]


def test_the_table_sums_the_lines_of_a_campaign() -> None:
    line = {"campaign": "a", "commit": "abc", "seconds": 1800, "figures": {"seeds": 1000, "pairs": 1}, "findings": 1}
    assert log.table([line, {**line, "commit": "def"}]).splitlines()[2:] == [
        "| `a` | 2 | def | 1.0 | 2,000 seeds, 2 pairs | 2 |"
    ]


def test_the_page_has_the_table_of_the_log(tmp_path: Path) -> None:
    page = tmp_path / "campaigns.md"
    page.write_text(log.PAGE.read_text(encoding="utf-8"))
    log.write_page(page)
    assert page.read_text() == log.PAGE.read_text(), "run `python scripts/campaign.py --page`"


def test_every_campaign_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(campaign.NAMES)
    text = log.PAGE.read_text(encoding="utf-8")
    for name in campaign.NAMES:
        assert f"\n## `{name}`\n" in text
        assert f"\n| `{name}` | " in text
