"""Define the contract of conventions: a pure view of a node, the problems they find, and their registry.

A convention concerns user attributes and must never keep data from being read; so `read` functions return ``None`` for
absent or malformed attributes, and only `check` reports problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from tessarr.common.warn import report, warn
from tessarr.conventions.rules import RULES, Severity
from tessarr.errors import ZarrRuntimeWarning
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


_BUILT_IN = (
    "xarray", "cf", "crs", "multiscales", "framework", "layout", "proj", "spatial",
    "recognised.registered", "ome", "recognised.anndata", "recognised.nczarr",
)  # fmt: skip


@dataclass(slots=True)
class _Table:
    found: dict[str, Convention]
    own: set[str]
    """Names of those that are built in."""


_TABLES: dict[Literal["the one"], _Table] = {}


def _table() -> _Table:
    """Return the table, made on first use. Two threads that make it at the same time both use the first one."""
    table = _TABLES.get("the one")
    return table if table is not None else _TABLES.setdefault("the one", _made_table())


def _made_table() -> _Table:
    import importlib

    found: dict[str, Convention] = {}
    for name in _BUILT_IN:
        module = importlib.import_module(f"tessarr.conventions.{name}")
        several: tuple[Convention, ...] = getattr(module, "CONVENTIONS", None) or (module.CONVENTION,)
        found |= {made.name: made for made in several}
    own = {*found}
    for made in _installed():
        found.setdefault(made.name, made)
    return _Table(found, own)


def register(convention: Convention) -> None:
    """Register a convention for `detect`, `check_node` and `tessarr check`; replaces an earlier one of its name.

    Installed packages may also provide conventions through the entry point group ``tessarr.convention``: each names a
    `Convention`. One that cannot be loaded is left out with a warning. A registered convention gets every node, also
    those without attributes; an exception in it is reported as a problem, and the check continues.
    """
    table = _table()
    table.found[convention.name] = convention
    table.own.discard(convention.name)


def unregister(name: str) -> None:
    """Remove a registered convention. Raises `KeyError` for an unknown name."""
    table = _table()
    del table.found[name]
    table.own.discard(name)


def conventions() -> dict[str, Convention]:
    """Return every known convention: name → convention."""
    return dict(_table().found)


def _installed() -> Iterator[Convention]:
    """Yield the conventions of installed packages; built-in conventions keep precedence."""
    from importlib.metadata import entry_points

    for entry in entry_points(group="tessarr.convention"):
        try:
            made = entry.load()
        except Exception as error:  # an error in another package's import must not stop the check of data
            message = f"the convention {entry.name!r} ({entry.value}) cannot be loaded: {error!r}"
        else:
            if isinstance(made, Convention):
                yield made
                continue
            message = (
                f"the entry point {entry.name!r} ({entry.value}) is not a tessarr.conventions.Convention: {made!r}"
            )
        warn(message, ZarrRuntimeWarning)


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


def detect(node: object) -> tuple[str, ...]:
    """Return the names of the conventions that a node follows."""
    view = node_of(node)
    return tuple(name for name, convention in conventions().items() if _follows(convention, view) is True)


def check_node(node: object, path: str = "", hierarchy: object = None) -> list[Problem]:
    """List the problems of a node's attributes under the conventions that it follows."""
    view = node_of(node)
    around = hierarchy_of(hierarchy) if hierarchy is not None else {path: view}
    return [problem for convention in conventions().values() for problem in _checked(convention, view, path, around)]


def check_hierarchy(nodes: object) -> Iterator[tuple[str, Problem]]:
    """Run `check_node` for every node of a hierarchy; yield path and problem."""
    around = hierarchy_of(nodes)
    known = list(conventions().values())
    others = [convention for convention in known if convention.name not in _table().own]
    for path, node in around.items():
        says = node.attributes or node.dimension_names or node.extra
        for convention in known if says else others:
            for problem in _checked(convention, node, path, around):
                yield path, problem


def _follows(convention: Convention, node: Node) -> bool | Exception:
    if convention.name in _table().own:
        return convention.detect(node)
    try:
        return bool(convention.detect(node))
    except Exception as error:  # another package's
        return error


def _checked(convention: Convention, node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    """Yield the problems of a node under one convention; an exception of a third-party convention is a problem too."""
    followed = _follows(convention, node)
    if followed is False:
        return
    if convention.name in _table().own:
        yield from convention.check(node, path, hierarchy)
        return
    try:
        if isinstance(followed, Exception):
            raise followed
        yield from convention.check(node, path, hierarchy)
    except Exception as error:
        message, fix = f"could not be checked: {error!r}", "Tell the author of the convention"
        yield Problem(convention.name, (), message, severity="info", fix=fix)


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
