"""Read NumPy's ``.npy`` and ``.npz`` by memory mapping. Members of an ``.npz`` are unpacked to temporary files.

Arrays of Python objects are pickles, which can run code when they are read; they are refused.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from typing import IO

import numpy as np

from tessarr.errors import StoreError
from tessarr.tools.sources.base import (
    Box,
    SourceArray,
    SourceGroup,
    StoredChunks,
    contiguous,
    read_rows,
    reversed_axes,
)
from tessarr.tools.sources.remote_file import RemoteFile
from tessarr.types import AnyArray, AnyDType, Shape


class NpySource:
    """Read one array, or the arrays of an archive."""

    kind = "npy"
    parallel = True

    def __init__(self, place: str | RemoteFile) -> None:
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self._folder: str | None = None
        self.nodes: list[SourceArray | SourceGroup]
        if isinstance(place, RemoteFile):
            shape, in_c_order, dtype = _header(place, place.name)
            self._one(
                shape, in_c_order, dtype, place.tell(), partial(_read, place, shape, dtype, place.tell(), in_c_order)
            )
        elif zipfile.is_zipfile(place):
            self.kind = "npz"
            self.nodes = [SourceGroup(path=""), *self._members(place)]
        else:
            with open(place, "rb") as file:
                shape, in_c_order, dtype = _header(file, place)
                offset = file.tell()
            mapped = np.empty(0) if dtype.hasobject else np.load(place, mmap_mode="r", allow_pickle=False)
            self._one(shape, in_c_order, dtype, offset, partial(_read_mapped, mapped))

    def _one(
        self, shape: Shape, in_c_order: bool, dtype: AnyDType, offset: int, read: Callable[[Box], AnyArray]
    ) -> None:
        if dtype.hasobject:
            self.nodes = [SourceGroup(path="")]
            self.unsupported.append(("/", _PICKLE))
            return
        stored = partial(_stored, shape, dtype, offset, in_c_order)
        self.nodes = [SourceArray(path="", shape=shape, dtype=dtype.newbyteorder("="), read=read, stored=stored)]

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
                    if _header(member, f"{place}, member {info.filename}")[2].hasobject:
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


def _header(file: IO[bytes] | RemoteFile, place: str) -> tuple[Shape, bool, AnyDType]:
    """Read the header up to its end: the shape, whether the last axis varies fastest, and the type of the elements."""
    try:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, in_fortran_order, dtype = reader(file)
    except ValueError as error:
        raise StoreError(f"not a NumPy array: {error}", store=place) from error
    return shape, not in_fortran_order, dtype


def _read(file: RemoteFile, shape: Shape, dtype: AnyDType, offset: int, in_c_order: bool, box: Box) -> AnyArray:
    if in_c_order:
        return read_rows(file, shape, dtype, offset, box)
    return read_rows(file, shape[::-1], dtype, offset, box[::-1]).transpose()


def _read_mapped(values: AnyArray, box: Box) -> AnyArray:
    return np.asarray(values[box])


def _stored(shape: Shape, dtype: AnyDType, offset: int, in_c_order: bool) -> StoredChunks | str:
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        return f"elements of type {dtype} are not plain numbers"
    return contiguous(shape, dtype, offset) if in_c_order else reversed_axes(contiguous(shape[::-1], dtype, offset))


def _array(path: str, values: AnyArray) -> SourceArray:
    return SourceArray(
        path=path, shape=values.shape, dtype=values.dtype.newbyteorder("="), read=lambda box: np.asarray(values[box])
    )


def open_source(place: str | RemoteFile) -> NpySource:
    """Open an ``.npy`` or ``.npz`` file."""
    return NpySource(place)
