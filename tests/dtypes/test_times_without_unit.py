"""Times without a unit (NumPy's ``generic``): their counts are kept exactly, in both byte orders, by both engines."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import tessarr
from tessarr.as_zarr import _alias
from tessarr.errors import DataTypeValidationError, MetadataValidationError, ZarrRuntimeWarning
from tessarr.metadata import formats
from tessarr.model.conversion.downgrade import array_to_v2
from tessarr.settings import config
from tessarr.storage import MemoryStore
from tessarr.tools.check import check

COUNTS = [0, 1, -2, 100]
NAT = -(2**63)


@pytest.fixture(params=["native", "reference"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with config.set({"engine": request.param}):
        yield request.param


def counts(values: object) -> list[int]:
    """The counts that an array holds, by its own byte order."""
    array = np.asarray(values)
    return [int(count) for count in array.view(array.dtype.byteorder.replace("|", "=") + "i8")]


def old_array(dtype: str) -> MemoryStore:
    """A v2 array of a dtype, as numcodecs writes its chunks."""
    document = {
        "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": dtype, "compressor": None, "fill_value": None,
        "order": "C", "filters": None,
    }  # fmt: skip
    store = MemoryStore()
    store.set(".zarray", json.dumps(document).encode())
    data = np.array(COUNTS, f"{dtype[0]}i8").tobytes()
    store.set("0", data[:16])
    store.set("1", data[16:])
    return store


@pytest.mark.parametrize("dtype", ["<M8", ">M8", "<m8", ">m8", "<M8[generic]", ">m8[3generic]"])
def test_v2_arrays_without_a_unit_keep_their_counts_and_warn(dtype: str, engine: str) -> None:
    store = old_array(dtype)
    with pytest.warns(ZarrRuntimeWarning, match="state the unit"):
        array = tessarr.open_array(store, mode="r+")
    assert counts(array[:]) == COUNTS
    assert np.datetime_data(array[:].dtype) == ("generic", 3 if "3" in dtype else 1)
    array[1:3] = array[1:3]  # parts of two chunks, through the data that are there
    array[0] = array[3]
    stored = bytes(store["0"]) + bytes(store["1"])
    assert np.frombuffer(stored, f"{dtype[0]}i8").tolist() == [100, 1, -2, 100]


@pytest.mark.parametrize("dtype", ["<M8", ">m8"])
def test_strict_mode_refuses_them_and_check_reports_them(dtype: str) -> None:
    store = old_array(dtype)
    with config.set({"strict": True}), pytest.raises(MetadataValidationError, match="unit"):
        tessarr.open_array(store)
    assert [finding.rule for finding in check(store).findings if "unit" in finding.message] == ["DOC-LENIENT"]


@pytest.mark.filterwarnings("ignore::tessarr.errors.UnstableSpecificationWarning")  # of records, as zarr-python 3.1
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("scale", [1, 2, 2**31 - 1])
@pytest.mark.parametrize("record", [False, True])
def test_what_is_written_in_either_byte_order_is_read(
    zarr_format: int, order: str, scale: int, record: bool, engine: str
) -> None:
    """NumPy's `astype` between the byte orders of such types moves no bytes, and `np.empty` forgets order and scale."""
    leaf = np.dtype(f"{order}M8[{scale}generic]")
    dtype = np.dtype([("t", leaf)]) if record else leaf
    data = np.array(COUNTS, f"{order}i8").view(dtype)
    undo = config.set_defaults(_alias._SETTINGS[3])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ZarrRuntimeWarning)  # zarr-python gives none
            array = tessarr.create_array({}, data=data, chunks=2, zarr_format=zarr_format)
            array.resize((6,))
            found = np.asarray(tessarr.open_array(array.store, mode="r")[:])
    finally:
        undo()
    values = found["t"] if record else found
    assert np.datetime_data(values.dtype) == ("generic", scale)
    assert counts(values) == [*COUNTS, *([0, 0] if record else [NAT, NAT])]  # zarr-python's default of records is 0


def test_new_v2_arrays_state_a_unit() -> None:
    with pytest.raises(DataTypeValidationError, match="unit"):
        tessarr.create_array({}, shape=(2,), dtype="M8", zarr_format=2)
    new = tessarr.create_array({}, shape=(2,), dtype="M8")
    model = formats.parse_node(3, {"zarr.json": json.loads(bytes(new.store["zarr.json"]))}).node
    with pytest.raises(MetadataValidationError, match="unit"):
        array_to_v2(model, rekey=True)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::tessarr.errors.UnstableSpecificationWarning")  # of records, as zarr-python 3.1
def test_the_default_of_records_with_times_is_nat_unless_zarr_python_is_meant() -> None:
    """0 for zarr-python, so that its programs find the values that they expect; NaT says that there is no time."""
    dtype = [("t", "M8[s]"), ("n", "i4")]
    assert np.isnat(tessarr.create_array({}, shape=(2,), dtype=dtype)[0]["t"])
    undo = config.set_defaults(_alias._SETTINGS[3])
    try:
        assert tessarr.create_array({}, shape=(2,), dtype=dtype)[0]["t"] == np.datetime64(0, "s")
    finally:
        undo()
