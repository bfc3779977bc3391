"""Run the tests of projects that use zarr-python, with zarr-python and with tessarr in its place or inside it, and compare.

    python scripts/ecosystem.py                       # every project of scripts/ecosystem.toml
    python scripts/ecosystem.py xarray dask           # some of them
    python scripts/ecosystem.py --supported oldest    # with the oldest releases that are supported; or newest
    python scripts/ecosystem.py xarray --only tessarr --args "-x --lf" --causes 15
    python scripts/ecosystem.py zarr-python --tests "tests/test_store tests/test_api.py"     # a part; the rest is kept
    python scripts/ecosystem.py xarray --seconds 480  # stop then; exits 75 while tests are left; goes on when run again
    python scripts/ecosystem.py --report              # compare the results that are there, without running anything
    python scripts/ecosystem.py --report --accept     # name the differences that entries of the ledger explain
    python scripts/ecosystem.py --report --write      # docs/ecosystem.md from them

Each project gets an environment of its own under build/ecosystem, of the Python that ECOSYSTEM_PYTHON names, made by uv, whose
cache they share. Its tests come out of its released archive, or out of the installed package. They run in two modes: with
zarr-python alone, and in the mode that the project names, with tessarr in place of zarr-python ("tessarr"), with
`tessarr.zarr_python.patch` ("patch"), or with tessarr's codec pipeline where the tests ask for that of zarrs ("pipeline"). A
test counts that passes with zarr-python alone. One that then does not pass in the other mode is a difference, and must be
explained: by an entry of scripts/ecosystem_differences.toml, and by name in scripts/ecosystem_explained.json
(`ecosystem_ledger.py`). Exits 1 when one is not, when one that is named there passes, or when a project is below its floor.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import time
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from ecosystem_folders import for_children, package
from ecosystem_ids import paired, without_addresses
from ecosystem_ledger import accept, accepted, explained, ledger, outdated, proposed
from ecosystem_page import circumstances, page, percent, require_history

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "ecosystem"
PROJECTS = ROOT / "scripts" / "ecosystem.toml"
RESULTS = ROOT / "scripts" / "ecosystem_results.json"
PAGE = ROOT / "docs" / "ecosystem.md"
ALONE = "zarr-python"
"""The mode that every project is run in first."""
MODES = (ALONE, "tessarr", "patch", "pipeline", "engine")
PASSED = ("passed", "xpassed")
UNFINISHED = 75
"""The exit status while tests are left: EX_TEMPFAIL of sysexits.h."""


class Project(NamedTuple):
    """One entry of ecosystem.toml."""

    name: str
    requires: list[str]
    sdist: str | None
    suite: list[str]
    floor: float
    """Percent of the tests that pass with zarr-python."""
    env: dict[str, str]
    zarr: int = 3
    """Whose names tessarr shows: those of zarr-python 3, or 2."""
    supported: str | None = None
    """``"oldest"`` where the entry pins the oldest supported releases."""
    python_version: str | None = None
    """The CPython that its release needs, where ours is too old for it."""
    public: bool = False
    """Count only tests that use documented names of zarr-python (`ecosystem_public.py`); what is undocumented and
    missing fails in use, not on import (`ecosystem_placeholders.py`)."""
    mode: str = "tessarr"
    """The mode that is compared with zarr-python alone."""
    like: str | None = None
    """The project whose environment and outcomes with zarr-python alone it has."""
    suite_alone: list[str] | None = None
    """The suite of `like`, which is run with zarr-python alone, so that its outcomes stay whole."""
    counts: str = ""
    """A regular expression that the names of the tests match which count."""
    backend: str | None = None
    """Its build backend, where that cannot give metadata without tools that we lack (`ecosystem_backend.py`)."""

    @property
    def place(self) -> Path:
        """Its directory."""
        return BUILD / (self.like or self.name)

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return self.place / "venv" / "bin" / "python"

    def journal(self, mode: str) -> Path:
        """Where the outcomes of its tests are kept, one JSON value per line."""
        name = self.like or self.name if mode == ALONE else self.name
        return BUILD / "results" / f"{name}.{mode}.jsonl"

    @property
    def modes(self) -> tuple[str, str]:
        """The two modes that are compared."""
        return ALONE, self.mode


def tables() -> tuple[dict[str, Any], dict[str, dict[str, Any]], dict[str, str]]:
    """What all environments have; the entries of projects; and project → why it is not run."""
    entries = tomllib.loads(PROJECTS.read_text(encoding="utf-8"))
    common, left_out = entries.pop("common"), entries.pop("left-out", {})
    return common, entries, left_out


def projects() -> dict[str, Project]:
    """All projects, in their order."""
    common, own, _ = tables()
    entries = {name: {**own[entry["like"]], **entry} if "like" in entry else entry for name, entry in own.items()}
    return {
        name: Project(
            name,
            entry["requires"] + common["requires"] + ([] if names_zarr(entry) else [common["zarr"]]),
            entry.get("sdist"),
            entry["suite"],
            entry.get("floor", 97),
            entry.get("env", {}),
            entry.get("zarr", 3),
            entry.get("supported"),
            entry.get("python"),
            entry.get("public", False),
            entry.get("mode", "tessarr"),
            entry.get("like"),
            own[entry["like"]]["suite"] if "like" in entry else None,
            entry.get("counts", ""),
            entry.get("backend"),
        )
        for name, entry in entries.items()
    }


def names_zarr(entry: dict[str, Any]) -> bool:
    """Whether a project says itself which zarr-python it is run with."""
    return any(re.match(r"zarr\b(?!-)", requirement) for requirement in entry["requires"])


# -- setting up ------------------------------------------------------------------------------------------------------


def set_up(project: Project) -> Path:
    """Install the environment and unpack the tests, unless it is done; give the directory that the tests run in."""
    stamp = project.place / "installed"
    wanted = "\n".join([*project.requires, project.sdist or ""])
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"{project.name}: setting up {project.place}", flush=True)
        project.place.mkdir(parents=True, exist_ok=True)
        if not project.python.exists():
            interpreter = project.python_version or os.environ.get("ECOSYSTEM_PYTHON", sys.executable)
            uv("venv", "--python", interpreter, str(project.place / "venv"))
        uv("pip", "install", "--python", str(project.python), *project.requires)
        if project.sdist is not None:
            fetch(project)
        stamp.write_text(wanted, encoding="utf-8")
    if project.sdist is not None:
        return max(path for path in (project.place / "source").glob("*") if path.is_dir())
    (empty := project.place / "run").mkdir(exist_ok=True)
    return empty


def uv(*arguments: str) -> None:
    """Run uv, which links what several environments have into each, from one cache."""
    place = BUILD / "uv"
    program = place / "bin" / "uv"
    if not program.exists():
        command = [
            sys.executable,
            *shlex.split("-m pip install --quiet --disable-pip-version-check --target"),
            str(place),
        ]
        subprocess.run([*command, "uv"], check=True, stdin=subprocess.DEVNULL)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))  # its shims run only the selected versions
    path = os.pathsep.join([os.environ["PATH"], *map(str, pyenv.glob("versions/*/bin"))])
    environment = {**os.environ, "PATH": path, "UV_CACHE_DIR": str(BUILD / "uv-cache"), "UV_NO_PROGRESS": "1"}
    subprocess.run(["nice", program, "--quiet", *arguments], check=True, env=environment, stdin=subprocess.DEVNULL)


def fetch(project: Project) -> None:
    """Download the archive of the release that is installed, and unpack it."""
    assert project.sdist is not None
    name = re.split(r"[=<>\[]", project.sdist)[0]
    version = output(project, "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))", name)
    archives = project.place / "archive"
    command = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name, "-d", str(archives)]
    command += ["--python-version", project.python_version] if project.python_version else []
    command += ["--no-build-isolation"] if project.backend else []
    environment = {**os.environ, **({"PYTHONPATH": _stand_in(project.backend)} if project.backend else {})}
    if not (archives / f"{name}-{version}.tar.gz").exists():  # pip builds a project's metadata to learn its name
        command = ["nice", sys.executable, *command, f"{name}=={version}"]
        subprocess.run(command, check=True, env=environment, stdin=subprocess.DEVNULL)
    for archive in archives.glob("*.tar.gz"):
        with tarfile.open(archive) as tar:
            tar.extractall(project.place / "source", filter="data")


def _stand_in(backend: str) -> str:
    """A directory with `ecosystem_backend.py` under the name of a build backend."""
    place = BUILD / "backends"
    module = place.joinpath(*backend.split(".")).with_suffix(".py")
    module.parent.mkdir(parents=True, exist_ok=True)
    (module.parent / "__init__.py").touch()  # another package of the name would come first
    module.write_bytes((ROOT / "scripts" / "ecosystem_backend.py").read_bytes())
    return str(place)


def output(project: Project, code: str, *arguments: str) -> str:
    """What `code` prints in the project's environment."""
    return subprocess.run(
        [project.python, "-c", code, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


# -- running ---------------------------------------------------------------------------------------------------------


class Options(NamedTuple):
    """How tests are run."""

    pytest: list[str]
    """More arguments for pytest."""
    timeout_s: int
    """Of one test."""
    until: float | None
    """When to stop, on the monotonic clock; ``None``: when all are done."""


def run(project: Project, mode: str, options: Options, again: list[str]) -> bool:
    """Run the project's tests with `mode` answering ``import zarr``, and keep the outcomes; say whether all were run.

    Goes on where a run was stopped or ended by itself. When `again` names tests, files or folders, those are run, and their
    outcomes replace those that are kept.
    """
    where = set_up(project)
    journal = project.journal(mode)
    journal.parent.mkdir(parents=True, exist_ok=True)
    if not again and finished(journal):
        journal.unlink()
    suite = project.suite_alone or project.suite if mode == ALONE else project.suite
    if again:
        names = journal.with_suffix(".again")
        names.write_text("\n".join(again), encoding="utf-8")
        suite = [f"@{names}"]
    for _ in range(20):  # a test that ends the process is a failure, and the others are run all the same
        known = len(outcomes(project, mode))
        _pytest(project, mode, options, where, journal, suite, all_of_them=bool(again))
        if again or finished(journal):
            break
        if options.until is not None and time.monotonic() > options.until:
            return False
        if len(outcomes(project, mode)) == known:
            raise SystemExit(f"{project.name}: pytest ran no test; see {journal.with_suffix('.log')}")
    answered = {entry["answered_by"] for entry in lines(journal) if "answered_by" in entry}
    if answered - {mode, "nobody"}:
        raise SystemExit(f"{project.name}: {answered} answered `import zarr`, not {mode}; see {journal}")
    print(f"{project.name}: {circumstances(lines(journal)) or 'without tessarr'}", flush=True)
    return True


def _pytest(
    project: Project, mode: str, options: Options, where: Path, journal: Path, suite: list[str], *, all_of_them: bool
) -> None:
    """Run pytest once."""
    paths = [str(ROOT / "scripts"), *([] if mode == ALONE else [str(package(ROOT, BUILD, mode))])]
    environment = {**os.environ, **project.env, "ECOSYSTEM_JOURNAL": str(journal), "PYTHONPATH": os.pathsep.join(paths)}
    if options.until is not None:
        environment["ECOSYSTEM_SECONDS"] = str(max(1, int(options.until - time.monotonic())))
    environment["ECOSYSTEM_ALL"] = "1" if all_of_them else ""
    environment.pop("TESSARR_AS_ZARR", None)
    start = ["-m", "pytest"]
    arguments = ["-p", "ecosystem_report", "-q", "--no-header", "--tb=short", f"--timeout={options.timeout_s}"]
    arguments += ["-p", "no:cacheprovider", "--continue-on-collection-errors", "-o", "faulthandler_timeout=0"]
    arguments += ["--rootdir", "."]
    (BUILD / "pytest.ini").touch()  # for projects without settings: pytest would go up to those of tessarr
    if mode == "tessarr" and project.public:
        arguments += ["-p", "ecosystem_placeholders"]
        environment["PYTHONPATH"] = os.pathsep.join([str(for_children(BUILD)), *paths])
        private_names(project)
        environment["ECOSYSTEM_PRIVATE"] = str(_private_file(project))
    if mode == "tessarr":  # zarr-python, installed but hidden, has a plugin that pytest would want to load
        start = ["-m", "tessarr.as_zarr", *(["--v2"] if project.zarr == 2 else []), "-m", "pytest"]
        arguments += ["-p", "no:zarr", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    elif mode != ALONE:
        arguments += ["-p", "ecosystem_xarray" if mode == "engine" else "ecosystem_inside"]
        environment["ECOSYSTEM_MODE"] = mode
    with journal.with_suffix(".log").open("w", encoding="utf-8") as log:
        subprocess.run(
            ["nice", project.python, *start, *arguments, *suite, *options.pytest],
            cwd=where, env=environment, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip


def lines(journal: Path) -> list[dict[str, Any]]:
    """What is in a journal."""
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()] if journal.exists() else []


def finished(journal: Path) -> bool:
    """Whether the tests of a journal were run to their end."""
    return any(entry.get("finished") for entry in lines(journal))


def outcomes(project: Project, mode: str) -> dict[str, list[str]]:
    """Test → outcome and cause; empty when the project was not run."""
    found = {}
    for entry in lines(project.journal(mode)):
        if "start" in entry:
            found[without_addresses(entry["start"])] = ["error", "the process ended in this test"]
        elif "test" in entry:
            found[without_addresses(entry["test"])] = [entry["outcome"], entry["cause"]]
    return found


# -- comparing -------------------------------------------------------------------------------------------------------


def _private_file(project: Project) -> Path:
    return BUILD / "results" / f"{project.name}.private.json"


def private_names(project: Project) -> dict[str, list[str]]:
    """Test without its parameters → the undocumented names of zarr-python that it uses; worked out once."""
    kept = _private_file(project)
    script = ROOT / "scripts" / "ecosystem_public.py"
    if not kept.exists() or kept.stat().st_mtime < script.stat().st_mtime:
        where = set_up(project) / project.suite[0]
        found = subprocess.run([project.python, script, where], check=True, capture_output=True, text=True).stdout
        kept.write_text(found, encoding="utf-8")
    names: dict[str, list[str]] = json.loads(kept.read_text(encoding="utf-8"))
    return names


class Comparison(NamedTuple):
    """What became of the tests that pass with zarr-python."""

    counted: int
    passed: int
    differences: dict[str, list[str]]
    """Test → outcome and cause with tessarr."""
    proposed: dict[str, list[str]]
    """Explanation → tests that it matches."""
    explained: dict[str, list[str]]
    """Explanation → tests that it explains."""
    outdated: list[str]
    """Tests that are named as explained, and need not be."""

    @property
    def percent(self) -> float:
        """Of the tests that count."""
        return 100 * self.passed / self.counted if self.counted else 0.0

    @property
    def unexplained(self) -> list[str]:
        """Tests that no entry of the ledger names."""
        known = {test for tests in self.explained.values() for test in tests}
        return [test for test in self.differences if test not in known]


def compare(project: Project, reasons: list[dict[str, Any]], known: dict[str, list[str]] | None = None) -> Comparison:
    """Compare the outcomes of both modes; `known` are the explanations that were accepted (``None``: all `reasons`)."""
    before, after = (outcomes(project, mode) for mode in project.modes)
    counted = [test for test, (outcome, _) in before.items() if outcome in PASSED and re.search(project.counts, test)]
    if project.public:
        private = private_names(project)
        counted = [test for test in counted if not private.get(test.partition("[")[0], [])]
    pairs = paired(before, after)
    found = {test: after.get(pairs.get(test, test), ["missing", "the test was not collected"]) for test in counted}
    differences = {test: outcome for test, outcome in found.items() if outcome[0] not in PASSED}
    found = proposed(project.name, differences, reasons)
    passed = len(counted) - len(differences)
    return Comparison(len(counted), passed, differences, found, explained(found, known), outdated(found, known))


def causes(comparison: Comparison, count: int) -> None:
    """Print the most frequent causes, with an example of each."""
    groups: dict[str, list[str]] = defaultdict(list)
    for test, (_, cause) in comparison.differences.items():
        first = cause.split("\n")[0]
        groups[re.sub(r"0x[0-9a-f]+|'/[^']*'|\d+|/\S+", "…", first)[:160]].append(test)
    for cause, tests in sorted(groups.items(), key=lambda item: -len(item[1]))[:count]:
        last = [*comparison.differences[tests[0]][1].splitlines(), ""][-1]
        print(f"{len(tests):5}  {cause}\n       {tests[0]}\n      {last}")


def print_table(chosen: list[Project], count: int, *, accepts: bool) -> dict[str, dict[str, Any]]:
    """Print passed-of-passed per project; give the numbers. `accepts`: name what the ledger explains."""
    reasons, numbers = ledger(), {}
    print(f"{'project':14}{'passed':>8}{'of':>7}{'%':>8}{'floor':>7}  unexplained")
    for project in chosen:
        if not all(finished(project.journal(mode)) for mode in project.modes):
            continue
        if accepts:
            accept(project.name, compare(project, reasons).proposed)
        comparison = compare(project, reasons, accepted().get(project.name))
        numbers[project.name] = {
            "passed": comparison.passed,
            "counted": comparison.counted,
            "floor": project.floor,
            "mode": project.mode,
            "run": circumstances(lines(project.journal(project.mode))),
            "unexplained": len(comparison.unexplained),
            "outdated": len(comparison.outdated),
            "explained": {why: len(tests) for why, tests in comparison.explained.items()},
        }
        print(
            f"{project.name:14}{comparison.passed:8}{comparison.counted:7}{comparison.percent:8.2f}{project.floor:7}"
            f"  {len(comparison.unexplained)}"
        )
        for test in comparison.outdated[: count or None]:
            print(f"       explained, but not needed: {test}")
        causes(comparison, count)
    return numbers


def versions(project: Project) -> str:
    """The releases that were run, as the environment has them."""
    first = re.split(r"[=<>!\[]", project.requires[0])[0]
    code = "import importlib.metadata as m, sys; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return output(project, code, *dict.fromkeys([first, "zarr"]))


def keep(numbers: dict[str, dict[str, Any]], chosen: list[Project]) -> None:
    """Enter the numbers of the projects that were run into scripts/ecosystem_results.json, and write the page."""
    kept: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for project in chosen:
        if project.name in numbers:
            require_history(project.name, lines(project.journal(project.mode)))
            suite = shlex.join(project.suite)
            numbers_of = {name: value for name, value in numbers[project.name].items() if name != "outdated"}
            kept[project.name] = {"releases": versions(project), "suite": suite, **numbers_of}
    RESULTS.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(kept, tables()[2]), encoding="utf-8")


def main() -> int:
    """Run what the arguments name."""
    arguments = _parsed()
    known = projects()
    chosen = [known[name] for name in arguments.projects] if arguments.projects else [*known.values()]
    if arguments.supported:
        chosen = [project for project in chosen if (project.supported == "oldest") == (arguments.supported == "oldest")]
    until = None if arguments.seconds is None else time.monotonic() + arguments.seconds
    options = Options(shlex.split(arguments.args), arguments.timeout, until)
    for project in () if arguments.report else chosen:
        if arguments.failed:
            there = {test.partition("[")[0] for test in outcomes(project, project.mode)}  # ids change, names do not
            functions = {test.partition("[")[0] for test in compare(project, []).differences}
            again = sorted({name if name in there else name.split("::")[0] for name in functions})
            if again:
                run(project, project.mode, options, again)
            continue
        for mode in (arguments.only,) if arguments.only else project.modes:
            kept = until is not None or (project.like and mode == ALONE and not arguments.only)
            if kept and not arguments.tests and finished(project.journal(mode)):
                continue
            print(f"{project.name}: with {mode}", flush=True)
            if not run(project, mode, options, shlex.split(arguments.tests)):
                return UNFINISHED
    numbers = print_table(chosen, arguments.causes, accepts=arguments.accept)
    if arguments.write:
        keep(numbers, chosen)
    good = all(
        entry["unexplained"] == entry["outdated"] == 0 and percent(entry) >= entry["floor"]
        for entry in numbers.values()
    )
    return 0 if good and numbers else 1


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", nargs="*", help="all when none is named")
    parser.add_argument("--supported", choices=("oldest", "newest"), help="the projects with such releases")
    parser.add_argument("--only", choices=MODES, help="run in this mode alone")
    parser.add_argument("--failed", action="store_true", help="with tessarr, run only the differences again")
    parser.add_argument("--tests", default="", help="run only these files, folders or tests, and keep other outcomes")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--write", action="store_true", help="write docs/ecosystem.md")
    parser.add_argument("--accept", action="store_true", help="name the differences that the ledger explains")
    parser.add_argument("--args", default="", help="more arguments for pytest")
    parser.add_argument("--causes", type=int, default=0, help="print that many causes of differences per project")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one test")
    parser.add_argument("--seconds", type=int, help="stop then; run again to go on (what is finished is not run again)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
