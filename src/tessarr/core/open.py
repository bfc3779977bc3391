"""Open or create an `Array` or `Group`, given a place and a mode.

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
from typing import TYPE_CHECKING, Any

from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import Call, async_variant, sans_io, steps_of
from tessarr.core.creation.array_config import ArrayConfig, ArrayConfigLike
from tessarr.core.creation.zarr2_keywords import check_keywords
from tessarr.core.creation.zarr_python_arguments import check_without_effect, check_write_empty_chunks, format_given
from tessarr.core.locate import check_chunk_store, format_of_new, locate, requested_format
from tessarr.core.stored import read_nodes
from tessarr.core.stored.read_nodes import NodeMetadata
from tessarr.errors import ArrayNotFoundError, NodeNotFoundError
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Store
from tessarr.stores.protocols import Remote
from tessarr.stores.url import StoreLike
from tessarr.types import ZarrFormat

if TYPE_CHECKING:
    from datetime import datetime

    from tessarr.core.group import Group
    from tessarr.stores.transformed.array_commit import Commit


def _node(
    store: Store,
    path: str,
    metadata: NodeMetadata,
    mode: str,
    config: ArrayConfigLike | None,
    zarr_format: ZarrFormat | None,
) -> Array | Group:
    """Make a node from metadata that was read; `zarr_format`: as given by the user."""
    found_at = path if zarr_format is None else None
    if isinstance(metadata, GroupMetadata):
        from tessarr.core.group import Group

        return Group._make(store, path, metadata, read_only=mode == "r")._with_format_found_at(found_at)
    array = Array._opened(store, path, metadata, read_only=mode == "r", config=config)
    return array._with_format_found_at(found_at)


# -- opening -------------------------------------------------------------------------------------------------------------


@sans_io
async def open(  # noqa: A001 - zarr-python's name
    store: StoreLike = None,
    mode: str | None = None,
    *,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, object] | None = None,
    config: ArrayConfigLike | None = None,
    **kwargs: Any,
) -> Array | Group:
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
    number = requested_format(store, format_given(zarr_format, kwargs.pop("zarr_version", None)))
    wants_array = "shape" in kwargs or "data" in kwargs
    if mode in ("r", "r+", "a"):
        use = kwargs.get("use_consolidated")
        beside_it = read_nodes.key_of_consolidated(where, here, number, use)
        found, beside = await read_nodes.read_node_and_key_steps(where, here, number, None, beside_it)
        if found is not None or mode != "a":
            kind = ArrayMetadata if wants_array else None
            found = await read_nodes.expect_kind_steps(found, where, here, number, kind)
            check_keywords(kwargs)
            if config is not None and isinstance(found, GroupMetadata):
                raise _config_of_group(where, here)
            node = _node(where, here, found, mode, _config_of(config, kwargs), number)
            return node if isinstance(node, Array) else node._with_consolidated(use, beside)
        mode = "a" if settings.get("zarr_python.both_formats") else "w-"
    if wants_array:
        creating = steps_of(open_array)(where, mode=mode, path=here, zarr_format=number, config=config, **kwargs)
        return await creating
    if config is not None:
        raise _config_of_group(where, here)
    return await steps_of(open_group)(where, mode=mode, path=here, zarr_format=number, **kwargs)


def _config_of_group(store: Store, path: str) -> TypeError:
    return TypeError(f"config is for arrays, but '/{path}' of {store.url} resolves to a group. Leave config out")


def _config_of(config: ArrayConfigLike | None, legacy: Mapping[str, object]) -> ArrayConfigLike | None:
    if "write_empty_chunks" in legacy and legacy["write_empty_chunks"] is not None:
        check_write_empty_chunks(legacy)
        given = config.to_dict() if isinstance(config, ArrayConfig) else config or {}
        return {**given, "write_empty_chunks": legacy["write_empty_chunks"]}
    return config


@sans_io
async def open_array(
    store: StoreLike = None,
    mode: str | None = None,
    *,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, object] | None = None,
    config: ArrayConfigLike | None = None,
    version: str | datetime | Commit | None = None,
    **kwargs: Any,
) -> Array:
    """Open the array at a place, or create one where the mode allows it.

    `version`: of an array with the storage transformer ``tessarr.versioned``, what `Array.at_version` takes. The other
    keywords are those of `tessarr.create` and are used only to create.

    Raises `ArrayNotFoundError` (also when a group is there), `ContainsArrayError`, `MetadataValidationError`.
    """
    where, here, mode = locate(store, path, mode, storage_options, error=ArrayNotFoundError)
    check_chunk_store(where, kwargs.get("chunk_store"))
    number = requested_format(store, format_given(zarr_format, kwargs.pop("zarr_version", None)))
    found: NodeMetadata | None = None
    if mode in ("r", "r+"):
        found = await read_nodes.require_node_steps(where, here, number, ArrayMetadata)
    elif mode == "a":
        (found,) = await read_nodes.read_nodes_steps(where, [here], number, ArrayMetadata)
        if found is not None or ("shape" not in kwargs and "data" not in kwargs):
            found = await read_nodes.expect_kind_steps(found, where, here, number, ArrayMetadata)
    if found is not None:
        check_keywords(kwargs)
        known = _with_separator(found, kwargs)
        array = _node(where, here, known, mode, _config_of(config, kwargs), number)
        assert isinstance(array, Array)
        return array if version is None else await _at_version_call(array, version)
    from tessarr.core.creation.arrays import create, require_free_steps

    if mode == "w-":
        await require_free_steps(where, here)
    arguments = {**kwargs, "overwrite": mode == "w" or kwargs.get("overwrite", False)}
    return await steps_of(create)(store=where, path=here, zarr_format=number, config=config, **arguments)


def _at_version_call(array: Array, version: str | datetime | Commit) -> Call:
    remote = isinstance(array._store, Remote)
    return Call(lambda: array.at_version(version), lambda: array.at_version_async(version), remote)


def _with_separator(found: NodeMetadata, kwargs: Mapping[str, object]) -> NodeMetadata:
    """Apply the user's `dimension_separator`: v2 documents of nested stores may omit it (OGC-02)."""
    separator = kwargs.get("dimension_separator")
    if separator is None or not isinstance(found, ArrayMetadata) or found.zarr_format != 2:
        return found
    from tessarr.keys.v2 import V2KeyEncoding

    return found.with_(chunk_key_encoding=V2KeyEncoding(str(separator)))


