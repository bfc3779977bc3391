"""The keywords of `create` and of the functions that pass them on, as types: editors complete them, type checkers see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

import numpy.typing as npt

from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.core.creation.array_config import ArrayConfigLike
from tessarr.dtypes.parse import DTypeLike
from tessarr.grids.guess import ChunksLike, ShardsLike
from tessarr.keys.base import ChunkKeyEncodingLike
from tessarr.stores.url import StoreLike
from tessarr.types import JSONObject, ShapeLike


class CodingOptions(TypedDict, total=False):
    """How the elements are cut and encoded, and what zarr-python 2 takes beside that."""

    chunks: ChunksLike
    chunk_shape: ChunksLike
    shards: ShardsLike
    filters: CodecsLike
    compressors: CodecsLike
    compressor: CodecLike | None
    compression: str | None
    compression_opts: object
    serializer: CodecLike | None
    codecs: Iterable[CodecLike] | None
    object_codec: CodecLike | None
    order: str | None
    overwrite: bool
    write_data: bool
    attributes: Mapping[str, object] | None
    chunk_key_encoding: ChunkKeyEncodingLike | None
    dimension_names: Iterable[str | None] | None
    dimension_separator: str | None
    storage_transformers: Sequence[JSONObject]
    write_empty_chunks: bool | None
    read_missing_chunks: bool | None
    read_only: bool | None
    cache_metadata: bool | None
    cache_attrs: bool | None
    chunk_store: StoreLike
    synchronizer: object
    meta_array: object
    normalize_keys: bool
    partial_decompress: bool


class ArrayOptions(CodingOptions, total=False):
    """`CodingOptions` and the data type."""

    dtype: DTypeLike | None


class RequireOptions(CodingOptions, total=False):
    """Keywords with which `Group.require_array` creates what is missing."""

    data: npt.ArrayLike | None
    fill_value: object
    storage_options: Mapping[str, object] | None
    zarr_format: int | None


class RequireDatasetOptions(RequireOptions, total=False):
    """Keywords with which `Group.require_dataset` creates what is missing."""

    config: ArrayConfigLike | None


class MemberOptions(ArrayOptions, total=False):
    """Keywords of arrays whose shape and fill value are given otherwise."""

    config: ArrayConfigLike | None
    mode: str | None
    storage_options: Mapping[str, object] | None
    zarr_format: int | None
    zarr_version: int | None


class FilledOptions(MemberOptions, total=False):
    """Keywords of arrays whose shape is given otherwise."""

    fill_value: object


class ShapedOptions(FilledOptions, total=False):
    """Keywords of arrays in a group whose elements are given otherwise."""

    shape: ShapeLike | None


class DatasetOptions(ShapedOptions, total=False):
    """Keywords of arrays in a group."""

    data: npt.ArrayLike | None


class FullOptions(MemberOptions, total=False):
    """Keywords of `full`."""

    store: StoreLike
    path: str | None


class CreateOptions(FullOptions, total=False):
    """Keywords of `empty`, `zeros` and `ones`."""

    fill_value: object


class ShapedCreateOptions(CreateOptions, total=False):
    """Keywords of `array`."""

    shape: ShapeLike | None


class LikeOptions(ArrayOptions, total=False):
    """Keywords of `empty_like` and its kin."""

    config: ArrayConfigLike | None
    mode: str | None
    storage_options: Mapping[str, object] | None
    zarr_version: int | None
    shape: ShapeLike | None
    fill_value: object
    store: StoreLike
    path: str | None
