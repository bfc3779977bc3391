"""Conventions: community agreements on the content of user attributes. Pure functions over metadata, without I/O.

Each module has `read` (parses attributes; ``None`` where they are absent), `write` (makes such attributes) and a
`CONVENTION` with `detect` and `check`; `tessarr check` runs those of every convention that a node follows.

| module | convention |
|---|---|
| `xarray` | dimension names (``_ARRAY_DIMENSIONS``, ``dimension_names``), coordinates, ``_FillValue`` |
| `cf`, `cftime` | CF: units, time and calendars, scale and offset, fill and valid range, flags |
| `crs` | coordinate reference systems, in the form of CF and of GDAL (``_CRS``) |
| `multiscales` | Multiscale Arrays 0.1 |
| `framework` | ``zarr_conventions``: conventions by uuid |
| `layout`, `proj`, `spatial` | its multiscales, proj and spatial (together GeoZarr) |
| `ome` | OME-Zarr 0.4, 0.5 (read, write, check) and 0.6rc (read, check) |
| `plates` | its plates, wells and series |
| `anndata`, `nczarr` | recognised |
| `rules` | the rules of `check`: id, severity, fix |
| `registered` | further conventions of the framework, recognised: license, uom, dggs, stac, NZ |
"""

from __future__ import annotations

from tessarr.conventions.base import Convention, Hierarchy, Node, Problem, hierarchy_of, node_of
from tessarr.conventions.known import check_hierarchy, check_node, conventions, detect, register, unregister
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
