"""`convert` on real measured files and on generated ones, against what the formats' own libraries read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.cli import main
from tessarr.errors import BaseZarrError, StoreError, TessarrError
from tessarr.indexing.boxes import box_shape
from tessarr.plan.kinds import converting
from tessarr.plan.task import Worker
from tessarr.storage import MemoryStore
from tessarr.tools.convert import convert
from tessarr.tools.rechunk import rechunk
from tessarr.tools.sources import source_kind
from tessarr.tools.transfer import boxes, identical
from tests.narrow import array_of

MEASURED = Path(__file__).resolve().parents[2] / "examples" / "data"
v1_is_meant = pytest.mark.filterwarnings("ignore:Zarr v1")


def open_all(place: Any) -> dict[str, tessarr.Array]:
    """Every array below a group, by path."""
    return {
        path: node
        for path, node in tessarr.open_group(place, mode="r").members(None)
        if isinstance(node, tessarr.Array)
    }


def left_over(folder: Path) -> list[str]:
    """What a conversion left behind."""
    return [path.name for path in folder.rglob("*partial*")]


# -- measured data -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", ["air.nc", "MODIS_ARRAY.nc"])
def test_netcdf_is_what_netcdf_says_it_is(name: str, zarr_format: int, tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
    report = convert(MEASURED / name, tmp_path / "out.zarr", zarr_format=zarr_format)
    assert (report.kind, report.verified) == ("netcdf", True)
    arrays = open_all(tmp_path / "out.zarr")
    with netcdf4.Dataset(MEASURED / name) as source:
        source.set_auto_maskandscale(False)
        assert len(arrays) == len(source.variables)
        for variable in source.variables.values():
            array = arrays.get(variable.name) or arrays[variable.name.strip("_")]
            assert identical(np.asarray(variable[...]), np.asarray(array[...]))
            assert array.dimension_names == variable.dimensions
            for attribute in set(variable.ncattrs()) - {"_FillValue"}:
                value = variable.getncattr(attribute)
                assert array.attrs[attribute] == (value.tolist() if hasattr(value, "tolist") else value)
            if "_FillValue" in variable.ncattrs():
                assert identical(
                    np.asarray(array.fill_value, array.dtype), np.asarray(variable.getncattr("_FillValue"))
                )
        for attribute in source.ncattrs():
            assert tessarr.open_group(tmp_path / "out.zarr").attrs[attribute] == source.getncattr(attribute)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", ["air.nc", "MODIS_ARRAY.nc"])
@pytest.mark.filterwarnings("ignore")
def test_xarray_sees_the_same_in_the_netcdf_file_and_in_the_zarr_data(
    name: str, zarr_format: int, tmp_path: Path
) -> None:
    xarray = pytest.importorskip("xarray", reason="belongs to the extra [xarray]")
    pytest.importorskip("zarr", reason="xarray reads Zarr by zarr-python")
    pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
    convert(
        MEASURED / name,
        tmp_path / "out.zarr",
        zarr_format=zarr_format,
        rename={"__xarray_dataarray_variable__": "values"},
    )
    with (
        xarray.open_dataset(MEASURED / name) as before,
        xarray.open_zarr(tmp_path / "out.zarr", consolidated=False) as after,
    ):
        renamed = before.rename({name: "values" for name in before if name.startswith("__")})
        xarray.testing.assert_equal(renamed.load(), after.load())


def test_npz_members_become_arrays_of_a_group(tmp_path: Path) -> None:
    report = convert(MEASURED / "sst_nino3.npz", tmp_path / "out.zarr")
    assert report.kind == "npz"
    with np.load(MEASURED / "sst_nino3.npz") as truth:
        assert identical(truth["data"], np.asarray(tessarr.open_array(tmp_path / "out.zarr", path="data")[...]))


def test_packed_data_stays_packed(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
    convert(MEASURED / "air.nc", tmp_path / "out.zarr")
    air = tessarr.open_array(tmp_path / "out.zarr", path="air")
    assert (air.dtype, air.attrs["scale_factor"]) == (np.dtype("int16"), 0.01)


def test_a_name_that_v3_reserves_is_changed_with_a_notice(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
    report = convert(MEASURED / "MODIS_ARRAY.nc", tmp_path / "out.zarr")
    assert "xarray_dataarray_variable" in tessarr.open_group(tmp_path / "out.zarr")
    assert any("reserved" in notice for notice in report.plan.notices)


# -- generated files -----------------------------------------------------------------------------------------------------


@pytest.fixture
def hdf5(tmp_path: Path) -> Path:
    """An HDF5 file with one of everything."""
    h5py = pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    path = tmp_path / "all.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = np.bytes_("ein Titel")
        file.attrs["numbers"] = np.array([1.5, np.nan])
        file.attrs["link"] = file.ref
        group = file.create_group("deep/er")
        x = file.create_dataset("x", data=np.linspace(0, 1, 30))
        x.make_scale("x")
        values = group.create_dataset(
            "values",
            data=np.arange(600, dtype=">f4").reshape(20, 30),
            chunks=(10, 30),
            compression="gzip",
            fillvalue=-1,
        )
        values.dims[1].attach_scale(x)
        values.attrs["units"] = "K"
        file.create_dataset("text", data=["a", "", "größer"], dtype=h5py.string_dtype())
        file.create_dataset("fixed", data=np.array([b"ab", b"c"]))
        file.create_dataset("flag", data=np.array([True, False]))
        file.create_dataset("enum", data=[0, 2], dtype=h5py.enum_dtype({"low": 0, "high": 2}, basetype="i1"))
        file.create_dataset("table", data=np.array([(1, 2.5)], dtype=[("a", "<i2"), ("b", ">f8")]))
        names = np.dtype([("name", h5py.string_dtype()), ("value", "<i4")])
        file.create_dataset("named", data=np.array([("one", 1), ("two", 2)], dtype=names))
        file.create_dataset("scalar", data=np.int64(7))
        file.create_dataset("complex", data=np.array([1 + 2j]))
        file.create_dataset("nothing", shape=(0, 3), dtype="f4", maxshape=(None, 3))
        file["again"] = h5py.SoftLink("/deep/er/values")
        file["lost"] = h5py.SoftLink("/nowhere")
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.filterwarnings("ignore::tessarr.errors.UnstableSpecificationWarning")
def test_hdf5_of_every_kind_arrives(hdf5: Path, tmp_path: Path, zarr_format: int) -> None:
    report = convert(hdf5, tmp_path / "out.zarr", zarr_format=zarr_format)
    arrays = open_all(tmp_path / "out.zarr")
    values = arrays["deep/er/values"]
    assert np.array_equal(values[...], np.arange(600, dtype="f4").reshape(20, 30))
    assert (values.chunks, values.fill_value, values.attrs["units"]) == ((10, 30), -1, "K")
    assert values.dimension_names == ((None, "x") if zarr_format == 3 else ("dim_0", "x"))
    assert np.array_equal(arrays["again"][...], values[...])
    assert arrays["text"][...].tolist() == ["a", "", "größer"]
    assert arrays["fixed"][...].tolist() == [b"ab", b"c"]
    assert arrays["flag"].dtype == np.bool_
    assert arrays["enum"].attrs.asdict() == {"flag_values": [0, 2], "flag_meanings": "low high"}
    assert arrays["table"][...].tolist() == [(1, 2.5)]
    assert arrays["named/name"][...].tolist() == ["one", "two"]
    assert arrays["named/value"][...].tolist() == [1, 2]
    assert arrays["scalar"][()] == 7
    assert arrays["complex"][...].tolist() == [1 + 2j]
    assert arrays["nothing"].shape == (0, 3)
    attributes = tessarr.open_group(tmp_path / "out.zarr").attrs
    assert (attributes["title"], attributes["numbers"]) == ("ein Titel", [1.5, "NaN"])
    for word in ("NaN", "link", "broken", "named"):
        assert any(word in notice for notice in report.plan.notices), word


def test_what_zarr_cannot_hold_is_an_error_that_lists_it_all(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("ragged", shape=(2,), dtype=h5py.vlen_dtype(np.int32))
        file.create_dataset("empty", data=h5py.Empty("f4"))
        file["good"] = [1, 2]
    with pytest.raises(BaseZarrError, match="ragged") as caught:
        convert(tmp_path / "a.h5", tmp_path / "out.zarr")
    assert "empty" in str(caught.value)
    assert not (tmp_path / "out.zarr").exists()
    convert(tmp_path / "a.h5", tmp_path / "out.zarr", exclude=["ragged", "empty"])
    assert list(tessarr.open_group(tmp_path / "out.zarr")) == ["good"]


def test_netcdf_groups_dimensions_text_and_enumerations(tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
    with netcdf4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("t", None)
        file.createDimension("n", 3)
        inner = file.createGroup("inner")
        values = inner.createVariable("values", "f8", ("t", "n"), fill_value=1e20)
        values[0:4] = np.arange(12).reshape(4, 3)
        text = file.createVariable("text", str, ("n",))
        text[:] = np.array(["x", "", "ü"], dtype=object)
        kind = file.createEnumType(np.uint8, "kind_t", {"dry": 0, "wet": 1})
        states = file.createVariable("state", kind, ("n",))
        states[:] = [0, 1, 1]
        characters = file.createVariable("characters", "S1", ("n",))
        characters[:] = np.array([b"a", b"b", b"c"])
        file.createVariable("scalar", "i4")[...] = 5
    convert(tmp_path / "a.nc", tmp_path / "out.zarr")
    arrays = open_all(tmp_path / "out.zarr")
    assert arrays["inner/values"][...].tolist() == np.arange(12.0).reshape(4, 3).tolist()
    assert (arrays["inner/values"].dimension_names, arrays["inner/values"].fill_value) == (("t", "n"), 1e20)
    assert arrays["text"][...].tolist() == ["x", "", "ü"]
    assert (arrays["state"][...].tolist(), arrays["state"].attrs["flag_meanings"]) == ([0, 1, 1], "dry wet")
    assert arrays["characters"][...].tolist() == [b"a", b"b", b"c"]
    assert (arrays["scalar"][()], arrays["scalar"].dimension_names or ()) == (5, ())


def test_netcdf_3_is_read_too(tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
    with netcdf4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 4)
        file.createVariable("v", "i2", ("x",))[:] = [1, 2, 3, 4]
    assert source_kind(str(tmp_path / "a.nc")) == "netcdf"
    convert(tmp_path / "a.nc", tmp_path / "out.zarr")
    assert tessarr.open_array(tmp_path / "out.zarr", path="v")[...].tolist() == [1, 2, 3, 4]


TIFFS: list[dict[str, Any]] = [
    {"shape": (70, 90)},
    {"shape": (70, 90), "tile": (32, 48), "compression": "zlib"},
    {"shape": (70, 90), "rowsperstrip": 7, "compression": "zlib"},
    {"shape": (70, 90, 3), "photometric": "rgb", "tile": (32, 32), "compression": "zlib", "predictor": True},
    {"shape": (3, 70, 90), "photometric": "rgb", "planarconfig": "separate", "tile": (32, 32), "compression": "zlib"},
    {"shape": (5, 70, 90), "photometric": "minisblack", "compression": "zlib"},
    {
        "shape": (2, 3, 70, 90),
        "photometric": "minisblack",
        "metadata": {"axes": "TCYX"},
        "tile": (16, 16),
        "compression": "zlib",
    },
]


@pytest.mark.parametrize(
    "options", TIFFS, ids=lambda options: "-".join(map(str, options["shape"])) + "-" + str(len(options))
)
def test_tiff_of_every_layout_is_what_tifffile_reads(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    monkeypatch.setattr(converting, "AT_ONCE", 4096)  # so that boxes cut through strips, tiles and pages
    options = dict(options)
    values = np.random.default_rng(1).integers(0, 255, options.pop("shape"), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", values, **options)
    convert(tmp_path / "a.tif", tmp_path / "out.zarr", chunks="2KB")
    stored = tessarr.open_array(tmp_path / "out.zarr")
    assert np.array_equal(np.asarray(stored[...]), tifffile.imread(tmp_path / "a.tif"))
    assert len(stored.dimension_names or ()) == values.ndim


def test_a_tiff_with_levels_becomes_a_group(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    values = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(values, tile=(16, 16), subifds=1)
        file.write(values[::2, ::2], tile=(16, 16), subfiletype=1)
    convert(tmp_path / "a.tif", tmp_path / "out.zarr")
    arrays = open_all(tmp_path / "out.zarr")
    assert np.array_equal(arrays["0/0"][...], values)
    assert np.array_equal(arrays["0/1"][...], values[::2, ::2])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["i4", ">f8", "?", "c8", "U5", "M8[ns]"])
@pytest.mark.filterwarnings("ignore::tessarr.errors.UnstableSpecificationWarning")
def test_npy_of_any_dtype_and_order(tmp_path: Path, order: Any, dtype: str) -> None:
    values = np.arange(24).reshape(4, 6).astype(dtype)
    np.save(tmp_path / "a.npy", np.asarray(values, order=order))
    convert(tmp_path / "a.npy", tmp_path / "out.zarr")
    assert identical(np.asarray(tessarr.open_array(tmp_path / "out.zarr")[...]), values)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "b.npz", good=np.arange(3), bad=np.array([{}], dtype=object))
    with pytest.raises(BaseZarrError, match="pickle"):
        convert(tmp_path / "a.npy", tmp_path / "out.zarr")
    with pytest.raises(BaseZarrError, match="bad"):
        convert(tmp_path / "b.npz", tmp_path / "out.zarr")
    convert(tmp_path / "b.npz", tmp_path / "out.zarr", include=["good"])
    assert list(tessarr.open_group(tmp_path / "out.zarr")) == ["good"]


def test_a_file_of_no_known_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello, world")
    with pytest.raises(StoreError, match="is unknown"):
        convert(tmp_path / "a.txt", tmp_path / "out.zarr")
    with pytest.raises(StoreError, match="no such file"):
        convert(tmp_path / "b.txt", tmp_path / "out.zarr")


# -- Zarr to Zarr --------------------------------------------------------------------------------------------------------


def hierarchy(place: Path, zarr_format: int) -> tessarr.Group:
    """A hierarchy with codecs, names and attributes."""
    group = tessarr.open_group(place, mode="w", zarr_format=zarr_format)
    group.attrs["title"] = "t"
    compressors: Any = (
        {"id": "zlib", "level": 3} if zarr_format == 2 else [{"name": "gzip", "configuration": {"level": 3}}]
    )
    names: Any = {"dimension_names": ("y", "x")}
    group.create_array(
        "a", data=np.arange(400).reshape(20, 20), chunks=(7, 9), fill_value=-5, compressors=compressors, **names
    )
    group.create_array("b/text", data=np.array(["x", "yy"], dtype=np.dtypes.StringDType()))
    return group


@pytest.mark.parametrize("before", [2, 3])
@pytest.mark.parametrize("after", [2, 3])
def test_zarr_of_any_version_to_zarr_of_any_version(tmp_path: Path, before: int, after: int) -> None:
    source = hierarchy(tmp_path / "in.zarr", before)
    report = convert(tmp_path / "in.zarr", tmp_path / "out.zarr", zarr_format=after)
    target = tessarr.open_group(tmp_path / "out.zarr")
    assert (report.verified, target.zarr_format, target.attrs["title"]) == (True, after, "t")
    a = array_of(target["a"])
    assert (a.chunks, a.fill_value, a.dimension_names) == ((7, 9), -5, ("y", "x"))
    assert np.array_equal(a[...], array_of(source["a"])[...])
    assert array_of(target["b/text"])[...].tolist() == ["x", "yy"]
    assert a.compressors[0].level == 3 if after == 2 else a.compressors[0].to_json()["configuration"]["level"] == 3
    assert not report.plan.notices


@v1_is_meant
@pytest.mark.parametrize("other", [2, 3])
def test_version_1_in_both_directions(tmp_path: Path, other: int) -> None:
    hierarchy(tmp_path / "in.zarr", other)
    convert(tessarr.open_array(tmp_path / "in.zarr", path="a"), tmp_path / "one.zarr", zarr_format=1)
    one = tessarr.open_array(tmp_path / "one.zarr")
    assert one.zarr_format == 1
    convert(tmp_path / "one.zarr", tmp_path / "back.zarr", zarr_format=other)
    assert np.array_equal(tessarr.open_array(tmp_path / "back.zarr")[...], np.arange(400).reshape(20, 20))
    with pytest.raises(BaseZarrError, match="one array"):
        convert(tmp_path / "in.zarr", tmp_path / "no.zarr", zarr_format=1)


def test_shards_and_codecs_of_a_v3_source_are_kept(tmp_path: Path) -> None:
    made = tessarr.create_array(
        tmp_path / "in.zarr",
        data=np.arange(400, dtype=">i4").reshape(20, 20),
        chunks=(5, 5),
        shards=(10, 20),
        filters=[{"name": "transpose", "configuration": {"order": [1, 0]}}],
        chunk_key_encoding="v2",
    )
    convert(tmp_path / "in.zarr", tmp_path / "out.zarr")
    assert tessarr.open_array(tmp_path / "out.zarr").metadata == made.metadata


def test_a_rectilinear_grid_is_kept(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "in.zarr", data=np.arange(10), chunks=[[3, 5, 2]])
    convert(tmp_path / "in.zarr", tmp_path / "out.zarr")
    assert tessarr.open_array(tmp_path / "out.zarr").write_chunk_sizes == ((3, 5, 2),)


def test_rechunk_changes_the_chunks_and_nothing_else(tmp_path: Path) -> None:
    source = hierarchy(tmp_path / "in.zarr", 3)
    rechunk(tmp_path / "in.zarr", tmp_path / "in.zarr", chunks={"y": 20, "x": 4}, overwrite=True, jobs=3)
    array = tessarr.open_array(tmp_path / "in.zarr", path="a")
    assert array.chunks == (20, 4)
    assert np.array_equal(array[...], np.arange(400).reshape(20, 20))
    assert {**array.metadata.to_dict(), "chunk_grid": source["a"].metadata.to_dict()["chunk_grid"]} == source[
        "a"
    ].metadata.to_dict()
    assert left_over(tmp_path) == []


def test_boxes_hold_whole_chunks_and_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converting, "AT_ONCE", 2000)
    sizes: list[int] = []
    source = tessarr.create_array({}, data=np.arange(2500).reshape(50, 50), chunks=(50, 2))
    original = Worker._read

    def read(self: Any, path: str, box: Any) -> Any:
        values = original(self, path, box)
        sizes.append(values.nbytes)
        return values

    monkeypatch.setattr(Worker, "_read", read)
    target = MemoryStore()
    convert(source, target, path="a", chunks=(4, 10), jobs=2)
    assert np.array_equal(tessarr.open_array(target, path="a")[...], source[...])
    assert max(sizes) <= 1000
    assert box_shape((50, 50), (4, 10), (50, 2), 8, nbytes=100) == (4, 10)


def test_boxes_of_chunks_that_differ_stay_small_whatever_the_first_chunk_is() -> None:
    array = tessarr.create_array({}, shape=(301, 10), dtype="i8", chunks=[[1, 100, 100, 100], [4, 6]])
    found = list(boxes(array, None, 100 * 10 * 8))
    assert [rows for rows, _ in found] == [slice(0, 1), slice(1, 101), slice(101, 201), slice(201, 301)]
    assert all(columns == slice(0, 10) for _, columns in found)


# -- safety --------------------------------------------------------------------------------------------------------------


@contextmanager
def failing_after(count: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Writing fails after so many boxes."""
    written = 0
    original = tessarr.Array.__setitem__

    def fail(self: Any, key: Any, value: Any) -> None:
        nonlocal written
        written += 1
        if written > count:
            raise StoreError("the disk is full")
        original(self, key, value)

    with monkeypatch.context() as patched:
        patched.setattr(tessarr.Array, "__setitem__", fail)
        yield


