"""Completing a chain for the chunks it will see: automatic options are decided once, when an array is created."""

from __future__ import annotations

from collections.abc import Sequence

from tessarr.codecs.base import ArrayToArray, ArrayToBytes, ChunkSpec, Codec


def fit_chain(codecs: Sequence[Codec], spec: ChunkSpec) -> tuple[Codec, ...]:
    """`codecs` with every automatic option decided for chunks of `spec`, looking through the chain (V3-BLOSC-06).

    Bytes → bytes codecs see the spec that reaches the array → bytes codec; behind sharding that of the shard.
    """
    fitted: list[Codec] = []
    for codec in codecs:
        done = codec.fit(spec)
        if isinstance(done, ArrayToArray):
            spec = done.encoded_spec(spec)
        elif isinstance(done, ArrayToBytes) and done.name not in ("bytes", "sharding_indexed"):
            spec = _bytes_spec(spec)
        fitted.append(done)
    return tuple(fitted)


def _bytes_spec(spec: ChunkSpec) -> ChunkSpec:
    """What a compressor sees behind a codec that writes no plain elements: single bytes."""
    from tessarr.dtypes.numeric import UInt8

    element = UInt8()
    return spec.with_(data_type=element, fill=element.default_fill())
