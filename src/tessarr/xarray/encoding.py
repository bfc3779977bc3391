"""Convert between an array's properties and xarray's encoding: dimensions, chunks and codecs.

Codecs of v3 are held as JSON, which tessarr's writer and zarr-python's both accept; those of v2 as numcodecs codecs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xarray.coding.strings import check_vlen_dtype

from tessarr.conventions.recognised import nczarr
from tessarr.conventions.xarray import DIMENSIONS, read_dimensions
from tessarr.dtypes.parse import DTypeLike

if TYPE_CHECKING:
    from tessarr.core.array import Array


def dimensions_and_attributes(array: Array) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the names of an array's dimensions, and its attributes without those that state these names.

    Names come from v3's ``dimension_names``, or else the attribute ``_ARRAY_DIMENSIONS``, or else NCZarr's. Raises
    `KeyError` for an array without names.
    """
    attributes = dict(array.attrs.asdict())
    metadata = array._metadata
    own = metadata.dimension_names if metadata.zarr_format == 3 else None
    names = read_dimensions(attributes, array.ndim, own)
    if names is None:
        noted = nczarr.read_array(attributes, getattr(metadata, "extra", None))
        names = None if noted is None else tuple(name.rpartition("/")[2] for name in noted.dimensions)
    if names is None and array.ndim == 0:
        names = ()
    if names is None or len(names) != array.ndim:
        expected = "`dimension_names` metadata" if array.zarr_format == 3 else f"attribute `{DIMENSIONS}`"
        raise KeyError(
            f"Zarr object is missing the {expected}, which is required for xarray to determine variable dimensions "
            f"(array {array.name} of shape {array.shape}, dimensions {names})"
        )
    if own is None:
        attributes.pop(DIMENSIONS, None)
    if array.zarr_format != 3:
        attributes = {name: value for name, value in attributes.items() if not name.lower().startswith("_nc")}
    return tuple(names), attributes


def encoding_of(array: Array, dimensions: Sequence[object]) -> dict[str, object]:
    """Return the encoding of the variable of `array`. Chunk sizes are one number per axis where all are equal."""
    chunks = _sizes(array, sharded=False)
    encoding: dict[str, Any] = {
        "chunks": chunks,
        "preferred_chunks": dict(zip(dimensions, chunks, strict=True)),
        "compressors": array.compressors,
        "filters": array.filters,
        "shards": None if array._sharding is None else _sizes(array, sharded=True),
    }
    if array.zarr_format == 3:
        codecs = [tuple(codec.to_dict() for codec in encoding[kind]) for kind in ("compressors", "filters")]
        encoding["compressors"], encoding["filters"] = codecs
        encoding["serializer"] = None if array.serializer is None else array.serializer.to_dict()
    return encoding


def _sizes(array: Array, *, sharded: bool) -> tuple[object, ...]:
    """Return the shape of chunks or shards; along an axis whose intervals differ, the size of each."""
    try:
        return tuple(array.shards or ()) if sharded else tuple(array.chunks)
    except NotImplementedError:
        listed = array.write_chunk_sizes if sharded else array.read_chunk_sizes
        return tuple(_compact(sizes) for sizes in listed)


def _compact(sizes: tuple[int, ...]) -> object:
    if not sizes:
        return (0,)  # dask has no axis without chunks
    return sizes[0] if len({*sizes[:-1]}) <= 1 and sizes[-1] <= sizes[0] else sizes


def creation_keywords(
    dtype: DTypeLike, fill_value: object, encoding: Mapping[str, object], write_empty: bool | None, zarr_format: int
) -> dict[str, object]:
    """Make the keywords of `tessarr.Group.create_array` for a variable of `dtype` with xarray's `encoding`.

    A `fill_value` of ``None`` is null in v2, where no value is then missing, and in v3 the default of the data type.

    Raises `ValueError` when the encoding and `write_empty` disagree about chunks that hold nothing but the fill value.
    """
    keywords = {name: value for name, value in encoding.items() if name not in ("cache_metadata", "fill_value")}
    config = {name: keywords.pop(name) for name in ("write_empty_chunks", "order") if name in keywords}
    if write_empty is not None:
        if config.get("write_empty_chunks", write_empty) != write_empty:
            raise ValueError(
                'Differing "write_empty_chunks" values in encoding and parameters: '
                f"{config['write_empty_chunks']} in the encoding, {write_empty} as an argument"
            )
        config["write_empty_chunks"] = write_empty
    if fill_value is not None or zarr_format != 3:
        keywords["fill_value"] = fill_value
    keywords["dtype"] = str if check_vlen_dtype(dtype) is str else dtype
    return {**keywords, "config": config or None}
