"""NCZarr, recognised: netCDF-C's additions to Zarr, which other readers may ignore.

    4.9 and later   ``.zattrs``  {"_nczarr_group": {"dimensions": {"t": {"size": 0, "unlimited": 1}, "x": 4}, "arrays": ["v"],
                                  "groups": []}}
                                 {"_nczarr_array": {"dimension_references": ["/x"], "storage": "chunked"}}
                                 {"_nczarr_attr": {"types": {"scale_factor": "<f4"}}}
    4.8             in ``.zgroup``   {"_NCZARR_GROUP": {"dims": {"x": 4}, "vars": ["v"], "groups": []}}
                    in ``.zarray``   {"_NCZARR_ARRAY": {"dimrefs": ["/x"], "storage": "chunked"}}
    before          separate documents: ``.nczgroup``, ``.nczarray``, ``.nczattr``

The OGC community standard excludes them; they do not keep a node from being read, and are not members of groups.

>>> read({"_nczarr_attr": {"types": {"scale_factor": "<f4"}}}), is_key("a/.nczarray")
({'attr': {'types': {'scale_factor': '<f4'}}}, True)
>>> read_array({"_nczarr_array": {"dimension_references": ["/x"], "storage": "chunked"}})
Variable(dimensions=('/x',), storage='chunked', scalar=False)

A scalar is an array of one element there (shape ``[1]``, dimension ``_scalar_``); `read_array` recognises it.

Source: netCDF-C documentation, "NetCDF-C Zarr (NCZarr) support"; files of netCDF-C 4.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem, items, parent
from tessarr.types import JSON

NAME = "nczarr"
KEYS = (".nczarray", ".nczattr", ".nczgroup", ".nczvar")
_PREFIX = "_nczarr_"


class Group(NamedTuple):
    """NCZarr's description of a group."""

    dimensions: dict[str, int]
    """Name → length."""
    unlimited: tuple[str, ...] = ()
    """The dimensions that may grow."""
    arrays: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class Variable(NamedTuple):
    """NCZarr's description of an array."""

    dimensions: tuple[str, ...]
    """The full names of its dimensions: the group that defines each, and its name."""
    storage: str | None = None
    scalar: bool = False


def is_key(key: str) -> bool:
    """Return whether a store key is one of NCZarr's documents."""
    return key.rpartition("/")[2] in KEYS


def read(attributes: Attributes, document: Attributes | None = None) -> dict[str, Any]:
    """Return the NCZarr members of a node, without their prefix and in lower case; {} without such members.

    `document` are the members of its ``.zarray`` or ``.zgroup`` (`Node.extra`), where 4.8 stored them.
    """
    return {
        name[len(_PREFIX) :].lower(): value
        for members in (document or {}, attributes)
        for name, value in members.items()
        if name.lower().startswith(_PREFIX)
    }


def read_group(attributes: Attributes, document: Attributes | None = None) -> Group | None:
    """Read the dimensions and members of a group; ``None`` without such a description.

    >>> read_group({"_nczarr_group": {"dimensions": {"t": {"size": 3, "unlimited": 1}, "x": 4}, "arrays": ["v"]}})
    Group(dimensions={'t': 3, 'x': 4}, unlimited=('t',), arrays=('v',), groups=())
    """
    noted = _part("group", attributes, document, ".nczgroup")
    if noted is None:
        return None
    lengths, growing = {}, []
    stated = noted.get("dimensions", noted.get("dims"))
    for name, value in stated.items() if isinstance(stated, Mapping) else ():
        size = value.get("size") if isinstance(value, Mapping) else value
        if type(size) is int:
            lengths[str(name)] = size
        if isinstance(value, Mapping) and value.get("unlimited"):
            growing.append(str(name))
    arrays = _names(noted.get("arrays", noted.get("vars")))
    return Group(lengths, tuple(growing), arrays, _names(noted.get("groups")))


