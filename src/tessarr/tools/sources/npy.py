"""Read NumPy's ``.npy`` and ``.npz`` by memory mapping. Members of an ``.npz`` are unpacked to temporary files.

Arrays of Python objects are pickles, which can run code when they are read; they are refused.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from typing import IO

import numpy as np

from tessarr.errors import StoreError
from tessarr.tools.sources.base import SourceArray, SourceGroup
from tessarr.types import AnyArray, AnyDType


class NpySource:
    """Read one array, or the arrays of an archive."""

    kind = "npy"
    parallel = True

    def __init__(self, place: str) -> None:
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self._folder: str | None = None
        self.nodes: list[SourceArray | SourceGroup]
        if zipfile.is_zipfile(place):
            self.kind = "npz"
            self.nodes = [SourceGroup(path=""), *self._members(place)]
        else:
            with open(place, "rb") as file:
                dtype = _dtype(file, place)
            if dtype.hasobject:
                self.nodes = [SourceGroup(path="")]
                self.unsupported.append(("/", _PICKLE))
            else:
                self.nodes = [_array("", np.load(place, mmap_mode="r", allow_pickle=False))]

    def _members(self, place: str) -> list[SourceArray]:
        self._folder = tempfile.mkdtemp(prefix="tessarr-npz-")
        arrays = []
        with zipfile.ZipFile(place) as archive:
            for number, info in enumerate(archive.infolist()):
                if not info.filename.endswith(".npy"):
                    self.notices.append(f"{info.filename}: not an array; left out")
                    continue
                name = info.filename.removesuffix(".npy").strip("/")
                with archive.open(info) as member:
                    if _dtype(member, f"{place}, member {info.filename}").hasobject:
                        self.unsupported.append((name, _PICKLE))
                        continue
                path = os.path.join(self._folder, f"{number}.npy")
                with archive.open(info) as member, open(path, "wb") as file:
                    shutil.copyfileobj(member, file, 1 << 20)
                arrays.append(_array(name, np.load(path, mmap_mode="r", allow_pickle=False)))
        return arrays

    def close(self) -> None:
        """Remove the temporary files."""
        self.nodes = []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


_PICKLE = "it holds pickled Python objects, which can run code; save it with allow_pickle=False"


def _dtype(file: IO[bytes], place: str) -> AnyDType:
    try:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        dtype: AnyDType = reader(file)[2]
    except ValueError as error:
        raise StoreError(f"not a NumPy array: {error}", store=place) from error
    return dtype


def _array(path: str, values: AnyArray) -> SourceArray:
    return SourceArray(
        path=path, shape=values.shape, dtype=values.dtype.newbyteorder("="), read=lambda box: np.asarray(values[box])
    )


def open_source(place: str) -> NpySource:
    """Open an ``.npy`` or ``.npz`` file."""
    return NpySource(place)
