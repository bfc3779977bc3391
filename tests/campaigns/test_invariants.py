"""The invariants of transactions are named where campaigns and tests assert them, so that a reader finds each."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "campaigns.md"
JUDGES = {
    "simulate": "tests/simulation/oracle.py",
    "faults": "tests/faults/injection.py",
    "power": "tests/faults/power.py",
    "histories": "tests/histories/judge.py",
}


def asserted_in(cell: str) -> set[Path]:
    """The files that a cell of the list names, by a link or by the campaign they are the judge of."""
    linked = {(PAGE.parent / target).resolve() for target in re.findall(r"\]\(([^)]+)\)", cell)}
    return linked | {PAGE.parents[1] / JUDGES[name] for name in re.findall(r"`(\w+)`", cell) if name in JUDGES}


def test_each_invariant_is_named_where_it_is_asserted() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## The invariants of transactions")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()[6:] if line]
    assert [row[0] for row in rows] == [f"I{number}" for number in range(1, 10)]
    files: set[Path] = set()
    for name, _, cell in rows:
        files = asserted_in(cell) | (files if cell.startswith("the same") else set())
        assert files
        assert [str(file) for file in files if not re.search(rf"\b{name}\b", file.read_text(encoding="utf-8"))] == []
