"""Whether a group is what OME-Zarr says of images, labels, plates and wells.

The published JSON Schemas cover one document; here are their rules in sentences, and those between nodes: levels exist,
have the axes' rank and names, and shrink; wells and fields are where a plate says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tessarr.conventions.base import Hierarchy, Node, Problem, join, numbers
from tessarr.conventions.multiscales import check_levels
from tessarr.conventions.ome import KEY, NAME, content

_ORDER = {"time": 0, "channel": 1, "space": 2}
_WORD = re.compile(r"[A-Za-z0-9]+")
_TRANSFORMATIONS = (
    "identity", "mapAxis", "projectAxis", "scale", "translation", "affine", "rotation", "bijection", "sequence",
    "byDimension", "displacements", "coordinates",
)  # fmt: skip
_Loc = tuple[str | int, ...]


def check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    """Everything that is wrong with the group at `path`."""
    version, inner = content(node.attributes)
    base: _Loc = (KEY,) if isinstance(node.attributes.get(KEY), Mapping) else ()
    if version is None:
        yield Problem(NAME, (*base, "version"), "is missing", "OME-VERSION")
        return
    if base and version.startswith("0.4"):
        yield Problem(NAME, (*base, "version"), "0.4 stands in the attributes themselves, not under ome", "OME-VERSION")
    if base and node.zarr_format != 3:
        yield Problem(NAME, base, "belongs to Zarr v3", "OME-VERSION")
    if not version.startswith(("0.4", "0.5", "0.6")):
        yield Problem(
            NAME, (*base, "version"), f"version {version} is not checked here (0.4, 0.5, 0.6 are)", "OME-UNKNOWN"
        )
        return
    if "multiscales" in inner:
        yield from _images(inner["multiscales"], version, (*base, "multiscales"), path, hierarchy)
    if "omero" in inner:
        yield from _omero(inner["omero"], (*base, "omero"))
    if "image-label" in inner:
        yield from _label(inner["image-label"], (*base, "image-label"))
    if "plate" in inner:
        yield from _plate(inner["plate"], version, (*base, "plate"), path, hierarchy)
    if "well" in inner:
        yield from _well(inner["well"], (*base, "well"), path, hierarchy)
    if "labels" in inner:
        yield from _labels(inner["labels"], (*base, "labels"), path, hierarchy)


def _objects(value: Any, loc: _Loc, found: list[Problem]) -> list[tuple[int, Mapping[str, Any]]]:
    """The members of a list that has at least one and holds objects."""
    if not isinstance(value, list | tuple) or not value:
        found.append(Problem(NAME, loc, f"must be a list of at least one object, got {value!r}", "OME-FORM"))
        return []
    for number, item in enumerate(value):
        if not isinstance(item, Mapping):
            found.append(Problem(NAME, (*loc, number), f"must be an object, got {item!r}", "OME-FORM"))
    return [(number, item) for number, item in enumerate(value) if isinstance(item, Mapping)]


def _images(value: Any, version: str, loc: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    found: list[Problem] = []
    for number, entry in _objects(value, loc, found):
        here = (*loc, number)
        systems = entry.get("coordinateSystems")
        axes: Any = entry.get("axes")
        if version.startswith("0.6"):
            listed = _objects(systems, (*here, "coordinateSystems"), found)
            axes = listed[0][1].get("axes") if listed else None
            for position, system in listed:
                place = (*here, "coordinateSystems", position)
                if not isinstance(system.get("name"), str):
                    found.append(Problem(NAME, (*place, "name"), "must be a string", "OME-FORM"))
                found += [
                    Problem(NAME, (*place, "axes", *at), said, "OME-AXES")
                    for at, said in axis_problems(system.get("axes"), 0.6)
                ]
        else:
            found += [Problem(NAME, (*here, "axes", *at), message, "OME-AXES") for at, message in axis_problems(axes)]
        ndim = len(axes) if isinstance(axes, list | tuple) else None
        found += _datasets(entry, version, ndim, here, path, hierarchy)
        if version.startswith("0.5") and isinstance(axes, list | tuple):
            found += _names(entry, axes, here, path, hierarchy)
    yield from found


def axis_problems(axes: Any, version: float = 0.5) -> list[tuple[_Loc, str]]:
    """What is wrong with a list of axes (place within it, message); up to 0.5 two to five, in a fixed order."""
    if not isinstance(axes, list | tuple) or not all(isinstance(axis, Mapping) for axis in axes):
        return [((), f"must be a list of objects, got {axes!r}")]
    found: list[tuple[_Loc, str]] = []
    names = [axis.get("name") for axis in axes]
    if not all(isinstance(name, str) and name for name in names):
        found.append(((), "every axis needs a name"))
    elif len(set(names)) < len(names):
        found.append(((), f"names must be unique, got {names}"))
    if version >= 0.6:
        return found
    types = [axis.get("type") for axis in axes]
    if not 2 <= len(axes) <= 5:
        found.append(((), f"there must be 2 to 5 axes, got {len(axes)}"))
    if not 2 <= types.count("space") <= 3:
        found.append(((), f"2 or 3 axes must be of type space, got {types.count('space')}"))
    for kind in ("time", "channel"):
        if types.count(kind) > 1:
            found.append(((), f"at most one axis may be of type {kind}"))
    ranks = [_ORDER.get(str(kind), 1) for kind in types]
    if ranks != sorted(ranks):
        found.append(((), f"must be ordered time, channel (or other), space; got {types}"))
    return found


def _datasets(
    entry: Mapping[str, Any], version: str, ndim: int | None, loc: _Loc, path: str, hierarchy: Hierarchy
) -> list[Problem]:
    found: list[Problem] = []
    paths = []
    for number, item in _objects(entry.get("datasets"), (*loc, "datasets"), found):
        here = (*loc, "datasets", number)
        if not isinstance(item.get("path"), str):
            found.append(Problem(NAME, (*here, "path"), f"must be a string, got {item.get('path')!r}", "OME-FORM"))
            continue
        paths.append(item["path"])
        steps = item.get("coordinateTransformations")
        place = (*here, "coordinateTransformations")
        if version.startswith("0.6"):
            found += _steps_of_06(steps, place, ndim, item["path"])
        else:
            found += _steps(steps, place, ndim)
    if "coordinateTransformations" in entry and not version.startswith("0.6"):
        found += _steps(entry["coordinateTransformations"], (*loc, "coordinateTransformations"), ndim)
    found += check_levels(NAME, paths, path, hierarchy, (*loc, "datasets"))
    for number, relative in enumerate(paths):
        node = hierarchy.get(join(path, relative))
        if node is not None and node.kind == "array" and ndim is not None and node.ndim != ndim:
            message = f"the array has {node.ndim} dimensions, there are {ndim} axes"
            found.append(Problem(NAME, (*loc, "datasets", number, "path"), message, "LEVEL-RANK"))
    return found


def _steps(steps: Any, loc: _Loc, ndim: int | None) -> list[Problem]:
    """Up to 0.5: one scale, then at most one translation."""
    found: list[Problem] = []
    listed = _objects(steps, loc, found)
    types = [str(step.get("type")) for _, step in listed]
    if listed and types not in (["scale"], ["scale", "translation"]):
        found.append(
            Problem(NAME, loc, f"must be one scale and at most one translation after it, got {types}", "OME-TRANSFORM")
        )
    for number, step in listed:
        kind = str(step.get("type"))
        if kind in ("scale", "translation") and "path" not in step and not numbers(step.get(kind), ndim):
            message = f"must be {ndim if ndim is not None else 'a list of'} numbers, got {step.get(kind)!r}"
            found.append(Problem(NAME, (*loc, number, kind), message, "OME-TRANSFORM"))
    return found


def _steps_of_06(steps: Any, loc: _Loc, ndim: int | None, path: str) -> list[Problem]:
    found: list[Problem] = []
    for number, step in _objects(steps, loc, found):
        here = (*loc, number)
        source, target = step.get("input"), step.get("output")
        if isinstance(source, str):  # development versions, and the conformance suite of the release candidate
            source = {"path": source}
        if isinstance(target, str):
            target = {"name": target}
        if not isinstance(source, Mapping) or source.get("path") != path:
            found.append(
                Problem(NAME, (*here, "input"), f'must be {{"path": "{path}"}}, got {source!r}', "OME-TRANSFORM")
            )
        if not isinstance(target, Mapping) or not isinstance(target.get("name"), str):
            found.append(
                Problem(NAME, (*here, "output"), f"must name a coordinate system, got {target!r}", "OME-TRANSFORM")
            )
        found += _transformation(step, here, ndim)
    return found


def _transformation(step: Mapping[str, Any], loc: _Loc, ndim: int | None) -> list[Problem]:
    kind = step.get("type")
    if kind not in _TRANSFORMATIONS:
        return [Problem(NAME, (*loc, "type"), f"unknown transformation {kind!r}", "OME-TRANSFORM")]
    if kind in ("scale", "translation") and not numbers(step.get(kind), ndim):
        return [Problem(NAME, (*loc, kind), f"must be {ndim} numbers, got {step.get(kind)!r}", "OME-TRANSFORM")]
    found: list[Problem] = []
    if kind == "sequence":
        for number, item in _objects(step.get("transformations"), (*loc, "transformations"), found):
            found += _transformation(item, (*loc, "transformations", number), None)
    return found


def _names(entry: Mapping[str, Any], axes: Any, loc: _Loc, path: str, hierarchy: Hierarchy) -> list[Problem]:
    """0.5: the dimension names of every level are the axes'."""
    wanted = [axis.get("name") for axis in axes if isinstance(axis, Mapping)]
    found = []
    datasets = entry.get("datasets")
    for number, item in enumerate(datasets if isinstance(datasets, list | tuple) else ()):
        node = hierarchy.get(join(path, str(item.get("path")))) if isinstance(item, Mapping) else None
        if node is not None and node.kind == "array" and list(node.dimension_names or ()) != wanted:
            stated = None if node.dimension_names is None else list(node.dimension_names)
            message = f"dimension_names must be {wanted}, the array has {stated}"
            found.append(Problem(NAME, (*loc, "datasets", number, "path"), message, "OME-NAMES"))
    return found


