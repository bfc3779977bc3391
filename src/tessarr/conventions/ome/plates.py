"""OME-Zarr's plates, wells and series of images: read and write their attributes (images: `tessarr.conventions.ome`).

    plate   {"plate": {"rows": [{"name": "A"}], "columns": [{"name": "1"}], "wells": [{"path": "A/1", "rowIndex": 0,
             "columnIndex": 0}], "field_count": 2, "version": "0.4"}}
    well    {"well": {"images": [{"path": "0", "acquisition": 0}], "version": "0.4"}}
    series  {"bioformats2raw.layout": 3} at the root, {"series": ["0", "1"]} in the group OME

From 0.5 on the members are under ``ome``, which has the only ``version``.

>>> attributes = write_plate(["A", "B"], ["1"], [("A", "1")], name="test", field_count=2)
>>> plate = read_plate(attributes)
>>> plate.rows, plate.wells, plate.name
(('A', 'B'), ('A/1',), 'test')
>>> read_well(write_well(["0", "1"], acquisitions=[0, 0]))
(Field(path='0', acquisition=0), Field(path='1', acquisition=0))

Source: NGFF 0.4 and 0.5, "plate", "well", "bioformats2raw.layout".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tessarr.conventions.base import Attributes, items
from tessarr.conventions.ome.images import KEY, content
from tessarr.types import JSON, JSONObject

_WORD = re.compile(r"[A-Za-z0-9]+")
Version = Literal["0.4", "0.5"]


class Plate(NamedTuple):
    """A plate of wells."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    wells: tuple[str, ...]
    """Paths relative to the plate: row and column."""
    name: str | None = None
    field_count: int | None = None
    acquisitions: tuple[Mapping[str, JSON], ...] = ()
    version: str | None = None


class Field(NamedTuple):
    """An image of a well."""

    path: str
    acquisition: int | None = None


def read_plate(attributes: Attributes) -> Plate | None:
    """Read the plate of a group; ``None`` when the group has no plate. Malformed members are left out."""
    version, inner = content(attributes)
    plate = inner.get("plate")
    if not isinstance(plate, Mapping):
        return None
    name, count = plate.get("name"), plate.get("field_count")
    return Plate(
        rows=_texts(plate.get("rows"), "name"),
        columns=_texts(plate.get("columns"), "name"),
        wells=_texts(plate.get("wells"), "path"),
        name=name if isinstance(name, str) else None,
        field_count=count if isinstance(count, int) else None,
        acquisitions=tuple(_objects(plate.get("acquisitions"))),
        version=version,
    )


def read_well(attributes: Attributes) -> tuple[Field, ...]:
    """Read the images of a well; () when the group is not a well."""
    well = content(attributes)[1].get("well")
    found = []
    for item in _objects(well.get("images") if isinstance(well, Mapping) else None):
        acquisition = item.get("acquisition")
        if isinstance(item.get("path"), str):
            found.append(Field(item["path"], acquisition if isinstance(acquisition, int) else None))
    return tuple(found)


def read_series(attributes: Attributes) -> tuple[str, ...]:
    """Read the paths of images, relative to the root, that the group ``OME`` of a bioformats2raw layout lists."""
    listed = content(attributes)[1].get("series")
    return tuple(item for item in items(listed) if isinstance(item, str))


def write_plate(
    rows: Sequence[str],
    columns: Sequence[str],
    wells: Sequence[tuple[str, str]],
    attributes: Attributes | None = None,
    *,
    version: Version = "0.5",
    name: str | None = None,
    field_count: int | None = None,
    acquisitions: Sequence[Mapping[str, JSON]] = (),
) -> JSONObject:
    """Make the attributes of a plate; attributes passed stay. `wells` are pairs of a row's and a column's name.

    Raises `ValueError` for names other than letters and digits or duplicate ones, for a well outside rows and columns, for
    fewer than one row, column or well, and for an acquisition without an integer ``id``.
    """
    wrong = []
    for kind, names in (("rows", rows), ("columns", columns)):
        if not names or len(set(names)) < len(names) or not all(_WORD.fullmatch(item) for item in names):
            wrong.append(f"{kind} must be different names of letters and digits, got {list(names)}")
    if not wells or len(set(wells)) < len(wells):
        wrong.append("at least one well is required, and no well may occur twice")
    wrong += [
        f"no row {row!r} or no column {column!r}" for row, column in wells if row not in rows or column not in columns
    ]
    wrong += [f"acquisition without an id: {dict(item)}" for item in acquisitions if type(item.get("id")) is not int]
    if field_count is not None and field_count < 1:
        wrong.append(f"field_count must be positive, got {field_count}")
    if wrong:
        raise ValueError("; ".join(wrong))
    plate: JSONObject = {
        "columns": [{"name": item} for item in columns],
        "rows": [{"name": item} for item in rows],
        "wells": [
            {"path": f"{row}/{column}", "rowIndex": list(rows).index(row), "columnIndex": list(columns).index(column)}
            for row, column in wells
        ],
    }
    if name is not None:
        plate["name"] = name
    if field_count is not None:
        plate["field_count"] = field_count
    if acquisitions:
        plate["acquisitions"] = [dict(item) for item in acquisitions]
    return _with_members(attributes, {"plate": plate}, version)


def write_well(
    images: Sequence[str],
    attributes: Attributes | None = None,
    *,
    version: Version = "0.5",
    acquisitions: Sequence[int] | None = None,
) -> JSONObject:
    """Make the attributes of a well from the paths of its images; `acquisitions` are ids, one per image.

    Raises `ValueError` for paths other than letters and digits, duplicate ones, or none.
    """
    if not images or len(set(images)) < len(images) or not all(_WORD.fullmatch(path) for path in images):
        raise ValueError(f"images must be different names of letters and digits, got {list(images)}")
    if acquisitions is not None and len(acquisitions) != len(images):
        raise ValueError(f"{len(images)} images need as many acquisitions, got {len(acquisitions)}")
    listed: list[JSON] = [
        {"path": path} if acquisitions is None else {"path": path, "acquisition": acquisitions[number]}
        for number, path in enumerate(images)
    ]
    return _with_members(attributes, {"well": {"images": listed}}, version)


def write_series_root(attributes: Attributes | None = None, *, version: Version = "0.5") -> JSONObject:
    """Make the attributes of the root of a bioformats2raw layout."""
    return _with_members(attributes, {"bioformats2raw.layout": 3}, version)


def write_series(
    images: Sequence[str], attributes: Attributes | None = None, *, version: Version = "0.5"
) -> JSONObject:
    """Make the attributes of the group ``OME`` of a bioformats2raw layout: the paths of images, relative to the root."""
    if not images:
        raise ValueError("at least one image is required")
    return _with_members(attributes, {"series": list(images)}, version)


def _with_members(attributes: Attributes | None, members: JSONObject, version: Version) -> JSONObject:
    """Put members where the version has them; 0.4 has a version in the objects of plates and wells."""
    if version not in ("0.4", "0.5"):
        raise ValueError(f"only OME-Zarr 0.4 and 0.5 can be written, not {version}")
    own = dict(attributes or {})
    if version == "0.4":
        stated: JSONObject = {
            name: {**value, "version": "0.4"} if isinstance(value, dict) else value for name, value in members.items()
        }
        return {**own, **stated}
    inner = own.get(KEY)
    return {**own, KEY: {**(inner if isinstance(inner, Mapping) else {}), "version": "0.5", **members}}


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def _texts(value: object, key: str) -> tuple[str, ...]:
    return tuple(item[key] for item in _objects(value) if isinstance(item.get(key), str))
