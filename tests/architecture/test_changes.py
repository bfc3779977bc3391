"""How changes are told: the subjects of commits, and fragments of the changelog."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEFORE = "4917356009e6"
"""The last commit of the time before the rule."""
KINDS = ("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test")
SUBJECT = re.compile(rf"(?:{'|'.join(KINDS)})(?:\([a-z0-9_./, -]+\))?!?: [a-z`\"*_A-Z0-9].{{3,}}[^.\s]")
MOST = 120


TOO_LONG = {
    (
        "fix(transactions): a chunk in the place of a directory, names that are not ASCII, "
        "arrays without elements, snapshots of LMDB"
    ),
    (
        "fix(plan): documents of the source are compared before its values; the hint after Ctrl-C "
        "names part and stage; manifests of version 7"
    ),
    (
        "test(keys,indexing): what mutants of templates and boxes showed; boxes as large as the "
        "limit where a chunk ends beyond the array"
    ),
    (
        "feat(ecosystem): run suites with the patch on and with another pipeline; "
        "fix(facade): more forms of arguments of zarr-python"
    ),
    (
        "perf(native): read, decode and encode the blocks of a blosc chunk on all cores; "
        "bench writes in memory and the limit of writes (Rust changed)"
    ),
    (
        "docs(ecosystem): run xarray, its engine, spatialdata, anemoi-datasets, zarrs and the patch again; "
        "name commits of the history only"
    ),
    (
        "docs(performance): measure reading, opening, memory and writing at one commit; "
        "rows of L1 for a first open and ten readers"
    ),
    (
        "test(simulation): appender, followers, copies, conversions, plans, xarray, dask, rename, attributes; "
        "rules without the library"
    ),
    (
        "fix(xarray): write format 3 without zarr-python with every xarray since 2025.6; guess without recursion; "
        "make test-oldest"
    ),
    (
        "fix(convert): remove a replaced node last; "
        "describe copies and conversions in v3 too where their group is migrated meanwhile"
    ),
    "feat(campaigns): --begin, to run a later part of a list first; the next run still goes on where the first numbers end",
}
"""Subjects that stay, because history is not rewritten."""


def is_conventional(subject: str) -> bool:
    return len(subject) <= MOST and SUBJECT.fullmatch(subject) is not None


def subjects() -> list[str]:
    """Those since the rule, as far as this checkout knows them: an unpacked archive has none, a shallow clone a few."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        here = git("rev-parse", "--show-toplevel")
    except OSError:  # no git
        return []
    if not here or Path(here).resolve() != ROOT:
        return []
    if git("cat-file", "-t", BEFORE) == "commit":
        return git("log", "--no-merges", "--format=%s", f"{BEFORE}..HEAD").splitlines()
    return (
        git("log", "--no-merges", "--format=%s", "HEAD").splitlines()
        if git("rev-parse", "--is-shallow-repository") == "true"
        else []
    )


def test_the_subjects_of_commits_are_conventional() -> None:
    assert {subject for subject in subjects() if not is_conventional(subject)} - TOO_LONG == set()


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("fix(stores): sync new directories of durable writes", True),
        ("feat!: drop zarr v0", True),
        ("Small files are looked at as all others are", False),
        ("fix(stores): end with a full stop.", False),
        ("fixed: a kind that there is not", False),
        ("docs: " + "x" * 120, False),
    ],
)
def test_what_is_conventional(subject: str, expected: bool) -> None:
    assert is_conventional(subject) == expected


def test_fragments_of_the_changelog_have_a_kind_and_a_text() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    kinds = "|".join(kind["directory"] for kind in settings["type"])
    fragments = [path for path in (ROOT / settings["directory"]).iterdir() if path.name not in settings["ignore"]]
    assert [path.name for path in fragments if not re.fullmatch(rf"\+[a-z0-9-]+\.({kinds})\.md", path.name)] == []
    assert [path.name for path in fragments if re.match(r"\s|-|$", path.read_text(encoding="utf-8"))] == []
    assert settings["start_string"] in (ROOT / settings["filename"]).read_text(encoding="utf-8")
