"""Compute which tests of zarr-python use only names that it documents.

    build/ecosystem/zarr-python/venv/bin/python scripts/ecosystem_public.py TESTS_DIRECTORY     # JSON: test → private names

A name is private when a part of it begins with one underscore, or when it lies in ``zarr.core`` or another module that
zarr-python's reference does not list (``PUBLIC``) and no module that it lists has it too. A test uses what its own body, its
fixtures, the helpers that it calls, and the classes and `parametrize` lists that it stands in name, directly or through one
another; annotations and blocks for type checkers do not count. ``zarr.testing`` is documented, and its classes are followed
into: a test that it inherits uses what that uses. Names are found in the sources (AST); nothing is imported or run.

`scripts/ecosystem.py` counts only the tests without private names, where a project has ``public = true``.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PUBLIC = re.compile(
    r"zarr(\.(abc|api|buffer|codecs|config|convenience|creation|dtype|errors|experimental|metadata|registry|storage|testing|types)\b.*"
    r"|\.[A-Z]\w*(\..*)?|\.[a-z]\w*)?$"
)
"""Modules and names of the reference of zarr-python (``docs/api`` in its repository, the navigation in its mkdocs.yml)."""
PRIVATE_PART = re.compile(r"(^|\.)_(?!_)")
OWN = {"self", "cls"}
"""What a test class keeps under a private name is its own."""


class Names:
    """Which names of an installed zarr-python are private."""

    def __init__(self, place: Path) -> None:
        self.also: set[str] = set()
        """Names of undocumented modules that a documented module has in its ``__all__``: ``zarr.core.sync.x``."""
        for path in sorted(place.rglob("*.py")):
            module = ".".join(("zarr", *path.relative_to(place).with_suffix("").parts)).removesuffix(".__init__")
            if PUBLIC.match(module) and not PRIVATE_PART.search(module) and not module.startswith("zarr.core"):
                self._read(ast.parse(path.read_text(encoding="utf-8")), module)

    def _read(self, tree: ast.Module, module: str) -> None:
        exported = {
            constant.value
            for node in tree.body
            if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets)
            for constant in ast.walk(node.value)
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
        }
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("zarr.core"):
                self.also |= {str(a.name) for a in node.names if (a.asname or a.name) in exported}

    def private(self, name: str) -> bool:
        """Whether a dotted name is none that zarr-python documents."""
        if PRIVATE_PART.search(name):
            return True
        parts = name.split(".")
        if parts[:3] == ["zarr", "core", "buffer"] and parts[-1] in ("cpu", "gpu", "buffer"):
            return False  # `zarr.buffer.cpu`, `zarr.buffer.gpu`
        if parts[1:2] == ["core"]:
            classes = [part for part in parts[2:] if part in self.also]
            return not classes
        return PUBLIC.match(name) is None


class Scope:
    """The names that one definition of a module uses: private ones, and those of other definitions."""

    def __init__(self) -> None:
        self.private: set[str] = set()
        self.uses: set[str] = set()
        self.bases: list[str] = []
        self.methods: dict[str, Scope] = {}


class Module:
    """The definitions of one file."""

    def __init__(self, path: Path, package: str, names: Names) -> None:
        self.path, self.names = path, names
        self.origins: dict[str, str] = {}
        self.scopes: dict[str, Scope] = {}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        body = list(_statements(tree.body))
        for node in body:
            self._note_import(node, package)
        for node in body:
            self._define(node)

    def _note_import(self, node: ast.stmt, package: str) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                self.origins[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                self.origins[alias.asname or alias.name] = f"{module}.{alias.name}"

    def _define(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.scopes[node.name] = self.scope([node])
        elif isinstance(node, ast.ClassDef):
            scope = self.scope([*node.decorator_list])
            scope.bases = [base for base in map(_dotted, node.bases) if base]
            plain = []
            for inner in _statements(node.body):
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    scope.methods[inner.name] = self.scope([inner])
                else:
                    plain.append(inner)
            rest = self.scope(plain)
            scope.private |= rest.private
            scope.uses |= rest.uses
            self.scopes[node.name] = scope
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        self.scopes[name.id] = self.scope([node])

    def scope(self, nodes: Sequence[ast.AST]) -> Scope:
        """What some nodes use."""
        found = Scope()
        origins = dict(self.origins)
        for node in nodes:
            for inner in ast.walk(node):
                if isinstance(inner, ast.ImportFrom):
                    origins |= {alias.asname or alias.name: f"{inner.module}.{alias.name}" for alias in inner.names}
                elif isinstance(inner, ast.Import):
                    origins |= {
                        alias.asname or alias.name.split(".")[0]: alias.name.split(".")[0] for alias in inner.names
                    }
        for node in nodes:
            for inner in _at_run_time(node):
                self._note_use(inner, origins, found)
        return found

    def _note_use(self, node: ast.AST, origins: dict[str, str], found: Scope) -> None:
        if isinstance(node, ast.Attribute):
            dotted = _dotted(node)
            root = dotted.split(".")[0] if dotted else ""
            if root in origins:
                full = origins[root] + dotted[len(root) :]
                if full.split(".")[0] == "zarr" and self.names.private(full):
                    found.private.add(full)
            if PRIVATE_PART.match(node.attr) and not (isinstance(node.value, ast.Name) and node.value.id in OWN):
                found.private.add(f"….{node.attr}")
        elif isinstance(node, ast.Name):
            full = origins.get(node.id, "")
            if full.split(".")[0] == "zarr" and self.names.private(full):
                found.private.add(full)
            found.uses.add(node.id)
        elif isinstance(node, ast.arg):
            found.uses.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.match(r"zarr(\.\w+)+$", node.value) and self.names.private(node.value):
                found.private.add(node.value)
            found.uses.add(node.value)  # `usefixtures`, `getfixturevalue`, `indirect`


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module or class that run, those in `if` and `try` too."""
    for node in body:
        if isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.dump(node.test):
                yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _statements([*node.body, *node.orelse, *(s for h in node.handlers for s in h.body)])
        else:
            yield node


