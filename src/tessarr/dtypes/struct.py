"""Records of named fields: NumPy's structured dtypes.

v3 ``struct`` (registered)::

    {"name": "struct", "configuration": {"fields": [{"name": "x", "data_type": "float32"}, …]}}

v2: a list of ``[name, datatype]`` or ``[name, datatype, shape]``, nested as needed. Elements are packed, without
padding. Fill value: v3 an object with every field; v2 Base64 of the bytes of one element.

>>> from tessarr.dtypes.numeric import Float32, UInt8
>>> pair = Struct(fields=(("x", Float32()), ("n", UInt8())))
>>> pair.itemsize, pair.dump_fill(pair.cast_fill((1.5, 2)), 3)
(5, {'x': 1.5, 'n': 2})

``structured`` is the legacy name that zarr-python wrote up to 3.1 (fields as pairs, Base64 fill value): read, and
written as ``struct``. zarr-python's class name `Structured` is kept for `Struct`.

A field that is an array of fixed length, a subarray of NumPy, is in v3 of the proposed type ``fixed_size_list``, nested for
several axes; its fill value is a list::

    {"name": "fixed_size_list", "configuration": {"base_data_type": "float32", "list_size": 3}}

Limits: v3 has one byte order for all fields (v2 has one per field): `to_json` refuses others. ``fixed_size_list`` is the type
of fields only. NumPy's aligned dtypes are packed by `from_numpy`; the padding is not stored.
Source: the registered data types ``struct`` and ``structured``, and zarr-extensions pull request 62; Zarr v2, "Data type
encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np

from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.element import (
    MAX_ITEMSIZE,
    Element,
    as_scalar,
    configuration_of,
    decode_base64,
    encode_base64,
    fill_error,
    from_bytes,
    is_old_zero,
    named_by_format,
    old_zero_diagnostics,
    read_by_format,
)
from tessarr.dtypes.named import from_v3
from tessarr.errors import DataTypeValidationError, MetadataValidationError, Problem, problems_of
from tessarr.types import JSON, AnyDType, Shape, ZarrFormat

MAX_NESTING = 64
"""Deepest nesting that is read: deeper records are hostile documents."""
_LIST = "fixed_size_list"
_MAX_AXES = 16
"""Most axes of a field."""


class Field(NamedTuple):
    """One field of a record."""

    name: str
    data_type: DataType
    shape: Shape = ()
    """Not empty: the field is a subarray of this shape."""


class Struct(Element):
    """A record of named fields of fixed size."""

    name = "struct"
    members: tuple[Field, ...]
    _legacy = False

    def __init__(self, *, fields: Sequence[tuple[str, DataType] | tuple[str, DataType, Shape]]) -> None:
        members = tuple(Field(field[0], field[1], *field[2:]) for field in fields)
        problems = list(_wrong(members))
        if problems:
            raise DataTypeValidationError("invalid struct data type", problems)
        vars(self)["members"] = members
        if self._nesting > MAX_NESTING:
            raise DataTypeValidationError("invalid struct data type", expected=f"at most {MAX_NESTING} levels")
        if sum(_nbytes(member) for member in members) > MAX_ITEMSIZE:
            raise DataTypeValidationError("invalid struct data type", expected="elements of less than 2 GiB")

    @property
    def fields(self) -> tuple[tuple[str, DataType] | tuple[str, DataType, Shape], ...]:
        """The fields as they were passed: ``(name, data_type)``, with a shape for subarrays."""
        return tuple(member if member.shape else (member.name, member.data_type) for member in self.members)

    @cached_property
    def _nesting(self) -> int:
        return 1 + max(m.data_type._nesting if isinstance(m.data_type, Struct) else 0 for m in self.members)

    def _key(self) -> tuple[object, ...]:
        return self.members

    def _arguments(self) -> Mapping[str, object]:
        return {"fields": self.fields}

    @cached_property
    def dtype(self) -> AnyDType:
        """NumPy's structured dtype, packed."""
        return np.dtype([(member.name, member.data_type.dtype, member.shape) for member in self.members])

    @property
    def itemsize(self) -> int:
        """The sum over all fields."""
        return sum(_nbytes(member) for member in self.members)

    # -- byte order ------------------------------------------------------------------------------------------

    @cached_property
    def orders(self) -> frozenset[str]:
        """The byte orders (``"<"``, ``">"``) of the fields."""
        found: set[str] = set()
        for member in self.members:
            if isinstance(member.data_type, Struct):
                found |= member.data_type.orders
            elif member.data_type.has_byteorder:
                little = member.data_type == member.data_type.with_byteorder("<")
                found.add("<" if little else ">")
        return frozenset(found)

    @property
    def has_byteorder(self) -> bool:
        """Whether a field has a byte order."""
        return bool(self.orders)

    def has_multi_byte_fields(self) -> bool:
        """Return `has_byteorder`, under zarr-python's name."""
        return self.has_byteorder

    def with_byteorder(self, order: str) -> DataType:
        """Return the same record with every field in `order`."""
        made = type(self)(fields=[m._replace(data_type=m.data_type.with_byteorder(order)) for m in self.members])
        vars(made)["_legacy"] = self._legacy
        return self if made == self else made

    @cached_property
    def has_lists(self) -> bool:
        """Whether a field, at any depth, is a subarray."""
        inner = (member.data_type for member in self.members)
        return any(member.shape for member in self.members) or any(
            one.has_lists for one in inner if isinstance(one, Struct)
        )

    @property
    def lacks_unit(self) -> bool:
        """Whether a field holds times without a unit."""
        return any(member.data_type.lacks_unit for member in self.members)

    # -- documents -------------------------------------------------------------------------------------------

    @property
    def field_types(self) -> tuple[DataType, ...]:
        return tuple(member.data_type for member in self.members)

    @classmethod
    @read_by_format
    def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:
        """Parse ``fields``: objects with ``name`` and ``data_type``; for ``structured`` also ``[name, data_type]``."""
        fields = configuration_of(name, configuration, ("fields",))["fields"]
        if isinstance(fields, str) or not isinstance(fields, Sequence) or not fields:
            message = f"must be a list of at least one field, got {fields!r}"
            problem = Problem(("configuration", "fields"), "type", message)
            raise DataTypeValidationError(f"invalid configuration of data type {name}", [problem])
        legacy, problems, members = name == "structured", list[Problem](), list[Field]()
        for position, field in enumerate(fields):
            try:
                members.append(_field_from_json(field, legacy))
            except DataTypeValidationError as error:
                problems += problems_of(error, "configuration", "fields", position)
        if problems:
            raise DataTypeValidationError(f"invalid configuration of data type {name}", problems)
        made = cls(fields=members)
        vars(made)["_legacy"] = legacy
        return made

    @named_by_format
    def to_json(self) -> JSON:
        """Return the object form, always named ``struct``.

        Raises `DataTypeValidationError` for fields of different byte orders.
        """
        if len(self.orders) > 1:
            raise DataTypeValidationError(
                "a v3 struct cannot hold fields of different byte orders",
                got=repr(self.to_v2()),
                hint="Rewrite the data in one byte order: DataType.with_byteorder('<')",
            )
        fields = [{"name": member.name, "data_type": _to_json(member)} for member in self.members]
        return {"name": self.name, "configuration": {"fields": fields}}

    @classmethod
    def from_v2(cls, value: Sequence[JSON], parse: Callable[[JSON], DataType]) -> Self:
        """Parse a v2 ``dtype`` list; `parse` makes the type of one field.

        As in NumPy, a field without a name is named after its position (``f1``). A subarray shape may be one integer.
        """
        members = []
        for position, item in enumerate(value):
            if isinstance(item, str) or not isinstance(item, Sequence) or len(item) not in (2, 3):
                raise _bad_v2_field(item, "[name, datatype] or [name, datatype, shape]")
            name, shape = item[0], item[2] if len(item) == 3 else ()
            if not isinstance(name, str):
                raise _bad_v2_field(item, "a string as name")
            dims = (shape,) if isinstance(shape, int) else shape
            if not isinstance(dims, Sequence) or any(type(length) is not int or length < 1 for length in dims):
                raise _bad_v2_field(item, "a list of positive integers as shape")
            members.append(Field(name or f"f{position}", parse(item[1]), tuple(dims)))  # type: ignore[arg-type]
        return cls(fields=members)

    def to_v2(self) -> JSON:
        """Return the list form; subarray shapes as lists."""
        return [
            [member.name, member.data_type.to_v2(), *([list(member.shape)] if member.shape else [])]
            for member in self.members
        ]

    # -- fill values -----------------------------------------------------------------------------------------

    def default_fill(self) -> Scalar:
        """Return the record of all fields' defaults."""
        return self._join(member.data_type.default_fill().tobytes() * prod(member.shape) for member in self.members)

    def _join(self, parts: Any) -> Scalar:
        return from_bytes(b"".join(parts), self.dtype)

    def cast_fill(self, value: object) -> Scalar:
        """Accept a NumPy record, a mapping by field name, a sequence in field order, or 0 for zero bytes."""
        scalar = as_scalar(value)
        names = [member.name for member in self.members]
        if scalar is not None and scalar.dtype == self.dtype:
            return from_bytes(scalar.tobytes(), self.dtype)
        if scalar is not None and scalar.dtype.names is not None:
            value = {name: scalar[name] for name in scalar.dtype.names}
        elif scalar is not None:
            value = scalar.item()
        if type(value) is int and value == 0:
            return from_bytes(bytes(self.itemsize), self.dtype)
        if isinstance(value, Mapping):
            if set(value) != set(names):
                raise ValueError(f"the fields {names} expected, got {list(value)}")
            value = [value[name] for name in names]
        if not isinstance(value, list | tuple) or len(value) != len(names):
            raise ValueError(f"a record of the fields {names} expected, got {value!r}")
        return self._join(_cast_member(member, item) for member, item in zip(self.members, value, strict=True))

    def fill_diagnostics(self, value: JSON, zarr_format: ZarrFormat) -> tuple[str, ...]:
        return old_zero_diagnostics(str(self.to_v2()), value, zarr_format)

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Parse, in v3, an object with the fill value of every field; in v2, and v3 ``structured``, Base64 of one
        element.
        """
        if zarr_format < 3 and is_old_zero(value):
            return from_bytes(bytes(self.itemsize), self.dtype)
        if zarr_format == 3 and isinstance(value, Mapping):
            return self._parse_object(value)
        if zarr_format == 3 and not self._legacy:
            raise fill_error(self.name, value, "an object with a member for every field")
        data = decode_base64(self.name, value)
        if len(data) != self.itemsize:
            raise fill_error(self.name, value, f"Base64 of exactly {self.itemsize} bytes")
        return from_bytes(data, self.dtype)

    def _parse_object(self, value: Mapping[str, JSON]) -> Scalar:
        names = {member.name for member in self.members}
        problems = [Problem((str(name),), "unknown", "not a field") for name in value if name not in names]
        parts = []
        for member in self.members:
            if member.name not in value:
                problems.append(Problem((member.name,), "missing", "every field needs a fill value"))
                continue
            try:
                parts.append(_parse_fill(member.data_type, value[member.name], member.shape))
            except MetadataValidationError as error:
                problems += problems_of(error, member.name)
        if problems:
            raise MetadataValidationError("invalid fill_value for data type struct", problems)
        return self._join(parts)

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return, in v3, an object with every field; in v1 and v2, Base64 of one element in the declared byte
        orders.
        """
        if zarr_format < 3:
            return encode_base64(fill.astype(self.dtype, copy=False).tobytes())
        return {member.name: _dump_fill(member.data_type, fill[member.name]) for member in self.members}


