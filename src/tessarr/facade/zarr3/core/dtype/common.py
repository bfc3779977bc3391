"""zarr-python's ``zarr.core.dtype.common``."""

from abc import ABC, abstractmethod
from typing import Literal, TypeAlias

from tessarr.dtypes.element import Element, Ordered
from tessarr.dtypes.raw import FixedLengthUTF32, NullTerminatedBytes, RawBytes
from tessarr.dtypes.variable import VariableLengthBytes, VariableLengthUTF8
from tessarr.errors import DataTypeValidationError, UnstableSpecificationWarning
from tessarr.types import JSON

EndiannessStr: TypeAlias = Literal["little", "big"]
ENDIANNESS_STR = ("little", "big")
SpecialFloatStrings: TypeAlias = Literal["NaN", "Infinity", "-Infinity"]
SPECIAL_FLOAT_STRINGS = ("NaN", "Infinity", "-Infinity")
ObjectCodecID: TypeAlias = Literal["vlen-utf8", "vlen-bytes", "vlen-array", "pickle", "json2", "msgpack2"]
OBJECT_CODEC_IDS = ("vlen-utf8", "vlen-bytes", "vlen-array", "pickle", "json2", "msgpack2")
DTypeJSON: TypeAlias = JSON
DTypeSpec_V2: TypeAlias = JSON
DTypeSpec_V3: TypeAlias = JSON


class HasLength(ABC):
    """Data types whose elements have a length, in units of the data type; it may be 0."""

    length: int


class HasEndianness(ABC):
    """Data types whose elements have a byte order."""

    endianness: EndiannessStr


class HasItemSize(ABC):
    """Data types whose elements take the same number of bytes each."""

    @property
    @abstractmethod
    def item_size(self) -> int:
        """Bytes per element."""

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        variable = (VariableLengthBytes, VariableLengthUTF8)
        return issubclass(other, Element) and not issubclass(other, variable)


for _kind in (FixedLengthUTF32, NullTerminatedBytes, RawBytes):
    HasLength.register(_kind)
HasEndianness.register(Ordered)  # type: ignore[type-abstract]


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
    "HasEndianness",
    "HasItemSize",
    "HasLength",
    "ObjectCodecID",
    "ScalarTypeValidationError",
    "SpecialFloatStrings",
    "UnstableSpecificationWarning",
]
