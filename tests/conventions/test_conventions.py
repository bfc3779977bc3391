"""The conventions for dimensions, climate data, coordinate reference systems and pyramids."""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import xarray

import tessarr
from tessarr import conventions, model
from tessarr.conventions import (
    cf,
    cftime,
    crs,
    framework,
    layout,
    multiscales,
    proj,
    pyproj,
    spatial,
)
from tessarr.conventions import xarray as names
from tessarr.conventions.base import Convention, Node, Problem
from tessarr.conventions.recognised import anndata, nczarr
from tessarr.errors import UnsupportedOperationError
from tessarr.stores.memory.store import MemoryStore

FIXTURES = Path(__file__).parents[1] / "fixtures"
SCHEMAS = FIXTURES / "schemas" / "zarr-conventions"


def array(*shape: int, dims: Any = None, zarr_format: int = 3, **attributes: Any) -> Node:
    return Node(kind="array", attributes=attributes, shape=shape, dimension_names=dims, zarr_format=zarr_format)


def with_attributes(shape: tuple[int, ...], attributes: Mapping[str, Any]) -> Node:
    """An array, with attributes of any name."""
    return array(*shape, **attributes)


def group(**attributes: Any) -> Node:
    return Node(kind="group", attributes=attributes)


def told(problems: Any) -> list[str]:
    return [str(problem) for problem in problems]


def published(name: str, document: Any) -> list[str]:
    schema = json.loads((SCHEMAS / name / "schema.json").read_text())
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(document)]


def as_document(kind: str, attributes: Any) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": kind, "attributes": attributes}


def hierarchy(place: Path) -> dict[str, Node]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return conventions.hierarchy_of(model.from_store(tessarr.open(place, mode="r")))


# -- dimensions and coordinates ------------------------------------------------------------------------------------------


@pytest.mark.spec("OGC-08", "OGC-09")
@pytest.mark.parametrize(
    ("attributes", "ndim", "found"),
    [
        ({"_ARRAY_DIMENSIONS": ["time", "lat", "lon"]}, 3, ("time", "lat", "lon")),
        ({"_ARRAY_DIMENSIONS": []}, 0, ()),
        ({}, 2, None),
        ({"_ARRAY_DIMENSIONS": ["x"]}, 2, None),
        ({"_ARRAY_DIMENSIONS": "xy"}, 2, None),
        ({"_ARRAY_DIMENSIONS": ["x", 1]}, 2, None),
    ],
)
def test_the_names_of_dimensions_are_an_attribute_in_v2(attributes: Any, ndim: int, found: Any) -> None:
    assert names.read_dimensions(attributes, ndim) == found


@pytest.mark.spec("OGC-08")
def test_named_dimensions_are_written_as_each_format_wants_them() -> None:
    assert names.write_dimensions(("y", "x"), {"a": 1}, zarr_format=3) == ({"a": 1}, ("y", "x"))
    assert names.write_dimensions(("y", None), zarr_format=3) == ({}, ("y", None))
    with pytest.raises(ValueError, match="without a name"):
        names.write_dimensions(("y", None), zarr_format=2)
    store = MemoryStore()
    made = tessarr.create_array(store, shape=(2, 3), dtype="f4", zarr_format=2, dimension_names=("y", "x"))
    assert made.attrs["_ARRAY_DIMENSIONS"] == ["y", "x"]
    assert made.dimension_names == ("y", "x")


@pytest.mark.spec("OGC-09")
@pytest.mark.parametrize("stated", [["x"], "xy", ["x", 1], {}])
def test_malformed_names_do_not_keep_an_array_from_being_opened(stated: Any) -> None:
    store = MemoryStore()
    tessarr.create_array(store, shape=(2, 3), dtype="f4", zarr_format=2)
    store.set(".zattrs", json.dumps({"_ARRAY_DIMENSIONS": stated}).encode())
    with pytest.warns(UserWarning, match="_ARRAY_DIMENSIONS"):
        opened = tessarr.open_array(store, mode="r")
    assert opened.dimension_names is None
    assert told(conventions.check_node(array(2, 3, zarr_format=2, _ARRAY_DIMENSIONS=stated)))


