"""The ``zfp`` codec: compressed floating-point and integer arrays of one to four dimensions, without zfp's header.

Source: zarr-extensions, "zfp"; zfp 1.0, "Compression modes". v3 name ``zfp``; v2 and ``numcodecs.zfpy`` have the same
streams after a header (`tessarr.codecs.numcodecs.zfpy`).

>>> ZfpCodec.from_json({"mode": "fixed_accuracy", "tolerance": 0.05}).to_json()
{'name': 'zfp', 'configuration': {'mode': 'fixed_accuracy', 'tolerance': 0.05}}

Modes: ``reversible`` (lossless), ``fixed_accuracy`` (``tolerance``, floats only), ``fixed_precision`` (``precision`` bits),
``fixed_rate`` (``rate`` bits per element) and ``expert`` (``minbits``, ``maxbits``, ``maxprec``, ``minexp``). A chunk without
axes is stored as one of a single element. Integers of 8 and 16 bits are shifted to the top of an int32, float16 and
bfloat16 are cast to float32, dates and durations to int64. The text does not say how to store the upper half of uint32 and
uint64: zarrs (0.23) replaces those values by the largest int32; here they are an error. zarrs counts the bits of a
``fixed_rate`` block as if chunks had three axes; such chunks are recognised by their size and read, and never written.
Expert options with fewer bits than zfp's block header, which the C library silently changes, are refused.

The Rust module supports every mode; without it the package zfpy (extra ``codecs``) supports all but ``expert``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any, Literal, Self, get_args

import numpy as np

from tessarr.codecs import steps
from tessarr.codecs.base import ArrayToBytes, ChunkSpec
from tessarr.codecs.members import Check, choice, integer
from tessarr.codecs.raw import flat_bytes
from tessarr.errors import CodecError, MetadataValidationError, MissingDependencyError, Problem
from tessarr.types import JSON, AnyArray, Buffer, JSONObject, Shape

Mode = Literal["reversible", "fixed_accuracy", "fixed_precision", "fixed_rate", "expert"]
_MOST = (1 << 32) - 1
_LARGEST_BLOCK = 16658
"""ZFP_MAX_BITS: no block needs more, and every block would allocate as much memory."""
_REVERSIBLE = -1075
"""Largest ``minexp`` with which expert mode is lossless."""


def _number(value: object) -> str | None:
    fine = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0
    return None if fine else f"must be a number, not negative; got {value!r}"


_CHECKS: dict[str, Check] = {
    "mode": choice(*get_args(Mode)),
    "tolerance": _number,
    "rate": _number,
    "precision": integer(0, _MOST),
    "minbits": integer(0, _LARGEST_BLOCK),
    "maxbits": integer(0, _MOST),
    "maxprec": integer(1, 64),
    "minexp": integer(-(1 << 31), (1 << 31) - 1),
}
_MEMBERS: dict[str, tuple[str, ...]] = {
    "reversible": (),
    "fixed_accuracy": ("tolerance",),
    "fixed_rate": ("rate",),
    "fixed_precision": ("precision",),
    "expert": ("minbits", "maxbits", "maxprec", "minexp"),
}
_HEADER = {"f4": (9, 15), "f8": (12, 19), "i4": (0, 5), "i8": (0, 6)}
"""Fewest bits of a block; the second number, in lossless modes."""


@dataclass(frozen=True, slots=True)
class ZfpCodec(ArrayToBytes):
    """Compress with zfp in one of its modes; options of other modes are ``None``."""

    name = "zfp"
    mode: Mode = "reversible"
    tolerance: float | None = None
    """Largest absolute error."""
    rate: float | None = None
    """Bits per element."""
    precision: int | None = None
    """Number of bit planes kept; 0: all."""
    minbits: int | None = None
    """Fewest bits of a block."""
    maxbits: int | None = None
    """Most bits of a block."""
    maxprec: int | None = None
    """Most bit planes of a block."""
    minexp: int | None = None
    """Exponent of the smallest bit plane; below −1074: lossless."""

    def __post_init__(self) -> None:
        _check({"mode": self.mode, **{name: v for name in _CHECKS if (v := getattr(self, name)) is not None}})

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        _check(configuration)
        return cls(**configuration)  # type: ignore[arg-type]  # checked

    def _options(self) -> JSONObject:
        return {"mode": self.mode, **{name: getattr(self, name) for name in _MEMBERS[self.mode]}}

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": self._options()}

    def encoded_size(self, spec: ChunkSpec) -> None:
        element = _element(spec)
        if element is None or len(spec.shape) > 4:
            raise CodecError(
                "zfp cannot store such chunks",
                codec=self.name,
                expected="at most four dimensions of integers, floats, dates or durations of at most 64 bits",
                got=f"shape {spec.shape} of {spec.data_type.name}",
                hint="Put reshape or singleton_dim in front of it",
            )
        native = _native_type(element)
        if self.mode == "fixed_accuracy" and native[0] == "i":
            raise CodecError("zfp has no fixed accuracy for integers", codec=self.name, got=spec.data_type.name)
        lossless = self.minexp is not None and self.minexp <= _REVERSIBLE
        if self.maxbits is not None and self.maxbits < _HEADER[native][lossless]:
            raise CodecError(
                "zfp's blocks are larger than maxbits",
                codec=self.name,
                expected=f"at least {_HEADER[native][lossless]} for {spec.data_type.name}",
                got=self.maxbits,
            )
        if self.mode == "fixed_rate" and _rate_bits(self.rate or 0, len(spec.shape)) > _LARGEST_BLOCK:
            raise CodecError("zfp's rate is too large", codec=self.name, got=self.rate)

    def step(self, spec: ChunkSpec) -> JSONObject | None:
        """Return the configuration of the step in the native engine; ``None`` where that engine cannot encode
        `spec`.
        """
        element = _element(spec)
        if element is None or spec.dtype.itemsize != int(element[1]):  # cast first
            return None
        return self._step(element, spec.shape)

    def _step(self, element: str, shape: Shape) -> JSONObject:
        floats = ("tolerance", "rate")
        options: JSONObject = {name: _bits(v) if name in floats else v for name, v in self._options().items()}
        return {"element": element, "shape": list(shape or (1,)), **options}

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        element = _element(spec)
        assert element is not None  # checked when the chain was bound
        values = _plain(np.ascontiguousarray(chunk, spec.dtype.newbyteorder("=")), element)
        made = steps.encode("zfp", self._step(element, spec.shape), values)
        if made is None:
            native = _promoted(values.reshape(spec.shape or (1,)), element)
            made = _zfpy(self).compress_numpy(native, write_header=False, **self._zfpy_options())
        return made

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        element = _element(spec)
        assert element is not None  # as in encode
        dtype = np.dtype(element)
        nbytes = prod(spec.shape) * dtype.itemsize
        made = steps.decode("zfp", self._step(element, spec.shape), data, nbytes)
        if made is None:
            values = self._with_zfpy(data, element, spec.shape or (1,))
        else:
            values = np.frombuffer(made, dtype)
        values = values.reshape(spec.shape)
        if spec.dtype.kind in "mM":
            return values.view(spec.dtype.newbyteorder("="))
        return values.astype(spec.dtype, copy=False)

    def _zfpy_options(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in _MEMBERS[self.mode]}

    def _with_zfpy(self, data: Buffer, element: str, shape: Shape) -> AnyArray:
        """Decode with zfpy, which reads as far as the stream says: the copy has room for the longest stream."""
        library, native = _zfpy(self), _native_type(element)
        blocks = prod(-(-n // 4) for n in shape)
        room = blocks * (4 ** len(shape) * (int(native[1]) + 1) + 32) + 64
        padded = flat_bytes(data).tobytes() + bytes(room)
        kind = {"i4": library.type_int32, "i8": library.type_int64, "f4": library.type_float, "f8": library.type_double}
        found = library._decompress(padded, kind[native], shape, **self._zfpy_options())
        return _demoted(np.asarray(found), element)


def _check(configuration: Mapping[str, Any]) -> None:
    """Validate the configuration. Raises `MetadataValidationError` listing every problem."""
    mode = configuration.get("mode")
    problems = [Problem(("mode",), "missing", "is required")] if "mode" not in configuration else []
    needed = _MEMBERS.get(mode, ()) if isinstance(mode, str) else ()
    for name, value in configuration.items():
        if name not in _CHECKS or (
            name != "mode" and isinstance(mode, str) and mode in _MEMBERS and name not in needed
        ):
            problems.append(Problem((name,), "unknown", f"unknown member of the zfp codec in mode {mode!r}"))
        elif (wrong := _CHECKS[name](value)) is not None:
            problems.append(Problem((name,), "value", wrong))
    problems += [Problem((name,), "missing", "is required") for name in needed if name not in configuration]
    if not problems and mode == "expert" and configuration["minbits"] > configuration["maxbits"]:
        problems.append(Problem(("minbits",), "value", "must not be larger than maxbits"))
    if problems:
        raise MetadataValidationError("invalid zfp codec", problems, codec="zfp")


def _rate_bits(rate: float, ndim: int) -> float:
    return float(rate * 4 ** max(1, ndim))


def _bits(value: object) -> JSONObject:
    """Write a float as its bits: a decimal number would need exact parsing in Rust."""
    return {"float": int(np.array(value, np.float64).view(np.uint64))}


def _element(spec: ChunkSpec) -> str | None:
    """Return the type that zfp gets, before small integers are promoted; ``None`` for an unsupported type."""
    kind, itemsize = spec.dtype.kind, spec.dtype.itemsize
    if spec.data_type.name == "bfloat16" or (kind == "f" and itemsize == 2):
        return "f4"
    if spec.dtype.isbuiltin == 2:  # of ml_dtypes: other small numbers
        return None
    if kind in "mM":
        return "i8"
    return f"{kind}{itemsize}" if kind in "iuf" and itemsize <= 8 else None


def _native_type(element: str) -> str:
    """Return zfp's own type under which it compresses `element`."""
    return element if element[0] == "f" else "i8" if element[1] == "8" else "i4"


