"""The mutants of a module: what mutmut changes, and three changes of our own, one at a time.

Left out is what no behaviour follows from: texts of errors and warnings, annotations, decorators, docstrings, the
tables of names at the head of a module, branches for type checkers, the ``strict`` of ``zip``, which asserts that lengths
are equal, and the order of ``append`` to two lists.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, ParentNodeProvider
from mutmut.mutation.mutators import mutation_operators

TOLD = ("warn", "note", "at", "add_note", "Problem")
"""Functions whose arguments are texts for people, and places that texts name. So are errors, and the local function ``add``, by
which parsers collect problems."""
TEXTS = ("hint", "expected", "got", "message")
"""Arguments of errors, and variables, which are texts for people."""

SPELLED = ("__repr__", "__str__")
"""Functions that spell an object for people."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str
    """Its path below ``src``."""
    function: str
    """The qualified name of the function that is changed."""
    old: str
    new: str
    """The lines that differ, without indentation."""
    code: str
    """The module with the change."""
    lines: range
    """The lines that differ, counted from 1 in the original."""

    def __str__(self) -> str:
        return f"{self.module}, {self.function}: `{self.old}` -> `{self.new}`"


class Sketch:
    """A mutant that is not written out yet, in an order that stays when others are added."""

    def __init__(self, source: Source, function: str, node: cst.CSTNode, new: cst.CSTNode, number: int) -> None:
        self._source, self._function, self._node, self._new = source, function, node, new
        told = f"{source.name} {function} {source.tree.code_for_node(node)} {source.tree.code_for_node(new)} {number}"
        self.order = hashlib.sha256(told.encode()).hexdigest()

    def mutant(self) -> Mutant:
        """Write the mutant out."""
        changed = self._source.tree.deep_replace(self._node, self._new)
        assert isinstance(changed, cst.Module)
        before, after = self._source.code.splitlines(), changed.code.splitlines()
        head = _equal(before, after)
        tail = _equal(before[:head:-1], after[:head:-1])
        old, new = (" ".join(map(str.strip, lines[head : len(lines) - tail])) for lines in (before, after))
        lines = range(head + 1, len(before) - tail + 1)
        return Mutant(self._source.name, self._function, old, new, changed.code, lines)


