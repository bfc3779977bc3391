"""Codecs of tessarr that zarr-python lacks, as codecs of zarr-python, under its entry-point group ``zarr.codecs``.

zarr-python finds them by their names in documents and in arguments:

>>> import numpy as np, zarr, tessarr
>>> values = {}
>>> z = tessarr.create_array(values, shape=(16,), dtype="bool", serializer={"name": "packbits"}, compressors=None)
>>> z[:] = np.arange(16) % 2 == 1
>>> PackBits.from_dict({"name": "packbits"}).to_dict()
{'name': 'packbits', 'configuration': {'padding_encoding': 'none', 'first_bit': None, 'last_bit': None}}

In Python they are made of tessarr's codec: ``PackBits(tessarr.codecs.array_to_bytes.packbits.PackBitsCodec())``. Arrays with
them are served by the patch, the codec pipeline and `accelerate`. Left out are names that a release of zarr-python has built
in, and ``lzw``, which needs the decoded size: zarr-python does not tell it to bytes → bytes codecs.

Source: `zarr.abc.codec` of zarr-python 3.1 to 3.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer, NDBuffer
from zarr.core.dtype import get_data_type_from_json, get_data_type_from_native_dtype

from tessarr import registry
from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.codecs.raw import flat_bytes
from tessarr.dtypes.base import DataType
from tessarr.dtypes.named import from_v3
from tessarr.errors import CodecError, MetadataValidationError

if TYPE_CHECKING:
    from zarr.core.dtype.wrapper import TBaseDType, TBaseScalar, ZDType

    from tessarr.types import JSON, AnyArray
    from tessarr.types import Buffer as OurBuffer

_Decoded = TypeVar("_Decoded", Buffer, NDBuffer)
_Encoded = TypeVar("_Encoded", Buffer, NDBuffer)


@dataclass(frozen=True)
class _Ours(Generic[_Decoded, _Encoded]):
    """A codec of zarr-python's contract, made of one of tessarr."""

    codec: Codec
    is_fixed_size: ClassVar[bool] = False
    codec_name: ClassVar[str]

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Make the codec from its whole JSON object. Raises `MetadataValidationError`, a `ValueError`."""
        implementation = cast("type[Codec]", registry.get("codec", cls.codec_name))
        configuration = data.get("configuration", {})
        if not isinstance(configuration, Mapping):
            raise MetadataValidationError(
                f"the configuration of {cls.codec_name} is {configuration!r}", expected="an object"
            )
        return cls(implementation.from_json(configuration))

    def to_dict(self) -> dict[str, JSON]:
        """Return the whole JSON object, with the name that the document has."""
        return {**self.codec.to_json(), "name": self.codec_name}

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        """Return the codec, fitted to such elements. The shape is that of the whole array, so that it cannot be checked."""
        return type(self)(self.codec.fit(_chunk_spec(array_spec)))

    def _encode_sync(self, chunk_data: _Decoded, chunk_spec: ArraySpec) -> _Encoded:
        raise NotImplementedError

    def _decode_sync(self, chunk_data: _Encoded, chunk_spec: ArraySpec) -> _Decoded:
        raise NotImplementedError

    async def _encode_single(self, chunk_data: _Decoded, chunk_spec: ArraySpec) -> _Encoded:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: _Encoded, chunk_spec: ArraySpec) -> _Decoded:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)


class _OursArrayToArray(_Ours[NDBuffer, NDBuffer], ArrayArrayCodec):
    codec: ArrayToArray

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        given = _chunk_spec(chunk_spec)
        try:
            made = self.codec.encoded_spec(given)
        except CodecError:  # zarr-python 3.2 asks when it opens the array, with the shape of the whole array
            return chunk_spec
        dtype = chunk_spec.dtype if made.data_type == given.data_type else _zdtype(made.data_type)
        return replace(chunk_spec, shape=made.shape, dtype=dtype, fill_value=made.fill[()])

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        return _known(self.codec.encoded_spec(_chunk_spec(chunk_spec)).nbytes)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        spec, encoded = _chunk_spec(chunk_spec), self.resolve_metadata(chunk_spec)
        return _elements(self.codec.encode(np.asarray(chunk_data.as_numpy_array(), spec.dtype), spec), encoded)

    def _decode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        spec = _chunk_spec(chunk_spec)
        encoded = np.asarray(chunk_data.as_numpy_array(), self.codec.encoded_spec(spec).dtype)
        return _elements(self.codec.decode(encoded, spec), chunk_spec)


class _OursArrayToBytes(_Ours[NDBuffer, Buffer], ArrayBytesCodec):
    codec: ArrayToBytes

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        return _known(self.codec.encoded_size(_chunk_spec(chunk_spec)))

    def _checked(self, chunk_spec: ArraySpec) -> ChunkSpec:
        """Convert the spec to tessarr's words. Raises `CodecError` where the codec cannot apply to such chunks."""
        spec = _chunk_spec(chunk_spec)
        self.codec.encoded_size(spec)
        return spec

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer:
        spec = self._checked(chunk_spec)
        made = self.codec.encode(np.asarray(chunk_data.as_numpy_array(), spec.dtype), spec)
        return _buffer(made, chunk_spec)

    def _decode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return _elements(self.codec.decode(chunk_data.as_numpy_array(), self._checked(chunk_spec)), chunk_spec)


