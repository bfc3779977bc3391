"""The list of requirements is whole, and the marker that refers to it is checked."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from conformance import requirements, selected, verdict

REQUIREMENTS = Path(__file__).with_name("requirements.csv")


def test_the_list_holds_every_requirement_once() -> None:
    with REQUIREMENTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 447
    assert max(Counter(row["id"] for row in rows).values()) == 1
    assert all(row["level"] and row["section"] and row["requirement"] for row in rows)


@pytest.mark.parametrize(
    ("families", "count", "first"),
    [
        ([], 447, "V1-01"),
        (["V1"], 26, "V1-01"),
        (["V3-GZIP"], 4, "V3-GZIP-01"),
        (["OGC-01..05"], 5, "OGC-01"),
        (["OGC-01..OGC-05", "FS-01"], 6, "OGC-01"),
        (["V2-05"], 1, "V2-05"),
    ],
)
def test_a_family_is_a_prefix_a_range_or_an_id(families: list[str], count: int, first: str) -> None:
    found = selected(list(requirements()), families)
    assert (len(found), found[0]) == (count, first)


def test_a_family_that_names_nothing_is_an_error() -> None:
    with pytest.raises(SystemExit, match="V9"):
        selected(list(requirements()), ["V9"])


def test_one_failing_test_fails_a_requirement_and_a_skipped_one_shows_nothing() -> None:
    assert verdict({"a": "passed", "b": "failed"}) == "failing"
    assert verdict({"a": "passed", "b": "skipped"}) == "passing"
    assert verdict({"a": "skipped"}) == "not covered"
    assert verdict({}) == "not covered"


def test_an_unknown_id_stops_the_collection(tmp_path: Path) -> None:
    wrong = tmp_path / "test_wrong.py"
    wrong.write_text("import pytest\n@pytest.mark.spec('V9-99')\ndef test_it(): pass\n", encoding="utf-8")
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", str(wrong)]
    run = subprocess.run(
        [*command, "-c", str(root / "pyproject.toml"), "--rootdir", str(root)],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 4
    assert "V9-99" in run.stdout + run.stderr
