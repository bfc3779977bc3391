"""A call that is refused changes nothing: what is wrong is found before the first value is deleted, created or resized."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tessarr
import tessarr.xarray
from tessarr.errors import ConflictError
from tessarr.xarray.lazy_array import LazyArray


def numbered(start: int, steps: int, block: int | None = None) -> xr.Dataset:
    ds = xr.Dataset(
        {"first": ("time", np.arange(steps)), "rain": (("time", "x"), np.ones((steps, 6)))},
        coords={"time": np.arange(start, start + steps)},
    )
    return ds if block is None else ds.chunk({"time": block})


def files(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    numbered(0, 10).tessarr.to_zarr(tmp_path / "a.zarr", zarr_format=2, encoding={"rain": {"chunks": (4, 6)}})
    return tmp_path / "a.zarr"


class Unserializable:
    """A value that is no JSON."""


REFUSED: dict[str, Callable[[Path], Any]] = {
    "append, tasks share chunks": lambda place: numbered(10, 5, 2).tessarr.to_zarr(
        place, append_dim="time", safe_chunks="refuse"
    ),
    "replace, tasks share chunks": lambda place: numbered(10, 5, 2).tessarr.to_zarr(
        place, mode="w", safe_chunks="refuse", encoding={"rain": {"chunks": (4, 6)}}
    ),
    "append, other sizes": lambda place: numbered(10, 5).isel(x=[0, 1]).tessarr.to_zarr(place, append_dim="time"),
    "append, other dimensions": lambda place: numbered(10, 5).rename(x="y").tessarr.to_zarr(place, append_dim="time"),
    "append, a new variable of a type that cannot be stored": lambda place: (
        numbered(10, 5).assign(last=("x", [Unserializable()] * 6)).tessarr.to_zarr(place, append_dim="time")
    ),
    "replace, unknown entry of an encoding": lambda place: numbered(0, 3).tessarr.to_zarr(
        place, mode="w", encoding={"rain": {"chunk": (1, 6)}}
    ),
    "replace, encoding of an unknown variable": lambda place: numbered(0, 3).tessarr.to_zarr(
        place, mode="w", encoding={"rein": {"chunks": (1, 6)}}
    ),
    "replace, shards that chunks do not divide": lambda place: numbered(0, 3).tessarr.to_zarr(
        place, mode="w", zarr_format=3, encoding={"rain": {"chunks": (2, 6), "shards": (3, 6)}}
    ),
    "replace, attribute that is no JSON": lambda place: (
        numbered(0, 3).assign(last=("x", [0] * 6, {"a": Unserializable()})).tessarr.to_zarr(place, mode="w")
    ),
    "replace, attribute of the dataset that is no JSON": lambda place: (
        numbered(0, 3).assign_attrs(a=Unserializable()).tessarr.to_zarr(place, mode="w")
    ),
    "replace, no executor": lambda place: numbered(0, 3, 1).tessarr.to_zarr(place, mode="w", executor="task"),
    "replace, bad encoding in the last group of a tree": lambda place: xr.DataTree.from_dict(
        {"/": numbered(0, 3), "/b": numbered(0, 3)}
    ).tessarr.to_zarr(place, mode="w", encoding={"/b": {"rain": {"chunk": (1, 6)}}}),
    "create, values that are no region": lambda place: (
        numbered(0, 4).drop_vars("time").tessarr.to_zarr(place, group="new", mode="a", region={"time": slice(0, 2)})
    ),
    "beside, bad encoding": lambda place: numbered(0, 3).tessarr.to_zarr(
        place, group="new", encoding={"rain": {"chunk": (1, 6)}}
    ),
    "there already": lambda place: numbered(0, 3).tessarr.to_zarr(place, mode="w-"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_call_changes_nothing(place: Path, name: str) -> None:
    before = files(place)
    with pytest.raises((ValueError, TypeError, KeyError)):
        REFUSED[name](place)
    assert files(place) == before


def test_a_refused_call_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="would overlap multiple Dask chunks"):
        numbered(0, 10, 3).tessarr.to_zarr(
            tmp_path / "a.zarr", safe_chunks="refuse", encoding={"rain": {"chunks": (4, 6)}}
        )
    assert not files(tmp_path)


def test_what_is_read_from_elsewhere_is_read_once(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    before = LazyArray.__getitem__

    def noted(self: LazyArray, key: Any) -> Any:
        read.append(self._array.path)
        return before(self, key)

    numbered(0, 10).tessarr.to_zarr(place, group="b", zarr_format=2)
    tree = tessarr.xarray.open_datatree(place, consolidated=False)
    monkeypatch.setattr(LazyArray, "__getitem__", noted)
    tree.tessarr.to_zarr(tmp_path / "tree.zarr")
    assert sorted(read) == ["b/first", "b/rain", "first", "rain"]
    read.clear()
    tree.to_dataset().tessarr.to_zarr(tmp_path / "one.zarr", encoding={"rain": {"dtype": "i2", "_FillValue": -1}})
    assert sorted(read) == ["first", "rain"]
    xr.testing.assert_identical(tessarr.xarray.open_datatree(tmp_path / "tree.zarr").load(), tree.load())


def test_an_append_to_variables_of_other_lengths_changes_nothing(place: Path) -> None:
    tessarr.open_array(place, path="first", mode="r+").append([1, 2])
    before = files(place)
    with pytest.raises(ValueError, match=r"other lengths along append_dim='time'.*'first': 12"):
        numbered(10, 5).tessarr.to_zarr(place, append_dim="time")
    assert files(place) == before
    tessarr.open_array(place, path="first", mode="r+").resize((10,))
    numbered(10, 5).tessarr.to_zarr(place, append_dim="time")
    assert xr.open_dataset(place, engine="tessarr").sizes["time"] == 15


def test_an_append_in_a_transaction_extends_all_variables_or_none(place: Path) -> None:
    with tessarr.transaction(place) as tx:
        numbered(10, 5).tessarr.to_zarr(tx.group.store, append_dim="time")
    assert xr.open_dataset(place, engine="tessarr")["time"].values.tolist() == [*range(15)]

    def append_meanwhile() -> None:
        with tessarr.transaction(place) as tx:
            numbered(20, 5).tessarr.to_zarr(tx.group.store, append_dim="time")
            outside = contextvars.Context()
            outside.run(lambda: tessarr.open_array(place, path="first", mode="r+").append([1]))

    with pytest.raises(ConflictError):
        append_meanwhile()
    group = tessarr.open_group(place, mode="r")
    assert {name: array.shape[0] for name, array in group.arrays()} == {"first": 16, "rain": 15, "time": 15}
