"""zarr-python's ``zarr.abc.codec``: the three kinds of codec.

A codec may implement either contract. tessarr's is `tessarr.codecs.base` (``from_json``, ``to_json``, ``encode``, ``decode``).
zarr-python's is ``from_dict``, ``to_dict``, ``compute_encoded_size``, and the coroutines ``_encode_single`` and
``_decode_single``, or ``_encode_sync`` and ``_decode_sync``; these methods take and return the buffers of
`tessarr.buffer.cpu`. Every codec of tessarr is an instance of the class of its kind here.

>>> from tessarr.codecs import GzipCodec
>>> isinstance(GzipCodec(), BytesBytesCodec), issubclass(GzipCodec, ArrayArrayCodec)
(True, False)

Limits: tessarr has no replaceable codec pipeline, and decodes only shards in part. `CodecPipeline` and the ``Partial`` mixins
exist so that code can import and inherit them; their methods are never called. A bytes → bytes codec gets the spec of a chunk
of single bytes.
"""

from __future__ import annotations

import asyncio
from abc import ABCMeta
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, Protocol, Self, TypeAlias, TypedDict, runtime_checkable

import numpy as np

from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.dtypes.numeric import UInt8
from tessarr.dtypes.parse import DTypeLike
from tessarr.errors import CodecError
from tessarr.facade.zarr3.buffer.cpu import Buffer, NDBuffer
from tessarr.facade.zarr3.core.array_spec import ArraySpec, array_spec, chunk_spec
from tessarr.types import JSON, AnyArray, JSONObject
from tessarr.types import Buffer as PlainBuffer

BaseCodec = Codec
CodecInput: TypeAlias = NDBuffer | Buffer
CodecOutput: TypeAlias = NDBuffer | Buffer


class _KindMeta(ABCMeta):
    """Metaclass that makes every codec of a kind a subclass of the kind's class, whichever contract it implements."""

    def __instancecheck__(cls, instance: object) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type[object]) -> bool:
        return cls.__dict__.get("kind_base", cls) in subclass.__mro__


def _name(self: Codec) -> str:
    """Return the v3 name."""
    return str(self.to_dict()["name"])