def _at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those in it, without annotations."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        if isinstance(node, ast.Call) and name == "args" and _dotted(node.func) in ("cast", "typing.cast"):
            value = value[1:]
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.AST):
                yield from _at_run_time(inner)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        above = _dotted(node.value)
        return f"{above}.{node.attr}" if above else ""
    return _dotted(node.value) if isinstance(node, ast.Subscript) else ""


class Tests:
    """All modules of a test suite, and those of ``zarr.testing`` that they inherit from."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: dict[str, Module] = {}
        spec = importlib.util.find_spec("zarr")
        if spec is None:
            raise SystemExit("run this with the interpreter of an environment that has zarr-python")
        self.zarr = Path(str(spec.origin)).parent
        self.names = Names(self.zarr)

    def module(self, path: Path, package: str) -> Module:
        """The module of a file, read once."""
        if str(path) not in self.modules:
            self.modules[str(path)] = Module(path, package, self.names)
        return self.modules[str(path)]

    def conftests(self, path: Path) -> list[Module]:
        """What pytest gives to a file, from the nearest up."""
        above = [
            directory / "conftest.py" for directory in path.parents if self.root in (directory, *directory.parents)
        ]
        return [self.module(one, self.package(one)) for one in above if one.exists() and one != path]

    def package(self, path: Path) -> str:
        """The dotted name of the package that a file of the suite is in."""
        return ".".join(path.parent.relative_to(self.root.parent).parts)

    def elsewhere(self, origin: str) -> tuple[Module, str] | None:
        """The module of the suite or of ``zarr.testing`` that a dotted name is defined in, and its name there."""
        module, _, name = origin.rpartition(".")
        if module.startswith("zarr.testing"):
            path = self.zarr / Path(*module.split(".")[1:]).with_suffix(".py")
            return (self.module(path, module.rpartition(".")[0]), name) if path.exists() else None
        if module.split(".")[0] == self.root.name:
            base = self.root.parent / Path(*module.split("."))
            for path in (base.with_suffix(".py"), base / "__init__.py"):
                if path.exists():
                    return self.module(path, self.package(path)), name
        return None

    def closure(self, module: Module, scope: Scope, around: list[Module], seen: set[tuple[str, str]]) -> set[str]:
        """The private names that a definition uses, directly or through others."""
        found = set(scope.private)
        for name in sorted(scope.uses):
            for where in [module, *around]:
                if name in where.scopes:
                    if (str(where.path), name) not in seen:
                        seen.add((str(where.path), name))
                        found |= self._whole(where, name, around, seen)
                    break
                there = self.elsewhere(where.origins[name]) if name in where.origins else None
                if there is not None:
                    if (str(there[0].path), name) not in seen and there[1] in there[0].scopes:
                        seen.add((str(there[0].path), name))
                        found |= self._whole(*there, around, seen)
                    break
        return found

    def _whole(self, module: Module, name: str, around: list[Module], seen: set[tuple[str, str]]) -> set[str]:
        scope = module.scopes[name]
        found = self.closure(module, scope, around, seen)
        for method in scope.methods.values():
            found |= self.closure(module, method, around, seen)
        for base in scope.bases:
            found |= self.closure(module, _naming(base.split(".")[0]), around, seen)
        return found

    def tests_of(self, path: Path) -> Iterator[tuple[str, set[str]]]:
        """``file::[class::]function`` → its private names."""
        module, around = self.module(path, self.package(path)), self.conftests(path)
        file = path.relative_to(self.root.parent).as_posix()
        always = self._always(module, around)
        for name, scope in module.scopes.items():
            if scope.methods or scope.bases:
                own = self.closure(module, scope, around, set())
                own |= {p for base in scope.bases if (p := self._origin(module, base)) and self.names.private(p)}
                for method, (home, inner) in self._methods(module, name).items():
                    if method.startswith("test"):
                        names = self._fixtures(module, name, inner)
                        helpers: set[str] = set()
                        for place, one in [(home, inner), *names]:
                            helpers |= self.closure(place, one, [module, *around], set())
                        yield f"{file}::{name}::{method}", own | helpers | always
            elif name.startswith("test"):
                yield f"{file}::{name}", self.closure(module, scope, around, set()) | always

    def _always(self, module: Module, around: list[Module]) -> set[str]:
        """Private names of what runs for every test of a module: its `pytestmark`."""
        return self.closure(module, _naming("pytestmark"), around, set()) if "pytestmark" in module.scopes else set()

    @staticmethod
    def _origin(module: Module, dotted: str) -> str:
        root = dotted.split(".")[0]
        origin = module.origins.get(root, "")
        return origin + dotted[len(root) :] if origin.split(".")[0] == "zarr" else ""

    def _fixtures(self, module: Module, cls: str, scope: Scope) -> list[tuple[Module, Scope]]:
        """The methods of a class that a method uses: its fixtures, and what it calls."""
        methods, wanted, found = self._methods(module, cls), [*scope.uses], {}
        while wanted:
            name = wanted.pop()
            if name in methods and name not in found and not name.startswith("test"):
                found[name] = methods[name]
                wanted += methods[name][1].uses
        return list(found.values())

    def _methods(self, module: Module, name: str) -> dict[str, tuple[Module, Scope]]:
        """The methods of a class, those it inherits too."""
        found: dict[str, tuple[Module, Scope]] = {}
        scope = module.scopes.get(name)
        if scope is None:
            return found
        for base in reversed(scope.bases):
            root = base.split(".")[0]
            if root in module.scopes:
                found |= self._methods(module, root)
            elif root in module.origins and (there := self.elsewhere(module.origins[root] + base[len(root) :])):
                found |= self._methods(*there)
        return found | {method: (module, inner) for method, inner in scope.methods.items()}


def _naming(name: str) -> Scope:
    scope = Scope()
    scope.uses.add(name)
    return scope


def main() -> int:
    """Print the private names of every test below a directory."""
    root = Path(sys.argv[1]).resolve()
    tests = Tests(root)
    found = {test: sorted(names) for path in sorted(root.rglob("test_*.py")) for test, names in tests.tests_of(path)}
    json.dump(found, sys.stdout, indent=0, sort_keys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
