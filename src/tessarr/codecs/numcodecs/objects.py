"""numcodecs filters for ``|O`` arrays of v2, which encode Python objects to bytes.

``vlen-utf8`` and ``vlen-bytes`` are the codecs of `tessarr.codecs.array_to_bytes.vlen`. ``vlen-array``, ``json2``,
``msgpack2`` (extra ``v2``) and ``categorize`` are decoded here: shapes and counts in the data are checked against the chunk
before memory is allocated. ``pickle`` is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tessarr.codecs.array_to_bytes.vlen import VLenBytesCodec, VLenUTF8Codec
from tessarr.codecs.base import ArrayToBytes, ChunkSpec
from tessarr.codecs.numcodecs.coders import run
from tessarr.codecs.numcodecs.elements import element_dtype
from tessarr.codecs.raw import corrupt, flat_bytes
from tessarr.dtypes.variable import VariableLengthBytes, VariableLengthUTF8
from tessarr.errors import CodecError, MetadataValidationError, MissingDependencyError, Problem
from tessarr.types import JSON, AnyArray, AnyDType, Buffer, JSONObject


class ObjectCodec(ArrayToBytes):
    """Use an object filter of v2 as the array → bytes codec of a chain. Equal by configuration."""

    __slots__ = ("config", "name")
    config: dict[str, JSON]
    """The stored v2 configuration, id included."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.name = config["id"]  # type: ignore[misc]  # one class for all ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectCodec) and self.config == other.config

    def __hash__(self) -> int:
        return hash(repr(self.config))

    def __repr__(self) -> str:
        return f"ObjectCodec({self.config!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.config,)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> ObjectCodec:  # noqa: ARG003
        """Raise `CodecError`: object codecs have no v3 names of their own."""
        raise CodecError("object codecs are part of Zarr v2 only")

    def to_v2(self) -> JSONObject:
        """Return the v2 filter."""
        return dict(self.config)

    def to_json(self) -> JSONObject:
        """Return the v3 codec object; only the two vlen codecs have one."""
        return {"name": self.name} if self.name in ("vlen-utf8", "vlen-bytes") else self._v3_error()

    def _v3_error(self) -> JSONObject:
        problem = Problem(("name",), "unsupported", f"{self.name} has no v3 form")
        raise MetadataValidationError("a codec of Zarr v2 cannot be written to a v3 document", [problem])

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        if spec.dtype.kind not in "OT":
            raise CodecError(
                f"the {self.name} codec stores objects", codec=self.name, expected="|O", got=spec.data_type.name
            )
        if self.name == "categorize":
            return prod(spec.shape) * _categories(self.config)[1].itemsize
        return None

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        if self.name in _VLEN:
            return _VLEN[self.name].encode(chunk, spec)
        values = np.ascontiguousarray(chunk).astype(object, copy=False).reshape(spec.shape)
        values = np.require(values, requirements="W")  # numcodecs requires writable memory
        members: dict[str, str] = {}
        if self.name == "categorize":
            values, members = values.reshape(-1), {"dtype": "|O"}  # also where the array holds text of a fixed length
        if self.name == "msgpack2":
            _msgpack()

        def encode() -> Buffer:
            from tessarr.common.numcodecs import numcodecs

            return cast("Buffer", numcodecs.get_codec({**self.config, **members}).encode(values))

        try:
            encoded = run(self.name, encode)
        except CodecError as error:
            cause = error.__cause__
            raise CodecError(f"{self.name} cannot encode a chunk: {cause}", codec=self.name) from cause
        self._check_readable(encoded, spec)
        return encoded

    def _check_readable(self, encoded: Buffer, spec: ChunkSpec) -> None:
        """Raise `CodecError` where the configuration writes what it cannot read, such as other ``separators``."""
        unusual = [name for name, usual in _USUAL.get(self.name, {}).items() if self.config.get(name, usual) != usual]
        if not unusual:
            return
        try:
            self.decode(encoded, spec)
        except CodecError as error:
            raise CodecError(
                f"{self.name} cannot encode a chunk: what it writes by its {' and '.join(unusual)} cannot be read",
                codec=self.name,
            ) from error

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        if self.name in _VLEN:
            return _VLEN[self.name].decode(data, spec)
        values = _DECODERS[self.name](self.config, flat_bytes(data), spec)
        if spec.dtype.kind == "T":
            values = np.array(["" if value is None else value for value in values.ravel().tolist()], dtype=spec.dtype)
        return values.reshape(spec.shape)

    def decode_into(self, data: Buffer, spec: ChunkSpec, out: AnyArray) -> None:
        if self.name in _VLEN and spec.dtype.kind in "OT":
            _VLEN[self.name].decode_into(data, spec, out)
        else:
            super().decode_into(data, spec, out)


_USUAL: dict[str, dict[str, object]] = {
    "json2": {"encoding": "utf-8", "separators": [",", ":"], "indent": None},
    "msgpack2": {"use_bin_type": True},
}
"""Members of configurations by whose other values a chunk may be written that cannot be read."""

_VLEN: dict[str, VLenUTF8Codec | VLenBytesCodec] = {"vlen-utf8": VLenUTF8Codec(), "vlen-bytes": VLenBytesCodec()}


