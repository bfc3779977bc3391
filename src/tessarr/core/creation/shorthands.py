"""Shorthands: NumPy's creation functions, saving and loading, whole hierarchies at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.common.warn import warn_as_zarr_python
from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import async_variant, sans_io, steps_of
from tessarr.core.creation.arguments import CreateOptions, FullOptions, LikeOptions, ShapedCreateOptions
from tessarr.core.creation.array_config import DEFAULT, ArrayConfigLike
from tessarr.core.creation.arrays import create, create_array, refuse_aliasing
from tessarr.core.creation.like import chunks_of, like
from tessarr.core.creation.metadata import array_like
from tessarr.core.creation.zarr_python_arguments import format_given
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.open import create_group, open, open_array, open_group
from tessarr.core.stored.consolidate import consolidate_steps
from tessarr.core.stored.create_nodes import create_nodes
from tessarr.core.tree import TreeView
from tessarr.errors import ZarrDeprecationWarning
from tessarr.grids.guess import ChunksLike, ShardsLike
from tessarr.keys.base import ChunkKeyEncodingLike
from tessarr.settings import config as settings
from tessarr.stores.base import Store
from tessarr.stores.url import StoreLike
from tessarr.stores.virtual.branches import commits
from tessarr.types import ShapeLike


def array(data: npt.ArrayLike, **kwargs: Unpack[ShapedCreateOptions]) -> Array:
    """Create an array from `data`, with the keywords of `tessarr.create`."""
    if isinstance(data, Array):
        kwargs = {"zarr_format": data.zarr_format, "chunks": chunks_of(data), "fill_value": data.fill_value, **kwargs}
    return create(data=array_like(data), **kwargs)


def empty(shape: ShapeLike, **kwargs: Unpack[CreateOptions]) -> Array:
    """Create an array without writing values; elements read as the default fill value."""
    return create(shape, **kwargs)


def zeros(shape: ShapeLike, **kwargs: Unpack[CreateOptions]) -> Array:
    """Create an array of zeros."""
    kwargs.setdefault("fill_value", 0)
    return create(shape, **kwargs)


def ones(shape: ShapeLike, **kwargs: Unpack[CreateOptions]) -> Array:
    """Create an array of ones."""
    kwargs.setdefault("fill_value", 1)
    return create(shape, **kwargs)


def full(shape: ShapeLike, fill_value: object, **kwargs: Unpack[FullOptions]) -> Array:
    """Create an array of `fill_value`."""
    return create(shape, fill_value=fill_value, **kwargs)


def empty_like(a: object, *, zarr_format: int | None = None, **kwargs: Unpack[LikeOptions]) -> Array:
    """Create an array as `empty` does, with the shape, dtype, chunks and codecs of `a`."""
    return create(**like(a, zarr_format, kwargs))


def zeros_like(a: object, *, zarr_format: int | None = None, **kwargs: Unpack[LikeOptions]) -> Array:
    """Create an array of zeros with the shape, dtype, chunks and codecs of `a`."""
    return create(**like(a, zarr_format, {"fill_value": 0, **kwargs}))


def ones_like(a: object, *, zarr_format: int | None = None, **kwargs: Unpack[LikeOptions]) -> Array:
    """Create an array of ones with the shape, dtype, chunks and codecs of `a`."""
    return create(**like(a, zarr_format, {"fill_value": 1, **kwargs}))


def full_like(a: object, *, zarr_format: int | None = None, **kwargs: Unpack[LikeOptions]) -> Array:
    """Create an array with the shape, dtype, chunks, codecs and, unless given, fill value of `a`."""
    return create(**like(a, zarr_format, kwargs))


def open_like(a: object, path: str, *, zarr_format: int | None = None, **kwargs: object) -> Array:
    """Open the array at `path`, or create it with the shape, dtype, chunks and codecs of `a`."""
    return open_array(path=path, **{"mode": "a", **like(a, zarr_format, kwargs)})


def from_array(
    store: StoreLike,
    *,
    data: npt.ArrayLike,
    write_data: bool = True,
    name: str | None = None,
    chunks: ChunksLike = "keep",
    shards: ShardsLike = "keep",
    filters: CodecsLike = "keep",
    compressors: CodecsLike = "keep",
    serializer: CodecLike | None = "keep",
    fill_value: object = DEFAULT,
    order: str | None = None,
    zarr_format: int | None = None,
    attributes: Mapping[str, object] | None = None,
    chunk_key_encoding: ChunkKeyEncodingLike | None = None,
    dimension_names: Iterable[str | None] | None = None,
    storage_options: Mapping[str, object] | None = None,
    overwrite: bool = False,
    config: ArrayConfigLike | None = None,
) -> Array:
    """Create an array from another one, with the same chunks, shards and codecs unless given.

    "keep" means as in `data`, or automatic if `data` is not an `Array`. Fill value, attributes and dimension names are kept
    too. With another `zarr_format`, filters and compressors that the new format cannot express become automatic.

    Raises `BaseZarrError` when `overwrite` would destroy `data` itself, unless its values are not wanted (`write_data`).
    """
    source = array_like(data)
    if overwrite and write_data and isinstance(source, Array):
        where, here, _ = locate(store, name, None, storage_options)
        refuse_aliasing(source, where, here)
    kept = _source_options(source, zarr_format)
    codecs: dict[str, object] = {"filters": filters, "compressors": compressors, "serializer": serializer}
    wanted = {"chunks": chunks, "shards": shards, **codecs}
    given: dict[str, Any] = {
        key: kept[key] if isinstance(value, str) and value == "keep" else value for key, value in wanted.items()
    }
    names = {"attributes": attributes, "dimension_names": dimension_names, "chunk_key_encoding": chunk_key_encoding}
    rest: dict[str, Any] = {key: kept[key] if value is None else value for key, value in names.items()}
    return create_array(
        store,
        name=name,
        data=source,
        write_data=write_data,
        fill_value=kept["fill_value"] if fill_value is DEFAULT else fill_value,
        order=order or kept["order"],
        zarr_format=zarr_format or kept["zarr_format"],
        storage_options=storage_options,
        overwrite=overwrite,
        config=config,
        **given,
        **rest,
    )


def _source_options(source: object, zarr_format: int | None) -> dict[str, Any]:
    kept: dict[str, object] = {
        "chunks": "auto",
        "shards": None,
        "filters": "auto",
        "compressors": "auto",
        "serializer": "auto",
        "fill_value": DEFAULT,
        "order": None,
        "zarr_format": None,
        "attributes": None,
        "chunk_key_encoding": None,
        "dimension_names": None,
    }
    if not isinstance(source, Array):
        return kept
    number = zarr_format or source.zarr_format
    if source._metadata.order == "F" and number == 3:
        warn_as_zarr_python(
            "The existing order='F' of the source Zarr format 2 array will be ignored.", module="zarr.core.array"
        )
    kept |= {
        "chunks": chunks_of(source),
        "fill_value": source.fill_value,
        "zarr_format": source.zarr_format,
        "attributes": source.attrs.asdict(),
        "dimension_names": source.dims,
    }
    if number == 3 and source._metadata.chunk_grid.chunk_shape is not None:
        kept["shards"] = source.shards
    if number == source.zarr_format:
        kept |= {"filters": source.filters or "auto", "compressors": source.compressors or None}
        kept["chunk_key_encoding"] = source._metadata.chunk_key_encoding
        kept["order"] = source._metadata.order if number != 3 else None
        if number == 3:
            kept["serializer"] = source.serializer
        elif source._metadata.filters is not None:
            kept["filters"] = list(source._metadata.filters)
    return kept


# -- saving and loading --------------------------------------------------------------------------------------------------


@commits
def save_array(
    store: StoreLike,
    arr: npt.ArrayLike,
    *,
    zarr_version: int | None = None,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, object] | None = None,
    mode: str | None = None,
    overwrite: bool | None = None,
    **kwargs: Any,
) -> None:
    """Store an array-like as an array; a zip file is closed afterwards.

    With `overwrite` or ``mode="w"``, the default, it replaces a node that exists there. Where `tessarr.as_zarr` is
    installed, the default is zarr-python 3's ``mode="a"``, which raises `ContainsArrayError` or `ContainsGroupError` for it.
    """
    number = format_given(zarr_format, zarr_version)
    mode = mode or ("a" if settings.get("zarr_python.arguments") else "w")
    where, here, mode = locate(store, path, mode, storage_options)
    exclusive = "w-" if mode == "w-" else None
    replaces = overwrite or mode == "w"
    values = np.asarray(arr)
    create(store=where, path=here, data=values, zarr_format=number, overwrite=replaces, mode=exclusive, **kwargs)
    _close_own(store, where)


@commits
def save_group(
    store: StoreLike,
    *args: object,
    zarr_version: int | None = None,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, object] | None = None,
    **kwargs: object,
) -> None:
    """Store several array-likes in a group: positional arguments as ``arr_0`` …, keyword arguments by name.

    Raises `TypeError` for a keyword argument that is text, such as ``mode="w"``, an option of other functions.
    """
    if not args and not kwargs:
        raise ValueError("at least one array must be provided")
    for name, value in kwargs.items():
        if isinstance(value, str):
            raise TypeError(f"Keyword argument {name!r} must be a numpy or other NDArrayLike array, got {value!r}")
    where, here, _ = locate(store, path, "w", storage_options)
    number = format_given(zarr_format, zarr_version)
    group = create_group(where, path=here, zarr_format=number, overwrite=True)
    for name, values in {**{f"arr_{i}": a for i, a in enumerate(args)}, **kwargs}.items():
        group.create_array(name, data=np.asarray(values))
    _close_own(store, where)


def save(
    store: StoreLike,
    *args: Any,
    zarr_version: int | None = None,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, object] | None = None,
    **kwargs: Any,
) -> None:
    """Store one array-like as an array (`save_array`), or several in a group (`save_group`)."""
    place: dict[str, Any] = {
        "zarr_format": format_given(zarr_format, zarr_version),
        "path": path,
        "storage_options": storage_options,
    }
    if len(args) == 1 and not kwargs:
        save_array(store, args[0], **place)
    else:
        save_group(store, *args, **place, **kwargs)


def _close_own(given: StoreLike, store: Store) -> None:
    if given is not store and given is not store.given and not hasattr(given, "store"):
        store.close()


def load(
    store: StoreLike, path: str | None = None, zarr_format: int | None = None, zarr_version: int | None = None
) -> object:
    """Read an array as a NumPy array, or a group as a dict of its members, nested like the hierarchy."""
    node = open(store, mode="r", path=path, zarr_format=format_given(zarr_format, zarr_version))
    values = _load(node)
    _close_own(store, node._store)
    return values


def _load(node: Array | Group) -> object:
    if isinstance(node, Array):
        return node[...]
    return {name: _load(member) for name, member in node.members()}


def tree(grp: Group | StoreLike, expand: bool | None = None, level: int | None = None) -> TreeView:
    """Draw the hierarchy below a group."""
    warn_as_zarr_python("Use Group.tree instead.", ZarrDeprecationWarning)
    if not isinstance(grp, Group):
        grp = open_group(grp, mode="r")
    group: Group = grp
    return group.tree(expand, level)


# -- hierarchies ---------------------------------------------------------------------------------------------------------


def create_hierarchy(
    *, store: StoreLike, nodes: Mapping[str, object], overwrite: bool = False
) -> Iterator[tuple[str, Array | Group]]:
    """Create nodes from their metadata: path → `ArrayMetadata`, `GroupMetadata` or a document (v2: with ``attributes``).

    Missing groups above these nodes are created too. Yields ``(path, node)``, parents before children.

    Raises `ContainsArrayError` or `ContainsGroupError` when a named node exists and not `overwrite`.
    """
    where, here, _ = locate(store, None, None)
    for path, whole, metadata in create_nodes(where, here, nodes, overwrite=overwrite):
        yield path, Group._of(where, whole, metadata)


@sans_io
async def consolidate_metadata(
    store: StoreLike, path: str | None = None, zarr_format: int | None = None, metadata_key: str = ".zmetadata"
) -> Group:
    """Write the metadata of all nodes below a group into one document. Returns the group opened with that metadata.

    v2: the key `metadata_key` at the store's root or group; v3: inside the group's ``zarr.json``.
    """
    where, here, _ = locate(store, path, None)
    if not where.supports_consolidated_metadata:
        raise TypeError(f"The Zarr Store in use ({where.url}) doesn't support consolidated metadata")
    await consolidate_steps(where, here, zarr_format, metadata_key)
    opening = steps_of(open_group)
    group: Group = await opening(where, path=here, mode="r+", zarr_format=zarr_format, use_consolidated=True)
    if group.zarr_format == 3 and group._metadata.consolidated_metadata._raw:
        warn_as_zarr_python(
            "Consolidated metadata is currently not part in the Zarr format 3 specification. It may not be supported by "
            "other zarr implementations and may change in the future.",
            module="zarr.api.asynchronous",
        )
    return group


async def create_hierarchy_async(
    *, store: StoreLike, nodes: Mapping[str, object], overwrite: bool = False
) -> list[tuple[str, Array | Group]]:
    """Create all nodes as `create_hierarchy` does, and list ``(path, node)``."""
    return await async_variant(lambda: list(create_hierarchy(store=store, nodes=nodes, overwrite=overwrite)))()


array_async = async_variant(array)
empty_async = async_variant(empty)
zeros_async = async_variant(zeros)
ones_async = async_variant(ones)
full_async = async_variant(full)
empty_like_async = async_variant(empty_like)
zeros_like_async = async_variant(zeros_like)
ones_like_async = async_variant(ones_like)
full_like_async = async_variant(full_like)
open_like_async = async_variant(open_like)
from_array_async = async_variant(from_array)
save_async = async_variant(save)
save_array_async = async_variant(save_array)
save_group_async = async_variant(save_group)
load_async = async_variant(load)
tree_async = async_variant(tree)
consolidate_metadata_async = async_variant(consolidate_metadata)
