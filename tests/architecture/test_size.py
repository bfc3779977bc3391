"""A file is one idea of at most 500 lines, a function one concern of at most 60, a folder a room of at most 12 modules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 500
LONG_FILE_LINES = 700
FUNCTION_LINES = 60
LONG_FILES = {
    "src/tessarr/stores/local/store.py": "the one class of local stores: every method beside its twin that awaits",
}
"""Files that one idea needs more lines for."""

PYTHON = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").glob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])
RUST = sorted((ROOT / "rust" / "src").rglob("*.rs"))


def identify(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", [*PYTHON, *RUST], ids=identify)
def test_a_file_is_at_most_500_lines(path: Path) -> None:
    limit = LONG_FILE_LINES if identify(path) in LONG_FILES else FILE_LINES
    assert len(path.read_text(encoding="utf-8").splitlines()) <= limit


def test_files_that_may_be_longer_are() -> None:
    assert [
        name for name in LONG_FILES if len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= FILE_LINES
    ] == []


@pytest.mark.parametrize("path", PYTHON, ids=identify)
def test_a_function_is_at_most_60_lines(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    long = [
        f"{node.name} at line {node.lineno}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long


@pytest.mark.parametrize("path", PYTHON, ids=identify)
def test_no_module_is_a_drawer(path: Path) -> None:
    assert path.stem not in {"util", "utils", "helpers", "misc"}
