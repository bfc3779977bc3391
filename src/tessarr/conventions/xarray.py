"""xarray's practice, with NetCDF's names: dimensions and coordinates of an array, and its value for "missing".

    v2   ``.zattrs``     {"_ARRAY_DIMENSIONS": ["time", "lat", "lon"], "coordinates": "yc xc", "_FillValue": -999}
    v3   ``zarr.json``   "dimension_names": ["time", "lat", "lon"]; "_FillValue" of floats as Base64 of a float64,
                         of complex numbers as two of those

>>> write_dimensions(("y", "x"), {"units": "K"}, zarr_format=2)
({'units': 'K', '_ARRAY_DIMENSIONS': ['y', 'x']}, None)
>>> write_fill(1.5, "f", 3), read_fill("AAAAAAAA+D8=", "f", 3)
('AAAAAAAA+D8=', 1.5)

The attribute ``_FillValue`` masks values on reading; it is not the array's ``fill_value``, the value of missing chunks.
`DIMENSIONS` is xarray's attribute for netCDF dimensions; user-defined types of netCDF are not supported (`netcdf_type`).

Source: xarray, "Zarr Encoding Specification"; OGC 21-050r1, "NetCDF data model"; zarr-extensions pull request 24.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem, Tree, children, join, parent
from tessarr.errors import UnsupportedOperationError
from tessarr.types import JSON, JSONObject

NAME = "xarray"
DIMENSIONS = "_ARRAY_DIMENSIONS"


def read_dimensions(
    attributes: Attributes, ndim: int, dimension_names: Sequence[str | None] | None = None
) -> tuple[str | None, ...] | None:
    """Read the names of an array's dimensions; ``None`` without names, or when they do not fit."""
    if dimension_names is not None:
        return tuple(dimension_names)
    names = attributes.get(DIMENSIONS)
    if not isinstance(names, list | tuple) or len(names) != ndim or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)


def write_dimensions(
    names: Sequence[str | None], attributes: Attributes | None = None, *, zarr_format: int = 3
) -> tuple[JSONObject, tuple[str | None, ...] | None]:
    """Make the attributes and ``dimension_names`` of an array with these dimensions.

    Raises `ValueError` for a dimension without a name in v2, whose attribute cannot express it.
    """
    own = {name: value for name, value in (attributes or {}).items() if name != DIMENSIONS}
    if zarr_format == 3:
        return own, tuple(names)
    if any(name is None for name in names):
        raise ValueError(f"{DIMENSIONS} cannot hold a dimension without a name: {list(names)}")
    return {**own, DIMENSIONS: list(names)}, None


def read_coordinates(attributes: Attributes) -> tuple[str, ...]:
    """Read the names of coordinate arrays of an array (or a group, for all its arrays): CF's ``coordinates``."""
    text = attributes.get("coordinates")
    return tuple(text.split()) if isinstance(text, str) else ()


def write_coordinates(names: Sequence[str], attributes: Attributes | None = None) -> JSONObject:
    """Make the attributes of an array (or a group, for all its arrays) that name coordinates other than dimensions.

    Raises `ValueError` for a name that is empty or holds a space, which the attribute cannot express.
    """
    if any(not name or name.split() != [name] for name in names):
        raise ValueError(f"names in 'coordinates' are separated by spaces, and cannot hold one: {list(names)}")
    own = {name: value for name, value in (attributes or {}).items() if name != "coordinates"}
    return {**own, "coordinates": " ".join(names)} if names else own


def coordinates(path: str, hierarchy: Hierarchy) -> dict[str, str]:
    """Return the coordinates of the array at `path`: name → path. Dimension coordinates (a 1-d array called like its
    dimension) first, then those that it or its group names; beside the array, or in the nearest group above (CF 2.7).
    """
    node = hierarchy[path]
    group = parent(path)
    names = read_dimensions(node.attributes, node.ndim, node.dimension_names) or ()
    listed = [name for name in names if name is not None]
    above = hierarchy.get(group)
    listed += read_coordinates(node.attributes) or (read_coordinates(above.attributes) if above else ())
    found = {}
    for name in listed:
        place = find(name, path, hierarchy)
        if place is not None and hierarchy[place].kind == "array" and place != path:
            found[name] = place
    return found


def find(name: str, path: str, hierarchy: Hierarchy) -> str | None:
    """Find the array that an array at `path` calls `name`: beside it, or in the nearest group above."""
    if name.startswith("/"):
        place = name.strip("/")
        return place if place in hierarchy else None
    group = parent(path)
    while True:
        place = f"{group}/{name}" if group else name
        if place in hierarchy:
            return place
        if not group:
            return None
        group = parent(group)


def is_dimension_coordinate(path: str, node: Node) -> bool:
    """Return whether a 1-d array is the coordinate of the dimension after which it is named."""
    return node.ndim == 1 and read_dimensions(node.attributes, 1, node.dimension_names) == (path.rpartition("/")[2],)


