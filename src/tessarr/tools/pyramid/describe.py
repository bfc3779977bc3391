"""Describe a pyramid in the attributes of its group, in each of the conventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from tessarr.conventions import layout, multiscales, ome, spatial
from tessarr.core.array import Array
from tessarr.errors import BaseZarrError, UnsupportedOperationError
from tessarr.tools.pyramid.levels import Level, place_of, shift_of, spatial_axes
from tessarr.tools.pyramid.reduce import Method
from tessarr.types import JSON, JSONObject

Describing: TypeAlias = Literal["multiscales-0.1", "ome-0.4", "ome-0.5", "zarr-conventions"]
DESCRIBING: tuple[Describing, ...] = ("multiscales-0.1", "ome-0.4", "ome-0.5", "zarr-conventions")

_AVERAGES: dict[str, str] = {"mean": "average", "gaussian": "gauss"}
"""Names of methods in the ``zarr_conventions`` framework, taken from GDAL."""
_TYPES = {"t": "time", "time": "time", "c": "channel", "channel": "channel", "channels": "channel"}


def attributes_of(
    group: Mapping[str, Any],
    base: Array,
    levels: Sequence[Level],
    convention: Describing,
    method: Method,
    *,
    name: str | None = None,
    labels: bool = False,
    axes: Sequence[ome.Axis] | None = None,
    scale: Sequence[float] | None = None,
    translation: Sequence[float] | None = None,
) -> JSONObject:
    """Return the group's attributes with this pyramid added.

    Raises `ValueError` for axes that the convention does not allow, `UnsupportedOperationError` for an array that
    cannot be part of it.
    """
    if convention not in DESCRIBING:
        raise ValueError(f"unknown convention {convention!r}; known: {', '.join(DESCRIBING)}")
    _refuse_another(group, convention, base)
    if convention in ("ome-0.4", "ome-0.5"):
        return _ome(group, base, levels, convention, method, name, labels, axes, scale, translation)
    if axes is not None or scale is not None or translation is not None:
        raise ValueError(f"axes, scale and translation exist in OME-Zarr only, not in {convention}")
    if convention == "zarr-conventions":
        return _layout(group, base, levels, method)
    metadata: JSONObject = {"method": f"tessarr.tools.pyramid ({method})"}
    own = multiscales.write([level.name for level in levels], name=name, type=method, metadata=metadata)
    entries: Any = own[multiscales.KEY]
    return {**group, multiscales.KEY: [*_others(group, levels), *entries]}


def _refuse_another(group: Mapping[str, Any], convention: Describing, base: Array) -> None:
    """Refuse to overwrite ``multiscales`` of another convention: three conventions share the name."""
    present = group.get("multiscales")
    if present is None or convention == "ome-0.5":
        return
    as_object = isinstance(present, Mapping)
    as_ome = any("axes" in entry for entry in present if isinstance(entry, Mapping)) if not as_object else False
    kind = "zarr-conventions" if as_object else "ome-0.4" if as_ome else "multiscales-0.1"
    if kind != convention:
        raise BaseZarrError(
            f"the group has multiscales of another convention ({kind})",
            path=base.name, hint="Remove that attribute first, or write its convention",
        )  # fmt: skip


def _others(group: Mapping[str, Any], levels: Sequence[Level]) -> list[JSON]:
    """Return the pyramids of other arrays in the group's list."""
    listed = group.get("multiscales", [])
    return [
        entry
        for entry in listed
        if not (
            isinstance(entry, Mapping)
            and isinstance(entry.get("datasets"), list)
            and entry["datasets"]
            and entry["datasets"][0].get("path") == levels[0].name
        )
    ]


# -- OME-Zarr ----------------------------------------------------------------------------------------------------------


def _ome(
    group: Mapping[str, object], base: Array, levels: Sequence[Level], convention: Describing, method: Method,
    name: str | None, labels: bool, axes: Sequence[ome.Axis] | None, scale: Sequence[float] | None,
    translation: Sequence[float] | None,
) -> JSONObject:  # fmt: skip
    version: Literal["0.4", "0.5"] = "0.4" if convention == "ome-0.4" else "0.5"
    before = _present_image(group, base, levels[0].name, axes, version)
    stated = before.levels[0]
    sizes = tuple(map(float, (stated.scale if scale is None else scale) or (1.0,) * base.ndim))
    shift = tuple(map(float, (stated.translation if translation is None else translation) or (0.0,) * base.ndim))
    if not len(sizes) == len(shift) == base.ndim:
        raise ValueError(f"scale and translation need {base.ndim} numbers, one per axis")
    written = []
    for level in levels:
        at = _shifted(shift, sizes, level, levels, method)
        physical = tuple(size * total for size, total in zip(sizes, level.total, strict=True))
        written.append(ome.Level(level.name, physical, at if any(at) else None))
    result = ome.write(
        before.axes,
        written,
        group,
        version=version,
        name=before.name if name is None else name,
        type=method,
        metadata={"method": "tessarr.tools.pyramid", "description": f"{method} of the level before"},
        omero=before.omero,
    )
    inner = result if version == "0.4" else result[ome.KEY]
    old = group if version == "0.4" else group.get(ome.KEY, {})
    assert isinstance(inner, dict)
    if isinstance(old, Mapping) and "multiscales" in old:
        entries: Any = inner["multiscales"]
        inner["multiscales"] = [*_others(old, levels), *entries]
    if labels and "image-label" not in inner:
        result = ome.write_label(result, version=version)
    return result