class _OursBytesToBytes(_Ours[Buffer, Buffer], BytesBytesCodec):
    codec: BytesToBytes

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        return _known(self.codec.encoded_size(input_byte_length))

    def _encode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return _buffer(self.codec.encode(chunk_data.as_numpy_array()), chunk_spec)

    def _decode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> Buffer:
        made = self.codec.decode(chunk_data.as_numpy_array(), None)
        return _buffer(made, chunk_spec)


# -- one class per name -----------------------------------------------------------------------------------------------


class BitRound(_OursArrayToArray):
    """``bitround``."""

    codec_name = "bitround"


class ZarrsBitRound(_OursArrayToArray):
    """``zarrs.bitround``."""

    codec_name = "zarrs.bitround"


class Reshape(_OursArrayToArray):
    """``reshape``."""

    codec_name = "reshape"


class SingletonDim(_OursArrayToArray):
    """``singleton_dim``."""

    codec_name = "singleton_dim"


class ZarrsSqueeze(_OursArrayToArray):
    """``zarrs.squeeze``."""

    codec_name = "zarrs.squeeze"


class PackBits(_OursArrayToBytes):
    """``packbits``."""

    codec_name = "packbits"


class Zfp(_OursArrayToBytes):
    """``zfp``."""

    codec_name = "zfp"


class ZarrsZfp(_OursArrayToBytes):
    """``zarrs.zfp``."""

    codec_name = "zarrs.zfp"


class Jpeg(_OursArrayToBytes):
    """``jpeg``."""

    codec_name = "jpeg"


class N5Default(_OursArrayToBytes):
    """``n5_default``."""

    codec_name = "n5_default"


class N5Varlen(_OursArrayToBytes):
    """``n5_varlen``."""

    codec_name = "n5_varlen"


class Conditional(_OursBytesToBytes):
    """``conditional``."""

    codec_name = "conditional"


class Pad(_OursBytesToBytes):
    """``pad``."""

    codec_name = "pad"


class Lz4Java(_OursBytesToBytes):
    """``tessarr.lz4java``."""

    codec_name = "tessarr.lz4java"


# -- zarr-python's objects ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _data_type(zdtype: ZDType[TBaseDType, TBaseScalar]) -> DataType:
    return from_v3(cast("JSON", zdtype.to_json(zarr_format=3)))


def _zdtype(data_type: DataType) -> ZDType[TBaseDType, TBaseScalar]:
    try:
        return get_data_type_from_json(data_type.to_json(), zarr_format=3)
    except ValueError:
        return get_data_type_from_native_dtype(data_type.dtype)


def _chunk_spec(spec: ArraySpec) -> ChunkSpec:
    data_type = _data_type(spec.dtype)
    return ChunkSpec(spec.shape, data_type, data_type.cast_fill(spec.fill_value))


def _buffer(made: OurBuffer, spec: ArraySpec) -> Buffer:
    """Make a buffer of bytes of zarr-python over the memory of `made`."""
    # Arrays of NumPy are what this function is for, and its protocol says less about them than NumPy's stubs.
    return spec.prototype.buffer.from_array_like(flat_bytes(made))  # pyright: ignore[reportArgumentType]


def _elements(made: AnyArray, spec: ArraySpec) -> NDBuffer:
    """Make a buffer of `made` in the dtype that zarr-python expects, which may have another byte order."""
    return spec.prototype.nd_buffer.from_numpy_array(np.asarray(made, spec.dtype.to_native_dtype()))


def _known(nbytes: int | None) -> int:
    if nbytes is None:
        raise NotImplementedError("the encoded size depends on the data")
    return nbytes
