"""The ``lzw`` codec: Lempel-Ziv-Welch compression as in TIFF files.

Source: zarr-extensions pull request 16 (proposed); Welch, "A Technique for High-Performance Data Compression", 1984; TIFF
6.0, section 13. v3 name ``lzw``; ``imagecodecs_lzw`` is the same bytes.

>>> LzwCodec().to_json()
{'name': 'lzw'}

The proposal names no bit order; this codec uses the one of imagecodecs, whose author made the proposal (codes of 9 to 12
bits, highest bit first, widths that change one code early). It needs the Rust module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tessarr.codecs.members import read_members
from tessarr.codecs.raw import UNKNOWN_SIZE_LIMIT
from tessarr.codecs.steps import StepCodec
from tessarr.errors import CodecError, MissingDependencyError
from tessarr.types import JSON, Buffer, JSONObject


@dataclass(frozen=True, slots=True)
class LzwCodec(StepCodec):
    """Compress with LZW."""

    name = "lzw"

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        read_members(cls.name, configuration, {})
        return cls()

    def to_json(self) -> JSONObject:
        return {"name": self.name}

    def step(self) -> tuple[str, JSONObject]:
        return "lzw", {}

    def encoded_size(self, nbytes: int) -> None:
        return

    def _encode(self, data: Buffer) -> Buffer:
        raise self._missing()

    def _decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        if nbytes is None:
            raise CodecError(
                "lzw needs to know the decoded size",
                codec=self.name,
                expected=f"at most {UNKNOWN_SIZE_LIMIT}",
            )
        raise self._missing()

    def _missing(self) -> MissingDependencyError:
        return MissingDependencyError(
            "the lzw codec needs tessarr's Rust module", codec=self.name, hint="Install tessarr with a Rust toolchain"
        )
