"""zarr-python's ``zarr.core.dtype.common``."""

from typing import Any, Literal, TypeAlias

from tessarr.errors import DataTypeValidationError, UnstableSpecificationWarning

EndiannessStr: TypeAlias = Literal["little", "big"]
ENDIANNESS_STR = ("little", "big")
SpecialFloatStrings: TypeAlias = Literal["NaN", "Infinity", "-Infinity"]
SPECIAL_FLOAT_STRINGS = ("NaN", "Infinity", "-Infinity")
ObjectCodecID: TypeAlias = Literal["vlen-utf8", "vlen-bytes", "vlen-array", "pickle", "json2", "msgpack2"]
OBJECT_CODEC_IDS = ("vlen-utf8", "vlen-bytes", "vlen-array", "pickle", "json2", "msgpack2")
DTypeJSON: TypeAlias = Any
DTypeSpec_V2: TypeAlias = Any
DTypeSpec_V3: TypeAlias = Any


class ScalarTypeValidationError(ValueError):
    """A value is not a scalar of the data type."""


__all__ = [
    "ENDIANNESS_STR",
    "OBJECT_CODEC_IDS",
    "SPECIAL_FLOAT_STRINGS",
    "DTypeJSON",
    "DTypeSpec_V2",
    "DTypeSpec_V3",
    "DataTypeValidationError",
    "EndiannessStr",
    "ObjectCodecID",
    "ScalarTypeValidationError",
    "SpecialFloatStrings",
    "UnstableSpecificationWarning",
]
