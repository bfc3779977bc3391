"""Further conventions of the ``zarr_conventions`` framework, recognised: license, uom, dggs, stac, and NZ.

    {"license": {"spdx": "CC-BY-4.0"}}                              b77365e5-…, v1
    {"uom": {"ucum": {"unit": "m/s"}}}                              3bbe438d-…, v1
    {"dggs": {"name": "healpix", "refinement_level": 8}}            7b255807-…, proposal
    {"stac:item": {…}, "stac:encoding": "…"}                        b3703368-…, proposal
    {"conventions": "NZ-1.0 CF-1.12"}                               d0a980b5-…, proposal (netCDF in Zarr)

>>> node = Node(kind="array", attributes={**framework.write({}, LICENSE), "license": {"spdx": "MIT"}})
>>> [convention.name for convention in CONVENTIONS if convention.detect(node)], read(node.attributes, "license")
(['license'], {'spdx': 'MIT'})

The keys are common words, so a node follows such a convention only if it states it: by an entry of the framework, or (NZ) in
``conventions``. An object may be missing beside its entry (groups state it for the nodes below); only the form of
objects is checked, since proposals may change.

Source: the README of each, in zarr-conventions and in clbarnes/zarr-convention-license, clbarnes/zarr-convention-uom.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tessarr.conventions import framework
from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem
from tessarr.conventions.xarray import is_dimension_coordinate
from tessarr.types import JSON

LICENSE = "b77365e5-2b0c-4141-b917-c03b7c68e935"
UOM = "3bbe438d-df37-49fe-8e2b-739296d46dfb"
DGGS = "7b255807-140c-42ca-97f6-7a1cfecdbc38"
STAC = "b3703368-7e7e-4e8e-9e0e-6d0f0d5e8e8e"
NZ = "d0a980b5-c644-4dcc-85a1-283799a58f40"

_LICENSE_MEMBERS = ("spdx", "url", "text", "file", "path")
_STAC_MEMBERS = ("stac:encoding", "stac:item", "stac:collection")
_NZ = re.compile(r"\bNZ-(\d+\.\d+)\b")


def read(attributes: Attributes, name: str) -> Mapping[str, Any] | None:
    """Return the object of the convention ``license``, ``uom``, ``dggs`` or ``stac``; ``None`` when it is not followed."""
    uuid = {"license": LICENSE, "uom": UOM, "dggs": DGGS, "stac": STAC}[name]
    if not framework.uses(attributes, uuid):
        return None
    if name == "stac":
        return {key.removeprefix("stac:"): attributes[key] for key in _STAC_MEMBERS if key in attributes}
    value = attributes.get(name)
    return value if isinstance(value, Mapping) else None


def nz_version(attributes: Attributes) -> str | None:
    """Return the version of NZ in a group's ``conventions``: ``"1.0"``; ``None`` without."""
    found = _NZ.search(str(attributes.get("conventions", "")))
    return found[1] if found else None


def _entry(uuid: str) -> Callable[[Node], bool]:
    return lambda node: framework.uses(node.attributes, uuid)


def _object(attributes: Attributes, name: str) -> tuple[Mapping[str, JSON], list[Problem]]:
    value = attributes.get(name, {})
    if isinstance(value, Mapping):
        return value, []
    return {}, [Problem(name, (name,), f"must be an object, got {value!r}", "ZC-VALUE")]


def _license(node: Node, _path: str, _hierarchy: Hierarchy) -> Iterator[Problem]:
    value, wrong = _object(node.attributes, "license")
    yield from wrong
    if value and not any(name in value for name in _LICENSE_MEMBERS):
        yield Problem("license", ("license",), f"needs one of {', '.join(_LICENSE_MEMBERS)}", "ZC-VALUE")
    for name in _LICENSE_MEMBERS:
        if name in value and not isinstance(value[name], str):
            yield Problem("license", ("license", name), f"must be a string, got {value[name]!r}", "ZC-VALUE")


def _uom(node: Node, _path: str, _hierarchy: Hierarchy) -> Iterator[Problem]:
    value, wrong = _object(node.attributes, "uom")
    yield from wrong
    ucum = value.get("ucum")
    if ucum is not None and not (isinstance(ucum, Mapping) and isinstance(ucum.get("unit"), str)):
        yield Problem("uom", ("uom", "ucum"), f"must be an object with a unit, got {ucum!r}", "ZC-VALUE")


def _dggs(node: Node, _path: str, _hierarchy: Hierarchy) -> Iterator[Problem]:
    value, wrong = _object(node.attributes, "dggs")
    yield from wrong
    if value and not isinstance(value.get("name"), str):
        yield Problem("dggs", ("dggs", "name"), f"must be a string, got {value.get('name')!r}", "ZC-VALUE")


def _stac(node: Node, _path: str, _hierarchy: Hierarchy) -> Iterator[Problem]:
    for name in ("stac:item", "stac:collection"):
        if name in node.attributes and not isinstance(node.attributes[name], Mapping | str):
            yield Problem("stac", (name,), f"must be an object or text, got {node.attributes[name]!r}", "ZC-VALUE")


def _nz_detect(node: Node) -> bool:
    return node.kind == "group" and (framework.uses(node.attributes, NZ) or nz_version(node.attributes) is not None)


def _nz(_node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    """Check that every array below the root names all its dimensions, and that an array named as a dimension is 1-d."""
    for place, other in hierarchy.items():
        inside = place != path and (not path or place.startswith(f"{path}/"))
        if not inside or other.kind != "array":
            continue
        names = other.dimension_names
        if other.ndim and (names is None or None in names):
            yield Problem("NZ", (), f"/{place} has dimensions without names", "NZ-NAMES")
        elif (
            other.ndim == 1 and place.rpartition("/")[2] in (names or ()) and not is_dimension_coordinate(place, other)
        ):
            yield Problem("NZ", (), f"/{place} is not a coordinate of the dimension it is named after", "NZ-NAMES")


CONVENTIONS = (
    Convention("license", _entry(LICENSE), _license, LICENSE, "https://github.com/clbarnes/zarr-convention-license"),
    Convention("uom", _entry(UOM), _uom, UOM, "https://github.com/clbarnes/zarr-convention-uom"),
    Convention("dggs", _entry(DGGS), _dggs, DGGS, "https://github.com/zarr-conventions/dggs"),
    Convention("stac", _entry(STAC), _stac, STAC, "https://github.com/zarr-conventions/stac"),
    Convention("NZ", _nz_detect, _nz, NZ, "https://github.com/zarr-conventions/nz"),
)
