"""The ``zarr_conventions`` framework: a node lists the conventions it follows, each identified by a uuid.

    {"zarr_conventions": [{"uuid": "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4", "name": "spatial", "description": "…"}]}

>>> entries = write({}, SPATIAL)["zarr_conventions"]
>>> entries[0]["uuid"], identify(entries[0]), uses({"zarr_conventions": entries}, SPATIAL)
('689b58e2-cf7b-45e0-9fff-9cfc0883d6b4', 'spatial', True)

Identity is by uuid, else by schema_url, else by spec_url, never by name. Files of 2025 have other URLs (tags that were
never published, older owners) for the same uuids; they are read. Written entries have the uuid and a description, and URLs
only where the published schema and the published tag agree on them. Works in v2 ``.zattrs`` too. The earlier ZEP 4 listed
plain strings.

Source: zarr-conventions-spec (mid-2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem
from tessarr.types import JSON, JSONObject

NAME = "zarr_conventions"
KEY = "zarr_conventions"
MULTISCALES = "d35379db-88df-4056-af3a-620245f8e347"
PROJ = "f17cb550-5864-4468-aeb7-f3180cfb622f"
SPATIAL = "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4"
CF = "77c308c7-4db2-4774-8b2d-aa37e9997db6"

KNOWN: dict[str, tuple[str, str]] = {
    MULTISCALES: ("multiscales", "Multiscale layout of zarr datasets"),
    PROJ: ("proj", "Coordinate reference system information for geospatial data"),
    SPATIAL: ("spatial", "Spatial coordinate information"),
    CF: ("CF", "Climate and Forecast conventions for self-describing geospatial data"),
    "b77365e5-2b0c-4141-b917-c03b7c68e935": ("license", "Licence of the data"),
    "3bbe438d-df37-49fe-8e2b-739296d46dfb": ("uom", "Units of measurement"),
    "7b255807-140c-42ca-97f6-7a1cfecdbc38": ("dggs", "Discrete global grid systems"),
    "b3703368-7e7e-4e8e-9e0e-6d0f0d5e8e8e": ("stac", "STAC metadata"),
    "d0a980b5-c644-4dcc-85a1-283799a58f40": ("NZ", "netCDF in Zarr"),
}
"""uuid → name, description."""

_FIELDS = ("uuid", "schema_url", "spec_url", "name", "description")
_IDENTITY = _FIELDS[:3]
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_URL = re.compile(r"zarr-(?:conventions|experimental)/(?:geo-)?([A-Za-z0-9]+)/")


def entries(attributes: Attributes) -> list[Mapping[str, Any]]:
    """Return the entries of a node that are objects."""
    value = attributes.get(KEY)
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list | tuple) else []


def identify(entry: Mapping[str, JSON]) -> str | None:
    """Return the name of the known convention of an entry; ``None`` for others.

    >>> identify({"schema_url": "https://raw.githubusercontent.com/zarr-experimental/geo-proj/refs/tags/v1/schema.json"})
    'proj'
    >>> identify({"name": "proj"}) is None
    True
    """
    if "uuid" in entry:
        return KNOWN.get(str(entry["uuid"]), (None,))[0]
    for field in ("schema_url", "spec_url"):
        if field in entry:
            found = _URL.search(str(entry[field]))
            names = {name for name, _ in KNOWN.values()}
            return found[1] if found and found[1] in names else None
    return None


def uses(attributes: Attributes, uuid: str) -> bool:
    """Return whether a node follows the convention with this uuid, in any form of entry."""
    name = KNOWN.get(uuid, (None,))[0]
    return any(
        entry.get("uuid") == uuid or ("uuid" not in entry and name is not None and identify(entry) == name)
        for entry in entries(attributes)
    )


def write(attributes: Attributes, *uuids: str) -> JSONObject:
    """Make the attributes with entries for these conventions, without duplicates; other attributes stay."""
    kept = list(attributes.get(KEY, []))
    for uuid in uuids:
        if not uses({KEY: kept}, uuid):
            kept.append(_entry(uuid))
    return {**attributes, KEY: kept}


def _entry(uuid: str) -> JSONObject:
    name, description = KNOWN[uuid]
    if uuid == SPATIAL:
        base = "zarr-conventions/spatial"
        return {
            "uuid": uuid,
            "schema_url": f"https://raw.githubusercontent.com/{base}/refs/tags/v0.1/schema.json",
            "spec_url": f"https://github.com/{base}/blob/v0.1/README.md",
            "name": name,
            "description": description,
        }
    if uuid == PROJ:  # its schema requires the name "proj:", its tag the name "proj"
        return {"uuid": uuid, "description": description}
    return {"uuid": uuid, "name": name, "description": description}


def _detect(node: Node) -> bool:
    return KEY in node.attributes


def _check(node: Node, _path: str, _hierarchy: Hierarchy) -> Iterator[Problem]:
    value = node.attributes[KEY]
    if not isinstance(value, list | tuple):
        yield Problem(NAME, (KEY,), f"must be a list of objects, got {value!r}", "ZC-ENTRY")
        return
    for number, entry in enumerate(value):
        loc = (KEY, number)
        if not isinstance(entry, Mapping):
            yield Problem(NAME, loc, f"must be an object (plain strings were ZEP 4's form), got {entry!r}", "ZC-ENTRY")
            continue
        if not any(name in entry for name in _IDENTITY):
            yield Problem(NAME, loc, f"needs one of {', '.join(_IDENTITY)}", "ZC-IDENTITY")
        for name, item in entry.items():
            if name not in _FIELDS:
                yield Problem(NAME, (*loc, name), "not a member of an entry", "ZC-ENTRY")
            elif not isinstance(item, str):
                yield Problem(NAME, (*loc, name), f"must be a string, got {item!r}", "ZC-ENTRY")
        if isinstance(entry.get("uuid"), str) and not _UUID.fullmatch(entry["uuid"]):
            yield Problem(NAME, (*loc, "uuid"), "is not a lower-case uuid", "ZC-IDENTITY")


CONVENTION = Convention(NAME, _detect, _check, spec_url="https://github.com/zarr-conventions/zarr-conventions-spec")
