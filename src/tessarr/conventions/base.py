"""Define the contract of conventions: a pure view of a node, the problems they find, and their registry.

A convention concerns user attributes and must never keep data from being read; so `read` functions return ``None`` for
absent or malformed attributes, and only `check` reports problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from tessarr.common.warn import report
from tessarr.conventions.rules import RULES, Severity
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.public import model_of
from tessarr.types import JSON, JSONObject

Attributes: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Give conventions a view of a node: its metadata, never its data."""

    kind: Literal["array", "group"]
    attributes: Attributes
    zarr_format: int = 3
    shape: tuple[int, ...] = ()
    dimension_names: tuple[str | None, ...] | None = None
    dtype: str = ""
    """NumPy's name of the element type: ``float32``, ``datetime64[s]``; "" for an unknown type."""
    separator: str | None = None
    """Separator between the indices in its chunk keys; ``None`` where unknown."""
    extra: Attributes = field(default_factory=dict)
    """Unknown members of its document (``.zarray``, ``.zgroup``, ``zarr.json``)."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


Hierarchy: TypeAlias = Mapping[str, Node]
"""Path from the root ("" is the root) → node."""


class Tree(dict[str, Node]):
    """Index a hierarchy by the children of each group, so that checking all nodes takes linear time.

    Made by `hierarchy_of`; must not be changed after the first lookup.
    """

    __slots__ = ("_children", "known")

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        super().__init__(nodes)
        self._children: dict[str, dict[str, Node]] | None = None
        self.known: dict[tuple[str, str], object] = {}
        """Cache for conventions, of facts about a group: (convention, path) → anything."""

    def children(self, group: str) -> Mapping[str, Node]:
        """Return the nodes directly in a group, by path."""
        if self._children is None:
            found: dict[str, dict[str, Node]] = {}
            for path, node in self.items():
                if path:
                    found.setdefault(parent(path), {})[path] = node
            self._children = found
        return self._children.get(group, {})


def children(group: str, hierarchy: Hierarchy) -> Mapping[str, Node]:
    """Return the nodes directly in a group, by path."""
    tree = hierarchy if isinstance(hierarchy, Tree) else Tree(hierarchy)
    return tree.children(group)


class _Fields(NamedTuple):
    convention: str
    loc: tuple[str | int, ...]
    message: str
    rule: str
    severity: Severity
    fix: str


class Problem(_Fields):
    """Describe one violation of a convention: convention, loc (where in the attributes), message, and rule.

    Severity ("error", "warning" or "info") and fix (what the user can do) default to those of the rule
    (`tessarr.conventions.rules.RULES`). A rule outside that table belongs to a third party; its default severity is
    "warning".

    >>> problem = Problem("sensor", ("sensor",), "is empty", fix="Name the sensor")
    >>> problem.rule, problem.severity, problem.fix
    ('CONV', 'warning', 'Name the sensor')
    """

    __slots__ = ()

    def __new__(
        cls,
        convention: str,
        loc: tuple[str | int, ...],
        message: str,
        rule: str = "CONV",
        severity: Severity | None = None,
        fix: str | None = None,
    ) -> Self:
        """Make a problem, with defaults from the rule."""
        known = RULES.get(rule, RULES["CONV"])
        return super().__new__(
            cls, convention, loc, message, rule, severity or known.severity, known.fix if fix is None else fix
        )

    def __str__(self) -> str:
        return f"{self.convention}: {'/'.join(map(str, self.loc)) or 'attributes'}: {self.message}"

    def to_json(self) -> JSONObject:
        """Return the problem as a JSON object."""
        loc: list[JSON] = list(self.loc)
        return {**self._asdict(), "loc": loc}


@dataclass(frozen=True, slots=True)
class Convention:
    """Describe a convention to the registry."""

    name: str
    detect: Callable[[Node], bool]
    """Returns whether a node follows, or tries to follow, the convention."""
    check: Callable[[Node, str, Hierarchy], Iterable[Problem]]
    """Returns the problems of a node that follows the convention, from the node, its path and its hierarchy."""
    uuid: str | None = None
    """Its identity in the ``zarr_conventions`` framework."""
    spec_url: str = ""


def node_of(node: object) -> Node:
    """Make the view of a node from its metadata, its model (`tessarr.model`), or an opened array or group."""
    if isinstance(node, Node):
        return node
    metadata = model_of(getattr(node, "metadata", node))
    if hasattr(metadata, "members") and hasattr(metadata, "documents"):
        extra = dict(getattr(metadata, "extra", {}))
        return Node(kind="group", attributes=_attributes(metadata), zarr_format=metadata.zarr_format, extra=extra)
    if not isinstance(metadata, ArrayMetadata) and hasattr(metadata, "documents") and hasattr(metadata, "shape"):
        from tessarr.metadata import formats

        metadata, diagnostics = formats.parse_node(metadata.zarr_format, metadata.documents())
        report(diagnostics)
    if isinstance(metadata, ArrayMetadata):
        return Node(
            kind="array",
            attributes=metadata.attributes,
            zarr_format=metadata.zarr_format,
            shape=metadata.shape,
            dimension_names=metadata.dimension_names,
            dtype=str(metadata.data_type.with_byteorder("=").dtype),
            separator=metadata.dimension_separator,
            extra=metadata.extra,
        )
    extra = getattr(metadata, "extra", {})
    return Node(kind="group", attributes=metadata.attributes, zarr_format=metadata.zarr_format, extra=extra)


def _attributes(spec: Any) -> Attributes:
    from tessarr.model.fields import attributes_json

    return attributes_json(spec.attributes)


def hierarchy_of(nodes: Any) -> Tree:
    """Make the view of a hierarchy from a model, or from a mapping of paths to nodes of any kind."""
    if isinstance(nodes, Tree):
        return nodes
    if isinstance(nodes, Mapping):
        return Tree({path.strip("/"): node_of(node) for path, node in nodes.items()})
    from tessarr.model.node import walk

    return Tree({path: node_of(node) for path, node in walk(nodes)})


def parent(path: str) -> str:
    """Return the path of the group that holds the node at `path`."""
    return path.rpartition("/")[0]


def join(group: str, relative: str) -> str:
    """Return the path of what a group calls `relative`; ``..`` steps up, as in OME-Zarr's ``../../``.

    >>> join("a/b", "c"), join("a/b", "../../"), join("", "0")
    ('a/b/c', '', '0')
    """
    names = group.split("/") if group else []
    for name in relative.split("/"):
        if name == "..":
            names = names[:-1]
        elif name not in ("", "."):
            names.append(name)
    return "/".join(names)


def is_number(value: object) -> bool:
    """Return whether a value is a JSON number; booleans are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def numbers(value: object, length: int | None = None) -> bool:
    """Return whether a value is a list of JSON numbers, of `length` if given."""
    return isinstance(value, list | tuple) and all(map(is_number, value)) and (length is None or len(value) == length)


def items(value: object) -> Sequence[Any]:
    """Return the items of a JSON list; () for any other value."""
    return value if isinstance(value, list | tuple) else ()