class _ByZarrPython(Codec, metaclass=_KindMeta):
    """Implement tessarr's contract by calling zarr-python's."""

    is_fixed_size: bool = False
    registered_name: str = ""
    _encode_sync = None  # type: ignore[assignment] # a codec may have these methods; without them it has coroutines
    _decode_sync = None  # type: ignore[assignment]
    # Overridden by a class attribute in codecs of tessarr's contract.
    name = property(_name)  # pyright: ignore[reportAssignmentType]

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        """Make the codec from its configuration; zarr-python's ``from_dict`` gets the whole JSON object of the codec."""
        own: object = cls.name
        data: dict[str, Any] = {"name": own if isinstance(own, str) else cls.registered_name}
        if cls.from_dict.__func__ is Codec.from_dict.__func__:  # type: ignore[attr-defined]
            return cls(**configuration)
        return cls.from_dict(data | ({"configuration": dict(configuration)} if configuration else {}))

    def to_json(self) -> JSONObject:
        if type(self).to_dict is _ByZarrPython.to_dict:
            raise TypeError(f"{type(self).__name__} has neither to_json nor to_dict")
        return self.to_dict()

    def to_dict(self) -> JSONObject:
        """Return `to_json`."""
        return self.to_json()

    def fit(self, spec: ChunkSpec) -> Self:
        self.validate(shape=spec.shape, dtype=spec.data_type, chunk_grid=None)
        return self.evolve_from_array_spec(array_spec(spec))

    # -- zarr-python's contract: methods that a codec may override ---------------------------------------------------

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        """Return the codec with its open options resolved for chunks of this spec."""
        return self

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """Return the spec of an encoded chunk."""
        return chunk_spec

    def validate(self, *, shape: tuple[int, ...], dtype: DTypeLike, chunk_grid: object) -> None:
        """Raise when the codec cannot encode such chunks."""

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Return the bytes of an encoded chunk. Raises `NotImplementedError` where the size depends on the data."""
        raise NotImplementedError

    def _run(self, which: str, value: object, spec: ArraySpec) -> Any:
        sync_method = getattr(self, f"_{which}_sync")
        if sync_method is not None:
            return sync_method(value, spec)
        coroutine_method = getattr(self, f"_{which}_single", None)
        if coroutine_method is None:
            raise TypeError(f"{type(self).__name__} has no method {which}, _{which}_sync or _{which}_single")
        return _run_coroutine(coroutine_method(value, spec))

    def _size(self, nbytes: int | None, spec: ArraySpec) -> int | None:
        try:
            return None if nbytes is None else self.compute_encoded_size(nbytes, spec)
        except NotImplementedError:
            return None


class ArrayArrayCodec(_ByZarrPython, ArrayToArray):
    """A codec from array to array."""

    kind_base = ArrayToArray

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return chunk_spec(self.resolve_metadata(array_spec(spec)))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        result: AnyArray = self._run("encode", NDBuffer(chunk), array_spec(spec)).as_numpy_array()
        return result

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        result: AnyArray = self._run("decode", NDBuffer(chunk), array_spec(spec)).as_numpy_array()
        return result


class ArrayBytesCodec(_ByZarrPython, ArrayToBytes):
    """A codec from array to bytes: exactly one in a chain."""

    kind_base = ArrayToBytes

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        return self._size(spec.nbytes, array_spec(spec))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> PlainBuffer:
        return _bytes_of(self, self._run("encode", NDBuffer(chunk), array_spec(spec)))

    def decode(self, data: PlainBuffer, spec: ChunkSpec) -> AnyArray:
        result = self._run("decode", Buffer.from_bytes(data), array_spec(spec)).as_numpy_array()
        if result.shape != spec.shape:
            raise CodecError(
                "a decoded chunk has the wrong shape", codec=self.name, expected=spec.shape, got=result.shape
            )
        return np.asarray(result)


class BytesBytesCodec(_ByZarrPython, BytesToBytes):
    """A codec from bytes to bytes: compressors and checksums."""

    kind_base = BytesToBytes

    def encoded_size(self, nbytes: int) -> int | None:
        return self._size(nbytes, _bytes_spec(nbytes))

    def encode(self, data: PlainBuffer) -> PlainBuffer:
        given = Buffer.from_bytes(data)
        return _bytes_of(self, self._run("encode", given, _bytes_spec(len(given))))

    def decode(self, data: PlainBuffer, nbytes: int | None) -> PlainBuffer:
        result = _bytes_of(self, self._run("decode", Buffer.from_bytes(data), _bytes_spec(nbytes or 0)))
        if nbytes is not None and result.nbytes != nbytes:
            expected, got = f"{nbytes} bytes", f"{result.nbytes} bytes"
            raise CodecError("decoded data has the wrong size", codec=self.name, expected=expected, got=got)
        return result


def _run_coroutine(coroutine: Coroutine[object, object, object]) -> object:
    """Run the coroutine of a codec in a new event loop, in a thread if a loop is already running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def _bytes_of(codec: Codec, result: Any) -> memoryview:
    if result is None:
        raise CodecError(
            "the codec encoded a chunk to None", codec=codec.name, hint="tessarr supports no codec that drops chunks"
        )
    return memoryview(result.as_numpy_array()).cast("B")


def _bytes_spec(nbytes: int) -> ArraySpec:
    element = UInt8()
    return array_spec(ChunkSpec((nbytes,), element, element.default_fill()))


class ArrayBytesCodecPartialDecodeMixin:
    """Mark a codec that can decode a part of a chunk. tessarr decodes whole chunks."""

    async def decode_partial(self, batch_info: object) -> object:
        """Raise `NotImplementedError`; tessarr never calls this method."""
        raise NotImplementedError


class ArrayBytesCodecPartialEncodeMixin:
    """Mark a codec that can replace a part of a chunk. tessarr encodes whole chunks."""

    async def encode_partial(self, batch_info: object) -> None:
        """Raise `NotImplementedError`; tessarr never calls this method."""
        raise NotImplementedError


class CodecPipeline:
    """Placeholder for zarr-python's replaceable codec pipeline; tessarr has engines instead (`Array.engine`)."""


@runtime_checkable
class SupportsSyncCodec(Protocol):
    """A codec of zarr-python's contract that needs no event loop."""

    def _encode_sync(self, chunk_data: object, chunk_spec: ArraySpec) -> object: ...

    def _decode_sync(self, chunk_data: object, chunk_spec: ArraySpec) -> object: ...


class GetResult(TypedDict):
    """The result of reading a chunk."""

    status: Literal["present", "missing"]


__all__ = [
    "ArrayArrayCodec",
    "ArrayBytesCodec",
    "ArrayBytesCodecPartialDecodeMixin",
    "ArrayBytesCodecPartialEncodeMixin",
    "BaseCodec",
    "BytesBytesCodec",
    "Codec",
    "CodecInput",
    "CodecOutput",
    "CodecPipeline",
    "GetResult",
    "SupportsSyncCodec",
]
