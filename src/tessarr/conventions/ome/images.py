"""OME-Zarr: microscopy images and their pyramids, labels, plates and wells. 0.4, 0.5 and 0.6 (release candidate).

    0.4   v2 ``.zattrs``       {"multiscales": [{"version": "0.4", "axes": […], "datasets": […]}], "omero": {…}}
    0.5   v3 attributes.ome    {"ome": {"version": "0.5", "multiscales": [{"axes": […], "datasets": […]}]}}
    0.6   v3 attributes.ome    axes move into ``coordinateSystems``; transformations have ``input`` and ``output``

>>> from tessarr.conventions.ome.attributes import write
>>> axes = [Axis("y", "space", "micrometer"), Axis("x", "space", "micrometer")]
>>> attributes = write(axes, [Level("0", (0.5, 0.5)), Level("1", (1.0, 1.0), (0.25, 0.25))], version="0.5", name="cells")
>>> image = read(attributes)[0]
>>> image.version, image.name, [level.scale for level in image.levels], image.axes[0].unit
('0.5', 'cells', [(0.5, 0.5), (1.0, 1.0)], 'micrometer')

`read` converts all three to one form: axes, and per level the scale and translation to physical units (those of the image
applied to those of the level). Of 0.6 it supports identity, scale, translation and sequences of them, as readers must; a
level with another kind of transformation has no scale, and its JSON is in `Level.transformations`.

Source: NGFF 0.4, 0.5 (RFC-2), 0.6rc0 (RFC-5), https://ngff.openmicroscopy.org.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tessarr.conventions.base import Attributes, Node, items, numbers
from tessarr.types import JSON

NAME = "OME-Zarr"
KEY = "ome"
_BARE = ("multiscales", "plate", "well", "image-label", "labels", "omero", "bioformats2raw.layout")
"""Members of 0.4 in the attributes themselves."""


class Axis(NamedTuple):
    """One axis of an image."""

    name: str
    type: str | None = None
    """space, time, channel, or another type."""
    unit: str | None = None


class Level(NamedTuple):
    """One resolution level."""

    path: str
    """Path relative to the group of the image."""
    scale: tuple[float, ...] | None = None
    """Physical size of an element per axis; ``None`` where it is unknown."""
    translation: tuple[float, ...] | None = None
    """Physical position of the first element."""
    transformations: tuple[JSON, ...] = ()
    """The level's ``coordinateTransformations``, unchanged."""


class Image(NamedTuple):
    """One entry of ``multiscales``."""

    version: str
    name: str | None
    axes: tuple[Axis, ...]
    levels: tuple[Level, ...]
    """Levels, the highest resolution first."""
    type: str | None = None
    """Method by which levels were made."""
    metadata: Mapping[str, JSON] = {}
    omero: Mapping[str, JSON] | None = None
    """Rendering: channels, colours, windows."""
    coordinate_systems: tuple[str, ...] = ()
    """0.6: the names of its coordinate systems; `axes` are those of the output system of the levels."""


def content(attributes: Attributes) -> tuple[str | None, Mapping[str, Any]]:
    """Return the version, and the object that holds the members: ``ome`` from 0.5 on, the attributes before."""
    inner = attributes.get(KEY)
    if isinstance(inner, Mapping):
        version = inner.get("version")
        return (version if isinstance(version, str) else None), inner
    return _version_member(attributes), attributes


def _version_member(attributes: Attributes) -> str | None:
    for name in ("multiscales", "plate", "well", "image-label"):
        value = attributes.get(name)
        first = value[0] if isinstance(value, list | tuple) and value else value
        if not isinstance(first, Mapping) or isinstance(value, Mapping) == (name == "multiscales"):
            continue
        if isinstance(first.get("version"), str):
            return str(first["version"])
        if name != "multiscales" or isinstance(first.get("axes"), list | tuple):  # the version is only recommended
            return "0.4"
    return "0.4" if "bioformats2raw.layout" in attributes else None


def kinds(attributes: Attributes) -> tuple[str, ...]:
    """Return the kinds of a group: any of image, label, labels, plate, well, series (bioformats2raw), scene."""
    _, inner = content(attributes)
    names = {
        "multiscales": "image", "image-label": "label", "labels": "labels", "plate": "plate", "well": "well",
        "bioformats2raw.layout": "series", "series": "series", "scene": "scene",
    }  # fmt: skip
    return tuple(dict.fromkeys(kind for name, kind in names.items() if name in inner))


def read(attributes: Attributes) -> tuple[Image, ...]:
    """Read the images of a group; () without readable images."""
    version, inner = content(attributes)
    entries = inner.get("multiscales")
    if version is None or not isinstance(entries, list | tuple):
        return ()
    return tuple(_image(entry, version, inner) for entry in entries if isinstance(entry, Mapping) and _listed(entry))


def _listed(entry: Mapping[str, JSON]) -> bool:
    datasets = entry.get("datasets")
    return isinstance(datasets, list | tuple) and all(
        isinstance(item, Mapping) and isinstance(item.get("path"), str) for item in datasets
    )


