"""spatial of the ``zarr_conventions`` framework: the position of the cells of an array.

    {"zarr_conventions": [{"uuid": "689b58e2-…"}], "spatial:dimensions": ["y", "x"],
     "spatial:transform": [10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0], "spatial:shape": [1200, 1200],
     "spatial:bbox": [500000.0, 4988000.0, 512000.0, 5000000.0], "spatial:registration": "pixel"}

>>> where = Spatial(dimensions=("y", "x"), transform=(10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0), shape=(1200, 1200))
>>> where.position(0, 0), where.bounds, where.geotransform
((500005.0, 4999995.0), (500000.0, 4988000.0, 512000.0, 5000000.0), (500000.0, 10.0, 0.0, 5000000.0, 0.0, -10.0))

The transform is in rasterio's order, x = a·column + b·row + c and y = d·column + e·row + f; GDAL's geotransform is
(c, a, b, f, d, e). With registration "pixel" (the default) it gives the corner of a cell, with "node" its centre.

Source: zarr-conventions/spatial v0.1. The older names ``proj:transform``, ``proj:bbox`` and ``proj:spatial_dimensions``
are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tessarr.conventions import framework
from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem, numbers
from tessarr.types import JSONObject

NAME = "spatial"
_LENGTHS = {"transform": 6, "bbox": 4, "shape": 2}
_OLD = {"transform": "proj:transform", "bbox": "proj:bbox", "dimensions": "proj:spatial_dimensions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spatial:
    """The position of an array (or of the arrays of a group)."""

    dimensions: tuple[str, str] | None = None
    """Names of the y and the x dimension."""
    transform: tuple[float, ...] | None = None
    """(a, b, c, d, e, f), rasterio's order."""
    bbox: tuple[float, ...] | None = None
    """(xmin, ymin, xmax, ymax)."""
    shape: tuple[int, int] | None = None
    """(height, width)."""
    registration: Literal["pixel", "node"] = "pixel"

    def position(self, row: float, column: float) -> tuple[float, float]:
        """Return x and y of the centre of a cell. Raises `ValueError` without a transform."""
        if self.transform is None:
            raise ValueError("there is no spatial:transform")
        a, b, c, d, e, f = self.transform
        half = 0.5 if self.registration == "pixel" else 0.0
        row, column = row + half, column + half
        return a * column + b * row + c, d * column + e * row + f

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """The bounding box of the cells: as stated, else from transform and shape; ``None`` when neither is known."""
        if self.bbox is not None:
            return self.bbox  # type: ignore[return-value]
        if self.transform is None or self.shape is None:
            return None
        a, b, c, d, e, f = self.transform
        shift = 0.0 if self.registration == "pixel" else -0.5
        corners = [
            (a * (column + shift) + b * (row + shift) + c, d * (column + shift) + e * (row + shift) + f)
            for row in (0, self.shape[0])
            for column in (0, self.shape[1])
        ]
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return min(xs), min(ys), max(xs), max(ys)

    @property
    def geotransform(self) -> tuple[float, ...] | None:
        """The transform in GDAL's order."""
        if self.transform is None:
            return None
        a, b, c, d, e, f = self.transform
        return c, a, b, f, d, e


def read(attributes: Attributes) -> Spatial | None:
    """Read the attributes; ``None`` without any. Malformed members are left out."""
    values = {name: _value(attributes, name) for name in ("dimensions", "transform", "bbox", "shape", "registration")}
    if not any(value is not None for value in values.values()):
        return None
    names = values["dimensions"]
    registration = values["registration"]
    kept: dict[str, Any] = {
        name: tuple(values[name]) for name, length in _LENGTHS.items() if numbers(values[name], length)
    }
    if isinstance(names, list | tuple) and len(names) == 2:
        kept["dimensions"] = tuple(map(str, names))
    return Spatial(**kept, registration=registration if registration in ("pixel", "node") else "pixel")


