"""Compare coordinate reference systems with pyproj (extra ``crs``), and write them in other forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any

from tessarr.errors import MissingDependencyError
from tessarr.types import JSON


def parse(value: object) -> Any:
    """Make a ``pyproj.CRS`` from WKT (1 or 2), PROJJSON, an authority code, an OGC URL, or CF parameters.

    Raises `ValueError` when pyproj cannot read it, `MissingDependencyError` when pyproj is not installed.
    """
    try:
        import pyproj
        from pyproj.exceptions import CRSError
    except ImportError as error:
        raise MissingDependencyError(
            "coordinate reference systems are compared with pyproj", hint="Install tessarr[crs]"
        ) from error
    try:
        if isinstance(value, dict) and "grid_mapping_name" in value:
            return pyproj.CRS.from_cf(value)
        return pyproj.CRS.from_user_input(value)
    except CRSError as error:
        raise ValueError(f"not a coordinate reference system: {error}") from error


def equivalent(values: Sequence[JSON]) -> bool:
    """Return whether all values denote the same system. Raises as `parse`."""
    first, *others = (parse(value) for value in values)
    return all(first.equals(other, ignore_axis_order=True) for other in others)


def contradict(values: Sequence[JSON]) -> bool:
    """Return whether two of the values cannot denote one system. Raises as `parse`.

    The parameters of a CF grid mapping, which are seldom complete, contradict a system only in members that both have.
    """
    partial = [value for value in values if isinstance(value, dict) and "grid_mapping_name" in value]
    whole = [parse(value) for value in values if value not in partial]
    if any(not whole[0].equals(other, ignore_axis_order=True) for other in whole[1:]):
        return True
    stated = [*partial, *(crs.to_cf() for crs in whole[:1])]
    return any(_differ(one, stated[-1]) for one in stated[:-1])


def _differ(one: Mapping[str, JSON], other: Mapping[str, JSON]) -> bool:
    """Return whether two grid mappings differ in name or in a number that both have."""
    names = [item.get("grid_mapping_name") for item in (one, other)]
    if None not in names and names[0] != names[1]:
        return True
    shared = [key for key in one if key in other and key != "crs_wkt"]
    pairs = [(one[key], other[key]) for key in shared]
    return any(
        not isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
        for a, b in pairs
        if isinstance(a, int | float) and isinstance(b, int | float)
    )


def forms(value: object) -> dict[str, Any]:
    """Return a system in every form that an array can hold: wkt (WKT2:2019), projjson, and code and url if
    available.
    """
    crs = parse(value)
    authority = crs.to_authority()
    found: dict[str, JSON] = {"wkt": crs.to_wkt("WKT2_2019"), "projjson": crs.to_json_dict()}
    if authority is not None:
        found["code"] = ":".join(authority)
        found["url"] = f"http://www.opengis.net/def/crs/{authority[0]}/0/{authority[1]}"
    return found
