"""What opening a dataset asks of a remote store: one round of requests for all coordinates."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tessarr
import tessarr.xarray
from tessarr.stores.memory.store import MemoryStore
from tessarr.xarray.lazy_array import CoordinateBatch


class Distant(MemoryStore):
    """Values in memory that wait like those behind a network, with the waves of requests counted."""

    requests_at_once = 16

    def __init__(self) -> None:
        super().__init__()
        self.waves: list[list[str]] = []

    def fetch(self, requests: Any) -> Any:
        self.waves.append([request.key for request in requests])
        return super().fetch(requests)


def grid(sizes: dict[str, int]) -> xr.Dataset:
    coords = {name: np.arange(size) * 2 for name, size in sizes.items()}
    return xr.Dataset({"a": (tuple(sizes), np.zeros(tuple(sizes.values())))}, coords=coords)


def stored(ds: xr.Dataset, **encoding: Any) -> Distant:
    store = Distant()
    tessarr.xarray.to_zarr(ds, store, encoding=encoding)
    store.waves.clear()
    return store


def chunk_waves(store: Distant) -> list[list[str]]:
    return [keys for keys in store.waves if any("/c/" in key for key in keys)]


def test_coordinates_of_many_chunks_are_read_in_one_round() -> None:
    ds = grid({"t": 512, "y": 30, "x": 20})
    store = stored(ds, t={"chunks": (1,)}, y={"chunks": (10,)}, x={"chunks": (10,)})
    found = tessarr.xarray.open_dataset(store)
    assert [len(keys) for keys in chunk_waves(store)] == [512 + 3 + 2]
    assert len(store.waves) == 2
    xr.testing.assert_equal(found.coords.to_dataset(), ds.coords.to_dataset())
    assert len(store.waves) == 2


def times(ds: xr.Dataset) -> xr.Dataset:
    """Add what datasets of weather have beside `time`: its bounds, a time of reference, times of two dimensions."""
    start = np.datetime64("2026-01-01T00", "ns")
    hours = start + np.arange(ds.sizes["time"]) * np.timedelta64(1, "h")
    days = np.arange(ds.sizes["step"]) * np.timedelta64(1, "D")
    stored_as = {"units": "hours since 2026-01-01", "dtype": "int64"}
    ds = ds.assign_coords(
        time=("time", hours, {"bounds": "time_bounds"}, stored_as),
        reference=((), start, {}, stored_as),
        valid_time=(("time", "step"), hours[:, None] + days, {}, stored_as),
    )
    bounds = np.stack([hours, hours + np.timedelta64(1, "h")], axis=1)
    return ds.assign(time_bounds=(("time", "side"), bounds))


def test_everything_that_decoding_of_times_looks_at_is_read_in_one_round() -> None:
    ds = times(grid({"time": 12, "step": 3, "x": 4}))
    store = stored(ds, valid_time={"chunks": (4, 3)}, time={"chunks": (2,), **ds.time.encoding})
    found = tessarr.xarray.open_dataset(store)
    waves = chunk_waves(store)
    assert len(store.waves) == 2
    first_and_last = {"valid_time/c/0/0", "valid_time/c/2/0"}
    whole = {f"time/c/{n}" for n in range(6)} | {"time_bounds/c/0/0", "reference/c", "step/c/0", "x/c/0"}
    assert sorted(waves[0]) == sorted(whole | first_and_last)
    xr.testing.assert_identical(found.drop_encoding().load(), ds.drop_encoding())


def test_a_single_coordinate_of_time_is_read_once() -> None:
    ds = times(grid({"time": 12, "step": 3})).time.drop_vars("reference").to_dataset(name="v")
    store = stored(ds.drop_attrs())
    tessarr.xarray.open_dataset(store, drop_variables=["v"])
    assert chunk_waves(store) == [["time/c/0"]]


@pytest.mark.parametrize("decode", [False, {"valid_time": False}])
def test_times_that_are_not_decoded_are_not_read(decode: Any) -> None:
    store = stored(times(grid({"time": 12, "step": 3})))
    found = tessarr.xarray.open_dataset(store, decode_times=decode)
    assert found.valid_time.dtype == "i8"
    read = {key.split("/")[0] for keys in chunk_waves(store) for key in keys}
    assert read == ({"time", "step"} if decode is False else {"time", "step", "time_bounds", "reference"})


def test_values_of_a_batch_are_those_of_the_array() -> None:
    ds = times(grid({"time": 12, "step": 3}))
    store = stored(ds, valid_time={"chunks": (4, 3)})
    raw = ds.valid_time.values
    lazy = tessarr.xarray.open_dataset(store)
    assert lazy.valid_time[:1, :1].values == raw[0, 0]
    assert lazy.valid_time[-1, 2].values == raw[-1, 2]
    assert np.array_equal(lazy.valid_time[[0, 5], [1, 2]].values, raw[np.ix_([0, 5], [1, 2])])
    assert np.array_equal(lazy.time_bounds[[3, 0], [1, 0]].values, ds.time_bounds.values[np.ix_([3, 0], [1, 0])])


def test_a_dropped_coordinate_is_not_read() -> None:
    store = stored(grid({"t": 4, "y": 3, "x": 2}))
    tessarr.xarray.open_dataset(store, drop_variables=["t"])
    assert {key.split("/")[0] for keys in chunk_waves(store) for key in keys} == {"y", "x"}


@pytest.mark.skipif(
    "create_default_indexes" not in inspect.signature(xr.open_dataset).parameters,
    reason="xarray makes indexes of all coordinates before 2025.8",
)
def test_a_broken_coordinate_is_an_error_only_for_who_wants_it() -> None:
    store = stored(grid({"t": 4, "y": 3, "x": 2}))
    store.set("y/c/0", b"broken")
    with pytest.raises(tessarr.errors.TessarrError):
        tessarr.xarray.open_dataset(store)
    found = tessarr.xarray.open_dataset(store, create_default_indexes=False)
    assert found.t.values.tolist() == [0, 2, 4, 6]
    with pytest.raises(tessarr.errors.TessarrError):
        found.y.load()


def test_large_coordinates_are_left_out_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessarr.xarray.lazy_array.MOST_BYTES", 100)
    arrays = {name: tessarr.array(np.arange(size)) for name, size in {"a": 4, "b": 8, "c": 100}.items()}
    batch = CoordinateBatch(arrays)
    assert batch.values("c") is None
    assert [len(values) for name in ("a", "b") if (values := batch.values(name)) is not None] == [4, 8]


@pytest.mark.parametrize("names", [["y", "x"], None])
def test_dimensions_of_other_writers(tmp_path: Path, names: list[str] | None) -> None:
    group = tessarr.open_group(tmp_path / "a.zarr", mode="w")
    attributes = {} if names is None else {"_ARRAY_DIMENSIONS": names}
    group.create_array("v", data=np.ones((2, 3)), attributes=attributes)
    if names is None:
        with pytest.raises(KeyError, match="dimension_names"):
            tessarr.xarray.open_dataset(tmp_path / "a.zarr", consolidated=False)
    else:
        found = tessarr.xarray.open_dataset(tmp_path / "a.zarr", consolidated=False)
        assert (found.v.dims, found.v.attrs) == (("y", "x"), {})


def test_the_dimensions_that_nczarr_notes() -> None:
    store = MemoryStore()
    tessarr.open_group(store, mode="w", zarr_format=2).create_array("v", data=np.arange(1.0, 4.0), compressors=None)
    store.set("v/.zattrs", b'{"_nczarr_array": {"dimension_references": ["/t"], "storage": "chunked"}, "units": "m"}')
    found = tessarr.xarray.open_dataset(store, consolidated=False)
    assert (found.v.dims, found.v.attrs, found.v.values.tolist()) == (("t",), {"units": "m"}, [1.0, 2.0, 3.0])
