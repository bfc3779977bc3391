"""Undo the packing of the CF conventions: integers with ``scale_factor`` and ``add_offset`` become floats.

Source: CF conventions 1.12, section 8.1 "Packed data"; the result has the type that xarray decodes to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tessarr.dtypes.base import DataType
from tessarr.tools.sources.base import Box, SourceArray
from tessarr.types import AnyArray, AnyDType

_SCALE, _OFFSET = "scale_factor", "add_offset"
_PACKED = frozenset({
    _SCALE, _OFFSET, "_FillValue", "missing_value", "_Unsigned", "valid_min", "valid_max", "valid_range", "actual_range",
})  # fmt: skip
"""Attributes whose values are packed, or say how."""


MEANING = ("scale_factor", "add_offset", "missing_value", "_Unsigned")
"""Attributes by which packed values are unpacked."""


def is_packed(node: SourceArray) -> bool:
    dtype = numpy_type(node)
    return dtype is not None and dtype.kind in "iuf" and (_SCALE in node.attributes or _OFFSET in node.attributes)


def unpacked(node: SourceArray, dtype: AnyDType | None = None) -> SourceArray:
    """Describe an array as the floats that its elements stand for; missing ones are NaN.

    `dtype`: that of the result, by default as precise as the packed integers and the type of ``scale_factor`` ask for.

    >>> packed = SourceArray(
    ...     path="t", shape=(3,), dtype=np.dtype("i2"), read=lambda box: np.array([-1, 0, 30], "i2")[box],
    ...     attributes={"scale_factor": 0.5, "add_offset": 273.0, "units": "K"}, cf_fill=np.int16(-1),
    ... )
    >>> plain = unpacked(packed)
    >>> plain.read((slice(0, 3),)).tolist(), dict(plain.attributes)
    ([nan, 273.0, 288.0], {'units': 'K'})
    """
    dtype = dtype or unpacked_dtype(node)
    return replace(
        node,
        dtype=dtype,
        read=_reader(node, dtype),
        attributes={name: value for name, value in node.attributes.items() if name not in _PACKED},
        fill_value=np.nan,
        cf_fill=dtype.type(np.nan),
        packing={},
        keep={},
    )


def numpy_type(node: SourceArray) -> AnyDType | None:
    """Return NumPy's type of the elements; ``None``: they are of varying size."""
    if isinstance(node.dtype, DataType):
        return node.dtype.dtype
    return node.dtype if isinstance(node.dtype, np.dtype) else None


def _number(node: SourceArray, name: str) -> np.generic | None:
    """Return an attribute in the type that the file has it in; JSON knows only doubles."""
    if name in node.packing:
        return node.packing[name]
    given = node.attributes.get(name)
    return None if given is None else np.float64(np.asarray(given, np.float64).reshape(-1)[0])


def unpacked_dtype(node: SourceArray) -> AnyDType:
    """Return the type of the unpacked elements of a packed array."""
    stored = numpy_type(node)
    assert stored is not None
    scale, offset = _number(node, _SCALE), _number(node, _OFFSET)
    if offset is not None and (scale is None or scale.dtype != offset.dtype):
        return np.dtype(np.float64)
    given = (scale if scale is not None else np.float64(1)).dtype
    exact = offset is None or stored.itemsize <= 2 or stored == np.float32
    return np.dtype(np.float32 if given == np.float32 and exact and stored != np.float64 else np.float64)


def _reader(node: SourceArray, dtype: AnyDType) -> Callable[[Box], AnyArray]:
    scale, offset = _number(node, _SCALE), _number(node, _OFFSET)
    missing = [] if node.cf_fill is None else [node.cf_fill]
    given = node.attributes.get("missing_value")
    if given is not None:
        missing += list(np.asarray(given).reshape(-1))
    unsigned = str(node.attributes.get("_Unsigned", "")).lower() == "true"

    def read(box: Box) -> AnyArray:
        raw = np.asarray(node.read(box))
        values = raw.view(f"u{raw.dtype.itemsize}") if unsigned and raw.dtype.kind == "i" else raw
        plain = values.astype(dtype)
        if scale is not None:
            plain *= scale
        if offset is not None:
            plain += offset
        for value in missing:
            plain[raw == value] = np.nan
        return plain

    return read
