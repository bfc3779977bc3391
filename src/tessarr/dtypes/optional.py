"""The ``optional`` data type: elements that may be missing.

Source: zarr-extensions pull request 33 (proposed). v3 name ``optional``, with the codec ``optional``; zarrs writes both as
``zarrs.optional``. No v2 form.

>>> data_type = OptionalValue.from_json("optional", {"name": "int16", "configuration": {}})
>>> data_type.to_json()
{'name': 'optional', 'configuration': {'name': 'int16', 'configuration': {}}}
>>> [data_type.dump_fill(data_type.cast_fill(value), 3) for value in (None, 7)]
[None, [7]]

Engines, codecs and tools hold an element as a *pair* (NumPy: ``[("value", T), ("present", bool)]``), in which a missing
element is zero bytes, so that equal elements have equal bits; text and bytes as Python objects, a missing one as ``None``.
Users see `numpy.ma.MaskedArray`: `masked` and `unmasked` convert.

The fill value is null (missing), or a list of one value. An optional type within another is a pair within a pair, which users
see as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.element import (
    Element,
    as_scalar,
    configuration_of,
    fill_error,
    from_bytes,
    named_by_format,
    read_by_format,
)
from tessarr.dtypes.named import from_v3
from tessarr.errors import DataTypeValidationError, MetadataValidationError, problems_of
from tessarr.types import JSON, AnyArray, AnyDType, ZarrFormat

if TYPE_CHECKING:
    import numpy.typing as npt

_VALUE, _PRESENT = "value", "present"
_OBJECTS = ("string", "bytes")
"""Types of differing size that may be missing: their elements are never ``None``."""


class OptionalValue(Element):
    """Elements of another type, each of which may be missing."""

    name = "optional"
    may_be_missing: ClassVar[bool] = True
    fill_may_be_null: ClassVar[bool] = True
    data_type: DataType
    """The type of elements that are present."""

    def __init__(self, *, data_type: DataType, name: str = "optional") -> None:
        """`name`: how documents spell the type, ``"optional"`` or ``"zarrs.optional"``.

        Raises `DataTypeValidationError` for a `data_type` of differing size, other than text and bytes.
        """
        if data_type.itemsize is None and data_type.name not in _OBJECTS and not _is_pair(data_type):
            raise DataTypeValidationError(
                f"elements of the data type {data_type.name} cannot be optional",
                expected=f"a type of fixed size, {' or '.join(_OBJECTS)}",
                got=repr(data_type),
            )
        vars(self).update(data_type=data_type, name=name)

    def _key(self) -> tuple[object, ...]:
        return (self.data_type,)

    def _arguments(self) -> Mapping[str, object]:
        return {"data_type": self.data_type}

    @cached_property
    def dtype(self) -> AnyDType:
        """Pairs; of text and bytes, NumPy's object dtype."""
        if self.data_type.name in _OBJECTS:
            return np.dtype(np.object_)
        return np.dtype([(_VALUE, self.data_type.dtype), (_PRESENT, np.bool_)])

    @property
    def shown_dtype(self) -> AnyDType:
        """The dtype of the masked arrays that users read."""
        return self.dtype if self.dtype.names is None else self.dtype[_VALUE]

    def show(self, elements: AnyArray) -> AnyArray:
        """Return a masked array of new memory."""
        return masked(elements)

    @property
    def itemsize(self) -> None:
        """``None``: missing elements take no bytes."""
        return None

    # -- documents -------------------------------------------------------------------------------------------

    @classmethod
    @read_by_format
    def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:
        """Parse ``name`` and ``configuration`` of the type of present elements; the latter may be left out."""
        given = {"configuration": {}, **(configuration or {})}
        inner = configuration_of(name, given, ("name", "configuration"))
        try:
            return cls(data_type=from_v3(dict(inner)), name=name)
        except DataTypeValidationError as error:
            if not error.problems:
                raise
            problems = problems_of(error, "configuration")
            raise DataTypeValidationError(f"invalid configuration of data type {name}", problems) from error

    @named_by_format
    def to_json(self) -> JSON:
        inner = self.data_type.to_json()
        named = inner if isinstance(inner, Mapping) else {"name": inner}
        configuration = {"name": named["name"], "configuration": named.get("configuration", {})}
        return {"name": self.name, "configuration": configuration}

    def to_v2(self) -> JSON:
        """Raise `DataTypeValidationError`: v2 has no such type."""
        raise DataTypeValidationError(
            "v2 has no data type for elements that may be missing",
            got=repr(self),
            hint="Keep the array in Zarr v3, or store the values and the mask as two arrays",
        )

    # -- fill values -----------------------------------------------------------------------------------------

    def default_fill(self) -> Scalar:
        """Return the missing element."""
        return self._scalar(None)

    def _scalar(self, value: Scalar | None) -> Scalar:
        """Return the element that is missing, or present with `value`."""
        if self.dtype.names is not None:
            missing = bytes(self.dtype.itemsize)
            return from_bytes(missing if value is None else value.tobytes() + b"\1", self.dtype)
        box = np.empty((), self.dtype)
        box[()] = None if value is None else value[()]
        box.flags.writeable = False
        return box

    def cast_fill(self, value: object) -> Scalar:
        """Accept ``None`` and ``numpy.ma.masked`` for the missing element, and values of the inner type."""
        if value is None or np.ma.is_masked(value):
            return self.default_fill()
        scalar = as_scalar(value)
        if scalar is not None and scalar.dtype == self.dtype:
            return scalar if self.dtype.names is None else from_bytes(scalar.tobytes(), self.dtype)
        return self._scalar(self.data_type.cast_fill(value))

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept null, and a list of one fill value of the inner type."""
        if value is None:
            return self.default_fill()
        if not isinstance(value, list | tuple) or len(value) != 1:
            raise fill_error(self.name, value, "null (missing), or a list of one value")
        try:
            return self._scalar(self.data_type.parse_fill(value[0], zarr_format))
        except MetadataValidationError as error:
            problems = problems_of(error, 0)
            raise MetadataValidationError(f"invalid fill_value for data type {self.name}", problems) from error

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return null, or a list of one value."""
        if self.dtype.names is None:
            return None if fill.item() is None else [self.data_type.dump_fill(fill, zarr_format)]
        return [self.data_type.dump_fill(fill[_VALUE], zarr_format)] if fill[_PRESENT] else None

    # -- the byte order --------------------------------------------------------------------------------------

    @property
    def lacks_unit(self) -> bool:
        """Whether present elements are times without a unit."""
        return self.data_type.lacks_unit

    def with_byteorder(self, order: str) -> DataType:
        return type(self)(data_type=self.data_type.with_byteorder(order), name=self.name)

    @property
    def has_byteorder(self) -> bool:
        """Whether present elements span several bytes."""
        return self.data_type.has_byteorder


