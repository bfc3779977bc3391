"""A codec chain bound to the chunks it will see.

array → array codecs, then exactly one array → bytes codec, then bytes → bytes codecs; encoded in that order, decoded in
reverse. Binding computes once what every codec in the chain receives (shape, type, fill value, exact size), so that no
chunk repeats that work and every decoded size is known before memory is allocated for it.

Source: Zarr v3.1 core, "Codecs" and "Determination of encoded representations".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.errors import CodecError
from tessarr.types import AnyArray, Buffer

if TYPE_CHECKING:
    from tessarr.codecs.sharding import ShardLayout


def split(codecs: Sequence[Codec]) -> tuple[list[ArrayToArray], ArrayToBytes, list[BytesToBytes]]:
    """Split a chain by kind. Raises `CodecError` naming the position of the first codec that is out of place."""
    before: list[ArrayToArray] = []
    middle: ArrayToBytes | None = None
    after: list[BytesToBytes] = []
    for position, codec in enumerate(codecs):
        if isinstance(codec, ArrayToArray) and middle is None:
            before.append(codec)
        elif isinstance(codec, ArrayToBytes) and middle is None:
            middle = codec
        elif isinstance(codec, BytesToBytes) and middle is not None:
            after.append(codec)
        else:
            raise CodecError(
                f"codec {position} ({codec.name}, {codec.kind}) is out of place",
                codec=codec.name,
                expected="array_to_array codecs, then one array_to_bytes codec, then bytes_to_bytes codecs",
                got=[c.name for c in codecs],
            )
    if middle is None:
        raise CodecError(
            f"no array_to_bytes codec at position {len(codecs)}",
            expected="exactly one, such as bytes or sharding_indexed",
            got=[c.name for c in codecs],
        )
    return before, middle, after


class BoundChain:
    """Encode and decode chunks of one `spec`. Immutable and safe to use from several threads.

    Raises `CodecError` on construction when a codec cannot apply to such chunks.
    """

    __slots__ = (
        "_after",
        "_before",
        "_direct",
        "_undo",
        "_varying",
        "encoded_size",
        "middle",
        "middle_spec",
        "partial",
        "shard",
        "spec",
    )

    spec: ChunkSpec
    """Describes the chunks that `encode` takes and `decode` returns."""
    middle: ArrayToBytes
    middle_spec: ChunkSpec
    """Describes the chunks that the array → bytes codec gets."""
    shard: ShardLayout | None
    """The shard layout, if the array → bytes codec is sharding_indexed."""
    partial: bool
    """Parts of a stored chunk can be decoded without the rest: it is a shard, with only transpositions around it."""
    encoded_size: int | None
    """Exact size of an encoded chunk; ``None`` when it depends on the data."""

    def __init__(self, codecs: Sequence[Codec], spec: ChunkSpec) -> None:
        before, middle, after = split(codecs)
        self.spec = spec
        self._before: list[tuple[ArrayToArray, ChunkSpec]] = []
        for codec in before:
            self._before.append((codec, spec))
            spec = codec.encoded_spec(spec)
        self.middle = middle
        self.middle_spec = spec
        self.shard = middle.layout(spec)
        self._after = after
        sizes: list[int | None] = []
        size = self.shard.encoded_size if self.shard is not None else middle.encoded_size(spec)
        for step in after:
            sizes.append(size)
            size = None if size is None else step.encoded_size(size)
        self.encoded_size = size
        self._undo = list(zip(reversed(after), reversed(sizes), strict=True))
        permuted = all(codec.permutation(len(spec.shape)) is not None for codec, spec in self._before)
        self.partial = self.shard is not None and not after and permuted
        self._direct = (
            bool(after)
            and isinstance(middle, BytesCodec)
            and spec.dtype.kind not in "bOT"
            and middle.stored_dtype(spec) == spec.dtype
            and permuted
        )
        self._varying = spec.dtype.kind in "OT" and not before and self.shard is None

    @property
    def after(self) -> Sequence[BytesToBytes]:
        """The bytes → bytes codecs, in encoding order."""
        return self._after

    @property
    def before(self) -> Sequence[tuple[ArrayToArray, ChunkSpec]]:
        """The array → array codecs, in encoding order, each with the spec it encodes from."""
        return self._before

    def encode(self, chunk: AnyArray) -> Buffer:
        """Encode one chunk (shape ``spec.shape``). The result may alias the chunk's memory."""
        for codec, spec in self._before:
            chunk = codec.encode(chunk, spec)
        if self.shard is not None:
            data: Buffer = self.shard.encode(chunk)
        else:
            data = self.middle.encode(chunk, self.middle_spec)
        for step in self._after:
            data = step.encode(data)
        return data

    @property
    def direct(self) -> bool:
        """Whether the last codec can decode into memory laid out like the chunk."""
        return self._direct or self._varying

    def decode(self, data: Buffer) -> AnyArray:
        """Decode one stored chunk to an array of ``spec.shape``, read-only or not, in any byte order.

        Raises `CodecError` for data that cannot be decoded to exactly one chunk.
        """
        for step, size in self._undo:
            data = step.decode(data, size)
            if size is not None and memoryview(data).nbytes != size:
                raise _wrong_size(step, size, data)
        chunk = self.middle.decode(data, self.middle_spec) if self.shard is None else self.shard.decode(data)
        for codec, spec in reversed(self._before):
            chunk = codec.decode(chunk, spec)
        return chunk

    def decode_into(self, data: Buffer, out: AnyArray) -> None:
        """Decode one stored chunk into `out` (shape ``spec.shape``, dtype ``spec.dtype``, any strides).

        Decompresses straight into `out` where its memory layout is that of the chunk.
        """
        if self._varying:
            for step, size in self._undo:
                data = step.decode(data, size)
            self.middle.decode_into(data, self.spec, out)
            return
        target = out
        for codec, spec in self._before if self._direct else ():
            target = codec.encode(target, spec)
        if self._direct and target.flags.c_contiguous and target.nbytes:
            for step, size in self._undo[:-1]:
                data = step.decode(data, size)
            last, size = self._undo[-1]
            memory = memoryview(target.reshape(-1).view(np.uint8))
            if not last.decode_into(data, memory):
                data = last.decode(data, size)
                if memoryview(data).nbytes != size:
                    raise _wrong_size(last, size or 0, data)
                memory[:] = memoryview(data).cast("B")
            return
        out[...] = self.decode(data)


def _wrong_size(step: BytesToBytes, size: int, data: Buffer) -> CodecError:
    return CodecError(
        "a chunk decodes to the wrong size",
        codec=step.name,
        expected=f"{size} bytes",
        got=f"{memoryview(data).nbytes} bytes",
    )