def _present_image(
    group: Mapping[str, object], base: Array, path: str, axes: Sequence[ome.Axis] | None, version: Literal["0.4", "0.5"]
) -> ome.Image:
    """Return the group's present description of the image whose first level is at `path`, with given or fitting axes."""
    said = next((image for image in ome.read(group) if image.levels and image.levels[0].path == path), None)
    if axes is None:
        axes = ome_axes(base) if said is None else said.axes
    found = said or ome.Image(version, None, (), (ome.Level(path),))
    _check_ome(base, tuple(axes), version)
    return found._replace(axes=tuple(axes))


def _shifted(
    shift: tuple[float, ...], sizes: tuple[float, ...], level: Level, levels: Sequence[Level], method: Method
) -> tuple[float, ...]:
    """Return the position of a level's first element: every step shifts it, in elements of the step before."""
    at = list(shift)
    for before, step in pairwise(levels):
        for axis, factor in enumerate(step.factors):
            at[axis] += shift_of(factor, method) * before.total[axis] * sizes[axis]
        if step is level:
            return tuple(at)
    return shift


def ome_axes(base: Array) -> tuple[ome.Axis, ...]:
    """Make axes from dimension names: t (time), c (channel), all others space. Raises `ValueError` without names."""
    names = base.dims
    if names is None or any(name is None for name in names):
        raise ValueError(f"{base.name} has no dimension names; give axes, or name its dimensions")
    return tuple(ome.Axis(str(name), _TYPES.get(str(name).lower(), "space")) for name in names)


def _check_ome(base: Array, axes: Sequence[ome.Axis], version: str) -> None:
    wanted = 2 if version == "0.4" else 3
    if base.zarr_format != wanted:
        raise UnsupportedOperationError(
            f"OME-Zarr {version} belongs to Zarr v{wanted}", path=base.name, got=f"Zarr v{base.zarr_format}",
            hint=f"Write ome-{'0.5' if base.zarr_format == 3 else '0.4'}",
        )  # fmt: skip
    if version == "0.4" and base._metadata.dimension_separator != "/" and base.ndim > 1:
        raise UnsupportedOperationError(
            'OME-Zarr 0.4 requires "/" between the indices of chunk keys', path=base.name,
            got=repr(base._metadata.dimension_separator), hint="Rewrite the array with dimension_separator='/'",
        )  # fmt: skip
    names = [axis.name for axis in axes]
    if version == "0.5" and list(base.dims or ()) != names:
        raise UnsupportedOperationError(
            "OME-Zarr 0.5 requires the axes' names as dimension names", path=base.name, expected=names,
            got=base.dims, hint="Create the array with these dimension_names",
        )  # fmt: skip


def list_label(parent: Mapping[str, object], name: str, version: Literal["0.4", "0.5"]) -> JSONObject:
    """Make the attributes of a group ``labels`` that lists the label image `name`."""
    known = ome.read_labels(parent)
    listed = [*known, *([] if name in known else [name])]
    return ome.write_labels(listed, parent, version=version)


# -- zarr_conventions --------------------------------------------------------------------------------------------------


def _layout(group: Mapping[str, object], base: Array, levels: Sequence[Level], method: Method) -> JSONObject:
    place = spatial.read({**group, **base.attrs.asdict()})
    located = place is not None and place.transform is not None
    written = []
    for number, level in enumerate(levels):
        extra: JSONObject = {}
        if place is not None and located:
            factors, shape = spatial_axes(place, base.dims, level)
            moved = place_of(place, factors, shape, method)
            extra = {"spatial:shape": list(shape), "spatial:transform": list(moved.transform or ())}
        # A transform of cells' corners stays with the cells; else first elements are compared.
        still = located and place is not None and place.registration == "pixel"
        shift = tuple(0.0 if still else shift_of(factor, method) for factor in level.factors)
        written.append(
            layout.Level(
                asset=level.name,
                derived_from=levels[number - 1].name if number else None,
                scale=tuple(map(float, level.factors)),
                translation=shift,
                extra=extra,
            )
        )
    kept = {name: value for name, value in group.items() if name != layout.KEY}
    return layout.write(written, kept, resampling_method=_AVERAGES.get(method, method))
