"""Run the tests of projects that use zarr-python, with zarr-python and with tessarr in its place, and compare.

    python scripts/ecosystem.py                       # every project of scripts/ecosystem.toml
    python scripts/ecosystem.py xarray dask           # some of them
    python scripts/ecosystem.py xarray --only tessarr --args "-x --lf" --causes 15
    python scripts/ecosystem.py --report              # compare the results that are there, without running anything
    python scripts/ecosystem.py --write               # docs/ecosystem.md from them

Each project gets an environment of its own under build/ecosystem; its tests come out of its released archive, or out of the
installed package. A test counts that passes with zarr-python. One that then does not pass with tessarr is a difference, and
must be explained by an entry of scripts/ecosystem_differences.toml. Exits 1 when one is not, or a project is below its floor.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "ecosystem"
PROJECTS = ROOT / "scripts" / "ecosystem.toml"
DIFFERENCES = ROOT / "scripts" / "ecosystem_differences.toml"
RESULTS = ROOT / "scripts" / "ecosystem_results.json"
PAGE = ROOT / "docs" / "ecosystem.md"
MODES = ("zarr-python", "tessarr")
PASSED = ("passed", "xpassed")


class Project(NamedTuple):
    """One entry of ecosystem.toml."""

    name: str
    requires: list[str]
    sdist: str | None
    suite: list[str]
    floor: float
    """Percent of the tests that pass with zarr-python."""
    env: dict[str, str]

    @property
    def place(self) -> Path:
        """Its directory."""
        return BUILD / self.name

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return self.place / "venv" / "bin" / "python"

    def result(self, mode: str) -> Path:
        """Where the outcomes of its tests are kept."""
        return BUILD / "results" / f"{self.name}.{mode}.json"


def common() -> list[str]:
    """What every environment has."""
    requires: list[str] = tomllib.loads(PROJECTS.read_text(encoding="utf-8"))["common"]["requires"]
    return requires


def projects() -> dict[str, Project]:
    """All projects, in their order."""
    table = tomllib.loads(PROJECTS.read_text(encoding="utf-8"))
    table.pop("common")
    return {
        name: Project(
            name,
            common() + entry["requires"],
            entry.get("sdist"),
            entry["suite"],
            entry.get("floor", 0),
            entry.get("env", {}),
        )
        for name, entry in table.items()
    }


# -- setting up ------------------------------------------------------------------------------------------------------


def set_up(project: Project) -> Path:
    """Install the environment and unpack the tests, unless it is done; give the directory that the tests run in."""
    stamp = project.place / "installed"
    wanted = "\n".join([*project.requires, project.sdist or ""])
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"{project.name}: setting up {project.place}", flush=True)
        if not project.python.exists():
            subprocess.run([sys.executable, "-m", "venv", project.place / "venv"], check=True)
        subprocess.run([project.python, "-m", "pip", "install", "--quiet", *project.requires], check=True)
        if project.sdist is not None:
            fetch(project)
        stamp.write_text(wanted, encoding="utf-8")
    sources = sorted(path for path in (project.place / "source").glob("*") if path.is_dir())
    if project.sdist is not None:
        return sources[-1]
    empty = project.place / "run"
    empty.mkdir(exist_ok=True)
    return empty


def fetch(project: Project) -> None:
    """Download the archive of the release that is installed, and unpack it."""
    assert project.sdist is not None
    name = re.split(r"[=<>\[]", project.sdist)[0]
    version = output(project, "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))", name)
    archives = project.place / "archive"
    command = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", str(archives)]
    subprocess.run([project.python, *command, f"{name}=={version}"], check=True)
    for archive in archives.glob("*.tar.gz"):
        with tarfile.open(archive) as tar:
            tar.extractall(project.place / "source", filter="data")


def output(project: Project, code: str, *arguments: str) -> str:
    """What `code` prints in the project's environment."""
    return subprocess.run(
        [project.python, "-c", code, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


# -- running ---------------------------------------------------------------------------------------------------------


def run(project: Project, mode: str, extra: list[str], timeout_s: int, again: list[str]) -> None:
    """Run the project's tests with `mode` answering ``import zarr``, and keep the outcomes.

    When `again` names tests, only those are run, and their outcomes replace those that are kept.
    """
    where = set_up(project)
    report = project.result(mode)
    report.parent.mkdir(parents=True, exist_ok=True)
    kept = outcomes(project, mode) if again else {}
    kept_report = report.read_text(encoding="utf-8") if again else ""
    report.unlink(missing_ok=True)
    suite = project.suite
    if again:
        names = report.with_suffix(".again")
        names.write_text("\n".join(again), encoding="utf-8")
        suite = [f"@{names}"]
    paths = [str(ROOT / "scripts"), str(ROOT / "src")]
    environment = {**os.environ, **project.env, "ECOSYSTEM_REPORT": str(report), "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("TESSARR_AS_ZARR", None)
    start = ["-m", "tessarr.as_zarr", "-m", "pytest"] if mode == "tessarr" else ["-m", "pytest"]
    options = ["-p", "ecosystem_report", "-q", "--no-header", "--tb=short", f"--timeout={timeout_s}"]
    if mode == "tessarr":  # zarr-python, installed but hidden, has a plugin that pytest would want to load
        options += ["-p", "no:zarr", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    log = report.with_suffix(".log")
    with log.open("w", encoding="utf-8") as file:
        subprocess.run(
            ["nice", project.python, *start, *options, *suite, *extra],
            cwd=where, env=environment, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    if not report.exists():
        if again:
            report.write_text(kept_report, encoding="utf-8")
        raise SystemExit(f"{project.name}: pytest wrote no report; see {log}")
    found = json.loads(report.read_text(encoding="utf-8"))
    if kept:
        found["tests"] = {**kept, **found["tests"]}
        report.write_text(json.dumps(found, indent=0), encoding="utf-8")
    answered = found["answered_by"]
    if answered not in (mode, "nobody"):
        raise SystemExit(f"{project.name}: {answered} answered `import zarr`, not {mode}; see {log}")


def outcomes(project: Project, mode: str) -> dict[str, list[str]]:
    """Test → outcome and cause; empty when the project was not run."""
    path = project.result(mode)
    return json.loads(path.read_text(encoding="utf-8"))["tests"] if path.exists() else {}


# -- comparing -------------------------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """What became of the tests that pass with zarr-python."""

    counted: int
    passed: int
    differences: dict[str, list[str]]
    """Test → outcome and cause with tessarr."""
    explained: dict[str, list[str]]
    """Explanation → tests."""

    @property
    def percent(self) -> float:
        """Of the tests that count."""
        return 100 * self.passed / self.counted if self.counted else 0.0

    @property
    def unexplained(self) -> list[str]:
        """Tests that no entry of the ledger names."""
        known = {test for tests in self.explained.values() for test in tests}
        return [test for test in self.differences if test not in known]


def compare(project: Project, ledger: list[dict[str, Any]]) -> Comparison:
    """Compare the outcomes of both modes."""
    before, after = outcomes(project, MODES[0]), outcomes(project, MODES[1])
    counted = [test for test, (outcome, _) in before.items() if outcome in PASSED]
    differences = {
        test: after.get(test, ["missing", "the test was not collected"])
        for test in counted
        if after.get(test, ["missing"])[0] not in PASSED
    }
    explained: dict[str, list[str]] = defaultdict(list)
    for test, (_, cause) in differences.items():
        for entry in ledger:
            if project.name in entry["projects"] and _matches(entry, test, cause):
                explained[entry["why"]].append(test)
                break
    return Comparison(len(counted), len(counted) - len(differences), differences, dict(explained))


def _matches(entry: dict[str, Any], test: str, cause: str) -> bool:
    by_name = any(fnmatch.fnmatchcase(test, pattern) for pattern in entry.get("tests", ["*"]))
    return by_name and re.search(entry.get("cause", ""), cause) is not None


def ledger() -> list[dict[str, Any]]:
    """The explanations."""
    if not DIFFERENCES.exists():
        return []
    entries: list[dict[str, Any]] = tomllib.loads(DIFFERENCES.read_text(encoding="utf-8")).get("difference", [])
    return entries


def causes(comparison: Comparison, count: int) -> None:
    """Print the most frequent causes, with an example of each."""
    groups: dict[str, list[str]] = defaultdict(list)
    for test, (_, cause) in comparison.differences.items():
        first = cause.split("\n")[0]
        groups[re.sub(r"0x[0-9a-f]+|'/[^']*'|\d+|/\S+", "…", first)[:160]].append(test)
    for cause, tests in sorted(groups.items(), key=lambda item: -len(item[1]))[:count]:
        print(
            f"{len(tests):5}  {cause}\n       {tests[0]}\n      {comparison.differences[tests[0]][1].splitlines()[-1]}"
        )


def print_table(chosen: list[Project], count: int) -> dict[str, dict[str, Any]]:
    """Print passed-of-passed per project; give the numbers."""
    entries, numbers = ledger(), {}
    print(f"{'project':14}{'passed':>8}{'of':>7}{'%':>8}{'floor':>7}  unexplained")
    for project in chosen:
        if not all(project.result(mode).exists() for mode in MODES):
            continue
        comparison = compare(project, entries)
        numbers[project.name] = {
            "passed": comparison.passed,
            "counted": comparison.counted,
            "floor": project.floor,
            "unexplained": len(comparison.unexplained),
            "explained": {why: len(tests) for why, tests in comparison.explained.items()},
        }
        print(
            f"{project.name:14}{comparison.passed:8}{comparison.counted:7}{comparison.percent:8.2f}{project.floor:7}"
            f"  {len(comparison.unexplained)}"
        )
        if count:
            causes(comparison, count)
    return numbers


def versions(project: Project) -> str:
    """The releases that were run, as the environment has them."""
    names = [re.split(r"[=<>\[]", name)[0] for name in project.requires[len(common()) :][:1]]
    code = "import importlib.metadata as m, sys; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return output(project, code, *dict.fromkeys([*names, "zarr"]))


def keep(numbers: dict[str, dict[str, Any]], chosen: list[Project]) -> None:
    """Enter the numbers of the projects that were run into scripts/ecosystem_results.json, and write the page."""
    kept: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for project in chosen:
        if project.name in numbers:
            suite = " ".join(project.suite)
            kept[project.name] = {"releases": versions(project), "suite": suite, **numbers[project.name]}
    RESULTS.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(kept), encoding="utf-8")


def page(kept: dict[str, Any]) -> str:
    """docs/ecosystem.md."""
    rows = [
        f"| {name} | {entry['releases']} | `{entry['suite']}` "
        f"| {entry['passed']} | {entry['counted']} | {_percent(entry):.2f} % |"
        for name, entry in sorted(kept.items())
    ]
    reasons = [
        f"| {name} | {count} | {why} |"
        for name, entry in sorted(kept.items())
        for why, count in sorted(entry["explained"].items())
    ]
    unexplained = [f"- {name}: {entry['unexplained']}" for name, entry in sorted(kept.items()) if entry["unexplained"]]
    return "\n".join(
        [
            "# The tests of others",
            "",
            "Projects that use zarr-python have tests of their own. `make ecosystem` runs them twice, with zarr-python and",
            "with tessarr in its place ([`tessarr.as_zarr`](as-zarr.md)). A test counts that passes with zarr-python.",
            "",
            "| project | releases | tests | pass with tessarr | of | |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            "`make ecosystem` prints these numbers; `.venv/bin/python scripts/ecosystem.py --report --write` writes this",
            "page from its results.",
            "",
            "## Differences, explained",
            "",
            "| project | tests | why |",
            "|---|---|---|",
            *reasons,
            *(["", "## Not explained yet", "", *unexplained] if unexplained else []),
            "",
        ]
    )


def main() -> int:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", nargs="*", help="all when none is named")
    parser.add_argument("--only", choices=MODES, help="run with one of the two alone")
    parser.add_argument("--failed", action="store_true", help="with tessarr, run only the differences again")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--write", action="store_true", help="write docs/ecosystem.md")
    parser.add_argument("--args", default="", help="more arguments for pytest")
    parser.add_argument("--causes", type=int, default=0, help="print that many causes of differences per project")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one test")
    arguments = parser.parse_args()
    known = projects()
    chosen = [known[name] for name in arguments.projects] if arguments.projects else [*known.values()]
    for project in () if arguments.report else chosen:
        if arguments.failed:
            again = [*compare(project, []).differences]
            if again:
                print(f"{project.name}: {len(again)} tests again", flush=True)
                run(project, MODES[1], shlex.split(arguments.args), arguments.timeout, again)
            continue
        for mode in (arguments.only,) if arguments.only else MODES:
            print(f"{project.name}: with {mode}", flush=True)
            run(project, mode, shlex.split(arguments.args), arguments.timeout, [])
    numbers = print_table(chosen, arguments.causes)
    if arguments.write:
        keep(numbers, chosen)
    good = all(entry["unexplained"] == 0 and _percent(entry) >= entry["floor"] for entry in numbers.values())
    return 0 if good and numbers else 1


def _percent(entry: dict[str, Any]) -> float:
    return 100 * entry["passed"] / entry["counted"] if entry["counted"] else 0.0


if __name__ == "__main__":
    sys.exit(main())
