"""Elements of differing size: text, bytes, and the Python objects of v2.

=======================  ==========================================  =====================================  ============
class                    v3                                          v2: ``"|O"`` and the filter            in memory
=======================  ==========================================  =====================================  ============
`VariableLengthUTF8`     ``"string"`` + ``vlen-utf8`` (registered)   ``vlen-utf8``                          StringDType
`VariableLengthBytes`    ``"bytes"`` + ``vlen-bytes`` (registered)   ``vlen-bytes``                         object
`JSONObjects`            –                                           ``json2``                              object
`MsgPackObjects`         –                                           ``msgpack2``                           object
`RaggedArrays`           –                                           ``vlen-array``                         object
`Categories`             –                                           ``categorize``                         object
=======================  ==========================================  =====================================  ============

``variable_length_bytes`` is zarr-python's name for ``bytes``: read, and written as ``bytes``. Fill values: text as it
is; bytes as Base64 (v3 reads a list of integers too). v2 documents of zarr-python often say ``0`` where text, bytes or
a list belongs; that is read as empty. ``pickle`` is refused, see `tessarr.dtypes.parse`.

>>> VariableLengthUTF8().to_json(), VariableLengthBytes().dump_fill(VariableLengthBytes().cast_fill(b"abc"), 3)
('string', 'YWJj')

Source: the registered data types ``string`` and ``bytes``; numcodecs for the v2 filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Self, TypeAlias

import numpy as np

from tessarr.common.strict_json import plain
from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.element import (
    Element,
    as_scalar,
    check_text,
    decode_base64,
    encode_base64,
    fill_error,
    is_old_zero,
    named_by_format,
    read_by_format,
    refused_fill,
    text_of,
)
from tessarr.dtypes.numeric import Plain
from tessarr.dtypes.raw import byte_list
from tessarr.errors import DataTypeValidationError
from tessarr.types import JSON, AnyDType, ZarrFormat

Parse: TypeAlias = Callable[[JSON, None], DataType]
"""Makes the data type of a v2 ``dtype`` that is not an object type."""


class _Variable(Element):
    @property
    def dtype(self) -> AnyDType:
        """NumPy's object dtype."""
        return np.dtype(np.object_)

    @property
    def itemsize(self) -> None:
        """``None``: elements differ in size."""
        return None

    def to_v2(self) -> JSON:
        """Return ``"|O"``; the filter says which type it is."""
        return "|O"

    def _box(self, value: object) -> Scalar:
        """Hold `value` itself as one element, also if it is a list or an array."""
        box = np.empty((), dtype=self.dtype)
        box[()] = value
        box.flags.writeable = False
        return box


class VariableLengthUTF8(_Variable, Plain):
    """Text."""

    name = "string"
    object_codec: ClassVar[str | None] = "vlen-utf8"

    @property
    def dtype(self) -> AnyDType:
        """``np.dtypes.StringDType()``."""
        return np.dtypes.StringDType()  # type: ignore[no-any-return,unused-ignore]

    def default_fill(self) -> Scalar:
        """Return empty text."""
        return self._box("")

    def cast_fill(self, value: object) -> Scalar:
        """Accept text."""
        return self._box(check_text(text_of(value)))

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept a JSON string; in v2 also the 0 that zarr-python wrote for no fill value, which its readers show as
        "0".
        """
        if zarr_format < 3 and type(value) is int:
            return self._box(str(value))
        try:
            if isinstance(value, str):
                return self._box(check_text(value))
        except ValueError as error:
            raise refused_fill(self.name, value, error) from error
        raise fill_error(self.name, value, "a JSON string")

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return the text."""
        return str(fill.item())


class VariableLengthBytes(_Variable, Plain):
    """Bytes."""

    name = "bytes"
    object_codec: ClassVar[str | None] = "vlen-bytes"

    def default_fill(self) -> Scalar:
        """Return no bytes."""
        return self._box(b"")

    def cast_fill(self, value: object) -> Scalar:
        """Accept bytes."""
        scalar = as_scalar(value)
        if scalar is not None:
            value = scalar.item()
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"not bytes: {value!r}")
        return self._box(bytes(value))

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept Base64; in v3 also a list of integers from 0 to 255; in v2 also 0 for no bytes."""
        if zarr_format < 3 and is_old_zero(value):
            return self.default_fill()
        listed = byte_list(value) if zarr_format == 3 else None
        if listed is None and not isinstance(value, str):
            raise fill_error(self.name, value, "a Base64 string, or a list of integers from 0 to 255")
        return self._box(decode_base64(self.name, value) if listed is None else listed)

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return Base64."""
        return encode_base64(fill.item())


