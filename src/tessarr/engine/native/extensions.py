"""Describe the codecs of the registry's extensions as steps of the Rust module (rust/src/codecs/extension.rs)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from tessarr.codecs.array_to_bytes.n5_default import N5DefaultCodec
from tessarr.codecs.array_to_bytes.zfp import ZfpCodec
from tessarr.codecs.base import ArrayToBytes, BytesToBytes, ChunkSpec
from tessarr.codecs.bytes_to_bytes.conditional import ConditionalCodec
from tessarr.codecs.steps import StepCodec
from tessarr.dtypes.element import converted
from tessarr.engine.native.step import UnsupportedError, named
from tessarr.types import JSON, JSONObject

Describe = Callable[[BytesToBytes], JSONObject]
"""Describes a nested bytes → bytes codec."""


class Serializer(NamedTuple):
    """Description of an array → bytes codec: stored order of axes, byte order of elements, and a step."""

    order: list[int] | None
    """The axes in stored order; ``None``: C order."""
    big: bool
    """Whether elements are stored big-endian."""
    step: JSONObject


def serializer(codec: ArrayToBytes, spec: ChunkSpec, describe: Describe) -> Serializer:
    """Describe an array → bytes codec other than ``bytes`` and ``packbits``. Raises `UnsupportedError`."""
    if not spec.dtype.isnative or sys.byteorder != "little":
        raise UnsupportedError(f"{codec.name} of {spec.dtype}")
    if isinstance(codec, ZfpCodec):
        configuration = codec.step(spec)
        if configuration is None:
            raise UnsupportedError(f"zfp of {spec.data_type.name}")
        return Serializer(None, False, named("zfp", configuration))
    if isinstance(codec, N5DefaultCodec):
        stored = converted(spec.fill, spec.dtype.newbyteorder(">"))
        nested: list[JSON] = [] if codec.compressor is None else [describe(codec.compressor)]
        members: JSONObject = {
            "shape": list(reversed(spec.shape)),
            "item": spec.dtype.itemsize,
            "fill": list(stored.tobytes()),
            "codecs": nested,
        }
        return Serializer(list(reversed(range(len(spec.shape)))), True, named("n5_default", members))
    raise UnsupportedError(f"the codec {codec.name!r}")


def step(codec: BytesToBytes, describe: Describe) -> JSONObject | None:
    """Describe a bytes → bytes codec to Rust; ``None`` for one of another kind. Raises `UnsupportedError`."""
    if isinstance(codec, StepCodec):
        return named(*codec.step())
    if not isinstance(codec, ConditionalCodec):
        return None
    if codec.policy not in ("compress_if_smaller", "always"):
        raise UnsupportedError(f"a conditional codec with the policy {codec.policy!r}")
    members: JSONObject = {
        "codecs": [describe(nested) for nested in codec.codecs],
        "header_bytes": codec.header_bytes,
        "always": codec.policy == "always",
    }
    return named("conditional", members)
