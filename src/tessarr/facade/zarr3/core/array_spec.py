"""zarr-python's ``zarr.core.array_spec``: the description of a chunk for its codecs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.core.creation.array_config import ArrayConfig
from tessarr.dtypes.base import DataType
from tessarr.dtypes.parse import from_numpy
from tessarr.facade.zarr3.buffer.cpu import Buffer, BufferPrototype, NDBuffer, buffer_prototype


@dataclass(frozen=True)
class ArraySpec:
    """A chunk: its shape, data type (`tessarr.dtype`), fill value (a scalar), runtime options, and buffer classes."""

    shape: tuple[int, ...]
    dtype: Any
    """One of `zarr.dtype`'s classes; programs give a NumPy data type, too."""
    fill_value: Any
    config: ArrayConfig
    prototype: BufferPrototype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def order(self) -> str:
        """Memory layout of the array."""
        return self.config.order

    def _encode_by(self, codec: Codec, data: object) -> NDBuffer | Buffer:
        """Encode a chunk of this description by a codec of tessarr's contract."""
        spec = chunk_spec(self)
        fitted, values = codec.fit(spec), cast("NDBuffer", data).as_numpy_array()
        if isinstance(fitted, BytesToBytes):
            return Buffer.from_bytes(fitted.encode(values))
        if isinstance(fitted, ArrayToBytes):
            return Buffer.from_bytes(fitted.encode(values, spec))
        if isinstance(fitted, ArrayToArray):
            return NDBuffer(fitted.encode(values, spec))
        raise TypeError(f"{type(codec).__name__} is not a codec of a known kind")

    def _decode_by(self, codec: Codec, data: object) -> NDBuffer | Buffer:
        """Decode what `_encode_by` encodes."""
        spec = chunk_spec(self)
        fitted, values = codec.fit(spec), cast("NDBuffer", data).as_numpy_array()
        if isinstance(fitted, BytesToBytes):
            return Buffer.from_bytes(fitted.decode(values, None))
        if isinstance(fitted, ArrayToBytes | ArrayToArray):
            return NDBuffer(fitted.decode(values, spec))
        raise TypeError(f"{type(codec).__name__} is not a codec of a known kind")


def array_spec(spec: ChunkSpec) -> ArraySpec:
    """Convert `spec` to zarr-python's class."""
    return ArraySpec(spec.shape, spec.data_type, spec.fill[()], ArrayConfig(), buffer_prototype)


def chunk_spec(spec: ArraySpec) -> ChunkSpec:
    """Convert `spec` to tessarr's class."""
    data_type = spec.dtype if isinstance(spec.dtype, DataType) else from_numpy(spec.dtype)
    return ChunkSpec(tuple(spec.shape), data_type, data_type.cast_fill(spec.fill_value))


__all__ = ["ArrayConfig", "ArraySpec"]
