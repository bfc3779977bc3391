"""Print which test shows each requirement of the specifications, as the tables of docs/features.md.

python scripts/features_table.py            # print
python scripts/features_table.py --write    # write the tables into docs/features.md

The requirements are those of tests/conformance/requirements.csv; the tests are those with the marker ``spec``, found in the
source without running anything. ``make conformance`` runs them.
"""

from __future__ import annotations

import argparse
import ast
import csv
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "features.md"
BEGIN, END = "<!-- scripts/features_table.py -->\n", "<!-- end -->"
FAMILIES = {
    "V1": "Zarr v1",
    "V2": "Zarr v2",
    "OGC": "Zarr v2, the OGC Community Standard",
    "FS": "File system storage",
    "V3": "Zarr v3.1",
    "UPG": "Upgrading v2 to v3",
    "ZEP1": "ZEP 1",
    "ZOM": "ZEP 6, the Zarr Object Model",
    "REG": "The registry of extensions",
    "N5": "N5",
    "NG": "Neuroglancer precomputed volumes",
}
"""Families of ids, and their titles."""
_LENGTH = 150
"""Longest text of a requirement."""


def requirements() -> list[dict[str, str]]:
    """Read the requirements."""
    with (ROOT / "tests" / "conformance" / "requirements.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shown() -> dict[str, list[str]]:
    """Map each id to the tests that are marked with it, as ``path::name`` below tests."""
    found: dict[str, list[str]] = {}
    tests = ROOT / "tests"
    for path in sorted([*tests.rglob("test_*.py"), *tests.rglob("contract.py")]):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(tests).as_posix()
        whole = [one for node in tree.body if _is_mark(node) for one in _ids(node)]
        for node in tree.body:
            inner = node.body if isinstance(node, ast.ClassDef) else [node]
            above = [*whole, *(_marked(node) if isinstance(node, ast.ClassDef) else [])]
            for test in inner:
                if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) or not test.name.startswith("test"):
                    continue
                place = (
                    f"{name}::{node.name}::{test.name}" if isinstance(node, ast.ClassDef) else f"{name}::{test.name}"
                )
                for one in [*above, *_marked(test)]:
                    found.setdefault(one, []).append(place)
    return found


def _is_mark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and "pytestmark" in map(ast.unparse, node.targets)


def _marked(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    own = [one for inner in getattr(node, "body", []) if _is_mark(inner) for one in _ids(inner)]
    return own + [one for decorator in node.decorator_list for one in _ids(decorator)]


def _ids(tree: ast.AST) -> list[str]:
    """Return the arguments of every ``…mark.spec(…)`` in a piece of source."""
    calls = (
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.spec")
    )
    return [str(one.value) for call in calls for one in call.args if isinstance(one, ast.Constant)]


def tables() -> str:
    """Return a table per family: id, requirement, and the first test that shows it."""
    tests, rows = shown(), requirements()
    parts = []
    for family, title in FAMILIES.items():
        lines = [f"## {title}", "", "| id | requirement | test |", "|---|---|---|"]
        for row in rows:
            if row["id"].partition("-")[0] == family:
                lines.append(f"| {row['id']} | {_short(row['requirement'])} | {_test(tests.get(row['id'], []))} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _short(text: str) -> str:
    text = re.sub(r"\s+", " ", text.partition("⟶")[0]).strip().replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= _LENGTH else text[:_LENGTH].rsplit(" ", 1)[0].rstrip("`(") + " …"


def _test(tests: list[str]) -> str:
    return f"`{tests[0]}`" if tests else "–"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if not parser.parse_args().write:
        print(tables(), end="")
        return 0
    page = PAGE.read_text(encoding="utf-8")
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:start]}\n{tables()}\n{page[end:]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
