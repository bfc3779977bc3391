"""Conventions: what communities agreed to keep in user attributes. Pure functions over metadata; nothing is read here.

Each module has `read` (what the attributes say, ``None`` when they say nothing), `write` (the attributes that say it)
and a `CONVENTION` with `detect` and `check`; `tessarr check` runs those of every convention that a node follows.

| module | convention |
|---|---|
| `xarray` | dimension names (``_ARRAY_DIMENSIONS``, ``dimension_names``), coordinates, ``_FillValue`` |
| `cf`, `cftime` | CF: units, time and calendars, scale and offset, fill and valid range, flags |
| `crs` | coordinate reference systems, CF's way and GDAL's (``_CRS``) |
| `multiscales` | Multiscale Arrays 0.1 |
| `framework` | ``zarr_conventions``: conventions by uuid |
| `layout`, `proj`, `spatial` | its multiscales, proj and spatial (together GeoZarr) |
| `ome` | OME-Zarr 0.4, 0.5 (read, write, check) and 0.6rc (read, check) |
| `plates` | its plates, wells and series |
| `anndata`, `nczarr` | recognised |
| `rules` | the rules that `check` goes by: id, severity, what to do |
| `registered` | further ones of the framework, recognised: license, uom, dggs, stac, NZ |
"""

from __future__ import annotations

from tessarr.conventions.base import (
    Convention,
    Hierarchy,
    Node,
    Problem,
    check_hierarchy,
    check_node,
    conventions,
    detect,
    hierarchy_of,
    node_of,
    register,
    unregister,
)
from tessarr.conventions.rules import RULES, Rule

__all__ = [
    "RULES",
    "Convention",
    "Hierarchy",
    "Node",
    "Problem",
    "Rule",
    "check_hierarchy",
    "check_node",
    "conventions",
    "detect",
    "hierarchy_of",
    "node_of",
    "register",
    "unregister",
]
