"""List the rules of the conventions: severity of a violation, meaning, and fix.

>>> RULES["CF-TIME"].severity, RULES["CF-TIME"].fix
('error', "Write units like 'days since 1970-01-01 00:00:00'")

error: a statement cannot be used, or has another meaning than it says. warning: the convention is violated, and readers may
differ in their interpretation. info: a remark. `tessarr.tools.check` lists the rules under their ids.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]


class Rule(NamedTuple):
    """One rule."""

    severity: Severity
    meaning: str
    """The problem, in a sentence."""
    fix: str
    """What the user can do."""


RULES: dict[str, Rule] = {
    "CONV": Rule(
        "warning",
        "the attributes break a convention that they follow",
        "Correct the attribute, or remove the statement that the convention is followed",
    ),
    # dimensions
    "XARRAY-NAMES": Rule(
        "error",
        "_ARRAY_DIMENSIONS does not fit the array",
        "List one name per dimension, or remove _ARRAY_DIMENSIONS",
    ),
    "XARRAY-DIFFER": Rule(
        "warning",
        "_ARRAY_DIMENSIONS and dimension_names differ",
        "Remove _ARRAY_DIMENSIONS; in Zarr v3 dimension_names takes precedence",
    ),
    "XARRAY-TWICE": Rule(
        "warning",
        "a dimension occurs twice in an array",
        "Rename one of the two: a name that occurs twice cannot be used for selection",
    ),
    "XARRAY-LENGTH": Rule(
        "warning",
        "a dimension has two lengths in one group",
        "Rename the dimension of one array, or move that array to a separate group",
    ),
    # CF
    "CF-VERSION": Rule(
        "warning", "a group that follows CF does not say its version", 'Write "Conventions": "CF-1.11" (the version meant)'
    ),
    "CF-TYPE": Rule("warning", "a CF attribute is of the wrong type", "Write it as CF's Appendix A requires"),
    "CF-PACKING": Rule(
        "error",
        "scale_factor, add_offset or a limit is not a number",
        "Write it as a number",
    ),
    "CF-TIME": Rule("error", "a unit of time cannot be read", "Write units like 'days since 1970-01-01 00:00:00'"),
    "CF-CALENDAR": Rule(
        "error", "the calendar is unknown", "Write one of CF's calendars, such as 'standard' or 'noleap'"
    ),
    "CF-AXIS": Rule("warning", "axis is not one of X, Y, Z, T", "Write X, Y, Z or T, or remove axis"),
    "CF-RANGE": Rule(
        "warning",
        "valid_range stands beside valid_min or valid_max",
        "Keep valid_range, or valid_min and valid_max, not both",
    ),
    "CF-FLAGS": Rule(
        "warning",
        "flag_meanings and flag_values or flag_masks do not fit together",
        "List as many flag_values or flag_masks as there are words in flag_meanings",
    ),
    "CF-REFERENCE": Rule(
        "warning", "an array that an attribute names is missing", "Create the array, correct its name, or remove the attribute"
    ),
    # coordinate reference systems
    "CRS-FORM": Rule(
        "error",
        "a coordinate reference system is stated in a form that cannot be read",
        'Write {"_CRS": {"url": …}}, or wkt or projjson in it, or a grid_mapping',
    ),
    "CRS-DISAGREE": Rule(
        "error",
        "the coordinate reference systems that are stated differ",
        "Remove the wrong one, or write all of them from one system (tessarr.conventions.pyproj.forms)",
    ),
    # pyramids
    "LEVEL-FORM": Rule(
        "error", "the levels of a pyramid are not listed as they must be", 'List them: {"datasets": [{"path": "0"}, …]}'
    ),
    "LEVEL-VERSION": Rule("info", "a pyramid has no version", 'Add "version": "0.1"'),
    "LEVEL-MISSING": Rule(
        "error", "a level is missing", "Create the level, or remove it from the list; `tessarr pyramid` builds levels"
    ),
    "LEVEL-RANK": Rule(
        "error", "levels differ in their number of dimensions", "Rebuild the levels with `tessarr pyramid`"
    ),
    "LEVEL-ORDER": Rule(
        "error", "a level is larger than the one before", "List the highest resolution first and the lowest last"
    ),
    "LEVEL-DERIVED": Rule(
        "error",
        "a level does not say how it derives from another",
        "Name an asset of the layout in derived_from, and give the transform from it",
    ),
    # the zarr_conventions framework
    "ZC-ENTRY": Rule(
        "warning",
        "an entry of zarr_conventions is malformed",
        'Write objects of uuid, schema_url, spec_url, name, description: {"uuid": "…", "name": "…"}',
    ),
    "ZC-IDENTITY": Rule(
        "error", "an entry of zarr_conventions does not say which convention it is", "Add the uuid of the convention"
    ),
    "ZC-UNDECLARED": Rule(
        "warning",
        "a convention is followed that zarr_conventions does not list",
        "Add its entry; the write functions of tessarr.conventions do",
    ),
    "ZC-VALUE": Rule(
        "warning", "an attribute violates its convention", "Correct the attribute as the convention's text says"
    ),
    "PROJ-FORM": Rule(
        "error",
        "proj: states no coordinate reference system that can be read",
        "Write proj:code (EPSG:4326), proj:wkt2 (text) or proj:projjson (an object)",
    ),
    "SPATIAL-FORM": Rule(
        "error",
        "a member of spatial: is malformed",
        "Write spatial:transform as 6 numbers, bbox as 4, shape as 2, and dimensions as two names",
    ),
    "SPATIAL-DIMENSIONS": Rule(
        "error",
        "spatial:dimensions does not name dimensions of the array",
        "Name the array's y and x dimension, as in its dimension_names",
    ),
    "SPATIAL-SHAPE": Rule(
        "error", "spatial:shape is not the shape of the array", "Write the lengths of the array, or remove it"
    ),
    "NZ-NAMES": Rule(
        "warning",
        "an array below a group that follows NZ has dimensions without names",
        "Give every array dimension_names, and coordinates the name of their dimension",
    ),
    # OME-Zarr
    "OME-VERSION": Rule(
        "error",
        "the version of OME-Zarr is missing or misplaced",
        "0.4: Zarr v2, attributes as they are, a version in each object; from 0.5 on: Zarr v3, under ome, one version",
    ),
    "OME-UNKNOWN": Rule(
        "info", "the version of OME-Zarr is not checked", "Check it with a tool for that version"
    ),
    "OME-FORM": Rule(
        "error", "OME-Zarr metadata is malformed", "Correct the member as the specification says"
    ),
    "OME-AXES": Rule(
        "error",
        "the axes of an image are not what OME-Zarr allows",
        "2 to 5 axes of different names: time, then channel, then 2 or 3 of space",
    ),
    "OME-TRANSFORM": Rule(
        "error",
        "a coordinate transformation is not what OME-Zarr allows",
        "Give each level one scale, and after it at most one translation, with a number per axis",
    ),
    "OME-NAMES": Rule(
        "error",
        "dimension_names of a level are not the names of the axes",
        "Write the axes' names as dimension_names of every level",
    ),
    "OME-SEPARATOR": Rule(
        "warning",
        "the chunks of an image of OME-Zarr 0.4 are not nested",
        'Rewrite the array with "/" as dimension_separator',
    ),
    "OME-OMERO": Rule(
        "warning", "omero is not what OME-Zarr allows", "Give channels with a color and a window of start, min, end, max"
    ),
    "OME-LABEL": Rule(
        "error", "image-label is not what OME-Zarr allows", "Give every color one label-value, and rgba as 4 integers"
    ),
    "OME-PLATE": Rule(
        "error", "a plate or well is not what OME-Zarr allows", "Correct rows, columns, wells and their indexes"
    ),
    "OME-MISSING": Rule(
        "error", "a group that OME-Zarr metadata names is missing", "Create the group, or remove it from the list"
    ),
    # AnnData and NCZarr
    "ANNDATA-KIND": Rule(
        "error", "an AnnData element is of the wrong kind of node", "Correct encoding-type, or rewrite the element"
    ),
    "ANNDATA-VERSION": Rule("warning", "an AnnData element has no encoding-version", "Add the encoding-version"),
    "ANNDATA-ATTRIBUTE": Rule(
        "error", "an AnnData element lacks an attribute, or has a wrong one", "Write the attribute that its kind requires"
    ),
    "ANNDATA-MEMBER": Rule(
        "error", "an AnnData element lacks a member", "Rewrite the element; without the member it cannot be read"
    ),
    "ANNDATA-SHAPE": Rule(
        "error", "the parts of an AnnData element do not fit together", "Rewrite the element from the data it was made of"
    ),
    "NCZARR-TYPES": Rule(
        "info", "NCZarr records the type of a missing attribute", "Remove the name from _nczarr_attr.types"
    ),
    "NCZARR-DIMENSIONS": Rule(
        "error",
        "the dimensions that NCZarr records do not fit the array",
        "Correct dimrefs in _nczarr_array, or dims in the group's _nczarr_group",
    ),
}  # fmt: skip
"""Rule id → rule, for the built-in conventions."""