def test_one_dimension_has_one_length_in_a_group() -> None:
    nodes = {"": group(), "a": array(2, 3, dims=("y", "x")), "b": array(2, 4, dims=("y", "x"))}
    (problem,) = [problem for _, problem in conventions.check_hierarchy(nodes)]
    assert "'x' has 4 elements here and 3" in problem.message
    assert told(conventions.check_node(array(2, 2, dims=("x", "x"))))


def test_coordinates_are_found_by_name_and_by_attribute() -> None:
    nodes = {
        "": group(coordinates="area"),
        "t": array(2, 3, dims=("y", "x"), coordinates="yc xc"),
        "u": array(2, 3, dims=("y", "x")),
        "x": array(3, dims=("x",)),
        "yc": array(2, 3, dims=("y", "x")),
        "area": array(2, 3, dims=("y", "x")),
    }
    assert names.coordinates("t", nodes) == {"x": "x", "yc": "yc"}
    assert names.coordinates("u", nodes) == {"x": "x", "area": "area"}
    assert names.is_dimension_coordinate("x", nodes["x"])
    assert names.coordinates("g/v", {**nodes, "g": group(), "g/v": array(3, dims=("x",))}) == {"x": "x"}
    assert names.sizes("", nodes) == {"y": 2, "x": 3}


@pytest.mark.parametrize(
    ("value", "kind", "zarr_format", "stored"),
    [
        (1.5, "f", 3, "AAAAAAAA+D8="),
        (float("nan"), "f", 3, "AAAAAAAA+H8="),
        (-999, "i", 3, -999),
        (True, "b", 3, True),
        (b"\x00a", "S", 3, "AGE="),
        (1 + 2j, "c", 3, ["AAAAAAAA8D8=", "AAAAAAAAAEA="]),
        ("x", "U", 3, "x"),
        (1.5, "f", 2, 1.5),
        (-999, "i", 2, -999),
    ],
)
def test_the_missing_value_is_spelled_as_xarray_spells_it(value: Any, kind: str, zarr_format: int, stored: Any) -> None:
    assert names.write_fill(value, kind, zarr_format) == stored
    found = names.read_fill(stored, kind, zarr_format)
    assert struct.pack("<d", found) == struct.pack("<d", value) if kind == "f" else found == value
    with pytest.raises(ValueError, match="Base64"):
        names.read_fill("?", "f", 3)


