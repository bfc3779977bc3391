"""A file is one idea of at most 500 lines, a function one concern of at most 60, a folder a room of at most 12 modules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .sources import parsed

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 500
LONG_FILE_LINES = 700
FUNCTION_LINES = 60
LONG_FILES: dict[str, str] = {}
"""Files that one idea needs more lines for."""

PYTHON = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").glob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])
RUST = sorted((ROOT / "rust" / "src").rglob("*.rs"))


def identify(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_a_file_is_at_most_500_lines() -> None:
    found = {identify(path): count_lines(path) for path in [*PYTHON, *RUST]}
    assert len(found) > 500
    assert {
        name: lines for name, lines in found.items() if lines > (LONG_FILE_LINES if name in LONG_FILES else FILE_LINES)
    } == {}


def test_files_that_may_be_longer_are() -> None:
    assert [name for name in LONG_FILES if count_lines(ROOT / name) <= FILE_LINES] == []


def test_a_function_is_at_most_60_lines() -> None:
    long = [
        f"{identify(path)}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in PYTHON
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long


SOURCE = ROOT / "src" / "tessarr"


def test_no_module_is_a_drawer() -> None:
    assert [path for path in PYTHON if path.stem in {"util", "utils", "helpers", "misc"}] == [
        SOURCE / "facade" / "zarr2" / "util.py"  # zarr-python 2 has a module of that name
    ]


# -- rooms -------------------------------------------------------------------------------------------------------------

ROOM_MODULES = 12
LIST_MODULES = 18
MIRRORS = {
    "": {"attrs", "convenience", "creation", "dtype", "hierarchy", "storage", "sync"},
    "core": {"array_spec", "buffer", "common", "dtype", "sync"},
    "codecs": {"blosc", "bytes", "gzip", "transpose", "zstd"},
}
"""Modules of a room that only stand there because zarr-python has a module of that name: ``zarr.core.sync``."""
LISTS = {
    "cli/verbs": "one module per verb",
    "codecs/array_to_bytes": "one module per codec of this kind, and what they share",
    "facade/zarr2": "zarr-python's modules, one for each of its own",
    "facade/zarr3/core": "zarr-python's modules, one for each of its own",
    "metadata": "documents: one module per format and per kind of node, and what they share",
    "conventions": "one module per convention, and the contract that they share",
    "tools/sources": "one module per format, and what they share",
    "dtypes": "data types: one module per kind, and what they share",
}
"""Rooms that are a list of one kind."""
STILL_FULL: dict[str, int] = {}
"""Rooms that are to be sorted, and what they hold until then."""
ROOMS = sorted({path.parent for path in SOURCE.rglob("*.py")})


def modules_in(room: Path) -> set[str]:
    return {path.stem for path in room.glob("*.py")}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(SOURCE).as_posix())
def test_a_room_holds_at_most_twelve_modules(room: Path) -> None:
    name = "" if room == SOURCE else room.relative_to(SOURCE).as_posix()
    found = modules_in(room)
    assert MIRRORS.get(name, set()) <= found
    room_modules = STILL_FULL.get(name, LIST_MODULES if name in LISTS else ROOM_MODULES)
    assert len(found - MIRRORS.get(name, set())) <= room_modules
    assert len(found) <= (LIST_MODULES if name in MIRRORS else room_modules)


def test_rooms_that_may_hold_more_do() -> None:
    assert {name: len(modules_in(SOURCE / name)) for name in STILL_FULL} == STILL_FULL
    assert [name for name in LISTS if len(modules_in(SOURCE / name)) <= ROOM_MODULES] == []


DOORS = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.relative_to(SOURCE).parts[0] in {"abc", "api", "buffer", "experimental"}
    or path.relative_to(SOURCE).as_posix().removesuffix(".py") in {
        "attrs", "convenience", "creation", "dtype", "hierarchy", "sync",
        "core/array_spec", "core/buffer", "core/common", "core/dtype", "core/sync",
    }
]  # fmt: skip
"""Modules that have a name of zarr-python and re-export what `facade` holds under it."""


@pytest.mark.parametrize("path", DOORS, ids=identify)
def test_names_of_zarr_python_live_in_one_tree(path: Path) -> None:
    assert len(DOORS) > 20
    statements = [node for node in parsed(path).body if not _is_text(node)]
    while statements:
        node = statements.pop()
        if isinstance(node, ast.ImportFrom):
            own = (path.relative_to(SOURCE).as_posix(), node.module) == ("abc/store.py", "tessarr.stores.base")
            assert own or node.module == "typing" or str(node.module).startswith("tessarr.facade."), "a door re-exports"
        elif isinstance(node, ast.If):
            statements += node.body
        elif isinstance(node, ast.FunctionDef):
            assert node.name == "__getattr__"
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            assert ast.unparse(node.value).startswith("_home.")
        else:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [name for target in targets for name in getattr(target, "elts", [target])]
            assert {getattr(name, "id", None) for name in names} <= {"__all__", "__getattr__", "__dir__"}


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


TOLD_APART = {
    "base": "the contract of what its folder holds",
    "array": "the metadata of an array; the array",
    "json": "models as JSON; the data type",
    "group": "the metadata of a group; the group",
    "n5": "documents of N5; a container as a store; opening and creating one",
    "precomputed": "documents of precomputed volumes; a volume as a store; opening one",
    "node": "of a model; of a store",
    "attributes": "of a node; of an OME-Zarr image; of the node that a foreign file becomes",
    "blosc": "the codec; zarr-python's name for its module",
    "bytes": "the codec; zarr-python's name for its module",
    "gzip": "the codec; zarr-python's name for its module",
    "zstd": "the codec; zarr-python's name for its module",
    "transpose": "the codec; zarr-python's name for its module",
    "store": "the store that its folder is about",
    "engine": "the engine that its folder is about",
    "open": "of nodes; of object stores behind URLs",
    "parse": "of codecs; of data types",
    "raw": "bytes of any meaning: as codecs see them; as a data type",
    "members": "of a codec's document; of a group",
    "mapping": "a model in the other format; a store around a mapping",
    "consolidated": "the documents; keeping them in step in a store; a store that answers from them",
    "pipeline": "of URLs; of codecs, in zarr-python",
    "describe": "an array for Rust; a pyramid for its group",
    "legacy": "documents of old writers: how they are read; how `check` reports them",
    "retry": "the policy; the wrapper",
    "tree": "the drawing; directory trees; the verb",
    "v2": "of documents; of chunk keys; of numcodecs' documents",
    "v3": "of documents; of numcodecs' documents",
    "check": "the verb; the rules of OME-Zarr",
    "convert": "the verb; the tool",
    "bridge": "the verb; the documents that it writes",
    "diff": "the verb; the tool",
    "info": "the verb; the summary",
    "manifest": "of a plan; of chunks in other places",
    "migrate": "the verb; the tool",
    "optional": "the data type; the codec",
    "plan": "the verb; the class",
    "repair": "the verb; the tool",
    "run": "the verb; the drivers of chunk reads",
    "serve": "the verb; arrays of zarr-python whose selections tessarr serves",
    "zarr_python": "codecs of other packages, and any store, written for zarr-python",
}
"""Names that several modules have, and what their folders tell of them."""


def test_modules_of_one_name_are_told_apart_by_their_folders() -> None:
    facade = SOURCE / "facade"  # which has the shape of zarr-python, twice; and the doors to it
    paths = [path for path in SOURCE.rglob("*.py") if facade not in path.parents and path not in DOORS]
    stems = [path.stem for path in paths if path.stem not in ("__init__", "__main__")]
    several = {stem for stem in stems if stems.count(stem) > 1}
    assert sorted(several - TOLD_APART.keys()) == []
    assert sorted(TOLD_APART.keys() - several) == []
