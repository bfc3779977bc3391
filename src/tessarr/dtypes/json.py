"""The ``json`` data type: any JSON value, held as a Python object.

Source: zarr-extensions pull request 9 (proposed). v3 name ``json``, with the codec ``vlen-utf8``; in v2 the filter ``json2``,
whose chunks are another format (`tessarr.dtypes.variable`).

>>> data_type = JSONValue()
>>> data_type.to_json(), data_type.parse_fill({"some": ["value"]}, 3)[()]
('json', {'some': ['value']})

The fill value may be any JSON value, null too. Numbers outside JSON (NaN, infinities) are errors.
"""

from __future__ import annotations

from typing import ClassVar

from tessarr.common.strict_json import plain
from tessarr.dtypes.base import Scalar
from tessarr.dtypes.numeric import Plain
from tessarr.dtypes.variable import _Variable
from tessarr.types import JSON, ZarrFormat


class JSONValue(_Variable, Plain):
    """JSON values."""

    name = "json"
    object_codec: ClassVar[str | None] = None
    fill_may_be_null: ClassVar[bool] = True

    def to_v2(self) -> JSON:
        """Raise `DataTypeValidationError`: v2 stores such values as objects with a filter."""
        from tessarr.errors import DataTypeValidationError

        raise DataTypeValidationError(
            "v2 has no data type for JSON values", hint="Use dtype object and the filter json2"
        )

    def default_fill(self) -> Scalar:
        """Return null."""
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
