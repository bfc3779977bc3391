"""No module needs itself, not even by way of an import inside a function."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from tessarr import built_in

from .sources import parsed
from .test_imports import MODULES, SOURCE, for_types_only


def module_names() -> dict[str, str]:
    """Dotted name → path relative to the package."""
    return {
        ".".join(("tessarr", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): str(path)
        for path in MODULES
    }


def imports_of(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """The modules of ours that a file imports when it runs, inside functions too; not those that it names as types."""
    skipped = for_types_only(tree)
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "tessarr":
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if below in known else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


REGISTRY_STRING = re.compile(r"(tessarr(?:\.\w+)+):\w+")


def named_in(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """The modules of ours that a file names as the registry does, in a string ``"module:Class"``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = REGISTRY_STRING.fullmatch(node.value)
            if found is not None and found[1] in known:
                yield found[1]


NAMED_BY_USERS = {"tessarr.as_zarr._alias": "``import zarr.x`` imports what its user names, under another name"}
"""Modules whose imports by name are left out."""


def imported_by_string(tree: ast.Module, name: str, known: set[str]) -> set[str]:
    """The modules of ours that the file of module `name` imports by ``import_module``.

    Anything but a text means all modules that the file spells out. The ``__getattr__`` of a package is left out: what it
    imports its users ask for, and they are above.
    """
    skipped = {
        below
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
        for below in ast.walk(node)
    }
    prose = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        text.value
        for text in ast.walk(tree)
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text not in prose
    ]
    words = {word.partition(":")[0] for text in texts for word in (text, *text.split())}
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped or not isinstance(node, ast.Call) or not node.args:
            continue
        if ast.unparse(node.func).rpartition(".")[2] not in {"import_module", "__import__"}:
            continue
        argument = node.args[0]
        if isinstance(argument, ast.JoinedStr):
            found |= _with_gaps(argument, name, known, words)
        elif isinstance(argument, ast.Constant):
            found |= known & {argument.value}
        else:
            found |= known & {text.partition(":")[0] for text in texts}
    return found - {name}


def _with_gaps(text: ast.JoinedStr, name: str, known: set[str], words: set[str]) -> set[str]:
    """The modules that a text with gaps can name: those of which the file spells out what is in the gaps; else all.

    A text that begins with a gap names what its caller wants.
    """
    parts = [_pattern(part, name) for part in text.values]
    if parts[0] == _GAP:
        return set()
    pattern = re.compile("".join(parts))
    found = {other: match for other in known if (match := pattern.fullmatch(other))}
    spelled = {other for other, match in found.items() if words.issuperset(match.groups())}
    return spelled or {*found}


_GAP = r"([\w.]+)"


def _pattern(part: ast.expr, name: str) -> str:
    if isinstance(part, ast.Constant):
        return re.escape(str(part.value))
    assert isinstance(part, ast.FormattedValue)
    return re.escape(name) if ast.unparse(part.value) == "__name__" else _GAP


def graph() -> dict[str, set[str]]:
    """Module → modules that it imports, also by way of the registry, and by name."""
    names = module_names()
    found = {}
    known = {*names, "tessarr._native"}  # the Rust module, not a name in the package
    for name, path in names.items():
        tree = parsed(Path(path))
        by_name = set() if name in NAMED_BY_USERS else imported_by_string(tree, name, known)
        found[name] = {*imports_of(tree, known), *named_in(tree, known), *by_name} - {name}
    # Its strings are put together, so that they are read from the table.
    table = [*itertools.chain(*(classes.values() for classes in built_in.TABLE.values())), *built_in.FUNCTIONS.values()]
    found["tessarr.built_in"] |= {text.partition(":")[0] for text in table}
    return found


RUST = Path(__file__).parents[2] / "rust" / "src"