@pytest.mark.parametrize("dest", ["out.zarr", "out.zip", "new/folders/out.zarr"])
def test_a_conversion_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dest: str) -> None:
    hierarchy(tmp_path / "in.zarr", 3)
    with failing_after(1, monkeypatch), pytest.raises(StoreError, match="full"):
        convert(tmp_path / "in.zarr", tmp_path / dest)
    assert [path.name for path in tmp_path.iterdir()] == ["in.zarr"]


@pytest.mark.parametrize("dest", ["out.zarr", "out.zip"])
def test_a_conversion_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dest: str
) -> None:
    hierarchy(tmp_path / "in.zarr", 3)
    tessarr.save_array(tmp_path / dest, np.arange(3))
    with failing_after(1, monkeypatch), pytest.raises(StoreError, match="full"):
        convert(tmp_path / "in.zarr", tmp_path / dest, overwrite=True)
    assert np.asarray(tessarr.open_array(tmp_path / dest, mode="r")[...]).tolist() == [0, 1, 2]
    assert left_over(tmp_path) == []


def test_in_an_open_store_a_failure_takes_back_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hierarchy(tmp_path / "in.zarr", 3)
    values: dict[str, Any] = {}
    tessarr.create_array(values, name="keep", data=np.arange(3))
    before = dict(values)
    with failing_after(1, monkeypatch), pytest.raises(StoreError, match="full"):
        convert(tmp_path / "in.zarr", values, path="new/place")
    assert {key: bytes(value) for key, value in values.items()} == {key: bytes(value) for key, value in before.items()}


