"""Open N5 containers as groups and arrays, and create datasets in them.

Source: N5 4.0; `tessarr.stores.virtual.n5` describes how a container is read as a store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from tessarr.codecs.array_to_array.transpose import TransposeCodec
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.array_to_bytes.n5_default import N5DefaultCodec
from tessarr.codecs.array_to_bytes.n5_strings import N5StringsCodec
from tessarr.codecs.array_to_bytes.n5_varlen import N5ObjectsCodec, N5VarlenCodec
from tessarr.codecs.base import Codec
from tessarr.codecs.bytes_to_bytes.n5_jpeg import N5JpegCodec
from tessarr.codecs.parse import CodecLike, codec_from
from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import async_variant, sans_io, steps_of
from tessarr.core.creation.arrays import create_array
from tessarr.core.group import Group
from tessarr.core.open import open
from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.parse import DTypeLike, from_numpy
from tessarr.metadata import n5
from tessarr.metadata.n5 import AxisOrder
from tessarr.stores.url import StoreLike
from tessarr.stores.virtual.n5 import N5Store
from tessarr.types import JSONObject


def _container(store: StoreLike, axis_order: AxisOrder, mode: str, options: Mapping[str, object] | None) -> N5Store:
    from tessarr.stores.path import StorePath
    from tessarr.stores.url import store_from

    if isinstance(store, N5Store):
        return store
    opened, path = store_from(store, mode=mode, storage_options=options)
    if isinstance(opened, N5Store):
        return opened
    return N5Store(StorePath(opened, path), axis_order=axis_order, read_only=mode == "r")


@sans_io
async def open_n5(
    store: StoreLike,
    mode: str = "r",
    *,
    path: str | None = None,
    axis_order: AxisOrder = "C",
    storage_options: Mapping[str, object] | None = None,
) -> Array | Group:
    """Open an N5 container, or the group or dataset at `path` in it.

    `store` is a path, a URL, a mapping or a store. `axis_order` is ``"C"`` for arrays whose slowest axis comes first, as
    in zarr-python 2 and z5py, or ``"F"`` for the order in N5's metadata, as in Java, TensorStore and Neuroglancer. `mode`
    is that of `tessarr.open`. A URL that ends in ``|n5:`` opens the same container with `tessarr.open`, in C order.

    A group that describes resolution levels in a dialect of N5 has the attributes of an OME-Zarr image
    (`tessarr.metadata.n5_dialects`). Raises `NodeNotFoundError`, and `MetadataValidationError` for a malformed document.

    >>> import tessarr
    >>> container = {"a/attributes.json": b'{"dimensions": [4, 6], "blockSize": [2, 3], "dataType": "uint8",'
    ...     b' "compression": {"type": "raw"}}', "a/0/0": bytes.fromhex("000000020000000200000003") + bytes(range(6))}
    >>> z = tessarr.open_n5(container)["a"]
    >>> z.shape, z[:3, :2].tolist()
    ((6, 4), [[0, 1], [2, 3], [4, 5]])
    """
    return await steps_of(open)(_container(store, axis_order, mode, storage_options), mode, path=path)


@sans_io
async def create_n5(
    store: StoreLike,
    *,
    shape: Sequence[int],
    chunks: Sequence[int],
    dtype: DTypeLike,
    path: str = "",
    compressor: CodecLike | None = "zstd",
    axis_order: AxisOrder = "C",
    attributes: Mapping[str, object] | None = None,
    dimension_names: Sequence[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
) -> Array:
    """Create a dataset of an N5 container, with groups above it.

    `shape` and `chunks` are in `axis_order` (see `open_n5`). `dtype` is an integer type, float32, float64, `str`, or `bytes`
    for objects, each of which is a block: `chunks` are all 1 then.
    `compressor` is ``None``, or gzip, zlib, bz2, lzma, zstd, blosc, ``tessarr.lz4java`` (N5's lz4) or ``tessarr.n5_jpeg``, as
    an object, a name or JSON. Blocks at the edge are stored whole. `dimension_names` become the attribute ``axes``, in the
    order of N5.

    Raises `MetadataValidationError` for metadata that N5 cannot express, `ContainsArrayError`, `ContainsGroupError`.

    >>> import tessarr
    >>> values = {}
    >>> z = tessarr.create_n5(values, path="s0", shape=(6, 4), chunks=(3, 2), dtype="uint16", compressor=None)
    >>> z[...] = 1
    >>> sorted(values), values["s0/0/0"][:12].hex()
    (['attributes.json', 's0/0/0', 's0/0/1', 's0/1/0', 's0/1/1', 's0/attributes.json'], '000000020000000200000003')
    """
    where = _container(store, axis_order, "a", storage_options)
    order = where.axis_order
    data_type = from_numpy(dtype)
    if isinstance(compressor, str):
        compressor = {"name": compressor, "configuration": _USUAL.get(compressor, {})}
    codec = None if compressor is None else codec_from(compressor)
    return await steps_of(create_array)(
        where,
        name=path or None,
        shape=tuple(shape),
        chunks=tuple(chunks),
        dtype=data_type,
        **dataset_arguments(chunks, data_type, codec, order),
        attributes=attributes,
        dimension_names=dimension_names,
        overwrite=overwrite,
        zarr_format=3,
    )


class DatasetArguments(TypedDict):
    """Arguments of `create_array` that make the array of a dataset."""

    fill_value: Scalar
    filters: list[Codec] | None
    serializer: Codec
    compressors: None
    chunk_key_encoding: JSONObject


def dataset_arguments(
    chunks: Sequence[int], data_type: DataType, compressor: Codec | None, order: AxisOrder
) -> DatasetArguments:
    """Return the fill value, codecs and keys of a dataset of N5."""
    ndim = len(chunks)
    if isinstance(compressor, N5JpegCodec) and ndim:
        compressor = replace(compressor, width=chunks[-1 if order == "C" else 0])
    serializer = _blocks(data_type, ndim, compressor)
    turned = order == "C" and not isinstance(serializer, N5ObjectsCodec)
    return {
        "fill_value": data_type.default_fill(),
        "filters": [TransposeCodec(tuple(reversed(range(ndim))))] if turned else None,
        "serializer": serializer,
        "compressors": None,
        "chunk_key_encoding": n5.keys(ndim, order),
    }


def _blocks(data_type: DataType, ndim: int, compressor: Codec | None) -> Codec:
    """Make the codec of the blocks of a dataset."""
    after = () if compressor is None else (compressor,)
    if data_type.name == "string":
        return N5VarlenCodec((N5StringsCodec(), *after))
    if data_type.name == "bytes":
        return N5ObjectsCodec(after)
    reverse = TransposeCodec(tuple(reversed(range(ndim))))
    return N5DefaultCodec((reverse, BytesCodec(None if data_type.itemsize == 1 else "big"), *after))


_USUAL: dict[str, dict[str, object]] = {"gzip": {"level": 5}, "zstd": {"level": 3}}

open_n5_async = async_variant(open_n5)
create_n5_async = async_variant(create_n5)