def _image(entry: Mapping[str, Any], version: str, inner: Mapping[str, object]) -> Image:
    systems = entry.get("coordinateSystems")
    systems = [item for item in systems if isinstance(item, Mapping)] if isinstance(systems, list | tuple) else []
    axes = _axes(intrinsic(entry, systems).get("axes") if systems else entry.get("axes"))
    whole = _simple(entry.get("coordinateTransformations"), len(axes)) if not systems else None
    metadata, omero = entry.get("metadata"), inner.get("omero")
    return Image(
        version=str(entry.get("version", version)),
        name=entry.get("name"),
        axes=axes,
        levels=tuple(_level(item, len(axes), whole) for item in entry["datasets"]),
        type=entry.get("type"),
        metadata=metadata if isinstance(metadata, Mapping) else {},
        omero=omero if isinstance(omero, Mapping) else None,
        coordinate_systems=tuple(str(item.get("name")) for item in systems),
    )


def intrinsic(entry: Mapping[str, JSON], systems: Sequence[Mapping[str, JSON]]) -> Mapping[str, Any]:
    """Return, for 0.6, the output coordinate system of the first level that names one, else the first of all."""
    datasets = entry.get("datasets")
    for item in items(datasets):
        steps = item.get("coordinateTransformations") if isinstance(item, Mapping) else None
        for step in items(steps):
            target = step.get("output") if isinstance(step, Mapping) else None
            named = target.get("name") if isinstance(target, Mapping) else target
            found = next((system for system in systems if system.get("name") == named), None)
            if found is not None:
                return found
    return systems[0]


def _axes(value: object) -> tuple[Axis, ...]:
    found = []
    for item in items(value):
        if isinstance(item, Mapping):
            found.append(Axis(str(item.get("name")), item.get("type"), item.get("unit")))
        elif isinstance(item, str):  # 0.3 and before
            found.append(Axis(item))
    return tuple(found)


_Affine = tuple[tuple[float, ...], tuple[float, ...]]


def _level(item: Mapping[str, Any], ndim: int, whole: _Affine | None) -> Level:
    steps = item.get("coordinateTransformations")
    own = _simple(steps, ndim)
    stated = tuple(items(steps))
    if own is None:
        return Level(item["path"], transformations=stated)
    scale, shift = _then(own, whole) if whole is not None else own
    return Level(item["path"], scale, shift if any(shift) else None, stated)


def _then(first: _Affine, second: _Affine) -> _Affine:
    scale = tuple(a * b for a, b in zip(first[0], second[0], strict=True))
    return scale, tuple(t * b + u for t, b, u in zip(first[1], second[0], second[1], strict=True))


def _simple(steps: object, ndim: int) -> _Affine | None:
    """Compose a list of transformations to a scale and a translation; ``None`` for other kinds."""
    result: _Affine = ((1.0,) * ndim, (0.0,) * ndim)
    if steps is None:
        return result
    if not isinstance(steps, list | tuple):
        return None
    for step in steps:
        if not isinstance(step, Mapping):
            return None
        kind = step.get("type")
        if kind == "sequence":
            found = _simple(step.get("transformations"), ndim)
        elif kind == "identity":
            continue
        elif kind == "scale" and numbers(step.get("scale"), ndim):
            found = (tuple(step["scale"]), (0.0,) * ndim)
        elif kind == "translation" and numbers(step.get("translation"), ndim):
            found = ((1.0,) * ndim, tuple(step["translation"]))
        else:
            found = None
        if found is None:
            return None
        result = _then(result, found)
    return result


def read_labels(attributes: Attributes) -> tuple[str, ...]:
    """Return the paths of the label images that a ``labels`` group lists."""
    listed = content(attributes)[1].get("labels")
    return tuple(item for item in items(listed) if isinstance(item, str))


class Transformation(NamedTuple):
    """A transformation of 0.6 between two coordinate systems, each a path (of an image; "" here) and a name."""

    source: tuple[str, str | None]
    target: tuple[str, str | None]
    type: str
    definition: Mapping[str, JSON]
    """The transformation's JSON, unchanged."""


def read_transformations(attributes: Attributes) -> tuple[Transformation, ...]:
    """Read 0.6's transformations of a scene, and of the images of a group, except those of levels; () without.

    >>> step = {"type": "identity", "input": {"path": "a", "name": "physical"}, "output": {"name": "world"}}
    >>> read_transformations({"ome": {"version": "0.6rc0", "scene": {"coordinateTransformations": [step]}}})[0][:3]
    (('a', 'physical'), ('', 'world'), 'identity')
    """
    version, inner = content(attributes)
    if version is None or not version.startswith("0.6"):
        return ()
    entries = inner.get("multiscales")
    holders = [inner.get("scene"), *items(entries)]
    found = []
    for holder in holders:
        steps = holder.get("coordinateTransformations") if isinstance(holder, Mapping) else None
        for step in items(steps):
            if isinstance(step, Mapping):
                ends = (_system(step.get("input")), _system(step.get("output")))
                found.append(Transformation(*ends, str(step.get("type")), step))
    return tuple(found)


def _system(value: object) -> tuple[str, str | None]:
    if not isinstance(value, Mapping):
        return "", value if isinstance(value, str) else None
    name, path = value.get("name"), value.get("path")
    return path if isinstance(path, str) else "", name if isinstance(name, str) else None


def detect(node: Node) -> bool:
    """Return whether the attributes of a node are those of OME-Zarr."""
    if node.kind != "group":
        return False
    if isinstance(node.attributes.get(KEY), Mapping):
        return True
    if isinstance(node.attributes.get("multiscales"), Mapping):
        return False  # the zarr_conventions framework's
    version = _version_member(node.attributes)
    return version is not None and version != "0.1" and any(name in node.attributes for name in _BARE)