def _decode_vlen_array(config: Mapping[str, Any], data: npt.NDArray[np.uint8], spec: ChunkSpec) -> AnyArray:
    name, view, count = "vlen-array", data.data, prod(spec.shape)
    try:
        dtype = element_dtype(config.get("dtype"))
    except ValueError as error:
        raise MetadataValidationError("invalid vlen-array codec", [Problem(("dtype",), "value", str(error))]) from error
    if len(view) < 4 + 4 * count or int.from_bytes(view[:4], "little") != count:
        raise corrupt(name, f"it does not hold {count} elements")
    values = np.empty(count, object)
    at = 4
    for index in range(count):
        size = int.from_bytes(view[at : at + 4], "little")
        if at + 4 + size > len(view) or size % dtype.itemsize:
            raise corrupt(
                name, f"element {index} of {size} bytes reaches past the end or is not a whole number of {dtype}"
            )
        values[index] = np.frombuffer(view[at + 4 : at + 4 + size], dtype).copy()
        at += 4 + size
    if at != len(view):
        raise corrupt(name, f"{len(view) - at} bytes follow the last element")
    return values


def _decode_json(config: Mapping[str, Any], data: npt.NDArray[np.uint8], spec: ChunkSpec) -> AnyArray:
    encoding = config.get("encoding", "utf-8")
    if not isinstance(encoding, str):
        problem = Problem(("encoding",), "type", f"must be a string, got {encoding!r}")
        raise MetadataValidationError("invalid json2 codec", [problem])
    try:
        text = str(data.data, encoding)
        items = json.JSONDecoder(strict=config.get("strict", True)).decode(text)
    except (ValueError, RecursionError, LookupError) as error:
        raise corrupt("json2", error) from error
    return _from_items("json2", items, spec)


def _decode_msgpack(config: Mapping[str, Any], data: npt.NDArray[np.uint8], spec: ChunkSpec) -> AnyArray:
    msgpack = _msgpack()
    try:
        items = msgpack.unpackb(data.data, raw=config.get("raw", False), strict_map_key=False)
    except Exception as error:  # msgpack raises several unrelated exceptions
        raise corrupt("msgpack2", error) from error
    return _from_items("msgpack2", items, spec)


def _from_items(codec: str, items: object, spec: ChunkSpec) -> AnyArray:
    """Decode values followed by their dtype and shape, as json2 and msgpack2 store them."""
    if not isinstance(items, list) or len(items) < 2 or not isinstance(items[-1], list):
        raise corrupt(codec, "it is not a list that ends in a data type and a shape")
    *values, _, shape = items
    if not all(type(n) is int for n in shape) or prod(shape) != prod(spec.shape):
        raise CodecError(
            f"a {codec} chunk has the wrong shape", codec=codec, expected=list(spec.shape), got=repr(shape)[:200]
        )
    for level, length in enumerate(shape):
        wrong = len(values) != prod(shape[: level + 1]) if level == 0 else False
        if level:
            wrong = not all(isinstance(row, list) and len(row) == length for row in values)
            values = [] if wrong else [value for row in values for value in row]
        if wrong:
            raise corrupt(codec, "its values do not have its shape")
    if len(values) != prod(shape):
        raise corrupt(codec, f"it holds {len(values)} values for shape {shape}")
    out = np.empty(len(values), object)
    for index, value in enumerate(values):
        out[index] = value
    return out


def _categories(config: Mapping[str, JSON]) -> tuple[list[str], AnyDType]:
    labels = config.get("labels")
    try:
        if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
            raise ValueError("the labels must be a list of text")
        return [str(label) for label in labels], element_dtype(config.get("astype", "u1"))
    except ValueError as error:
        raise MetadataValidationError("invalid categorize codec", [Problem((), "value", str(error))]) from error


def _decode_categorize(config: Mapping[str, Any], data: npt.NDArray[np.uint8], spec: ChunkSpec) -> AnyArray:
    labels, dtype = _categories(config)
    if len(data) != prod(spec.shape) * dtype.itemsize:
        raise corrupt("categorize", f"{len(data)} bytes are not {prod(spec.shape)} elements of {dtype}")
    codes = data.view(dtype)
    if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) <= len(labels):
        raise corrupt("categorize", f"there are {len(labels)} labels, and a code of {codes.max()}")
    return np.array(["", *labels], object)[codes.astype(np.intp)]


_DECODERS = {
    "vlen-array": _decode_vlen_array,
    "json2": _decode_json,
    "msgpack2": _decode_msgpack,
    "categorize": _decode_categorize,
}


def _msgpack() -> Any:
    try:
        import msgpack
    except ImportError as error:
        raise MissingDependencyError(
            "the msgpack2 codec needs the package msgpack", codec="msgpack2", hint="pip install 'tessarr[msgpack]'"
        ) from error
    return msgpack


class FixedObjectCodec(ObjectCodec):
    """Store texts or bytes of a fixed length as objects with an object filter, which numcodecs allows.

    xarray writes such arrays when data that was read as strings is stored again with its filters, and ``categorize`` of
    fixed-length text is an example in numcodecs' documentation.
    """

    def to_json(self) -> JSONObject:
        """Raise `MetadataValidationError`: v3 has no such use of the vlen codecs."""
        return self._v3_error()

    def encoded_size(self, spec: ChunkSpec) -> None:
        return

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        return super().encode(chunk.astype(object), self._as_objects(spec))

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        """Decode the chunk. Raises `CodecError` for an element that is longer than the data type."""
        found = super().decode(data, self._as_objects(spec)).astype(object)
        room = spec.dtype.itemsize // (4 if spec.dtype.kind == "U" else 1)
        longest = max(map(len, found.flat), default=0)
        if longest > room:
            raise CodecError("an element is too long", codec=self.name, expected=f"at most {room}", got=longest)
        return found.astype(spec.dtype)

    def _as_objects(self, spec: ChunkSpec) -> ChunkSpec:
        kind = VariableLengthBytes() if self.name == "vlen-bytes" else VariableLengthUTF8()
        return ChunkSpec(spec.shape, kind, np.zeros((), kind.dtype))
