"""Plates, wells and series of OME-Zarr: valid by the published schemas, read back, and what may not be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tessarr.conventions import check_hierarchy, ome
from tessarr.conventions.base import Node
from tessarr.conventions.ome import plates

FIXTURES = Path(__file__).parents[1] / "fixtures"
VERSIONS = ["0.4", "0.5"]


def complaints(version: str, name: str, attributes: Any) -> list[str]:
    folder = FIXTURES / "schemas" / f"ome-{version}"
    schemas = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.schema")}
    resources = [
        (content["$id"], Resource.from_contents(content, default_specification=DRAFT202012))
        for content in schemas.values()
        if "$id" in content
    ]
    registry: Any = Registry().with_resources(resources)
    checker = jsonschema.Draft202012Validator(schemas[name], registry=registry)
    return [error.message for error in checker.iter_errors(attributes)]


def plate(version: Any, **options: Any) -> Any:
    acquisitions: list[dict[str, Any]] = [{"id": 0, "name": "first", "maximumfieldcount": 2}]
    return plates.write_plate(
        ["A", "B"], ["1", "2"], [("A", "1"), ("B", "2")], {"own": 1}, version=version, name="test", field_count=2,
        acquisitions=acquisitions, **options,
    )  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_written_is_valid_and_read_back(version: Any) -> None:
    written = plate(version)
    assert not complaints(version, "plate", written)
    assert not complaints(version, "strict_plate", written)
    assert written["own"] == 1
    found = plates.read_plate(written)
    assert found is not None
    assert (found.rows, found.columns, found.wells) == (("A", "B"), ("1", "2"), ("A/1", "B/2"))
    assert (found.name, found.field_count, found.version) == ("test", 2, version)
    assert [item["id"] for item in found.acquisitions] == [0]
    well = plates.write_well(["0", "1"], version=version, acquisitions=[0, 0])
    assert not complaints(version, "strict_well", well)
    assert [field.path for field in plates.read_well(well)] == ["0", "1"]
    root = plates.write_series_root(version=version)
    assert not complaints(version, "bf2raw", root)
    series = plates.write_series(["0", "1"], version=version)
    assert not complaints(version, "ome", series)
    assert plates.read_series(series) == ("0", "1")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_whole_plate_has_no_problems(version: Any) -> None:
    def group(attributes: Any) -> Node:
        return Node(kind="group", attributes=attributes, zarr_format=2 if version == "0.4" else 3)

    well = plates.write_well(["0"], version=version, acquisitions=[0])
    axes = [ome.Axis("y", "space"), ome.Axis("x", "space")]
    image = ome.write(axes, [ome.Level("0", (1.0, 1.0))], version=version)
    array = Node(
        kind="array", attributes={}, shape=(4, 4), dimension_names=("y", "x"), zarr_format=2 if version == "0.4" else 3
    )
    tree = {"": group(plate(version)), "A": group({}), "B": group({})}
    for place in ("A/1", "B/2"):
        tree |= {place: group(well), f"{place}/0": group(image), f"{place}/0/0": array}
    assert not [str(problem) for _, problem in check_hierarchy(tree)]
    del tree["B/2"]
    assert [problem.message for _, problem in check_hierarchy(tree)] == ["no group at /B/2"]


@pytest.mark.parametrize(
    ("rows", "columns", "wells", "options"),
    [
        (["A", "A"], ["1"], [("A", "1")], {}), (["A"], [], [("A", "1")], {}), (["A-1"], ["1"], [("A-1", "1")], {}),
        (["A"], ["1"], [], {}), (["A"], ["1"], [("A", "1"), ("A", "1")], {}), (["A"], ["1"], [("B", "1")], {}),
        (["A"], ["1"], [("A", "1")], {"field_count": 0}), (["A"], ["1"], [("A", "1")], {"acquisitions": [{"name": "x"}]}),
        (["A"], ["1"], [("A", "1")], {"version": "0.6rc0"}),
    ],
)  # fmt: skip
def test_a_plate_that_the_specification_forbids_is_not_written(
    rows: Any, columns: Any, wells: Any, options: Any
) -> None:
    with pytest.raises(ValueError, match=r"must|no row|twice|without an id|can be written"):
        plates.write_plate(rows, columns, wells, **options)


def test_a_well_that_the_specification_forbids_is_not_written() -> None:
    refused: list[tuple[list[str], dict[str, Any]]]
    refused = [([], {}), (["0", "0"], {}), (["a/b"], {}), (["0"], {"acquisitions": [0, 1]})]
    for images, options in refused:
        with pytest.raises(ValueError, match=r"different names|as many"):
            plates.write_well(images, **options)
    with pytest.raises(ValueError, match="at least one image"):
        plates.write_series([])


def test_plates_and_wells_of_other_writers_are_read() -> None:
    folder = FIXTURES / "ome-zarr-models" / "examples" / "v04" / "hcs_example.ome.zarr"
    found = plates.read_plate(json.loads((folder / ".zattrs").read_text(encoding="utf-8")))
    assert found is not None
    assert (found.rows, found.columns, found.wells) == (("B",), ("03",), ("B/03",))
    fields = plates.read_well(json.loads((folder / "B" / "03" / ".zattrs").read_text(encoding="utf-8")))
    assert [field.path for field in fields] == ["0"]


@pytest.mark.parametrize(
    "attributes", [{}, {"plate": 1}, {"ome": {"well": []}}, {"ome": {"series": 1}}, {"well": {"images": 3}}]
)
def test_what_cannot_be_understood_is_nothing(attributes: Any) -> None:
    assert plates.read_plate(attributes) is None
    assert plates.read_well(attributes) == ()
    assert plates.read_series(attributes) == ()
