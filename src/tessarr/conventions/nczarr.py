"""NCZarr, recognised: netCDF-C's own additions to Zarr, which other readers may ignore.

They are documents of their own (``.nczarray``, ``.nczattr``, ``.nczgroup``, older files) or attributes that begin with
``_nczarr_`` or ``_NCZARR_``. The OGC community standard excludes them; they do not keep a node from being read, and are
no members of groups.

>>> read({"_nczarr_attr": {"types": {"scale_factor": "<f4"}}}), is_key("a/.nczarray")
({'attr': {'types': {'scale_factor': '<f4'}}}, True)

Source: netCDF-C documentation, "NetCDF-C Zarr (NCZarr) support".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem

NAME = "nczarr"
KEYS = (".nczarray", ".nczattr", ".nczgroup", ".nczvar")
_PREFIX = "_nczarr_"


def is_key(key: str) -> bool:
    """Whether a store key is one of NCZarr's documents."""
    return key.rpartition("/")[2] in KEYS


def read(attributes: Attributes) -> dict[str, Any]:
    """The NCZarr attributes of a node, without their prefix and in lower case; {} when it has none."""
    return {
        name[len(_PREFIX) :].lower(): value for name, value in attributes.items() if name.lower().startswith(_PREFIX)
    }


def attribute_types(attributes: Attributes) -> dict[str, str]:
    """The types that NCZarr notes for attributes: name → typestr (or v3 name)."""
    noted = read(attributes).get("attr")
    types = noted.get("types") if isinstance(noted, Mapping) else None
    return {str(name): str(value) for name, value in types.items()} if isinstance(types, Mapping) else {}


def without(attributes: Attributes) -> dict[str, Any]:
    """The attributes that are the user's own."""
    return {name: value for name, value in attributes.items() if not name.lower().startswith(_PREFIX)}


def _detect(node: Node) -> bool:
    return bool(read(node.attributes))


def _check(node: Node, _path: str, _hierarchy: Hierarchy) -> Iterator[Problem]:
    for name in attribute_types(node.attributes):
        if name not in node.attributes and not name.lower().startswith("_nc"):
            yield Problem(
                NAME,
                (_PREFIX + "attr", "types", name),
                "notes the type of an attribute that is not there",
                "NCZARR-TYPES",
            )


CONVENTION = Convention(NAME, _detect, _check, spec_url="https://docs.unidata.ucar.edu/nug/current/nczarr_head.html")
