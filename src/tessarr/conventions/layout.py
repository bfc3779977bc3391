"""multiscales of the ``zarr_conventions`` framework: the levels of a group and their relation to each other.

    {"zarr_conventions": [{"uuid": "d35379db-…"}], "multiscales": {"layout": [
        {"asset": "r10m", "transform": {"scale": [1.0, 1.0], "translation": [0.0, 0.0]}},
        {"asset": "r20m", "derived_from": "r10m", "transform": {"scale": [2.0, 2.0], "translation": [0.0, 0.0]}}]}}

>>> attributes = write([Level(asset="0"), Level(asset="1", derived_from="0", scale=(2.0, 2.0))])
>>> [level.asset for level in read(attributes)], attributes["multiscales"]["layout"][0]
(['0', '1'], {'asset': '0'})

Groups only. ``scale`` and ``translation`` map from the level of ``derived_from`` to this one. Members with a prefix
(``spatial:shape``, ``spatial:transform``) belong to other conventions and are kept in `extra`.

Source: zarr-conventions/multiscales v0.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessarr.conventions import framework
from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem, join, numbers
from tessarr.types import JSON, JSONObject

NAME = "zarr-conventions multiscales"
KEY = "multiscales"
_ASSET = re.compile(r"(?!/)(?!.*\.\.)([^/]+(/[^/]+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One resolution level."""

    asset: str
    """Path of the array or group, relative to the group that holds the layout."""
    derived_from: str | None = None
    """The asset from which it was made."""
    scale: tuple[float, ...] | None = None
    """Per axis, relative to `derived_from`."""
    translation: tuple[float, ...] | None = None
    resampling_method: str | None = None
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Members of other conventions."""


def read(attributes: Attributes) -> tuple[Level, ...]:
    """Read the levels of a group in their order; () without a layout."""
    value = attributes.get(KEY)
    layout = value.get("layout") if isinstance(value, Mapping) else None
    if not isinstance(layout, list | tuple):
        return ()
    default = value.get("resampling_method") if isinstance(value, Mapping) else None
    return tuple(_level(item, default) for item in layout if isinstance(item, Mapping) and "asset" in item)


def _level(item: Mapping[str, Any], default: Any) -> Level:
    transform = item.get("transform")
    transform = transform if isinstance(transform, Mapping) else {}
    scale, translation = transform.get("scale"), transform.get("translation")
    known = ("asset", "derived_from", "transform", "resampling_method")
    return Level(
        asset=str(item["asset"]),
        derived_from=item.get("derived_from"),
        scale=tuple(scale) if numbers(scale) else None,  # type: ignore[arg-type]
        translation=tuple(translation) if numbers(translation) else None,  # type: ignore[arg-type]
        resampling_method=item.get("resampling_method", default),
        extra={name: value for name, value in item.items() if name not in known},
    )


def write(
    levels: Sequence[Level], attributes: Attributes | None = None, *, resampling_method: str | None = None
) -> JSONObject:
    """Make the attributes of a group with these levels; attributes passed stay.

    Raises `ValueError` for an asset that is not a relative path, and for a derived level without a scale.
    """
    layout: list[JSON] = []
    for level in levels:
        if not _ASSET.fullmatch(level.asset):
            raise ValueError(f"an asset is a relative path without '..': {level.asset!r}")
        if level.derived_from is not None and level.scale is None:
            raise ValueError(f"{level.asset!r} is derived from {level.derived_from!r} and needs a scale")
        item: JSONObject = {"asset": level.asset}
        if level.derived_from is not None:
            item["derived_from"] = level.derived_from
        transform: JSONObject = {}
        if level.scale is not None:
            transform["scale"] = list(level.scale)
        if level.translation is not None:
            transform["translation"] = list(level.translation)
        if transform:
            item["transform"] = transform
        if level.resampling_method is not None and level.resampling_method != resampling_method:
            item["resampling_method"] = level.resampling_method
        layout.append({**item, **level.extra})
    own: JSONObject = {"layout": layout}
    if resampling_method is not None:
        own["resampling_method"] = resampling_method
    return {**framework.write(attributes or {}, framework.MULTISCALES), KEY: own}


def _detect(node: Node) -> bool:
    return isinstance(node.attributes.get(KEY), Mapping) or framework.uses(node.attributes, framework.MULTISCALES)


def _check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    if not framework.uses(node.attributes, framework.MULTISCALES):
        yield Problem(
            NAME, (framework.KEY,), f"has no entry for the convention ({framework.MULTISCALES})", "ZC-UNDECLARED"
        )
    if node.kind != "group":
        yield Problem(NAME, (KEY,), "belongs to groups only", "LEVEL-FORM")
    value: Any = node.attributes.get(KEY)
    layout = value.get("layout") if isinstance(value, Mapping) else None
    if not isinstance(layout, list | tuple) or not layout:
        yield Problem(NAME, (KEY, "layout"), "must be a list of at least one level", "LEVEL-FORM")
        return
    if not isinstance(value.get("resampling_method", ""), str):
        message = f"must be a string, got {value['resampling_method']!r}"
        yield Problem(NAME, (KEY, "resampling_method"), message, "LEVEL-FORM")
    assets = [item.get("asset") for item in layout if isinstance(item, Mapping)]
    for number, item in enumerate(layout):
        yield from _check_level(item, (KEY, "layout", number), assets, path, hierarchy)


def _check_level(
    item: object, loc: tuple[str | int, ...], assets: list[JSON], path: str, hierarchy: Hierarchy
) -> Iterator[Problem]:
    if not isinstance(item, Mapping):
        yield Problem(NAME, loc, f"must be an object, got {item!r}", "LEVEL-FORM")
        return
    asset = item.get("asset")
    if not isinstance(asset, str) or not _ASSET.fullmatch(asset):
        yield Problem(NAME, (*loc, "asset"), f"must be a relative path without '..', got {asset!r}", "LEVEL-FORM")
    elif len(hierarchy) > 1 and join(path, asset) not in hierarchy:
        yield Problem(NAME, (*loc, "asset"), f"no node at /{join(path, asset)}", "LEVEL-MISSING")
    if "derived_from" in item:
        if item["derived_from"] not in assets:
            yield Problem(
                NAME, (*loc, "derived_from"), f"{item['derived_from']!r} is not an asset of the layout", "LEVEL-DERIVED"
            )
        if not isinstance(item.get("transform"), Mapping):
            yield Problem(
                NAME, (*loc, "transform"), "is required for a level that is derived from another", "LEVEL-DERIVED"
            )
    if not isinstance(item.get("resampling_method", ""), str):
        message = f"must be a string, got {item['resampling_method']!r}"
        yield Problem(NAME, (*loc, "resampling_method"), message, "LEVEL-FORM")
    transform = item.get("transform", {})
    if "derived_from" not in item and not isinstance(transform, Mapping):
        yield Problem(NAME, (*loc, "transform"), f"must be an object, got {transform!r}", "LEVEL-DERIVED")
    node = hierarchy.get(join(path, asset)) if isinstance(asset, str) else None
    ndim = node.ndim if node is not None and node.kind == "array" else None
    for name in ("scale", "translation"):
        if isinstance(transform, Mapping) and name in transform and not numbers(transform[name], ndim):
            yield Problem(
                NAME,
                (*loc, "transform", name),
                f"must be {ndim or 'a list of'} numbers, got {transform[name]!r}",
                "LEVEL-DERIVED",
            )


CONVENTION = Convention(NAME, _detect, _check, framework.MULTISCALES, "https://github.com/zarr-conventions/multiscales")
