r"""The ``conditional`` codec: apply other codecs to some chunks only.

Source: zarr-extensions, "conditional". v3 name ``conditional``; no v2 id.

>>> codec = ConditionalCodec.from_json({"codecs": [{"name": "gzip", "configuration": {"level": 5}}], "header_bits": 8})
>>> bytes(codec.encode(b"abc")), bytes(codec.encode(bytes(1000)))[:3].hex()
(b'\x00abc', '011f8b')

A chunk begins with ``header_bits / 8`` bytes, by default as few as hold a bit per codec; bit i, counted from the lowest of
the first byte, says whether codec i was applied. Other bits must be 0. `policy`, which is not stored in the document,
decides: ``"compress_if_smaller"`` (all codecs or none, whichever is smaller), ``"always"``, ``"never"`` (the default of
the text), or a function from the bytes of a chunk to a list of booleans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias

from tessarr.codecs.base import BytesToBytes, ChunkSpec
from tessarr.codecs.members import Check
from tessarr.codecs.parse import parse_codecs
from tessarr.codecs.raw import corrupt, flat_bytes, size_error
from tessarr.errors import MetadataValidationError, Problem
from tessarr.types import JSON, Buffer, JSONObject

Policy: TypeAlias = Literal["compress_if_smaller", "always", "never"] | Callable[[bytes], Sequence[bool]]
_POLICIES = ("compress_if_smaller", "always", "never")
_MOST_BITS = 1 << 13


def _header_bits(value: object) -> str | None:
    fine = type(value) is int and 0 < value <= _MOST_BITS and value % 8 == 0
    return None if fine else f"must be a multiple of 8, at most {_MOST_BITS}; got {value!r}"


_HEADER: Check = _header_bits


@dataclass(frozen=True, slots=True)
class ConditionalCodec(BytesToBytes):
    """Apply bytes → bytes codecs chunk by chunk."""

    name = "conditional"
    codecs: tuple[BytesToBytes, ...]
    """In encoding order."""
    header_bits: int | None = None
    """Size of the header; ``None``: whole bytes that hold a bit per codec."""
    policy: Policy = field(default="compress_if_smaller", compare=False)
    """Rule that decides for each written chunk."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "codecs", tuple(self.codecs))
        problems = []
        if not self.codecs or not all(isinstance(codec, BytesToBytes) for codec in self.codecs):
            problems.append(Problem(("codecs",), "value", "must be one or more bytes to bytes codecs"))
        if self.header_bits is not None:
            wrong = _HEADER(self.header_bits)
            if wrong is None and self.header_bits < len(self.codecs):
                wrong = f"has no bit for each of {len(self.codecs)} codecs"
            problems += [Problem(("header_bits",), "value", wrong)] if wrong else []
        elif len(self.codecs) > _MOST_BITS:
            problems.append(Problem(("codecs",), "value", f"must be at most {_MOST_BITS} codecs"))
        if not callable(self.policy) and self.policy not in _POLICIES:
            message = f"must be one of {_POLICIES} or a function, got {self.policy!r}"
            problems.append(Problem(("policy",), "value", message))
        if problems:
            raise MetadataValidationError("invalid conditional codec", problems, codec=self.name)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        problems = [
            Problem((name,), "unknown", "unknown member of the conditional codec")
            for name in configuration
            if name not in ("codecs", "header_bits")
        ]
        if "codecs" not in configuration:
            problems.append(Problem(("codecs",), "missing", "is required"))
        codecs, ignored = parse_codecs(configuration.get("codecs", []), ("codecs",), problems)
        if ignored:  # a stored chunk may need such a codec
            problems.append(Problem(("codecs",), "unsupported", f"unknown codecs {ignored} cannot be left out here"))
        if problems:
            raise MetadataValidationError("invalid conditional codec", problems, codec=cls.name)
        return cls(codecs, configuration.get("header_bits"))  # type: ignore[arg-type]  # checked there

    def to_json(self) -> JSONObject:
        header: JSONObject = {} if self.header_bits is None else {"header_bits": self.header_bits}
        return {"name": self.name, "configuration": {"codecs": [codec.to_json() for codec in self.codecs], **header}}

    def fit(self, spec: ChunkSpec) -> Self:
        """Fit every inner codec."""
        return replace(self, codecs=tuple(codec.fit(spec) for codec in self.codecs))

    @property
    def header_bytes(self) -> int:
        """Size of the header."""
        return (self.header_bits or len(self.codecs) + 7) // 8

    def encoded_size(self, nbytes: int) -> None:
        return

    def encode(self, data: Buffer) -> Buffer:
        plain = flat_bytes(data)
        if callable(self.policy):
            chosen = self.policy(plain.tobytes())
            mask = [bool(i < len(chosen) and chosen[i]) for i in range(len(self.codecs))]
        else:
            mask = [self.policy != "never"] * len(self.codecs)
        encoded: Buffer = plain
        for codec, applied in zip(self.codecs, mask, strict=True):
            encoded = codec.encode(encoded) if applied else encoded
        if self.policy == "compress_if_smaller" and len(flat_bytes(encoded)) >= len(plain):
            encoded, mask = plain, [False] * len(mask)
        bits = sum(1 << i for i, applied in enumerate(mask) if applied)
        return bits.to_bytes(self.header_bytes, "little") + flat_bytes(encoded).tobytes()

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        source = flat_bytes(data)
        if len(source) < self.header_bytes:
            raise corrupt(self.name, f"{len(source)} bytes are shorter than the header")
        bits = int.from_bytes(source[: self.header_bytes].tobytes(), "little")
        if bits >> len(self.codecs):
            raise corrupt(self.name, "the header has bits beyond its codecs")
        applied = [codec for i, codec in enumerate(self.codecs) if bits >> i & 1]
        sizes: list[int | None] = []
        size = nbytes
        for codec in applied:
            sizes.append(size)
            size = None if size is None else codec.encoded_size(size)
        decoded: Buffer = source[self.header_bytes :]
        for codec, size in zip(reversed(applied), reversed(sizes), strict=True):
            decoded = codec.decode(decoded, size)
        found = len(flat_bytes(decoded))
        if nbytes is not None and found != nbytes:
            raise size_error(self.name, nbytes, f"{found} bytes")
        return decoded
