"""iohub with tessarr as its Zarr implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

iohub = pytest.importorskip("iohub", reason="the extra `apps` and Python 3.12; make test-apps")
pytest.importorskip("iohub.core.registry", reason="iohub 0.3.2 or newer; make test-apps")

import tessarr  # noqa: E402
from tessarr.iohub import TessarrImplementation  # noqa: E402


@pytest.fixture(autouse=True)
def _registered() -> Any:
    from iohub.core import registry

    registry.register_implementation("tessarr", TessarrImplementation)


def test_it_has_every_method_of_the_protocol() -> None:
    from iohub.core.protocol import ZarrImplementation

    assert isinstance(TessarrImplementation(), ZarrImplementation)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize(
    ("writer", "reader"), [("tessarr", "zarr-python"), ("zarr-python", "tessarr"), ("tessarr",) * 2]
)
def test_what_one_implementation_writes_another_reads(writer: str, reader: str, version: str, tmp_path: Path) -> None:
    from iohub.ngff import open_ome_zarr

    place = tmp_path / "position.zarr"
    image = np.random.default_rng(1).integers(0, 4000, (2, 2, 3, 16, 16), np.uint16)
    chunks = (1, 1, 1, 8, 8)
    with open_ome_zarr(
        place, layout="fov", mode="w", channel_names=["DAPI", "GFP"], version=version, implementation=writer
    ) as position:
        position.create_image("0", image, chunks=chunks)
        position.initialize_pyramid(2)
        position.compute_pyramid()
    with open_ome_zarr(place, mode="r", implementation=reader) as position:
        assert position.channel_names == ["DAPI", "GFP"]
        assert np.array_equal(np.asarray(position["0"][...]), image)
        assert np.array_equal(position["0"].dask_array().compute(), image)
        assert position["0"].chunks == chunks
        half = np.asarray(position["1"][...])
    assert half.shape[-1] == 8
    assert np.array_equal(np.asarray(tessarr.open_array(place / "0", mode="r")[...]), image)


def test_a_plate_is_written_position_by_position(tmp_path: Path) -> None:
    from iohub.ngff import open_ome_zarr

    place = tmp_path / "plate.zarr"
    image = np.arange(64, dtype="f4").reshape(1, 1, 1, 8, 8)
    with open_ome_zarr(place, layout="hcs", mode="w-", channel_names=["a"], implementation="tessarr") as plate:
        for column in ("1", "2"):
            plate.create_position("A", column, "0").create_image("0", image * int(column))
    with open_ome_zarr(place, mode="r", implementation="tessarr") as plate:
        found = {name: float(np.asarray(position["0"][0, 0, 0, 0, 1])) for name, position in plate.positions()}
    assert found == {"A/1/0": 1.0, "A/2/0": 2.0}