class Source:
    """A module, parsed."""

    def __init__(self, root: Path, name: str) -> None:
        self.name, self.code = name, (root / name).read_text(encoding="utf-8")
        wrapper = MetadataWrapper(cst.parse_module(self.code))
        self.tree = wrapper.module
        self._parents = wrapper.resolve(ParentNodeProvider)

    def sketches(self) -> Iterator[Sketch]:
        """Every mutant of the module."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for node in _nodes(self.tree):
            function = self._function(node)
            if function is None or self._is_told(node):
                continue
            for new in _changed(node):
                if self._changes_text(node, new):
                    continue
                key = (function, self.tree.code_for_node(node), self.tree.code_for_node(new))
                counts[key] += 1
                yield Sketch(self, function, node, new, counts[key])

    def _above(self, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
        while (parent := self._parents.get(node)) is not None:
            yield node, parent
            node = parent

    def _function(self, node: cst.CSTNode) -> str | None:
        """The function that a node is in the body of."""
        names: list[str] = []
        in_function = False
        for child, parent in self._above(node):
            if isinstance(parent, cst.FunctionDef):
                if child is not parent.body:  # a decorator, a default
                    return None
                in_function = True
            if isinstance(parent, cst.FunctionDef | cst.ClassDef):
                names.insert(0, parent.name.value)
        return ".".join(names) if in_function and names[-1] not in SPELLED else None

    def _changes_text(self, node: cst.CSTNode, new: cst.CSTNode) -> bool:
        """Whether two calls differ in texts for people only."""
        if not isinstance(node, cst.Call) or not isinstance(new, cst.Call):
            return False
        return _takes_text(node) or self._arguments(node) == self._arguments(new)

    def _arguments(self, call: cst.Call) -> list[tuple[str | None, str]]:
        named = ((None if arg.keyword is None else arg.keyword.value, arg.value) for arg in call.args)
        return [(name, self.tree.code_for_node(value)) for name, value in named if name not in _unheeded(call)]

    def _is_told(self, node: cst.CSTNode) -> bool:
        for child, parent in [(node, node), *self._above(node)]:
            if isinstance(parent, cst.If) and child is parent.body and _is_elsewhere(parent.test):
                return True
            if isinstance(child, cst.Annotation):
                return True
            if isinstance(parent, cst.Raise) and child is not parent:
                return True
            if (
                isinstance(parent, cst.Call)
                and child is not parent
                and child is not parent.func
                and _takes_text(parent)
            ):
                return True
            if isinstance(child, cst.Arg) and child.keyword is not None and child.keyword.value in _unheeded(parent):
                return True
            if isinstance(child, cst.Assign) and any(
                m.matches(target.target, m.Name()) and cst.ensure_type(target.target, cst.Name).value in TEXTS
                for target in child.targets
            ):
                return True
            if isinstance(parent, cst.AnnAssign) and child is parent.annotation:
                return True
            if (
                isinstance(parent, cst.Call)
                and _name(parent) in ("cast", "isinstance", "TypeVar")
                and child is not parent
            ):
                return True
        return False


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines at the beginning are equal."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_elsewhere(test: cst.BaseExpression) -> bool:
    """Whether a condition is that of another operating system than this one."""
    names = {"sys.platform": sys.platform, "os.name": os.name}
    for name, here in names.items():
        left = m.Attribute(value=m.Name(name.split(".")[0]), attr=m.Name(name.split(".")[1]))
        equal = m.Comparison(
            left=left, comparisons=[m.ComparisonTarget(operator=m.Equal(), comparator=m.SimpleString())]
        )
        if m.matches(test, equal):
            value = cst.ensure_type(cst.ensure_type(test, cst.Comparison).comparisons[0].comparator, cst.SimpleString)
            return bool(value.evaluated_value != here)
    return False


def _unheeded(call: cst.CSTNode) -> tuple[str, ...]:
    """The arguments by name from which no behaviour follows."""
    return (*TEXTS, "strict") if isinstance(call, cst.Call) and _name(call) == "zip" else TEXTS


def _takes_text(call: cst.Call) -> bool:
    name = _name(call)
    return name in TOLD or name.endswith(("Error", "Warning")) or (name == "add" and isinstance(call.func, cst.Name))


def _name(call: cst.Call) -> str:
    function = call.func
    if isinstance(function, cst.Attribute):
        function = function.attr
    return function.value if isinstance(function, cst.Name) else ""


def _nodes(tree: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in tree.children:
        yield child
        yield from _nodes(child)


def _changed(node: cst.CSTNode) -> Iterable[cst.CSTNode]:
    for kind, change in mutation_operators:
        if isinstance(node, kind):
            yield from change(node)
    yield from _our_own(node)


def _our_own(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Leave out a step (a call for its effect: a sync, a removal), take a condition for false and for true, swap two steps."""
    if isinstance(node, cst.SimpleStatementLine) and m.matches(
        node, m.SimpleStatementLine(body=[m.Expr(value=m.Call() | m.Await() | m.Yield())])
    ):
        yield node.with_changes(body=[cst.Pass()])
    if isinstance(node, cst.If | cst.While):
        yield node.with_changes(test=cst.Name("False"))
        if isinstance(node, cst.If):
            yield node.with_changes(test=cst.Name("True"))
    if isinstance(node, cst.IndentedBlock):
        steps = list(node.body)
        for at in range(len(steps) - 1):
            if all(
                m.matches(step, m.SimpleStatementLine(body=[m.Expr(value=m.Call() | m.Await())]))
                for step in steps[at : at + 2]
            ) and not _append_to_two(steps[at], steps[at + 1]):
                yield node.with_changes(body=[*steps[:at], steps[at + 1], steps[at], *steps[at + 2 :]])


def _append_to_two(one: cst.BaseStatement, other: cst.BaseStatement) -> bool:
    """Whether two steps append to two lists."""
    name = m.SaveMatchedNode(m.Name(), "list")
    append = m.SimpleStatementLine(body=[m.Expr(value=m.Call(func=m.Attribute(value=name, attr=m.Name("append"))))])
    found = [m.extract(step, append) for step in (one, other)]
    lists = [cst.ensure_type(each["list"], cst.Name).value for each in found if each is not None]
    return len(lists) == 2 and lists[0] != lists[1]
