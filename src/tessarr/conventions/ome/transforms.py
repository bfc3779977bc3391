"""Check the coordinate transformations of OME-Zarr 0.6 (RFC-5), and scenes, against the specification.

    identity · scale · translation · mapAxis · projectAxis · affine · rotation · sequence · bijection · byDimension ·
    displacements · coordinates

>>> [problem.message for problem in transformation({"type": "scale", "scale": [0]}, (), None)]
['must be positive numbers, got [0]']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tessarr.conventions.base import Problem, is_number, numbers
from tessarr.conventions.ome.images import NAME
from tessarr.types import JSON

RULE = "OME-TRANSFORM"
_DEPTH = 100
Loc = tuple[str | int, ...]

KINDS: dict[str, str] = {
    "string": "a string", "number": "a number", "boolean": "true or false", "integer": "an integer",
    "count": "an integer of at least 0", "positive": "an integer of at least 1",
}  # fmt: skip


def fits(value: Any, kind: str) -> bool:
    """Return whether a JSON value is of one of `KINDS`; 1.0 is an integer."""
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if not is_number(value):
        return False
    whole = kind == "number" or float(value).is_integer()
    return whole and not (kind == "count" and value < 0) and not (kind == "positive" and value < 1)


def members(value: Mapping[str, object], kinds: Mapping[str, str], loc: Loc, rule: str) -> list[Problem]:
    """List the problems of the members that an object has."""
    return [
        Problem(NAME, (*loc, name), f"must be {KINDS[kind]}, got {value[name]!r}", rule)
        for name, kind in kinds.items()
        if name in value and not fits(value[name], kind)
    ]


def unique(items: Sequence[JSON], loc: Loc, rule: str) -> list[Problem]:
    """Check that a list has no duplicate items."""
    seen: list[JSON] = []
    for item in items:
        if item in seen:
            return [Problem(NAME, loc, "holds the same object twice", rule)]
        seen.append(item)
    return []


def transformation(step: object, loc: Loc, ndim: int | None) -> Iterator[Problem]:
    """Yield the problems of a transformation of an array or system of `ndim` axes (``None``: unknown)."""
    if not isinstance(step, Mapping):
        yield Problem(NAME, loc, f"must be an object, got {step!r}", RULE)
        return
    kind = step.get("type")
    yield from members(step, {"name": "string"}, loc, RULE)
    if len(loc) > _DEPTH:
        yield Problem(NAME, loc, "transformations are nested too deeply to be checked", RULE)
    elif kind in ("scale", "translation"):
        yield from _vector(step, loc, ndim)
    elif isinstance(kind, str) and kind in _CHECKS:
        yield from _CHECKS[kind](step, loc)
    elif kind != "identity":
        yield Problem(NAME, (*loc, "type"), f"unknown transformation {kind!r}", RULE)


def _wrong(loc: Loc, wanted: str, got: object) -> Problem:
    return Problem(NAME, loc, f"must be {wanted}, got {got!r}", RULE)


def _vector(step: Mapping[str, Any], loc: Loc, ndim: int | None) -> Iterator[Problem]:
    kind = str(step["type"])
    value = step.get(kind)
    if not numbers(value, ndim):
        yield _wrong((*loc, kind), f"{ndim} numbers" if ndim is not None else "numbers", value)
    elif kind == "scale" and not all(item > 0 for item in value or ()):
        yield _wrong((*loc, kind), "positive numbers", value)


def _axes(value: object, least: int, most: int) -> bool:
    """Return whether a value is a list of different axis indices."""
    return (
        isinstance(value, list | tuple)
        and least <= len(value) <= most
        and all(fits(item, "count") and item <= 4 for item in value)
        and len(set(value)) == len(value)
    )


def _map_axis(step: Mapping[str, JSON], loc: Loc) -> Iterator[Problem]:
    if not _axes(step.get("mapAxis"), 2, 5):
        yield _wrong((*loc, "mapAxis"), "2 to 5 different indices of axes", step.get("mapAxis"))


def _project_axis(step: Mapping[str, JSON], loc: Loc) -> Iterator[Problem]:
    stated = [name for name in ("droppedInputs", "createdOutputs") if name in step]
    if not stated:
        yield Problem(NAME, loc, "needs droppedInputs or createdOutputs", RULE)
    for name in stated:
        if not _axes(step[name], 1, 3):
            yield _wrong((*loc, name), "1 to 3 different indices of axes", step[name])


def _matrix(step: Mapping[str, Any], loc: Loc) -> Iterator[Problem]:
    kind = str(step["type"])
    rows = step.get(kind)
    by_path, by_rows = isinstance(step.get("path"), str), isinstance(rows, list | tuple)
    if by_rows:
        by_rows = all(numbers(row) and len(row) == len(rows[0]) for row in rows)  # type: ignore[union-attr,index]
    if by_rows and kind == "rotation":
        by_rows = rows is not None and 2 <= len(rows) <= 5 and len(rows[0]) == len(rows)
    if by_path == by_rows:
        shape = "a square matrix of 2 to 5 rows" if kind == "rotation" else "a matrix"
        yield Problem(NAME, (*loc, kind), f"must be {shape}, or path must name an array (one of the two)", RULE)


def _bijection(step: Mapping[str, JSON], loc: Loc) -> Iterator[Problem]:
    for name in ("forward", "inverse"):
        yield from transformation(step.get(name), (*loc, name), None)


def _listed(step: Mapping[str, JSON]) -> Sequence[JSON] | None:
    value = step.get("transformations")
    return value if isinstance(value, list | tuple) else None


def _sequence(step: Mapping[str, JSON], loc: Loc) -> Iterator[Problem]:
    listed = _listed(step)
    if listed is None:
        yield _wrong((*loc, "transformations"), "a list", step.get("transformations"))
    for number, item in enumerate(listed or ()):
        yield from transformation(item, (*loc, "transformations", number), None)


def _by_dimension(step: Mapping[str, JSON], loc: Loc) -> Iterator[Problem]:
    listed = _listed(step)
    if listed is None:
        yield _wrong((*loc, "transformations"), "a list", step.get("transformations"))
    taken: list[JSON] = []
    for number, item in enumerate(listed or ()):
        here = (*loc, "transformations", number)
        if not isinstance(item, Mapping):
            yield _wrong(here, "an object", item)
            continue
        for name in ("inputAxes", "outputAxes"):
            if not numbers(item.get(name)):
                yield _wrong((*here, name), "a list of indices of axes", item.get(name))
        outputs = item.get("outputAxes")
        taken += outputs if isinstance(outputs, list | tuple) else []
        yield from transformation(item.get("transformation"), (*here, "transformation"), None)
    if len(set(map(str, taken))) < len(taken):
        yield Problem(NAME, (*loc, "transformations"), f"an output axis is defined twice: {taken}", RULE)


def _field(step: Mapping[str, JSON], loc: Loc) -> Iterator[Problem]:
    if not isinstance(step.get("path"), str):
        yield _wrong((*loc, "path"), "the path of an array", step.get("path"))
    if "interpolation" in step and step["interpolation"] not in ("nearest", "linear", "cubic"):
        yield _wrong((*loc, "interpolation"), "nearest, linear or cubic", step["interpolation"])


_CHECKS = {
    "mapAxis": _map_axis, "projectAxis": _project_axis,
    "affine": _matrix, "rotation": _matrix, "bijection": _bijection, "sequence": _sequence,
    "byDimension": _by_dimension, "displacements": _field, "coordinates": _field,
}  # fmt: skip


def of_dataset(steps: object, loc: Loc, ndim: int | None, path: str) -> Iterator[Problem]:
    """Check a level's transformation: one identity, scale, or sequence of a scale and a translation, from its array to
    a system.
    """
    if not isinstance(steps, list | tuple) or len(steps) != 1 or not isinstance(steps[0], Mapping):
        yield _wrong(loc, "a list of one object", steps)
        return
    (step,) = steps
    here = (*loc, 0)
    kind = step.get("type")
    source, target = step.get("input"), step.get("output")
    if isinstance(source, str):  # development versions, and the conformance suite of the release candidate
        source = {"path": source}
    if isinstance(target, str):
        target = {"name": target}
    if not isinstance(source, Mapping) or source.get("path") != path:
        yield _wrong((*here, "input"), f'{{"path": "{path}"}}', source)
    if not isinstance(target, Mapping) or not isinstance(target.get("name"), str):
        yield Problem(NAME, (*here, "output"), f"must name a coordinate system, got {target!r}", RULE)
    yield from transformation(step, here, ndim)
    inner = _listed(step) if kind == "sequence" else None
    if inner is not None:
        types = [item.get("type") if isinstance(item, Mapping) else None for item in inner]
        if types != ["scale", "translation"]:
            yield _wrong((*here, "transformations"), "a scale and a translation", types)
        for number, item in enumerate(inner):
            if isinstance(item, Mapping) and item.get("type") in ("scale", "translation"):
                yield from transformation(item, (*here, "transformations", number), ndim) if ndim is not None else ()
    elif kind not in ("identity", "scale", "sequence"):
        yield _wrong((*here, "type"), "identity, scale or sequence", kind)


def between_systems(steps: object, loc: Loc, *, exact: bool = False) -> Iterator[Problem]:
    """Check transformations between named systems: of an image, or (`exact`: without other members) of a scene."""
    if not isinstance(steps, list | tuple) or not steps:
        yield _wrong(loc, "a list of at least one object", steps)
        return
    for number, step in enumerate(steps):
        here = (*loc, number)
        yield from transformation(step, here, None)
        for name in ("input", "output"):
            if not isinstance(step, Mapping):
                break
            place = step.get(name)
            named = isinstance(place, Mapping) and isinstance(place.get("name"), str)
            if not named or (isinstance(place, Mapping) and not isinstance(place.get("path", ""), str)):
                yield Problem(NAME, (*here, name), f"must name a coordinate system, got {place!r}", RULE)
            elif exact and isinstance(place, Mapping) and place.keys() - {"name", "path"}:
                yield Problem(NAME, (*here, name), f"may hold name and path only, got {sorted(place)}", RULE)
