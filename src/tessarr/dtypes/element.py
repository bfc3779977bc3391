"""Implement what tessarr's data types share beyond the contract: value semantics, byte order, exact bits, Base64.

`Element` also offers zarr-python's method names (``to_native_dtype``, ``cast_scalar`` …) as thin conveniences.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

import numpy as np

from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.unstable import warn_of_unstable
from tessarr.errors import DataTypeValidationError, MetadataValidationError, Problem, ScalarError
from tessarr.types import JSON, AnyArray, AnyDType, ZarrFormat

if TYPE_CHECKING:
    import numpy.typing as npt

Endianness: TypeAlias = Literal["little", "big"]

MAX_ITEMSIZE = 2**31 - 1
"""Largest element size in bytes: NumPy holds it in a C int."""

_NATIVE: Endianness = "little" if sys.byteorder == "little" else "big"


class Element(DataType):
    """A data type with value semantics: immutable, equal and hashed by class and `_key`."""

    of_numpy: ClassVar[Callable[..., DataType]]
    """`tessarr.dtypes.parse.from_numpy`, a module above this one, which registers the function here."""
    of_document: ClassVar[Callable[[Any, ZarrFormat], DataType]]
    """`tessarr.dtypes.parse.from_document`, registered the same way."""

    def _key(self) -> tuple[object, ...]:
        """Return the values by which two types of this class are compared."""
        return ()

    def _arguments(self) -> Mapping[str, object]:
        """Return the constructor's keywords, for `repr`."""
        return {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Element) and type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._arguments().items())
        return f"{type(self).__name__}({arguments})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}")

    # -- zarr-python's names -----------------------------------------------------------------------------------

    def to_native_dtype(self) -> AnyDType:
        """Return `dtype`, under zarr-python's name."""
        return self.dtype

    @property
    def dtype_cls(self) -> type[AnyDType]:
        """The class of `dtype`."""
        return type(self.dtype)

    @property
    def item_size(self) -> int:
        """Return `itemsize` of a fixed-length type. Raises `AttributeError` for a variable-length one."""
        size = self.itemsize
        if size is None:
            raise AttributeError(f"{type(self).__name__} has no item_size: its elements differ in length")
        return size

    @classmethod
    def from_native_dtype(cls, dtype: npt.DTypeLike) -> Self:
        """Return the type of this class for a NumPy dtype. Raises `DataTypeValidationError` when it is of another
        class.
        """
        found = cls.of_numpy(dtype, object_codec=cls.object_codec)
        if not isinstance(found, cls):
            raise DataTypeValidationError(f"{dtype!r} is not a dtype of {cls.__name__}", got=repr(found))
        return found

    def default_scalar(self) -> Any:
        """Return `default_fill` as a NumPy scalar (or Python object)."""
        return self.default_fill()[()]

    def cast_scalar(self, data: object) -> Any:
        """Return `cast_fill` as a NumPy scalar (or Python object). Raises `ScalarError`."""
        try:
            return self.cast_fill(data)[()]
        except (TypeError, ValueError, OverflowError) as error:
            message = f"Cannot convert object {data!r} with type {type(data)} to a scalar compatible with the data type {self}."
            raise ScalarError(message + f" {error}") from error

    def _named_in_v2(self) -> JSON:
        """Return what ``to_json`` gives for format 2: the ``dtype`` of a document, and the id of the object codec it needs."""
        return {"name": self.to_v2(), "object_codec_id": self.object_codec}

    def to_json_scalar(self, data: object, *, zarr_format: ZarrFormat) -> JSON:
        """Return `dump_fill` of any value that `cast_fill` accepts."""
        return self.dump_fill(self.cast_fill(data), zarr_format)

    def from_json_scalar(self, data: JSON, *, zarr_format: ZarrFormat) -> Any:
        """Return `parse_fill` as a NumPy scalar (or Python object)."""
        return self.parse_fill(data, zarr_format)[()]


T = TypeVar("T", bound=Element)
E = TypeVar("E", bound="Element")


def read_by_format(method: Callable[[type[T], str, Mapping[str, JSON] | None], T]) -> Callable[..., T]:
    """Make a ``from_json`` understand zarr-python's call too: the whole JSON value, and ``zarr_format=``."""

    @wraps(method)
    def from_json(
        cls: type[T],
        name: Any,
        configuration: Mapping[str, JSON] | None = None,
        *,
        zarr_format: ZarrFormat | None = None,
    ) -> T:
        if zarr_format is None:
            return method(cls, name, configuration)
        found = cls.of_document(name, zarr_format)
        if not isinstance(found, cls):
            raise DataTypeValidationError(f"this is not the JSON of {cls.__name__}", got=repr(name))
        return found

    return from_json