def _plain(values: AnyArray, element: str) -> AnyArray:
    return values.view(element) if values.dtype.kind in "mM" else values.astype(element, copy=False)


def _promoted(values: AnyArray, element: str) -> AnyArray:
    native, bits = _native_type(element), 8 * int(element[1])
    if element[0] == "f" or element == native:
        return values
    if bits < 32:
        middle = 1 << bits - 1 if element[0] == "u" else 0
        return (values.astype(np.int32) - middle) << (31 - bits)
    if (values > np.iinfo(native).max).any():
        raise CodecError(
            "zfp cannot hold the upper half of an unsigned type", codec="zfp", expected=f"values below 2^{bits - 1}"
        )
    return values.astype(native)


def _demoted(values: AnyArray, element: str) -> AnyArray:
    native, bits = _native_type(element), 8 * int(element[1])
    if element[0] == "f" or element == native:
        return values
    if bits < 32:
        middle = 1 << bits - 1 if element[0] == "u" else 0
        info = np.iinfo(element)
        shifted: AnyArray = np.clip((values >> (31 - bits)) + middle, info.min, info.max)
        return shifted.astype(element)
    positive: AnyArray = np.maximum(values, 0)
    return positive.astype(element)


def _zfpy(codec: ZfpCodec) -> Any:
    """Import the package zfpy, for installations without the Rust module."""
    if codec.mode == "expert":
        raise MissingDependencyError(
            "zfp in expert mode needs tessarr's Rust module", codec="zfp", hint="Install tessarr with a Rust toolchain"
        )
    try:
        import zfpy
    except ImportError as error:
        raise MissingDependencyError(
            "the zfp codec needs tessarr's Rust module or the package zfpy",
            codec="zfp",
            hint="pip install 'tessarr[codecs]'",
        ) from error
    return zfpy
