"""Coordinate reference systems of arrays: read the CF form and the GDAL form together.

    CF    array {"grid_mapping": "crs"}, sibling array "crs" {"crs_wkt": "PROJCRS[…]", "grid_mapping_name": "…", …}
    GDAL  array {"_CRS": {"url": "http://www.opengis.net/def/crs/EPSG/0/26711", "wkt": "PROJCRS[…]", "projjson": {…}}}

>>> hierarchy = {"a": Node(kind="array", attributes={"_CRS": {"wkt": "W", "url": "http://x/EPSG/0/4326"}})}
>>> found = read("a", hierarchy)
>>> found.best, [(item.way, item.form) for item in found.all]
(Reference(way='gdal', form='url', value='http://x/EPSG/0/4326'), [('gdal', 'url'), ('gdal', 'wkt')])

Of GDAL's forms url takes precedence, then wkt, then projjson. Where both CF and GDAL are present, both are reported, and
whether they disagree: exactly where pyproj is installed (`tessarr.conventions.pyproj`), else only for equal forms and
authority codes. CF's extended form (``"crs: x y geo: lat lon"``) names a system for each set of coordinates:
`read_grid_mapping`. WKT1, WKT2:2015 and WKT2:2019 are passed through unchanged. The framework's ``proj:`` is read last.

Source: CF 1.11, section 5.6; GDAL, "Zarr" driver, "SRS encoding"; OGC 21-050r1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tessarr.conventions import proj
from tessarr.conventions.base import Convention, Hierarchy, Node, Problem, Tree
from tessarr.conventions.xarray import find, read_dimensions
from tessarr.types import JSON, JSONObject

NAME = "CRS"
KEY = "_CRS"
Form = Literal["url", "wkt", "projjson", "code", "cf"]
_FORMS: tuple[Form, ...] = ("url", "wkt", "projjson")
_URLS = tuple(map(re.compile, (
    r"/def/crs/([^/]+)/[^/]+/([^/]+)/?$",  # of OGC
    r"^urn:(?:x-)?ogc:def:crs:([^:]+):[^:]*:([^:]+)$",
    r"/gml/srs/(epsg)\.xml#(\d+)$",
    r"/ref/([A-Za-z]+)/(\w+)/?$",  # of spatialreference.org
    r"^([A-Za-z]+):(\w+)$",
    r"/([A-Za-z]+)/[^/]+/(\w+)$",
)))  # fmt: skip
_ID = re.compile(r'(?:ID|AUTHORITY)\["(\w+)",\s*"?(\w+)"?\]\s*\]\s*$', re.IGNORECASE)


class Reference(NamedTuple):
    """One statement of a coordinate reference system."""

    way: Literal["gdal", "cf", "proj"]
    form: Form
    """url, wkt, projjson, code; cf: the parameters of the grid mapping, without WKT."""
    value: Any
    """The text, or for projjson and cf an object."""

    @property
    def code(self) -> str | None:
        """Authority and identifier (``EPSG:4326``), if the statement has one."""
        if self.form == "code":
            return str(self.value).upper()
        if self.form == "url":
            found = next(filter(None, (form.search(self.value) for form in _URLS)), None)
            return f"{found[1]}:{found[2]}".upper() if found else None
        if self.form == "wkt":
            found = _ID.search(self.value)
            return f"{found[1]}:{found[2]}".upper() if found else None
        if self.form == "projjson" and isinstance(self.value, Mapping) and isinstance(self.value.get("id"), Mapping):
            return f"{self.value['id'].get('authority')}:{self.value['id'].get('code')}".upper()
        return None


@dataclass(frozen=True, slots=True)
class CRS:
    """All statements about an array's coordinate reference system."""

    all: tuple[Reference, ...]
    """GDAL's first, in GDAL's order of precedence, then CF's, then the framework's."""

    @property
    def best(self) -> Reference:
        """The statement with the highest precedence."""
        return self.all[0]

    @property
    def disagree(self) -> bool:
        """Whether two statements cannot both be true; ``False`` also where that is unknown."""
        codes = {reference.code for reference in self.all}
        if len(self.all) < 2 or (len(codes) == 1 and None not in codes):
            return False
        stated = codes - {None}
        if len(stated) > len({str(code).partition(":")[0] for code in stated}):
            return True  # two different codes of one authority
        contradicted = _contradict_by_pyproj(self.all)
        return contradicted if contradicted is not None else len(stated) > 1 or self._texts_differ()

    def _texts_differ(self) -> bool:
        """Return whether two statements of one form, without codes to compare, have different texts."""
        for form in ("wkt", "projjson"):
            values = [_without_whitespace(reference.value) for reference in self.all if reference.form == form]
            if any(value != values[0] for value in values):
                return True
        return False


