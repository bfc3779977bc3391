"""Packed numbers: the same as netCDF4 reads and writes them, and the same dtype for every part of an array."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessarr.conventions.cf import Packing


@pytest.mark.parametrize(
    ("dtype", "attributes"),
    [
        ("i2", {"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}),
        ("i1", {"_Unsigned": "true", "_FillValue": -1, "scale_factor": 0.5}),
        ("u1", {"valid_range": [10, 200], "_FillValue": 255, "scale_factor": 2.0}),
        ("i2", {"valid_min": -100, "missing_value": 7, "scale_factor": 1.5}),
        ("i4", {"add_offset": -5.0}),
        ("i1", {"_Unsigned": "true", "valid_range": [3, -6], "_FillValue": -1, "scale_factor": 0.5}),
        ("i2", {"_Unsigned": "true", "valid_min": 5, "valid_max": -300, "_FillValue": -1}),
    ],
)
def test_decoding_is_that_of_netcdf4(dtype: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4", reason="the extra convert is not installed")
    info = np.iinfo(dtype)
    stored = np.random.default_rng(0).integers(info.min, info.max, 500, dtype, endpoint=True)
    stored[:3] = [attributes.get("_FillValue", 7), 7, info.min]
    with netcdf.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("x", 500)
        variable = file.createVariable("v", dtype, ("x",), fill_value=attributes.get("_FillValue", False))
        variable.setncatts({
            name: np.array(value, dtype) if name.startswith(("valid", "missing")) else value
            for name, value in attributes.items() if name != "_FillValue"
        })  # fmt: skip
        variable.set_auto_maskandscale(False)
        variable[:] = stored
    with netcdf.Dataset(tmp_path / "x.nc") as file:
        theirs = np.ma.filled(file["v"][:].astype("f8"), np.nan)
    np.testing.assert_allclose(Packing.read(attributes).decode(stored), theirs, rtol=1e-15)


def test_the_dtype_of_decoded_values_does_not_depend_on_the_values() -> None:
    for attributes in ({"_FillValue": -1}, {"valid_max": 9}, {"scale_factor": 2}):
        packing = Packing.read(attributes)
        assert packing.decode(np.array([1, 2], "i4")).dtype == packing.decode(np.array([-1, 99], "i4")).dtype == "f8"
    assert Packing.read({"_FillValue": -1.0}).decode(np.array([-1, 2], "f4")).dtype == "f4"
    assert Packing.read({"units": "K"}).decode(np.array([1], "i4")).dtype == "i4"


def test_text_and_dates_are_given_as_stored() -> None:
    for values, missing in ((np.array(["", "a"]), ""), (np.array([b"x", b"y"]), b"x")):
        packing = Packing(missing=(missing,))
        assert packing.decode(values).tolist() == values.tolist()
        assert packing.mask(values).tolist() == [True, False]


@pytest.mark.parametrize("fill", [-1, 255])
def test_unsigned_numbers_stored_as_signed_ones_are_packed_again(fill: int) -> None:
    packing = Packing.read({"_Unsigned": "true", "_FillValue": fill, "scale_factor": 0.5})
    meant = np.array([0.0, 63.5, 64.0, 127.0, np.nan])
    stored = packing.encode(meant, np.dtype("i1"))
    assert stored.dtype == "i1"
    assert stored.tolist() == [0, 127, -128, -2, -1]
    np.testing.assert_array_equal(packing.decode(stored), meant)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "u8"])
def test_what_does_not_fit_is_refused_at_the_very_limit(dtype: str) -> None:
    limits = np.iinfo(dtype)
    packing = Packing()
    with pytest.raises(OverflowError):
        packing.encode([float(limits.max) + 1], np.dtype(dtype))
    with pytest.raises(OverflowError):
        packing.encode([np.inf], np.dtype(dtype))
    assert packing.encode([float(limits.min)], np.dtype(dtype)).tolist() == [limits.min]


def test_nothing_is_divided_by_a_scale_of_zero() -> None:
    with pytest.raises(ValueError, match="scale_factor is 0"):
        Packing.read({"scale_factor": 0}).encode([1.0], np.dtype("i2"))


def test_a_list_of_one_number_is_that_number() -> None:
    attributes = {"scale_factor": [0.5], "add_offset": [2], "valid_max": [9], "_FillValue": [-1]}
    assert np.array_equal(Packing.read(attributes).decode(np.array([4, 10, -1])), [4.0, np.nan, np.nan], equal_nan=True)
    assert Packing.read({"scale_factor": np.float32(0.5)}).scale == 0.5


@pytest.mark.parametrize("name", ["scale_factor", "add_offset", "valid_min", "valid_max"])
@pytest.mark.parametrize("value", ["0.1", [1, 2], {}, True])
def test_a_scale_that_is_no_number_is_refused_and_not_left_out(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a number"):
        Packing.read({name: value})


def test_the_fill_value_of_a_v2_array_counts_as_missing_where_that_is_asked_for() -> None:
    stored = np.array([-1, 5], "i2")
    for fill in (-1, np.int16(-1)):
        assert np.isnan(Packing.read({}, fill_value=fill).decode(stored)[0])
    assert Packing.read({"_FillValue": 5}, fill_value=-1).missing == (5,)
    assert Packing.read({}, zarr_format=3, fill_value=-1).missing == ()
    assert Packing.read({}).missing == ()


def test_a_complex_missing_value_is_one_value_and_may_be_nan() -> None:
    one = Packing.read({"_FillValue": ["AAAAAAAA8D8=", "AAAAAAAAAEA="]}, kind="c", zarr_format=3)
    assert one.missing == (1 + 2j,)
    nan = Packing.read({"_FillValue": ["AAAAAAAA+H8=", "AAAAAAAA+H8="]}, kind="c", zarr_format=3)
    assert nan.mask(np.array([complex("nan"), 1])).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "f4", "f8", ">i2", ">f4"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": 5}, {"_FillValue": 5}, {"missing_value": [5, 6]},
        {"_FillValue": 5, "missing_value": 6}, {"_Unsigned": "true"}, {"_Unsigned": "true", "_FillValue": -1},
        {"_Unsigned": "false", "_FillValue": -1}, {"scale_factor": 0.5}, {"add_offset": 2},
    ],
)  # fmt: skip
def test_decoding_is_that_of_xarray(dtype: str, attributes: dict[str, Any]) -> None:
    import xarray

    kind = np.dtype(dtype).kind
    attributes = dict(attributes)
    if "_Unsigned" in attributes:  # of integers only, and where it says something
        if kind == "f":
            del attributes["_Unsigned"]
        else:
            attributes["_Unsigned"] = "true" if kind == "i" else "false"
    if kind == "u" and attributes.get("_FillValue") == -1 and "_Unsigned" not in attributes:
        attributes["_FillValue"] = int(np.iinfo(dtype).max)
    stored = np.array([0, 1, 5, 6, 100, 127], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = xarray.conventions.decode_cf_variable("v", xarray.Variable(("x",), stored, dict(attributes))).values
    mine = Packing.read(attributes, kind=kind).decode(stored)
    np.testing.assert_allclose(mine.astype("f8"), theirs.astype("f8"), rtol=1e-6)
