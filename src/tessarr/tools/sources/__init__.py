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

Files in stores (``s3://``, ``https://`` and others) are read by ranges, as `RemoteFile`; a copy of them is downloaded for a
package that needs a path: netCDF4 (which is not used for them), cfgrib, and those of ``.nii.gz`` and ``.fits.gz``.

Other packages add a format by an entry point in the group ``tessarr.source``, or `tessarr.registry.register`: a function that
opens a path as a `Source`. It is chosen by name, or where its attribute ``recognises(path or URL, first 512 bytes)`` returns
true. With the attribute ``takes_files = True`` it also opens a `RemoteFile`; else it gets the path of a copy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from tessarr import registry
from tessarr.errors import StoreError, TessarrError
from tessarr.stores.url import StoreLike, as_url, is_url
from tessarr.tools.sources.base import Box, Source, SourceArray, SourceGroup
from tessarr.tools.sources.remote_file import RemoteFile, downloaded, is_file_url
from tessarr.tools.sources.zarr import open_source as open_zarr
from tessarr.types import AnyArray

_START = 512
_TAKE_FILES = frozenset({"npy", "hdf5", "netcdf", "tiff", "fits", "nifti"})
"""Formats whose package reads file objects."""


def kinds() -> list[str]:
    """Return the names of all formats: values of ``--from``."""
    return [*registry.names("source")]


def source_kind(place: str | RemoteFile) -> str:
    """Detect the format of the data at a place, by its first bytes, then by its name.

    Raises `StoreError` when there is nothing, or an unknown format.
    """
    if isinstance(place, RemoteFile):
        return _kind_of(place.name, place.start(_START))
    if is_url(place) or os.path.isdir(place):
        return "zarr"
    if not os.path.exists(place):
        raise StoreError("no such file or directory", store=place)
    with open(place, "rb") as file:
        start = file.read(_START)
    return _kind_of(place, start)


def _kind_of(place: str, start: bytes) -> str:
    kind = kind_of(place, start)
    if kind is not None:
        return kind
    raise StoreError(
        "the format of the file is unknown",
        store=place,
        expected="NumPy (.npy, .npz), HDF5, NetCDF, TIFF, NIfTI, FITS, GRIB or Zarr",
        got=repr(start[:8]),
        hint=f"If it holds references that you trust: reference:{place}" if start.startswith(b"{") else None,
    )


def kind_of(place: str, start: bytes) -> str | None:
    """Detect the format of a file by its first bytes, then by its name; ``None``: it is unknown."""
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
    if start.startswith(b"SIMPLE  =") or name.endswith((".fits.gz", ".fit.gz", ".fts.gz")):
        return "fits"
    if start.startswith(b"GRIB"):
        return "grib"
    for kind in kinds():
        recognises = getattr(registry.get("source", kind), "recognises", None)
        if recognises is not None and recognises(place, start):
            return kind
    return None


def open_file(
    url: str, kind: str | None, storage_options: Mapping[str, object] | None = None
) -> tuple[RemoteFile, str] | None:
    """Open the file at a URL, and detect its format; ``None``: nothing is there, or what may be Zarr.

    Raises the errors of `RemoteFile` where `kind` says that it is a file.
    """
    try:
        file = RemoteFile(url, storage_options)
    except StoreError:
        if kind in (None, "zarr"):
            return None  # opening it as Zarr says what is wrong
        raise
    chosen = kind or kind_of(url, file.start(_START))
    if chosen not in (None, "zarr"):
        return file, str(chosen)
    file.close()
    return None


def open_source(
    place: StoreLike | RemoteFile, kind: str | None = None, storage_options: Mapping[str, object] | None = None
) -> Source:
    """Open the data to be converted: a path or URL, or anything that `tessarr.open` accepts; or a file in a store, and its
    format, which the source then closes.

    Raises `StoreError`, `MissingDependencyError` (when a format's package is not installed), and errors of opening.
    """
    if isinstance(place, os.PathLike):
        place = os.fspath(place)
    place = as_url(place) if isinstance(place, str) else place
    if is_file_url(place) and (found := open_file(str(place), kind, storage_options)) is not None:
        place, kind = found
    if isinstance(place, RemoteFile):
        return _open_remote(place, kind or source_kind(place))
    chosen = kind or (source_kind(place) if isinstance(place, str) else "zarr")
    opener = _opener(chosen)
    if chosen == "zarr" or not isinstance(place, str):
        return open_zarr(place, storage_options)
    source: Source
    try:
        source = opener(place)
    except Exception as error:
        raise typed_error(error, chosen, place) from error
    return _with_typed_errors(source, chosen, place)


def _opener(kind: str) -> Callable[..., Source]:
    opener: Callable[..., Source] | None = registry.get("source", kind)
    if opener is None:
        raise ValueError(f"the format must be one of {', '.join(kinds())}; got {kind!r}")
    return opener


def _open_remote(file: RemoteFile, kind: str) -> Source:
    try:
        source = _Remote(file, kind)
    except Exception as error:
        raise typed_error(error, kind, file.name) from error
    return _with_typed_errors(source, kind, file.name)


def takes_files(kind: str, file: RemoteFile) -> bool:
    """Whether the format's package reads a file in a store by ranges; else a copy is downloaded."""
    if kind in ("nifti", "fits") and file.start(2) == b"\x1f\x8b":
        return False
    return kind in _TAKE_FILES or bool(getattr(registry.get("source", kind), "takes_files", False))


class _Remote:
    """The source of a file in a store, or of a copy of it; both are closed, and the copy is removed, with it."""

    def __init__(self, file: RemoteFile, kind: str) -> None:
        with ExitStack() as stack:
            stack.callback(file.close)
            opener = _opener(kind)
            source = opener(file if takes_files(kind, file) else stack.enter_context(downloaded(file)))
            stack.callback(source.close)
            self._stack = stack.pop_all()
        self.kind, self.parallel = source.kind, source.parallel
        self.nodes: list[SourceArray | SourceGroup] = source.nodes
        self.notices, self.unsupported = source.notices, source.unsupported

    def close(self) -> None:
        """Close the file."""
        self._stack.close()


def _with_typed_errors(source: Source, kind: str, place: str) -> Source:
    for node in source.nodes:
        if isinstance(node, SourceArray):
            node.read = _reading(node.read, kind, place)
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
