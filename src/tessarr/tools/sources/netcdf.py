"""Read NetCDF-4 and NetCDF-3 with the netCDF4 package: groups, variables, dimensions and attributes.

Values are read as stored: packed integers with ``scale_factor`` stay packed, characters stay characters. Enumerations
become their integers, with CF's ``flag_values`` and ``flag_meanings``. Variable-length text becomes strings.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tessarr.dtypes.base import DataType
from tessarr.errors import StoreError
from tessarr.tools.sources import classic, hdf5_chunks
from tessarr.tools.sources.attributes import collect, packing_of
from tessarr.tools.sources.base import (
    UNSET,
    Box,
    Source,
    SourceArray,
    SourceGroup,
    StoredChunks,
    missing,
    ragged,
    rows,
)
from tessarr.tools.sources.hdf5 import HDF5Source
from tessarr.tools.sources.remote_file import RemoteFile
from tessarr.types import JSON, AnyArray, AnyDType

if TYPE_CHECKING:
    import netCDF4

    Variable: TypeAlias = netCDF4.Variable[Any]


_LIBRARY = threading.RLock()
"""Held while the library is called: threads must not use it at the same time, not even for different files."""


class NetCDFSource:
    """Read an opened NetCDF file."""

    kind = "netcdf"
    parallel = False  # of `_LIBRARY`

    def __init__(self, place: str) -> None:
        try:
            import netCDF4
        except ImportError as error:
            raise missing("netCDF4", "NetCDF") from error
        _check_length(place)
        self._place = place
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self.nodes: list[SourceArray | SourceGroup] = []
        with _LIBRARY, ExitStack() as failed:
            self._file = netCDF4.Dataset(place, "r")
            failed.callback(self._file.close)
            self._file.set_auto_maskandscale(False)
            self._file.set_auto_chartostring(False)
            self._group(self._file, "")
            failed.pop_all()

    def _group(self, group: netCDF4.Dataset, path: str) -> None:
        values = ((name, group.getncattr(name)) for name in group.ncattrs())
        self.nodes.append(SourceGroup(path=path, attributes=collect(values, f"/{path}", self.notices)))
        for name, variable in group.variables.items():
            self._variable(variable, f"{path}/{name}".lstrip("/"))
        unused = [
            name
            for name, dimension in group.dimensions.items()
            if name not in group.variables and not _used(group, dimension)
        ]
        if unused:
            self.notices.append(f"/{path}: dimensions without variables are left out: {', '.join(unused)}")
        for name, member in group.groups.items():
            self._group(member, f"{path}/{name}".lstrip("/"))

    def _variable(self, variable: Variable, path: str) -> None:
        dtype, flags = _dtype(variable)
        if dtype is None:
            self.unsupported.append((path, "it holds values of varying length"))
            return
        values = ((name, variable.getncattr(name)) for name in variable.ncattrs() if name != "_FillValue")
        attributes = {**flags, **collect(values, f"/{path}", self.notices)}
        fill = variable.getncattr("_FillValue") if "_FillValue" in variable.ncattrs() else None
        chunking = variable.chunking()
        self.nodes.append(
            SourceArray(
                path=path,
                shape=tuple(int(n) for n in variable.shape),
                dtype=dtype,
                read=_reader(variable, dtype),
                chunks=tuple(chunking) if isinstance(chunking, list) else None,
                fill_value=UNSET if fill is None else fill,
                attributes=attributes,
                dimension_names=tuple(variable.dimensions),
                cf_fill=fill,
                packing=packing_of({name: variable.getncattr(name) for name in variable.ncattrs()}),
                stored=partial(self._stored, variable, path),
            )
        )

    def _stored(self, variable: Variable, path: str) -> StoredChunks | str:
        with _LIBRARY:
            disk_format, shape = self._file.disk_format, tuple(int(n) for n in variable.shape)
        if disk_format != "HDF5":
            return classic.stored_chunks(self._place, path, shape)
        with suppress(ImportError):
            import h5py

            with h5py.File(self._place, "r") as file:
                dataset = file[path]
                if isinstance(dataset, h5py.Dataset):
                    return hdf5_chunks.stored_chunks(dataset)
        return "the package h5py, which says where its chunks are, is not installed, or finds no dataset"

    def close(self) -> None:
        """Close the file."""
        with _LIBRARY:
            self._file.close()


def _check_length(place: str) -> None:
    """Raise `StoreError` for a NetCDF-3 file that is shorter than its header says."""
    if not os.path.isfile(place):
        return
    with open(place, "rb") as file:
        try:
            needed = classic.needed_size(file)
        except EOFError as error:
            raise StoreError("a NetCDF file is truncated", store=place, got=str(error)) from error
        except (ValueError, KeyError, IndexError):
            return  # the library's error is more precise
    size = os.path.getsize(place)
    if needed is not None and size < needed:
        raise StoreError("a NetCDF file is truncated", store=place, expected=f"{needed} bytes", got=f"{size} bytes")


def _used(group: netCDF4.Dataset, dimension: netCDF4.Dimension) -> bool:
    """Return whether a variable in or below `group` has the dimension."""
    if any(dimension.name in variable.dimensions for variable in group.variables.values()):
        return True
    return any(_used(member, dimension) for member in group.groups.values())


def _dtype(variable: Variable) -> tuple[AnyDType | type[str] | DataType | None, dict[str, JSON]]:
    """Return the dtype to store (``None``: Zarr has no such type), and attributes that explain it."""
    datatype = variable.datatype
    names = getattr(datatype, "enum_dict", None)
    if names is not None:
        flags: dict[str, JSON] = {
            "flag_values": [int(v) for v in names.values()],
            "flag_meanings": " ".join(map(str, names)),
        }
        return np.dtype(variable.dtype).newbyteorder("="), flags
    stored: object = variable.dtype
    if stored is str:
        return str, {}
    if type(datatype).__name__ == "VLType":
        return ragged(variable.dtype), {}
    dtype = np.dtype(variable.dtype)
    return (None if dtype.hasobject else dtype.newbyteorder("=")), {}


def _reader(variable: Variable, dtype: Any) -> Callable[[Box], AnyArray]:
    element = variable.dtype

    def read(box: Box) -> AnyArray:
        # The library changes the dtype of unsigned and of empty results; values are the same.
        with _LIBRARY:
            values = np.asarray(variable[box] if box else variable[...])
        if isinstance(dtype, DataType):
            return rows(values, element)
        if dtype is str:
            return values.astype(np.dtypes.StringDType())
        wanted = tuple(part.stop - part.start for part in box)
        return (
            values.reshape(wanted) if values.dtype == dtype else values.astype(dtype, casting="equiv").reshape(wanted)
        )

    return read


def open_source(place: str | RemoteFile) -> Source:
    """Open a NetCDF file. The package reads no file objects: those of NetCDF-4 are read as the HDF5 files that they are."""
    if not isinstance(place, RemoteFile):
        return NetCDFSource(place)
    if place.start(3) == b"CDF":
        return classic.ClassicSource(place)
    return HDF5Source(place, kind="netcdf")
