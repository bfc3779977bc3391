"""Imports go downward only, and optional packages are imported only where their absence is handled."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sources import parsed

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tessarr"

FLOORS = {
    0: {"errors", "types", "config", "settings", "registry", "common", "_native"},
    1: {"dtypes", "grids", "keys", "codecs"},  # what metadata documents resolve to
    2: {"metadata"},
    3: {"indexing", "model", "stores"},
    4: {"engine"},
    5: {"core", "facade", "abc", "api", "buffer", "experimental"},  # the last four are doors to `facade`
    6: {"conventions", "plan", "tools", "transactions", "virtual"},
    7: {
        "as_zarr",
        "built_in",
        "cli",
        "dask",
        "iohub",
        "napari",
        "serve",
        "testing",
        "viewer",
        "xarray",
        "zarr_python",
        "__init__",
        "__main__",
    },
}
FLOOR_OF = {name: floor for floor, names in FLOORS.items() for name in names}
# Single modules that are named nowhere above make up the floor of arrays and groups, and its doors.
FLOOR_OF |= {path.stem: 5 for path in SOURCE.glob("*.py") if path.stem not in FLOOR_OF}
ALONE = [{"stores", "indexing"}, {"indexing", "model"}]
"""Pairs of one floor that do not know each other."""
PURE = {"metadata", "model", "dtypes", "grids", "keys", "codecs", "indexing", "conventions"}
IO_MODULES = {"asyncio", "fcntl", "http", "mmap", "shutil", "socket", "ssl", "subprocess", "tempfile", "urllib"}
ALWAYS_THERE = {"numpy", "numcodecs", "google_crc32c", "tessarr"}
ROOMS_OF_A_PACKAGE = {"dask": "dask", "xarray": "xarray", "zarr_python": "zarr"}
"""Their modules, but for the door, are loaded only with the package they are named after, and subclass its classes."""

MODULES = sorted(SOURCE.rglob("*.py"))


def part(path: Path) -> str:
    """The folder, or the single module, of the package that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(SOURCE).as_posix()}:{line}"


def for_types_only(tree: ast.Module) -> set[ast.AST]:
    """Every node under ``if TYPE_CHECKING:``."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    return {inner for block in blocks for statement in block.body for inner in ast.walk(statement)}


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports when it runs, inside functions too, with the line."""
    tree = parsed(path)
    skipped = for_types_only(tree)
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: imports are absolute"
            module = str(node.module)
            # `from tessarr import grids` names a part, `from tessarr.grids import regular` a module of one.
            names = [f"tessarr.{alias.name}" for alias in node.names] if module == "tessarr" else [module]
            yield from ((name, node.lineno) for name in names)


def ours(path: Path) -> Iterator[tuple[str, int]]:
    """The parts of tessarr that a file imports."""
    for name, line in imported(path):
        if name.startswith("tessarr."):
            yield name.split(".")[1], line
        elif name == "tessarr" and path.stem != "diagnostics":  # which reports on the package as a whole
            yield "__init__", line


def test_there_is_something_to_look_at() -> None:
    assert len(MODULES) > 20


def test_every_part_has_a_floor() -> None:
    assert {part(path) for path in MODULES} - FLOOR_OF.keys() == set(), "name the part in ARCHITECTURE.md and here"


def upward(path: Path) -> Iterator[str]:
    """The imports of a file from a higher floor, or from one that it must not know."""
    own = part(path)
    for name, line in ours(path):
        floor = FLOOR_OF.get(name, FLOOR_OF["__init__"])  # a name of the one door
        if name != own and (floor > FLOOR_OF[own] or {own, name} in ALONE):
            yield f"{place(path, line)}: {own} (floor {FLOOR_OF[own]}) imports {name} (floor {floor})"


def test_imports_go_downward() -> None:
    assert [found for path in MODULES if part(path) != "__init__" for found in upward(path)] == []


def impure(path: Path) -> Iterator[str]:
    """What a file imports or calls that does input or output."""
    for name, line in imported(path):
        if name.split(".")[0] in IO_MODULES or name.startswith("tessarr.stores"):
            yield f"{place(path, line)}: {name}"
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            yield f"{place(path, node.lineno)}: open()"
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"{place(path, node.lineno)}: async"


def test_the_pure_core_does_no_input_or_output() -> None:
    assert [found for path in MODULES if part(path) in PURE for found in impure(path)] == []


def loaded_early(path: Path) -> Iterator[str]:
    """The optional packages that a file imports outside of functions."""
    tree = parsed(path)
    inside = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(node)
    } | for_types_only(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in inside:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            tops = {name.split(".")[0] for name in names}
            theirs = ROOMS_OF_A_PACKAGE.get(part(path)) if path.name != "__init__.py" else None
            allowed = ALWAYS_THERE | {theirs}
            for top in tops - allowed - set(sys.stdlib_module_names):
                yield f"{place(path, node.lineno)}: {top}"


def test_optional_packages_are_imported_inside_functions() -> None:
    assert [found for path in MODULES for found in loaded_early(path)] == []


def test_what_is_wrong_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "metadata" / "wrong.py"
    file.parent.mkdir()
    file.write_text("import xarray, socket\nfrom tessarr.core import array\nasync def f():\n    open('x')\n")
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    assert [*upward(file)] == ["metadata/wrong.py:2: metadata (floor 2) imports core (floor 5)"]
    assert {found.partition(" ")[2] for found in impure(file)} == {"socket", "async", "open()"}
    assert [*loaded_early(file)] == ["metadata/wrong.py:1: xarray"]
