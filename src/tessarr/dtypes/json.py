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

from tessarr.dtypes.numeric import Plain
from tessarr.dtypes.variable import _AnyValue
from tessarr.types import JSON


class JSONValue(_AnyValue, Plain):
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