class _JSONElements(_Variable):
    """Base class of types whose elements are JSON values, the fill value too."""

    def default_fill(self) -> Scalar:
        """Return None."""
        return self._box(None)

    def cast_fill(self, value: object) -> Scalar:
        """Accept any value that JSON can express."""
        return self._box(plain(value))

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept any JSON value."""
        return self._box(plain(value))

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return the value."""
        return plain(fill[()])  # type: ignore[no-any-return]


class _AnyValue(_JSONElements):
    """Base class of types of which 0 is a value like any other."""

    def cast_given_fill(self, value: object) -> Scalar:
        return self.cast_fill(value)


class _V2Objects(_JSONElements):
    """Base class of objects that only a v2 filter can store."""

    name = "object"
    object_codec: ClassVar[str | None]

    @classmethod
    @read_by_format
    def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:  # noqa: ARG003
        """Raise `DataTypeValidationError`: v3 has no such type."""
        raise cls._not_v3()

    @named_by_format
    def to_json(self) -> JSON:
        """Raise `DataTypeValidationError`: v3 has no such type."""
        raise self._not_v3()

    @classmethod
    def _not_v3(cls) -> DataTypeValidationError:
        return DataTypeValidationError(
            f"v3 cannot express Python objects (v2 dtype '|O' with filter {cls.object_codec!r})",
            hint="Store text as 'string', bytes as 'bytes', or keep the array in Zarr v2",
        )

    @classmethod
    def from_filter(cls, configuration: Mapping[str, JSON], parse: Parse) -> Self:  # noqa: ARG003
        """Make the type from the filter's v2 object."""
        return cls()


class JSONObjects(_AnyValue, _V2Objects):
    """Python objects stored by numcodecs' ``json2``."""

    object_codec = "json2"


class MsgPackObjects(_AnyValue, _V2Objects):
    """Python objects stored by numcodecs' ``msgpack2``."""

    object_codec = "msgpack2"


class Categories(_V2Objects):
    """Text from a short list, stored by numcodecs' ``categorize``."""

    object_codec = "categorize"

    def default_fill(self) -> Scalar:
        """Return empty text, which ``categorize`` gives for values outside its list."""
        return self._box("")

    def cast_fill(self, value: object) -> Scalar:
        """Accept text."""
        return self._box(VariableLengthUTF8().cast_fill(value).item())

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept a JSON string, or 0 for empty text."""
        return self._box(VariableLengthUTF8().parse_fill(value, zarr_format).item())


class RaggedArrays(_V2Objects):
    """One-dimensional arrays of differing length, stored by numcodecs' ``vlen-array``."""

    object_codec = "vlen-array"
    data_type: DataType
    """Data type of the elements of each array."""

    def __init__(self, *, data_type: DataType) -> None:
        vars(self)["data_type"] = data_type

    def _key(self) -> tuple[object, ...]:
        return (self.data_type,)

    def _arguments(self) -> Mapping[str, object]:
        return {"data_type": self.data_type}

    @classmethod
    def from_filter(cls, configuration: Mapping[str, JSON], parse: Parse) -> Self:
        """Parse ``{"id": "vlen-array", "dtype": "<i4"}``; `parse` makes the type of an element."""
        return cls(data_type=parse(configuration.get("dtype"), None))

    def default_fill(self) -> Scalar:
        """Return an array of no elements."""
        return self.cast_fill([])

    def cast_fill(self, value: object) -> Scalar:
        """Accept a one-dimensional array."""
        array = np.array(value, dtype=self.data_type.dtype)
        if array.ndim != 1:
            raise ValueError(f"not a one-dimensional array: {value!r}")
        return self._box(array)

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept a list of fill values of the element type, or 0 for no elements."""
        if is_old_zero(value):
            return self.default_fill()
        if not isinstance(value, list | tuple):
            raise fill_error("vlen-array", value, "a list")
        items = [self.data_type.parse_fill(item, zarr_format) for item in value]
        data = b"".join(item.tobytes() for item in items)
        return self._box(np.frombuffer(data, dtype=self.data_type.dtype))

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return a list."""
        return [self.data_type.dump_fill(np.asarray(item), zarr_format) for item in fill[()]]
