"""Read NIfTI-1 and NIfTI-2 images (``.nii``, ``.nii.gz``, ``.hdr`` with ``.img``) with nibabel: one array, axes x, y, z, t.

Values are read as stored: ``scl_slope`` and ``scl_inter`` become the CF attributes ``scale_factor`` and ``add_offset``.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import IO

import numpy as np

from tessarr.errors import UnsupportedOperationError
from tessarr.tools.sources.attributes import collect
from tessarr.tools.sources.base import Box, SourceArray, SourceGroup, StoredChunks, contiguous, missing, reversed_axes
from tessarr.tools.sources.remote_file import RemoteFile
from tessarr.types import AnyArray

_AXES = ("x", "y", "z", "t", "u", "v", "w")
_COPIED = (
    "descrip",
    "intent_name",
    "intent_code",
    "qform_code",
    "sform_code",
    "cal_min",
    "cal_max",
    "toffset",
    "slice_code",
)


class NIfTISource:
    """Read an opened image."""

    kind = "nifti"
    parallel = False  # one file handle

    def __init__(self, place: str | RemoteFile) -> None:
        try:
            nibabel = import_module("nibabel")
        except ImportError as error:
            raise missing("nibabel", "NIfTI") from error
        if isinstance(place, RemoteFile):
            image = getattr(nibabel, _class_of(place)).from_stream(place)
            self._file: IO[bytes] | RemoteFile = place
            self._apart = False
        else:
            image = nibabel.load(place)
            self._file = nibabel.openers.ImageOpener(image.file_map["image"].filename)
            self._apart = not os.path.samefile(image.file_map["image"].filename, place)
        self._data = image.dataobj
        self._fileslice = nibabel.fileslice.fileslice
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        space, time = image.header.get_xyzt_units()
        values: list[tuple[str, object]] = [
            ("affine", image.affine),
            ("zooms", [float(n) for n in image.header.get_zooms()]),
        ]
        values += [("space_units", space), ("time_units", time)]
        values += [(name, np.asarray(image.header[name])[()]) for name in _COPIED if name in image.header]
        packing: dict[str, np.generic] = {}
        if (self._data.slope, self._data.inter) != (1.0, 0.0):
            packing = {"scale_factor": np.float64(self._data.slope), "add_offset": np.float64(self._data.inter)}
        shape = tuple(int(n) for n in image.shape)
        self.nodes: list[SourceArray | SourceGroup] = [
            SourceArray(
                path="",
                shape=shape,
                dtype=self._data.dtype.newbyteorder("="),
                read=self._read,
                attributes=collect([*values, *packing.items()], "/", self.notices),
                dimension_names=_AXES[: len(shape)],
                packing=packing,
                stored=self._stored,
            )
        ]

    def _read(self, box: Box) -> AnyArray:
        data = self._data
        values = self._fileslice(self._file, box, data.shape, data.dtype, data.offset, order="F")
        return np.asarray(values).astype(data.dtype.newbyteorder("="), copy=False)

    def _stored(self) -> StoredChunks | str:
        """Return where the volumes are: their first axis varies fastest."""
        file = getattr(self._file, "fobj", None)
        if str(self._file.name).endswith((".gz", ".bz2", ".zst")) or (file is not None and not hasattr(file, "fileno")):
            return "the file is compressed as a whole"
        if self._apart:
            return "the values are in another file than the header"
        data = self._data
        if data.dtype.kind not in "iufc":
            return f"elements of type {data.dtype} are not plain numbers"
        return reversed_axes(contiguous(data.shape[::-1], data.dtype, int(data.offset)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _class_of(file: RemoteFile) -> str:
    """Return the name of nibabel's class for an image in one file."""
    start = file.start(348)
    if start[4:7] == b"n+2":
        return "Nifti2Image"
    if start[344:347] == b"n+1":
        return "Nifti1Image"
    raise UnsupportedOperationError(
        "the header and the values of this image are in two files",
        store=file.name,
        hint="Download both, and convert the copies",
    )


def open_source(place: str | RemoteFile) -> NIfTISource:
    """Open a NIfTI image."""
    return NIfTISource(place)
