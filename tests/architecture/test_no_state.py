"""The pure packages keep no state: what a module holds is made when it is imported, and never changed.

As far as syntax can tell: no ``global``, no name of a module that is assigned to, grown or emptied inside a function, and
no cache around a function, thread-local or context variable.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sources import parsed

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tessarr"
PURE = ("metadata", "dtypes", "grids", "keys", "codecs", "indexing", "model", "conventions")
CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
STATEFUL = {"cache", "lru_cache", "cached", "local", "ContextVar", "Lock", "RLock", "ThreadPoolExecutor", "count"}

EXCEPTIONS: dict[str, str] = {
    "codecs/array_to_array/numbers.py:holds": "remembers what follows from two data types alone",
    "codecs/array_to_array/numbers.py:largest": "remembers what follows from a data type alone",
    "codecs/array_to_bytes/vlen_native.py:native": "remembers the Rust module, or that it is not built",
    "codecs/bytes_to_bytes/blosc.py:_helpers": "this process's helper thread: on the main thread c-blosc has global state",
    "codecs/zarr_python.py:adapted": "remembers the class that follows from a codec's name and class alone",
    "conventions/known.py:_TABLES": "the table that `conventions.register` adds to, an extension point",
}
"""``file:name`` → why."""


def findings(path: Path) -> Iterator[str]:
    """``file:name`` of every piece of state that a module keeps."""
    tree = parsed(path)
    file = path.relative_to(SOURCE).as_posix()
    own = {
        target.id
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name)
    }
    for statement in tree.body:
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Call) and _last(value.func) in STATEFUL:
            yield f"{file}:{ast.unparse(statement).partition('=')[0].partition(':')[0].strip()}"
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (f"{file}:{function.name}" for mark in function.decorator_list if _last(mark) in STATEFUL)
            local = {
                node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            local |= {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
            for node in ast.walk(function):
                if isinstance(node, ast.Global):
                    yield from (f"{file}:{name}" for name in node.names)
                name = _changed(node)
                if name in own - local:
                    yield f"{file}:{name}"


def _last(node: ast.expr) -> str:
    """The last name of ``functools.lru_cache``, ``lru_cache`` or ``lru_cache(…)``."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _changed(node: ast.AST) -> str | None:
    """The name whose object a node changes in place: ``name[…] = …``, ``del name[…]``, ``name.append(…)``, ``name.x = …``."""
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        return getattr(node.value, "id", None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        return getattr(node.func.value, "id", None)
    return None


def test_the_pure_packages_keep_no_state() -> None:
    found = {item for package in PURE for path in (SOURCE / package).rglob("*.py") for item in findings(path)}
    assert found == EXCEPTIONS.keys()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("_seen = {}\ndef f(x):\n    _seen[x] = 1\n", "_seen"),
        ("_seen = []\ndef f(x):\n    _seen.append(x)\n", "_seen"),
        ("_n = 0\ndef f():\n    global _n\n    _n += 1\n", "_n"),
        ("import functools\n@functools.lru_cache\ndef f(): ...\n", "f"),
        ("import threading\n_local = threading.local()\n", "_local"),
        ("_made: dict[str, int] = {}\ndef f(x):\n    return _made.setdefault(x, 1)\n", "_made"),
    ],
)
def test_the_test_finds_state(text: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(findings.__globals__, "SOURCE", tmp_path)
    (tmp_path / "m.py").write_text(text)
    assert set(findings(tmp_path / "m.py")) == {f"m.py:{name}"}
