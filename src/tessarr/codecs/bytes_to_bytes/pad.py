"""The ``pad`` codec: fixed bytes before or after each chunk, such as the header of another file format.

Source: zarr-extensions pull request 36 (proposed). v3 name ``pad``; no v2 id.

>>> codec = PadCodec.from_json({"location": "start", "nbytes": 4, "padding": "TUFHSQ=="})
>>> bytes(codec.encode(b"data")), bytes(codec.decode(b"????data", 4))
(b'MAGIdata', b'data')

``padding`` is a Base64 string of ``nbytes`` bytes; without it zeros are written. Decoding ignores the content of the
padding: headers may differ from chunk to chunk.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from tessarr.codecs.members import choice, integer, read_members
from tessarr.codecs.raw import corrupt, flat_bytes, size_error
from tessarr.codecs.steps import StepCodec
from tessarr.errors import MetadataValidationError, Problem
from tessarr.types import JSON, Buffer, JSONObject

_MOST = 1 << 20


def _base64(value: Any) -> str | None:
    try:
        base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return f"must be a Base64 string, got {value!r}"
    return None if isinstance(value, str) else f"must be a Base64 string, got {value!r}"


_CHECKS = {"location": choice("start", "end"), "nbytes": integer(0, _MOST), "padding": _base64}


@dataclass(frozen=True, slots=True)
class PadCodec(StepCodec):
    """Add `padding` at one end of each chunk."""

    name = "pad"
    location: Literal["start", "end"]
    padding: bytes
    """Bytes to write; decoding skips as many bytes."""

    def __post_init__(self) -> None:
        if self.location not in ("start", "end") or len(self.padding) > _MOST:
            problem = Problem((), "value", f"needs a location, start or end, and at most {_MOST} bytes")
            raise MetadataValidationError("invalid pad codec", [problem], codec=self.name)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        members = read_members(cls.name, configuration, _CHECKS, required=("location", "nbytes"))
        padding = base64.b64decode(members.get("padding", "")) if "padding" in members else bytes(members["nbytes"])
        if len(padding) != members["nbytes"]:
            problem = Problem(("padding",), "value", f"has {len(padding)} bytes, nbytes says {members['nbytes']}")
            raise MetadataValidationError("invalid pad codec", [problem], codec=cls.name)
        return cls(members["location"], padding)

    def to_json(self) -> JSONObject:
        padding: JSONObject = {"padding": base64.b64encode(self.padding).decode()} if any(self.padding) else {}
        configuration: JSONObject = {"location": self.location, "nbytes": len(self.padding), **padding}
        return {"name": self.name, "configuration": configuration}

    def step(self) -> tuple[str, JSONObject]:
        return "pad", {"location": self.location, "padding": list(self.padding)}

    def encoded_size(self, nbytes: int) -> int:
        return nbytes + len(self.padding)

    def _encode(self, data: Buffer) -> Buffer:
        plain = flat_bytes(data).tobytes()
        return self.padding + plain if self.location == "start" else plain + self.padding

    def _decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        source = flat_bytes(data)
        size = len(source) - len(self.padding)
        if size < 0:
            raise corrupt(self.name, f"{len(source)} bytes are shorter than the padding")
        if nbytes is not None and size != nbytes:
            raise size_error(self.name, nbytes, f"{size} bytes")
        return source[len(self.padding) :] if self.location == "start" else source[:size]
