"""Check a group against OME-Zarr's rules for images, labels, plates and wells.

The published JSON Schemas cover one document; this module has their rules with messages, and the rules between nodes: levels
exist, have the axes' rank and names, and shrink; wells and fields are where a plate says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tessarr.conventions.base import Hierarchy, Node, Problem, items, join, numbers, parent
from tessarr.conventions.multiscales import check_levels
from tessarr.conventions.ome.images import KEY, NAME, content, intrinsic
from tessarr.conventions.ome.transforms import between_systems, members, of_dataset, unique
from tessarr.types import JSON

_ORDER = {"time": 0, "channel": 1, "space": 2}
_WORD = re.compile(r"[A-Za-z0-9]+")
_WELL = re.compile(r"[A-Za-z0-9]+/[A-Za-z0-9]+")
_ANY_WELL = re.compile(r"[^/]+/[^/]+")
_ACQUISITION = {
    "id": "count", "maximumfieldcount": "positive", "name": "string", "description": "string", "starttime": "count",
    "endtime": "count",
}  # fmt: skip
_Loc = tuple[str | int, ...]


def check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    """Yield the problems of the group at `path`."""
    version, inner = content(node.attributes)
    base: _Loc = (KEY,) if isinstance(node.attributes.get(KEY), Mapping) else ()
    if version is None:
        yield Problem(NAME, (*base, "version"), "is missing", "OME-VERSION")
        return
    if base and version.startswith("0.4"):
        yield Problem(
            NAME, (*base, "version"), "version 0.4 is stored in the attributes themselves, not under ome", "OME-VERSION"
        )
    if base and node.zarr_format != 3:
        yield Problem(NAME, base, "belongs to Zarr v3", "OME-VERSION")
    if not base and version == "0.5":  # examples of the release candidate have 0.6 without ome
        yield Problem(NAME, (), f"{version} stands under ome, with one version for all", "OME-VERSION")
    if version not in ("0.4", "0.5") and not version.startswith("0.6"):
        yield Problem(
            NAME, (*base, "version"), f"version {version} is not checked here (0.4, 0.5, 0.6 are)", "OME-UNKNOWN"
        )
        return
    if version == "0.4":
        yield from _versions(inner, base)
    if "multiscales" in inner:
        yield from _images(inner["multiscales"], version, (*base, "multiscales"), path, hierarchy)
    if "omero" in inner:
        yield from _omero(inner["omero"], version, (*base, "omero"))
    if "image-label" in inner:
        yield from _label(inner["image-label"], (*base, "image-label"))
        yield from _label_types(inner.get("multiscales"), (*base, "multiscales"), path, hierarchy)
    if "plate" in inner:
        yield from _plate(inner["plate"], version, (*base, "plate"), path, hierarchy)
    if "well" in inner:
        yield from _well(inner["well"], (*base, "well"), path, hierarchy)
    if "labels" in inner:
        yield from _labels(inner["labels"], (*base, "labels"), path, hierarchy)
    if "scene" in inner and version.startswith("0.6"):
        yield from _scene(inner["scene"], (*base, "scene"))
    yield from _series(inner, base, path, hierarchy)


def _versions(inner: Mapping[str, JSON], base: _Loc) -> Iterator[Problem]:
    """Check that, in 0.4, each object has a version, and all versions are equal."""
    listed = inner.get("multiscales")
    named: list[tuple[_Loc, JSON]] = [((name,), inner.get(name)) for name in ("image-label", "plate", "well")]
    named += [(("multiscales", n), item) for n, item in enumerate(items(listed))]
    for loc, value in named:
        if isinstance(value, Mapping) and value.get("version", "0.4") != "0.4":
            message = f"must be 0.4 as elsewhere in the group, got {value['version']!r}"
            yield Problem(NAME, (*base, *loc, "version"), message, "OME-VERSION")


def _scene(value: object, loc: _Loc) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(NAME, loc, f"must be an object, got {value!r}", "OME-FORM")
        return
    found: list[Problem] = []
    if "coordinateSystems" in value:
        _systems(value["coordinateSystems"], (*loc, "coordinateSystems"), found)
    yield from found
    yield from between_systems(value.get("coordinateTransformations"), (*loc, "coordinateTransformations"), exact=True)


def _series(inner: Mapping[str, JSON], base: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    """Check a bioformats2raw layout: 3 at the root, and in its group OME the paths of the images from the root."""
    name = "bioformats2raw.layout"
    if name in inner and not (numbers([inner[name]]) and inner[name] == 3):
        yield Problem(NAME, (*base, name), f"must be 3, got {inner[name]!r}", "OME-FORM")
    beside = hierarchy.get(join(path, "OME")) if name in inner and not base else None
    if beside is not None and "series" in beside.attributes:  # 0.4 has no mark of the layout there
        yield from _series({"series": beside.attributes["series"]}, ("OME",), join(path, "OME"), hierarchy)
    listed = inner.get("series")
    if "series" not in inner:
        return
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(item, str) for item in listed):
        yield Problem(NAME, (*base, "series"), f"must be a list of at least one path, got {listed!r}", "OME-FORM")
        return
    for number, item in enumerate(listed):
        place = join(parent(path), str(item))
        if len(hierarchy) > 1 and place not in hierarchy:
            yield Problem(NAME, (*base, "series", number), f"no group at /{place}", "OME-MISSING")


def _systems(value: object, loc: _Loc, found: list[Problem]) -> list[Mapping[str, Any]]:
    """Check 0.6's named systems of axes, and return them."""
    listed = [item for _, item in _objects(value, loc, found)]
    for number, system in enumerate(listed):
        if not isinstance(system.get("name"), str) or not system["name"]:
            found.append(Problem(NAME, (*loc, number, "name"), "must be a string", "OME-FORM"))
        found.extend(
            Problem(NAME, (*loc, number, "axes", *at), said, "OME-AXES")
            for at, said in axis_problems(system.get("axes"), 0.6)
        )
    names = [str(system.get("name")) for system in listed]
    if len(set(names)) < len(names):
        found.append(Problem(NAME, loc, f"names must be unique, got {names}", "OME-FORM"))
    return listed


