"""The PNG writer, against another decoder of PNG."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from tessarr.tools.picture import colours, enlarged, png


def decoded(data: bytes) -> Any:
    image = pytest.importorskip("PIL.Image", reason="pillow belongs to the extra [convert]")
    with image.open(io.BytesIO(data)) as opened:
        return np.asarray(opened)


def test_a_picture_is_read_back_to_the_pixel() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (13, 7, 4), dtype=np.uint8)
    assert np.array_equal(decoded(png(pixels)), pixels)


def test_the_lowest_and_highest_values_have_viridis_ends() -> None:
    pixels = colours(np.array([[0.0, 5.0, 10.0]]), limits=(0, 10))
    assert pixels[0, 0].tolist() == [68, 1, 84, 255]
    assert pixels[0, 2].tolist() == [253, 231, 37, 255]
    assert abs(pixels[0, 1].astype(int) - [33, 145, 140, 255]).max() < 4


def test_missing_values_are_transparent() -> None:
    assert colours(np.array([[np.nan, -9.0, 1.0]]), missing=-9.0)[0, :, 3].tolist() == [0, 0, 255]


def test_one_value_everywhere_is_one_colour() -> None:
    assert len(np.unique(colours(np.full((3, 3), 7)).reshape(-1, 4), axis=0)) == 1


def test_small_planes_are_enlarged_by_a_whole_number() -> None:
    pixels = enlarged(colours(np.arange(6).reshape(2, 3)))
    assert pixels.shape == (480, 720, 4)
    assert (pixels[:240, :240] == pixels[0, 0]).all()


def test_a_picture_needs_a_plane() -> None:
    with pytest.raises(ValueError, match="two dimensions"):
        colours(np.zeros(3))
