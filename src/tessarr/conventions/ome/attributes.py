"""Make the attributes of an OME-Zarr image, of labels, and of the group that lists labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tessarr.conventions.base import Attributes
from tessarr.conventions.ome.check import axis_problems
from tessarr.conventions.ome.images import KEY, Axis, Level
from tessarr.types import JSON, JSONObject


def write(
    axes: Sequence[Axis],
    levels: Sequence[Level],
    attributes: Attributes | None = None,
    *,
    version: Literal["0.4", "0.5"] = "0.5",
    name: str | None = None,
    type: str | None = None,  # noqa: A002 - the specification's name
    metadata: Mapping[str, JSON] | None = None,
    omero: Mapping[str, JSON] | None = None,
) -> JSONObject:
    """Make the attributes of the group of an image; attributes passed stay.

    0.4 belongs to Zarr v2 with "/" as dimension separator, 0.5 to Zarr v3, where the arrays' ``dimension_names`` must be
    the axes'. Raises `ValueError` for axes or levels that the specification does not allow.
    """
    _refuse(axes, levels, version)
    entry: JSONObject = {"version": "0.4"} if version == "0.4" else {}
    if name is not None:
        entry["name"] = name
    entry["axes"] = _stated(axes)
    entry["datasets"] = [_dataset(level, len(axes)) for level in levels]
    if type is not None:
        entry["type"] = type
    if metadata is not None:
        entry["metadata"] = dict(metadata)
    members: JSONObject = {"multiscales": [entry], **({"omero": dict(omero)} if omero is not None else {})}
    if version == "0.4":
        return {**(attributes or {}), **members}
    old = (attributes or {}).get(KEY)
    kept = dict(old) if isinstance(old, Mapping) else {}
    return {**(attributes or {}), KEY: {**kept, "version": "0.5", **members}}


def _stated(axes: Sequence[Axis]) -> list[JSON]:
    return [{key: value for key, value in axis._asdict().items() if value is not None} for axis in axes]


def _dataset(level: Level, ndim: int) -> JSONObject:
    steps: list[JSON] = [{"type": "scale", "scale": list(level.scale or (1.0,) * ndim)}]
    if level.translation is not None:
        steps.append({"type": "translation", "translation": list(level.translation)})
    return {"path": level.path, "coordinateTransformations": steps}


def _refuse(axes: Sequence[Axis], levels: Sequence[Level], version: str) -> None:
    if version not in ("0.4", "0.5"):
        raise ValueError(f"only OME-Zarr 0.4 and 0.5 can be written, not {version}")
    wrong = [message for _, message in axis_problems(_stated(axes))]
    if not levels:
        wrong.append("at least one level is required")
    for level in levels:
        for values in (level.scale, level.translation):
            if values is not None and len(values) != len(axes):
                wrong.append(f"level {level.path!r} needs {len(axes)} numbers, got {list(values)}")
    if wrong:
        raise ValueError("; ".join(wrong))


def write_labels(
    paths: Sequence[str], attributes: Attributes | None = None, *, version: Literal["0.4", "0.5"] = "0.5"
) -> JSONObject:
    """Make the attributes of a group ``labels``, which lists its label images; other attributes stay."""
    if version == "0.4":
        return {**(attributes or {}), "labels": list(paths)}
    inner = (attributes or {}).get(KEY)
    own = dict(inner) if isinstance(inner, Mapping) else {}
    return {**(attributes or {}), KEY: {**own, "version": "0.5", "labels": list(paths)}}


def write_label(
    attributes: Attributes | None = None,
    *,
    version: Literal["0.4", "0.5"] = "0.5",
    colors: Mapping[int, Sequence[int]] | None = None,
    source: str = "../../",
) -> JSONObject:
    """Make the attributes that mark an image as a label image: `colors` are label value → RGBA."""
    label: JSONObject = {"version": "0.4"} if version == "0.4" else {}
    if colors:
        label["colors"] = [{"label-value": value, "rgba": list(rgba)} for value, rgba in colors.items()]
    label["source"] = {"image": source}
    if version == "0.4":
        return {**(attributes or {}), "image-label": label}
    inner = (attributes or {}).get(KEY)
    return {
        **(attributes or {}),
        KEY: {**(inner if isinstance(inner, Mapping) else {}), "version": "0.5", "image-label": label},
    }
