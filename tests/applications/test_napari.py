"""napari's reader: layers as napari makes them of what tessarr gives."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.napari import get_reader, read

pytest.importorskip("dask.array", reason="the extra `dask`")
yaml = pytest.importorskip("yaml", reason="the extra `dask`")

OMERO = {
    "channels": [
        {"label": "DAPI", "color": "0000FF", "active": True, "window": {"start": 10, "end": 200, "min": 0, "max": 255}},
        {"label": "GFP", "color": "00FF00", "active": False, "window": {"start": 0, "end": 100, "min": 0, "max": 255}},
    ]
}
AXES = [
    {"name": "c", "type": "channel"},
    {"name": "z", "type": "space", "unit": "micrometer"},
    {"name": "y", "type": "space", "unit": "micrometer"},
    {"name": "x", "type": "space", "unit": "micrometer"},
]


def written(place: Path) -> Any:
    """An OME-Zarr 0.5 image of two channels and two levels, with labels; its elements."""
    image = np.arange(2 * 4 * 8 * 8, dtype="u2").reshape(2, 4, 8, 8)
    datasets = [
        {
            "path": str(level),
            "coordinateTransformations": [
                {"type": "scale", "scale": [1, 2.0, 0.5 * factor, 0.5 * factor]},
                {"type": "translation", "translation": [0, 0, 3.0, 4.0]},
            ],
        }
        for level, factor in enumerate((1, 2))
    ]
    ome = {"version": "0.5", "multiscales": [{"name": "cells", "axes": AXES, "datasets": datasets}], "omero": OMERO}
    group = tessarr.create_group(place, attributes={"ome": ome})
    group.create_array("0", data=image, chunks=(1, 2, 8, 8))
    group.create_array("1", data=image[:, :, ::2, ::2], chunks=(1, 2, 4, 4))
    labels = group.create_group("labels", attributes={"ome": {"version": "0.5", "labels": ["nuclei"]}})
    scale = [{"type": "scale", "scale": [2.0, 0.5, 0.5]}]
    described = [{"axes": AXES[1:], "datasets": [{"path": "0", "coordinateTransformations": scale}]}]
    nuclei = labels.create_group(
        "nuclei", attributes={"ome": {"version": "0.5", "multiscales": described, "image-label": {}}}
    )
    nuclei.create_array("0", data=(image[0] % 3).astype("u1"))
    return image


def test_an_image_has_levels_scales_units_channels_and_labels(tmp_path: Path) -> None:
    image = written(tmp_path / "cells.ome.zarr")
    (levels, options, kind), (nuclei, of_labels, of_kind) = read(str(tmp_path / "cells.ome.zarr"))
    assert kind == "image"
    assert isinstance(levels, list)
    assert [level.shape for level in levels] == [(2, 4, 8, 8), (2, 4, 4, 4)]
    assert levels[0].chunks == ((1, 1), (2, 2), (8,), (8,))
    assert np.array_equal(levels[0].compute(), image)
    assert options == {
        "name": ["DAPI", "GFP"],
        "metadata": {"version": "0.5"},
        "axis_labels": ["z", "y", "x"],
        "units": ["micrometer"] * 3,
        "scale": [2.0, 0.5, 0.5],
        "translate": [0, 3.0, 4.0],
        "channel_axis": 0,
        "visible": [True, False],
        "colormap": ["#0000FF", "#00FF00"],
        "contrast_limits": [[10, 200], [0, 100]],
    }
    assert of_kind == "labels"
    assert not isinstance(nuclei, list)
    assert (of_labels["name"], of_labels["scale"], nuclei.shape) == ("nuclei", [2.0, 0.5, 0.5], (4, 8, 8))


def test_an_image_without_descriptions_of_channels_has_none(tmp_path: Path) -> None:
    written(tmp_path / "a.zarr")
    group = tessarr.open_group(tmp_path / "a.zarr", mode="r+")
    group.attrs["ome"] = {**group.attrs["ome"], "omero": {"channels": OMERO["channels"][:1]}}
    (_, options, _), _ = read(str(tmp_path / "a.zarr"))
    assert options["name"] == "cells"
    assert "colormap" not in options


def test_a_block_is_an_inner_chunk_of_a_shard(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a.zarr", shape=(8, 16, 16), chunks=(1, 8, 8), shards=(4, 16, 16), dtype="u1")
    ((data, _, _),) = read(str(tmp_path / "a.zarr"))
    assert not isinstance(data, list)
    assert data.chunksize == (1, 8, 8)


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("a.zarr", True), ("s3://b/a.ome.zarr", True), ("https://h/a.zarr/0", True), ("a.zarr.zip", True), ("a.ozx", True),
        ("s3://b/a|zarr3:", True), ("a.png", False), ("https://h/a.tif", False), ("a.nc", False),
    ],
)  # fmt: skip
def test_napari_offers_the_reader_for_the_names_of_zarr_data(name: str, offered: bool) -> None:
    manifest = yaml.safe_load((Path(tessarr.__file__).parent / "napari" / "napari.yaml").read_text())
    (reader,) = manifest["contributions"]["readers"]
    assert any(fnmatch(name, pattern) for pattern in reader["filename_patterns"]) is offered


def test_what_is_no_image_is_left_to_other_readers(tmp_path: Path) -> None:
    tessarr.create_group(tmp_path / "group.zarr")
    (tmp_path / "text.txt").write_text("x")
    for path in (tmp_path / "group.zarr", tmp_path / "text.txt", tmp_path / "absent.zarr"):
        assert get_reader(str(path)) is None
    assert get_reader([str(tmp_path / "group.zarr")]) is None
    tessarr.create_array(tmp_path / "array.zarr", shape=(2, 2), dtype="u1")
    assert get_reader(str(tmp_path / "array.zarr")) is read


def test_the_manifest_names_the_reader() -> None:
    npe2 = pytest.importorskip("npe2", reason="the extra `apps`; make test-apps")
    manifest = npe2.PluginManifest.from_file(Path(tessarr.__file__).parent / "napari" / "napari.yaml")
    (command,) = manifest.contributions.commands
    assert command.python_name == "tessarr.napari:get_reader"
    assert manifest.contributions.readers[0].accepts_directories


def test_napari_makes_layers_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "QT_QPA_PLATFORM", "offscreen")
    components = pytest.importorskip("napari.components", reason="the extra `apps`; make test-apps")
    import npe2

    image = written(tmp_path / "cells.zarr")
    manager = npe2.PluginManager.instance()
    if "tessarr" not in manager:
        manager.register(npe2.PluginManifest.from_file(Path(tessarr.__file__).parent / "napari" / "napari.yaml"))
    viewer = components.ViewerModel()
    layers = viewer.open(str(tmp_path / "cells.zarr"), plugin="tessarr")
    assert [layer.name for layer in layers] == ["DAPI", "GFP", "nuclei"]
    dapi, gfp, nuclei = layers
    assert dapi.multiscale
    assert [level.shape for level in dapi.data] == [(4, 8, 8), (4, 4, 4)]
    assert dapi.scale.tolist() == nuclei.scale.tolist() == [2.0, 0.5, 0.5]
    assert dapi.translate.tolist() == [0, 3, 4]
    assert [str(unit) for unit in dapi.units] == ["micrometer"] * 3
    assert dapi.contrast_limits == [10, 200]
    assert not gfp.visible
    assert np.array_equal(np.asarray(gfp.data[0]), image[1])
