"""Complete a chain for the chunks it will encode: automatic options are decided once, when an array is created."""

from __future__ import annotations

from collections.abc import Sequence

from tessarr.codecs.base import ArrayToArray, ArrayToBytes, ChunkSpec, Codec


def fit_chain(codecs: Sequence[Codec], spec: ChunkSpec) -> tuple[Codec, ...]:
    """Fit every codec to the chunks that reach it in a chain for chunks of `spec` (V3-BLOSC-06).

    Bytes → bytes codecs get the spec of the array → bytes codec; after sharding, that of the shard.
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
    """Return the spec for a compressor after a codec whose output has no plain elements: single bytes."""
    from tessarr.dtypes.numeric import UInt8

    element = UInt8()
    return spec.with_(data_type=element, fill=element.default_fill())
