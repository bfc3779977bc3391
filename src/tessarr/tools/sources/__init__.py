"""Read foreign formats for conversion: one file per format, all giving the same plain description of a tree.

A source is opened, its `nodes` are listed without reading values, and each array is then read in boxes, so that no array
need fit into memory. Conventions are not applied: packed data stays packed, and its attributes describe the packing.

| format | module | package (extra ``[convert]``) |
|---|---|---|
| NumPy ``.npy``, ``.npz`` | `npy` | none |
| HDF5 | `hdf5` | h5py |
| NetCDF-4, NetCDF-3 | `netcdf` | netCDF4 |
| TIFF | `tiff` | tifffile |
| NIfTI | `nifti` | nibabel |
| FITS | `fits` | astropy (extra ``[fits]``) |
| GRIB | `grib` | cfgrib (extra ``[grib]``) |
| Zarr of any version | `zarr` | none |

Other packages add a format by an entry point in the group ``tessarr.source``, or `tessarr.registry.register`: a function that
opens a path as a `Source`. It is chosen by name, or where its attribute ``recognises(path, first 512 bytes)`` returns true.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from tessarr import registry
from tessarr.errors import StoreError, TessarrError
from tessarr.stores.url import StoreLike, as_url, is_url
from tessarr.tools.sources.base import Box, Source, SourceArray
from tessarr.tools.sources.zarr import open_source as open_zarr
from tessarr.types import AnyArray

_START = 512


def kinds() -> list[str]:
    """Return the names of all formats: values of ``--from``."""
    return [*registry.names("source")]


def source_kind(place: str) -> str:
    """Detect the format of the data at a place, by its first bytes, then by its name.

    Raises `StoreError` when there is nothing, or an unknown format.
    """
    if is_url(place) or os.path.isdir(place):
        return "zarr"
    if not os.path.exists(place):
        raise StoreError("no such file or directory", store=place)
    with open(place, "rb") as file:
        start = file.read(_START)
    name = place.lower()
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    if start.startswith(b"PK"):
        return "npz" if name.endswith(".npz") else "zarr"
    if start.startswith(b"\x89HDF\r\n\x1a\n"):
        return "netcdf" if name.endswith((".nc", ".nc4", ".cdf", ".netcdf")) else "hdf5"
    if start.startswith((b"CDF\x01", b"CDF\x02", b"CDF\x05")):
        return "netcdf"
    if start[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return "tiff"
    if start[344:347] in (b"n+1", b"ni1") or start[4:7] in (b"n+2", b"ni2") or name.endswith((".nii.gz", ".img")):
        return "nifti"
    if start.startswith(b"SIMPLE  ="):
        return "fits"
    if start.startswith(b"GRIB"):
        return "grib"
    for kind in kinds():
        recognises = getattr(registry.get("source", kind), "recognises", None)
        if recognises is not None and recognises(place, start):
            return kind
    raise StoreError(
        "the format of the file is unknown",
        store=place,
        expected="NumPy (.npy, .npz), HDF5, NetCDF, TIFF, NIfTI, FITS, GRIB or Zarr",
        got=repr(start[:8]),
        hint=f"If it holds references that you trust: reference:{place}" if start.startswith(b"{") else None,
    )


def open_source(
    place: StoreLike, kind: str | None = None, storage_options: Mapping[str, object] | None = None
) -> Source:
    """Open the data to be converted: a path or URL, or anything that `tessarr.open` accepts.

    Raises `StoreError`, `MissingDependencyError` (when a format's package is not installed), and errors of opening.
    """
    if isinstance(place, os.PathLike):
        place = os.fspath(place)
    place = as_url(place) if isinstance(place, str) else place
    chosen = kind or (source_kind(place) if isinstance(place, str) else "zarr")
    opener = registry.get("source", chosen)
    if opener is None:
        raise ValueError(f"the format must be one of {', '.join(kinds())}; got {chosen!r}")
    if chosen == "zarr" or not isinstance(place, str):
        return open_zarr(place, storage_options)
    source: Source
    try:
        source = opener(place)
    except Exception as error:
        raise typed_error(error, chosen, place) from error
    for node in source.nodes:
        if isinstance(node, SourceArray):
            node.read = _reading(node.read, chosen, place)
    return source


def _reading(read: Callable[[Box], AnyArray], kind: str, place: str) -> Callable[[Box], AnyArray]:
    def typed(box: Box) -> AnyArray:
        try:
            return read(box)
        except Exception as error:
            raise typed_error(error, kind, place) from error

    return typed


def typed_error(error: Exception, kind: str, place: str) -> Exception:
    """Convert an error of another package to one that names the file; errors of tessarr and of memory stay."""
    if isinstance(error, TessarrError | MemoryError):
        return error
    hint = None if isinstance(error, PermissionError | FileNotFoundError) else "It may be truncated or damaged"
    return StoreError(f"the file cannot be read as {kind}", store=place, got=str(error) or repr(error), hint=hint)
