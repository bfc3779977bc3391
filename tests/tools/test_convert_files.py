"""Many files joined along a dimension, by references to their chunks, against what xarray reads from the same files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.cli import main
from tessarr.errors import BaseZarrError, ConflictError, StoreError, UnsupportedOperationError
from tessarr.tools.convert import convert, save_file_references
from tessarr.tools.files.joined import FilesSource
from tessarr.tools.files.open import open_to_convert
from tessarr.tools.files.scan import scan
from tessarr.tools.sources.base import SourceArray, StoredChunks
from tests.narrow import array_of

netcdf4 = pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
h5py = pytest.importorskip("h5py", reason="belongs to the extra [convert]")
xarray = pytest.importorskip("xarray", reason="belongs to the extra [xarray]")
pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
FORMATS = ["NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"]


def write(
    place: Path, start: int, *, count: int = 5, form: str = "NETCDF4", units: str = "K", north: float = 0.0, kind: str = "i2",
    scale: object = 0.01, offset: object = 273.0, chunks: Sequence[int] = (1, 4, 10),
) -> str:  # fmt: skip
    """Write some hours of packed temperatures, with missing ones."""
    with netcdf4.Dataset(place, "w", format=form) as file:
        file.title = "made up"
        file.createDimension("time", None)
        for name, values in (("lat", north - np.arange(8.0)), ("lon", np.arange(10.0))):
            file.createDimension(name, len(values))
            file.createVariable(name, "f4", (name,))[:] = values
        time = file.createVariable("time", "f8", ("time",))
        time.units = "hours since 2020-01-01"
        time[:] = start + np.arange(count)
        file.createVariable("mask", "i1", ("lat", "lon"))[:] = np.eye(8, 10, dtype="i1")
        file.createVariable("crs", "i4", ())[...] = 7
        options: dict[str, Any] = (
            {"zlib": True, "shuffle": True, "fletcher32": True, "chunksizes": chunks} if form == "NETCDF4" else {}
        )
        t2m = file.createVariable("t2m", kind, ("time", "lat", "lon"), fill_value=-99, **options)
        t2m.set_auto_maskandscale(False)
        t2m.units = units
        t2m.scale_factor, t2m.add_offset = scale, offset
        values = np.random.default_rng(start).integers(-90, 1000, (count, 8, 10)).astype(kind)
        values[0, 0, 0] = -99
        t2m[:] = values
    return str(place)


@pytest.fixture(params=FORMATS)
def days(tmp_path: Path, request: pytest.FixtureRequest) -> list[str]:
    return [write(tmp_path / f"day{number}.nc", 5 * number, form=request.param) for number in range(4)]


def read_by_xarray(days: list[str], **options: Any) -> Any:
    options = {"data_vars": "minimal", "coords": "minimal", "compat": "override", **options}
    return xarray.open_mfdataset(days, combine="by_coords", **options).load()


def in_xarray(place: Path | str, **options: Any) -> Any:
    pytest.importorskip("zarr", reason="xarray reads Zarr by zarr-python")
    return xarray.open_zarr(place, consolidated=False, **options).load()


# -- values --------------------------------------------------------------------------------------------------------------


def test_files_become_one_hierarchy(days: list[str], tmp_path: Path) -> None:
    report = convert(days, tmp_path / "out.zarr")
    assert (report.verified, report.kind) == (True, "netcdf")
    xarray.testing.assert_identical(in_xarray(tmp_path / "out.zarr"), read_by_xarray(days))
    group = tessarr.open_group(tmp_path / "out.zarr", mode="r")
    assert array_of(group["time"]).chunks == (20,)
    assert array_of(group["t2m"]).attrs["scale_factor"] == pytest.approx(0.01)


@pytest.mark.parametrize(("scale", "offset", "kind", "dtype"), [
    (0.01, 273.0, "i2", "f8"), (np.float32(0.01), np.float32(273), "i2", "f4"), (np.float32(0.5), np.float32(1), "i4", "f8"),
    (np.float32(0.5), 1.0, "i2", "f8"),
])  # fmt: skip
def test_packing_can_be_undone(tmp_path: Path, scale: object, offset: object, kind: str, dtype: str) -> None:
    days = [write(tmp_path / f"{n}.nc", 5 * n, scale=scale, offset=offset, kind=kind) for n in range(2)]
    convert(days, tmp_path / "out.zarr", unpack=True)
    ours, theirs = in_xarray(tmp_path / "out.zarr"), read_by_xarray(days)
    xarray.testing.assert_identical(ours, theirs)
    stored = array_of(tessarr.open_group(tmp_path / "out.zarr", mode="r")["t2m"])
    assert (stored.dtype, theirs["t2m"].dtype) == (np.dtype(dtype), np.dtype(dtype))
    assert "scale_factor" not in stored.attrs


def test_one_file_and_a_pattern_are_the_same_command(days: list[str], tmp_path: Path) -> None:
    assert main(["convert", days[0], str(tmp_path / "one.zarr")]) == 0
    xarray.testing.assert_identical(in_xarray(tmp_path / "one.zarr"), xarray.open_dataset(days[0]).load())
    pattern = str(tmp_path / "day*.nc")
    assert main(["convert", pattern, str(tmp_path / "all.zarr"), "--chunks", "time=7", "--jobs", "2"]) == 0
    xarray.testing.assert_identical(in_xarray(tmp_path / "all.zarr"), read_by_xarray(days))
    group = tessarr.open_group(tmp_path / "all.zarr", mode="r")
    assert (array_of(group["t2m"]).chunks[0], array_of(group["time"]).chunks) == (7, (20,))


def test_files_are_ordered_by_their_coordinate_and_scanned_by_any_executor(days: list[str], tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as executor:
        convert(days[::-1], tmp_path / "out.zarr", executor=executor)
    assert array_of(tessarr.open_group(tmp_path / "out.zarr", mode="r")["time"])[...].tolist() == list(range(20))


def test_files_of_other_packing_are_joined_when_it_is_undone(tmp_path: Path) -> None:
    days = [
        write(tmp_path / f"{n}.nc", 5 * n, scale=np.float32(0.01 * (n + 1)), offset=np.float32(n)) for n in range(3)
    ]
    with pytest.raises(BaseZarrError, match=r"1\.nc: /t2m: scale_factor"):
        convert(days, tmp_path / "out.zarr")
    convert(days, tmp_path / "out.zarr", unpack=True)
    theirs = np.concatenate([xarray.open_dataset(day)["t2m"].values for day in days])
    np.testing.assert_array_equal(array_of(tessarr.open_group(tmp_path / "out.zarr", mode="r")["t2m"])[...], theirs)


def test_chunks_that_end_elsewhere_are_joined_too(tmp_path: Path) -> None:
    days = [write(tmp_path / f"{n}.nc", 5 * n, chunks=(3, 8, 10)) for n in range(3)]
    convert(days, tmp_path / "out.zarr")
    xarray.testing.assert_identical(in_xarray(tmp_path / "out.zarr"), read_by_xarray(days))


def test_what_only_the_package_reads_is_joined_too(tmp_path: Path) -> None:
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["names"] = np.array([f"a{number}", "b"], dtype=h5py.string_dtype())
            file["names"].dims[0].label = "row"
            file.create_dataset("n", data=np.arange(2) + 10 * number, chunks=(2,), scaleoffset=0)
            file["n"].dims[0].label = "row"
    convert(str(tmp_path / "?.h5"), tmp_path / "out.zarr", along="row")
    group = tessarr.open_group(tmp_path / "out.zarr", mode="r")
    assert array_of(group["names"])[...].tolist() == ["a0", "b", "a1", "b"]
    assert array_of(group["n"])[...].tolist() == [0, 1, 10, 11]
    with pytest.raises(UnsupportedOperationError, match="scaleoffset"):
        save_file_references(str(tmp_path / "?.h5"), tmp_path / "r.json", along="row", exclude=["names"])


def test_chunks_that_one_file_lacks_hold_its_own_fill_value(tmp_path: Path) -> None:
    for number in range(3):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            x = file.create_dataset("x", shape=(4,), dtype="i2", chunks=(2,), fillvalue=5 + number)
            x.dims[0].label = "row"
            x.attrs["_FillValue"] = np.int16(-1)
            x[0 : 2 if number else 4] = 1
    convert(str(tmp_path / "?.h5"), tmp_path / "out.zarr", along="row")
    found = array_of(tessarr.open_group(tmp_path / "out.zarr", mode="r")["x"])[...]
    assert found.tolist() == [1, 1, 1, 1, 1, 1, 6, 6, 1, 1, 7, 7]


def write_step(place: Path, hour: float, *, crs: int = 7) -> None:
    """Write a file of one time, which is a scalar."""
    with netcdf4.Dataset(place, "w") as file:
        file.createDimension("x", 4)
        for name, value in (("time", hour), ("valid_time", hour + 6)):
            scalar = file.createVariable(name, "f8", ())
            scalar.units = "hours since 2020-01-01"
            scalar[...] = value
        file.createVariable("crs", "i4", ())[...] = crs
        values = file.createVariable("a", "f4", ("x",), zlib=True)
        values.coordinates = "time valid_time"
        values[:] = hour + np.arange(4)


def test_scalars_that_differ_between_files_become_values_along_a_new_dimension(tmp_path: Path) -> None:
    """As in files of one time each, which are put in the order of their times."""
    for name, hour in (("a", 12), ("b", 0), ("c", 6)):
        write_step(tmp_path / f"{name}.nc", hour)
    convert(str(tmp_path / "?.nc"), tmp_path / "out.zarr", along="time", jobs=2)
    made = xarray.open_dataset(tmp_path / "out.zarr", engine="tessarr", decode_times=False, consolidated=False)
    assert made["a"].dims == ("time", "x")
    assert made["time"].values.tolist() == [0, 6, 12]
    assert (made["valid_time"].dims, made["valid_time"].values.tolist()) == (("time",), [6, 12, 18])
    assert (made["crs"].dims, int(made["crs"])) == ((), 7)
    np.testing.assert_array_equal(made["a"], made["time"].values[:, None] + np.arange(4))
    save_file_references(str(tmp_path / "?.nc"), tmp_path / "refs.json", along="time")
    np.testing.assert_array_equal(tessarr.open_array(f"reference:{tmp_path}/refs.json", path="a")[...], made["a"])
    write_step(tmp_path / "d.nc", 6)
    with pytest.raises(BaseZarrError, match=r"c\.nc and d\.nc: time goes back, or stays"):
        convert(str(tmp_path / "?.nc"), tmp_path / "other.zarr", along="time")


def test_files_can_be_stacked_along_a_new_dimension(tmp_path: Path) -> None:
    planes = [np.arange(6, dtype="u1").reshape(2, 3) + number for number in range(3)]
    for number, plane in enumerate(planes):
        np.save(tmp_path / f"{number}.npy", plane)
    convert(str(tmp_path / "*.npy"), tmp_path / "out.zarr", along="z")
    stacked = tessarr.open_array(tmp_path / "out.zarr", mode="r")
    np.testing.assert_array_equal(stacked[...], planes)
    assert stacked.dims == ("z", None, None)


# -- references ----------------------------------------------------------------------------------------------------------


def test_references_are_what_xarray_reads_from_the_files(days: list[str], tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="belongs to the extra [fsspec]")
    count = save_file_references(days, tmp_path / "refs.json")
    refs = json.loads((tmp_path / "refs.json").read_text())["refs"]
    assert sum(isinstance(value, list) for value in refs.values()) == count
    assert [key for key in refs if key.startswith("time/c")] == ["time/c/0"]  # inline, and one chunk
    theirs = in_xarray("reference://", storage_options={"fo": str(tmp_path / "refs.json")})
    xarray.testing.assert_identical(theirs, read_by_xarray(days))
    ours = tessarr.open_group(f"reference:{tmp_path}/refs.json", mode="r")
    convert(ours, tmp_path / "out.zarr")
    xarray.testing.assert_identical(in_xarray(tmp_path / "out.zarr"), read_by_xarray(days))


def test_references_of_format_2_are_what_xarray_reads_from_the_files(days: list[str], tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="belongs to the extra [fsspec]")
    assert main(["convert", *days, str(tmp_path / "refs.json"), "--references", "--format", "2"]) == 0
    refs = json.loads((tmp_path / "refs.json").read_text())["refs"]
    assert {".zgroup", "t2m/.zarray", "t2m/.zattrs", "t2m/7.0.0", "time/0"} <= refs.keys()
    assert json.loads(refs["mask/.zarray"])["fill_value"] is None  # 0 would mean that zeros are missing
    # VirtualiZarr reads codecs only among the filters.
    assert all(json.loads(text)["compressor"] is None for key, text in refs.items() if key.endswith(".zarray"))
    theirs = in_xarray("reference://", storage_options={"fo": str(tmp_path / "refs.json")})
    xarray.testing.assert_identical(theirs, read_by_xarray(days))
    ours = tessarr.open_group(f"reference:{tmp_path}/refs.json", mode="r")
    np.testing.assert_array_equal(array_of(ours["t2m"])[...], read_by_xarray(days, mask_and_scale=False)["t2m"].values)


def test_references_are_kept_as_manifests(days: list[str], tmp_path: Path) -> None:
    assert main(["convert", *days, str(tmp_path / "refs.zarr"), "--references"]) == 0
    options = {"manifest": {"allow": [str(tmp_path)]}}
    group = tessarr.open_group(tmp_path / "refs.zarr", mode="r", storage_options=options)
    raw = read_by_xarray(days, mask_and_scale=False)
    np.testing.assert_array_equal(array_of(group["t2m"])[...], raw["t2m"].values)
    assert array_of(group["time"])[...].tolist() == list(range(20))
    assert group.attrs["title"] == "made up"


@pytest.mark.parametrize("name", ["contiguous", "shuffled", "big", "absent", "edge", "scalar", "empty", "complex"])
def test_chunks_of_hdf5_are_where_the_scan_says(tmp_path: Path, name: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["contiguous"] = np.arange(12, dtype="f4").reshape(3, 4)
        file.create_dataset("shuffled", data=np.arange(100).reshape(10, 10), chunks=(4, 3), compression=4, shuffle=True)
        file.create_dataset("big", data=np.arange(30, dtype=">i4"), chunks=(8,), fletcher32=True)
        file.create_dataset("absent", shape=(9,), dtype="i2", chunks=(2,), fillvalue=5)[3] = 1
        file.create_dataset("edge", data=np.arange(5), chunks=(3,), maxshape=(None,))
        file["scalar"] = 2.5
        file["empty"] = np.zeros((0, 3))
        file["complex"] = np.array([1 + 2j, 3])
        expected = file[name][...]
    scanned = scan(str(tmp_path / "a.h5")).arrays
    assert isinstance(scanned[name].stored, StoredChunks)
    save_file_references(tmp_path / "a.h5", tmp_path / "refs.json", include=[name])
    found = array_of(tessarr.open_group(f"reference:{tmp_path}/refs.json", mode="r")[name])[...]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("name", "reason"), [
    ("scaled", "scaleoffset"), ("text", "not plain"), ("compact", "header"), ("view", "view of datasets"),
    ("odd", "form that NumPy"),
])  # fmt: skip
def test_what_has_no_place_says_why(tmp_path: Path, name: str, reason: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("scaled", data=np.arange(10), chunks=(5,), scaleoffset=0)
        file["text"] = np.array([b"ab", b"c"])
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((4,))
        h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_INT32, space, plist)
        view = h5py.VirtualLayout(shape=(10,), dtype="i8")
        view[:] = h5py.VirtualSource(file["scaled"])
        file.create_virtual_dataset("view", view)
        odd = h5py.h5t.NATIVE_INT32.copy()
        odd.set_precision(20)
        h5py.h5d.create(file.id, b"odd", odd, space)
    stored = scan(str(tmp_path / "a.h5")).arrays[name].stored
    assert isinstance(stored, str)
    assert reason in stored


def test_references_of_big_arrays_in_one_piece_are_cut(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", shape=(6, 1 << 22), dtype="i4")[2, 5] = 7
    stored = scan(str(tmp_path / "a.h5")).arrays["x"].stored
    assert isinstance(stored, StoredChunks)
    assert stored.chunks == (1, 1 << 22)
    source = open_to_convert(tmp_path / "a.h5")
    (node,) = [node for node in source.nodes if isinstance(node, SourceArray)]
    assert node.read((slice(2, 3), slice(4, 7))).tolist() == [[0, 7, 0]]
    source.close()


# -- what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "told"), [
    ({"units": "degC"}, r"b\.nc: /t2m: units 'degC', where a\.nc has 'K'"),
    ({"north": 4.0}, r"b\.nc: /lat: values differ"),
    ({"kind": "i4"}, r"b\.nc: /t2m: data type 'int32', where a\.nc has 'int16'"),
    ({"offset": np.float32(1)}, r"b\.nc: /t2m: add_offset 1\.0"),
    ({"start": 6}, r"a\.nc and b\.nc: time has a gap from 4\.0 to 6\.0"),
    ({"start": 3}, r"a\.nc and b\.nc: time goes back, or stays, from 4\.0 to 3\.0"),
])  # fmt: skip
def test_files_that_disagree_are_named_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    days = [write(tmp_path / "a.nc", 0), write(tmp_path / "b.nc", **{"start": 5, **changes})]
    with pytest.raises(BaseZarrError, match=told):
        convert(days, tmp_path / "out.zarr", along="time")
    assert main(["convert", *days, str(tmp_path / "out.zarr"), "--along", "time"]) == 2
    assert "b.nc" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["a.nc", "b.nc"]


def test_a_first_file_that_is_unlike_the_others_is_named_not_these(tmp_path: Path) -> None:
    days = [write(tmp_path / f"{n}.nc", 5 * n, units="K" if n else "degC") for n in range(4)]
    with pytest.raises(BaseZarrError, match=r"0\.nc: /t2m: units 'degC', where 1\.nc has 'K'") as error:
        convert(days, tmp_path / "out.zarr", along="time")
    assert str(error.value).count("units") == 1


def test_files_of_one_name_are_told_apart_by_their_places(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).mkdir()
    days = [write(tmp_path / str(n) / "t2m.nc", 5 * n, units="degC" if n == 2 else "K") for n in range(3)]
    with pytest.raises(BaseZarrError, match=r"2.t2m\.nc: /t2m: units 'degC', where \S*0.t2m\.nc has 'K'"):
        convert(days, tmp_path / "out.zarr", along="time")


def test_a_gap_can_be_allowed(tmp_path: Path) -> None:
    days = [write(tmp_path / "a.nc", 0), write(tmp_path / "b.nc", 9)]
    convert(days, tmp_path / "out.zarr", gaps=True)
    time = array_of(tessarr.open_group(tmp_path / "out.zarr", mode="r")["time"])
    assert time[...].tolist() == [0, 1, 2, 3, 4, 9, 10, 11, 12, 13]


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_is_cut_off_is_named(tmp_path: Path, form: str) -> None:
    days = [write(tmp_path / f"{n}.nc", 5 * n, form=form) for n in range(3)]
    os.truncate(days[1], os.path.getsize(days[1]) - 100)
    with pytest.raises(StoreError, match=r"1\.nc"):
        convert(days, tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()


def test_other_arrays_than_the_first_has_are_named(tmp_path: Path) -> None:
    days = [write(tmp_path / f"{n}.nc", 5 * n) for n in range(2)]
    with netcdf4.Dataset(days[1], "a") as file:
        file.renameVariable("mask", "land")
    with pytest.raises(BaseZarrError, match=r"1\.nc: it has no array /mask(.|\n)*1\.nc: /land is not in 0\.nc"):
        convert(days, tmp_path / "out.zarr")


def test_the_dimension_must_be_clear(tmp_path: Path) -> None:
    days = [write(tmp_path / "a.nc", 0), write(tmp_path / "b.nc", 5, north=9.0)]
    with pytest.raises(BaseZarrError, match=r"lat, time.*along"):
        convert(days, tmp_path / "out.zarr")
    with pytest.raises(StoreError, match="no file matches"):
        convert(str(tmp_path / "*.none"), tmp_path / "out.zarr")
    with pytest.raises(BaseZarrError, match="no files"):
        convert([], tmp_path / "out.zarr")


def test_a_file_that_changes_meanwhile_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = [write(tmp_path / f"{n}.nc", 5 * n) for n in range(2)]
    check = FilesSource.check_unchanged

    def changed(source: FilesSource) -> None:
        os.utime(days[1], ns=(1, 1))
        check(source)

    monkeypatch.setattr(FilesSource, "check_unchanged", changed)
    with pytest.raises(ConflictError, match=r"1\.nc"):
        convert(days, tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()


def test_a_long_coordinate_is_one_chunk_too(tmp_path: Path) -> None:
    """Its values are more than a table of files keeps, and its file has them in many chunks."""
    netcdf4 = pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
    with netcdf4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("time", None)
        file.createVariable("time", "f8", ("time",), chunksizes=(8192,))[:] = np.arange(200_000)
        file.createVariable("v", "i2", ("time",), chunksizes=(50_000,))[:] = np.arange(200_000) % 1000
    convert(tmp_path / "a.nc", tmp_path / "a.zarr")
    group = tessarr.open_group(tmp_path / "a.zarr")
    assert (array_of(group["time"]).chunks, array_of(group["v"]).chunks) == ((200_000,), (50_000,))
    assert np.array_equal(array_of(group["time"])[...], np.arange(200_000.0))


def test_coordinates_of_zarr_become_one_chunk_where_others_are_cut(tmp_path: Path) -> None:
    group = tessarr.create_group(tmp_path / "a")
    group.create_array("time", data=np.arange(40), chunks=(4,), dimension_names=["time"])
    group.create_array("v", data=np.ones((40, 6)), chunks=(4, 6), dimension_names=["time", "x"])
    found = {}
    for name, chunks in (("kept", "keep"), ("cut", {"time": 20, "x": 2})):
        convert(tmp_path / "a", tmp_path / name, chunks=chunks)
        made = tessarr.open_group(tmp_path / name)
        found[name] = array_of(made["time"]).chunks, array_of(made["v"]).chunks
    assert found == {"kept": ((4,), (4, 6)), "cut": ((40,), (20, 2))}


def test_files_whose_times_differ_only_in_their_units_are_named(tmp_path: Path) -> None:
    """As xarray writes them unless told otherwise: days since the first day of each file."""
    netcdf4 = pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
    for number in range(2):
        with netcdf4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("time", None)
            time = file.createVariable("time", "i8", ("time",))
            time.units = f"days since 2000-01-{1 + 10 * number:02}"
            time[:] = np.arange(10)
    with pytest.raises(BaseZarrError, match=r"1\.nc: /time: units 'days since 2000-01-11', where 0\.nc has"):
        convert(f"{tmp_path}/*.nc", tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()
