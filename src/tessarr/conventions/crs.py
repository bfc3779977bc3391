"""Coordinate reference systems of arrays: the CF way and the GDAL way, read together.

    CF    array {"grid_mapping": "crs"}, sibling array "crs" {"crs_wkt": "PROJCRS[…]", "grid_mapping_name": "…", …}
    GDAL  array {"_CRS": {"url": "http://www.opengis.net/def/crs/EPSG/0/26711", "wkt": "PROJCRS[…]", "projjson": {…}}}

>>> hierarchy = {"a": Node(kind="array", attributes={"_CRS": {"wkt": "W", "url": "http://x/EPSG/0/4326"}})}
>>> found = read("a", hierarchy)
>>> found.best, [(item.way, item.form) for item in found.all]
(Reference(way='gdal', form='url', value='http://x/EPSG/0/4326'), [('gdal', 'url'), ('gdal', 'wkt')])

Of GDAL's forms url counts, then wkt, then projjson. Where both ways are present both are reported, and whether they
disagree: exactly where pyproj is installed (`tessarr.conventions.pyproj`), else only for equal forms and authority codes.
Text is passed through as it stands: WKT1, WKT2:2015 and WKT2:2019 alike. The framework's ``proj:`` is read too, last.

Source: CF 1.11, section 5.6; GDAL, "Zarr" driver, "SRS encoding"; OGC 21-050r1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tessarr.conventions import proj
from tessarr.conventions.base import Convention, Hierarchy, Node, Problem
from tessarr.conventions.cf import find
from tessarr.types import JSON, JSONObject

NAME = "CRS"
KEY = "_CRS"
Form = Literal["url", "wkt", "projjson", "code", "cf"]
_FORMS: tuple[Form, ...] = ("url", "wkt", "projjson")
_URL = re.compile(r"/def/crs/([^/]+)/[^/]+/([^/]+)$|/([A-Za-z]+)/[^/]+/(\w+)$")
_ID = re.compile(r'(?:ID|AUTHORITY)\["(\w+)",\s*"?(\w+)"?\]\s*\]\s*$', re.IGNORECASE)


class Reference(NamedTuple):
    """One statement of a coordinate reference system."""

    way: Literal["gdal", "cf", "proj"]
    form: Form
    """url, wkt, projjson, code; cf: the grid mapping's own parameters, without WKT."""
    value: Any
    """The text, or for projjson and cf an object."""

    @property
    def code(self) -> str | None:
        """Authority and identifier (``EPSG:4326``) where the statement has one."""
        if self.form == "code":
            return str(self.value).upper()
        if self.form == "url":
            found = _URL.search(self.value)
            return f"{found[1] or found[3]}:{found[2] or found[4]}".upper() if found else None
        if self.form == "wkt":
            found = _ID.search(self.value)
            return f"{found[1]}:{found[2]}".upper() if found else None
        if self.form == "projjson" and isinstance(self.value, Mapping) and isinstance(self.value.get("id"), Mapping):
            return f"{self.value['id'].get('authority')}:{self.value['id'].get('code')}".upper()
        return None


@dataclass(frozen=True, slots=True)
class CRS:
    """Everything that is said of an array's coordinate reference system."""

    all: tuple[Reference, ...]
    """GDAL's first, in GDAL's order of precedence, then CF's, then the framework's."""

    @property
    def best(self) -> Reference:
        """The statement that counts."""
        return self.all[0]

    @property
    def disagree(self) -> bool:
        """Whether two statements cannot both be true; ``False`` also where that cannot be told."""
        codes = {reference.code for reference in self.all} - {None}
        if len(codes) > 1:
            return True
        for form in ("wkt", "projjson"):
            values = [reference.value for reference in self.all if reference.form == form]
            if len(values) > 1 and any(_bare(value) != _bare(values[0]) for value in values) and len(codes) != 1:
                return not _equal_by_pyproj(self.all)
        return False


def _bare(value: Any) -> Any:
    return re.sub(r"\s+", "", value) if isinstance(value, str) else value


def _equal_by_pyproj(references: tuple[Reference, ...]) -> bool:
    """Whether pyproj finds all statements equal; ``False`` where it is not installed or cannot read them."""
    from tessarr.conventions import pyproj
    from tessarr.errors import MissingDependencyError

    try:
        return pyproj.equivalent([reference.value for reference in references if reference.form != "cf"])
    except (MissingDependencyError, ValueError):
        return False


