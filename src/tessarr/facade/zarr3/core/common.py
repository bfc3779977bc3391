"""zarr-python's ``zarr.core.common``: keys, names of types, and small parsers."""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import starmap
from math import prod
from typing import Any, Literal, TypeAlias

from tessarr.grids.guess import ChunksLike as ChunksLike
from tessarr.types import AccessMode as AccessModeLiteral
from tessarr.types import ZarrFormat

JSON: TypeAlias = None | bool | int | float | str | Sequence[object] | Mapping[str, object]
BytesLike: TypeAlias = bytes | bytearray | memoryview
ShapeLike: TypeAlias = Iterable[int] | int
ChunkCoords: TypeAlias = tuple[int, ...]
MemoryOrder: TypeAlias = Literal["C", "F"]
NodeType: TypeAlias = Literal["array", "group"]
DimensionNames: TypeAlias = Iterable[str | None] | None
NamedConfig: TypeAlias = Mapping[str, object]
NamedRequiredConfig: TypeAlias = Mapping[str, object]

ZARR_JSON = "zarr.json"
ZARRAY_JSON = ".zarray"
ZGROUP_JSON = ".zgroup"
ZATTRS_JSON = ".zattrs"
ZMETADATA_V2_JSON = ".zmetadata"
ANY_ACCESS_MODE: tuple[str, ...] = ("r", "r+", "a", "w", "w-")


def product(tup: Iterable[int]) -> int:
    """Multiply integers."""
    return prod(tup)


def ceildiv(a: float, b: float) -> int:
    """Divide and round up."""
    return 0 if a == 0 else -int(-a // b)


def parse_shapelike(data: int | Iterable[int]) -> tuple[int, ...]:
    """Parse a shape into a tuple of non-negative integers."""
    given: Any = (data,) if isinstance(data, int) and not isinstance(data, bool) else data
    try:
        lengths = tuple(operator.index(length) for length in given)
    except TypeError as error:
        raise TypeError(f"Expected an integer or an iterable of integers. Got {data} instead.") from error
    if any(length < 0 for length in lengths):
        raise ValueError(f"Expected all values to be non-negative. Got {data} instead.")
    return lengths


def parse_order(data: object) -> MemoryOrder:
    """Parse the memory order "C" or "F"."""
    if data in ("C", "F"):
        return data
    raise ValueError(f"Failed to parse input for 'order': Expected one of ('C', 'F'), got {data} instead.")


def parse_indexing_order(data: object) -> MemoryOrder:
    """Parse the memory order of results, "C" or "F"."""
    return parse_order(data)


def parse_bool(data: object) -> bool:
    """Parse a boolean."""
    if isinstance(data, bool):
        return data
    raise ValueError(f"Expected bool, got {data} instead.")


def parse_name(data: object, expected: str | None = None) -> str:
    """Parse a name, which must equal `expected` if given."""
    if not isinstance(data, str):
        raise TypeError(f"Expected a string, got an instance of {type(data)}.")
    if expected is not None and data != expected:
        raise ValueError(f"Expected '{expected}'. Got {data} instead.")
    return data


def parse_named_configuration(
    data: object, expected_name: str | None = None, *, require_configuration: bool = True
) -> tuple[str, object]:
    """Parse name and configuration of ``{"name": …, "configuration": {…}}``, or of a name alone."""
    if isinstance(data, str):
        data = {"name": data} if require_configuration else {"name": data, "configuration": None}
    if not isinstance(data, Mapping):
        raise TypeError(f"Expected dict, got {type(data)}")
    if "name" not in data:
        raise ValueError(f"Named configuration does not have a 'name' key. Got {data}.")
    name = parse_name(data["name"], expected_name)
    if "configuration" in data:
        return name, data["configuration"]
    if require_configuration:
        raise ValueError(f"Named configuration does not have a 'configuration' key. Got {data}.")
    return name, None


async def concurrent_map(
    items: Iterable[tuple[object, ...]], func: Callable[..., Awaitable[object]], limit: int | None = None
) -> list[object]:
    """Call the coroutine function `func` for each of `items`, at most `limit` concurrently. Returns the results in order."""
    import asyncio

    if limit is None:
        return list(await asyncio.gather(*starmap(func, items)))
    guard = asyncio.Semaphore(limit)

    async def one(item: tuple[object, ...]) -> object:
        async with guard:
            return await func(*item)

    return list(await asyncio.gather(*(one(item) for item in items)))


__all__ = [
    "ANY_ACCESS_MODE",
    "JSON",
    "ZARRAY_JSON",
    "ZARR_JSON",
    "ZATTRS_JSON",
    "ZGROUP_JSON",
    "ZMETADATA_V2_JSON",
    "AccessModeLiteral",
    "BytesLike",
    "ChunkCoords",
    "ChunksLike",
    "DimensionNames",
    "MemoryOrder",
    "NamedConfig",
    "NamedRequiredConfig",
    "NodeType",
    "ShapeLike",
    "ZarrFormat",
    "ceildiv",
    "concurrent_map",
    "parse_bool",
    "parse_indexing_order",
    "parse_name",
    "parse_named_configuration",
    "parse_order",
    "parse_shapelike",
    "product",
]
