"""The ``n5_default`` codec: N5's blocks in their default mode, a header with the shape and compressed elements.

Source: zarr-extensions, "n5_default"; N5 4.0, "file-system specification". v3 name ``n5_default``; no v2 id.

>>> codec = N5DefaultCodec.from_json({"codecs": [
...     {"name": "transpose", "configuration": {"order": [1, 0]}},
...     {"name": "bytes", "configuration": {"endian": "big"}},
...     {"name": "gzip", "configuration": {"level": 5}}]})
>>> [inner.name for inner in codec.codecs]
['transpose', 'bytes', 'gzip']

The header is big-endian: the mode (uint16, 0), the number of axes (uint16), the length of each (uint32), axes in the order
of the array. Elements are integers of 8 to 64 bits, float32 or float64, the first axis fastest. Blocks at the edge may be
padded (TensorStore, zarr-python) or truncated (Java), also within one array: they are filled, or cropped, to the chunk, and
written padded. A header of a block with more than 16 times the elements of the chunk is refused before memory is allocated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tessarr.codecs.array_to_array.transpose import TransposeCodec
from tessarr.codecs.array_to_bytes.block_codec import BlockCodec, bound_to
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import BytesToBytes, ChunkSpec, Codec
from tessarr.errors import CodecError


@dataclass(frozen=True, slots=True)
class N5DefaultCodec(BlockCodec):
    """Store a header, and elements encoded by `codecs`: a transpose that reverses the axes, big-endian bytes, a compressor."""

    name = "n5_default"

    def _problem(self) -> str | None:
        kinds: tuple[type[Codec], ...] = (TransposeCodec, BytesCodec, BytesToBytes)
        if 2 <= len(self.codecs) <= 3 and all(map(isinstance, self.codecs, kinds)):
            return None
        names = [codec.name for codec in self.codecs]
        return f"must be transpose, bytes, and at most one compressor; got {names}"

    @property
    def compressor(self) -> BytesToBytes | None:
        """The compressor, or ``None``."""
        last = self.codecs[-1]
        return last if isinstance(last, BytesToBytes) else None

    def encoded_size(self, spec: ChunkSpec) -> None:
        transpose, raw = self.codecs[:2]
        assert isinstance(transpose, TransposeCodec)  # `_problem` requires it
        assert isinstance(raw, BytesCodec)
        ndim = len(spec.shape)
        known = spec.dtype.kind in "iuf" and spec.dtype.isbuiltin != 2 and spec.dtype.itemsize <= 8
        if not known or spec.dtype == np.float16 or ndim == 0 or max(spec.shape) >= 1 << 32:
            raise CodecError(
                "N5 blocks cannot hold such chunks",
                codec=self.name,
                expected="one or more axes of integers, float32 or float64",
                got=f"shape {spec.shape} of {spec.data_type.name}",
            )
        if transpose.permutation(ndim) != tuple(reversed(range(ndim))):
            raise CodecError(
                "n5_default needs a transpose that reverses the axes",
                codec=self.name,
                expected=list(reversed(range(ndim))),
                got=list(transpose.permutation(ndim)),
            )
        if spec.dtype.itemsize > 1 and raw.endian != "big":
            raise CodecError("N5 blocks are big-endian", codec=self.name, expected="endian big", got=raw.endian)
        bound_to(self.codecs, spec.shape, spec.data_type)
