"""Read what N5 groups say about their resolution levels, in five dialects, as the metadata of an OME-Zarr image.

    n5-viewer     datasets s0, s1, … with downsamplingFactors and pixelResolution, {unit, dimensions} or a list; older: scales
    BigDataViewer setup{s} with the downsamplingFactors of all levels; timepoint{t} in it with s0, s1, …
    COSEM         multiscales, whose datasets have a transform: axes, scale, translate, units, slowest axis first
    Paintera      painteraData, and a group data with multiScale, resolution and offset, and s0, s1, …
    Neuroglancer  axes, units, resolution, and downsamplingFactors or scales of s0, s1, …

>>> level = {"dimensions": [8, 8, 4], "pixelResolution": {"unit": "nm", "dimensions": [4, 4, 40]}}
>>> added = described({}, {"s0": level, "s1": {**level, "downsamplingFactors": [2, 2, 1]}}, {}, "C")
>>> added["ome"]["multiscales"][0]["datasets"][1]["coordinateTransformations"]
[{'type': 'scale', 'scale': [40.0, 8.0, 8.0]}, {'type': 'translation', 'translation': [0.0, 2.0, 2.0]}]

N5 lists the fastest axis first, COSEM the slowest (unless ``order`` is ``"F"``). A level is the mean of blocks of
elements, so its first element is half a block after the first one of s0. Without factors a level s{n} has 2**n, as in Java.
Axes without names are x, y and z. Where OME-Zarr has no such image (axes in N5's order, of other kinds, or in another order),
the levels are listed as in Multiscale Arrays 0.1.

Source: n5-universe, the classes of its package ``metadata``; Neuroglancer, "n5 data source"; BigDataViewer, "BDV N5 format".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from tessarr.metadata.n5 import AxisOrder, axis_names
from tessarr.types import JSON, JSONObject

Attributes = Mapping[str, JSON]
_STATED = ("downsamplingFactors", "scales", "pixelResolution", "resolution", "multiScale", "painteraData")
_MOST_AXES = 5
_UNITS = {
    "Å": "angstrom",
    "µm": "micrometer",
    "um": "micrometer",
    "μm": "micrometer",
    "micron": "micrometer",
    "s": "second",
}
_UNITS |= {
    f"{short}m": f"{long}meter"
    for short, long in {"": "", "p": "pico", "n": "nano", "m": "milli", "c": "centi"}.items()
}
_SHORT = {long: short for short, long in _UNITS.items()} | {"micrometer": "um"}
_KINDS = {"x": "space", "y": "space", "z": "space", "c": "channel", "channel": "channel", "t": "time", "time": "time"}
_RANKS = ("time", "channel", "space")


class _Axes(NamedTuple):
    """The axes of an image, fastest first."""

    names: tuple[str, ...]
    units: tuple[str, ...]


class _Level(NamedTuple):
    """A level; axes fastest first."""

    path: str
    scale: tuple[float, ...]
    translation: tuple[float, ...]


def described(
    attributes: Attributes, levels: Mapping[str, Attributes], above: Attributes, order: AxisOrder
) -> JSONObject:
    """Return the attributes that describe the levels of a group in the terms of Zarr; {} where nothing is said about levels, or
    the group has such attributes.

    `levels` are the attributes of the datasets by their path in the group, s0 first; `above` those of the group above.
    """
    if "ome" in attributes or any("axes" in entry for entry in _objects(attributes.get("multiscales"))):
        return {}
    found = _cosem(attributes, levels) or _numbered(attributes, levels, above)
    if found is None:
        return {}
    axes, listed = found
    if order == "C" and _is_ome(axes.names[::-1]):
        return {"ome": {"version": "0.5", "multiscales": [_image(axes, listed)]}}
    if "multiscales" in attributes:
        return {}
    return {"multiscales": [{"datasets": [{"path": level.path} for level in listed], "version": "0.1"}]}


class Stated(NamedTuple):
    """A level of an image to be described: what OME-Zarr says, slowest axis first."""

    path: str
    scale: tuple[float, ...]
    translation: tuple[float, ...]


def dialects_of(
    names: Sequence[str], units: Sequence[str | None], levels: Sequence[Stated]
) -> tuple[JSONObject, dict[str, JSONObject]]:
    """Make the attributes by which programs for N5 find an image: of its group, and of the datasets by path.

    They are those of COSEM, Neuroglancer and n5-viewer. `names`, `units` and `levels` list the slowest axis first.
    """
    short = [_SHORT.get(unit or "", "") for unit in units]
    first = levels[0]
    unit = next((one for one in short[::-1] if one), "pixel")
    datasets: list[JSON] = []
    below: dict[str, JSONObject] = {}
    factors: list[JSON] = []
    for level in levels:
        transform: JSONObject = {
            "axes": list(names), "scale": list(level.scale), "translate": list(level.translation), "units": list(short),
        }  # fmt: skip
        datasets.append({"path": level.path, "transform": transform})
        ratio = [n / m if m else 1.0 for n, m in zip(level.scale, first.scale, strict=True)][::-1]
        factors.append(ratio)
        pixel: JSONObject = {"unit": unit, "dimensions": list(first.scale[::-1])}
        below[level.path] = {"transform": transform, "pixelResolution": pixel, "downsamplingFactors": ratio}
    group: JSONObject = {
        "axes": list(names[::-1]), "units": list(short[::-1]), "resolution": list(first.scale[::-1]),
        "downsamplingFactors": factors, "multiscales": [{"datasets": datasets}],
    }  # fmt: skip
    return group, below


def names_of(image: Attributes, path: str) -> list[str] | None:
    """Return the names of the axes of the level at `path`, slowest first, by the result of `described`."""
    ome = image.get("ome")
    for entry in _objects(ome.get("multiscales") if isinstance(ome, Mapping) else None):
        if any(level.get("path") == path for level in _objects(entry.get("datasets"))):
            return [str(axis.get("name")) for axis in _objects(entry.get("axes"))]
    return None


def _is_ome(names: Sequence[str]) -> bool:
    kinds = [_KINDS.get(name, "other") for name in names]
    spatial = kinds.count("space")
    known = set(kinds) <= set(_RANKS) and kinds.count("time") <= 1 and kinds.count("channel") <= 1
    return known and 2 <= spatial <= 3 and kinds == sorted(kinds, key=_RANKS.index) and len(set(names)) == len(names)


def _image(axes: _Axes, levels: Sequence[_Level]) -> JSONObject:
    stated: list[JSON] = []
    for name, unit in zip(axes.names[::-1], axes.units[::-1], strict=True):
        axis: JSONObject = {"name": name, "type": _KINDS[name]}
        known = _UNITS.get(unit, unit if unit in _UNITS.values() else None)
        stated.append(axis if known is None else {**axis, "unit": known})
    datasets: list[JSON] = []
    for level in levels:
        steps: list[JSON] = [{"type": "scale", "scale": list(level.scale[::-1])}]
        if any(level.translation):
            steps.append({"type": "translation", "translation": list(level.translation[::-1])})
        datasets.append({"path": level.path, "coordinateTransformations": steps})
    return {"axes": stated, "datasets": datasets}


# -- COSEM ---------------------------------------------------------------------------------------------------------------


def _cosem(attributes: Attributes, levels: Mapping[str, Attributes]) -> tuple[_Axes, list[_Level]] | None:
    for entry in _objects(attributes.get("multiscales")):
        found = []
        for one in _objects(entry.get("datasets")):
            path = one.get("path")
            given = one.get("transform", levels.get(str(path), {}).get("transform"))
            read = _transform(given)
            if read is None or not isinstance(path, str):
                return None
            axes, scale, translation = read
            found.append((axes, _Level(path, scale, translation)))
        if found and len({axes.names for axes, _ in found}) == 1:
            return found[0][0], [level for _, level in found]
    return None


def _transform(given: object) -> tuple[_Axes, tuple[float, ...], tuple[float, ...]] | None:
    """Read a COSEM transform. Returns axes, scale and translation, fastest axis first."""
    if not isinstance(given, Mapping):
        return None
    names = _texts(given.get("axes"))
    count = len(names)
    scale, translation = _numbers(given.get("scale"), count), _numbers(given.get("translate", [0] * count), count)
    units = _texts(given.get("units", [""] * count))
    if not count or scale is None or translation is None or len(units) != count:
        return None
    step = 1 if given.get("order", given.get("ordering")) == "F" else -1
    return _Axes(names[::step], units[::step]), scale[::step], translation[::step]


# -- datasets s0, s1, … ---------------------------------------------------------------------------------------------------


def _numbered(
    attributes: Attributes, levels: Mapping[str, Attributes], above: Attributes
) -> tuple[_Axes, list[_Level]] | None:
    if not levels or not any(name in one for one in (attributes, above, *levels.values()) for name in _STATED):
        return None
    first = next(iter(levels.values()))
    sizes = first.get("dimensions")
    ndim = len(sizes) if isinstance(sizes, Sequence) else 0
    places = (attributes, first, above)
    axes = _axes(places, ndim)
    if axes is None:
        return None
    resolution = _first([_resolution(one, ndim) for one in places]) or (1.0,) * ndim
    offset = _first([_numbers(one.get("offset"), ndim, rest=0.0) for one in (attributes, above)]) or (0.0,) * ndim
    listed = []
    for number, (path, level) in enumerate(levels.items()):
        own = _numbers(level.get("downsamplingFactors"), ndim)
        stated = [_factors(one, number, ndim) for one in (attributes, above)]
        factors = own or _first(stated) or (float(2**number),) * ndim
        scale = tuple(n * m for n, m in zip(resolution, factors, strict=True))
        shift = tuple(at + (m - 1) / 2 * n for at, n, m in zip(offset, resolution, factors, strict=True))
        listed.append(_Level(path, scale, shift))
    return axes, listed


def _axes(places: Sequence[Attributes], ndim: int) -> _Axes | None:
    own = [found for one in places if (found := axis_names(one, ndim)) is not None]
    if not own and not 0 < ndim <= 3:
        return None
    names = tuple(own[0]) if own else tuple("xyz"[:ndim])
    unit = next((stated for one in places if (stated := _unit(one)) is not None), "")
    units = [listed for one in places if len(listed := _texts(one.get("units"))) == ndim]
    return _Axes(names, units[0] if units else (unit,) * ndim)


def _unit(attributes: Attributes) -> str | None:
    given = attributes.get("pixelResolution")
    unit = given.get("unit") if isinstance(given, Mapping) else None
    return unit if isinstance(unit, str) else None


def _resolution(attributes: Attributes, ndim: int) -> tuple[float, ...] | None:
    given = attributes.get("pixelResolution", attributes.get("resolution"))
    return _numbers(given.get("dimensions") if isinstance(given, Mapping) else given, ndim)


def _factors(attributes: Attributes, number: int, ndim: int) -> tuple[float, ...] | None:
    """Return the factors of level `number` in a list of those of all levels."""
    given = attributes.get("downsamplingFactors", attributes.get("scales"))
    if not isinstance(given, Sequence) or isinstance(given, str) or number >= len(given):
        return None
    return _numbers(given[number], ndim)


# -- values ----------------------------------------------------------------------------------------------------------------


def _first(found: Sequence[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    return next((one for one in found if one is not None), None)


def _objects(value: object) -> list[Attributes]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []


def _texts(value: object) -> tuple[str, ...]:
    fine = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return tuple(value) if fine and isinstance(value, list | tuple) else ()


def _numbers(value: object, ndim: int, rest: float = 1.0) -> tuple[float, ...] | None:
    """Read a list of `ndim` numbers; of fewer, at least two, the others are `rest`. ``None`` for anything else."""
    if not isinstance(value, list | tuple) or not min(2, ndim) <= len(value) <= ndim <= _MOST_AXES:
        return None
    if not all(isinstance(n, int | float) and not isinstance(n, bool) and isfinite(n) for n in value):
        return None
    return (*map(float, value), *(rest,) * (ndim - len(value)))