Structured = Struct
"""zarr-python's name."""


def _nbytes(member: Field) -> int:
    return (member.data_type.itemsize or 0) * prod(member.shape)


def _wrong(members: Sequence[Field]) -> Any:
    if not members:
        yield Problem(("configuration", "fields"), "value", "must have at least one field. Got ()")
    seen: set[str] = set()
    for position, member in enumerate(members):
        place = ("configuration", "fields", position)
        if type(member.name) is not str or not member.name:
            yield Problem((*place, "name"), "value", f"must be a non-empty string, got {member.name!r}")
        elif member.name in seen:
            yield Problem((*place, "name"), "value", f"{member.name!r} is used twice")
        seen.add(member.name)
        if member.data_type.itemsize is None:
            message = f"must have a fixed size, unlike {member.data_type.name}"
            yield Problem((*place, "data_type"), "value", message)


def _field_from_json(field: JSON, legacy: bool) -> Field:
    if legacy and isinstance(field, list | tuple) and len(field) == 2:
        field = {"name": field[0], "data_type": field[1]}
    if not isinstance(field, Mapping) or set(field) != {"name", "data_type"}:
        raise DataTypeValidationError(
            "invalid field of a struct", expected="an object of name and data_type", got=repr(field)
        )
    if not isinstance(field["name"], str):
        problem = Problem(("name",), "type", f"must be a string, got {field['name']!r}")
        raise DataTypeValidationError("invalid field of a struct", [problem])
    try:
        return Field(field["name"], *_from_json(field["data_type"]))
    except DataTypeValidationError as error:
        raise DataTypeValidationError("invalid field of a struct", problems_of(error, "data_type")) from error


