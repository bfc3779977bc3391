"""Filters as the Rust module knows them: codecs that compute on elements, as steps between bytes and bytes.

Each function gives the step's description, or ``None`` where nothing has to be done. What is left to the reference
engine raises `UnsupportedError` here, when the array is bound; single values that Rust cannot judge (a float outside the
range of an integer) make it give the whole request to the reference engine.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from tessarr.codecs.array_to_array.bitround import MANTISSA, BitRoundCodec
from tessarr.codecs.array_to_array.cast_value import CastValueCodec, Pairs
from tessarr.codecs.array_to_array.numbers import is_foreign, limits, number_kind
from tessarr.codecs.array_to_array.reshape import ReshapeCodec
from tessarr.codecs.array_to_array.scale_offset import ScaleOffsetCodec
from tessarr.codecs.array_to_bytes.packbits import PackBitsCodec
from tessarr.codecs.base import ArrayToArray, ArrayToBytes, ChunkSpec
from tessarr.codecs.numcodecs import elements
from tessarr.codecs.numcodecs import v3 as numcodecs_v3
from tessarr.codecs.numcodecs.coders import Coder
from tessarr.dtypes.base import DataType
from tessarr.engine.native.describe import UnsupportedError, named
from tessarr.errors import TessarrError
from tessarr.types import JSON, JSONObject


def moves(codec: ArrayToArray) -> bool:
    """Whether the codec looks at more than one element, so that transposing before and after it differ."""
    return not isinstance(codec, BitRoundCodec | CastValueCodec | ScaleOffsetCodec) and not (
        isinstance(codec, numcodecs_v3.NumcodecsCodec) and codec.codec_id not in ("delta", "packbits")
    )


def element_step(codec: ArrayToArray, spec: ChunkSpec) -> JSONObject | None:
    """An array → array codec for chunks of `spec`, whose elements are in memory order before and after."""
    try:
        return _element_step(codec, spec)
    except TessarrError as error:
        raise UnsupportedError(f"the codec {codec.name!r}: {error}") from error


def _element_step(codec: ArrayToArray, spec: ChunkSpec) -> JSONObject | None:
    if isinstance(codec, ReshapeCodec):
        return None  # the same bytes
    if not spec.dtype.isnative or type(codec).__module__.partition(".")[0] != "tessarr":
        raise UnsupportedError(f"the codec {codec.name!r} on {spec.dtype}")
    if isinstance(codec, BitRoundCodec):
        return _bitround(codec.keepbits, spec.dtype)
    if isinstance(codec, ScaleOffsetCodec):
        return _scale_offset(codec, spec)
    if isinstance(codec, CastValueCodec):
        return _cast_value(codec, spec.data_type)
    if isinstance(codec, numcodecs_v3.NumcodecsCodec):
        coder = codec.fit(spec).coder
        if isinstance(coder, elements.ElementCoder):
            native = (dtype.newbyteorder("=") for dtype in (coder.decoded, coder.encoded))
            return coder_step(coder, *native)
        step = coder_step(coder, spec.dtype, spec.dtype)
        if isinstance(step, dict) or coder.codec_id == "bitround":
            return step
    raise UnsupportedError(f"the codec {codec.name!r}, which computes on elements")


def coder_step(coder: Coder, decoded: np.dtype[Any], encoded: np.dtype[Any]) -> JSONObject | None:
    """A filter of numcodecs from elements of one dtype to another."""
    if coder.codec_id == "packbits":
        return named("filter.packbits", {})
    types: JSONObject = {"decoded": _text(decoded), "encoded": _text(encoded)}
    members = coder.canonical()
    match coder.codec_id:
        case "delta" if decoded.kind != "f" and np.result_type(decoded, encoded).kind == "f":
            raise UnsupportedError(f"delta of {decoded} as {encoded}, which NumPy sums as floats")
        case "delta" | "astype":
            return named(f"filter.{coder.codec_id}", types)
        case "quantize":
            scale = _quantum(members["digits"])
            _fits(scale, decoded)
            return named("filter.quantize", {**types, "scale": _float(scale)})
        case "fixedscaleoffset":
            return named("filter.fixedscaleoffset", {**types, **_scaling(members, decoded, encoded)})
        case "bitround":
            if decoded not in MANTISSA or members["keepbits"] > MANTISSA[decoded]:
                raise UnsupportedError(f"bitround of {decoded} to {members['keepbits']} bits")
            return _bitround(members["keepbits"], decoded)
    raise UnsupportedError(f"the codec {coder.codec_id!r}")


def v2_filter(coder: Coder, flow: np.dtype[Any]) -> tuple[JSONObject | None, np.dtype[Any]]:
    """A filter of v2, which takes bytes as elements of the dtype of its configuration; and the dtype of what it gives.

    `flow` is the dtype of what it is given, which bitround goes by.
    """
    try:
        if isinstance(coder, elements.ElementCoder):
            return coder_step(coder, coder.decoded, coder.encoded), coder.encoded
        return coder_step(coder, flow, flow), flow if coder.codec_id == "bitround" else np.dtype(np.uint8)
    except TessarrError as error:
        raise UnsupportedError(f"the codec {coder.codec_id!r}: {error}") from error


def packing(codec: ArrayToBytes, spec: ChunkSpec) -> JSONObject:
    """The ``packbits`` codec of v3."""
    if not isinstance(codec, PackBitsCodec):
        raise UnsupportedError(f"the codec {codec.name!r}")
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
    """A change of byte order behind filters, given as `tessarr.engine.native.engine` finds it."""
    match swaps:
        case [[0, int(unit), int(count)]] if unit * count == itemsize and unit in (2, 4, 8):
            return named("filter.swap", {"unit": unit})
    raise UnsupportedError("a byte order of such elements behind a filter")


def _text(dtype: np.dtype[Any]) -> str:
    if dtype.kind not in "iuf" or dtype.itemsize > 8 or is_foreign(dtype):
        raise UnsupportedError(f"a filter of elements of {dtype}")
    return dtype.str


def _float(value: float) -> JSON:
    """As its bits: decimals would have to be parsed exactly."""
    return {"float": int(np.array(value, np.float64).view(np.uint64))}


def _bits(value: int) -> JSON:
    return {"bits": value & ((1 << 64) - 1)}


def _fits(value: float, *dtypes: np.dtype[Any]) -> None:
    with np.errstate(all="ignore"):
        if not all(np.isfinite(np.float32(value)) for dtype in dtypes if dtype.kind == "f" and dtype.itemsize == 4):
            raise UnsupportedError(f"a filter with {value}, which its elements do not hold")


def _quantum(digits: int) -> float:
    """What numcodecs multiplies with to keep so many decimal digits: a power of two."""
    try:
        power = math.log10(10.0**-digits)
        power = math.floor(power) if power < 0 else math.ceil(power)
        return float(2.0 ** math.ceil(math.log2(10.0**-power)))
    except (OverflowError, ValueError) as error:
        raise UnsupportedError(f"quantize to {digits} digits") from error


def _scaling(members: dict[str, Any], decoded: np.dtype[Any], encoded: np.dtype[Any]) -> JSONObject:
    scale, offset = members["scale"], members["offset"]
    try:
        floats = {"float_scale": _float(float(scale)), "float_offset": _float(float(offset))}
        for value in (scale, offset):
            _fits(float(value), decoded, encoded)
    except OverflowError as error:
        raise UnsupportedError(f"fixedscaleoffset with {scale} and {offset}") from error
    whole = decoded.kind in "iu" and isinstance(offset, int)
    for value in (offset, scale) if whole else ():
        if isinstance(value, int) and not np.iinfo(decoded).min <= value <= np.iinfo(decoded).max:
            raise UnsupportedError(f"fixedscaleoffset with {value}, which {decoded} does not hold")
    exact = whole and isinstance(scale, int)
    return {
        **floats,
        "offset": _bits(offset) if whole else floats["float_offset"],
        "scale": _bits(scale) if exact else floats["float_scale"],
    }


def _bitround(keepbits: int, dtype: np.dtype[Any]) -> JSONObject | None:
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


def _scale_offset(codec: ScaleOffsetCodec, spec: ChunkSpec) -> JSONObject:
    number = _bits if spec.dtype.kind in "iu" else _float
    kind = int if spec.dtype.kind in "iu" else float
    offset, scale = (kind(value) for value in codec._scalars(spec))
    return named(
        "filter.scale_offset",
        {"decoded": _text(spec.dtype), "offset": number(offset), "scale": number(scale)},  # type: ignore[arg-type]
    )


def _cast_value(codec: CastValueCodec, decoded: DataType) -> JSONObject:
    encoded = codec.data_type
    for source, target in ((decoded, encoded), (encoded, decoded)):
        exact = codec.rounding == "nearest-even" or _is_exact(source, target)
        if number_kind(target) == "float" and not exact:
            raise UnsupportedError(f"cast_value to {target.name} with rounding {codec.rounding}")
    return named(
        "filter.cast_value",
        {
            "decoded": _text(decoded.dtype.newbyteorder("=")),
            "encoded": _text(encoded.dtype.newbyteorder("=")),
            "rounding": codec.rounding,
            "out_of_range": codec.out_of_range,
            "encode": _pairs(codec, codec.encode_map, decoded, encoded),
            "decode": _pairs(codec, codec.decode_map, encoded, decoded),
        },
    )


def _is_exact(source: DataType, target: DataType) -> bool:
    """Whether the float type `target` holds all values of `source`."""
    digits = {2: 11, 4: 24, 8: 53}.get(target.dtype.itemsize, 0)
    if source.dtype.kind == "f":
        return source.dtype.itemsize <= target.dtype.itemsize
    return source.dtype.kind in "iu" and max(-limits(source)[0], limits(source)[1]) <= 1 << digits and digits > 11


def _pairs(codec: CastValueCodec, pairs: Pairs | None, source: DataType, target: DataType) -> list[JSON]:
    found: list[JSON] = []
    for key, value in codec._table(pairs, source, target):
        native = np.asarray(value).astype(target.dtype.newbyteorder("="))
        whole = key.dtype.kind in "iu"
        bits = int(key) & ((1 << 64) - 1) if whole else int(np.array(float(key), np.float64).view(np.uint64))
        found.append({"key": bits, "value": list(native.tobytes())})
    return found
