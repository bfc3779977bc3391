"""The conventions that the OGC community standard describes, through stores: what is written is found again by others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.conventions import cf, cftime, crs, hierarchy_of, multiscales, xarray
from tessarr.conventions.recognised import nczarr
from tessarr.conventions.xarray import find
from tessarr.errors import ZarrRuntimeWarning
from tessarr.model import from_store
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.zip.store import ZipStore
from tessarr.tools.convert import convert
from tests.narrow import array_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
WKT1 = 'GEOGCS["NAD27",DATUM["North_American_Datum_1927",SPHEROID["Clarke 1866",6378206.4,294.9787]],AUTHORITY["EPSG","4267"]]'
WKT2 = 'GEOGCRS["WGS 84",DATUM["World Geodetic System 1984",ELLIPSOID["WGS 84",6378137,298.257223563]],ID["EPSG",4326]]'
PROJJSON = {"type": "GeographicCRS", "name": "ETRS89", "id": {"authority": "EPSG", "code": 4258}}
URL = "http://www.opengis.net/def/crs/EPSG/0/26711"


def nodes_of(store: Any) -> Any:
    return hierarchy_of(from_store(tessarr.open(store, mode="r") if isinstance(store, Path) else store))


def cdl(text: str) -> tuple[dict[str, int], dict[str, tuple[str, ...]], dict[tuple[str, str], str]]:
    """Dimensions, the dimensions of variables, and text attributes, as netCDF's own program lists them."""
    lengths = {name: int(size) for name, size in re.findall(r"^\t(\w+) = (\d+) ;", text, re.M)}
    variables = {name: tuple(dims.split(", ")) for name, dims in re.findall(r"^\t\w+ (\w+)\(([\w, ]+)\) ;", text, re.M)}
    texts = {(name, key): value for name, key, value in re.findall(r'^\t\t(\w+):(\w+) = "((?:[^"\\])*)" ;', text, re.M)}
    return lengths, variables, texts


@pytest.mark.spec("OGC-08", "OGC-10")
@pytest.mark.parametrize(
    ("file", "root", "listing"),
    [
        ("ref_power_901_constants_orig.zip", "ref_power_901_constants", "ref_power_901_constants.cdl"),
        ("ref_quotes_orig.zip", "ref_quotes", "ref_quotes.cdl"),
    ],
)
def test_data_of_netcdf_c_is_what_its_own_listing_says(file: str, root: str, listing: str) -> None:
    lengths, variables, texts = cdl((FIXTURES / "netcdf-c" / listing).read_text(encoding="utf-8"))
    with ZipStore(FIXTURES / "netcdf-c" / file, mode="r") as store:
        path = root if any(key.startswith(f"{root}/") for key in store.list()) else ""
        group = tessarr.open_group(store, path=path, mode="r")
        arrays = {name: array for name, array in group.arrays() if array.ndim}
        assert variables.items() <= {name: array.dimension_names for name, array in arrays.items()}.items()
        nodes = {name: array.metadata for name, array in arrays.items()}
        assert dict(xarray.sizes("", hierarchy_of(nodes))) == lengths
        assert texts
        for (name, key), value in texts.items():
            assert arrays[name].attrs[key] == value


@pytest.mark.spec("OGC-10")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_netcdf_file_becomes_a_tree_and_is_the_same_after_a_round_trip(tmp_path: Path, zarr_format: Any) -> None:
    netcdf = pytest.importorskip("netCDF4", reason="the extra convert is not installed")
    with netcdf.Dataset(tmp_path / "a.nc", "w") as file:
        file.title = "a file"
        file.createDimension("time", None)
        file.createDimension("x", 3)
        time = file.createVariable("time", "i4", ("time",))
        time.units, time.calendar = "days since 2000-01-01", "noleap"
        time[:] = [58, 59]
        value = file.createGroup("deep").createVariable("v", "f4", ("time", "x"))
        value.units, value.coordinates = "K", "time"
        value[:] = np.arange(6).reshape(2, 3)
    convert(tmp_path / "a.nc", tmp_path / "a.zarr", zarr_format=zarr_format)
    root = tessarr.open_group(tmp_path / "a.zarr", mode="r")
    assert root.attrs["title"] == "a file"
    assert root["deep/v"].dimension_names == ("time", "x")
    assert root["deep/v"].attrs["units"] == "K"
    assert array_of(root["deep/v"])[...].tolist() == [[0, 1, 2], [3, 4, 5]]
    nodes = nodes_of(tmp_path / "a.zarr")
    assert xarray.is_dimension_coordinate("time", nodes["time"])
    assert find("time", "deep/v", nodes) == "time"
    times = cftime.decode(array_of(root["time"])[...], root["time"].attrs["units"], root["time"].attrs["calendar"])
    assert [tuple(date)[:3] for date in times.tolist()] == [(2000, 2, 28), (2000, 3, 1)]
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr", zarr_format=zarr_format)
    again = tessarr.open_group(tmp_path / "b.zarr", mode="r")
    assert again.attrs.asdict() == root.attrs.asdict()
    assert again["deep/v"].metadata.to_dict() == root["deep/v"].metadata.to_dict()