def _from_json(value: JSON) -> tuple[DataType, Shape]:
    """Parse the type of a field: of a ``fixed_size_list`` the type of its elements, and the shape."""
    shape: list[int] = []
    while isinstance(value, Mapping) and value.get("name") == _LIST:
        configuration = value.get("configuration")
        given = configuration if isinstance(configuration, Mapping) else None
        found = configuration_of(_LIST, given, ("base_data_type", "list_size"))
        size = found["list_size"]
        if type(size) is not int or size < 1 or len(shape) == _MAX_AXES:
            message = f"must be a positive integer, in at most {_MAX_AXES} lists within each other; got {size!r}"
            raise DataTypeValidationError(
                f"invalid configuration of data type {_LIST}",
                [Problem(("configuration", "list_size"), "value", message)],
            )
        shape.append(size)
        value = found["base_data_type"]
    return from_v3(value), tuple(shape)


def _to_json(member: Field) -> JSON:
    value = member.data_type.to_json()
    for length in reversed(member.shape):
        value = {"name": _LIST, "configuration": {"base_data_type": value, "list_size": length}}
    return value


def _parse_fill(data_type: DataType, value: JSON, shape: Shape) -> bytes:
    if not shape:
        return data_type.parse_fill(value, 3).tobytes()
    if not isinstance(value, list | tuple) or len(value) != shape[0]:
        raise fill_error(_LIST, value, f"a list of {shape[0]} fill values")
    return b"".join(_parse_fill(data_type, item, shape[1:]) for item in value)


def _dump_fill(data_type: DataType, fill: Scalar) -> JSON:
    return (
        [_dump_fill(data_type, fill[at, ...]) for at in range(len(fill))] if fill.ndim else data_type.dump_fill(fill, 3)
    )


def _bad_v2_field(item: object, expected: str) -> DataTypeValidationError:
    return DataTypeValidationError("invalid field of a structured dtype", expected=expected, got=repr(item))


def _cast_member(member: Field, value: object) -> bytes:
    if member.shape:  # NumPy's casting rules apply inside subarrays
        return np.broadcast_to(np.asarray(value, dtype=member.data_type.dtype), member.shape).tobytes()
    return member.data_type.cast_fill(value).tobytes()