def _without_whitespace(value: object) -> object:
    return re.sub(r"\s+", "", value) if isinstance(value, str) else value


def _contradict_by_pyproj(references: tuple[Reference, ...]) -> bool | None:
    """Return whether two statements differ for pyproj; ``None`` where it is not installed or cannot read them all."""
    from tessarr.conventions import pyproj
    from tessarr.errors import MissingDependencyError

    try:
        return pyproj.contradict([reference.value for reference in references])
    except (MissingDependencyError, ValueError):
        return None


def read(path: str, hierarchy: Hierarchy) -> CRS | None:
    """Read the coordinate reference system of the array at `path`; ``None`` without any statement."""
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


class GridMapping(NamedTuple):
    """A grid mapping variable, and its coordinates."""

    name: str
    coordinates: tuple[str, ...] = ()
    """The coordinates in CF's extended form; () in the short form, which covers all."""


def read_grid_mapping(text: object) -> tuple[GridMapping, ...]:
    """Parse the attribute ``grid_mapping``, in CF's short or extended form; () for an invalid one.

    >>> read_grid_mapping("crs"), read_grid_mapping("utm: x y geo: lat lon")[1]
    ((GridMapping(name='crs', coordinates=()),), GridMapping(name='geo', coordinates=('lat', 'lon')))
    """
    words = re.sub(r"\s*:\s*", ": ", text).split() if isinstance(text, str) else []
    if not any(word.endswith(":") for word in words):
        return tuple(GridMapping(word) for word in words[:1])
    found: list[tuple[str, list[str]]] = []
    for word in words:
        if word.endswith(":"):
            found.append((word[:-1], []))
        elif found:
            found[-1][1].append(word)
    return tuple(GridMapping(name, tuple(coordinates)) for name, coordinates in found if name)


def write_grid_mapping(mappings: Sequence[GridMapping]) -> str:
    """Make the attribute ``grid_mapping``: the short form for one variable without coordinates, else the extended form.

    Raises `ValueError` without mappings, and for several mappings one of which has no coordinates.
    """
    if not mappings or (len(mappings) > 1 and not all(mapping.coordinates for mapping in mappings)):
        raise ValueError(f"several grid mappings need the coordinates of each, got {list(mappings)}")
    if not mappings[0].coordinates:
        return mappings[0].name
    return " ".join(f"{mapping.name}: {' '.join(mapping.coordinates)}" for mapping in mappings)


def grid_mapping(path: str, hierarchy: Hierarchy) -> str | None:
    """Return the path of the grid mapping variable of an array; ``None`` when it names none or the variable is missing.

    Of several (CF's extended form) the one whose coordinates are dimensions of the array, else the first.
    """
    node = hierarchy[path]
    named = read_grid_mapping(node.attributes.get("grid_mapping"))
    names = set(read_dimensions(node.attributes, node.ndim, node.dimension_names) or ()) - {None}
    direct = [item for item in named if item.coordinates and names.issuperset(item.coordinates)]
    chosen = (direct or named)[:1]
    return find(chosen[0].name, path, hierarchy) if chosen else None


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
    """Make the attribute ``_CRS`` of an array; text is stored unchanged. Raises `ValueError` without any form."""
    given: dict[str, JSON] = {"wkt": wkt, "projjson": projjson, "url": url}
    stated = {name: value for name, value in given.items() if value}
    if not stated:
        raise ValueError("one of wkt, projjson, url is needed")
    return {KEY: stated}


def write_cf(name: str, wkt: str, parameters: Mapping[str, JSON] | None = None) -> tuple[JSONObject, JSONObject]:
    """Make CF's attributes of the array, and those of the grid mapping variable called `name`.

    `parameters` are those of the grid mapping (``grid_mapping_name`` and so on), which CF requires besides the WKT.
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
    if found is not None and _known_to_disagree(found, hierarchy):
        said = ", ".join(f"{item.way} {item.form}" + (f" {item.code}" if item.code else "") for item in found.all)
        yield Problem(
            NAME, (), f"the statements disagree: {said}; {found.best.way} {found.best.form} is used", "CRS-DISAGREE"
        )


def _known_to_disagree(crs: CRS, hierarchy: Hierarchy) -> bool:
    """Return `CRS.disagree`, cached for arrays with equal statements: pyproj takes milliseconds."""
    if len(crs.all) < 2 or not isinstance(hierarchy, Tree):
        return crs.disagree
    key = (NAME, json.dumps([item[1:] for item in crs.all], sort_keys=True, default=str))
    if key not in hierarchy.known:
        hierarchy.known[key] = crs.disagree
    return bool(hierarchy.known[key])


CONVENTION = Convention(NAME, _detect, _check, spec_url="https://gdal.org/drivers/raster/zarr.html")
