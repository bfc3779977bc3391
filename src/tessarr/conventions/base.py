"""What conventions share: a pure view of a node, the problems they find, and how one is registered.

A convention lives in user attributes and may never keep data from being read; so `read` functions return ``None`` for
what is not there or cannot be understood, and only `check` says what is wrong.
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
    """What a convention may know of a node: its metadata, never its data."""

    kind: Literal["array", "group"]
    attributes: Attributes
    zarr_format: int = 3
    shape: tuple[int, ...] = ()
    dimension_names: tuple[str | None, ...] | None = None
    dtype: str = ""
    """NumPy's name of the element type: ``float32``, ``datetime64[s]``; "" where it is not known."""
    separator: str | None = None
    """Between the indices in its chunks' keys; ``None`` where it is not known."""
    extra: Attributes = field(default_factory=dict)
    """Members of its document (``.zarray``, ``.zgroup``, ``zarr.json``) that no specification knows."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


Hierarchy: TypeAlias = Mapping[str, Node]
"""Path from the root ("" is the root) → node."""


class Tree(dict[str, Node]):
    """A hierarchy that knows the children of each group, so that checking all nodes takes time in proportion to them.

    Made by `hierarchy_of`; it is not to be changed once it was asked something.
    """

    __slots__ = ("_children", "known")

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        super().__init__(nodes)
        self._children: dict[str, dict[str, Node]] | None = None
        self.known: dict[tuple[str, str], object] = {}
        """What conventions found out about a group and will ask again: (convention, path) → anything."""

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
    """One way in which attributes break a convention: convention, loc (where in the attributes), message, and by which rule.

    Severity ("error", "warning" or "info") and fix (what a person can do about it) are the rule's
    (`tessarr.conventions.rules.RULES`) unless they are given. A rule that is not in that table is a third party's own,
    and a warning unless it says otherwise.

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
        """Return a problem; what is not given is the rule's."""
        known = RULES.get(rule, RULES["CONV"])
        return super().__new__(
            cls, convention, loc, message, rule, severity or known.severity, known.fix if fix is None else fix
        )

    def __str__(self) -> str:
        return f"{self.convention}: {'/'.join(map(str, self.loc)) or 'attributes'}: {self.message}"

    def to_json(self) -> JSONObject:
        """As a JSON object."""
        loc: list[JSON] = list(self.loc)
        return {**self._asdict(), "loc": loc}


@dataclass(frozen=True, slots=True)
class Convention:
    """A convention as the registry knows it."""

    name: str
    detect: Callable[[Node], bool]
    """Whether a node follows the convention (or tries to)."""
    check: Callable[[Node, str, Hierarchy], Iterable[Problem]]
    """What is wrong with a node that follows it: the node, its path, and the hierarchy it stands in."""
    uuid: str | None = None
    """In the ``zarr_conventions`` framework."""
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
    """Return the table, made when first wanted. Of two threads that make it at the same time both use the first's."""
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
    for made in _offered():
        found.setdefault(made.name, made)
    return _Table(found, own)


def register(convention: Convention) -> None:
    """Make a convention known to `detect`, `check_node` and `tessarr check`; replaces an earlier one of its name.

    Installed packages may also offer conventions by the entry point group ``tessarr.convention``: each names a
    `Convention`. One that cannot be loaded is left out with a warning. A registered convention sees every node, those
    without attributes too; when it fails, that is reported as a problem and the check goes on.
    """
    table = _table()
    table.found[convention.name] = convention
    table.own.discard(convention.name)


def unregister(name: str) -> None:
    """Forget a convention that was registered. Raises `KeyError` when there is none of that name."""
    table = _table()
    del table.found[name]
    table.own.discard(name)


def conventions() -> dict[str, Convention]:
    """Return every convention that is known: name → convention."""
    return dict(_table().found)


def _offered() -> Iterator[Convention]:
    """Yield what installed packages offer; built-in conventions keep precedence."""
    from importlib.metadata import entry_points

    for entry in entry_points(group="tessarr.convention"):
        try:
            made = entry.load()
        except Exception as error:  # whatever another package's import raises must not stop the check of data
            message = f"the convention {entry.name!r} ({entry.value}) cannot be loaded: {error!r}"
        else:
            if isinstance(made, Convention):
                yield made
                continue
            message = f"the entry point {entry.name!r} ({entry.value}) is no tessarr.conventions.Convention: {made!r}"
        warn(message, ZarrRuntimeWarning)


def node_of(node: object) -> Node:
    """Return the view of a node from its metadata, its model (`tessarr.model`), or an opened array or group."""
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
    """Return the view of a hierarchy from a model, or from a mapping of paths to nodes of any kind."""
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
    """Return what is wrong with a node's attributes by the conventions that it follows."""
    view = node_of(node)
    around = hierarchy_of(hierarchy) if hierarchy is not None else {path: view}
    return [problem for convention in conventions().values() for problem in _checked(convention, view, path, around)]


def check_hierarchy(nodes: object) -> Iterator[tuple[str, Problem]]:
    """`check_node` for every node of a hierarchy: path and problem."""
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
    """Yield the problems of a node by one convention; the failure of one that is not built in is a problem too."""
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
    """Return a JSON number; booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def numbers(value: object, length: int | None = None) -> bool:
    """Return a list of JSON numbers, of `length` where given."""
    return isinstance(value, list | tuple) and all(map(is_number, value)) and (length is None or len(value) == length)


def items(value: object) -> Sequence[Any]:
    """Return what a JSON list holds; nothing where something else stands."""
    return value if isinstance(value, list | tuple) else ()
