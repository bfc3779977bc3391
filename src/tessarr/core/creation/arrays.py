"""Create arrays: `create_array` and `create`; fill one from an array-like, in bounded memory: `write_values`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.common.warn import warn
from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import async_variant, raise_if_cancelled, sans_io, store_call
from tessarr.core.creation.array_config import DEFAULT, ArrayConfigLike, array_config
from tessarr.core.creation.like import type_of
from tessarr.core.creation.metadata import array_like, new_array_metadata
from tessarr.core.creation.zarr2_keywords import creation_arguments
from tessarr.core.creation.zarr_python_arguments import check_create, check_create_array, format_given, order_of
from tessarr.core.locate import check_chunk_store, check_mode, format_of_new, locate
from tessarr.core.stored import metadata_io
from tessarr.core.stored.create_nodes import Watched, create_node_steps
from tessarr.dtypes.parse import DTypeLike
from tessarr.engine.bound import RuntimeOptions
from tessarr.errors import (
    BaseZarrError,
    ConflictError,
    ContainsGroupError,
    ReadOnlyError,
    StaleConsolidatedError,
    StoreError,
    ZarrDeprecationWarning,
)
from tessarr.grids.guess import ChunksLike, ShardsLike
from tessarr.keys.base import ChunkKeyEncodingLike
from tessarr.metadata.array import ArrayMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Store
from tessarr.stores.protocols import List
from tessarr.stores.url import StoreLike, overlaps
from tessarr.types import JSONObject, ShapeLike

_PIECE_NBYTES = 64 << 20
"""Approximate bound on the memory for values while they are copied."""
_LACKING = "an array may be at /{} that lacks values: repeat this with overwrite=True, or delete it"


@sans_io
async def create_array(
    store: StoreLike = None,
    *,
    name: str | None = None,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    data: npt.ArrayLike | None = None,
    chunks: ChunksLike = "auto",
    shards: ShardsLike = None,
    filters: CodecsLike = "auto",
    compressors: CodecsLike = "auto",
    serializer: CodecLike | None = "auto",
    fill_value: object = DEFAULT,
    order: str | None = None,
    zarr_format: int | None = None,
    attributes: Mapping[str, object] | None = None,
    chunk_key_encoding: ChunkKeyEncodingLike | None = None,
    dimension_names: Iterable[str | None] | None = None,
    storage_options: Mapping[str, object] | None = None,
    overwrite: bool = False,
    config: ArrayConfigLike | None = None,
    write_data: bool = True,
    storage_transformers: Sequence[JSONObject] = (),
    object_codec: CodecLike | None = None,
) -> Array:
    """Create an array of `shape` and `dtype`, or of `data` (array-like), which is then written.

    `chunks`: a shape (-1: a whole axis), "auto", a size such as "8MB", or a list of sizes per axis (a rectilinear grid).
    `shards`: a shape, "auto", or a dict with ``shape`` and ``index_location``; `chunks` are then the inner chunks. `filters`
    (array → array), `serializer` (array → bytes) and `compressors` (bytes → bytes): codecs, their JSON or names, or numcodecs
    codecs; "auto": none, the data type's own, Zstandard. `overwrite` replaces a node once the new one is staged, and before
    `data` is written.

    Raises `ContainsArrayError`, `ContainsGroupError`, `BaseZarrError` (a `ValueError`) for arguments that do not fit.
    Source: Zarr v3.1 core, "Array metadata"; the surface is zarr-python's.

    >>> import tessarr, numpy as np
    >>> z = tessarr.create_array({}, data=np.arange(10.0), chunks=(5,), attributes={"units": "K"})
    >>> z.attrs["units"], z[3:6].tolist()
    ('K', [3.0, 4.0, 5.0])
    """
    where, here, _ = locate(store, name, None if not overwrite else "w", storage_options)
    source, lengths, kind = _data_shape_dtype(data, shape, dtype)
    number = format_of_new(store, zarr_format)
    if number == 1:
        _warn_v1()
    chosen = array_config(config)
    check_create_array(number, serializer, dimension_names)
    order, layout = order_of(number, order, chosen.order)
    keys = _separator_of(where, number) if chunk_key_encoding is None else chunk_key_encoding
    codecs: dict[str, Any] = {"filters": filters, "compressors": compressors, "serializer": serializer}
    cut: dict[str, Any] = {"chunks": chunks, "shards": shards, "chunk_key_encoding": keys, "order": order}
    names: dict[str, Any] = {"attributes": attributes, "dimension_names": dimension_names}
    coded = {**codecs, "object_codec": object_codec, "storage_transformers": storage_transformers}
    metadata = new_array_metadata(
        shape=lengths, dtype=kind, zarr_format=number, fill_value=fill_value, **cut, **coded, **names
    )
    values = source if write_data else None
    return await _create_steps(where, here, metadata, chosen.options, overwrite, values, layout)


def _data_shape_dtype(
    data: npt.ArrayLike | None, shape: ShapeLike | None, dtype: DTypeLike | None
) -> tuple[Any, Any, Any]:
    """Return `data` as an array-like (or ``None``), and shape and dtype of the new array. Raises `ValueError`."""
    if data is None:
        for name, value in (("shape", shape), ("dtype", dtype)):
            if value is None:
                raise ValueError(f"{name} was not specified; give shape and dtype, or data")
        return None, shape, dtype
    for name, value in (("shape", shape), ("dtype", dtype)):
        if value is not None:
            raise ValueError(
                f"The data parameter was used, but the {name} parameter was also used. Give either data, or shape and dtype"
            )
    source = array_like(data)
    return source, source.shape, type_of(source)


def _separator_of(store: Store, zarr_format: int) -> str | None:
    """Return the separator that a store of zarr-python 2 sets for the chunk keys of new v2 arrays; ``None``: the default."""
    return store.dimension_separator if zarr_format == 2 else None


def _warn_v1() -> None:
    warn("Zarr v1 is deprecated; write it only for software that reads nothing else", ZarrDeprecationWarning)


async def _create_steps(
    store: Store,
    path: str,
    metadata: ArrayMetadata,
    options: RuntimeOptions,
    overwrite: bool,
    data: npt.ArrayLike | None,
    order: str | None,
) -> Array:
    if overwrite and isinstance(data, Array):
        refuse_aliasing(data, store, path)
    late: StaleConsolidatedError | None = None
    try:
        await create_node_steps(store, path, metadata, overwrite=overwrite)
    except StaleConsolidatedError as error:
        late = error  # the array is there, and gets its values
    except StoreError as error:
        if data is not None and not isinstance(error, PermissionError | ConflictError):
            error.add_note(_LACKING.format(path))
        raise
    array = Array._make(store, path, metadata, options, read_only=False, order=order)
    if data is not None:
        try:
            write_values(data, array)
        except BaseException as error:
            error.add_note(_LACKING.format(path))
            raise
    if late is not None:
        raise late
    return array


def refuse_aliasing(source: Array, store: Store, path: str) -> None:
    """Raise `BaseZarrError` if replacing the node at `path` would delete `source` itself, at, below or above `path`."""
    if overlaps(store, path, source._store, source.path):
        raise BaseZarrError(
            "an array cannot overwrite its own source data: the paths overlap",
            store=store.url,
            path=f"/{path}",
            hint="Write to another path, then move it into place",
        )


@sans_io
async def create(
    shape: ShapeLike | None = None,
    chunks: ChunksLike = None,
    dtype: DTypeLike | None = None,
    *,
    compressor: CodecLike | None = "auto",
    fill_value: object = DEFAULT,
    order: str | None = None,
    store: StoreLike = None,
    synchronizer: object = None,
    overwrite: bool = False,
    path: str | None = None,
    chunk_store: StoreLike = None,
    filters: CodecsLike = None,
    cache_metadata: bool | None = None,
    cache_attrs: bool | None = None,
    read_only: bool | None = None,
    object_codec: CodecLike | None = None,
    dimension_separator: str | None = None,
    write_empty_chunks: bool | None = None,
    zarr_format: int | None = None,
    meta_array: object = None,
    attributes: Mapping[str, object] | None = None,
    chunk_shape: ChunksLike = None,
    chunk_key_encoding: ChunkKeyEncodingLike | None = None,
    codecs: Iterable[CodecLike] | None = None,
    dimension_names: Iterable[str | None] | None = None,
    storage_options: Mapping[str, object] | None = None,
    config: ArrayConfigLike | None = None,
    mode: str | None = None,
    data: npt.ArrayLike | None = None,
    **more: object,
) -> Array:
    """Create an array by the keywords of zarr-python's older ``create``, and those of `create_array`.

    `chunks`: also ``True`` or ``None`` (automatic) and ``False`` (one chunk). The dtype defaults to that of `data`, or
    float64. `mode` "w" replaces what is there, as `overwrite` does, and "w-" and "x" never do. `synchronizer`,
    `cache_metadata`, `cache_attrs`, `meta_array` and `read_only` are accepted and have no effect; `chunk_store` must be
    `store`.

    Raises what `create_array` raises, `TypeError` for an unknown keyword, `ValueError` for an unknown mode, and `ReadOnlyError`
    for mode "r".
    """
    given = {
        "shape": shape, "chunks": chunks, "dtype": dtype, "compressor": compressor, "fill_value": fill_value, "order":
        order, "store": store, "synchronizer": synchronizer, "overwrite": overwrite, "path": path, "chunk_store":
        chunk_store, "filters": filters, "cache_metadata": cache_metadata, "cache_attrs": cache_attrs, "read_only":
        read_only, "object_codec": object_codec, "dimension_separator": dimension_separator, "write_empty_chunks":
        write_empty_chunks, "zarr_format": zarr_format, "meta_array": meta_array, "attributes": attributes,
        "chunk_shape": chunk_shape, "chunk_key_encoding": chunk_key_encoding, "codecs": codecs, "dimension_names":
        dimension_names, "storage_options": storage_options, "config": config, "mode": mode, "data": data, **more,
    }  # fmt: skip
    return await _create_as_given_steps(given)


async def _create_as_given_steps(given: dict[str, Any]) -> Array:
    """Create an array as `create` does, from its arguments in a dict."""
    store, path, config, data = (given.pop(name) for name in ("store", "path", "config", "data"))
    shape, zarr_format, overwrite = given.pop("shape"), given.pop("zarr_format"), given.pop("overwrite")
    write_data = given.pop("write_data", True)
    number = format_of_new(store, format_given(zarr_format, given.pop("zarr_version", None)))
    check_create(number, given, config)
    arguments, runtime = creation_arguments(number, given)
    where, here, _ = locate(store, path, None, given["storage_options"])
    replace = _replaces(given["mode"], overwrite, where)
    if given["mode"] in ("w-", "x"):
        await require_free_steps(where, here)
    check_chunk_store(where, given["chunk_store"])
    if data is not None:
        data = array_like(data)
        shape = data.shape if shape is None else shape
        if arguments["dtype"] is None:
            arguments["dtype"] = type_of(data)
    if shape is None:
        raise TypeError("the shape of the new array is missing: give shape, or data")
    if arguments["dtype"] is None:
        arguments["dtype"] = "float64"
    if number == 1:
        _warn_v1()
    if arguments["chunk_key_encoding"] is None:
        arguments["chunk_key_encoding"] = _separator_of(where, number)
    chosen = array_config(config, **runtime)
    arguments["order"], layout = order_of(number, arguments.get("order"), chosen.order)
    metadata = new_array_metadata(shape=shape, zarr_format=number, **arguments)
    values = data if write_data else None
    return await _create_steps(where, here, metadata, chosen.options, replace, values, layout)


def _replaces(mode: str | None, overwrite: bool, store: Store) -> bool:
    """Return whether `create` replaces a node, by its arguments `mode` and `overwrite`.

    Raises `ValueError` for an unknown mode and `ReadOnlyError` for ``"r"``.
    """
    check_mode(mode)
    if mode == "r":
        raise ReadOnlyError(
            "mode 'r' opens the store read-only, and nothing can be created there",
            store=store.url,
            hint="Leave out mode; open_array(…, mode='r') opens an array that exists",
        )
    return mode == "w" or (overwrite and mode not in ("w-", "x"))


async def require_free_steps(store: Store, path: str) -> None:
    """Raise `ContainsArrayError` or `ContainsGroupError` where mode "w-" finds a node of any format.

    With ``zarr_python.both_formats`` creation itself allows one of the other format, which the new node would hide. With
    ``zarr_python.only_empty`` any key is in the way.
    """
    if settings.get("zarr_python.both_formats"):
        kind = (await metadata_io.read_kinds_steps(store, path))[path]
        if kind is not None:
            raise metadata_io.occupied(store, path, kind)
    looks = settings.get("zarr_python.only_empty") and isinstance(store, List)
    if looks and not await store_call(store, "is_empty", path):
        raise ContainsGroupError(
            "nothing can be created with mode 'w-', because the place already contains data",
            store=store.url,
            path=f"/{path}",
            hint="Use mode 'w' to overwrite or 'a' to append",
        )


create_array_async = async_variant(create_array)
create_async = async_variant(create)


def write_values(source: Any, target: Array) -> None:
    """Store the values of an array-like of the target's shape in `target`, one bounded box at a time.

    A NumPy array is stored in one call. Anything else that has a shape (an array in a store, an HDF5 dataset) is read in
    boxes made of whole chunks of `target`.

    Raises `ConflictError` where an array in a store was removed, moved, replaced or made shorter meanwhile.
    """
    watched = _watched(source)
    if isinstance(source, np.ndarray) or not target.shape:
        target[...] = source[...] if isinstance(source, Array) else source
    else:
        from tessarr.indexing.boxes import boxes_of_chunks

        axes = target._metadata.chunk_grid.axes(target.shape)
        for box in boxes_of_chunks(axes, target.itemsize, _PIECE_NBYTES):
            raise_if_cancelled()
            target[box] = source[box]
    if watched is not None:
        watched.check(grown=True)


def _watched(source: object) -> Watched | None:
    if not isinstance(source, Array):
        return None
    return Watched.of(source._store, {source._path: source._metadata})
