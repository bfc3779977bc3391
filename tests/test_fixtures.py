"""Data written by other implementations reads as independent readers read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures import Case, cases, decisions, run

FOLDER = Path(__file__).parent / "fixtures"
CASES = list(cases(FOLDER))
DECIDED = decisions()


def test_every_source_is_there() -> None:
    assert len({case.source.name for case in CASES}) >= 20
    assert len(CASES) > 400


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_array_of_another_writer_reads_as_expected(case: Case) -> None:
    result = run(case, DECIDED)
    assert result.word in {"ok", "decided"}, result.detail
