"""Coordinate reference systems through pyproj (extra ``crs``): comparing them and writing them in other forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessarr.errors import MissingDependencyError


def parse(value: Any) -> Any:
    """A ``pyproj.CRS`` from WKT (1 or 2), PROJJSON, an authority code, an OGC URL, or CF parameters.

    Raises `ValueError` when pyproj cannot read it, `MissingDependencyError` when pyproj is not installed.
    """
    try:
        import pyproj
    except ImportError as error:
        raise MissingDependencyError(
            "coordinate reference systems are compared with pyproj", hint="Install tessarr[crs]"
        ) from error
    try:
        if isinstance(value, dict) and "grid_mapping_name" in value:
            return pyproj.CRS.from_cf(value)
        return pyproj.CRS.from_user_input(value)
    except pyproj.exceptions.CRSError as error:
        raise ValueError(f"not a coordinate reference system: {error}") from error


def equivalent(values: Sequence[Any]) -> bool:
    """Whether all values mean the same system. Raises as `parse`."""
    first, *others = (parse(value) for value in values)
    return all(first.equals(other, ignore_axis_order=True) for other in others)


def forms(value: Any) -> dict[str, Any]:
    """A system in every form that an array can hold: wkt (WKT2:2019), projjson, code and url where there is one."""
    crs = parse(value)
    authority = crs.to_authority()
    found: dict[str, Any] = {"wkt": crs.to_wkt("WKT2_2019"), "projjson": crs.to_json_dict()}
    if authority is not None:
        found["code"] = ":".join(authority)
        found["url"] = f"http://www.opengis.net/def/crs/{authority[0]}/0/{authority[1]}"
    return found
