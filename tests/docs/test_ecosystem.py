"""The page about the tests of others says what the kept results say."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script() -> Any:
    spec = importlib.util.spec_from_file_location("ecosystem", ROOT / "scripts" / "ecosystem.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return module


def test_the_page_is_written_from_the_kept_results() -> None:
    ecosystem = script()
    kept = json.loads((ROOT / "scripts" / "ecosystem_results.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "ecosystem.md").read_text(encoding="utf-8") == ecosystem.page(kept, ecosystem.tables()[2])
    assert set(kept) <= set(ecosystem.projects())


def test_every_explanation_names_a_project_that_is_run() -> None:
    ecosystem = script()
    for entry in ecosystem.ledger():
        assert set(entry["projects"]) <= set(ecosystem.projects())
        assert len(entry["why"]) > 40


def test_no_explanation_covers_a_whole_file() -> None:
    """A pattern without a cause names a function or a class, so that no other test of its file is accepted by it."""
    whole = re.compile(r"\*|.*/\*|.*\.py\*?")
    for entry in script().ledger():
        assert "cause" in entry or entry.get("tests"), entry["why"]
        assert "cause" in entry or not [name for name in entry["tests"] if whole.fullmatch(name)], entry["why"]


def test_a_difference_is_a_test_that_passes_with_zarr_python_alone(tmp_path: Path) -> None:
    ecosystem = script()
    ecosystem.BUILD = tmp_path
    project = ecosystem.Project("x", [], None, [], 100.0, {})
    (tmp_path / "results").mkdir()
    outcomes = {
        "zarr-python": {"a": "passed", "b": "passed", "c": "failed", "d": "passed", "e": "skipped"},
        "tessarr": {"a": "passed", "b": "failed", "c": "failed"},
    }
    for mode, tests in outcomes.items():
        entries = [{"test": test, "outcome": outcome, "cause": "no such name"} for test, outcome in tests.items()]
        project.journal(mode).write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    found = ecosystem.compare(project, [{"projects": ["x"], "cause": "no such", "why": "a private name"}])
    assert (found.counted, found.passed) == (3, 1)
    assert found.explained == {"a private name": ["b"]}
    assert found.unexplained == ["d"]


def test_a_pattern_explains_only_tests_that_were_accepted() -> None:
    ecosystem = script()
    proposed = {"a private name": ["t/f.py::a", "t/f.py::b"], "another": ["t/f.py::c"]}
    known = {"a private name": ["t/f.py::a", "t/f.py::c", "t/f.py::d"]}
    assert ecosystem.explained(proposed, None) == proposed
    assert ecosystem.explained(proposed, known) == {"a private name": ["t/f.py::a"]}
    assert ecosystem.outdated(proposed, known) == ["t/f.py::c", "t/f.py::d"]
    assert ecosystem.outdated(proposed, None) == []


def test_what_is_accepted_is_what_the_kept_results_count() -> None:
    ecosystem = script()
    kept = json.loads((ROOT / "scripts" / "ecosystem_results.json").read_text(encoding="utf-8"))
    reasons = {(project, entry["why"]) for entry in ecosystem.ledger() for project in entry["projects"]}
    for project, known in ecosystem.accepted().items():
        assert {(project, why) for why in known} <= reasons
        assert {why: len(tests) for why, tests in known.items()} == kept[project]["explained"]


def test_every_entry_of_the_ledger_explains_a_test_of_each_of_its_projects() -> None:
    ecosystem = script()
    known = {(project, why) for project, tests in ecosystem.accepted().items() for why in tests}
    named = {(project, entry["why"]) for entry in ecosystem.ledger() for project in entry["projects"]}
    assert named == known


def test_interpreters_of_pyenv_are_found_that_its_shims_do_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ecosystem = script()
    ecosystem.BUILD = tmp_path
    place = tmp_path / "pyenv" / "versions" / "3.12.1" / "bin"
    for directory in (place, tmp_path / "uv" / "bin"):
        directory.mkdir(parents=True)
    (tmp_path / "uv" / "bin" / "uv").touch()
    found: list[str] = []
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(ecosystem.subprocess, "run", lambda *_, env, **__: found.append(env["PATH"]))
    ecosystem.uv("venv", "--python", "3.12")
    assert found == [os.pathsep.join([os.environ["PATH"], str(place)])]


def test_the_page_says_where_tests_opened_no_array() -> None:
    """The suites of intake-xarray and zarr-checksum pass with any `zarr`, because they open no array of it."""
    circumstances = script().circumstances
    end = {"finished": True, "answered_by": "tessarr"}
    assert circumstances([end]) == "tessarr opened no array"
    assert (
        circumstances([{**end, "engine": "native", "day": "2026-11-24", "commit": "0a"}])
        == "native engine, 2026-11-24, 0a"
    )
    assert circumstances([{"finished": True, "answered_by": "zarr-python"}]) == ""


def test_a_run_that_went_on_with_another_commit_names_both() -> None:
    end = {"answered_by": "tessarr", "engine": "native", "day": "2026-11-24"}
    journal = [{**end, "commit": "0a"}, {**end, "commit": "0b"}, {**end, "commit": "0b"}]
    assert script().circumstances(journal) == "native engine, 2026-11-24, 0a/0b"


def git(place: Path, *arguments: str) -> str:
    author = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **author}
    return subprocess.run(
        ["git", "-C", str(place), *arguments], check=True, capture_output=True, text=True, env=environment
    ).stdout.strip()


def test_a_row_is_not_written_with_a_commit_that_was_rebased_or_had_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ecosystem = script()
    pages = sys.modules["ecosystem_page"]
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(ecosystem, "BUILD", tmp_path)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "first")
    first = git(tmp_path, "rev-parse", "HEAD")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "second")
    second = git(tmp_path, "rev-parse", "HEAD")
    git(tmp_path, "commit", "--quiet", "--amend", "--allow-empty", "-m", "rebased")
    assert [pages.in_history(commit) for commit in (first, second, first + "+changes")] == [True, False, False]
    project = ecosystem.Project("x", [], None, [], 100.0, {})
    (tmp_path / "results").mkdir()
    project.journal("tessarr").write_text(json.dumps({"commit": second}), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"x: its run names .*, not in this branch's history"):
        ecosystem.keep({"x": {}}, [project])


def test_a_project_that_is_like_another_is_compared_with_that_one_s_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests of xarray's engine are a part of xarray's, and a run of them alone had replaced the outcomes of all."""
    ecosystem = script()
    monkeypatch.setattr(ecosystem, "BUILD", tmp_path)
    monkeypatch.setattr(ecosystem, "set_up", lambda _: tmp_path)
    suites = {}

    def pytest_(project: Any, mode: str, options: Any, where: Path, journal: Path, suite: list[str], **_: Any) -> None:
        suites[mode] = suite
        journal.write_text(json.dumps({"finished": True, "answered_by": mode}), encoding="utf-8")

    monkeypatch.setattr(ecosystem, "_pytest", pytest_)
    whole, part = (ecosystem.projects()[name] for name in ("xarray", "xarray-engine"))
    for mode in part.modes:
        ecosystem.run(part, mode, ecosystem.Options([], 1, None), [])
    assert suites == {"zarr-python": whole.suite, "engine": part.suite}
    assert whole.suite != part.suite


