"""Validate a model: against the specification, and against your own rules.

>>> from tessarr.model.node import ArraySpecV2, GroupSpec
>>> def one_name_per_dimension(path, node):
...     names = node.attributes.get("_ARRAY_DIMENSIONS")
...     if names is not None and len(names) != node.ndim:
...         return f"{len(names)} names for {node.ndim} dimensions"
>>> array = ArraySpecV2(shape=[2, 2], chunks=[1, 1], dtype="|u1", compressor=None,
...                     attributes={"_ARRAY_DIMENSIONS": ["x"]})
>>> tree = GroupSpec(zarr_format=2, members={"a": array})
>>> [str(problem) for problem in validate(tree, one_name_per_dimension, documents=False)]
['/a: 1 names for 2 dimensions']

Source: ZEP 6, "Validating Zarr Object Models".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tessarr.errors import MetadataValidationError, Problem, TessarrError
from tessarr.metadata import formats
from tessarr.model.node import ArraySpec, GroupSpec, Spec, walk
from tessarr.types import JSONObject

Rule: TypeAlias = Callable[[str, Any], "Iterable[str] | str | None"]
"""Called with the path and each node of the kind that annotates its second parameter (each node without an
annotation); returns its problems: none, one sentence, or several."""


@dataclass(frozen=True, slots=True)
class NodeProblem:
    """Describe one problem of one node of a model."""

    path: str
    """The node, from the root ("" is the root)."""
    loc: tuple[str | int, ...]
    """Location in the node's document."""
    kind: str
    """missing, type, value, unknown, unsupported (as in `tessarr.errors.Problem`), or "rule" for a rule of yours."""
    message: str

    def __str__(self) -> str:
        return " ".join(filter(None, (f"/{self.path}", "/".join(map(str, self.loc))))) + f": {self.message}"

    def to_json(self) -> JSONObject:
        """Return the problem as a JSON object."""
        return {"path": self.path, "loc": list(self.loc), "kind": self.kind, "message": self.message}


def validate(spec: Spec, *rules: Rule, documents: bool = True) -> list[NodeProblem]:
    """List all problems of a model.

    `documents` parses every node with the parser that opens arrays, so valid nodes can be opened. A rule for arrays only
    annotates its second parameter with `ArraySpec` (or names it ``array``); likewise `GroupSpec` (``group``). Parse
    warnings are not problems and are not shown.
    """
    found: list[NodeProblem] = []
    wanted = [(rule, _node_class(rule)) for rule in rules]
    for path, node in walk(spec):
        if documents:
            found += document_problems(node, path)
        for rule, kind in wanted:
            if kind is None or isinstance(node, kind):
                said = _apply(rule, path, node)
                sentences = [said] if isinstance(said, str) else list(said or ())
                found += [NodeProblem(path, (), "rule", sentence) for sentence in sentences]
    return found


def _apply(rule: Rule, path: str, node: object) -> Iterable[str] | str | None:
    try:
        return rule(path, node)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(node, GroupSpec) and _node_class(rule) is None and isinstance(error, AttributeError):
            return None  # a rule about arrays without an annotation
        return f"{getattr(rule, '__name__', 'rule')} failed: {type(error).__name__}: {error}"


def _node_class(rule: Rule) -> type[object] | None:
    import inspect

    try:
        parameter = list(inspect.signature(rule).parameters.values())[1]
    except (IndexError, TypeError, ValueError):
        return None
    annotation = str(parameter.annotation)
    if "ArraySpec" in annotation and "GroupSpec" not in annotation:
        return ArraySpec
    if "GroupSpec" in annotation and "ArraySpec" not in annotation:
        return GroupSpec
    return {"array": ArraySpec, "group": GroupSpec}.get(parameter.name)


def document_problems(node: Any, path: str) -> list[NodeProblem]:
    """List the violations of the specification in one node's documents."""
    try:
        formats.parse_node(node.zarr_format, node.documents())
    except TessarrError as error:
        problems = getattr(error, "problems", None) or [Problem((), error.kind, str(error))]
        return [NodeProblem(path, problem.loc, problem.kind, problem.message) for problem in problems]
    return []


def require_valid(spec: Spec, *rules: Rule, documents: bool = True) -> None:
    """Call `validate`, and raise `MetadataValidationError` with every problem under its node's path."""
    found = validate(spec, *rules, documents=documents)
    if found:
        problems = [Problem((f"/{item.path}", *item.loc), item.kind, item.message) for item in found]
        raise MetadataValidationError("invalid model", problems, path=f"/{found[0].path}")