def read_array(attributes: Attributes, document: Attributes | None = None) -> Variable | None:
    """Read the dimensions of an array; ``None`` without such a description."""
    noted = _part("array", attributes, document, ".nczarray")
    if noted is None:
        return None
    storage = noted.get("storage")
    scalar = noted.get("scalar") in (1, True) or storage == "scalar"
    references = _names(noted.get("dimension_references", noted.get("dimrefs")))
    return Variable(() if scalar else references, storage if isinstance(storage, str) else None, scalar)


def dimensions(path: str, hierarchy: Hierarchy) -> dict[str, int | None] | None:
    """Return the dimensions of the array at `path`: full name → length (``None`` where no group defines it).

    ``None`` when NCZarr has no description of the array.
    """
    node = hierarchy[path]
    found = read_array(node.attributes, node.extra)
    if found is None:
        return None
    lengths: dict[str, int | None] = {}
    for name in found.dimensions:
        group = _owner(name, hierarchy)
        lengths[name] = group.dimensions.get(name.rpartition("/")[2]) if group is not None else None
    return lengths


def _part(part: str, attributes: Attributes, document: Attributes | None, own: str) -> Mapping[str, JSON] | None:
    """Return the object of a part; a `document` of NCZarr (``.nczgroup``, ``.nczarray``) is the part itself."""
    found = read(attributes, document).get(part)
    if found is None and document is not None and isinstance(document.get(own), Mapping):
        found = document[own]
    return found if isinstance(found, Mapping) else None


def _names(value: object) -> tuple[str, ...]:
    return tuple(item for item in items(value) if isinstance(item, str))


def attribute_types(attributes: Attributes, document: Attributes | None = None) -> dict[str, str]:
    """Return the types of attributes that NCZarr records: name → typestr (or v3 name)."""
    noted = _part("attr", attributes, document, ".nczattr")
    types = noted.get("types") if noted is not None else None
    return {str(name): str(value) for name, value in types.items()} if isinstance(types, Mapping) else {}


def without(attributes: Attributes) -> dict[str, Any]:
    """Return the attributes without NCZarr's."""
    return {name: value for name, value in attributes.items() if not name.lower().startswith(_PREFIX)}


def _detect(node: Node) -> bool:
    return bool(read(node.attributes, node.extra))


def _check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    for name in attribute_types(node.attributes, node.extra):
        if name not in node.attributes and not name.lower().startswith("_nc"):
            loc = (_PREFIX + "attr", "types", name)
            yield Problem(NAME, loc, "has the type of a missing attribute", "NCZARR-TYPES")
    if node.kind != "array" or len(hierarchy) <= 1:
        return
    noted = read_array(node.attributes, node.extra)
    lengths = dimensions(path, hierarchy) or {}
    place = (_PREFIX + "array",)
    if noted is not None and not noted.scalar and len(noted.dimensions) != node.ndim:
        message = f"names {len(noted.dimensions)} dimensions, the array has {node.ndim}"
        yield Problem(NAME, place, message, "NCZARR-DIMENSIONS")
    elif noted is not None and not noted.scalar:
        for name, real in zip(noted.dimensions, node.shape, strict=True):
            owner = _owner(name, hierarchy)
            if owner is not None and lengths[name] is None:
                yield Problem(NAME, place, f"refers to {name}, which its group does not define", "NCZARR-DIMENSIONS")
            elif owner is not None and lengths[name] != real and name.rpartition("/")[2] not in owner.unlimited:
                message = f"{name} has {lengths[name]} elements, the array {real}"
                yield Problem(NAME, place, message, "NCZARR-DIMENSIONS")


def _owner(name: str, hierarchy: Hierarchy) -> Group | None:
    """Return the description of the group that defines a dimension."""
    group = hierarchy.get(parent(name.strip("/")))
    return read_group(group.attributes, group.extra) if group is not None else None


CONVENTION = Convention(NAME, _detect, _check, spec_url="https://docs.unidata.ucar.edu/nug/current/nczarr_head.html")