@pytest.mark.spec("OGC-10", "OGC-12")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_xarray_writes_is_understood(zarr_format: Any, tmp_path: Path) -> None:
    data = xarray.Dataset(
        {"t": (("time", "x"), np.arange(6.0).reshape(2, 3), {"units": "K"})},
        coords={
            "time": np.array(["2000-01-01", "2000-02-29"], "M8[ns]"),
            "x": [1, 2, 3],
            "lon": ("x", [0.5, 1.5, 2.5]),
        },
        attrs={"title": "t"},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.to_zarr(tmp_path / "d.zarr", zarr_format=zarr_format)
    nodes = hierarchy(tmp_path / "d.zarr")
    assert nodes[""].attributes["title"] == "t"
    assert nodes["t"].dimension_names == ("time", "x")
    assert set(names.coordinates("t", nodes)) == {"time", "x", "lon"}
    assert [problem for _, problem in conventions.check_hierarchy(nodes)] == []
    stored = tessarr.open_array(tmp_path / "d.zarr", path="time", mode="r")
    units = nodes["time"].attributes
    found = cftime.datetimes(stored[...], units["units"], units["calendar"])
    np.testing.assert_array_equal(found, data["time"].values)
    stated = nodes["t"].attributes.get("_FillValue")
    assert stated is None or np.isnan(names.read_fill(stated, "f", zarr_format))


@pytest.mark.spec("OGC-12")
def test_climate_attributes_survive_untouched(tmp_path: Path) -> None:
    store = MemoryStore()
    attributes = {
        "units": "K", "calendar": "noleap", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768,
        "coordinates": "lat lon", "grid_mapping": "crs", "crs_wkt": 'GEOGCRS["ü"]', "nested": {"a": [1, 2.0, None]},
    }  # fmt: skip
    tessarr.create_array(store, shape=(2,), dtype="i2", zarr_format=2, attributes=attributes)
    before = bytes(store.get(".zattrs") or b"")
    opened = tessarr.open_array(store, mode="r+")
    assert dict(opened.attrs) == attributes
    opened.attrs.put(dict(opened.attrs))
    assert bytes(store.get(".zattrs") or b"") == before


@pytest.mark.spec("OGC-11")
def test_user_defined_types_of_netcdf_are_refused() -> None:
    assert names.netcdf_type("double") == "float64"
    for name in ("compound", "enum", "opaque", "vlen"):
        with pytest.raises(UnsupportedOperationError, match=name):
            names.netcdf_type(name)


# -- CF ------------------------------------------------------------------------------------------------------------------


def test_packed_values_are_masked_scaled_and_packed_again() -> None:
    packing = cf.Packing.read(
        {"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768, "valid_range": [-100, 100]}
    )
    stored = np.array([-32768, 0, 50, 101], "i2")
    meant = packing.decode(stored)
    np.testing.assert_allclose(meant, [np.nan, 273.15, 273.65, np.nan])
    np.testing.assert_array_equal(packing.encode(meant, np.dtype("i2")), [-32768, 0, 50, -32768])
    with pytest.raises(OverflowError):
        packing.encode(np.array([1e9]), np.dtype("i2"))
    with pytest.raises(ValueError, match="_FillValue"):
        cf.Packing.read({}).encode(np.array([np.nan]), np.dtype("i2"))


def test_values_are_left_alone_where_nothing_is_said() -> None:
    stored = np.array([1, 2], "i2")
    assert cf.Packing.read({}).decode(stored) is stored
    unsigned = cf.Packing.read({"_Unsigned": "true"})
    np.testing.assert_array_equal(unsigned.decode(np.array([-1], "i1")), np.array([255], "u1"))
    masked = cf.Packing.read({"_FillValue": "AAAAAAAA+H8="}, kind="f", zarr_format=3)
    assert masked.mask(np.array([np.nan, 1.0])).tolist() == [True, False]


CALENDARS = [
    ("standard", "days since 1582-10-04", [0, 1], [(1582, 10, 4, 0), (1582, 10, 15, 0)]),
    ("gregorian", "days since 2000-02-28", [1, 2], [(2000, 2, 29, 0), (2000, 3, 1, 0)]),
    ("proleptic_gregorian", "days since 1582-10-04", [1], [(1582, 10, 5, 0)]),
    ("julian", "days since 1900-02-28", [1, 2], [(1900, 2, 29, 0), (1900, 3, 1, 0)]),
    ("noleap", "days since 2000-02-28", [1], [(2000, 3, 1, 0)]),
    ("365_day", "days since 0001-01-01", [-1], [(0, 12, 31, 0)]),
    ("all_leap", "days since 1999-02-28", [1, 2], [(1999, 2, 29, 0), (1999, 3, 1, 0)]),
    ("360_day", "days since 2000-02-30", [1, 30], [(2000, 3, 1, 0), (2000, 3, 30, 0)]),
    ("standard", "hours since 1970-01-01 06:30", [0.5], [(1970, 1, 1, 7 * 3_600_000_000)]),
    ("standard", "seconds since 1970-01-01T00:00:00Z", [86399.25], [(1970, 1, 1, 86_399_250_000)]),
    ("standard", "milliseconds since 1970-01-01 00:00:00 +02:00", [0], [(1969, 12, 31, 22 * 3_600_000_000)]),
    ("standard", "weeks since 1970-01-01", [1], [(1970, 1, 8, 0)]),
]


@pytest.mark.parametrize(("calendar", "units", "values", "dates"), CALENDARS)
def test_time_is_counted_in_every_calendar(calendar: str, units: str, values: Any, dates: Any) -> None:
    found = cftime.decode(values, units, calendar)
    assert found.tolist() == dates
    np.testing.assert_allclose(cftime.encode(found, units, calendar), values)


@pytest.mark.parametrize("calendar", ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"])
def test_days_and_dates_are_inverse_over_three_thousand_years(calendar: str) -> None:
    days = np.arange(-600_000, 500_000, 7)
    np.testing.assert_array_equal(cftime.day_of(*cftime.date_of(days, calendar), calendar), days)


def test_gregorian_dates_are_those_of_numpy() -> None:
    days = np.arange(-800_000, 800_000, 11)
    year, month, day = cftime.date_of(days, "proleptic_gregorian")
    np.testing.assert_array_equal(year, days.astype("M8[D]").astype("M8[Y]").astype(int) + 1970)
    np.testing.assert_array_equal(month, days.astype("M8[D]").astype("M8[M]").astype(int) % 12 + 1)
    np.testing.assert_array_equal(day, (days.astype("M8[D]") - days.astype("M8[D]").astype("M8[M]")).astype(int) + 1)


def test_times_that_are_none_are_refused() -> None:
    for units in ("days", "months since 2000-01-01", "parsecs since 2000-01-01", "days since yesterday"):
        with pytest.raises(ValueError, match="unit"):
            cftime.decode([0], units)
    with pytest.raises(ValueError, match="calendar"):
        cftime.decode([0], "days since 2000-01-01", "mayan")
    with pytest.raises(ValueError, match="NaN"):
        cftime.decode([np.nan], "days since 2000-01-01")
    with pytest.raises(ValueError, match="NumPy"):
        cftime.datetimes([0], "days since 2000-01-01", "noleap")
    with pytest.raises(ValueError, match="1582"):
        cftime.datetimes([0], "days since 1500-01-01")
    moments = np.array(["2000-01-01T12:00", "2000-01-02"], "M8[s]")
    assert cftime.encode(moments, "days since 2000-01-01").tolist() == [0.5, 1.0]
    assert cftime.encode(moments, "hours since 2000-01-01").dtype == np.int64


def test_flags_are_read_with_masks_and_values() -> None:
    assert cf.read_flags({"flag_masks": [1, 2], "flag_meanings": "a b"}) == {"a": (1, None), "b": (2, None)}
    assert cf.read_flags({"flag_values": [0], "flag_meanings": "a b"}) == {}
    assert told(conventions.check_node(array(1, flag_values=[0], flag_meanings="a b")))


@pytest.mark.parametrize(
    "file", sorted((FIXTURES / "zarr-conventions" / "CF").glob("*.json")), ids=lambda file: file.stem
)
def test_the_examples_of_cf_in_zarr_are_recognised(file: Path) -> None:
    document = json.loads(file.read_text())
    node = Node(kind=document["node_type"], attributes=document["attributes"], shape=(2, 2), dimension_names=None)
    assert "CF" in conventions.detect(node)
    assert framework.uses(node.attributes, framework.CF)
    # their "version" is one that the framework forbids
    problems = [problem for problem in conventions.check_node(node) if problem.loc[-1:] != ("version",)]
    assert [problem for problem in problems if problem.convention == "CF"] == []


def test_the_version_of_cf_is_read_and_written() -> None:
    assert cf.version({"Conventions": "CF-1.8 ACDD-1.3"}) == "1.8"
    assert cf.version({"conventions": "NZ-1.0 CF-1.12"}) == "1.12"
    written = cf.write_version({"a": 1}, entry=True)
    assert written["Conventions"] == "CF-1.11"
    assert framework.uses(written, framework.CF)
    problems = told(
        conventions.check_node(array(1, units="days since never", calendar="mayan", axis="Q", scale_factor="x"))
    )
    assert len([problem for problem in problems if problem.startswith("CF")]) == 4


# -- coordinate reference systems ----------------------------------------------------------------------------------------

WKT = 'GEOGCRS["WGS 84",DATUM["World Geodetic System 1984",ELLIPSOID["WGS 84",6378137,298.257223563]],CS[ellipsoidal,2],AXIS["latitude",north],AXIS["longitude",east],UNIT["degree",0.0174532925199433],ID["EPSG",4326]]'  # noqa: E501
OTHER = WKT.replace("4326", "4258").replace("WGS 84", "ETRS89")
WKT1 = 'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]'  # noqa: E501
URL = "http://www.opengis.net/def/crs/EPSG/0/26711"


@pytest.mark.spec("OGC-14")
def test_the_cf_way_is_followed_to_the_grid_mapping_variable() -> None:
    nodes = {
        "": group(),
        "t": array(2, grid_mapping="crs"),
        "crs": array(crs_wkt=WKT, grid_mapping_name="latitude_longitude"),
    }
    found = crs.read("t", nodes)
    assert found is not None
    best = found.best
    assert best.code == "EPSG:4326"
    assert best == ("cf", "wkt", WKT)
    assert crs.read("t", {"t": array(2, grid_mapping="nope")}) is None
    assert crs.read("t", {"t": array(2)}) is None
    below = {"": group(), "g": group(), "g/t": array(2, grid_mapping="crs: x y"), "crs": nodes["crs"]}
    assert crs.grid_mapping("g/t", below) == "crs"
    bare = {"t": array(2, grid_mapping="crs"), "crs": array(grid_mapping_name="latitude_longitude")}
    kept = crs.read("t", bare)
    assert kept is not None
    assert kept.best.form == "cf"


@pytest.mark.spec("OGC-15", "OGC-16")
def test_the_gdal_way_prefers_url_then_wkt_then_projjson() -> None:
    stated: dict[str, Any] = {
        "url": URL,
        "wkt": WKT,
        "projjson": {"type": "GeographicCRS", "id": {"authority": "EPSG", "code": 4326}},
    }
    for form in ("url", "wkt", "projjson"):
        found = crs.read("t", {"t": array(2, _CRS=stated)})
        assert found is not None
        assert found.best.form == form
        assert found.best.value == stated[form]
        stated = {name: value for name, value in stated.items() if name != form}
    assert crs.read("t", {"t": array(2, _CRS={})}) is None
    assert crs.write_gdal(wkt=WKT, url=URL) == {"_CRS": {"wkt": WKT, "url": URL}}
    with pytest.raises(ValueError, match="needed"):
        crs.write_gdal()


@pytest.mark.spec("OGC-17")
@pytest.mark.parametrize("text", [WKT, WKT1, "PROJCRS[…]"])
def test_well_known_text_of_any_version_is_passed_through(text: str) -> None:
    found = crs.read("t", {"t": array(2, _CRS={"wkt": text})})
    assert found is not None
    assert found.best.value == text
    variable, mapping = crs.write_cf("crs", text, {"grid_mapping_name": "latitude_longitude"})
    again = crs.read("t", {"t": with_attributes((2,), variable), "crs": with_attributes((), mapping)})
    assert again is not None
    assert again.best.value == text


@pytest.mark.spec("OGC-18")
def test_both_ways_are_reported_and_a_disagreement_told() -> None:
    def both(wkt: str) -> dict[str, Node]:
        return {"t": array(2, grid_mapping="crs", _CRS={"wkt": WKT}), "crs": array(crs_wkt=wkt)}

    found = crs.read("t", both(WKT))
    assert found is not None
    assert [item.way for item in found.all] == ["gdal", "cf"]
    assert not found.disagree
    other = crs.read("t", both(OTHER))
    assert other is not None
    assert other.disagree
    assert "disagree" in told(conventions.check_node(both(OTHER)["t"], "t", both(OTHER)))[0]
    assert not crs.read("t", {"t": array(2, _CRS={"wkt": WKT1, "url": URL.replace("26711", "4326")})}).disagree  # type: ignore[union-attr]


def test_pyproj_compares_and_converts_where_it_is_installed() -> None:
    assert pyproj.equivalent(["EPSG:4326", WKT1])
    assert not pyproj.equivalent(["EPSG:4326", "EPSG:32633"])
    found = pyproj.forms("EPSG:32633")
    assert found["code"] == "EPSG:32633"
    assert found["wkt"].startswith("PROJCRS")
    with pytest.raises(ValueError, match="not a coordinate reference system"):
        pyproj.parse("nonsense")


def test_the_data_of_gdal_gives_its_reference_systems() -> None:
    nodes = hierarchy(FIXTURES / "gdal" / "byte_cf1.zarr")
    found = crs.read("Band1", nodes)
    assert found is not None
    assert found.best.form == "cf"
    assert found.best.value["grid_mapping_name"] == "transverse_mercator"
    assert [str(problem) for _, problem in conventions.check_hierarchy(nodes)] == []
    nodes = hierarchy(FIXTURES / "gdal" / "v3" / "spatial_proj_at_array_level.zarr")
    found = crs.read("ar", nodes)
    assert found is not None
    assert found.best == ("proj", "code", "EPSG:32631")


# -- pyramids and the framework ------------------------------------------------------------------------------------------


@pytest.mark.spec("OGC-19")
def test_multiscale_arrays_list_their_levels_the_highest_resolution_first() -> None:
    attributes = {"multiscales": [{"datasets": [{"path": "0"}, {"path": "1"}, {"path": "2"}], "version": "0.1"}]}
    assert multiscales.levels(attributes) == ("0", "1", "2")
    assert multiscales.write(["0", "1", "2"]) == attributes
    two: dict[str, Any] = {
        "multiscales": [*attributes["multiscales"], {"name": "b", "datasets": [{"path": "x"}], "version": "0.1"}]
    }
    assert multiscales.levels(two, "b") == ("x",)
    assert multiscales.levels(two) == ("0", "1", "2")
    assert multiscales.levels(two, "c") == ()
    broken: dict[str, Any]
    for broken in ({}, {"multiscales": {}}, {"multiscales": [{"datasets": [{"p": 1}]}]}, {"multiscales": [7]}):
        assert multiscales.levels(broken) == ()
    nodes = {"": group(**attributes), "0": array(8, 8), "1": array(4, 4), "2": array(5, 5)}
    (problem,) = conventions.check_node(nodes[""], "", nodes)
    assert "larger than the level before" in problem.message
    del nodes["2"]
    (problem,) = conventions.check_node(nodes[""], "", nodes)
    assert "no array at /2" in problem.message


@pytest.mark.parametrize(
    "file",
    sorted((FIXTURES / "zarr-conventions").glob("[gmsz]*/*.json")),
    ids=lambda file: f"{file.parent.name}-{file.stem}",
)
def test_the_examples_of_the_framework_are_read_without_problems(file: Path) -> None:
    document = json.loads(file.read_text())
    attributes = document["attributes"]
    dims = tuple(attributes.get("spatial:dimensions", ())) or None
    node = Node(
        kind=document.get("node_type", "group"),
        attributes=attributes,
        dimension_names=dims,
        shape=(1,) * len(dims or ()),
    )
    found = [
        problem
        for problem in conventions.check_node(node)
        if problem.convention in ("proj", "spatial", layout.NAME, framework.NAME)
    ]
    assert [problem for problem in found if problem.loc != ("spatial:shape",)] == []
    for uuid, read in (
        (framework.PROJ, proj.read),
        (framework.SPATIAL, spatial.read),
        (framework.MULTISCALES, layout.read),
    ):
        prefixed = any(name.startswith(("proj:", "spatial:")) for name in attributes)
        if framework.uses(attributes, uuid) and (prefixed or uuid == framework.MULTISCALES):
            assert read(attributes)


def test_conventions_are_identified_by_uuid_then_by_url_never_by_name() -> None:
    assert framework.identify({"uuid": framework.PROJ, "name": "spatial"}) == "proj"
    assert framework.identify({"uuid": "0" * 8, "schema_url": "x/zarr-conventions/spatial/y"}) is None
    assert (
        framework.identify({"spec_url": "https://github.com/zarr-conventions/spatial/blob/v1/README.md"}) == "spatial"
    )
    assert framework.identify({"name": "spatial"}) is None
    for entry in ("units-v1", {"name": "x"}, {"uuid": "UPPER"}, {"uuid": framework.CF, "version": "1"}, {"uuid": 7}):
        assert told(conventions.check_node(group(zarr_conventions=[entry]))), entry
    assert told(conventions.check_node(group(zarr_conventions={})))
    written = framework.write(framework.write({"a": 1}, framework.PROJ), framework.PROJ, framework.SPATIAL)
    assert [framework.identify(entry) for entry in written["zarr_conventions"]] == ["proj", "spatial"]  # type: ignore[union-attr,arg-type]
    known = conventions.check_node(group(**framework.write({}, *framework.KNOWN)))
    assert [problem for problem in known if problem.convention == framework.NAME] == []


def test_what_is_written_satisfies_the_published_schemas() -> None:
    levels = [
        layout.Level(asset="r10m"),
        layout.Level(asset="r20m", derived_from="r10m", scale=(2.0, 2.0), translation=(0.0, 0.0)),
    ]
    where = spatial.Spatial(dimensions=("y", "x"), transform=(10.0, 0.0, 5e5, 0.0, -10.0, 5e6), shape=(12, 12))
    attributes = spatial.write(where, proj.write(layout.write(levels, resampling_method="mean"), code="EPSG:32633"))
    document = as_document("group", attributes)
    for name in ("multiscales", "geo-proj", "spatial", "spec"):
        assert published(name, document) == [], name
    assert published("spatial", as_document("array", spatial.write(where))) == []
    assert [level.asset for level in layout.read(attributes)] == ["r10m", "r20m"]
    assert spatial.read(attributes) == where
    assert proj.read(attributes) == proj.Proj(code="EPSG:32633")


@pytest.mark.parametrize(
    "broken",
    [
        {"multiscales": {"layout": []}},
        {"multiscales": {"layout": [{"asset": "/a"}]}},
        {"multiscales": {"layout": [{"asset": "../a"}]}},
        {"multiscales": {"layout": [{"transform": {}}]}},
        {"multiscales": {"layout": [{"asset": "a", "derived_from": "b"}]}},
        {"multiscales": {"layout": [{"asset": "a", "transform": {"scale": ["x"]}}]}},
        {"multiscales": {}},
    ],
)
def test_a_broken_layout_is_told_as_the_published_schema_tells_it(broken: Any) -> None:
    attributes = {**framework.write({}, framework.MULTISCALES), **broken}
    assert published("multiscales", as_document("group", attributes))
    assert told(conventions.check_node(group(**attributes)))


@pytest.mark.parametrize(
    "broken",
    [
        {"spatial:transform": [1, 2, 3]},
        {"spatial:bbox": [1, 2, "3", 4]},
        {"spatial:dimensions": ["x"]},
        {"spatial:registration": "corner"},
        {"spatial:shape": [1]},
        {},
    ],
)
def test_a_broken_place_is_told_as_the_published_schema_tells_it(broken: Any) -> None:
    attributes = {
        **framework.write({}, framework.SPATIAL),
        **({"spatial:dimensions": ["y", "x"]} if broken else {}),
        **broken,
    }
    assert published("spatial", as_document("array", attributes))
    assert told(conventions.check_node(array(2, 2, dims=("y", "x"), **attributes)))


def test_a_group_says_the_reference_system_of_the_arrays_directly_in_it() -> None:
    nodes = {"": group(**proj.write(code="EPSG:4326")), "a": array(2), "g": group(), "g/b": array(2)}
    assert proj.inherited("a", nodes) == proj.Proj(code="EPSG:4326")
    assert proj.inherited("g/b", nodes) is None
    assert proj.Proj(code="A:1", wkt2="W").best == "W"
    for wrong in ({"proj:code": "4326"}, {"proj:wkt2": 7}, {"proj:projjson": "x"}):
        assert told(conventions.check_node(group(**framework.write(wrong, framework.PROJ)))), wrong
    with pytest.raises(ValueError, match="EPSG"):
        proj.write(code="4326")


def test_cells_keep_their_place_at_a_coarser_resolution() -> None:
    for registration in ("pixel", "node"):
        fine = spatial.Spatial(
            dimensions=("y", "x"),
            transform=(10.0, 0.0, 0.0, 0.0, -10.0, 0.0),
            shape=(4, 4),
            registration=registration,
        )
        coarse = spatial.scaled(fine, (2, 2), (2, 2))
        centres = [fine.position(row, column) for row in (0, 1) for column in (0, 1)]
        assert coarse.position(0, 0) == tuple(np.mean(centres, axis=0))
        assert coarse.bounds == fine.bounds


def test_the_older_names_before_the_split_are_read() -> None:
    old = {"proj:transform": [1, 0, 0, 0, -1, 0], "proj:bbox": [0, 0, 1, 1], "proj:spatial_dimensions": ["y", "x"]}
    found = spatial.read(old)
    assert found is not None
    assert found.dimensions == ("y", "x")
    assert found.transform == (1, 0, 0, 0, -1, 0)


def test_gdals_multiscales_are_read() -> None:
    nodes = hierarchy(FIXTURES / "gdal" / "v3" / "simple_multiscales")
    assert [level.asset for level in layout.read(nodes[""].attributes)] == ["level0", "level1", "level2"]
    assert layout.read(nodes[""].attributes)[1].scale == (2.0, 2.0)
    assert [str(problem) for _, problem in conventions.check_hierarchy(nodes)] == []


# -- recognised, and registered by others --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["anndata-0.9/anndata-csc.zarr", "anndata-0.12/anndata-csr.adata.zarr"])
def test_anndata_of_two_generations_is_recognised_and_sound(name: str) -> None:
    nodes = hierarchy(FIXTURES / "vitessce" / name)
    assert anndata.is_anndata(nodes)
    assert anndata.read(nodes["X"].attributes) is not None
    assert [str(problem) for _, problem in conventions.check_hierarchy(nodes) if problem.convention == "anndata"] == []


def test_a_broken_anndata_element_is_told() -> None:
    wrong = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}
    assert any("shape" in problem for problem in told(conventions.check_node(group(**wrong))))
    assert any(
        "cannot be an array" in problem for problem in told(conventions.check_node(with_attributes((1,), wrong)))
    )
    nodes = {"": group(**wrong, shape=[1, 1]), "data": array(1), "indices": array(1)}
    assert any("'indptr'" in problem for problem in told(conventions.check_node(nodes[""], "", nodes)))


@pytest.mark.spec("OGC-13")
def test_nczarr_is_recognised_and_does_not_get_in_the_way() -> None:
    nodes = hierarchy(FIXTURES / "gdal" / "nczarr_v2.zarr")
    assert "MyGroup/dset1" in nodes
    assert nczarr.is_key("a/.nczarray")
    attributes = {"a": 1, "_nczarr_attr": {"types": {"a": "<i4", "b": "<i4"}}, "_NCZARR_ARRAY": {}}
    assert nczarr.without(attributes) == {"a": 1}
    assert nczarr.attribute_types(attributes) == {"a": "<i4", "b": "<i4"}
    (problem,) = conventions.check_node(with_attributes((1,), attributes))
    assert problem.loc[-1] == "b"


def test_a_third_party_registers_a_convention() -> None:
    def check(node: Node, path: str, around: Any) -> list[Problem]:
        return (
            [] if node.attributes["units-v1"] == "m" else [Problem("units", ("units-v1",), f"not metres at {path!r}")]
        )

    conventions.register(Convention("units", lambda node: "units-v1" in node.attributes, check))
    try:
        assert conventions.detect(with_attributes((1,), {"units-v1": "m"})) == ("units",)
        assert conventions.check_node(with_attributes((1,), {"units-v1": "m"})) == []
        assert told(conventions.check_node(with_attributes((1,), {"units-v1": "ft"}), "a")) == [
            "units: units-v1: not metres at 'a'"
        ]
    finally:
        conventions.unregister("units")
    assert conventions.detect(with_attributes((1,), {"units-v1": "m"})) == ()


def test_models_metadata_and_opened_nodes_are_seen_alike() -> None:
    store = MemoryStore()
    root = tessarr.create_group(store, attributes={"Conventions": "CF-1.11"})
    made = root.create_array("x", shape=(2,), dtype=">i4", dimension_names=("x",), attributes={"units": "m"})
    spec = model.from_store(store)
    views = [conventions.node_of(view) for view in (made, made.metadata, spec["x"])]
    assert views[0] == views[1] == views[2]
    assert views[0].dtype == "int32"
    assert [conventions.node_of(view).kind for view in (root, root.metadata, spec)] == ["group"] * 3


@pytest.mark.parametrize(
    ("attributes", "rule"),
    [
        ({"multiscales": {"layout": [{"asset": "0", "transform": True}]}}, "LEVEL-DERIVED"),
        ({"multiscales": {"layout": [{"asset": "0"}], "resampling_method": None}}, "LEVEL-FORM"),
        ({"multiscales": {"layout": [{"asset": "0", "resampling_method": 1}]}}, "LEVEL-FORM"),
        ({"spatial:shape": [1.5, 2]}, "SPATIAL-FORM"),
        ({"spatial:shape": 1}, "SPATIAL-FORM"),
        ({"spatial:dimensions": None}, "SPATIAL-DIMENSIONS"),
        ({"zarr_conventions": [{"uuid": framework.CF}], "Conventions": "x"}, "CF-VERSION"),
    ],
)
def test_what_the_published_schemas_of_the_framework_refuse_is_told(attributes: Any, rule: str) -> None:
    problems = conventions.check_node(Node(kind="group", attributes=attributes))
    assert rule in [problem.rule for problem in problems]
    conventions.check_node(array(4, 4, dims=("y", "x"), **{"spatial:dimensions": ["y", "x"], **attributes}))


def test_a_transform_has_a_number_for_each_dimension_of_its_level() -> None:
    levels = [layout.Level(asset="0"), layout.Level(asset="1", derived_from="0", scale=(2.0,))]
    nodes = {"": group(**layout.write(levels)), "0": array(4, 4), "1": array(2, 2)}
    (problem,) = [problem for _, problem in conventions.check_hierarchy(nodes)]
    assert problem.message == "must be 2 numbers, got [2.0]"