def test_a_node_in_an_open_store_is_replaced_only_by_complete_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hierarchy(tmp_path / "in.zarr", 3)
    values: dict[str, Any] = {}
    tessarr.create_array(values, name="node", data=np.arange(3))
    with pytest.raises(BaseZarrError, match="destination"):
        convert(tmp_path / "in.zarr", values, path="node")
    with failing_after(1, monkeypatch), pytest.raises(StoreError, match="full"):
        convert(tmp_path / "in.zarr", values, path="node", overwrite=True)
    assert tessarr.open_array(values, path="node")[...].tolist() == [0, 1, 2]
    convert(tmp_path / "in.zarr", values, path="node", overwrite=True)
    assert list(tessarr.open_group(values)) == ["node"]
    assert np.array_equal(tessarr.open_array(values, path="node/a")[...], np.arange(400).reshape(20, 20))


def test_values_that_do_not_come_back_are_an_error(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random(50)
    np.save(tmp_path / "a.npy", values)
    lossy = [{"name": "bitround", "configuration": {"keepbits": 3}}]
    with pytest.raises(BaseZarrError, match="differ"):
        convert(tmp_path / "a.npy", tmp_path / "out.zarr", filters=lossy)
    assert not (tmp_path / "out.zarr").exists()
    assert convert(tmp_path / "a.npy", tmp_path / "out.zarr", filters=lossy, verify=False).verified is False


def test_source_and_destination_may_be_one_place(tmp_path: Path) -> None:
    hierarchy(tmp_path / "in.zarr", 2)
    convert(tmp_path / "in.zarr", tmp_path / "in.zarr", zarr_format=3, overwrite=True)
    assert tessarr.open_group(tmp_path / "in.zarr", zarr_format=3)["a"].attrs.asdict() == {}
    assert not (tmp_path / "in.zarr" / ".zgroup").exists()


def test_progress_goes_up_to_the_end(tmp_path: Path) -> None:
    hierarchy(tmp_path / "in.zarr", 3)
    told: list[tuple[int, int]] = []
    convert(tmp_path / "in.zarr", tmp_path / "out.zarr", progress=lambda done, total, _: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] > 0


def test_two_nodes_never_become_one(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", one=np.arange(2), two=np.arange(3))
    with pytest.raises(TessarrError, match="the same name"):
        convert(tmp_path / "a.npz", tmp_path / "out.zarr", rename={"two": "one"})


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(tessarr.errors.MissingDependencyError, match=r"tessarr\[convert\]"):
        convert(tmp_path / "a.h5", tmp_path / "out.zarr")


def test_plain_arrays_have_default_keys(tmp_path: Path) -> None:
    keys = {"name": "fanout", "configuration": {"max_children": 100}}
    z = tessarr.create_array(tmp_path / "a", shape=(300,), chunks=(1,), dtype="u1", chunk_key_encoding=keys)
    z[...] = 7
    convert(tmp_path / "a", tmp_path / "kept")
    convert(tmp_path / "a", tmp_path / "plain", plain=True)
    kept, plain = (tessarr.open_array(tmp_path / name) for name in ("kept", "plain"))
    assert (kept.chunk_key((299,)), plain.chunk_key((299,))) == (z.chunk_key((299,)), "c/299")
    assert np.array_equal(plain[...], z[...])
    assert main(["convert", "--plain", "--references", str(tmp_path / "a"), str(tmp_path / "r.json")]) == 2
    assert not (tmp_path / "r.json").exists()
