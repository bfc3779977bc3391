"""Where names become classes, for the five extension points of Zarr v3 and for numcodecs ids.

One explicit, lazy table per point: a built-in name maps to ``"module:Class"`` and is imported on first use. Third
parties add names with `register`, or by an entry point in the group ``tessarr.<point>`` (also zarr-python's groups
``zarr.codecs`` and ``zarr.data_type`` are *not* read: their classes follow another contract).

>>> get("codec", "gzip").__name__
'GzipCodec'
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

Point: TypeAlias = Literal["data_type", "chunk_grid", "chunk_key_encoding", "codec", "storage_transformer"]

_C = "tessarr.codecs."
_D = "tessarr.dtypes."
_TABLE: dict[str, dict[str, Any]] = {
    "data_type": {},
    "chunk_grid": {
        "regular": "tessarr.grids.regular:RegularGrid",
        "rectilinear": "tessarr.grids.rectilinear:RectilinearGrid",
    },
    "chunk_key_encoding": {
        "default": "tessarr.keys.default:DefaultKeyEncoding",
        "v2": "tessarr.keys.v2:V2KeyEncoding",
    },
    "codec": {
        "bytes": _C + "bytes:BytesCodec",
        "endian": _C + "bytes:BytesCodec",
        "transpose": _C + "transpose:TransposeCodec",
        "blosc": _C + "blosc:BloscCodec",
        "gzip": _C + "gzip:GzipCodec",
        "zstd": _C + "zstd:ZstdCodec",
        "crc32c": _C + "crc32c:Crc32cCodec",
        "sharding_indexed": _C + "sharding:ShardingCodec",
        "vlen-utf8": _C + "vlen:VLenUTF8Codec",
        "vlen-bytes": _C + "vlen:VLenBytesCodec",
        "packbits": _C + "packbits:PackBitsCodec",
        "bitround": _C + "bitround:BitRoundCodec",
        "scale_offset": _C + "scale_offset:ScaleOffsetCodec",
        "cast_value": _C + "cast_value:CastValueCodec",
        "reshape": _C + "reshape:ReshapeCodec",
    },
    "storage_transformer": {},
}
_entry_points_read: set[str] = set()


def register(point: Point, name: str, implementation: Any) -> None:
    """Make `implementation` (a class, or ``"module:Class"``) what `name` means at `point`; replaces an earlier one."""
    _TABLE[point][name] = implementation


def _resolve(point: str, name: str) -> Any:
    found = _TABLE[point].get(name)
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        found = _TABLE[point][name] = getattr(importlib.import_module(module), attribute)
    return found


def _read_entry_points(point: str) -> None:
    """Adds what installed packages offer; built-in and registered names keep precedence."""
    from importlib.metadata import entry_points

    _entry_points_read.add(point)
    for entry in entry_points(group=f"tessarr.{point}"):
        _TABLE[point].setdefault(entry.name, entry.value)


def get(point: Point, name: str) -> Any | None:
    """The class registered under `name`, or ``None``."""
    found = _resolve(point, name)
    if found is None and point not in _entry_points_read:
        _read_entry_points(point)
        found = _resolve(point, name)
    return found


def names(point: Point) -> Iterator[str]:
    """Every name known at `point`, entry points included, sorted."""
    if point not in _entry_points_read:
        _read_entry_points(point)
    return iter(sorted(_TABLE[point]))