@sans_io
async def open_group(
    store: StoreLike = None,
    mode: str | None = None,
    *,
    cache_attrs: bool | None = None,
    synchronizer: object = None,
    path: str | None = None,
    chunk_store: StoreLike = None,
    storage_options: Mapping[str, object] | None = None,
    zarr_format: int | None = None,
    meta_array: object = None,
    attributes: Mapping[str, object] | None = None,
    use_consolidated: bool | str | None = None,
    zarr_version: int | None = None,
) -> Group:
    """Open the group at a place, or create one where the mode allows it.

    `use_consolidated`: ``None`` uses consolidated metadata if it is there, ``True`` requires it (`ValueError`), ``False``
    ignores it. `cache_attrs`, `synchronizer` and `meta_array` are accepted and have no effect; `chunk_store` must be `store`.

    Raises `GroupNotFoundError` (also when an array is there), `ContainsArrayError`, `ContainsGroupError`.
    """
    from tessarr.core.group import Group

    check_without_effect({"cache_attrs": cache_attrs, "synchronizer": synchronizer, "meta_array": meta_array})
    where, here, mode = locate(store, path, mode, storage_options)
    check_chunk_store(where, chunk_store)
    number = requested_format(store, format_given(zarr_format, zarr_version))
    if mode in ("r", "r+"):
        return await Group._open_steps(where, here, number, mode, use_consolidated)
    if mode == "a":
        wanted = read_nodes.key_of_consolidated(where, here, number, use_consolidated)
        found, beside = await read_nodes.read_node_and_key_steps(where, here, number, GroupMetadata, wanted)
        if found is not None:
            found = await read_nodes.expect_kind_steps(found, where, here, number, GroupMetadata)
            opened = Group._opened(where, here, found, mode, use_consolidated, beside)
            return opened._with_format_found_at(here if number is None else None)
    if mode == "w-":
        from tessarr.core.creation.arrays import require_free_steps

        await require_free_steps(where, here)
    return await Group._create_steps(where, here, format_of_new(None, number), attributes, mode == "w")


@sans_io
async def open_consolidated(*args: Any, use_consolidated: bool = True, **kwargs: Any) -> Group:
    """Open a group by its consolidated metadata.

    Raises `ValueError` when it has none, `TypeError` for ``use_consolidated=False``.
    """
    if use_consolidated is not True:
        raise TypeError("'use_consolidated' must be True in 'open_consolidated'; use 'open_group' otherwise")
    return await steps_of(open_group)(*args, use_consolidated=use_consolidated, **kwargs)


# -- creating ------------------------------------------------------------------------------------------------------------


@sans_io
async def create_group(
    store: StoreLike = None,
    *,
    path: str | None = None,
    zarr_format: int | None = None,
    overwrite: bool = False,
    attributes: Mapping[str, object] | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Group:
    """Create a group.

    Raises `ContainsGroupError` or `ContainsArrayError` when a node exists there and not `overwrite`.
    """
    from tessarr.core.group import Group

    where, here, _ = locate(store, path, "w" if overwrite else None, storage_options)
    number = format_of_new(store, zarr_format)
    return await Group._create_steps(where, here, number, attributes, overwrite)


@sans_io
async def group(
    store: StoreLike = None,
    overwrite: bool = False,
    *,
    chunk_store: StoreLike = None,
    cache_attrs: bool | None = None,
    synchronizer: object = None,
    path: str | None = None,
    zarr_format: int | None = None,
    meta_array: object = None,
    attributes: Mapping[str, object] | None = None,
    storage_options: Mapping[str, object] | None = None,
    zarr_version: int | None = None,
) -> Group:
    """Open a group, creating it if it is missing; with `overwrite` replace the node there.

    `cache_attrs`, `synchronizer` and `meta_array` are accepted and have no effect; `chunk_store` must be `store`.
    """
    check_without_effect({"cache_attrs": cache_attrs, "synchronizer": synchronizer, "meta_array": meta_array})
    if chunk_store is not None:
        check_chunk_store(locate(store, path, None, storage_options)[0], chunk_store)
    number = format_given(zarr_format, zarr_version)
    place: dict[str, Any] = {"path": path, "zarr_format": number, "storage_options": storage_options}
    if not overwrite:
        with suppress(NodeNotFoundError):
            return await steps_of(open_group)(store, mode="r+", **place)
    return await steps_of(create_group)(store, overwrite=overwrite, attributes=attributes, **place)


open_async = async_variant(open)
open_array_async = async_variant(open_array)
open_group_async = async_variant(open_group)
open_consolidated_async = async_variant(open_consolidated)
create_group_async = async_variant(create_group)
group_async = async_variant(group)
