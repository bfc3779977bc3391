"""The ``vlen-utf8`` and ``vlen-bytes`` codecs: elements of different lengths, each after its length.

Source: zarr-extensions, "vlen-utf8" and "vlen-bytes". v3 names and v2 filter ids are the same words. A chunk is the
number of elements, then for each element its length and its bytes; numbers are 32-bit, unsigned, little-endian.

>>> VLenUTF8Codec().to_json(), VLenBytesCodec().to_json()
({'name': 'vlen-utf8'}, {'name': 'vlen-bytes'})

A missing value (``None``) is stored as an empty one, as numcodecs does. Decoding checks the number of elements before
memory is taken for them, every length, that nothing follows the last element, and that text is UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tessarr.codecs.base import ArrayToBytes, ChunkSpec
from tessarr.codecs.members import read_members
from tessarr.codecs.raw import corrupt, flat_bytes
from tessarr.errors import CodecError
from tessarr.types import JSON, Buffer, JSONObject


@dataclass(frozen=True, slots=True)
class _VLenCodec(ArrayToBytes):
    """What text and bytes share."""

    _stored: ClassVar[str]
    """What an element is, for errors."""

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        """See `Codec.from_json`."""
        read_members(cls.name, configuration, {})
        return cls()

    def to_json(self) -> JSONObject:
        """See `Codec.to_json`."""
        return {"name": self.name}

    def _refuse(self, spec: ChunkSpec) -> CodecError:
        return CodecError(
            f"the {self.name} codec cannot store {spec.data_type.name}",
            codec=self.name,
            expected=f"a variable-length data type of {self._stored}",
            got=spec.data_type.name,
        )

    def _run_encode(self, coder: Any, chunk: npt.NDArray[Any]) -> Buffer:
        values = np.ascontiguousarray(chunk).reshape(-1).astype(object, copy=False)
        values = np.require(values, requirements="W")  # numcodecs asks for memory it could write
        try:
            encoded: bytearray = coder.encode(values)
        except (TypeError, ValueError, AttributeError) as error:
            raise CodecError(
                f"{self.name} cannot encode a chunk: {error}", codec=self.name, expected=self._stored
            ) from error
        return encoded

    def _run_decode(self, coder: Any, data: Buffer, spec: ChunkSpec) -> tuple[npt.NDArray[Any], int]:
        """The elements, flat, and the size of their bytes together."""
        source = flat_bytes(data)
        expected = prod(spec.shape)
        if len(source) < 4:
            raise corrupt(self.name, f"{len(source)} bytes are shorter than the number of elements")
        count = int.from_bytes(source[:4].tobytes(), "little")
        if count != expected:
            raise CodecError(
                f"a {self.name} chunk has the wrong number of elements", codec=self.name, expected=expected, got=count
            )
        size = len(source) - 4 - 4 * count
        if size < 0:
            raise corrupt(self.name, f"{len(source)} bytes cannot hold {count} elements")
        try:
            values: npt.NDArray[Any] = coder.decode(source)
        except (ValueError, RuntimeError) as error:  # UnicodeDecodeError is a ValueError
            raise corrupt(self.name, error) from error
        return values, size

    def _check_end(self, used: int, size: int) -> None:
        if used != size:
            raise corrupt(self.name, f"{size - used} bytes follow the last element")

    def encoded_size(self, spec: ChunkSpec) -> None:
        """See `ArrayToBytes.encoded_size`."""
        if not self._stores(spec):
            raise self._refuse(spec)

    def _stores(self, spec: ChunkSpec) -> bool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class VLenUTF8Codec(_VLenCodec):
    """Text as UTF-8, each element after its length."""

    name = "vlen-utf8"
    _stored = "text (str)"

    def _stores(self, spec: ChunkSpec) -> bool:
        return spec.dtype.kind == "T" or (spec.dtype.kind == "O" and "bytes" not in spec.data_type.name)

    def encode(self, chunk: npt.NDArray[Any], spec: ChunkSpec) -> Buffer:
        """See `ArrayToBytes.encode`."""
        from numcodecs.vlen import VLenUTF8

        return self._run_encode(VLenUTF8(), chunk)

    def decode(self, data: Buffer, spec: ChunkSpec) -> npt.NDArray[Any]:
        """See `ArrayToBytes.decode`."""
        from numcodecs.vlen import VLenUTF8

        values, size = self._run_decode(VLenUTF8(), data, spec)
        characters = sum(map(len, values.tolist()))
        if characters != size:  # equal: nothing but ASCII, and nothing after the last element
            self._check_end(len("".join(values.tolist()).encode()), size)
        if spec.dtype.kind == "T":
            values = np.array(values, dtype=spec.dtype)
        return values.reshape(spec.shape)


@dataclass(frozen=True, slots=True)
class VLenBytesCodec(_VLenCodec):
    """Bytes, each element after its length."""

    name = "vlen-bytes"
    _stored = "bytes"

    def _stores(self, spec: ChunkSpec) -> bool:
        return spec.dtype.kind == "O" and spec.data_type.name != "string"

    def encode(self, chunk: npt.NDArray[Any], spec: ChunkSpec) -> Buffer:
        """See `ArrayToBytes.encode`."""
        from numcodecs.vlen import VLenBytes

        return self._run_encode(VLenBytes(), chunk)

    def decode(self, data: Buffer, spec: ChunkSpec) -> npt.NDArray[Any]:
        """See `ArrayToBytes.decode`."""
        from numcodecs.vlen import VLenBytes

        values, size = self._run_decode(VLenBytes(), data, spec)
        self._check_end(sum(map(len, values.tolist())), size)
        return values.reshape(spec.shape)
