"""Describe filters, codecs that compute on elements, to the Rust module as steps from bytes to bytes.

Each function returns the description of the step, or ``None`` for a step without effect. A filter is described only
if Rust has a result for every value. Some filters have none for values that NumPy refuses or leaves to the processor (a float
outside the range of an integer): these filters raise `UnsupportedError` when the array is bound, here or in Rust
(`rust/src/codecs/filter.rs`), and the reference engine serves the array.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from tessarr.codecs.array_to_array.bitround import MANTISSA, BitRoundCodec
from tessarr.codecs.array_to_array.numbers import is_foreign
from tessarr.codecs.array_to_array.reshape import ReshapeCodec
from tessarr.codecs.array_to_array.singleton_dim import SingletonDimCodec, SqueezeCodec
from tessarr.codecs.array_to_bytes.packbits import PackBitsCodec
from tessarr.codecs.base import ArrayToArray, ChunkSpec
from tessarr.codecs.numcodecs import elements
from tessarr.codecs.numcodecs import v3 as numcodecs_v3
from tessarr.codecs.numcodecs.coders import Coder
from tessarr.engine.native.step import UnsupportedError, named
from tessarr.errors import TessarrError
from tessarr.types import JSON, AnyDType, JSONObject


def moves(codec: ArrayToArray) -> bool:
    """Whether the codec combines several elements, so that transposing before and after it differ."""
    if isinstance(codec, numcodecs_v3.NumcodecsCodec):
        return codec.codec_id in ("delta", "packbits")
    return not isinstance(codec, BitRoundCodec)


def element_step(codec: ArrayToArray, spec: ChunkSpec) -> JSONObject | None:
    """Describe an array → array codec for chunks of `spec`, whose elements are in memory order before and after."""
    try:
        return _element_step(codec, spec)
    except TessarrError as error:
        raise UnsupportedError(f"the codec {codec.name!r}: {error}") from error


def _element_step(codec: ArrayToArray, spec: ChunkSpec) -> JSONObject | None:
    if isinstance(codec, ReshapeCodec | SingletonDimCodec | SqueezeCodec):
        return None  # these codecs do not change the bytes
    if not spec.dtype.isnative or type(codec).__module__.partition(".")[0] != "tessarr":
        raise UnsupportedError(f"the codec {codec.name!r} on {spec.dtype}")
    if isinstance(codec, BitRoundCodec):
        return _bitround(codec.keepbits, spec.dtype)
    if isinstance(codec, numcodecs_v3.NumcodecsCodec):
        coder = codec.fit(spec).coder
        if isinstance(coder, elements.ElementCoder):
            native = (dtype.newbyteorder("=") for dtype in (coder.decoded, coder.encoded))
            return coder_step(coder, *native)
        step = coder_step(coder, spec.dtype, spec.dtype)
        if isinstance(step, dict) or coder.codec_id == "bitround":
            return step
    raise UnsupportedError(f"the codec {codec.name!r}, which computes on elements")


def coder_step(coder: Coder, decoded: AnyDType, encoded: AnyDType) -> JSONObject | None:
    """Describe a filter of numcodecs from elements of one dtype to another."""
    if coder.codec_id == "packbits":
        return named("filter.packbits", {})
    if coder.codec_id in ("delta", "quantize", "astype"):
        types: JSONObject = {"decoded": _text(decoded), "encoded": _text(encoded)}
    match coder.codec_id:
        case "delta" | "astype":
            return named(f"filter.{coder.codec_id}", types)
        case "quantize":
            return named("filter.quantize", {**types, "scale_bits": _quantum(coder.members["digits"], decoded)})
        case "bitround":
            if decoded not in MANTISSA or coder.members["keepbits"] > MANTISSA[decoded]:
                raise UnsupportedError(f"bitround of {decoded} to {coder.members['keepbits']} bits")
            return _bitround(coder.members["keepbits"], decoded)
    raise UnsupportedError(f"the codec {coder.codec_id!r}")


def v2_filter(coder: Coder, flow: AnyDType) -> tuple[JSONObject | None, AnyDType]:
    """Describe a filter of v2, whose configuration names the dtype of its input. Returns the step, and its output's dtype.

    `flow` is the dtype of the input, which only bitround uses.
    """
    try:
        if isinstance(coder, elements.ElementCoder):
            return coder_step(coder, coder.decoded, coder.encoded), coder.encoded
        return coder_step(coder, flow, flow), flow if coder.codec_id == "bitround" else np.dtype(np.uint8)
    except TessarrError as error:
        raise UnsupportedError(f"the codec {coder.codec_id!r}: {error}") from error


def packing(codec: PackBitsCodec, spec: ChunkSpec) -> JSONObject:
    """Describe the ``packbits`` codec of v3."""
    layout = codec._layout(spec)
    if not spec.dtype.isnative or sys.byteorder != "little":
        raise UnsupportedError(f"packbits of {spec.dtype}")
    return named(
        "filter.packbits",
        {
            "width": layout.width,
            "first": layout.first,
            "last": layout.last,
            "nbits": layout.nbits,
            "signed": layout.signed,
            "padding_encoding": codec.padding_encoding,
        },
    )


def swapping(swaps: list[JSON], itemsize: int) -> JSONObject:
    """Describe a change of byte order after filters, given as the swaps that `describe` found."""
    match swaps:
        case [[0, int(unit), int(count)]] if unit * count == itemsize and unit in (2, 4, 8):
            return named("filter.swap", {"unit": unit})
    raise UnsupportedError("a byte order of these elements after a filter")


def _text(dtype: AnyDType) -> str:
    if dtype.kind not in "iuf" or dtype.itemsize > 8 or is_foreign(dtype):
        raise UnsupportedError(f"a filter of elements of {dtype}")
    return dtype.str


def _quantum(digits: int, dtype: AnyDType) -> int:
    """Compute the factor, a power of two, by which numcodecs quantizes to `digits` decimal digits; as the bits of a double.

    The bits are passed, because a decimal number in JSON might be rounded.
    """
    try:
        power = math.log10(10.0**-digits)
        power = math.floor(power) if power < 0 else math.ceil(power)
        scale = float(2.0 ** math.ceil(math.log2(10.0**-power)))
    except (OverflowError, ValueError) as error:
        raise UnsupportedError(f"quantize to {digits} digits") from error
    if scale > float(np.finfo(dtype).max):
        raise UnsupportedError(f"quantize to {digits} digits, whose scale overflows {dtype}")
    return int(np.array(scale, np.float64).view(np.uint64))


def _bitround(keepbits: int, dtype: AnyDType) -> JSONObject | None:
    if dtype.kind in "iumM":
        if keepbits >= 8 * dtype.itemsize:
            return None
        decoded = dtype.str if dtype.kind in "iu" else np.dtype(np.int64).str
        return named("filter.bitround_integer", {"decoded": decoded, "keepbits": keepbits})
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    mantissa = 7 if part.name == "bfloat16" else MANTISSA.get(part)
    if mantissa is None:
        raise UnsupportedError(f"bitround of {dtype}")
    if keepbits >= mantissa:
        return None
    return named("filter.bitround", {"size": part.itemsize, "mantissa": mantissa, "drop": mantissa - keepbits})