def named_by_format(method: Callable[[E], JSON]) -> Callable[..., JSON]:
    """Make a ``to_json``, which is of format 3, understand zarr-python's call too: with ``zarr_format=``, and a warning of
    types that zarr-python calls unstable.
    """

    @wraps(method)
    def to_json(self: E, zarr_format: ZarrFormat | None = None) -> JSON:
        if zarr_format is None:
            return method(self)
        if zarr_format < 3:
            return self._named_in_v2()
        warn_of_unstable(self)
        return method(self)

    return to_json


class Ordered(Element):
    """An element of several bytes, in a stated byte order (native by default)."""

    code: ClassVar[str]
    """The typestr without its byte order, such as ``i4``."""
    endianness: Endianness

    def __init__(self, *, endianness: Endianness | None = None) -> None:
        vars(self)["endianness"] = check_endianness(endianness)

    def _key(self) -> tuple[object, ...]:
        return (self.endianness,)

    def _arguments(self) -> Mapping[str, object]:
        return {} if self.endianness == _NATIVE else {"endianness": self.endianness}

    @property
    def order(self) -> str:
        """``"<"`` or ``">"``."""
        return "<" if self.endianness == "little" else ">"

    @cached_property
    def dtype(self) -> AnyDType:
        return np.dtype(self.order + self.code)

    def to_v2(self) -> JSON:
        """Return the typestr: the byte order, then the code."""
        return self.dtype.str

    @property
    def has_byteorder(self) -> bool:
        """Whether the byte order matters: always."""
        return True

    def with_byteorder(self, order: str) -> DataType:
        endianness = endianness_of(order)
        return self if endianness == self.endianness else self._reordered(endianness)

    def _reordered(self, endianness: Endianness) -> DataType:
        return type(self)(endianness=endianness)


def check_endianness(endianness: str | None) -> Endianness:
    """Validate an endianness; ``None`` is the byte order of this machine. Raises `ValueError`."""
    if endianness is None:
        return _NATIVE
    if endianness == "little":
        return "little"
    if endianness == "big":
        return "big"
    raise ValueError(f"endianness must be 'little' or 'big', got {endianness!r}")


def endianness_of(order: str) -> Endianness:
    """Return the word for NumPy's ``<``, ``>`` or ``=``. Raises `ValueError`.

    >>> endianness_of(">")
    'big'
    """
    if order == "<":
        return "little"
    if order == ">":
        return "big"
    if order == "=":
        return _NATIVE
    raise ValueError(f"a byte order must be '<', '>' or '=', got {order!r}")


# -- exact bits ----------------------------------------------------------------------------------------------------


def order_of(dtype: AnyDType) -> Endianness:
    """Return the byte order of `dtype`; of a structured one, that of its first field."""
    while dtype.fields:
        dtype = dtype[0]
    return endianness_of("=" if dtype.byteorder == "|" else dtype.byteorder)


def from_bytes(data: bytes, dtype: AnyDType) -> Scalar:
    """Return the read-only 0-d array that `data` holds, laid out as `dtype` says; it owns a reference to `data`."""
    return np.frombuffer(data, dtype=dtype, count=1).reshape(())


def from_bits(bits: int, dtype: AnyDType) -> Scalar:
    """Return the element whose bits, read as an unsigned integer, are `bits`."""
    return from_bytes(bits.to_bytes(dtype.itemsize, order_of(dtype)), dtype)


def to_bits(scalar: Scalar) -> int:
    """Return the bits of a 0-d array as an unsigned integer, whatever its byte order."""
    return int.from_bytes(scalar.tobytes(), order_of(scalar.dtype))


def converted(values: AnyArray, dtype: AnyDType) -> AnyArray:
    """Convert `values` to `dtype`, its byte order included; return `values` itself where they have both.

    NumPy copies text to an equal dtype of another array, and holds times without a unit for equal in both byte orders, so that
    its `astype` moves no bytes.
    """
    if dtype.kind == "T" and values.dtype == dtype:
        return values
    made = values.astype(dtype, copy=False)
    if dtype.kind in "mM" and made.dtype.isnative != dtype.isnative:
        made, given = np.ndarray(values.shape, dtype), made
        made[...] = given
    return made


def as_scalar(value: object) -> Scalar | None:
    """Return a NumPy scalar or 0-d array as a 0-d array with the same bits; ``None`` for anything else."""
    if isinstance(value, np.ndarray):
        return value if value.ndim == 0 else None
    # np.asarray of a scalar copies its bytes; no arithmetic happens, so NaN payloads stay
    return np.asarray(value) if isinstance(value, np.generic) else None


