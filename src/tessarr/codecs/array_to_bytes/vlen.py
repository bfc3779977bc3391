"""The ``vlen-utf8`` and ``vlen-bytes`` codecs: variable-length elements, each prefixed with its length.

Source: zarr-extensions, "vlen-utf8" and "vlen-bytes". v3 names and v2 filter ids are equal. A chunk is the
number of elements, then for each element its length and its bytes; numbers are 32-bit, unsigned, little-endian.

>>> VLenUTF8Codec().to_json(), VLenBytesCodec().to_json()
({'name': 'vlen-utf8'}, {'name': 'vlen-bytes'})

A missing value (``None``) is stored as an empty one, as in numcodecs. Decoding checks the number of elements before
memory is allocated for them, every length, that no bytes follow the last element, and that text is UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tessarr.codecs.array_to_bytes import vlen_native
from tessarr.codecs.base import ArrayToBytes, ChunkSpec
from tessarr.codecs.members import read_members
from tessarr.codecs.raw import corrupt, flat_bytes
from tessarr.common import strict_json
from tessarr.errors import CodecError
from tessarr.types import JSON, AnyArray, Buffer, JSONObject

_BLOCK = 2048
"""Texts that are Python objects at a time, while numcodecs encodes them."""


@dataclass(frozen=True, slots=True)
class _VLenCodec(ArrayToBytes):
    """Base class of the codecs for text and for bytes."""

    _stored: ClassVar[str]
    """Description of an element for errors."""

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        read_members(cls.name, configuration, {})
        return cls()

    def to_json(self) -> JSONObject:
        return {"name": self.name}

    def _refuse(self, spec: ChunkSpec) -> CodecError:
        return CodecError(
            f"the {self.name} codec cannot store {spec.data_type.name}",
            codec=self.name,
            expected=f"a variable-length data type of {self._stored}",
            got=spec.data_type.name,
        )

    def _run_encode(self, coder: Any, values: AnyArray) -> Buffer:
        """Encode flat `values` with numcodecs; text in blocks, which bounds the number of Python objects alive at a
        time.
        """
        if values.dtype == object:
            encoded: bytearray = coder.encode(np.require(values, requirements="W"))  # it requires writable memory
            return encoded
        blocks = (values[start : start + _BLOCK].astype(object) for start in range(0, len(values), _BLOCK))
        parts = (memoryview(coder.encode(block))[4:] for block in blocks)
        return b"".join([len(values).to_bytes(4, "little"), *parts])

    def _cannot_encode(self, error: Exception) -> CodecError:
        return CodecError(f"{self.name} cannot encode a chunk: {error}", codec=self.name, expected=self._stored)

    def _checked(self, data: Buffer, spec: ChunkSpec) -> npt.NDArray[np.uint8]:
        """Return the bytes of `data` after checking the number of elements, and that the bytes suffice for it."""
        source = flat_bytes(data)
        expected = prod(spec.shape)
        if len(source) < 4:
            raise corrupt(self.name, f"{len(source)} bytes are shorter than the number of elements")
        count = int.from_bytes(source[:4].tobytes(), "little")
        if count != expected:
            raise CodecError(
                f"a {self.name} chunk has the wrong number of elements", codec=self.name, expected=expected, got=count
            )
        if len(source) < 4 + 4 * count:
            raise corrupt(self.name, f"{len(source)} bytes cannot hold {count} elements")
        return source

    def _run_decode(self, coder: Any, source: npt.NDArray[np.uint8], spec: ChunkSpec) -> tuple[AnyArray, int]:
        """Decode with numcodecs; return the flat elements, and the sum of the sizes of their bytes."""
        try:
            values: AnyArray = coder.decode(source)
        except (ValueError, RuntimeError) as error:  # UnicodeDecodeError is a ValueError
            raise corrupt(self.name, error) from error
        return values, len(source) - 4 - 4 * prod(spec.shape)

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        source = self._checked(data, spec)
        out = np.empty(spec.shape, spec.dtype)
        self._into(source, spec, out)
        return out

    def decode_into(self, data: Buffer, spec: ChunkSpec, out: AnyArray) -> None:
        self._into(self._checked(data, spec), spec, out)

    def _into(self, source: npt.NDArray[np.uint8], spec: ChunkSpec, out: AnyArray) -> None:
        if not (out.flags.c_contiguous and self._natively(source, spec, out.reshape(-1))):
            out[...] = self._objects(source, spec)

    def _natively(self, source: npt.NDArray[np.uint8], spec: ChunkSpec, out: AnyArray) -> bool:
        """Decode into the one-dimensional `out` through the Rust module; ``False`` when that is not possible."""
        raise NotImplementedError

    def _objects(self, source: npt.NDArray[np.uint8], spec: ChunkSpec) -> AnyArray:
        """Decode the chunk to objects, with numcodecs."""
        raise NotImplementedError

    def _check_end(self, used: int, size: int) -> None:
        if used != size:
            raise corrupt(self.name, f"{size - used} bytes follow the last element")

    def encoded_size(self, spec: ChunkSpec) -> None:
        if not self._stores(spec):
            raise self._refuse(spec)

    def _stores(self, spec: ChunkSpec) -> bool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class VLenUTF8Codec(_VLenCodec):
    """Store text as UTF-8, each element prefixed with its length."""

    name = "vlen-utf8"
    _stored = "text (str)"

    def _stores(self, spec: ChunkSpec) -> bool:
        return spec.dtype.kind == "T" or (spec.dtype.kind == "O" and "bytes" not in spec.data_type.name)

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        values = np.ascontiguousarray(chunk).reshape(-1)
        try:
            if spec.data_type.name == "json":
                values = _texts(values)
            encoded: Buffer | None = vlen_native.encode(values, as_text=True)
            if encoded is None:
                from tessarr.common.numcodecs import numcodecs

                encoded = self._run_encode(numcodecs.vlen.VLenUTF8(), values)
        except (TypeError, ValueError, AttributeError) as error:
            raise self._cannot_encode(error) from error
        return encoded

    def _natively(self, source: npt.NDArray[np.uint8], spec: ChunkSpec, out: AnyArray) -> bool:
        direct = out.dtype == np.dtypes.StringDType() or (out.dtype == object and spec.data_type.name != "json")
        return direct and vlen_native.decode(source, out, as_text=True)

    def _objects(self, source: npt.NDArray[np.uint8], spec: ChunkSpec) -> AnyArray:
        from tessarr.common.numcodecs import numcodecs

        values, size = self._run_decode(numcodecs.vlen.VLenUTF8(), source, spec)
        characters = sum(map(len, values.tolist()))
        if characters != size:  # equal: only ASCII, and no bytes after the last element
            self._check_end(len("".join(values.tolist()).encode()), size)
        if spec.data_type.name == "json":
            values = self._parsed(values)
        return values.reshape(spec.shape)

    def _parsed(self, values: AnyArray) -> AnyArray:
        """Parse JSON texts."""
        found = np.empty(len(values), object)
        try:
            for number, text in enumerate(values.tolist()):
                found[number] = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise corrupt(self.name, f"an element is not valid JSON: {error}") from error
        return found


def _texts(values: AnyArray) -> AnyArray:
    """Serialize values to JSON texts."""
    found = np.empty(len(values), object)
    for number, value in enumerate(values.tolist()):
        found[number] = json.dumps(strict_json.plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return found


@dataclass(frozen=True, slots=True)
class VLenBytesCodec(_VLenCodec):
    """Store byte strings, each prefixed with its length."""

    name = "vlen-bytes"
    _stored = "bytes"

    def _stores(self, spec: ChunkSpec) -> bool:
        return spec.dtype.kind == "O" and spec.data_type.name != "string"

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        values = np.ascontiguousarray(chunk).reshape(-1)
        encoded: Buffer | None = vlen_native.encode(values, as_text=False)
        if encoded is not None:
            return encoded
        from tessarr.common.numcodecs import numcodecs

        try:
            return self._run_encode(numcodecs.vlen.VLenBytes(), values)
        except (TypeError, ValueError, AttributeError) as error:
            raise self._cannot_encode(error) from error

    def _natively(self, source: npt.NDArray[np.uint8], spec: ChunkSpec, out: AnyArray) -> bool:
        return out.dtype == object and vlen_native.decode(source, out, as_text=False)

    def _objects(self, source: npt.NDArray[np.uint8], spec: ChunkSpec) -> AnyArray:
        from tessarr.common.numcodecs import numcodecs

        values, size = self._run_decode(numcodecs.vlen.VLenBytes(), source, spec)
        self._check_end(sum(map(len, values.tolist())), size)
        return values.reshape(spec.shape)
