"""The contract of a data type: how NumPy holds an element, and how each format spells the type and its fill value.

A fill value is always held as a 0-d NumPy array of the type's `dtype`, so that Python floats never change its bits (NaN
payloads, −0.0, structured padding).

Source: Zarr v3.1 core, "Data types" and "Fill value"; Zarr v2, "Data type encoding" and "Fill value encoding".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

from tessarr.types import JSON, AnyArray, AnyDType, ZarrFormat

Scalar = AnyArray
"""A 0-d array: one element with its exact bits."""

VARIABLE_ITEMSIZE = 32
"""Bytes per element of a variable-length type, where an estimate is needed."""


class DataType(ABC):
    """One element type. Immutable, hashable and comparable by value; equality includes the byte order."""

    name: ClassVar[str]
    """The v3 name."""
    object_codec: ClassVar[str | None] = None
    """The numcodecs id of the v2 filter that stores this type, for types that v2 calls ``|O``."""
    may_be_missing: ClassVar[bool] = False
    """Elements may be missing: users read masked arrays, which `show` makes of them."""

    def __class_getitem__(cls, item: object) -> type[Self]:
        """Return the class: code for zarr-python names its generic ``ZDType[…]``."""
        return cls

    @property
    @abstractmethod
    def dtype(self) -> AnyDType:
        """The NumPy dtype of an array of this type in memory, in the byte order the document declared (v1, v2) or
        native (v3)."""

    @property
    def shown_dtype(self) -> AnyDType:
        """The NumPy dtype of the arrays that users read: `dtype`, except where elements may be missing."""
        return self.dtype

    def show(self, elements: AnyArray) -> AnyArray:
        """Return `elements`, of `dtype`, as users read them."""
        return elements

    @property
    def itemsize(self) -> int | None:
        """Stored bytes per element; ``None`` for variable-length types."""
        return self.dtype.itemsize

    @property
    def field_types(self) -> tuple[DataType, ...]:
        """The data types of the fields of an element; empty where elements have none."""
        return ()

    # -- documents -------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:
        """Parse a v3 ``data_type``: its name and, in the object form, its configuration.

        Raises `DataTypeValidationError` listing what is wrong.
        """

    @abstractmethod
    def to_json(self) -> JSON:
        """Return the v3 ``data_type`` value. Raises `DataTypeValidationError` when v3 cannot express the type."""

    @abstractmethod
    def to_v2(self) -> JSON:
        """Return the v2 ``dtype`` value. Raises `DataTypeValidationError` when v2 cannot express the type."""

    # -- fill values -----------------------------------------------------------------------------------------

    @abstractmethod
    def default_fill(self) -> Scalar:
        """Return the fill value for users who give none: 0, False, empty, NaT, or the defaults of all fields."""

    @abstractmethod
    def cast_fill(self, value: object) -> Scalar:
        """Convert a user's Python or NumPy value. Raises `ValueError`/`TypeError` for values of other types."""

    def cast_given_fill(self, value: object) -> Scalar:
        """Convert a fill value that a user gives, as `cast_fill`; 0 is empty text, bytes or list, as in NumPy's `zeros`."""
        if type(value) is int and value == 0 and self.dtype.kind in "SUTO":
            return self.default_fill()
        return self.cast_fill(value)

    @abstractmethod
    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Parse a document's ``fill_value`` (not null). Floats may be `FloatLiteral` and round once, from their text.

        Raises `MetadataValidationError` when the JSON is not a permitted form.
        """

    def fill_diagnostics(self, value: JSON, zarr_format: ZarrFormat) -> tuple[str, ...]:
        """Describe what is unusual about a document's ``fill_value`` that `parse_fill` accepts."""
        return ()

    @abstractmethod
    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Write a document's ``fill_value``; `parse_fill` of the result gives the same bits."""

    @property
    def lacks_unit(self) -> bool:
        """Whether elements (or fields of them) are times without a unit, counts of nothing that is known."""
        return False

    # -- the byte order --------------------------------------------------------------------------------------

    def with_byteorder(self, order: str) -> DataType:
        """Return the same type in memory order ``"<"``, ``">"`` or ``"="``; itself where the order has no meaning."""
        return self

    @property
    def has_byteorder(self) -> bool:
        """Whether an element (or a field of it) spans several bytes whose order matters."""
        return False
