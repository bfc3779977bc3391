"""The writer's arguments are xarray's, and have its meaning: modes, regions by label, names, trees."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tessarr
import tessarr.xarray
from tessarr.xarray.backend import TessarrBackendEntrypoint


def numbered(times: list[int], value: float = 0.0) -> xr.Dataset:
    return xr.Dataset({"v": (("t", "x"), np.full((len(times), 2), value))}, {"t": times, "x": [1, 2]})


def parameters(function: Any) -> list[tuple[str, Any]]:
    """Name and kind of each parameter but `self`, in order."""
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind) for one in found if one.name != "self"]


def test_arguments_are_those_of_xarray() -> None:
    ours = parameters(tessarr.xarray.to_zarr)[1:]
    theirs = [
        one for one in parameters(xr.Dataset.to_zarr) if one[0] not in ("chunk_store", "synchronizer", "zarr_version")
    ]
    assert [one for one in ours if one[0] not in ("write_inherited_coords", "executor")] == theirs
    of_trees = dict(parameters(xr.DataTree.to_zarr)).keys() - {"kwargs"}
    assert of_trees <= dict(ours).keys()
    assert parameters(xr.Dataset.tessarr.to_zarr)[:-1] == parameters(xr.DataArray.tessarr.to_zarr)[:-1] == theirs
    assert parameters(xr.DataTree.tessarr.to_zarr)[:7] == parameters(xr.DataTree.to_zarr)[:7]
    engine = dict(parameters(xr.backends.list_engines()["zarr"].open_dataset)).keys()
    gone = {"engine", "chunk_store", "synchronizer", "zarr_version"}
    assert engine - gone <= dict(parameters(TessarrBackendEntrypoint.open_dataset)).keys()


def test_modes(tmp_path: Path) -> None:
    place = tmp_path / "a.zarr"
    tessarr.xarray.to_zarr(numbered([0, 1]), place)
    with pytest.raises(FileExistsError):
        tessarr.xarray.to_zarr(numbered([0, 1], 1), place)
    with pytest.raises(ValueError, match="non-pre-existing variables"):
        tessarr.xarray.to_zarr(numbered([0, 1]).rename(v="new"), place, mode="r+")
    tessarr.xarray.to_zarr(numbered([0, 1], 2), place, mode="r+")
    tessarr.xarray.to_zarr(numbered([0, 1], 3).rename(v="new"), place, mode="a")
    found = tessarr.xarray.open_dataset(place).load()
    assert ((found.v == 2).all(), (found.new == 3).all()) == (True, True)
    tessarr.xarray.to_zarr(numbered([5]), place, mode="w")
    xr.testing.assert_identical(tessarr.xarray.open_dataset(place).load(), numbered([5]))


def test_a_tree_takes_the_arguments_of_a_tree_in_their_order(tmp_path: Path) -> None:
    tree = xr.DataTree.from_dict({"/": numbered([0, 1]), "/c": numbered([0, 1])})
    tree.tessarr.to_zarr(tmp_path / "a.zarr", "w", {"/c": {"v": {"chunks": (1, 2)}}}, False, None, True)
    assert tessarr.open_array(tmp_path / "a.zarr", path="c/v").chunks == (1, 2)
    assert "t" in tessarr.open_group(tmp_path / "a.zarr", path="c")
    with pytest.raises(TypeError):
        tree.tessarr.to_zarr(tmp_path / "a.zarr", append_dim="t")


@pytest.mark.parametrize("region", ["auto", {"t": "auto", "x": slice(None)}])
def test_a_region_is_found_by_its_labels(tmp_path: Path, region: Any) -> None:
    ds = numbered([0, 1, 2, 3])
    tessarr.xarray.to_zarr(ds, tmp_path / "a.zarr", encoding={"v": {"chunks": (3, 2)}})
    part = numbered([1, 2], 7)
    tessarr.xarray.to_zarr(part if region == "auto" else part.drop_vars("x"), tmp_path / "a.zarr", region=region)
    found = tessarr.xarray.open_dataset(tmp_path / "a.zarr")
    assert found.v[:, 0].values.tolist() == [0, 7, 7, 0]


@pytest.mark.parametrize("name", ["v", None, "x"])
def test_a_data_array_keeps_its_name(tmp_path: Path, name: str | None) -> None:
    array = xr.DataArray(np.arange(3.0), dims="x", coords={"x": [1, 2, 3]}, name=name)
    with pytest.warns(match="__xarray_dataarray") if name != "v" else nullcontext():
        array.tessarr.to_zarr(tmp_path / "a.zarr")
        found = xr.open_dataarray(tmp_path / "a.zarr", engine="tessarr")
    xr.testing.assert_identical(found.load(), array)


def test_a_tree_is_written_with_encodings_and_inherited_coordinates(tmp_path: Path) -> None:
    tree = xr.DataTree.from_dict({"/": xr.Dataset(coords={"x": [1, 2]}), "/a": xr.Dataset({"v": ("x", [3, 4])})})
    encoding = {"/a": {"v": {"chunks": (1,)}}}
    tree.tessarr.to_zarr(tmp_path / "t.zarr", encoding=encoding, write_inherited_coords=True)
    xr.testing.assert_identical(xr.open_datatree(tmp_path / "t.zarr", engine="tessarr").load(), tree)
    stored = tessarr.open_group(tmp_path / "t.zarr")["a"]
    assert isinstance(stored, tessarr.Group)
    assert sorted(stored) == ["v", "x"]
    assert stored["v"].chunks == (1,)
    with pytest.raises(ValueError, match="unexpected encoding group"):
        tree.tessarr.to_zarr(tmp_path / "u.zarr", encoding={"/b": {}})


def test_processes_of_a_cluster_write_one_dataset(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra test installs distributed")
    ds = xr.Dataset({"v": ("x", np.arange(200))})
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster):
        with pytest.warns(match="more than one task"):
            tessarr.xarray.to_zarr(ds.chunk({"x": 5}), tmp_path / "a.zarr", encoding={"v": {"chunks": (7,)}})
        total = int(xr.open_dataset(tmp_path / "a.zarr", engine="tessarr", chunks={}).v.sum())
    assert total == 199 * 100
    xr.testing.assert_equal(tessarr.xarray.open_dataset(tmp_path / "a.zarr").load(), ds)


@pytest.mark.parametrize("engine", ["tessarr", "zarr"])
@pytest.mark.parametrize("chunks", [None, {}])
def test_a_dataset_does_not_replace_the_place_that_it_is_read_from(tmp_path: Path, engine: str, chunks: Any) -> None:
    place = tmp_path / "a.zarr"
    ds = numbered([0, 1], 3.0)
    tessarr.xarray.to_zarr(ds, place, group="g")
    opened = xr.open_dataset(place, engine=engine, group="g", chunks=chunks)
    for derived in (opened, opened.isel(t=[1]), opened[["v"]] * 2 if chunks is not None else opened[["v"]]):
        with pytest.raises(tessarr.errors.BaseZarrError, match="variable 'v' is not loaded"):
            tessarr.xarray.to_zarr(derived, place, mode="w")
    inline = xr.open_dataset(place, engine=engine, group="g", chunks={}, inline_array=True)
    with pytest.raises(tessarr.errors.BaseZarrError, match="variable 'v' is not loaded"):
        tessarr.xarray.to_zarr(inline, place, mode="w")
    tree = xr.DataTree.from_dict({"/": xr.Dataset(), "/below": opened})
    with pytest.raises(tessarr.errors.BaseZarrError, match="variable 'below/v' is not loaded"):
        tessarr.xarray.to_zarr(tree, place, mode="w")
    tessarr.xarray.to_zarr(opened, place, group="other", mode="w")
    tessarr.xarray.to_zarr(opened.load(), place, group="g", mode="w")
    for group in ("g", "other"):
        assert xr.open_dataset(place, engine="tessarr", group=group).identical(ds)


def test_tasks_in_other_processes_do_not_write_to_copies_of_a_store_in_memory() -> None:
    ds = numbered([0, 1]).chunk(t=1)
    with pytest.raises(tessarr.errors.UnsupportedOperationError, match="would be lost"):
        tessarr.xarray.to_zarr(ds, tessarr.storage.MemoryStore(), chunkmanager_store_kwargs={"scheduler": "processes"})


def test_nan_in_attributes_is_an_error_that_names_the_setting_which_allows_it(tmp_path: Path) -> None:
    ds = numbered([0])
    ds["v"].attrs["missing_value"] = float("nan")
    ds["v"].attrs["limits"] = [0.0, float("-inf")]
    with pytest.raises(ValueError, match=r"(?s)missing_value is nan, .*attributes\.allow_nan"):
        tessarr.xarray.to_zarr(ds, tmp_path / "refused")
    with tessarr.config.set({"attributes.allow_nan": True}):
        tessarr.xarray.to_zarr(ds, tmp_path / "a", consolidated=True)
        found = xr.open_dataset(tmp_path / "a", engine="tessarr")
        assert found["v"].attrs["limits"] == [0, float("-inf")]
        assert np.isnan(found["v"].encoding["missing_value"])
    with pytest.raises(tessarr.errors.MetadataValidationError, match=r"bare token NaN.*attributes\.allow_nan"):
        xr.open_dataset(tmp_path / "a", engine="tessarr")


def test_codecs_in_an_encoding_are_those_of_either_library_or_json(tmp_path: Path) -> None:
    codecs = pytest.importorskip("zarr.codecs", reason="zarr-python is not installed")
    ours = tessarr.codecs.BloscCodec(typesize=8, cname="lz4", shuffle="shuffle")
    for place, codec in [
        ("ours", ours),
        ("theirs", codecs.BloscCodec(typesize=8, cname="lz4", shuffle="shuffle")),
        ("json", ours.to_dict()),
    ]:
        tessarr.xarray.to_zarr(numbered([1]), tmp_path / place, encoding={"v": {"compressors": [codec]}})
        assert [found.to_dict() for found in tessarr.open_array(tmp_path / place / "v").compressors] == [ours.to_dict()]


def test_the_writer_of_xarray_takes_a_codec_of_tessarr_as_json_alone(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="zarr-python is not installed")
    ours = tessarr.codecs.ZstdCodec(level=1)
    with pytest.raises(TypeError, match="Expected a BytesBytesCodec"):
        numbered([1]).to_zarr(tmp_path / "a", encoding={"v": {"compressors": [ours]}})
    numbered([1]).to_zarr(tmp_path / "b", encoding={"v": {"compressors": [ours.to_dict()]}}, consolidated=False)
    assert [found.to_dict() for found in tessarr.open_array(tmp_path / "b" / "v").compressors] == [ours.to_dict()]
