"""OME-Zarr: images and pyramids (`images`), plates and wells (`plates`), and checks of groups (`check`)."""

from __future__ import annotations

from tessarr.conventions.base import Convention
from tessarr.conventions.ome.attributes import write, write_label, write_labels
from tessarr.conventions.ome.check import check as check_group
from tessarr.conventions.ome.images import (
    KEY,
    NAME,
    Axis,
    Image,
    Level,
    Transformation,
    content,
    detect,
    intrinsic,
    kinds,
    read,
    read_labels,
    read_transformations,
)

CONVENTION = Convention(NAME, detect, check_group, spec_url="https://ngff.openmicroscopy.org")

__all__ = [
    "CONVENTION",
    "KEY",
    "NAME",
    "Axis",
    "Image",
    "Level",
    "Transformation",
    "content",
    "detect",
    "intrinsic",
    "kinds",
    "read",
    "read_labels",
    "read_transformations",
    "write",
    "write_label",
    "write_labels",
]
