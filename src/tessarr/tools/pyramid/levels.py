"""Plan the levels of a pyramid: their names, shapes and factors, decided before anything is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tessarr.conventions import spatial
from tessarr.core.array import Array
from tessarr.metadata.array import ArrayMetadata
from tessarr.tools.pyramid.grid import level_grid
from tessarr.tools.pyramid.reduce import Method
from tessarr.types import Shape

Factors: TypeAlias = "int | Sequence[int] | Mapping[str, int]"
"""One factor for every scaled axis, a factor per axis, or factors by dimension name (others keep their length)."""

SPACE = frozenset({
    "x", "y", "z", "lon", "lat", "longitude", "latitude", "easting", "northing", "row", "column", "rows", "columns", "height",
    "width", "depth",
})  # fmt: skip
"""Dimension names that are scaled when no factors are given per axis."""
MIN_SIZE = 256
_NUMBERED = re.compile(r"(.*?)(\d+)")


@dataclass(frozen=True, slots=True)
class Level:
    """Describe one level; the first one is the array from which the pyramid is made."""

    name: str
    """Path relative to the group."""
    shape: Shape
    factors: tuple[int, ...]
    """Elements of the level before, per axis, that one element here stands for; 1 everywhere for the first level."""
    total: tuple[int, ...]
    """Elements of the first level, per axis, that one element here stands for."""


def factors_of(given: Factors, names: Sequence[str | None] | None, ndim: int) -> tuple[int, ...]:
    """Return a factor per axis. Raises `ValueError` for factors below 1, and for names or a number of axes that do not
    fit.

    One number is for the axes of space: by name, else (without names) the last two.

    >>> factors_of(2, ("t", "y", "x"), 3), factors_of(2, None, 3), factors_of({"z": 2}, ("z", "y", "x"), 3)
    ((1, 2, 2), (1, 2, 2), (2, 1, 1))
    """
    known = list(names) if names is not None and any(name is not None for name in names) else None
    if isinstance(given, Mapping):
        missing = [name for name in given if known is None or name not in known]
        if missing:
            raise ValueError(f"factors for {missing}, which are not dimensions of the array ({known})")
        result = tuple(given.get(name, 1) if name is not None else 1 for name in known or ())
    elif isinstance(given, int):
        spatial_axes = {axis for axis, name in enumerate(known or ()) if name is not None and name.lower() in SPACE}
        if not spatial_axes:
            spatial_axes = set(range(ndim)[-2:])
        result = tuple(given if axis in spatial_axes else 1 for axis in range(ndim))
    else:
        result = tuple(given)
    if len(result) != ndim or min(result, default=1) < 1:
        raise ValueError(f"there must be {ndim} factors of at least 1, got {given!r}")
    return result


def plan(
    name: str, shape: Shape, factors: tuple[int, ...], *, count: int | None, min_size: int, names: Sequence[str] | None
) -> list[Level]:
    """Plan the levels, the array itself first; an axis of one element stays so.

    `count` is the number of new levels; by default levels are made until no scaled axis is longer than `min_size`.
    Raises `ValueError` when no axis is long enough for so many levels.

    >>> [level.shape for level in plan("0", (5, 700), (1, 2), count=None, min_size=200, names=None)]
    [(5, 700), (5, 350), (5, 175)]
    """
    levels = [Level(name, shape, (1,) * len(shape), (1,) * len(shape))]
    wanted = count if count is not None else len(names) if names is not None else None
    while wanted is None or len(levels) <= wanted:
        last = levels[-1]
        here = tuple(factor if n > 1 else 1 for n, factor in zip(last.shape, factors, strict=True))
        scaled = [n for n, factor in zip(last.shape, here, strict=True) if factor > 1]
        if not scaled or (wanted is None and max(scaled) <= min_size):
            break
        smaller = tuple(-(-n // factor) for n, factor in zip(last.shape, here, strict=True))
        total = tuple(a * b for a, b in zip(last.total, here, strict=True))
        levels.append(Level(_name(name, len(levels), names), smaller, here, total))
    if wanted is not None and len(levels) <= wanted:
        raise ValueError(f"{wanted} levels are requested; after {len(levels) - 1} no axis can shrink further")
    taken = [level.name for level in levels]
    if len(set(taken)) < len(taken):
        raise ValueError(f"levels need different names, got {taken}")
    return levels


def _name(first: str, number: int, names: Sequence[str] | None) -> str:
    """Name a level: "0" → "1", "s0" → "s1", "image" → "image_1"."""
    if names is not None:
        if number > len(names):
            raise ValueError(f"there are names for {len(names)} levels only: {list(names)}")
        return names[number - 1]
    folder, slash, last = first.rpartition("/")
    found = _NUMBERED.fullmatch(last)
    own = f"{found[1]}{int(found[2]) + number}" if found else f"{last}_{number}"
    return f"{folder}{slash}{own}"


def level_metadata(base: Array, level: Level, method: Method) -> ArrayMetadata:
    """Make the metadata of a level: that of the array with another shape, and positions in attributes adapted."""
    changed = base._metadata.with_(shape=level.shape, chunk_grid=level_grid(base, level.total))
    return changed.with_attributes(_attributes(base, level, method))


def _attributes(base: Array, level: Level, method: Method) -> dict[str, Any]:
    attributes = base.attrs.asdict()
    place = spatial.read(attributes)
    if place is None or "spatial:transform" not in attributes:
        return attributes
    factors, shape = spatial_axes(place, base.dims, level)
    moved = place_of(place, factors, shape, method)
    for key in ("spatial:transform", "spatial:shape"):
        attributes.pop(key, None)
    return spatial.write(moved, attributes)


def spatial_axes(
    place: spatial.Spatial, names: Sequence[str | None] | None, level: Level
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the factors and lengths of the y and x axis of a level."""
    known = list(names or ())
    wanted = place.dimensions if place.dimensions and all(name in known for name in place.dimensions) else None
    row, column = (known.index(name) for name in wanted) if wanted else (len(level.shape) - 2, len(level.shape) - 1)
    return (level.total[row], level.total[column]), (level.shape[row], level.shape[column])


def place_of(
    place: spatial.Spatial, factors: tuple[int, int], shape: tuple[int, int], method: Method
) -> spatial.Spatial:
    """Return the position of a level. With registration "node" picked elements keep their position."""
    moved = spatial.scaled(place, (float(factors[0]), float(factors[1])), shape)
    if method != "nearest" or place.registration != "node" or place.transform is None or moved.transform is None:
        return moved
    a, b, _, d, e, _ = moved.transform
    kept = (a, b, place.transform[2], d, e, place.transform[5])
    return spatial.Spatial(
        dimensions=moved.dimensions, transform=kept, bbox=moved.bbox, shape=shape, registration="node"
    )


def shift_of(factor: int, method: Method) -> float:
    """Return the offset of a level's first element from that of the level before, in elements of the latter.

    >>> shift_of(2, "mean"), shift_of(3, "mode"), shift_of(2, "nearest")
    (0.5, 1.0, 0.0)
    """
    return 0.0 if method == "nearest" else (factor - 1) / 2
