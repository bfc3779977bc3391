"""The codec of N5's blocks of text: strings that end with a NUL, first axis fastest. v3 name ``tessarr.n5_strings``; no v2 id.

Java writes datasets of the type ``string`` so, in blocks of mode 1 (``n5_varlen``), whose number of elements is the number of
these bytes. Elements cannot contain a NUL.

Source: N5 4.0, "file-system specification", and the class ``StringDataBlock`` of its Java source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np

from tessarr.codecs.base import ArrayToBytes, ChunkSpec
from tessarr.codecs.members import read_members
from tessarr.codecs.raw import corrupt, flat_bytes
from tessarr.errors import CodecError
from tessarr.types import JSON, AnyArray, Buffer, JSONObject


@dataclass(frozen=True, slots=True)
class N5StringsCodec(ArrayToBytes):
    """Store text as UTF-8, each element ended by a NUL.

    >>> codec, spec = N5StringsCodec(), ChunkSpec((2,), __import__("tessarr").dtypes.parse.from_v3("string"), np.array(""))
    >>> codec.encode(np.array(["a", "bc"], spec.dtype), spec)
    b'a\\x00bc\\x00'
    """

    name = "tessarr.n5_strings"

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, {}))

    def to_json(self) -> JSONObject:
        return {"name": self.name}

    def encoded_size(self, spec: ChunkSpec) -> None:
        if spec.data_type.name != "string":
            raise CodecError(
                "N5 holds text in such blocks", codec=self.name, expected="string", got=spec.data_type.name
            )

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        texts = [str(text) for text in chunk.reshape(-1, order="F")]
        if any("\0" in text for text in texts):
            raise CodecError("N5 cannot hold text with a NUL, which ends an element", codec=self.name)
        return "".join(f"{text}\0" for text in texts).encode()

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        source = flat_bytes(data).tobytes()
        count = source.count(b"\0")
        if count != prod(spec.shape) or not source.endswith(b"\0"):
            raise CodecError(
                "a block of text has the wrong number of elements",
                codec=self.name,
                expected=prod(spec.shape),
                got=count,
            )
        try:
            texts = source.decode().split("\0")[:-1]
        except UnicodeDecodeError as error:
            raise corrupt(self.name, error) from error
        return np.array(texts, spec.dtype).reshape(spec.shape, order="F")