def _value(attributes: Attributes, name: str) -> Any:
    found = attributes.get(f"spatial:{name}")
    return attributes.get(_OLD[name]) if found is None and name in _OLD else found


def write(spatial: Spatial, attributes: Attributes | None = None) -> JSONObject:
    """Make the attributes; others passed stay."""
    result = framework.write(attributes or {}, framework.SPATIAL)
    for name in ("dimensions", "transform", "bbox", "shape"):
        value = getattr(spatial, name)
        if value is not None:
            result[f"spatial:{name}"] = list(value)
    if spatial.registration != "pixel":
        result["spatial:registration"] = spatial.registration
    return result


def scaled(spatial: Spatial, factors: tuple[float, float], shape: tuple[int, int]) -> Spatial:
    """Return the same area at a coarser resolution: cells `factors` (rows, columns) times as large, `shape` of them."""
    transform = spatial.transform
    if transform is not None:
        a, b, c, d, e, f = transform
        rows, columns = factors
        transform = (a * columns, b * rows, c, d * columns, e * rows, f)
        if spatial.registration == "node":  # the centre of the first cell moves
            dr, dc = (rows - 1) / 2, (columns - 1) / 2
            transform = (a * columns, b * rows, c + a * dc + b * dr, d * columns, e * rows, f + d * dc + e * dr)
    return Spatial(
        dimensions=spatial.dimensions,
        transform=transform,
        bbox=spatial.bbox,
        shape=shape,
        registration=spatial.registration,
    )


def _detect(node: Node) -> bool:
    return framework.uses(node.attributes, framework.SPATIAL) or any(
        name.startswith("spatial:") for name in node.attributes
    )


def _check(node: Node, _path: str, _hierarchy: Hierarchy) -> Iterator[Problem]:
    attributes = node.attributes
    for name, length in _LENGTHS.items():
        key = f"spatial:{name}"
        if key in attributes and not numbers(attributes[key], length):
            yield Problem(NAME, (key,), f"must be {length} numbers, got {attributes[key]!r}", "SPATIAL-FORM")
    shape = attributes.get("spatial:shape")
    if numbers(shape, 2) and not all(float(n).is_integer() and n >= 1 for n in shape or ()):
        yield Problem(NAME, ("spatial:shape",), f"must be 2 integers, got {shape!r}", "SPATIAL-FORM")
    registration = attributes.get("spatial:registration", "pixel")
    if registration not in ("pixel", "node"):
        yield Problem(NAME, ("spatial:registration",), f"must be pixel or node, got {registration!r}", "SPATIAL-FORM")
    names = attributes.get("spatial:dimensions")
    key = "spatial:dimensions"
    if names is None:
        if node.kind == "array" or key in attributes:
            yield Problem(NAME, (key,), "is required on arrays", "SPATIAL-DIMENSIONS")
    elif not (isinstance(names, list | tuple) and len(names) == 2 and all(isinstance(name, str) for name in names)):
        yield Problem(NAME, (key,), f"must be two names, got {names!r}", "SPATIAL-FORM")
    elif node.kind == "array" and node.dimension_names is not None:
        missing = [name for name in names if name not in node.dimension_names]
        if missing:
            yield Problem(
                NAME,
                (key,),
                f"{missing} are not dimensions of the array {list(node.dimension_names)}",
                "SPATIAL-DIMENSIONS",
            )
        else:
            yield from _check_shape(node, tuple(names))


def _check_shape(node: Node, names: tuple[str, ...]) -> Iterator[Problem]:
    stated = node.attributes.get("spatial:shape")
    dimensions = list(node.dimension_names or ())
    real = [node.shape[dimensions.index(name)] for name in names]
    if stated is not None and numbers(stated, 2) and list(stated) != real:
        yield Problem(NAME, ("spatial:shape",), f"says {stated}, the array has {real}", "SPATIAL-SHAPE")


CONVENTION = Convention(NAME, _detect, _check, framework.SPATIAL, "https://github.com/zarr-conventions/spatial")