@pytest.mark.spec("OGC-12")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_reading_by_conventions_does_not_touch_a_byte(zarr_format: Any) -> None:
    attributes = {
        "units": "days since 2000-01-01", "calendar": "360_day", "scale_factor": 0.1, "add_offset": -1, "_FillValue": -9,
        "coordinates": "lat lon", "grid_mapping": "crs", "crs_wkt": WKT1, "flag_values": [0, 1], "flag_meanings": "a b",
    }  # fmt: skip
    store = MemoryStore()
    group = tessarr.create_group(store, zarr_format=zarr_format)
    group.create_array("a", shape=(2,), dtype="i2", attributes=attributes)
    group.create_array("crs", shape=(), dtype="i4", attributes={"crs_wkt": WKT1})
    before = {key: bytes(store.get(key) or b"") for key in store.list()}
    nodes = nodes_of(store)
    packing = cf.Packing.read(nodes["a"].attributes, zarr_format=zarr_format)
    assert packing.decode(np.array([-9, 20], "i2")).tolist()[1:] == [1.0]
    assert crs.read("a", nodes) is not None
    assert {key: bytes(store.get(key) or b"") for key in store.list()} == before
    assert tessarr.open_array(store, path="a", mode="r").attrs.asdict() == attributes


@pytest.mark.spec("OGC-13")
def test_the_documents_of_nczarr_are_no_members_and_its_attributes_can_be_set_apart() -> None:
    with pytest.warns(ZarrRuntimeWarning, match="_NCZARR_GROUP"):  # in .zgroup, where no other member may be
        nodes = nodes_of(FIXTURES / "gdal" / "nczarr_v2.zarr")
    assert not any(nczarr.is_key(path) for path in nodes)
    marked = [node for node in nodes.values() if nczarr.read(node.attributes)]
    assert marked
    for node in marked:
        assert not any(name.lower().startswith("_nczarr") for name in nczarr.without(node.attributes))


@pytest.mark.spec("OGC-14", "OGC-17")
@pytest.mark.parametrize("text", [WKT1, WKT2])
def test_the_cf_way_leads_to_the_text_as_it_was_written(text: str) -> None:
    store = MemoryStore()
    group = tessarr.create_group(store, zarr_format=2)
    own, mapping = crs.write_cf("crs", text, {"grid_mapping_name": "latitude_longitude"})
    group.create_array("t", shape=(2, 2), dtype="f4", attributes=own)
    group.create_array("crs", shape=(), dtype="i4", attributes=mapping)
    found = crs.read("t", nodes_of(store))
    assert found is not None
    assert found.best == ("cf", "wkt", text)
    del group["crs"]
    assert crs.read("t", nodes_of(store)) is None


@pytest.mark.spec("OGC-15", "OGC-16", "OGC-17")
def test_the_gdal_way_prefers_the_url_then_the_text_then_projjson() -> None:
    store = MemoryStore()
    array = tessarr.create_array(store, shape=(2, 2), dtype="f4", zarr_format=2)
    stated: dict[str, Any] = {"projjson": PROJJSON, "wkt": WKT1, "url": URL}
    for form, code in (("url", "EPSG:26711"), ("wkt", "EPSG:4267"), ("projjson", "EPSG:4258")):
        array.attrs.put(crs.write_gdal(**stated))
        assert json.loads(bytes(store.get(".zattrs") or b""))["_CRS"] == stated
        found = crs.read("", nodes_of(store))
        assert found is not None
        assert (found.best.form, found.best.value, found.best.code) == (form, stated.pop(form), code)


@pytest.mark.spec("OGC-15", "OGC-17")
def test_the_text_that_gdal_wrote_is_given_as_it_stands() -> None:
    folder = FIXTURES / "gdal" / "bitround0.zarr"
    stated = json.loads((folder / "bitround0" / ".zattrs").read_text(encoding="utf-8"))["_CRS"]
    found = crs.read("bitround0", nodes_of(folder))
    assert found is not None
    assert list(found.all) == [
        ("gdal", "url", stated["url"]),
        ("gdal", "wkt", stated["wkt"]),
        ("gdal", "projjson", stated["projjson"]),
    ]
    assert stated["wkt"].startswith('PROJCRS["NAD27 / UTM zone 11N"')
    assert {item.code for item in found.all} == {"EPSG:26711"}
    assert not found.disagree


@pytest.mark.spec("OGC-18")
@pytest.mark.parametrize(("other", "disagree"), [(WKT1, True), (WKT2, False)])
def test_both_ways_at_once_are_reported_and_a_disagreement_is_told(other: str, disagree: bool) -> None:
    store = MemoryStore()
    group = tessarr.create_group(store)
    own, mapping = crs.write_cf("crs", other)
    group.create_array("t", shape=(2, 2), dtype="f4", attributes={**own, **crs.write_gdal(wkt=WKT2)})
    group.create_array("crs", shape=(), dtype="i4", attributes=mapping)
    found = crs.read("t", nodes_of(store))
    assert found is not None
    assert [(item.way, item.form) for item in found.all] == [("gdal", "wkt"), ("cf", "wkt")]
    assert found.disagree is disagree


@pytest.mark.spec("OGC-19")
def test_the_levels_of_another_writer_are_listed_the_highest_resolution_first() -> None:
    nodes = nodes_of(FIXTURES / "ome-zarr-py" / "v1")
    assert multiscales.levels(nodes[""].attributes) == ("0",)
    group = tessarr.create_group(MemoryStore())
    group.update_attributes(multiscales.write(["full", "half", "quarter"]))
    assert multiscales.levels(group.attrs.asdict()) == ("full", "half", "quarter")
    assert group.attrs.asdict() == {
        "multiscales": [{"datasets": [{"path": "full"}, {"path": "half"}, {"path": "quarter"}], "version": "0.1"}]
    }
