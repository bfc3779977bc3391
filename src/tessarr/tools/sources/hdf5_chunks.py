"""Find the chunks of HDF5 datasets in the file, with h5py: NetCDF-4 files are HDF5 files too.

Source: the HDF5 file format specification, version 3 (filters are numbered there), and the registry of filters.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tessarr.tools.sources.base import StoredChunks, bytes_codec, contiguous
from tessarr.types import AnyDType, JSONObject, Shape

if TYPE_CHECKING:
    import h5py

_PLAIN_KINDS = "biufc"
_COMPACT, _CONTIGUOUS, _CHUNKED = 0, 1, 2
_LAYOUTS = {_COMPACT: "its values are in the header of the dataset", 3: "it is a view of datasets in other places"}
_SHUFFLE = 2
_CODECS = {1: "zlib", 3: "fletcher32", 307: "bz2", 32001: "blosc", 32015: "zstd"}
"""Filters that store what numcodecs reads, whatever their options were."""


class _StoreInfo(Protocol):
    """What h5py says of a chunk."""

    chunk_offset: Shape
    filter_mask: int
    byte_offset: int
    size: int


def stored_chunks(dataset: h5py.Dataset) -> StoredChunks | str:
    """Return where the chunks of a dataset are, or why Zarr cannot decode them there."""
    created = dataset.id.get_create_plist()
    dtype = dataset.dtype
    if dtype.kind not in _PLAIN_KINDS or dtype.hasobject or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        return f"elements of type {dtype} are not plain numbers"
    if not dataset.id.get_type().equal(_in_memory(dtype)):
        return "its elements are stored in a form that NumPy has not"
    if dataset.file.userblock_size:
        return "the file has a user block"
    if created.get_external_count():
        return "its values are in other files"
    layout = created.get_layout()
    if layout == _CONTIGUOUS:
        offset = dataset.id.get_offset()
        return _absent(dataset) if offset is None else contiguous(dataset.shape, dtype, offset)
    if layout != _CHUNKED:
        return _LAYOUTS.get(layout, "its layout is unknown")
    codecs: list[JSONObject] = [bytes_codec(dtype)]
    for number in range(created.get_nfilters()):
        filter_id, _, _, name = created.get_filter(number)
        codec = _codec(filter_id, dtype.itemsize)
        if codec is None:
            return f"Zarr has no codec for the filter {name.decode(errors='replace')} (number {filter_id})"
        codecs.append(codec)
    return _chunked(dataset, tuple(codecs))


def _in_memory(dtype: AnyDType) -> object:
    from h5py import h5t

    return h5t.py_create(dtype, logical=True)


def _codec(filter_id: int, itemsize: int) -> JSONObject | None:
    if filter_id == _SHUFFLE:
        return {"name": "numcodecs.shuffle", "configuration": {"elementsize": itemsize}}
    name = _CODECS.get(filter_id)
    return None if name is None else {"name": f"numcodecs.{name}", "configuration": {}}


def _chunked(dataset: h5py.Dataset, codecs: tuple[JSONObject, ...]) -> StoredChunks | str:
    chunks = tuple(int(n) for n in dataset.chunks or ())
    grid = tuple(-(-int(n) // chunk) for n, chunk in zip(dataset.shape, chunks, strict=True))
    offsets, nbytes = np.full(grid, -1, np.int64), np.zeros(grid, np.int64)
    masks = 0

    def add(info: _StoreInfo) -> None:
        nonlocal masks
        at = tuple(start // chunk for start, chunk in zip(info.chunk_offset, chunks, strict=True))
        if all(n < count for n, count in zip(at, grid, strict=True)):  # others were left when the dataset shrank
            offsets[at], nbytes[at] = info.byte_offset, info.size
            masks |= info.filter_mask

    if hasattr(dataset.id, "chunk_iter"):
        dataset.id.chunk_iter(add)
    else:
        for number in range(dataset.id.get_num_chunks()):
            add(dataset.id.get_chunk_info(number))
    if masks:
        return "filters were left out of some of its chunks"
    return StoredChunks(chunks=chunks, codecs=codecs, offsets=offsets, nbytes=nbytes, fill_value=dataset.fillvalue)


def _absent(dataset: h5py.Dataset) -> StoredChunks:
    """Describe a contiguous dataset without values: its fill value stands for all."""
    shape = tuple(int(n) for n in dataset.shape)
    grid = (1,) * len(shape) if prod(shape) else tuple(min(1, n) for n in shape)
    return StoredChunks(
        chunks=tuple(max(1, n) for n in shape),
        codecs=(bytes_codec(dataset.dtype),),
        offsets=np.full(grid, -1, np.int64),
        nbytes=np.zeros(grid, np.int64),
        fill_value=dataset.fillvalue,
    )