def rust_graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Rust module → modules that it names by ``crate::`` or ``super::``, except those it is within. Unit tests do not count."""
    found: dict[str, set[str]] = {}
    for name, source in sources.items():
        text = re.sub(r"//.*", "", source.partition("#[cfg(test)]\nmod tests")[0])
        used = set()
        for base, path, names in re.findall(r"\b(crate|super)((?:::\w+)*)(?:::\{([^{}]*)\})?", text):
            inside = name.split("::")[:-1] if base == "super" else []
            for last in re.findall(r"(?:^|,)\s*(\w+)", names) or [""]:
                parts = [*inside, *filter(None, path.split("::")), last]
                known = ("::".join(parts[:n]) for n in range(len(parts), 0, -1))
                used.add(next((other for other in known if other in sources), name))
        found[name] = {other for other in used if not f"{name}::".startswith(f"{other}::")}
    return found


def cycles(edges: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that need each other: strongly connected, of two or more."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(start: str, follow: dict[str, set[str]], found: list[str]) -> None:
        stack = [(start, iter(sorted(follow.get(start, ()))))]
        seen.add(start)
        while stack:
            name, rest = stack[-1]
            for other in rest:
                if other not in seen:
                    seen.add(other)
                    stack.append((other, iter(sorted(follow.get(other, ())))))
                    break
            else:
                found.append(name)
                stack.pop()

    for name in sorted(edges):
        if name not in seen:
            visit(name, edges, order)
    back: dict[str, set[str]] = {name: set() for name in edges}
    for name, others in edges.items():
        for other in others:
            back.setdefault(other, set()).add(name)
    seen = set()
    groups = []
    for name in reversed(order):
        if name not in seen:
            group: list[str] = []
            visit(name, back, group)
            groups.append(set(group))
    return [group for group in groups if len(group) > 1]


def test_the_search_finds_cycles() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}) == [{"a", "b", "c"}]
    lazy = ast.parse("def f():\n    from tessarr.x import y\nif TYPE_CHECKING:\n    import tessarr.z")
    assert set(imports_of(lazy, {"tessarr.x", "tessarr.z"})) == {"tessarr.x"}


def test_the_search_sees_imports_by_name() -> None:
    known = {"tessarr.a", "tessarr.b.v2", "tessarr.b.v3", "tessarr.c", "tessarr.d", "tessarr.e"}

    def found(text: str) -> set[str]:
        return imported_by_string(ast.parse(text), "tessarr.b", known)

    assert found("import_module('tessarr.a')\nimportlib.import_module('numpy')") == {"tessarr.a"}
    assert found("importlib.import_module(f'tessarr.b.v{number}')") == {"tessarr.b.v2", "tessarr.b.v3"}
    assert found("import_module(f'{__name__}.{name}')") == {"tessarr.b.v2", "tessarr.b.v3"}
    assert found("class A:\n    _home = 'tessarr.c'\n    def f(self):\n        import_module(self._home)") == {
        "tessarr.c"
    }
    assert found("def __getattr__(name):\n    return import_module(f'tessarr.{name}')") == set()


def test_the_search_sees_the_strings_of_the_registry() -> None:
    tree = ast.parse("_O = 'tessarr.stores.url:open_url'\nhint = 'see tessarr.stores.url:'")
    assert [*named_in(tree, {"tessarr.stores.url"})] == ["tessarr.stores.url"]
    edges = graph()
    assert {"tessarr.stores.virtual.pipeline", "tessarr.codecs.zarr_python"} <= edges["tessarr.built_in"]
    # The table in the registry would be a circle: a pipeline opens the place before its steps by `store_from`.
    edges["tessarr.registry"] = edges["tessarr.registry"] | edges["tessarr.built_in"]
    assert any("tessarr.stores.url" in group for group in cycles(edges))


def test_no_module_imports_itself_in_a_circle() -> None:
    assert [sorted(group) for group in cycles(graph())] == []


IN_CIRCLES = [
    {"core/asynchronous", "core/claims", "core/creation", "core/stored"},
    {"core/group_parts", "core/streams"},
    {"stores/memory", "stores/wrappers"},
]
"""Rooms beside each other whose modules need each other's, though no module needs itself. The list may only become shorter."""


def test_rooms_beside_each_other_need_each_other_in_one_direction() -> None:
    rooms = {name: Path(path).parent.relative_to(SOURCE) for name, path in module_names().items()}
    edges: dict[str, set[str]] = {}
    for name, others in graph().items():
        for other in others & rooms.keys():
            if (
                rooms[other] != rooms[name] and rooms[other].parent == rooms[name].parent != Path()
            ):  # packages have floors
                edges.setdefault(rooms[name].as_posix(), set()).add(rooms[other].as_posix())
    assert sorted(sorted(group) for group in cycles(edges)) == [sorted(group) for group in IN_CIRCLES]


def test_the_search_reads_paths_of_rust() -> None:
    sources = {
        "a": "use crate::b::{C, d};  // crate::e\nfn f() { crate::c::blosc::decode() }",
        "b": "",
        "c": "",
        "c::blosc": "use super::{Codec, gzip};\nuse super::number::N;\n#[cfg(test)]\nmod tests { use crate::a; }",
        "c::gzip": "",
        "c::number": "",
    }
    assert rust_graph(sources) == {name: set() for name in sources} | {
        "a": {"b", "c::blosc"},
        "c::blosc": {"c::gzip", "c::number"},
    }


def test_no_module_of_rust_uses_itself_in_a_circle() -> None:
    paths = {path: path.relative_to(RUST).with_suffix("").parts for path in RUST.rglob("*.rs")}
    sources = {
        "::".join(parts[:-1] if parts[-1] == "mod" else parts): path.read_text(encoding="utf-8")
        for path, parts in paths.items()
    }
    assert [sorted(group) for group in cycles(rust_graph(sources))] == []
