"""What the project's files may not hold."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from .sources import parsed

ROOT = Path(__file__).resolve().parents[2]
TEXT = {".py", ".pyi", ".rs", ".toml", ".md", ".sh", ".yml", ".yaml", ".cfg", ".ini", ".json", ".csv", ".txt", ""}
# Data of other writers is quoted as it came.
EXEMPT = ("tests/fixtures/", "tests/golden/")


def tracked() -> list[Path]:
    """Every file under version control; in an unpacked source archive, every file of the project's own folders."""
    found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        names = [name for name in found.stdout.split("\0") if name]
    else:
        folders = ("src", "tests", "scripts", "benchmarks", "rust/src", "docs", "examples")
        names = [
            p.relative_to(ROOT).as_posix() for folder in folders for p in (ROOT / folder).rglob("*") if p.is_file()
        ]
    return [ROOT / name for name in names if not name.startswith(EXEMPT) and (ROOT / name).is_file()]


def lines_with(pattern: re.Pattern[str], suffixes: set[str]) -> list[str]:
    """``file:line: text`` for every tracked line that matches."""
    here = Path(__file__).resolve()
    found = []
    for path in tracked():
        if path.suffix in suffixes and path != here:
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                if pattern.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    return found


def test_a_todo_names_an_issue() -> None:
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))(?!.*#\d+)(?!.*/issues/\d+)(?! in text)")
    assert not lines_with(pattern, {".py", ".pyi", ".rs", ".sh", ".toml"})


def test_no_file_names_a_path_of_one_machine() -> None:
    pattern = re.compile(r"(?<![\w.~])/(work|root|home/\w+|Users/\w+)/[\w.]")
    assert not lines_with(pattern, TEXT)


def test_every_ignored_lint_and_type_names_its_rule() -> None:
    bare = re.compile(r"#\s*(noqa(?!:)|type:\s*ignore(?!\[))")
    assert not lines_with(bare, {".py", ".pyi"})


def test_no_large_file_is_tracked() -> None:
    large = [str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > 1_000_000]
    assert not large


@pytest.mark.parametrize("name", ["pyproject.toml", "Makefile", ".ci/run", "LICENSE", "src/tessarr/py.typed"])
def test_a_file_that_users_rely_on_is_there(name: str) -> None:
    assert (ROOT / name).exists()


def test_methods_are_written_out_and_not_set_in_loops() -> None:
    source = Path(__file__).resolve().parents[2] / "src" / "tessarr"
    found = []
    for file in source.rglob("*.py"):
        for node in parsed(file).body:
            calls = ast.walk(node) if isinstance(node, ast.For | ast.While) else ()
            names = (call.func.id for call in calls if isinstance(call, ast.Call) and isinstance(call.func, ast.Name))
            found += [file.relative_to(source).as_posix() for name in names if name == "setattr"]
    assert not found, "editors and type checkers do not see methods that loops set"
