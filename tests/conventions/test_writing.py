"""What is written is read back the same, and keeps what else is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessarr import conventions
from tessarr.conventions import cf, cftime, ome, xarray
from tessarr.conventions.base import Node

EXAMPLES = Path(__file__).parents[1] / "fixtures" / "ngff-spec" / "examples"


@pytest.mark.parametrize(
    ("packing", "kind", "zarr_format"),
    [
        (cf.Packing(), "i", 2),
        (cf.Packing(scale=0.5, offset=2.0, packed=True, missing=(-1, 7)), "i", 2),
        (cf.Packing(missing=(-9.5,), valid_min=0, valid_max=5), "f", 3),
        (cf.Packing(missing=(1 + 2j,)), "c", 3),
        (cf.Packing(unsigned=True, missing=(255,)), "i", 3),
    ],
)
def test_a_packing_is_written_and_read_back(packing: cf.Packing, kind: str, zarr_format: int) -> None:
    written = packing.write({"long_name": "x", "scale_factor": 9}, kind=kind, zarr_format=zarr_format)
    assert written["long_name"] == "x"
    again = json.loads(json.dumps(written))
    assert cf.Packing.read(again, kind=kind, zarr_format=zarr_format) == packing
    node = Node(kind="array", attributes=again, shape=(2,), zarr_format=zarr_format)
    assert conventions.check_node(node) == []


def test_coordinates_are_written_as_words() -> None:
    assert xarray.write_coordinates(["lat", "lon"], {"a": 1, "coordinates": "x"}) == {"a": 1, "coordinates": "lat lon"}
    assert xarray.write_coordinates([], {"coordinates": "x"}) == {}
    for wrong in ("a b", "", " a"):
        with pytest.raises(ValueError, match="spaces"):
            xarray.write_coordinates([wrong])


def test_times_are_written_with_units_that_can_be_read() -> None:
    written = cftime.write("hours since 2000-02-30", "360_day", {"axis": "T", "calendar": "julian"})
    assert written == {"axis": "T", "units": "hours since 2000-02-30", "calendar": "360_day"}
    assert cftime.decode([1], written["units"], written["calendar"]).tolist() == [(2000, 2, 30, 3_600_000_000)]  # type: ignore[arg-type]
    assert cftime.write("days since 1970-01-01") == {"units": "days since 1970-01-01"}
    for units, calendar in (("days", None), ("days since 2000-02-30", None), ("days since 2000-01-01", "x")):
        with pytest.raises(ValueError):
            cftime.write(units, calendar)


def test_flags_are_written_and_read_back() -> None:
    for flags in ({"good": (None, 0), "bad": (None, 1)}, {"a": (1, 1), "b": (6, 4)}, {"on": (1, None)}):
        assert cf.read_flags(cf.write_flags(flags)) == flags
    wrong: Any
    for wrong in ({}, {"a b": (1, 1)}, {"a": (1, None), "b": (None, 1)}, {"a": (None, None)}):
        with pytest.raises(ValueError):
            cf.write_flags(wrong)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_the_label_images_of_a_group_are_written_and_read_back(version: Any) -> None:
    written = ome.write_labels(["cells", "nuclei"], {"a": 1}, version=version)
    assert written["a"] == 1
    assert ome.read_labels(written) == ("cells", "nuclei")


def test_the_transformations_of_scenes_and_images_are_read() -> None:
    text = (EXAMPLES / "scene" / "scene_registration.json").read_text(encoding="utf-8")
    document = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    found = ome.read_transformations(document.get("attributes", document))
    assert found
    assert all(item.target[1] and item.type == item.definition["type"] for item in found)
    assert ome.read_transformations({"ome": {"version": "0.5", "scene": {}}}) == ()
    odd = {"ome": {"version": "0.6rc0", "scene": {"coordinateTransformations": [{"input": "a"}, 3]}, "multiscales": 4}}
    assert ome.read_transformations(odd)[0][:3] == (("", "a"), ("", None), "None")


def test_what_is_packed_is_what_was_meant() -> None:
    packing = cf.Packing.read(cf.Packing(scale=0.25, missing=(-1,), packed=True).write())
    meant = np.array([1.0, np.nan, 2.25])
    assert packing.encode(meant, np.dtype("i2")).tolist() == [4, -1, 9]
    np.testing.assert_array_equal(packing.decode(packing.encode(meant, np.dtype("i2"))), meant)
