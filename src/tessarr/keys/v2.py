"""The ``v2`` chunk key encoding: the coords joined by a separator, as in Zarr v1 and v2.

Source: Zarr v3.1 core, "v2"; Zarr v2, "Chunks" and ``dimension_separator``; Zarr v1, "Chunks".

>>> V2KeyEncoding().encode((1, 23, 45)), V2KeyEncoding(separator="/").encode((1, 23, 45))
('1.23.45', '1/23/45')
>>> V2KeyEncoding().encode(())
'0'
>>> V2KeyEncoding().to_json()
{'name': 'v2', 'configuration': {'separator': '.'}}

The separator is "." (also when absent) or "/". v1 and v2 arrays always use this encoding. v3 has it so that converted
arrays keep their chunks, and advises against it for new ones, so tessarr writes it in v3 only on request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from tessarr.keys.base import ChunkKeyEncoding, KeyTemplate
from tessarr.keys.default import decode_indices, read_separator
from tessarr.keys.templated import join_slots
from tessarr.types import JSON, Coords, JSONObject


class V2KeyEncoding(ChunkKeyEncoding):
    """Encode ``1.23.45``, or ``1/23/45`` with `separator` "/"; ``0`` for the single chunk of a 0-d array.

    Raises `MetadataValidationError` for another separator.
    """

    name: ClassVar[str] = "v2"
    __slots__ = ("separator",)

    def __init__(self, separator: str = ".") -> None:
        self.separator = read_separator({"separator": separator}, self.name)

    def __repr__(self) -> str:
        return f"V2KeyEncoding(separator={self.separator!r})"

    def __eq__(self, other: object) -> bool:
        return self.separator == other.separator if isinstance(other, V2KeyEncoding) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.separator))

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(read_separator(configuration, cls.name, "."))

    def to_json(self) -> JSONObject:
        """Return the v3 ``chunk_key_encoding`` object, always with its separator."""
        return {"name": self.name, "configuration": {"separator": self.separator}}

    def encode(self, coords: Coords) -> str:
        return self.separator.join(map(str, coords)) if coords else "0"

    def decode(self, key: str, ndim: int) -> Coords | None:
        if ndim == 0:
            return () if key == "0" else None
        parts = key.split(self.separator)
        return decode_indices(parts) if len(parts) == ndim else None

    def template(self, ndim: int) -> KeyTemplate:
        return join_slots(range(ndim), self.separator) or ("0",)