def read(path: str, hierarchy: Hierarchy) -> CRS | None:
    """The coordinate reference system of the array at `path`; ``None`` when nothing says it."""
    node = hierarchy[path]
    found = [*_gdal(node), *_cf(path, hierarchy), *_framework(path, hierarchy)]
    return CRS(tuple(found)) if found else None


def _gdal(node: Node) -> Iterator[Reference]:
    stated = node.attributes.get(KEY)
    if isinstance(stated, Mapping):
        for form in _FORMS:
            value = stated.get(form)
            if isinstance(value, Mapping if form == "projjson" else str) and value:
                yield Reference("gdal", form, value)
    elif isinstance(stated, str) and stated:  # early GDAL
        yield Reference("gdal", "wkt", stated)


def grid_mapping(path: str, hierarchy: Hierarchy) -> str | None:
    """The path of the grid mapping variable that an array names; ``None`` when it names none or it is not there.

    CF's extended form (``crs: x y``) names the variable before the colon.
    """
    name = hierarchy[path].attributes.get("grid_mapping")
    if not isinstance(name, str) or not name.strip():
        return None
    return find(name.split(":")[0].split()[0], path, hierarchy)


def _cf(path: str, hierarchy: Hierarchy) -> Iterator[Reference]:
    place = grid_mapping(path, hierarchy)
    if place is None:
        return
    attributes = hierarchy[place].attributes
    for name in ("crs_wkt", "spatial_ref"):  # the second is GDAL's name in netCDF files
        if isinstance(attributes.get(name), str) and attributes[name]:
            yield Reference("cf", "wkt", attributes[name])
            return
    if isinstance(attributes.get("grid_mapping_name"), str):
        yield Reference("cf", "cf", dict(attributes))


def _framework(path: str, hierarchy: Hierarchy) -> Iterator[Reference]:
    found = proj.inherited(path, hierarchy)
    if found is not None:
        for form, value in (("wkt", found.wkt2), ("projjson", found.projjson), ("code", found.code)):
            if value:
                yield Reference("proj", form, value)  # type: ignore[arg-type]


def write_gdal(
    *, wkt: str | None = None, projjson: Mapping[str, JSON] | None = None, url: str | None = None
) -> JSONObject:
    """The attribute ``_CRS`` of an array; text is kept as given. Raises `ValueError` without any."""
    given: dict[str, Any] = {"wkt": wkt, "projjson": projjson, "url": url}
    stated = {name: value for name, value in given.items() if value}
    if not stated:
        raise ValueError("one of wkt, projjson, url is needed")
    return {KEY: stated}


def write_cf(name: str, wkt: str, parameters: Mapping[str, JSON] | None = None) -> tuple[JSONObject, JSONObject]:
    """The CF way: attributes of the array, and attributes of the grid mapping variable called `name`.

    `parameters` are the grid mapping's own (``grid_mapping_name`` and so on), which CF wants besides the WKT.
    """
    return {"grid_mapping": name}, {**(parameters or {}), "crs_wkt": wkt}


def _detect(node: Node) -> bool:
    return node.kind == "array" and (KEY in node.attributes or "grid_mapping" in node.attributes)


def _check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    stated = node.attributes.get(KEY)
    if KEY in node.attributes:
        if not isinstance(stated, Mapping):
            yield Problem(NAME, (KEY,), f"must be an object of url, wkt or projjson, got {stated!r}", "CRS-FORM")
        elif not any(form in stated for form in _FORMS):
            yield Problem(NAME, (KEY,), "must hold one of url, wkt, projjson", "CRS-FORM")
    found = read(path, hierarchy) if path in hierarchy else None
    if found is not None and found.disagree:
        said = ", ".join(f"{item.way} {item.form}" + (f" {item.code}" if item.code else "") for item in found.all)
        yield Problem(
            NAME, (), f"the statements disagree: {said}; {found.best.way} {found.best.form} is used", "CRS-DISAGREE"
        )


CONVENTION = Convention(NAME, _detect, _check, spec_url="https://gdal.org/drivers/raster/zarr.html")
