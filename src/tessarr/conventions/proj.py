"""proj of the ``zarr_conventions`` framework: the coordinate reference system of a group or array.

    {"zarr_conventions": [{"uuid": "f17cb550-…"}], "proj:code": "EPSG:32633"}

>>> read({"proj:code": "EPSG:4326", "proj:wkt2": "GEOGCRS[...]"})
Proj(code='EPSG:4326', wkt2='GEOGCRS[...]', projjson=None)
>>> write(code="EPSG:4326")["proj:code"]
'EPSG:4326'

At least one of ``proj:code``, ``proj:wkt2``, ``proj:projjson``; where they disagree wkt2 wins. That of a group applies to the
arrays directly in it (`inherited`). Before the split into proj and spatial, 2025 files also had ``proj:transform``,
``proj:bbox`` and ``proj:spatial_dimensions``; `tessarr.conventions.spatial` reads those.

Source: zarr-conventions/proj v0.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tessarr.conventions import framework
from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem, children, parent
from tessarr.types import JSON, JSONObject

NAME = "proj"
_CODE = re.compile(r"[^:]+:[^:]+")


class Proj(NamedTuple):
    """A coordinate reference system in up to three spellings."""

    code: str | None = None
    wkt2: str | None = None
    projjson: Mapping[str, JSON] | None = None

    @property
    def best(self) -> str | Mapping[str, JSON]:
        """The spelling with the highest precedence: wkt2, then projjson, then the code."""
        return self.wkt2 or self.projjson or self.code or ""


def read(attributes: Attributes) -> Proj | None:
    """Read a node's own statement; ``None`` without one."""
    code, wkt2, projjson = (attributes.get(f"proj:{name}") for name in Proj._fields)
    found = Proj(
        code if isinstance(code, str) else None,
        wkt2 if isinstance(wkt2, str) else None,
        projjson if isinstance(projjson, Mapping) else None,
    )
    return found if any(found) else None


def inherited(path: str, hierarchy: Hierarchy) -> Proj | None:
    """Read a node's statement, else that of its parent group."""
    own = read(hierarchy[path].attributes)
    above = hierarchy.get(parent(path)) if path else None
    return own or (read(above.attributes) if above is not None and hierarchy[path].kind == "array" else None)


def write(
    attributes: Attributes | None = None,
    *,
    code: str | None = None,
    wkt2: str | None = None,
    projjson: Mapping[str, JSON] | None = None,
) -> JSONObject:
    """Make the attributes; others passed stay. Raises `ValueError` without any spelling, or for a malformed code."""
    given: dict[str, JSON] = {"proj:code": code, "proj:wkt2": wkt2, "proj:projjson": projjson}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        raise ValueError("one of code, wkt2, projjson is needed")
    if code is not None and not _CODE.fullmatch(code):
        raise ValueError(f"a code is an authority and an identifier, such as EPSG:4326; got {code!r}")
    return {**framework.write(attributes or {}, framework.PROJ), **given}


def _detect(node: Node) -> bool:
    return framework.uses(node.attributes, framework.PROJ) or read(node.attributes) is not None


def _check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    above = hierarchy.get(parent(path)) if path else None
    stated = [node.attributes, *([above.attributes] if above is not None else [])]
    if not any(framework.uses(attributes, framework.PROJ) for attributes in stated):
        yield Problem(NAME, (framework.KEY,), f"has no entry for the convention ({framework.PROJ})", "ZC-UNDECLARED")
    names = [f"proj:{name}" for name in Proj._fields]
    if not any(name in node.attributes for name in names):
        below = children(path, hierarchy).values()
        if not any(read(child.attributes) for child in below) and len(hierarchy) > 1:
            yield Problem(NAME, (), f"needs one of {', '.join(names)}", "PROJ-FORM")
        return
    code, wkt2, projjson = (node.attributes.get(name) for name in names)
    if code is not None and not (isinstance(code, str) and _CODE.fullmatch(code)):
        yield Problem(NAME, ("proj:code",), f"must be like EPSG:4326, got {code!r}", "PROJ-FORM")
    if wkt2 is not None and not isinstance(wkt2, str):
        yield Problem(NAME, ("proj:wkt2",), f"must be a string, got {wkt2!r}", "PROJ-FORM")
    if projjson is not None and not isinstance(projjson, Mapping):
        yield Problem(NAME, ("proj:projjson",), f"must be an object, got {projjson!r}", "PROJ-FORM")


CONVENTION = Convention(NAME, _detect, _check, framework.PROJ, "https://github.com/zarr-conventions/proj")