def _omero(value: Any, loc: _Loc) -> Iterator[Problem]:
    channels = value.get("channels") if isinstance(value, Mapping) else None
    if not isinstance(channels, list | tuple):
        yield Problem(NAME, (*loc, "channels"), f"must be a list, got {channels!r}", "OME-OMERO")
        return
    for number, channel in enumerate(channels):
        window = channel.get("window") if isinstance(channel, Mapping) else None
        if window is not None and not (isinstance(window, Mapping) and {"start", "min", "end", "max"} <= window.keys()):
            yield Problem(NAME, (*loc, "channels", number, "window"), "needs start, min, end and max", "OME-OMERO")


def _label(value: Any, loc: _Loc) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(NAME, loc, f"must be an object, got {value!r}", "OME-LABEL")
        return
    found: list[Problem] = []
    seen: list[Any] = []
    for name in ("colors", "properties"):
        for number, item in _objects(value[name], (*loc, name), found) if name in value else ():
            if "label-value" not in item:
                found.append(Problem(NAME, (*loc, name, number, "label-value"), "is required", "OME-LABEL"))
            rgba = item.get("rgba")
            if name == "colors" and rgba is not None and not _is_rgba(rgba):
                found.append(
                    Problem(
                        NAME,
                        (*loc, name, number, "rgba"),
                        f"must be 4 integers from 0 to 255, got {rgba!r}",
                        "OME-LABEL",
                    )
                )
            if name == "colors":
                seen.append(item.get("label-value"))
    if len(set(map(str, seen))) < len(seen):
        found.append(Problem(NAME, (*loc, "colors"), "a label value occurs twice", "OME-LABEL"))
    yield from found


