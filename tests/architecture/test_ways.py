"""The ways to read and to write a chunk are few, and ARCHITECTURE lists them: the tables, compared with the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sources import parsed

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tessarr"
TABLE = re.compile(
    r"^All ways to (read|write) a chunk:\n\n\| way \| used by \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE
)
MOST = {"read": 7, "write": 5}


def tables() -> dict[str, list[str]]:
    """``read`` or ``write`` → the rows."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return {found[1]: found[2].splitlines() for found in TABLE.finditer(text)}


def attributes(folder: str) -> Iterator[tuple[str, str, str]]:
    """Each use of an attribute in a folder: the file, the object as written, and the attribute's name."""
    for path in sorted((SOURCE / folder).rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute):
                yield path.relative_to(SOURCE).as_posix(), ast.unparse(node.value), node.attr


def users(folder: str, objects: str, names: set[str]) -> dict[str, set[str]]:
    """File → which of `names` it uses of objects whose spelling ends with one that matches `objects`."""
    found: dict[str, set[str]] = {}
    for file, value, name in attributes(folder):
        if name in names and re.search(rf"(?:^|\W)(?:{objects})$", value):
            found.setdefault(file, set()).add(name)
    return found


@pytest.mark.parametrize("what", ["read", "write"])
def test_the_ways_are_few(what: str) -> None:
    assert 0 < len(tables()[what]) <= MOST[what]


def test_what_the_tables_name_exists() -> None:
    files = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    files |= {path.name for path in SOURCE.rglob("*.py")} | {path.name for path in (ROOT / "rust" / "src").glob("*.rs")}
    defined = {
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    named = [name for rows in tables().values() for row in rows for name in re.findall("`([^`]+)`", row.split("|")[1])]
    assert len(named) >= 10
    missing = [name for name in named if name not in files and name.rpartition(".")[2] not in defined]
    assert not missing


def test_only_the_drivers_read_chunks_from_stores_and_only_store_chunks_writes_them() -> None:
    assert users(
        "engine", r"store", {"fetch", "fetch_async", "get", "get_async", "get_ranges", "get_partial_values"}
    ) == {"engine/run.py": {"fetch", "fetch_async"}}
    assert users(
        "engine", r"store", {"update", "splice", "splice_async", "set", "set_async", "delete", "delete_async"}
    ) == {"engine/write_chunks.py": {"splice", "splice_async", "set_async", "delete_async"}}
    assert users("engine", r"reads", {"receive"}) == {"engine/run.py": {"receive"}}


def test_each_engine_has_one_class_of_chunk_reads_and_one_of_changes() -> None:
    found = {
        (kind, path.relative_to(SOURCE).as_posix())
        for path in sorted((SOURCE / "engine").rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
        for kind, methods in {"reads": {"receive"}, "writes": {"forget", "__iter__", "nbytes"}}.items()
        if methods <= _members(node)
    }
    assert found == {
        ("reads", "engine/base.py"),
        ("reads", "engine/native/engine.py"),
        ("reads", "engine/reference/engine.py"),
        ("writes", "engine/base.py"),
        ("writes", "engine/native/engine.py"),
        ("writes", "engine/reference/merge.py"),
    }


def _members(node: ast.ClassDef) -> set[str]:
    """The methods of a class, and the attributes that its methods set."""
    methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    return methods | {
        item.attr for item in ast.walk(node) if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store)
    }


def test_chunks_are_decoded_and_encoded_in_the_listed_modules_only() -> None:
    chains = r"chain|shard|inner|layout|chain\(.*\)"
    outside = {
        file: names
        for file, names in users(".", chains, {"decode", "decode_into", "encode"}).items()
        if not file.startswith("codecs/")
    }
    assert outside == {
        "engine/reference/read_chunk.py": {"decode", "decode_into"},
        "engine/reference/merge.py": {"decode", "encode"},
        "tools/check/chunks.py": {"decode"},
    }


def test_only_the_native_engine_reads_and_writes_by_rust() -> None:
    assert users(".", r"handle\.array", {"read", "element", "plan_read", "write", "plan_write"}) == {
        "engine/native/engine.py": {"read", "element", "plan_read", "write", "plan_write"}
    }


def test_the_specification_of_a_chunk_read_fits_on_a_screen_and_has_no_scheduler() -> None:
    tree = parsed(SOURCE / "engine" / "reference" / "read_chunk.py")
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [function.name for function in functions] == ["read_chunk", "_read"]
    assert (functions[-1].end_lineno or 0) - functions[0].lineno < 70
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not called & {"for_each", "fetch", "submit"}
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & {"tessarr.engine.pool", "tessarr.engine.run", "tessarr.engine.jobs", "asyncio", "threading"}
