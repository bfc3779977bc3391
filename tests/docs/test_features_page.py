"""docs/features.md says what `scripts/features_table.py` prints, and names a test for every requirement."""

from __future__ import annotations

from pathlib import Path

import features_table


def test_the_page_holds_the_tables_as_they_are_printed_today() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "features.md").read_text(encoding="utf-8")
    assert features_table.tables() in page, "run scripts/features_table.py --write"


def test_every_requirement_has_a_test_and_a_family() -> None:
    ids = [row["id"] for row in features_table.requirements()]
    assert {one.partition("-")[0] for one in ids} == features_table.FAMILIES.keys()
    tests = features_table.shown()
    assert [one for one in ids if not tests.get(one)] == []
