"""A pytest plugin for `scripts/ecosystem.py`: what came of each test, and which package answered ``import zarr``, as JSON.

ECOSYSTEM_REPORT=out.json python -m pytest -p ecosystem_report …
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

_RANK = {"passed": 0, "xpassed": 1, "xfailed": 2, "skipped": 3, "failed": 4, "error": 5}
_found: dict[str, list[str]] = {}


def _outcome(report: Any) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    if report.failed and report.when != "call":
        return "error"
    return str(report.outcome)


def _cause(report: Any) -> str:
    """The last line of the error, and the last two places that it passed."""
    crash = getattr(report.longrepr, "reprcrash", None)
    message = (crash.message if crash is not None else str(report.longrepr)).strip()
    places = [
        f"{entry.reprfileloc.path.rpartition('site-packages/')[2]}:{entry.reprfileloc.lineno}"
        for entry in getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", ())
        if getattr(entry, "reprfileloc", None) is not None
    ]
    return f"{message[:600]}\n  at {' < '.join(reversed(places[-3:]))}" if places else message[:600]


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the worst outcome of a test's phases."""
    if report.when != "call" and report.outcome == "passed":
        return
    outcome = _outcome(report)
    cause = _cause(report) if outcome in ("failed", "error") else ""
    known = _found.get(report.nodeid)
    if known is None or _RANK[outcome] > _RANK[known[0]]:
        _found[report.nodeid] = [outcome, cause]


def pytest_collectreport(report: Any) -> None:
    """Keep what could not be collected."""
    if report.failed:
        _found[report.nodeid] = ["error", str(report.longrepr)[-600:]]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: Any) -> None:
    """Write the report; the process of pytest-xdist that controls the others has all of it."""
    if hasattr(session.config, "workerinput"):
        return
    zarr = sys.modules.get("zarr")
    answered = "nobody" if zarr is None else "tessarr" if "tessarr" in repr(zarr) else "zarr-python"
    report = {"answered_by": answered, "version": getattr(zarr, "__version__", None), "tests": _found}
    with open(os.environ["ECOSYSTEM_REPORT"], "w", encoding="utf-8") as file:
        json.dump(report, file, indent=0)
