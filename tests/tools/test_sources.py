"""Files that are cut, damaged, or hold rows of different lengths."""

from __future__ import annotations

import subprocess
import sys
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import BaseZarrError, StoreError
from tessarr.tools.convert import convert
from tessarr.tools.diff import diff
from tessarr.tools.sources import base
from tests.stores.contract import child_environment


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
@pytest.mark.parametrize("variables", [1, 2])
@pytest.mark.parametrize("records", [0, 3])
def test_a_netcdf_3_file_that_is_cut_is_refused_at_every_length(
    tmp_path: Path, form: Any, variables: int, records: int
) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    place = tmp_path / "a.nc"
    with netCDF4.Dataset(place, "w", format=form) as file:
        file.title = "a title"
        file.createDimension("time", None)
        file.createDimension("x", 3)
        for number in range(variables):
            variable = file.createVariable(f"v{number}", "i2", ("time", "x"))
            variable.units = "m"
            if records:
                variable[:records] = np.arange(3 * records).reshape(records, 3) + 1
        file.createVariable("fixed", "f8", ("x",))[:] = 1
    convert(place, tmp_path / "whole.zarr")
    whole = place.read_bytes()
    end = len(whole) - 3  # the last values are padded to four bytes
    for length in {end, end // 2, 40, 9, *range(end - 20, end)}:
        place.write_bytes(whole[:length])
        with pytest.raises(StoreError, match="truncated"):
            convert(place, tmp_path / "cut.zarr")
    assert not (tmp_path / "cut.zarr").exists()


@pytest.mark.parametrize("suffix", ["npy", "h5", "tif"])
def test_a_file_that_is_cut_is_an_error_that_names_it(tmp_path: Path, suffix: str) -> None:
    place, values = tmp_path / f"a.{suffix}", np.arange(4096, dtype="u2").reshape(64, 64)
    if suffix == "npy":
        np.save(place, values)
    elif suffix == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(place, "w") as file:
            file["a"] = values
    else:
        pytest.importorskip("tifffile").imwrite(place, values)
    place.write_bytes(place.read_bytes()[:-1000])
    with pytest.raises(StoreError, match=f"a.{suffix}") as caught:
        convert(place, tmp_path / "cut.zarr")
    assert "truncated or damaged" in str(caught.value)


def test_rows_of_different_lengths_become_ragged_arrays_of_version_2(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        rows = file.create_dataset("rows", (2, 2), dtype=h5py.vlen_dtype(np.int32))
        rows[0, 0], rows[1, 1] = [1, 2], [3]
    convert(tmp_path / "a.h5", tmp_path / "a.zarr", zarr_format=2)
    z = tessarr.open_array(tmp_path / "a.zarr", path="rows", mode="r")
    assert [row.tolist() for row in z[:].ravel()] == [[1, 2], [], [], [3]]
    assert not diff(tmp_path / "a.zarr", tmp_path / "a.zarr", data=True).values
    with pytest.raises(BaseZarrError, match="/rows: Zarr v3 cannot store"):
        convert(tmp_path / "a.h5", tmp_path / "b.zarr")


def test_rows_that_h5py_gives_wrongly_are_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        rows = file.create_dataset("rows", (1,), dtype=h5py.vlen_dtype(np.dtype(np.int32).newbyteorder("S")))
        rows[0] = [1, 2]
    with pytest.raises(BaseZarrError, match="foreign byte order"):
        convert(tmp_path / "a.h5", tmp_path / "a.zarr", zarr_format=2)


def test_netcdf_rows_become_ragged_arrays_too(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 2)
        rows = file.createVariable("rows", file.createVLType("f8", "rows_of_f8"), ("x",))
        rows[0] = np.array([1.5, 2.5])
    convert(tmp_path / "a.nc", tmp_path / "a.zarr", zarr_format=2)
    z = tessarr.open_array(tmp_path / "a.zarr", path="rows", mode="r")
    assert [row.tolist() for row in z[:]] == [[1.5, 2.5], []]


THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from tessarr.tools.convert import convert
files, target = sys.argv[1:]
for number in range(5):
    convert(f"{files}/*", f"{target}/{number}", along="t", jobs=8)
with ThreadPoolExecutor(4) as pool:
    done = [pool.submit(convert, f"{files}/*", f"{target}/{n}", along="t", jobs=2) for n in range(5, 9)]
    [one.result() for one in done]
"""


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_many_files_of_a_library_that_threads_may_not_use_at_once_are_converted_by_threads(
    tmp_path: Path, form: Any
) -> None:
    """In a process of its own, which the library ended by SIGSEGV."""
    netCDF4 = pytest.importorskip("netCDF4")
    (tmp_path / "files").mkdir()
    for number in range(24):
        with netCDF4.Dataset(tmp_path / "files" / f"{number:02}.nc", "w", format=form) as file:
            file.createDimension("t", 2)
            file.createVariable("t", "i4", ("t",))[:] = [2 * number, 2 * number + 1]
            file.createVariable("a", "f4", ("t",), zlib=form == "NETCDF4")[:] = number
    arguments = [sys.executable, "-c", THREADS, str(tmp_path / "files"), str(tmp_path)]
    ended = subprocess.run(arguments, capture_output=True, text=True, env=child_environment())
    assert ended.returncode == 0, ended.stderr
    for number in range(9):
        assert tessarr.open_array(tmp_path / str(number), path="a")[...].tolist() == np.repeat(range(24), 2).tolist()


@pytest.mark.parametrize("layout", [(0, 1), (1, -2), {"x": 0}, 0])
@pytest.mark.parametrize("what", ["chunks", "shards"])
def test_chunks_of_no_length_are_refused(tmp_path: Path, what: str, layout: Any) -> None:
    np.save(tmp_path / "a.npy", np.arange(12).reshape(3, 4))
    with pytest.raises(BaseZarrError, match=f"{what}: lengths are positive"):
        convert(tmp_path / "a.npy", tmp_path / "a.zarr", **{what: layout})


@pytest.mark.parametrize("after", [2, 3])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (bytes, b"a\0"), (bytes, b""), (str, "a\0"), ("S3", b"\xff"), ("<U3", "a"), (">f4", -0.0), ("<M8[s]", "NaT"),
        ([("a", "<i2"), ("b", "<f8")], (1, 2.5)), ("bfloat16", 1.5), ("r24", b"abc"),
    ],
)  # fmt: skip
def test_a_scalar_of_any_type_is_converted_and_compared(tmp_path: Path, after: int, dtype: Any, value: Any) -> None:
    z = tessarr.create_array(tmp_path / "a.zarr", shape=(), dtype=dtype)
    z[...] = np.array(value, z.dtype) if z.dtype.names else value
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr", zarr_format=after)
    found = tessarr.open_array(tmp_path / "b.zarr", mode="r")[()]
    assert repr(found) == repr(z[()])
    assert not diff(tmp_path / "b.zarr", tmp_path / "b.zarr", data=True).values


@pytest.mark.parametrize("value", [[1, 2], {"a": [None]}, "text", None])
def test_a_scalar_object_is_converted(tmp_path: Path, value: Any) -> None:
    z = tessarr.create_array(tmp_path / "a.zarr", shape=(), dtype=object, object_codec="json2", zarr_format=2)
    boxed = np.empty((), object)
    boxed[()] = value
    z[...] = boxed
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr", zarr_format=2)
    assert tessarr.open_array(tmp_path / "b.zarr", mode="r")[()] == value


@pytest.mark.parametrize("part", [3, 64, 200, 16 << 20])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (0,), (6, 2), (4, 0, 3), (5, 6, 7), (1, 1, 9)])
@pytest.mark.parametrize("between", [0, 5])
def test_elements_without_chunks_are_described_as_chunks_of_whole_parts(
    part: int, shape: tuple[int, ...], between: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long rows are cut, so that no reader holds one. `between`: bytes of others between rows."""
    monkeypatch.setattr(base, "_PART", part)
    values = np.arange(prod(shape), dtype="<i4").reshape(shape)
    rows = [row.tobytes() for row in (values if shape else [values])]
    data = bytes(11) + b"".join(row + bytes(between) for row in rows)
    stride = len(rows[0]) + between if between and rows else None
    found = base.contiguous(shape, values.dtype, 11, stride=stride)
    made = np.full(shape, -1, "<i4")
    for index in np.ndindex(found.offsets.shape):
        start, nbytes = int(found.offsets[index]), int(found.nbytes[index])
        assert nbytes <= max(part, 4 * (found.chunks[-1:] or (1,))[0])
        box = tuple(slice(at * size, (at + 1) * size) for at, size in zip(index, found.chunks, strict=True))
        made[box] = np.frombuffer(data[start : start + nbytes], "<i4").reshape(found.chunks)
    assert (made == values).all()