def _objects(value: object, loc: _Loc, found: list[Problem]) -> list[tuple[int, Mapping[str, Any]]]:
    """Check a list of at least one object, and return its members with their positions."""
    if not isinstance(value, list | tuple) or not value:
        found.append(Problem(NAME, loc, f"must be a list of at least one object, got {value!r}", "OME-FORM"))
        return []
    for number, item in enumerate(value):
        if not isinstance(item, Mapping):
            found.append(Problem(NAME, (*loc, number), f"must be an object, got {item!r}", "OME-FORM"))
    return [(number, item) for number, item in enumerate(value) if isinstance(item, Mapping)]


def _images(value: object, version: str, loc: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    found: list[Problem] = []
    for number, entry in _objects(value, loc, found):
        here = (*loc, number)
        axes: JSON = entry.get("axes")
        found += members(entry, {"name": "string"}, here, "OME-FORM")
        if version.startswith("0.6"):
            listed = _systems(entry.get("coordinateSystems"), (*here, "coordinateSystems"), found)
            axes = intrinsic(entry, listed).get("axes") if listed else None
            if "coordinateTransformations" in entry:
                place = (*here, "coordinateTransformations")
                found += between_systems(entry["coordinateTransformations"], place)
        else:
            found += [Problem(NAME, (*here, "axes", *at), message, "OME-AXES") for at, message in axis_problems(axes)]
        ndim = len(axes) if isinstance(axes, list | tuple) else None
        found += _datasets(entry, version, ndim, here, path, hierarchy)
        if version.startswith("0.5") and isinstance(axes, list | tuple):
            found += _names(entry, axes, here, path, hierarchy)
    if isinstance(value, list | tuple):
        found += unique(value, loc, "OME-FORM")
    yield from found


def axis_problems(axes: object, version: float = 0.5) -> list[tuple[_Loc, str]]:
    """List the problems of axes (place within the list, message); up to 0.5 two to five axes, in a fixed order."""
    if not isinstance(axes, list | tuple) or not all(isinstance(axis, Mapping) for axis in axes):
        return [((), f"must be a list of objects, got {axes!r}")]
    found: list[tuple[_Loc, str]] = []
    names = [axis.get("name") for axis in axes]
    if not all(isinstance(name, str) and name for name in names):
        found.append(((), "every axis needs a name"))
    elif len(set(names)) < len(names):
        found.append(((), f"names must be unique, got {names}"))
    types = [axis.get("type") for axis in axes]
    kinds = {"type": "string", "unit": "string"}
    if version >= 0.6:
        kinds |= {"longName": "string", "discrete": "boolean"}
    for number, axis in enumerate(axes):
        found += [(problem.loc, problem.message) for problem in members(axis, kinds, (number,), "OME-AXES")]
    said = _type_problems_06(types) if version >= 0.6 else _type_problems(types)
    return [*found, *(((), message) for message in said)]


def _type_problems(types: list[JSON]) -> Iterator[str]:
    if not 2 <= len(types) <= 5:
        yield f"there must be 2 to 5 axes, got {len(types)}"
    if not 2 <= types.count("space") <= 3:
        yield f"2 or 3 axes must be of type space, got {types.count('space')}"
    for kind in ("time", "channel"):
        if types.count(kind) > 1:
            yield f"at most one axis may be of type {kind}"
    ranks = [_ORDER.get(str(kind), 1) for kind in types]
    if ranks != sorted(ranks):
        yield f"must be ordered time, channel (or other), space; got {types}"


def _type_problems_06(types: list[JSON]) -> Iterator[str]:
    if not 1 <= len(types) <= 5:
        yield f"there must be 1 to 5 axes, got {len(types)}"
    if (2 <= types.count("space") <= 3) == (types.count("array") >= 2):
        yield f"2 or 3 axes must be of type space, or 2 and more of type array; got {types}"


def _datasets(
    entry: Mapping[str, JSON], version: str, ndim: int | None, loc: _Loc, path: str, hierarchy: Hierarchy
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
            found += of_dataset(steps, place, ndim, item["path"])
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
        if node is not None and version == "0.4" and node.separator == "." and node.ndim > 1:
            message = 'the indices in its chunk keys are separated by ".", "/" is required'
            found.append(Problem(NAME, (*loc, "datasets", number, "path"), message, "OME-SEPARATOR"))
    return found


def _steps(steps: object, loc: _Loc, ndim: int | None) -> list[Problem]:
    """Check that, up to 0.5, there is one scale, then at most one translation."""
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


def _names(entry: Mapping[str, JSON], axes: Any, loc: _Loc, path: str, hierarchy: Hierarchy) -> list[Problem]:
    """Check that, in 0.5, the dimension names of every level are those of the axes."""
    wanted = [axis.get("name") for axis in axes if isinstance(axis, Mapping)]
    found = []
    datasets = entry.get("datasets")
    for number, item in enumerate(items(datasets)):
        node = hierarchy.get(join(path, str(item.get("path")))) if isinstance(item, Mapping) else None
        if node is not None and node.kind == "array" and list(node.dimension_names or ()) != wanted:
            stated = None if node.dimension_names is None else list(node.dimension_names)
            message = f"dimension_names must be {wanted}, the array has {stated}"
            found.append(Problem(NAME, (*loc, "datasets", number, "path"), message, "OME-NAMES"))
    return found


def _omero(value: object, version: str, loc: _Loc) -> Iterator[Problem]:
    channels = value.get("channels") if isinstance(value, Mapping) else None
    if not isinstance(channels, list | tuple):
        yield Problem(NAME, (*loc, "channels"), f"must be a list, got {channels!r}", "OME-OMERO")
        return
    ends = ("start", "min", "end", "max")
    for number, channel in enumerate(channels):
        here = (*loc, "channels", number)
        if not isinstance(channel, Mapping):
            yield Problem(NAME, here, f"must be an object, got {channel!r}", "OME-OMERO")
            continue
        kinds = {"label": "string", "family": "string", "color": "string", "active": "boolean"}
        yield from members(channel, kinds, here, "OME-OMERO")
        for name in ("color", "window") if version == "0.4" else ():
            if name not in channel:
                yield Problem(NAME, (*here, name), "is required in 0.4", "OME-OMERO")
        window = channel.get("window")
        if isinstance(window, Mapping) and window.keys() >= set(ends):
            yield from members(window, dict.fromkeys(ends, "number"), (*here, "window"), "OME-OMERO")
        elif "window" in channel:
            yield Problem(NAME, (*here, "window"), "needs start, min, end and max", "OME-OMERO")


def _label(value: object, loc: _Loc) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(NAME, loc, f"must be an object, got {value!r}", "OME-LABEL")
        return
    found: list[Problem] = []
    for name, kind in (("colors", "number"), ("properties", "integer")):
        here = (*loc, name)
        listed = _objects(value[name], here, found) if name in value else []
        for number, item in listed:
            if "label-value" not in item:
                found.append(Problem(NAME, (*here, number, "label-value"), "is required", "OME-LABEL"))
            found += members(item, {"label-value": kind}, (*here, number), "OME-LABEL")
            if name == "colors" and "rgba" in item and not _is_rgba(item["rgba"]):
                message = f"must be 4 integers from 0 to 255, got {item['rgba']!r}"
                found.append(Problem(NAME, (*here, number, "rgba"), message, "OME-LABEL"))
        seen = [str(item.get("label-value")) for _, item in listed]
        if name == "colors" and len(set(seen)) < len(seen):
            found.append(Problem(NAME, here, "a label value occurs twice", "OME-LABEL"))
        found += unique([item for _, item in listed], here, "OME-LABEL")
    source = value.get("source", {})
    if not isinstance(source, Mapping):
        found.append(Problem(NAME, (*loc, "source"), f"must be an object, got {source!r}", "OME-LABEL"))
    else:
        found += members(source, {"image": "string"}, (*loc, "source"), "OME-LABEL")
    yield from found


def _label_types(value: object, loc: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    """Check that the values of labels are integers."""
    for number, entry in enumerate(items(value)):
        datasets = entry.get("datasets") if isinstance(entry, Mapping) else None
        for position, item in enumerate(items(datasets)):
            node = hierarchy.get(join(path, str(item.get("path")))) if isinstance(item, Mapping) else None
            if node is not None and node.dtype and not node.dtype.lstrip("<>|=").startswith(("int", "uint", "bool")):
                here = (*loc, number, "datasets", position, "path")
                yield Problem(NAME, here, f"labels must be integers, the array has {node.dtype}", "OME-LABEL")


def _is_rgba(value: Any) -> bool:
    return numbers(value, 4) and all(type(part) is int and 0 <= part <= 255 for part in value)


def _plate(value: object, version: str, loc: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(NAME, loc, f"must be an object, got {value!r}", "OME-PLATE")
        return
    found: list[Problem] = []
    names: dict[str, list[str]] = {}
    for kind in ("rows", "columns"):
        listed = _objects(value.get(kind), (*loc, kind), found)
        names[kind] = [str(item.get("name")) for _, item in listed]
        found += [
            Problem(NAME, (*loc, kind, number, "name"), f"must be a string, got {item.get('name')!r}", "OME-PLATE")
            for number, item in listed
            if not isinstance(item.get("name"), str)
        ]
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
    found += members(value, {"name": "string", "field_count": "positive"}, loc, "OME-PLATE")
    found += _acquisitions(value.get("acquisitions", []), (*loc, "acquisitions"))
    wells = value.get("wells")
    found += unique(items(wells), (*loc, "wells"), "OME-PLATE")
    for number, item in _objects(value.get("wells"), (*loc, "wells"), found):
        found += _plate_well(item, version, (*loc, "wells", number), names, path, hierarchy)
    yield from found


def _acquisitions(value: object, loc: _Loc) -> list[Problem]:
    if not isinstance(value, list | tuple):
        return [Problem(NAME, loc, f"must be a list, got {value!r}", "OME-PLATE")]
    found: list[Problem] = []
    for number, item in enumerate(value):
        here = (*loc, number)
        if not isinstance(item, Mapping):
            found.append(Problem(NAME, here, f"must be an object, got {item!r}", "OME-PLATE"))
            continue
        if "id" not in item:
            found.append(Problem(NAME, (*here, "id"), "is required", "OME-PLATE"))
        found += members(item, _ACQUISITION, here, "OME-PLATE")
    ids = [str(item.get("id")) for item in value if isinstance(item, Mapping)]
    if len(set(ids)) < len(ids):
        found.append(Problem(NAME, loc, f"ids must be unique, got {ids}", "OME-PLATE"))
    return found


def _plate_well(
    item: Mapping[str, JSON],
    version: str,
    loc: _Loc,
    names: dict[str, list[str]],
    path: str,
    hierarchy: Hierarchy,
) -> list[Problem]:
    place = item.get("path")
    if not isinstance(place, str) or not (_WELL if not version.startswith("0.6") else _ANY_WELL).fullmatch(place):
        return [Problem(NAME, (*loc, "path"), f"must be a row and a column, such as A/1, got {place!r}", "OME-PLATE")]
    found = []
    for kind, index, name in zip(("rows", "columns"), ("rowIndex", "columnIndex"), place.split("/"), strict=True):
        number = item.get(index)
        if type(number) is not int or not 0 <= number < len(names[kind]):
            found.append(Problem(NAME, (*loc, index), f"must be an index of {kind}, got {number!r}", "OME-PLATE"))
        elif names[kind][number] != name and not version.startswith("0.6"):  # its test suite differs
            found.append(Problem(NAME, (*loc, index), f"says {names[kind][number]!r}, the path {name!r}", "OME-PLATE"))
    if len(hierarchy) > 1 and join(path, place) not in hierarchy:
        found.append(Problem(NAME, (*loc, "path"), f"no group at /{join(path, place)}", "OME-MISSING"))
    return found


def _well(value: object, loc: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    found: list[Problem] = []
    images = value.get("images") if isinstance(value, Mapping) else None
    found += unique(items(images), (*loc, "images"), "OME-PLATE")
    for number, item in _objects(images, (*loc, "images"), found):
        place = item.get("path")
        found += members(item, {"acquisition": "integer"}, (*loc, "images", number), "OME-PLATE")
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


def _labels(value: object, loc: _Loc, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        yield Problem(NAME, loc, f"must be a list of paths, got {value!r}", "OME-FORM")
        return
    for number, item in enumerate(value):
        if len(hierarchy) > 1 and join(path, item) not in hierarchy:
            yield Problem(NAME, (*loc, number), f"no group at /{join(path, item)}", "OME-MISSING")
