"""A pytest plugin for `scripts/ecosystem.py`: enters what came of each test into a journal, one JSON value per line.

ECOSYSTEM_JOURNAL=out.jsonl ECOSYSTEM_SECONDS=480 python -m pytest -p ecosystem_report …

Tests that the journal has are not run again, unless ECOSYSTEM_ALL is set. After ECOSYSTEM_SECONDS the run stops; the rest is
for the next. ECOSYSTEM_PRIVATE names the file of the tests that do not count (`ecosystem_public.py`), which are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

_JOURNAL = os.environ["ECOSYSTEM_JOURNAL"]
_SECONDS = float(os.environ.get("ECOSYSTEM_SECONDS") or "inf")
_RANK = {"passed": 0, "xpassed": 1, "xfailed": 2, "skipped": 3, "failed": 4, "error": 5}
_started = time.monotonic()
_current: dict[str, tuple[str, str]] = {}


def _write(**entry: Any) -> None:
    with open(_JOURNAL, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


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


def _private() -> set[str]:
    """Tests without their parameters that use undocumented names, where only the others count."""
    path = os.environ.get("ECOSYSTEM_PRIVATE")
    if not path:
        return set()
    with open(path, encoding="utf-8") as file:
        return {test for test, names in json.load(file).items() if names}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests that do not count, and those that the journal has."""
    private = _private()
    if private:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid.partition("[")[0] in private])
        items[:] = [item for item in items if item.nodeid.partition("[")[0] not in private]
    if os.environ.get("ECOSYSTEM_ALL") or not os.path.exists(_JOURNAL):
        return
    with open(_JOURNAL, encoding="utf-8") as file:
        entries = [json.loads(line) for line in file]
    known = {entry.get("test") or entry.get("start") for entry in entries}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
    items[:] = [item for item in items if item.nodeid not in known]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Say that the test is run, for when the process ends in it."""
    _current.clear()
    _write(start=nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the worst outcome of a test's phases."""
    if report.when != "call" and report.outcome == "passed":
        return
    outcome = _outcome(report)
    cause = _cause(report) if outcome in ("failed", "error") else ""
    known = _current.get(report.nodeid)
    if known is None or _RANK[outcome] > _RANK[known[0]]:
        _current[report.nodeid] = (outcome, cause)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Enter the outcome."""
    outcome, cause = _current.get(nodeid, ("error", "pytest gave no report"))
    _write(test=nodeid, outcome=outcome, cause=cause)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: Any) -> Any:
    """Stop between two tests when the time is over."""
    yield
    if time.monotonic() - _started > _SECONDS:
        item.session.shouldstop = "the time is over"


def pytest_collectreport(report: Any) -> None:
    """Keep what could not be collected."""
    if report.failed:
        _write(test=report.nodeid, outcome="error", cause=str(report.longrepr)[-600:])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: Any) -> None:
    """Say who answered ``import zarr``, and whether all tests were run."""
    zarr = sys.modules.get("zarr")
    answered = "nobody" if zarr is None else "tessarr" if "tessarr" in repr(zarr) else "zarr-python"
    inside = sys.modules.get("ecosystem_inside") or sys.modules.get("ecosystem_xarray")
    answered = inside.answered() if inside is not None else answered
    done = not session.shouldstop
    _write(finished=done, answered_by=answered, version=getattr(zarr, "__version__", None), **_circumstances())


def _circumstances() -> dict[str, str]:
    """The engine of tessarr that could be loaded, its commit, and the day; nothing where tessarr was not used.

    A commit whose code is changed is named ``…+changes``, which `ecosystem.py` does not enter into the page.
    """
    extension = sys.modules.get("tessarr.common.extension")
    if extension is None:
        return {}
    git = ["git", "-C", str(Path(__file__).resolve().parent.parent)]
    commit = subprocess.run(
        [*git, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False
    ).stdout
    same = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src", "rust"], capture_output=True, check=False)
    commit = commit.strip() + ("" if same.returncode == 0 else "+changes")
    engine = "reference" if extension.module() is None else "native"
    return {"engine": engine, "commit": commit, "day": time.strftime("%Y-%m-%d", time.gmtime())}
