"""Summarise arrays and groups for people, and compute digests of stored data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tessarr.core.asynchronous.sans_io import gather_calls, store_call
from tessarr.settings import config as settings
from tessarr.stores.url import public_store

if TYPE_CHECKING:
    from tessarr.core.array import Array
    from tessarr.core.group_parts.members import Members


class Info:
    """A summary: `items` is a list of ``(label, value)`` strings; printing it gives an aligned table."""

    def __init__(self, items: list[tuple[str, str]], zarr_format: int) -> None:
        self.items = items
        self._zarr_format = zarr_format
        """Read by ome-zarr-py under this name."""

    def __repr__(self) -> str:
        width = max(len(label) for label, _ in self.items)
        return "\n".join(f"{label:<{width}} : {value}" for label, value in self.items)

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in self.items)
        return f"<table>{rows}</table>"


class ArrayInfo(Info):
    """Summary of an array."""

    _compressors: tuple[Any, ...] = ()
    """Read by the tests of ome-zarr-py under this name."""


class GroupInfo(Info):
    """Summary of a group."""


def human(nbytes: float) -> str:
    """Format a size in bytes with a binary unit.

    >>> human(3_500_000)
    '3.3M'
    """
    for unit in ("", "K", "M", "G", "T", "P"):
        if nbytes < 1024 or unit == "P":
            return f"{nbytes:.0f}" if not unit else f"{nbytes:.1f}{unit}"
        nbytes /= 1024
    raise AssertionError


def array_info(array: Array, stored: int | None = None, nchunks: int = 0) -> ArrayInfo:
    """Make the summary of `Array.info`; with bytes and number of chunks stored, that of `Array.info_complete`."""
    make = _items_in_zarr_python if settings.get("zarr_python.info") else _items
    info = ArrayInfo(make(array, stored, nchunks), array.zarr_format)
    info._compressors = array.compressors
    return info


def _items(array: Array, stored: int | None, nchunks: int) -> list[tuple[str, str]]:
    rectilinear = array._metadata.chunk_grid.chunk_shape is None
    sharded = array._sharding is not None
    items = [
        ("Name", array.name),
        ("Type", "Array"),
        ("Zarr format", str(array.zarr_format)),
        ("Data type", f"{array._metadata.data_type.name} ({array.dtype})"),
        ("Fill value", str(array.fill_value)),
        ("Shape", str(array.shape)),
    ]
    if array.dims:
        items.append(("Dimensions", str(array.dims)))
    if rectilinear:
        cells = f"{array.nshards} shards" if sharded else f"{array.nchunks} chunks"
        items.append(("Chunk grid", f"rectilinear, {cells}"))
    if sharded:
        items.append(("Shard shape", "<variable>" if rectilinear else str(array.shards)))
    items.append(("Chunk shape", "<variable>" if rectilinear and not sharded else str(array.chunks)))
    items += [("Codecs", ", ".join(codec.name for codec in array._metadata.codecs))]
    if array.zarr_format != 3:
        items += [("Order", array._metadata.order), ("Compressor", str(array._metadata.compressor))]
        items += [("Filters", str(list(array._metadata.filters or ())))]
    items += [
        ("Store", repr(array._store)),
        ("Read-only", str(array.read_only)),
        ("Write empty chunks", str(array._options.write_empty_chunks)),
        ("Engine", str(array.engine)),
        ("No. bytes", f"{array.nbytes} ({human(array.nbytes)})"),
    ]
    if stored is not None:
        ratio = f"{array.nbytes / stored:.1f}" if stored else "-"
        items += [
            ("No. bytes stored", f"{stored} ({human(stored)})"),
            ("Storage ratio", ratio),
            ("Chunks initialized", f"{nchunks}/{array.nchunks}"),
        ]
    return items


def _items_in_zarr_python(array: Array, stored: int | None, nchunks: int) -> list[tuple[str, str]]:
    """Return the labels and values of zarr-python's summary."""
    name, order = array._metadata.data_type.name, {"<": "little", ">": "big"}.get(array.dtype.str[0])
    kind = f"UI{name[2:]}" if name.startswith("uint") else name.capitalize()
    items = [
        ("Type", "Array"),
        ("Zarr format", str(array.zarr_format)),
        ("Data type", f"{kind}({f'endianness={order!r}' if order else ''})"),
        ("Fill value", str(array.fill_value)),
        ("Shape", str(array.shape)),
    ]
    rectilinear, sharded = array._metadata.chunk_grid.chunk_shape is None, array._sharding is not None
    if sharded:
        items.append(("Shard shape", "<variable>" if rectilinear else str(array.shards)))
    items += [
        ("Chunk shape", "<variable>" if rectilinear and not sharded else str(array.chunks)),
        ("Order", array.order),
        ("Read-only", str(array.read_only)),
        ("Store type", type(public_store(array._store)).__name__),
        ("Filters", repr(tuple(array.filters or ()))),
    ]
    if array.zarr_format == 3:
        items.append(("Serializer", repr(array.serializer)))
    items += [("Compressors", repr(tuple(array.compressors))), ("No. bytes", _size(array.nbytes))]
    if stored is not None:
        ratio = f"{array.nbytes / stored:.1f}" if stored else "-"
        items += [("No. bytes stored", _size(stored)), ("Storage ratio", ratio), ("Chunks Initialized", str(nchunks))]
    return items


def _size(nbytes: int) -> str:
    return str(nbytes) if nbytes < 1024 else f"{nbytes} ({human(nbytes)})"


def group_info(group: Members, kinds: Sequence[bool] | None = None) -> GroupInfo:
    """Make the summary of `Group.info`; with `kinds` (per member at any depth: is an array) of `Group.info_complete`."""
    store = ("Store", repr(group._store))
    read_only = ("Read-only", str(group.read_only))
    if settings.get("zarr_python.info"):
        name, end = group.path, [read_only, ("Store type", type(public_store(group._store)).__name__)]
    else:
        name, end = group.name, [store, read_only]
    items = [("Name", name), ("Type", "Group"), ("Zarr format", str(group.zarr_format)), *end]
    if kinds is not None:
        items += [
            ("No. members", str(len(kinds))),
            ("No. arrays", str(sum(kinds))),
            ("No. groups", str(len(kinds) - sum(kinds))),
        ]
    return GroupInfo(items, group.zarr_format)


async def digest_steps(array: Array, hashname: str) -> bytes:
    """Compute a digest over the metadata, attributes and every stored chunk, in key order."""
    import hashlib

    from tessarr.metadata import serialize
    from tessarr.stores.buffers import byte_view
    from tessarr.stores.path import prefix_of

    total: Any = hashlib.new(hashname)
    documents = serialize.dumps(array._metadata.documents())
    for name in sorted(documents):
        total.update(documents[name])
    prefix = prefix_of(array.path)
    keys = sorted(key for _, key in await array._list_chunks_steps())
    for start in range(0, len(keys), _BATCH):
        some = keys[start : start + _BATCH]
        values = await gather_calls([store_call(array._bound.store, "get", key) for key in some])
        for key, value in zip(some, values, strict=True):
            total.update(key[len(prefix) :].encode())
            total.update(b"" if value is None else byte_view(value))
    return bytes(total.digest())


_BATCH = 8
"""Number of chunks in memory while a digest is computed."""