def same_type(scalar: Scalar, dtype: AnyDType) -> bool:
    """Return whether `scalar` is of `dtype` up to byte order."""
    return scalar.dtype.newbyteorder("=") == dtype.newbyteorder("=")


# -- documents -----------------------------------------------------------------------------------------------------


def fill_error(what: str, value: object, expected: str, hint: str | None = None) -> MetadataValidationError:
    """Make the error for a document's fill value whose JSON form is not permitted."""
    return MetadataValidationError(
        f"invalid fill_value for data type {what}", expected=expected, got=_short(value), hint=hint
    )


def refused_fill(what: str, value: object, error: ValueError) -> MetadataValidationError:
    """Make the error for a fill value of a permitted form that is not a value of the type; `error` gives the reason."""
    return fill_error(what, value, f"a value of {what}: {error}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def no_configuration(name: str, configuration: Mapping[str, JSON] | None) -> None:
    """Raise `DataTypeValidationError` when a type without parameters has a configuration."""
    if configuration:
        problems = [
            Problem(("configuration", key), "unknown", f"{name} has no parameter {key!r}") for key in configuration
        ]
        raise DataTypeValidationError(f"invalid configuration of data type {name}", problems)


def configuration_of(
    name: str, configuration: Mapping[str, JSON] | None, required: tuple[str, ...]
) -> Mapping[str, JSON]:
    """Return the configuration after checking that it holds exactly the `required` members.

    Raises `DataTypeValidationError` listing missing and unknown members.
    """
    given = configuration or {}
    problems = [
        Problem(("configuration", key), "missing", f"{name} requires {key!r}") for key in required if key not in given
    ]
    problems += [
        Problem(("configuration", key), "unknown", f"{name} has no parameter {key!r}")
        for key in given
        if key not in required
    ]
    if problems:
        raise DataTypeValidationError(f"invalid configuration of data type {name}", problems)
    return given


def length_bytes_of(name: str, configuration: Mapping[str, JSON] | None, unit: int = 1) -> int:
    """Return the member ``length_bytes`` of a fixed-length type, counted in units of `unit` bytes."""
    length = configuration_of(name, configuration, ("length_bytes",))["length_bytes"]
    if type(length) is not int or not unit <= length <= MAX_ITEMSIZE or length % unit:
        expected = f"an integer from {unit} to 2^31-1" + (f" that {unit} divides" if unit > 1 else "")
        problem = Problem(("configuration", "length_bytes"), "value", f"must be {expected}, got {length!r}")
        raise DataTypeValidationError(f"invalid configuration of data type {name}", [problem])
    return length // unit


def check_length(length: object, unit: int = 1) -> int:
    """Validate a length passed to a constructor. Raises `DataTypeValidationError`."""
    if isinstance(length, bool) or not isinstance(length, int | np.integer) or not 1 <= length * unit <= MAX_ITEMSIZE:
        raise DataTypeValidationError(
            f"length must be >= 1, got {length!r}." if length == 0 else "invalid length of a fixed-length data type",
            expected="at least 1 and below 2 GiB",
            got=repr(length),
        )
    return int(length)


def decode_base64(what: str, value: JSON) -> bytes:
    """Decode a Base64 fill value (standard alphabet, padded). Raises `MetadataValidationError`."""
    import base64
    import binascii

    if isinstance(value, str):
        try:
            return base64.b64decode(value.encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            pass
    raise fill_error(what, value, "a Base64 string (standard alphabet)")


def encode_base64(data: bytes) -> str:
    """Encode as standard Base64."""
    import base64

    return base64.b64encode(data).decode("ascii")


def is_old_zero(value: JSON) -> bool:
    """Return whether a v2 fill value is the ``0`` or ``""`` that some writers store instead of Base64."""
    return value == "" or (type(value) in (int, float) and value == 0)


def old_zero_diagnostics(what: str, value: JSON, zarr_format: ZarrFormat) -> tuple[str, ...]:
    """Say that a v2 fill value which is not Base64 is read as zeros (CONFORMANCE V2-32)."""
    if zarr_format == 3 or not is_old_zero(value):
        return ()
    return (f"fill_value {value!r} of data type {what} is not Base64, as Zarr v2 requires; read as zero bytes",)


def text_of(value: object) -> str:
    """Return a text, or a scalar of text, as a `str`. Raises `TypeError`."""
    scalar = as_scalar(value)
    if scalar is not None:
        value = scalar.item()
    if not isinstance(value, str):
        raise TypeError(f"not text: {value!r}")
    return str(value)


def check_text(text: str) -> str:
    """Return text that UTF-8 can encode. Raises `ValueError` for lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"not valid Unicode text: {text!r} holds a lone surrogate") from error
    return text
