"""The ``fanout`` chunk key encoding: no directory holds more than a given number of entries.

Source: zarr-extensions pull request 31 (proposed). v3 name ``fanout``; no v2 form.

>>> encoding = FanoutKeyEncoding.from_json({"max_children": 1000})
>>> encoding.encode((1234, 5, 0, 6789012))
'c/1/001/234/0/005/0/000/2/006/789/012'
>>> encoding.decode("c/1/001/234", 1), encoding.encode(())
((1234,), 'c')

The decimal digits of each index are cut into path segments of as many digits as ``max_children - 1`` has, after a
segment with their number less one. ``max_children`` (1000 when absent) is at least 100 and rounded down to a power of ten;
the rounded value is written. Before October 2025 the proposal spelled ``(1234,)`` as ``d0/1/234/c``, with another
default: such keys are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from tessarr.errors import MetadataValidationError, Problem
from tessarr.keys.base import KeyTemplate, Slot
from tessarr.keys.templated import TemplatedKeyEncoding
from tessarr.types import JSON, JSONObject

_LEAST, _USUAL, _MOST = 100, 1000, 10**18


class FanoutKeyEncoding(TemplatedKeyEncoding):
    """Encode ``c/1/001/234``: at most `max_children` entries in a directory.

    Raises `MetadataValidationError` for a number below 100, or of more than 19 digits.
    """

    name: ClassVar[str] = "fanout"
    __slots__ = ("max_children",)

    def __init__(self, max_children: int = _USUAL) -> None:
        if type(max_children) is not int or not _LEAST <= max_children < 10 * _MOST:
            message = f"must be an integer of at least {_LEAST} and less than {10 * _MOST}, got {max_children!r}"
            problems = [Problem(("max_children",), "value", message)]
            raise MetadataValidationError("invalid fanout chunk key encoding", problems)
        self.max_children: int = 10 ** (len(str(max_children)) - 1)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        problems = [
            Problem((name,), "unknown", f"{name!r} is not a member of the fanout key encoding's configuration")
            for name in configuration
            if name != "max_children"
        ]
        if problems:
            raise MetadataValidationError("invalid fanout chunk key encoding", problems)
        return cls(configuration.get("max_children", _USUAL))  # type: ignore[arg-type]  # checked there

    def to_json(self) -> JSONObject:
        return {"name": "fanout", "configuration": {"max_children": self.max_children}}

    def parts(self, ndim: int) -> KeyTemplate:
        digits = len(str(self.max_children)) - 1
        parts: list[str | Slot] = ["c"]
        for axis in range(ndim):
            parts += ["/", Slot(axis, group=digits)]
        return tuple(parts)