def test_every_commit_of_the_page_is_in_the_history() -> None:
    shallow = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if shallow != "false":
        pytest.skip("the tests are not run in a clone with its whole history")
    script()
    kept = json.loads((ROOT / "scripts" / "ecosystem_results.json").read_text(encoding="utf-8"))
    named = {
        (name, commit)
        for name, entry in kept.items()
        for commit in re.findall(r"\b[0-9a-f]{8}\b", entry.get("run", "").rpartition(", ")[2])
    }
    assert len(named) > 15
    assert [
        (name, commit) for name, commit in sorted(named) if not sys.modules["ecosystem_page"].in_history(commit)
    ] == []


TESTS = """
import os

def test_first():
    pass

def test_that_ends_the_process():
    os._exit(3)

def test_last():
    assert os.environ.get("WORD") == "passes"
"""


def run(place: Path, **environment: str) -> dict[str, str]:
    """Run `TESTS` with the plugin; give test → outcome, ``finished`` → whether all were run."""
    (place / "test_theirs.py").write_text(TESTS, encoding="utf-8")
    (place / "pytest.ini").write_text("[pytest]", encoding="utf-8")
    journal = place / "journal.jsonl"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "ecosystem_report", "-p", "no:cacheprovider", "test_theirs.py"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "ECOSYSTEM_JOURNAL": str(journal), **environment},
        capture_output=True,
        check=False,
    )
    found: dict[str, str] = {}
    for line in journal.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        test = entry.get("test") or entry.get("start") or "finished"
        found[test.rpartition("::")[2]] = str(entry.get("outcome") or entry.get("finished", "started"))
    return found


def test_a_run_goes_on_after_a_test_that_ended_the_process(tmp_path: Path) -> None:
    assert run(tmp_path) == {"test_first": "passed", "test_that_ends_the_process": "started"}
    found = run(tmp_path, WORD="passes")
    assert found == {
        "test_first": "passed",
        "test_that_ends_the_process": "started",
        "test_last": "passed",
        "finished": "True",
    }


def test_a_run_stops_between_two_tests_when_its_time_is_over(tmp_path: Path) -> None:
    found = run(tmp_path, ECOSYSTEM_SECONDS="-1")
    assert found == {"test_first": "passed", "finished": "False"}


def test_tests_are_paired_whose_ids_differ_by_modules_addresses_or_a_parameter_s_words() -> None:
    paired = script().paired
    before = [
        "t[<class 'zarr.core.Bool'>-1]",
        "t[2]",
        "u[<function ones at 0x7f00aa001122>]",
        "v[[1]]",
        "v[[2]]",
        "w[a]",
        "x",
    ]
    after = [
        "t[<class 'tessarr.numeric.Bool'>-1]",
        "t[2]",
        "u[<function ones at 0x7f11bb001122>]",
        "v[(1)]",
        "v[(2)]",
        "w[b]",
    ]
    found = paired(before, [*after, "w[c]"])
    assert found == dict(zip(before[:5], after[:5], strict=True))
