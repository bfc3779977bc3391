"""The page docs/ecosystem.md, out of the results that `scripts/ecosystem.py` keeps."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NO_ARRAY = "tessarr opened no array"
"""Of a run whose tests import zarr at most: it says nothing about reading and writing."""
_IN_PLACE = [
    "# Tests of other projects",
    "",
    "`make ecosystem` runs the tests of projects that use zarr-python twice: with zarr-python, and with tessarr in its",
    "place ([`tessarr.as_zarr`](as-zarr.md)). Only tests that pass with zarr-python count. Engine, day and commit are those of",
    "the last run with tessarr; a row without a commit is of a run whose commit was rebased since. Where a row says",
    f"*{NO_ARRAY}*, the tests read and write no Zarr, and show nothing.",
    "",
    "| project | releases | tests | pass with tessarr | of | |",
    "|---|---|---|---|---|---|",
]
_HOW = [
    "",
    "`make ecosystem` prints these numbers; `.venv/bin/python scripts/ecosystem.py --report --write` writes this",
    "page from the results. `--supported oldest` runs the projects named `…-oldest`, the oldest supported",
    "releases. Other projects are the newest for the installed Python; a newer Python may run newer ones. Of",
    "zarr-python's own tests those count that use only names which it documents (`scripts/ecosystem_public.py`).",
    "",
]
_INSIDE = [
    "## Inside zarr-python",
    "",
    "The same, with tessarr [inside zarr-python](zarr-python.md): all tests of zarr-python under",
    "`tessarr.zarr_python.patch()`, and the tests of zarrs, with tessarr's codec pipeline where they ask for that of zarrs.",
    "Data types that tessarr adds are left out: tests of zarr-python are made of those that are registered.",
    "Mode `engine`: xarray's tests of its Zarr stores, which write with `tessarr.xarray.to_zarr` and read with",
    '`engine="tessarr"` ([xarray](xarray.md)).',
    "",
    "| project | releases | tests | mode | pass | of | |",
    "|---|---|---|---|---|---|---|",
]


def percent(entry: dict[str, Any]) -> float:
    """The percentage of the tests that pass, of those that count."""
    return 100 * entry["passed"] / entry["counted"] if entry["counted"] else 0.0


def circumstances(journal: list[dict[str, Any]]) -> str:
    """The engine, day and commit of a run with tessarr, or that it opened no array; empty where its journal does not say."""
    told = [entry for entry in journal if "engine" in entry]
    engines = "/".join(sorted({entry["engine"] for entry in told}))
    if not told and any(entry.get("answered_by") == "tessarr" for entry in journal):
        return NO_ARRAY
    return f"{engines} engine, {told[-1]['day']}, {'/'.join(commits(journal))}" if told else ""


def commits(journal: list[dict[str, Any]]) -> list[str]:
    """The commits of tessarr that a run was made with, in its order; several when it was stopped and went on with another."""
    return [*dict.fromkeys(entry["commit"] for entry in journal if "commit" in entry)]


def in_history(commit: str) -> bool:
    """Whether the present commit is this one, or has it as an ancestor. A rebased commit does not count: nobody else has it."""
    command = ["git", "-C", str(ROOT), "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def require_history(project: str, journal: list[dict[str, Any]]) -> None:
    """Refuse a run whose commits are not in the history, or whose code was changed beside its commit."""
    gone = [commit for commit in commits(journal) if not in_history(commit)]
    if gone:
        raise SystemExit(
            f"{project}: its run names {gone}, not in this branch's history. Commit, rebase, run it again."
        )


def _releases(entry: dict[str, Any]) -> str:
    """The releases that were run, and how."""
    return "; ".join(filter(None, (entry["releases"], entry.get("run", ""))))


def page(kept: dict[str, Any], left_out: dict[str, str]) -> str:
    """docs/ecosystem.md."""
    in_place = [(name, entry) for name, entry in sorted(kept.items()) if entry.get("mode", "tessarr") == "tessarr"]
    inside = [(name, entry) for name, entry in sorted(kept.items()) if entry.get("mode", "tessarr") != "tessarr"]
    reasons = [
        f"| {name} | {count} | {why} |"
        for name, entry in sorted(kept.items())
        for why, count in sorted(entry["explained"].items())
    ]
    unexplained = [f"- {name}: {entry['unexplained']}" for name, entry in sorted(kept.items()) if entry["unexplained"]]
    return "\n".join(
        [
            *_IN_PLACE,
            *(f"| {name} | {_releases(entry)} | `{entry['suite']}` | {_counts(entry)} |" for name, entry in in_place),
            *_HOW,
            *(_INSIDE if inside else []),
            *(
                f"| {name} | {_releases(entry)} | `{entry['suite']}` | {entry['mode']} | {_counts(entry)} |"
                for name, entry in inside
            ),
            *([""] if inside else []),
            "## Explained differences",
            "",
            "| project | tests | reason |",
            "|---|---|---|",
            *reasons,
            *(["", "## Unexplained differences", "", *unexplained] if unexplained else []),
            "",
            "## Projects that are not run",
            "",
            "| project | reason |",
            "|---|---|",
            *(f"| {name} | {why} |" for name, why in sorted(left_out.items())),
            "",
        ]
    )


def _counts(entry: dict[str, Any]) -> str:
    return f"{entry['passed']} | {entry['counted']} | {percent(entry):.2f} %"
