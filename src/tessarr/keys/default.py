"""The ``default`` chunk key encoding of Zarr v3: ``c``, then the coords, joined by a separator.

Source: Zarr v3.1 core, "Default".

>>> DefaultKeyEncoding().encode((1, 23, 45)), DefaultKeyEncoding(separator=".").encode((1, 23, 45))
('c/1/23/45', 'c.1.23.45')
>>> DefaultKeyEncoding().encode(())
'c'
>>> DefaultKeyEncoding().to_json()
{'name': 'default', 'configuration': {'separator': '/'}}

The separator is "/" (also when absent) or ".". v1 and v2 documents never use this encoding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Self

from tessarr.errors import MetadataValidationError, Problem
from tessarr.keys.base import ChunkKeyEncoding, KeyTemplate
from tessarr.keys.templated import join_slots
from tessarr.types import JSON, Coords, JSONObject

_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)


def decode_indices(parts: list[str]) -> Coords | None:
    """Parse decimal ASCII integers without sign or padding; ``None`` when one of `parts` is another text."""
    if not all(map(_INDEX.fullmatch, parts)):
        return None
    try:
        return tuple(map(int, parts))
    except ValueError:  # more digits than int() allows: no chunk has such an index
        return None


def read_separator(configuration: Mapping[str, JSON], encoding: str, default: str | None = None) -> str:
    """Read the separator in a key encoding's configuration.

    Raises `MetadataValidationError` listing every problem, located relative to the configuration.
    """
    problems = [
        Problem((name,), "unknown", f"{name!r} is not a member of the {encoding} key encoding's configuration")
        for name in configuration
        if name != "separator"
    ]
    separator = configuration.get("separator", default)
    if separator not in ("/", "."):
        problems.append(Problem(("separator",), "value", f"expected '/' or '.', got {separator!r}"))
    if problems:
        raise MetadataValidationError(f"invalid {encoding} chunk key encoding", problems)
    return str(separator)


class DefaultKeyEncoding(ChunkKeyEncoding):
    """Encode ``c/1/23/45``, or ``c.1.23.45`` with `separator` "."; ``c`` for the single chunk of a 0-d array.

    Raises `MetadataValidationError` for another separator.
    """

    name: ClassVar[str] = "default"
    __slots__ = ("_prefix", "separator")

    def __init__(self, separator: str = "/") -> None:
        self.separator = read_separator({"separator": separator}, self.name)
        self._prefix = "c" + separator

    def __repr__(self) -> str:
        return f"DefaultKeyEncoding(separator={self.separator!r})"

    def __eq__(self, other: object) -> bool:
        return self.separator == other.separator if isinstance(other, DefaultKeyEncoding) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.separator))

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(read_separator(configuration, cls.name, "/"))

    def to_json(self) -> JSONObject:
        """Return the v3 ``chunk_key_encoding`` object, always with its separator."""
        return {"name": self.name, "configuration": {"separator": self.separator}}

    def encode(self, coords: Coords) -> str:
        return self._prefix + self.separator.join(map(str, coords)) if coords else "c"

    def decode(self, key: str, ndim: int) -> Coords | None:
        head, *parts = key.split(self.separator)
        return decode_indices(parts) if head == "c" and len(parts) == ndim else None

    def template(self, ndim: int) -> KeyTemplate:
        return (self._prefix, *join_slots(range(ndim), self.separator)) if ndim else ("c",)
