"""zarr-python 2's ``zarr.meta``: data types and fill values, as documents of Zarr v2 have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from tessarr.dtypes.parse import from_numpy, from_v2
from tessarr.types import JSON, AnyDType


def encode_fill_value(v: object, dtype: DTypeLike, object_codec: object = None) -> object:
    """Return the JSON of a fill value of `dtype`; ``None`` and values of objects stay as they are.

    >>> encode_fill_value(np.nan, "<f4"), encode_fill_value(b"ab", "S2"), encode_fill_value(None, "<i4")
    ('NaN', 'YWI=', None)
    """
    native = np.dtype(dtype)
    if v is None or native.hasobject:
        return v
    data_type = from_numpy(native, object_codec=getattr(object_codec, "codec_id", None))
    return data_type.dump_fill(data_type.cast_fill(v), 2)


def decode_fill_value(v: JSON, dtype: DTypeLike, object_codec: object = None) -> object:
    """Return the value that JSON of a fill value stands for, of `dtype`.

    >>> decode_fill_value("NaN", "<f4")
    np.float32(nan)
    """
    native = np.dtype(dtype)
    if v is None or native.hasobject:
        return v
    fill = from_numpy(native, object_codec=getattr(object_codec, "codec_id", None)).parse_fill(v, 2)
    return np.asarray(fill, native)[()]


def encode_dtype(d: DTypeLike) -> object:
    """Return the JSON of a data type.

    >>> encode_dtype(np.dtype("f8")), encode_dtype([("a", "u1")])
    ('<f8', [['a', '|u1']])
    """
    native = np.dtype(d)
    return native.str if native.fields is None else [list(field) for field in native.descr]


def decode_dtype(d: JSON) -> AnyDType:
    """Return the data type that JSON stands for.

    >>> decode_dtype([["a", "|u1"]])
    dtype([('a', 'u1')])
    """
    return np.dtype(from_v2(d, None).dtype)