def sizes(group: str, hierarchy: Hierarchy) -> Mapping[str, int]:
    """Return the lengths of the dimensions of the arrays directly in a group; the first array to name one decides.

    Levels of a pyramid are ignored: they share the names of dimensions, but not their lengths.
    """
    found: dict[str, int] = {}
    if isinstance(hierarchy, Tree):
        if (NAME, group) in hierarchy.known:
            return hierarchy.known[NAME, group]  # type: ignore[return-value]
        hierarchy.known[NAME, group] = found
    levels = _levels(group, hierarchy)
    for path, node in children(group, hierarchy).items():
        if node.kind == "array" and path not in levels:
            for name, length in zip(node.dimension_names or (), node.shape, strict=False):
                if name is not None:
                    found.setdefault(name, length)
    return found


def _levels(group: str, hierarchy: Hierarchy) -> set[str]:
    """Return the paths of the arrays that the group lists as levels of a pyramid, in any convention."""
    from tessarr.conventions import layout, multiscales, ome

    node = hierarchy.get(group)
    if node is None or not ("multiscales" in node.attributes or ome.KEY in node.attributes):
        return set()
    found = [path for item in multiscales.read(node.attributes) for path in item.paths]
    found += [level.path for image in ome.read(node.attributes) for level in image.levels]
    found += [level.asset for level in layout.read(node.attributes)]
    return {join(group, path) for path in found}


def read_fill(value: JSON, kind: str, zarr_format: int) -> Any:
    """Parse the attribute ``_FillValue`` of an array whose NumPy kind is `kind` ("f", "i", "S", …).

    Raises `ValueError` for a malformed value.
    """
    if zarr_format == 3 and kind == "c" and isinstance(value, list | tuple) and len(value) == 2:
        real, imaginary = (read_fill(part, "f", 3) for part in value)
        return complex(real, imaginary)
    if zarr_format == 3 and isinstance(value, str) and kind in "fcS":
        try:
            data = base64.b64decode(value, validate=True)
        except ValueError as error:
            raise ValueError(f"_FillValue is not Base64: {value!r}") from error
        if kind == "S":
            return data
        if len(data) != 8:
            raise ValueError(f"_FillValue holds {len(data)} bytes, 8 expected: {value!r}")
        return struct.unpack("<d", data)[0]
    if isinstance(value, str) and kind in "fc":
        return float(value)
    return value


def write_fill(value: Any, kind: str, zarr_format: int) -> JSON:
    """Make the attribute ``_FillValue`` for a value."""
    value = value.item() if hasattr(value, "item") else value
    if kind == "S" and isinstance(value, bytes):
        return base64.b64encode(value).decode() if zarr_format == 3 else value.decode("latin-1")
    if zarr_format == 3 and kind == "c":
        return [write_fill(part, "f", 3) for part in (complex(value).real, complex(value).imag)]
    if zarr_format == 3 and kind == "f":
        return base64.b64encode(struct.pack("<d", value)).decode()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value  # type: ignore[no-any-return]


def netcdf_type(name: str) -> str:
    """Return the NumPy name of a netCDF type.

    >>> netcdf_type("ushort"), netcdf_type("string")
    ('uint16', 'str')

    Raises `UnsupportedOperationError` for user-defined types (compound, enum, vlen, opaque), which the mapping of netCDF
    to Zarr excludes.
    """
    known = {
        "byte": "int8", "ubyte": "uint8", "char": "S1", "short": "int16", "ushort": "uint16", "int": "int32",
        "uint": "uint32", "int64": "int64", "uint64": "uint64", "float": "float32", "double": "float64", "string": "str",
    }  # fmt: skip
    if name not in known:
        raise UnsupportedOperationError(
            f"the netCDF type {name!r} has no counterpart in Zarr", expected=f"one of {', '.join(known)}",
            hint="Store its parts as separate arrays",
        )  # fmt: skip
    return known[name]


def _detect(node: Node) -> bool:
    return node.kind == "array" and (DIMENSIONS in node.attributes or bool(node.dimension_names))


def _check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    stated = node.attributes.get(DIMENSIONS)
    if DIMENSIONS in node.attributes:
        fits = read_dimensions(node.attributes, node.ndim)
        if fits is None:
            yield Problem(NAME, (DIMENSIONS,), f"must be {node.ndim} strings, got {stated!r}", "XARRAY-NAMES")
        elif node.zarr_format == 3 and node.dimension_names is not None and fits != tuple(node.dimension_names):
            yield Problem(
                NAME,
                (DIMENSIONS,),
                f"names other dimensions than dimension_names {node.dimension_names}",
                "XARRAY-DIFFER",
            )
    names = read_dimensions(node.attributes, node.ndim, node.dimension_names) or ()
    if len({name for name in names if name is not None}) < sum(name is not None for name in names):
        yield Problem(NAME, (DIMENSIONS,), f"a dimension occurs twice: {list(names)}", "XARRAY-TWICE")
    known = sizes(parent(path), hierarchy) if path and names and path not in _levels(parent(path), hierarchy) else {}
    for axis, name in enumerate(names):
        if name is not None and known.get(name, node.shape[axis]) != node.shape[axis]:
            message = f"dimension {name!r} has {node.shape[axis]} elements here and {known[name]} in the same group"
            yield Problem(NAME, (DIMENSIONS,), message, "XARRAY-LENGTH")


CONVENTION = Convention(
    NAME, _detect, _check, spec_url="https://docs.xarray.dev/en/stable/internals/zarr-encoding-spec.html"
)
