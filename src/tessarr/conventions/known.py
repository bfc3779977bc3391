"""The known conventions: those of this package, of installed packages, and registered ones; and checks by all of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tessarr.common.warn import warn
from tessarr.conventions.base import Convention, Hierarchy, Node, Problem, hierarchy_of, node_of
from tessarr.errors import ZarrRuntimeWarning

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
