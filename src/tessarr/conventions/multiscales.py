"""Multiscale Arrays 0.1: a group lists its resolution levels, the highest first.

    {"multiscales": [{"datasets": [{"path": "0"}, {"path": "1"}, {"path": "2"}], "version": "0.1"}]}

>>> read({"multiscales": [{"datasets": [{"path": "0"}, {"path": "1"}], "version": "0.1"}]})[0].paths
('0', '1')

Three structures are called ``multiscales``: this list (OME-Zarr up to 0.4 is a superset of it), a list under
``ome`` (0.5 and later, `tessarr.conventions.ome`), and an object with ``layout`` (`tessarr.conventions.layout`).

Source: zarr-specs issue 50; the OGC community standard recommends it for pyramids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem, join
from tessarr.types import JSON, JSONObject

NAME = "multiscales 0.1"
KEY = "multiscales"


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiscale:
    """One pyramid."""

    paths: tuple[str, ...]
    """Paths of the levels, relative to the group, the highest resolution first."""
    name: str | None = None
    type: str | None = None
    """Method by which levels were made: ``gaussian``, ``mean``, …"""
    version: str | None = "0.1"
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    """Description of the method: method, version, args, kwargs."""


def read(attributes: Attributes) -> tuple[Multiscale, ...]:
    """Read the pyramids of a group; () without pyramids. Entries without ``datasets`` and ``path`` are ignored."""
    found = []
    for entry in _entries(attributes):
        paths = _paths(entry)
        if paths:
            metadata = entry.get("metadata")
            found.append(
                Multiscale(
                    paths=paths,
                    name=entry.get("name"),
                    type=entry.get("type"),
                    version=entry.get("version"),
                    metadata=metadata if isinstance(metadata, Mapping) else {},
                )
            )
    return tuple(found)


def levels(attributes: Attributes, name: str | None = None) -> tuple[str, ...]:
    """Return the paths of the levels, highest resolution first, of the pyramid called `name`, else of the first one."""
    found = read(attributes)
    chosen = next((item for item in found if name is not None and item.name == name), None)
    if chosen is None and (name is not None or not found):
        return ()
    return (chosen or found[0]).paths


def write(
    paths: Sequence[str],
    *,
    name: str | None = None,
    type: str | None = None,  # noqa: A002 - the convention's name
    metadata: Mapping[str, JSON] | None = None,
) -> JSONObject:
    """Make the attributes of a group with one pyramid of these levels."""
    entry: JSONObject = {"datasets": [{"path": path} for path in paths], "version": "0.1"}
    if name is not None:
        entry["name"] = name
    if type is not None:
        entry["type"] = type
    if metadata:
        entry["metadata"] = dict(metadata)
    return {KEY: [entry]}


def _entries(attributes: Attributes) -> list[Mapping[str, Any]]:
    value = attributes.get(KEY)
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list | tuple) else []


def _paths(entry: Mapping[str, JSON]) -> tuple[str, ...]:
    datasets = entry.get("datasets")
    if not isinstance(datasets, list | tuple):
        return ()
    paths = [item.get("path") for item in datasets if isinstance(item, Mapping)]
    return tuple(path for path in paths if isinstance(path, str)) if len(paths) == len(datasets) else ()


def _detect(node: Node) -> bool:
    return node.kind == "group" and any(
        str(entry.get("version", "0.1")) == "0.1" and "axes" not in entry for entry in _entries(node.attributes)
    )


def _check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    for number, entry in enumerate(_entries(node.attributes)):
        loc = (KEY, number)
        paths = _paths(entry)
        if not paths:
            yield Problem(NAME, (*loc, "datasets"), "must be a list of objects, each with a path", "LEVEL-FORM")
            continue
        if "version" not in entry:
            yield Problem(NAME, (*loc, "version"), "should be there", "LEVEL-VERSION")
        yield from check_levels(NAME, paths, path, hierarchy, (*loc, "datasets"))


def check_levels(
    convention: str, paths: Sequence[str], group: str, hierarchy: Hierarchy, loc: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Check that levels are existing arrays, of one rank, each no larger than the one before."""
    if len(hierarchy) <= 1:
        return  # only the group is known
    previous: Node | None = None
    for number, relative in enumerate(paths):
        place = join(group, relative)
        node = hierarchy.get(place)
        if node is None or node.kind != "array":
            yield Problem(convention, (*loc, number, "path"), f"no array at /{place}", "LEVEL-MISSING")
            continue
        if previous is not None and previous.ndim != node.ndim:
            message = f"/{place} has {node.ndim} dimensions, the level before {previous.ndim}"
            yield Problem(convention, (*loc, number, "path"), message, "LEVEL-RANK")
        elif previous is not None and any(b > a for a, b in zip(previous.shape, node.shape, strict=True)):
            message = f"/{place} of shape {list(node.shape)} is larger than the level before {list(previous.shape)}"
            yield Problem(convention, (*loc, number, "path"), message, "LEVEL-ORDER")
        previous = node


CONVENTION = Convention(NAME, _detect, _check, spec_url="https://github.com/zarr-developers/zarr-specs/issues/50")