def _is_rgba(value: Any) -> bool:
    return numbers(value, 4) and all(type(part) is int and 0 <= part <= 255 for part in value)


def _plate(value: Any, version: str, loc: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(NAME, loc, f"must be an object, got {value!r}", "OME-PLATE")
        return
    found: list[Problem] = []
    names: dict[str, list[str]] = {}
    for kind in ("rows", "columns"):
        listed = _objects(value.get(kind), (*loc, kind), found)
        names[kind] = [str(item.get("name")) for _, item in listed]
        if len(set(names[kind])) < len(names[kind]):
            found.append(Problem(NAME, (*loc, kind), f"names must be unique, got {names[kind]}", "OME-PLATE"))
        if not version.startswith("0.6"):
            for number, name in enumerate(names[kind]):
                if not _WORD.fullmatch(name):
                    found.append(
                        Problem(
                            NAME, (*loc, kind, number, "name"), f"must be letters and digits, got {name!r}", "OME-PLATE"
                        )
                    )
    for number, item in (
        _objects(value["acquisitions"], (*loc, "acquisitions"), found) if value.get("acquisitions") else ()
    ):
        if type(item.get("id")) is not int:
            found.append(Problem(NAME, (*loc, "acquisitions", number, "id"), "must be an integer", "OME-PLATE"))
    for number, item in _objects(value.get("wells"), (*loc, "wells"), found):
        found += _plate_well(item, version, (*loc, "wells", number), names, path, hierarchy)
    yield from found


def _plate_well(
    item: Mapping[str, Any],
    version: str,
    loc: _Loc,
    names: dict[str, list[str]],
    path: str,
    hierarchy: Hierarchy,
) -> list[Problem]:
    place = item.get("path")
    if not isinstance(place, str) or place.count("/") != 1:
        return [Problem(NAME, (*loc, "path"), f"must be a row and a column, such as A/1, got {place!r}", "OME-PLATE")]
    found = []
    for kind, index, name in zip(("rows", "columns"), ("rowIndex", "columnIndex"), place.split("/"), strict=True):
        number = item.get(index)
        if type(number) is not int or not 0 <= number < len(names[kind]):
            found.append(Problem(NAME, (*loc, index), f"must be an index of {kind}, got {number!r}", "OME-PLATE"))
        elif names[kind][number] != name and not version.startswith("0.6"):  # whose own suite has it otherwise
            found.append(Problem(NAME, (*loc, index), f"says {names[kind][number]!r}, the path {name!r}", "OME-PLATE"))
    if len(hierarchy) > 1 and join(path, place) not in hierarchy:
        found.append(Problem(NAME, (*loc, "path"), f"no group at /{join(path, place)}", "OME-MISSING"))
    return found


def _well(value: Any, loc: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    found: list[Problem] = []
    images = value.get("images") if isinstance(value, Mapping) else None
    for number, item in _objects(images, (*loc, "images"), found):
        place = item.get("path")
        if not isinstance(place, str) or not _WORD.fullmatch(place):
            found.append(
                Problem(
                    NAME, (*loc, "images", number, "path"), f"must be letters and digits, got {place!r}", "OME-PLATE"
                )
            )
        elif len(hierarchy) > 1 and join(path, place) not in hierarchy:
            found.append(
                Problem(NAME, (*loc, "images", number, "path"), f"no group at /{join(path, place)}", "OME-MISSING")
            )
    yield from found


def _labels(value: Any, loc: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        yield Problem(NAME, loc, f"must be a list of paths, got {value!r}", "OME-FORM")
        return
    for number, item in enumerate(value):
        if len(hierarchy) > 1 and join(path, item) not in hierarchy:
            yield Problem(NAME, (*loc, number), f"no group at /{join(path, item)}", "OME-MISSING")
