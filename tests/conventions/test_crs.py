"""Coordinate reference systems said in several ways: which counts, and which cannot both be true."""

from __future__ import annotations

from typing import Any

import pyproj
import pytest

from tessarr import conventions
from tessarr.conventions import crs
from tessarr.conventions.base import Node

UTM33, UTM34 = pyproj.CRS("EPSG:32633"), pyproj.CRS("EPSG:32634")
WKT33 = UTM33.to_wkt("WKT2_2019")
NAMELESS33 = WKT33.replace(',ID["EPSG",32633]', "")
URL = "http://www.opengis.net/def/crs/EPSG/0/32633"


def parameters(system: Any) -> dict[str, Any]:
    return {name: value for name, value in system.to_cf().items() if name != "crs_wkt"}


def array(**attributes: Any) -> Node:
    return Node(kind="array", attributes=attributes, shape=(2, 2), dimension_names=("y", "x"))


@pytest.mark.spec("OGC-18")
@pytest.mark.parametrize(
    ("gdal", "cf", "differ"),
    [
        ({"wkt": UTM33.to_wkt("WKT1_GDAL")}, {"crs_wkt": WKT33}, False),
        ({"wkt": UTM33.to_wkt("WKT2_2015")}, {"crs_wkt": NAMELESS33}, False),
        ({"url": URL}, {"crs_wkt": NAMELESS33}, False),
        ({"url": URL}, {"crs_wkt": UTM34.to_wkt()}, True),
        ({"url": URL.replace("33", "34", 1).replace("32633", "32634")}, {"crs_wkt": NAMELESS33}, True),
        ({"projjson": UTM34.to_json_dict()}, {"crs_wkt": NAMELESS33}, True),
        ({"projjson": {k: v for k, v in UTM34.to_json_dict().items() if k != "id"}}, {"crs_wkt": WKT33}, True),
        ({"url": URL}, parameters(UTM33), False),
        ({"url": URL}, parameters(UTM34), True),
        ({"url": "http://www.opengis.net/def/crs/OGC/1.3/CRS84"}, {"crs_wkt": pyproj.CRS("EPSG:4326").to_wkt()}, False),
        ({"url": "http://www.opengis.net/def/crs/EPSG/0/3857"}, {"crs_wkt": pyproj.CRS("ESRI:102100").to_wkt()}, False),
    ],
)
def test_statements_are_compared_by_what_they_mean(gdal: Any, cf: Any, differ: bool) -> None:
    nodes = {"t": array(_CRS=gdal, grid_mapping="crs"), "crs": array(**cf)}
    found = crs.read("t", nodes)
    assert found is not None
    assert [item.way for item in found.all] == ["gdal", "cf"]
    assert found.disagree is differ
    told = [problem.rule for problem in conventions.check_node(nodes["t"], "t", nodes)]
    assert told == (["CRS-DISAGREE"] if differ else [])


@pytest.mark.spec("OGC-16")
@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://www.opengis.net/def/crs/EPSG/0/26711", "EPSG:26711"),
        ("https://www.opengis.net/def/crs/EPSG/9.8.15/4326", "EPSG:4326"),
        ("http://www.opengis.net/def/crs/OGC/1.3/CRS84", "OGC:CRS84"),
        ("urn:ogc:def:crs:EPSG::4326", "EPSG:4326"),
        ("http://www.opengis.net/gml/srs/epsg.xml#4326", "EPSG:4326"),
        ("https://spatialreference.org/ref/epsg/4326/", "EPSG:4326"),
        ("EPSG:4326", "EPSG:4326"),
        ("https://example.com/my-system", None),
    ],
)
def test_the_code_of_a_url_is_found_in_every_spelling(url: str, code: str | None) -> None:
    assert crs.Reference("gdal", "url", url).code == code


@pytest.mark.spec("OGC-14")
def test_the_extended_form_of_a_grid_mapping_names_a_system_for_each_set_of_coordinates() -> None:
    text = "geo: lat lon utm: x y"
    assert crs.read_grid_mapping(text) == (("geo", ("lat", "lon")), ("utm", ("x", "y")))
    assert crs.read_grid_mapping("geo : lat lon utm:x y") == crs.read_grid_mapping(text)
    assert crs.write_grid_mapping(crs.read_grid_mapping(text)) == text
    assert crs.write_grid_mapping([crs.GridMapping("crs")]) == "crs"
    for wrong in ([], [crs.GridMapping("a"), crs.GridMapping("b")]):
        with pytest.raises(ValueError, match="coordinates"):
            crs.write_grid_mapping(wrong)
    nodes = {
        "t": array(grid_mapping=text), "utm": array(crs_wkt=WKT33), "geo": array(crs_wkt="G"),
        "x": array(), "y": array(), "lat": array(),
    }  # fmt: skip
    found = crs.read("t", nodes)
    assert found is not None
    assert found.best.code == "EPSG:32633"
    (problem,) = conventions.check_node(nodes["t"], "t", nodes)
    assert problem.message == "names 'lon', which is not there"
    other = crs.read("t", {**nodes, "t": array(grid_mapping="geo: lat lon")})
    assert other is not None
    assert other.best.value == "G"
    assert crs.read("t", {**nodes, "t": array(grid_mapping="none: x y")}) is None
    assert crs.read_grid_mapping(3) == ()


def test_what_many_arrays_say_alike_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from tessarr.conventions import pyproj as comparing

    calls: list[Any] = []
    real = comparing.contradict

    def counted(values: Any) -> bool:
        calls.append(values)
        return real(values)

    monkeypatch.setattr(comparing, "contradict", counted)
    said = array(_CRS={"wkt": NAMELESS33}, grid_mapping="crs")
    nodes = {"": Node(kind="group", attributes={}), "crs": array(crs_wkt=UTM34.to_wkt())}
    nodes |= {f"a{number}": said for number in range(50)}
    problems = [problem.rule for _, problem in conventions.check_hierarchy(nodes)]
    assert problems == ["CRS-DISAGREE"] * 50
    assert len(calls) == 1
