"""Explain the differences that `scripts/ecosystem.py` finds.

scripts/ecosystem_differences.toml gives the reasons, each with patterns of tests and causes. What a pattern matches is
explained only once `--accept` has entered the test itself into scripts/ecosystem_explained.json, so that a test that a
pattern happens to cover and that fails later is found. A project that has no entry there yet is explained by patterns alone.
"""

from __future__ import annotations

import fnmatch
import json
import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
DIFFERENCES = SCRIPTS / "ecosystem_differences.toml"
EXPLAINED = SCRIPTS / "ecosystem_explained.json"


def ledger() -> list[dict[str, Any]]:
    """The reasons, with what they explain."""
    entries: list[dict[str, Any]] = tomllib.loads(DIFFERENCES.read_text(encoding="utf-8")).get("difference", [])
    return entries


def accepted() -> dict[str, dict[str, list[str]]]:
    """Project → reason → the tests that it explains."""
    kept: dict[str, dict[str, list[str]]] = json.loads(EXPLAINED.read_text(encoding="utf-8"))
    return kept


def proposed(project: str, differences: dict[str, list[str]], entries: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Reason → the differences that it matches; each goes to the first reason that does."""
    found: dict[str, list[str]] = defaultdict(list)
    for test, (_, cause) in differences.items():
        for entry in entries:
            if project in entry["projects"] and _matches(entry, test, cause):
                found[entry["why"]].append(test)
                break
    return dict(found)


def _matches(entry: dict[str, Any], test: str, cause: str) -> bool:
    by_name = any(fnmatch.fnmatchcase(test, pattern) for pattern in entry.get("tests", ["*"]))
    return by_name and re.search(entry.get("cause", ""), cause) is not None


def explained(found: dict[str, list[str]], known: dict[str, list[str]] | None) -> dict[str, list[str]]:
    """Those of the proposed explanations that were accepted (`known`; ``None``: all of them)."""
    if known is None:
        return found
    kept = {why: [test for test in tests if test in known.get(why, ())] for why, tests in found.items()}
    return {why: tests for why, tests in kept.items() if tests}


def outdated(found: dict[str, list[str]], known: dict[str, list[str]] | None) -> list[str]:
    """Tests that are entered as explained and that pass now, differ for another reason, or are no longer there."""
    present = {(why, test) for why, tests in found.items() for test in tests}
    return [test for why, tests in (known or {}).items() for test in tests if (why, test) not in present]


def accept(project: str, found: dict[str, list[str]]) -> None:
    """Enter the proposed explanations of a project, in place of those that it has."""
    kept = accepted() | {project: {why: sorted(tests) for why, tests in found.items()}}
    EXPLAINED.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
