"""Parse the segment of a URL that says how a view differs from the stored arrays. Pure.

>>> parse_options("@chunks=1x512x512,codecs=zstd,dtype=float32")
Options(chunks=(1, 512, 512), codecs=('zstd',), dtype='float32', levels=None, client=None)
>>> parse_options("@home") is None
True
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from tessarr.serve.dynamic.refusal import malformed

Reduction = Literal["nearest", "mean"]
CODECS = ("zstd", "gzip", "blosc", "crc32c")
"""Compressors that every reader of Zarr v3 has."""
DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
)  # fmt: skip
_SMALL_NUMBERS = {
    "bfloat16": "float32", "float16": "float32", "int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8",
    "float8_e4m3": "float32", "float8_e5m2": "float32", "float8_e4m3fn": "float32", "float8_e4m3fnuz": "float32",
    "float8_e5m2fnuz": "float32", "float8_e4m3b11fnuz": "float32", "float8_e3m4": "float32",
}  # fmt: skip
CASTS: Mapping[str, Mapping[str, str]] = {
    "neuroglancer": {**_SMALL_NUMBERS, "bool": "uint8", "float64": "float32", "int64": "int32"},
    "vizarr": {**_SMALL_NUMBERS, "bool": "uint8", "int64": "int32", "uint64": "uint32"},
    "zarrita": _SMALL_NUMBERS,
}
"""Client → name of a type that it cannot show → the type that it is shown instead."""
_LEVELS: Mapping[str, Reduction] = {"neuroglancer": "nearest", "vizarr": "nearest"}
_NAMES = ("chunks", "codecs", "dtype", "levels", "for")
_SEGMENT = re.compile(rf"@(?:{'|'.join(_NAMES)})=.*", re.DOTALL)


class Options(NamedTuple):
    """How a view differs from the stored arrays."""

    chunks: tuple[int, ...] | Literal["auto"] | None = None
    """Lengths of chunks, for arrays of as many dimensions; ``None``: those of the array."""
    codecs: tuple[str, ...] = ()
    """Names of compressors."""
    dtype: str | None = None
    levels: Reduction | None = None
    """Make up the levels of an image; by this method."""
    client: str | None = None
    """A key of `CASTS`: types that it lacks are cast, and large chunks cut."""


def parse_options(segment: str) -> Options | None:
    """Parse a segment of a path; ``None``: it does not describe a view. Raises `Refusal` for values without meaning."""
    if _SEGMENT.fullmatch(segment) is None:
        return None
    given: dict[str, str] = {}
    for part in segment[1:].split(","):
        name, _, value = part.partition("=")
        if name not in _NAMES or name in given:
            raise malformed(
                f"{part[:40]!r} is not an option of a view, or is repeated", f"Options: {', '.join(_NAMES)}"
            )
        given[name] = value
    client = _one_of(given, "for", CASTS)
    levels = _one_of(given, "levels", ("nearest", "mean", "none"))
    made = _LEVELS.get(client or "") if levels is None else None if levels == "none" else cast("Reduction", levels)
    return Options(
        _chunks(given.get("chunks")), _codecs(given.get("codecs")), _one_of(given, "dtype", DTYPES), made, client
    )


def _one_of(given: Mapping[str, str], name: str, known: Mapping[str, object] | tuple[str, ...]) -> str | None:
    value = given.get(name)
    if value is not None and value not in known:
        raise malformed(f"{name} of a view cannot be {value[:40]!r}", f"Known: {', '.join(known)}")
    return value


def _chunks(text: str | None) -> tuple[int, ...] | Literal["auto"] | None:
    if text is None:
        return None
    if text == "auto":
        return "auto"
    if re.fullmatch(r"[1-9]\d{0,9}(x[1-9]\d{0,9}){0,31}", text) is None:
        raise malformed(f"chunks cannot be {text[:40]!r}", "Lengths joined by x: chunks=1x512x512, or chunks=auto")
    return tuple(map(int, text.split("x")))


def _codecs(text: str | None) -> tuple[str, ...]:
    names = () if text in (None, "none") else tuple(str(text).split("+"))
    if len(names) > len(CODECS) or any(name not in CODECS for name in names):
        raise malformed(f"codecs cannot be {str(text)[:40]!r}", f"Known: none, {', '.join(CODECS)}, joined by +")
    return names