def _is_pair(data_type: DataType) -> bool:
    return isinstance(data_type, OptionalValue) and data_type.dtype.names is not None


# -- elements --------------------------------------------------------------------------------------------------------


def split(elements: AnyArray) -> tuple[npt.NDArray[np.bool_], AnyArray]:
    """Return which elements are present, and the values of those, as an array of one axis in C order."""
    if elements.dtype.names is None:
        present = ~_are_missing(elements)
        return present, elements[present]
    present = elements[_PRESENT]
    return present, elements[_VALUE][present]


def joined(present: npt.NDArray[np.bool_], values: AnyArray, dtype: AnyDType) -> AnyArray:
    """Undo `split`: make elements of `dtype` of the shape of `present`."""
    if dtype.names is None:
        elements = np.full(present.shape, None, dtype)
        elements[present] = values
        return elements
    elements = np.zeros(present.shape, dtype)
    elements[_PRESENT] = present
    elements[_VALUE][present] = values
    return elements


def masked(elements: AnyArray) -> AnyArray:
    """Return elements of an optional type as a masked array of new memory; data under the mask is 0, or ``None``."""
    if elements.dtype.names is None:
        return np.ma.MaskedArray(elements, mask=_are_missing(elements))
    return np.ma.MaskedArray(elements[_VALUE].copy(order="K"), mask=~elements[_PRESENT])


def unmasked(value: object, dtype: AnyDType) -> AnyArray:
    """Convert what a user assigns to elements of `dtype`, an optional type's.

    Accepts elements as they are, masked arrays, arrays, and nested lists. ``None`` and ``numpy.ma.masked`` are missing.

    Raises `ValueError` for records of which some fields are masked, and others not.
    """
    if isinstance(value, np.ndarray) and value.dtype == dtype and not isinstance(value, np.ma.MaskedArray):
        return value
    shown = dtype if dtype.names is None else dtype[_VALUE]
    if not hasattr(value, "dtype") and (dtype.names is None or shown.names is None):
        value = np.array(value, np.object_)  # Python's numbers, each of which is checked when it is converted
    given: AnyArray = np.ma.asanyarray(value, dtype=None if hasattr(value, "dtype") else shown)
    mask = np.ma.getmaskarray(given)
    if mask.dtype.names is not None:
        flags = np.stack(_leaves(mask))
        mask = np.asarray(flags.all(axis=0))
        if (flags.any(axis=0) != mask).any():
            raise ValueError("some fields of an element are masked and others not: an element is missing as a whole")
    data = np.asarray(np.ma.getdata(given))
    if data.dtype == np.object_:
        mask = mask | _are_missing(data)
    return joined(~mask, data[~mask], dtype)


def _are_missing(objects: AnyArray) -> npt.NDArray[np.bool_]:
    """Return which elements of an array of objects stand for a missing one."""
    found = [item is None or item is np.ma.masked for item in objects.reshape(-1).tolist()]
    return np.array(found, np.bool_).reshape(objects.shape)


def _leaves(mask: AnyArray) -> list[AnyArray]:
    """Return the masks of all fields, at any depth."""
    if mask.dtype.names is None:
        return [mask]
    return [leaf for name in mask.dtype.names for leaf in _leaves(mask[name])]


def complete(values: object) -> AnyArray:
    """Return the masked array `values`, or an element of one, as a NumPy array without mask.

    Raises `ValueError` where an element is missing: NumPy would silently show what is under the mask.
    """
    if np.ma.is_masked(values):
        raise ValueError(
            "elements are missing, for which a NumPy array has no value: "
            "read array[...], a masked array, and fill it (`.filled(value)`)"
        )
    return np.asarray(values)
