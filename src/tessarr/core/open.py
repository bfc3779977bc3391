"""Opening and creating: from a place and a mode to an `Array` or `Group`.

The modes are a state machine (tested as one):

    mode   node exists                    node is missing
    r      open read-only                 NodeNotFoundError
    r+     open                           NodeNotFoundError
    a      open                           create
    w      replace (staged, then swapped) create
    w-     ContainsArray/GroupError       create

Without a mode a read-only store means ``r`` and any other ``a``. Nothing is deleted before its replacement is valid and
staged, and ``a``, ``r`` and ``r+`` never delete anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tessarr.common import strict_json
from tessarr.common.warn import warn
from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import Steps, steps_of, stepwise, twin
from tessarr.core.creation.metadata import DEFAULT, array_config, array_like, new_array_metadata
from tessarr.core.creation.zarr2_keywords import check_chunk_store, check_keywords, creation_arguments
from tessarr.core.group import Group
from tessarr.core.locate import format_of_new, format_wanted, locate
from tessarr.core.stored import metadata_io
from tessarr.core.stored.consolidated import key_of_consolidated
from tessarr.core.stored.metadata_io import NodeMetadata
from tessarr.engine.bound import RuntimeOptions
from tessarr.errors import BaseZarrError, GroupNotFoundError, ZarrDeprecationWarning
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Store


def _node(store: Store, path: str, metadata: NodeMetadata, mode: str, config: Any = None) -> Array | Group:
    read_only = mode == "r"
    if isinstance(metadata, GroupMetadata):
        return Group._make(store, path, metadata, read_only=read_only)
    chosen = array_config(config)
    return Array._make(store, path, metadata, chosen.options, read_only=read_only, order=_order(config, metadata))


def _order(config: Any, metadata: ArrayMetadata) -> str | None:
    given = config.get("order") if isinstance(config, Mapping) else getattr(config, "order", None)
    return given or (metadata.order if metadata.zarr_format != 3 else settings.get("array.order", "C"))


# -- opening -------------------------------------------------------------------------------------------------------------


@stepwise
def open(  # noqa: A001 - zarr-python's name
    store: Any = None,
    mode: str | None = None,
    *,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    config: Any = None,
    **kwargs: Any,
) -> Steps[Array | Group]:
    """Open whatever is at a place: an array or a group.

    `store` is a store, a path, a URL, a mapping, or ``None`` for a new store in memory. `mode` is explained at the head of
    `tessarr.core.open`. When the mode allows creating, a `shape` among the keywords asks for an array (they are
    those of `tessarr.create`), otherwise a group is made.

    Raises `NodeNotFoundError`, `ContainsArrayError`, `ContainsGroupError`, `MetadataValidationError`.

    >>> import tessarr
    >>> tessarr.open({}, mode="w", shape=(4,), dtype="int8")
    <Array memory://... shape=(4,) dtype=int8>
    """
    where, here, mode = locate(store, path, mode, storage_options)
    legacy_format = kwargs.pop("zarr_version", None)
    number = format_wanted(store, zarr_format or legacy_format)
    wants_array = "shape" in kwargs or "data" in kwargs
    if mode in ("r", "r+", "a"):
        use = kwargs.get("use_consolidated")
        beside_it = key_of_consolidated(where, here, number, use)
        found, beside = yield from metadata_io.reading_with(where, here, number, None, beside_it)
        if found is not None or mode != "a":
            kind = ArrayMetadata if wants_array else None
            found = yield from metadata_io.expecting(found, where, here, number, kind)
            check_keywords(kwargs)
            node = _node(where, here, found, mode, _config_of(config, kwargs))
            return node._with_consolidated(use, beside) if isinstance(node, Group) else node
        mode = "w-"
    if wants_array:
        creating = steps_of(open_array)(where, mode=mode, path=here, zarr_format=number, config=config, **kwargs)
        return (yield from creating)
    return (yield from steps_of(open_group)(where, mode=mode, path=here, zarr_format=number, **kwargs))


def _config_of(config: Any, legacy: Mapping[str, Any]) -> Any:
    if "write_empty_chunks" in legacy and legacy["write_empty_chunks"] is not None:
        return {**dict(config or {}), "write_empty_chunks": legacy["write_empty_chunks"]}
    return config


@stepwise
def open_array(
    store: Any = None,
    mode: str | None = None,
    *,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    config: Any = None,
    **kwargs: Any,
) -> Steps[Array]:
    """Open the array at a place, or create one where the mode allows it.

    The other keywords are those of `tessarr.create` and are used only to create.

    Raises `ArrayNotFoundError` (also when a group is there), `ContainsArrayError`, `MetadataValidationError`.
    """
    where, here, mode = locate(store, path, mode, storage_options)
    check_chunk_store(where, kwargs.get("chunk_store"))
    number = format_wanted(store, zarr_format or kwargs.pop("zarr_version", None))
    found: NodeMetadata | None = None
    if mode in ("r", "r+"):
        found = yield from metadata_io.requiring(where, here, number, ArrayMetadata)
    elif mode == "a":
        (found,) = yield from metadata_io.reading(where, [here], number, ArrayMetadata)
        if found is not None or ("shape" not in kwargs and "data" not in kwargs):
            found = yield from metadata_io.expecting(found, where, here, number, ArrayMetadata)
    if found is not None:
        check_keywords(kwargs)
        return _node(where, here, _separated(found, kwargs), mode, _config_of(config, kwargs))  # type: ignore[return-value]
    arguments = {**kwargs, "overwrite": mode == "w" or kwargs.get("overwrite", False)}
    return (yield from steps_of(create)(store=where, path=here, zarr_format=number, config=config, **arguments))


def _separated(found: NodeMetadata, kwargs: Mapping[str, Any]) -> NodeMetadata:
    """v2 data of nested stores may not say that its keys use "/"; the user may (OGC-02)."""
    separator = kwargs.get("dimension_separator")
    if separator is None or not isinstance(found, ArrayMetadata) or found.zarr_format != 2:
        return found
    from tessarr.keys.v2 import V2KeyEncoding

    return found.with_(chunk_key_encoding=V2KeyEncoding(separator))


@stepwise
def open_group(
    store: Any = None,
    mode: str | None = None,
    *,
    cache_attrs: bool | None = None,
    synchronizer: Any = None,
    path: str | None = None,
    chunk_store: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    zarr_format: int | None = None,
    meta_array: Any = None,
    attributes: Mapping[str, Any] | None = None,
    use_consolidated: bool | str | None = None,
    zarr_version: int | None = None,
) -> Steps[Group]:
    """Open the group at a place, or create one where the mode allows it.

    `use_consolidated`: ``None`` uses consolidated metadata if it is there, ``True`` requires it (`ValueError`), ``False``
    ignores it. `cache_attrs`, `synchronizer` and `meta_array` are accepted and have no effect; `chunk_store` must be `store`.

    Raises `GroupNotFoundError` (also when an array is there), `ContainsArrayError`, `ContainsGroupError`.
    """
    where, here, mode = locate(store, path, mode, storage_options)
    check_chunk_store(where, chunk_store)
    number = format_wanted(store, zarr_format or zarr_version)
    if mode in ("r", "r+", "a"):
        wanted = key_of_consolidated(where, here, number, use_consolidated)
        found, beside = yield from metadata_io.reading_with(where, here, number, GroupMetadata, wanted)
        if found is not None or mode != "a":
            found = yield from metadata_io.expecting(found, where, here, number, GroupMetadata)
            assert isinstance(found, GroupMetadata)
            return Group._make(where, here, found, read_only=mode == "r")._with_consolidated(use_consolidated, beside)
    metadata = GroupMetadata(
        zarr_format=format_of_new(None, number), attributes=strict_json.plain(dict(attributes or {}))
    )
    yield from metadata_io.creating(where, here, metadata, overwrite=mode == "w")
    return Group._make(where, here, metadata, read_only=False)


@stepwise
def open_consolidated(*args: Any, use_consolidated: bool = True, **kwargs: Any) -> Steps[Group]:
    """Open a group by its consolidated metadata. Raises `ValueError` when it has none."""
    return (yield from steps_of(open_group)(*args, use_consolidated=use_consolidated, **kwargs))


# -- creating ------------------------------------------------------------------------------------------------------------


@stepwise
def create_array(
    store: Any = None,
    *,
    name: str | None = None,
    shape: Any = None,
    dtype: Any = None,
    data: Any = None,
    chunks: Any = "auto",
    shards: Any = None,
    filters: Any = "auto",
    compressors: Any = "auto",
    serializer: Any = "auto",
    fill_value: Any = DEFAULT,
    order: str | None = None,
    zarr_format: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: Any = None,
    dimension_names: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    config: Any = None,
    write_data: bool = True,
    storage_transformers: Any = (),
    object_codec: Any = None,
) -> Steps[Array]:
    """Create an array of `shape` and `dtype`, or of `data` (array-like), which is then written.

    `chunks`: a shape (-1: a whole axis), "auto", a size such as "8MB", or a list of sizes per axis (a rectilinear grid).
    `shards`: a shape, "auto", or a dict with ``shape`` and ``index_location``; `chunks` are then the inner chunks. `filters`
    (array → array), `serializer` (array → bytes) and `compressors` (bytes → bytes): codecs, their JSON or names, or numcodecs
    codecs; "auto": none, the data type's own, Zstandard. `overwrite` replaces a node once the new one is staged.

    Raises `ContainsArrayError`, `ContainsGroupError`, `BaseZarrError` (a `ValueError`) for arguments that do not fit.
    Source: Zarr v3.1 core, "Array metadata"; the surface is zarr-python's.

    >>> import tessarr, numpy as np
    >>> z = tessarr.create_array({}, data=np.arange(10.0), chunks=(5,), attributes={"units": "K"})
    >>> z.attrs["units"], z[3:6].tolist()
    ('K', [3.0, 4.0, 5.0])
    """
    where, here, _ = locate(store, name, None if not overwrite else "w", storage_options)
    data, shape, dtype = _described(data, shape, dtype)
    number = format_of_new(store, zarr_format)
    if number == 1:
        _warn_v1()
    chosen = array_config(config)
    keys = _separator_of(where, number) if chunk_key_encoding is None else chunk_key_encoding
    cut = {"chunks": chunks, "shards": shards, "chunk_key_encoding": keys}
    coded = {"filters": filters, "compressors": compressors, "serializer": serializer, "object_codec": object_codec}
    told = {"attributes": attributes, "dimension_names": dimension_names, "storage_transformers": storage_transformers}
    metadata = new_array_metadata(
        shape=shape, dtype=dtype, zarr_format=number, fill_value=fill_value, order=order, **cut, **coded, **told
    )
    layout = order or chosen.order
    values = data if write_data else None
    return (yield from _create(where, here, metadata, chosen.options, overwrite, values, layout))


def _described(data: Any, shape: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """`data` as an array-like (or ``None``), and shape and dtype of what is to be created."""
    if data is None:
        if shape is None or dtype is None:
            raise ValueError("shape and dtype are needed, or data")
        return None, shape, dtype
    if shape is not None or dtype is not None:
        raise ValueError("give either data, or shape and dtype")
    data = array_like(data)
    return data, data.shape, data.dtype


def _separator_of(store: Store, zarr_format: int) -> str | None:
    """What separates indices in the chunk keys of new v2 arrays of a store that has a habit (zarr-python 2's stores)."""
    return getattr(store, "dimension_separator", None) if zarr_format == 2 else None


def _warn_v1() -> None:
    warn("Zarr v1 is deprecated; write it only for software that reads nothing else", ZarrDeprecationWarning)


def _create(
    store: Store,
    path: str,
    metadata: ArrayMetadata,
    options: RuntimeOptions,
    overwrite: bool,
    data: Any,
    order: str | None,
) -> Steps[Array]:
    if overwrite and isinstance(data, Array):
        refuse_aliasing(data, store, path)
    yield from metadata_io.creating(store, path, metadata, overwrite=overwrite)
    array = Array._make(store, path, metadata, options, read_only=False, order=order)
    if data is not None:
        from tessarr.core.copy import write_values

        write_values(data, array)
    return array


def refuse_aliasing(source: Array, store: Store, path: str) -> None:
    """Replacing a node by data that is read from it, or from below or above it, would destroy the data."""
    from tessarr.stores.url import overlaps

    if overlaps(store, path, source._store, source.path):
        raise BaseZarrError(
            "an array cannot overwrite the data it is made from",
            store=store.url,
            path=f"/{path}",
            hint="Write to another path, then move it into place",
        )


@stepwise
def create(
    shape: Any = None,
    chunks: Any = None,
    dtype: Any = None,
    *,
    compressor: Any = "auto",
    fill_value: Any = DEFAULT,
    order: str | None = None,
    store: Any = None,
    synchronizer: Any = None,
    overwrite: bool = False,
    path: str | None = None,
    chunk_store: Any = None,
    filters: Any = None,
    cache_metadata: bool | None = None,
    cache_attrs: bool | None = None,
    read_only: bool | None = None,
    object_codec: Any = None,
    dimension_separator: str | None = None,
    write_empty_chunks: bool | None = None,
    zarr_format: int | None = None,
    meta_array: Any = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_shape: Any = None,
    chunk_key_encoding: Any = None,
    codecs: Any = None,
    dimension_names: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    config: Any = None,
    mode: str | None = None,
    data: Any = None,
    **more: Any,
) -> Steps[Array]:
    """Create an array by the keywords of zarr-python's older maker, and those of `create_array`.

    `chunks`: also ``True`` or ``None`` (automatic) and ``False`` (one chunk). The type is float64 when neither `dtype` nor
    `data` say another. `synchronizer`, `cache_metadata`, `cache_attrs`, `meta_array` and `read_only` are accepted and have no
    effect; `chunk_store` must be `store`.

    Raises what `create_array` raises, and `TypeError` for a keyword that nobody knows.
    """
    given = {**locals(), **more}
    del given["more"]
    return (yield from _create_as_given(given))


def _create_as_given(given: dict[str, Any]) -> Steps[Array]:
    """`create`, its arguments in a dict."""
    store, path, config, data = (given.pop(name) for name in ("store", "path", "config", "data"))
    shape, zarr_format, overwrite = given.pop("shape"), given.pop("zarr_format"), given.pop("overwrite")
    write_data = given.pop("write_data", True)
    number = format_of_new(store, zarr_format or given.pop("zarr_version", None))
    arguments, runtime = creation_arguments(number, given)
    where, here, _ = locate(store, path, None, given["storage_options"])
    check_chunk_store(where, given["chunk_store"])
    if data is not None:
        data = array_like(data)
        shape = data.shape if shape is None else shape
        if arguments["dtype"] is None:
            arguments["dtype"] = data.dtype
    if shape is None:
        raise TypeError("the shape of the new array is missing: give shape, or data")
    if arguments["dtype"] is None:
        arguments["dtype"] = "float64"
    if number == 1:
        _warn_v1()
    if arguments["chunk_key_encoding"] is None:
        arguments["chunk_key_encoding"] = _separator_of(where, number)
    metadata = new_array_metadata(shape=shape, zarr_format=number, **arguments)
    chosen = array_config(config, **runtime)
    layout = arguments.get("order") or chosen.order
    replace = overwrite or given["mode"] == "w"
    values = data if write_data else None
    return (yield from _create(where, here, metadata, chosen.options, replace, values, layout))


@stepwise
def create_group(
    store: Any = None,
    *,
    path: str | None = None,
    zarr_format: int | None = None,
    overwrite: bool = False,
    attributes: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Steps[Group]:
    """Create a group; raises `ContainsGroupError` or `ContainsArrayError` when something is there and not `overwrite`."""
    where, here, _ = locate(store, path, "w" if overwrite else None, storage_options)
    metadata = GroupMetadata(
        zarr_format=format_of_new(store, zarr_format), attributes=strict_json.plain(dict(attributes or {}))
    )
    yield from metadata_io.creating(where, here, metadata, overwrite=overwrite)
    return Group._make(where, here, metadata, read_only=False)


@stepwise
def group(
    store: Any = None,
    overwrite: bool = False,
    *,
    chunk_store: Any = None,
    cache_attrs: bool | None = None,
    synchronizer: Any = None,
    path: str | None = None,
    zarr_format: int | None = None,
    meta_array: Any = None,
    attributes: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    zarr_version: int | None = None,
) -> Steps[Group]:
    """Open a group, creating it if it is missing; with `overwrite` replace what is there.

    `cache_attrs`, `synchronizer` and `meta_array` are accepted and have no effect; `chunk_store` must be `store`.
    """
    if chunk_store is not None:
        check_chunk_store(locate(store, path, None, storage_options)[0], chunk_store)
    number = zarr_format or zarr_version
    place: dict[str, Any] = {"path": path, "zarr_format": number, "storage_options": storage_options}
    if not overwrite:
        with suppress(GroupNotFoundError):
            return (yield from steps_of(open_group)(store, mode="r+", **place))
    return (yield from steps_of(create_group)(store, overwrite=overwrite, attributes=attributes, **place))


open_async = twin(open)
open_array_async = twin(open_array)
open_group_async = twin(open_group)
open_consolidated_async = twin(open_consolidated)
create_array_async = twin(create_array)
create_async = twin(create)
create_group_async = twin(create_group)
group_async = twin(group)
