"""Read foreign formats for conversion: one file per format, all giving the same plain description of a tree.

A source is opened, its `nodes` are listed without reading values, and each array is then read in boxes, so that no array
need fit into memory. Conventions are not applied: packed data stays packed, and its attributes describe the packing.

| format | module | package (extra ``[convert]``) |
|---|---|---|
| NumPy ``.npy``, ``.npz`` | `npy` | none |
| HDF5 | `hdf5` | h5py |
| NetCDF-4, NetCDF-3 | `netcdf` | netCDF4 |
| TIFF | `tiff` | tifffile |
| Zarr of any version | `zarr` | none |
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.dtypes.base import DataType
from tessarr.dtypes.parse import from_numpy
from tessarr.errors import MissingDependencyError, StoreError, TessarrError
from tessarr.stores.url import StoreLike, is_url
from tessarr.types import AnyArray, AnyDType, Shape

Box: TypeAlias = tuple[slice, ...]
"""A slice with start and stop per axis."""

KINDS = ("npy", "npz", "hdf5", "netcdf", "tiff", "zarr")
"""Values of ``--from``."""


class Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()
"""`SourceArray.fill_value` of a source without a fill value."""


@dataclass(slots=True, kw_only=True)
class SourceArray:
    """Describe one array of a source."""

    path: str
    """Path below the root of the source; "" when the source is one array."""
    shape: Shape
    dtype: type[str | bytes] | AnyDType | DataType
    """A dtype for `tessarr.create_array`: a NumPy dtype, `str`, `bytes`, or a tessarr `DataType`."""
    read: Callable[[Box], AnyArray]
    """Returns the values of a box."""
    chunks: Shape | None = None
    """Shape of the parts that the source reads as one; ``None`` when any part can be read alone."""
    fill_value: object = UNSET
    attributes: Mapping[str, object] = field(default_factory=dict)
    """Attributes with JSON values only."""
    dimension_names: tuple[str | None, ...] | None = None
    cf_fill: np.generic | None = None
    """The CF attribute ``_FillValue``, whose spelling depends on the Zarr format; a NumPy scalar."""
    keep: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `new_array_metadata` from a Zarr source, such as codecs."""

    @property
    def itemsize(self) -> int:
        """Bytes per element, estimated for elements of varying size."""
        dtype = self.dtype.dtype if isinstance(self.dtype, DataType) else self.dtype
        return 32 if dtype in (str, bytes) else max(1, np.dtype(dtype).itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, estimated for elements of varying size."""
        size = self.itemsize
        for length in self.shape:
            size *= length
        return size


@dataclass(slots=True, kw_only=True)
class SourceGroup:
    """Describe one group of a source."""

    path: str
    attributes: Mapping[str, object] = field(default_factory=dict)


class Source(Protocol):
    """Describe an opened source."""

    kind: str
    parallel: bool
    """Whether boxes may be read concurrently."""
    nodes: list[SourceArray | SourceGroup]
    """All nodes, parents before children; the first is the root."""
    notices: list[str]
    """Messages about parts that are left out or changed."""
    unsupported: list[tuple[str, str]]
    """Path and reason of every array that Zarr cannot hold."""

    def close(self) -> None:
        """Close the file."""


def source_kind(place: str) -> str:
    """Detect the format of the data at a place, by its first bytes, then by its name.

    Raises `StoreError` when there is nothing, or an unknown format.
    """
    if is_url(place) or os.path.isdir(place):
        return "zarr"
    if not os.path.exists(place):
        raise StoreError("no such file or directory", store=place)
    with open(place, "rb") as file:
        start = file.read(8)
    name = place.lower()
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    if start.startswith(b"PK"):
        return "npz" if name.endswith(".npz") else "zarr"
    if start == b"\x89HDF\r\n\x1a\n":
        return "netcdf" if name.endswith((".nc", ".nc4", ".cdf", ".netcdf")) else "hdf5"
    if start.startswith((b"CDF\x01", b"CDF\x02", b"CDF\x05")):
        return "netcdf"
    if start[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return "tiff"
    raise StoreError(
        "the format of the file is unknown",
        store=place,
        expected="NumPy (.npy, .npz), HDF5, NetCDF, TIFF or Zarr",
        got=repr(start),
    )


def open_source(
    place: StoreLike, kind: str | None = None, storage_options: Mapping[str, object] | None = None
) -> Source:
    """Open the data to be converted: a path or URL, or anything that `tessarr.open` accepts.

    Raises `StoreError`, `MissingDependencyError` (when a format's package is not installed), and errors of opening.
    """
    if isinstance(place, os.PathLike):
        place = os.fspath(place)
    chosen = kind or (source_kind(place) if isinstance(place, str) else "zarr")
    if chosen not in KINDS:
        raise ValueError(f"the format must be one of {', '.join(KINDS)}; got {chosen!r}")
    module = import_module(f"tessarr.tools.sources.{'npy' if chosen == 'npz' else chosen}")
    if chosen == "zarr" or not isinstance(place, str):
        source: Source = module.open_source(place, storage_options)
        return source
    try:
        source = module.open_source(place)
    except Exception as error:
        raise _typed(error, chosen, place) from error
    for node in source.nodes:
        if isinstance(node, SourceArray):
            node.read = _reading(node.read, chosen, place)
    return source


def _reading(read: Callable[[Box], AnyArray], kind: str, place: str) -> Callable[[Box], AnyArray]:
    def typed(box: Box) -> AnyArray:
        try:
            return read(box)
        except Exception as error:
            raise _typed(error, kind, place) from error

    return typed


def _typed(error: Exception, kind: str, place: str) -> Exception:
    """Convert an error of another package to one that names the file; errors of tessarr and of memory stay."""
    if isinstance(error, TessarrError | MemoryError):
        return error
    hint = None if isinstance(error, PermissionError | FileNotFoundError) else "It may be truncated or damaged"
    return StoreError(f"the file cannot be read as {kind}", store=place, got=str(error) or repr(error), hint=hint)


def ragged(dtype: AnyDType) -> DataType | None:
    """Return the type of rows of numbers of different lengths, which Zarr v2 can hold; ``None`` for other rows."""
    row = np.dtype(dtype)
    return from_numpy(object, object_codec=f"vlen-array:{row.newbyteorder('=').str}") if row.kind in "biufc" else None


def rows(values: AnyArray, dtype: npt.DTypeLike) -> AnyArray:
    """Make an array of such rows, of one dtype."""
    made = np.empty(values.shape, object)
    for at in np.ndindex(*values.shape):
        made[at] = np.asarray(values[at], np.dtype(dtype).newbyteorder("="))
    return made


def missing(package: str, what: str) -> MissingDependencyError:
    """Make the error that names the extra for a format."""
    return MissingDependencyError(
        f"reading {what} needs the package {package}, which is not installed", hint="pip install 'tessarr[convert]'"
    )
