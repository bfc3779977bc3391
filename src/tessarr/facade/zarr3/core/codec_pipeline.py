"""zarr-python's ``zarr.core.codec_pipeline``: the codecs of an array in order. tessarr's engines read and write chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes, Codec


@dataclass(frozen=True)
class BatchedCodecPipeline:
    """Codecs by kind; iterating gives them in the order in which they encode.

    >>> from tessarr.codecs import BytesCodec, GzipCodec
    >>> [codec.name for codec in BatchedCodecPipeline.from_codecs([BytesCodec(), GzipCodec()])]
    ['bytes', 'gzip']
    """

    array_array_codecs: tuple[ArrayToArray, ...]
    array_bytes_codec: ArrayToBytes
    bytes_bytes_codecs: tuple[BytesToBytes, ...]
    batch_size: int = 1

    @classmethod
    def from_codecs(cls, codecs: Iterable[Codec], *, batch_size: int | None = None) -> Self:
        """Sort `codecs` by kind. Raises `ValueError` when their order is not that of a chain, `TypeError` for no codec."""
        return cls(*codecs_from_list(codecs), batch_size=batch_size or 1)

    def __iter__(self) -> Iterator[Codec]:
        yield from self.array_array_codecs
        yield self.array_bytes_codec
        yield from self.bytes_bytes_codecs


def codecs_from_list(
    codecs: Iterable[Codec],
) -> tuple[tuple[ArrayToArray, ...], ArrayToBytes, tuple[BytesToBytes, ...]]:
    """Sort `codecs` by kind: array to array, array to bytes (exactly one), bytes to bytes.

    Raises `ValueError` when their order is not that of a chain, `TypeError` for an object that is not a codec.
    """
    before: list[ArrayToArray] = []
    serializer: ArrayToBytes | None = None
    after: list[BytesToBytes] = []
    for codec in codecs:
        if isinstance(codec, ArrayToArray) and serializer is None:
            before.append(codec)
        elif isinstance(codec, ArrayToBytes) and serializer is None:
            serializer = codec
        elif isinstance(codec, BytesToBytes) and serializer is not None:
            after.append(codec)
        elif isinstance(codec, ArrayToArray | ArrayToBytes | BytesToBytes):
            raise ValueError(
                f"{codec.name!r} is in the wrong position; codecs go from array to array, then one from array to bytes, then "
                "from bytes to bytes"
            )
        else:
            raise TypeError(f"expected a codec, got {type(codec)!r}")
    if serializer is None:
        raise ValueError("Required ArrayBytesCodec was not found")
    return tuple(before), serializer, tuple(after)
