"""Warn of data types that zarr-python calls unstable, where the settings ask for zarr-python's warnings.

zarr-python 3.4 warns (`UnstableSpecificationWarning`) whenever it writes a data type in format 3 of which it knows no
specification: bytes of fixed length (``S``, ``V``) and of varying length. 3.1, the last release for CPython 3.11, also warns
of text of fixed length (``U``) and of structs.

>>> from tessarr.dtypes.raw import NullTerminatedBytes
>>> from tessarr.dtypes.struct import Struct
>>> [*unstable_types(Struct(fields=[("name", NullTerminatedBytes(length=5))]), old=False)]
[(NullTerminatedBytes(length=5), 'zarr.core.dtype.npy.bytes')]

Source: ``to_json`` of the classes in ``zarr.core.dtype.npy`` of zarr-python 3.1.6 and 3.4.2.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tessarr.common.warn import warn_as_zarr_python
from tessarr.dtypes.base import DataType
from tessarr.errors import UnstableSpecificationWarning

_UNSTABLE = {"null_terminated_bytes": "bytes", "raw_bytes": "bytes", "bytes": "bytes"}
"""Name of the data type → the module of ``zarr.core.dtype.npy`` that warns."""
_OLD = {**_UNSTABLE, "fixed_length_utf32": "string", "struct": "structured"}
"""The same of zarr-python 3.1."""
OLD = sys.version_info < (3, 12)
"""Whether zarr-python 3.1 is the last release for this Python."""


def warn_of_unstable(data_type: DataType) -> None:
    """Warn (`UnstableSpecificationWarning`) where zarr-python does when it writes `data_type` in format 3."""
    for found, module in unstable_types(data_type, old=OLD):
        warn_as_zarr_python(
            f"The data type ({found}) does not have a Zarr V3 specification that zarr-python knows: other libraries may "
            "not read the array",
            UnstableSpecificationWarning,
            module=module,
        )


def unstable_types(data_type: DataType, *, old: bool) -> Iterator[tuple[DataType, str]]:
    """Yield `data_type` and the types of its fields as far as zarr-python calls them unstable, with its module that warns.

    `old`: as zarr-python 3.1 does.
    """
    module = (_OLD if old else _UNSTABLE).get(data_type.name)
    if module is not None:
        yield data_type, f"zarr.core.dtype.npy.{module}"
    for field in data_type.field_types:
        yield from unstable_types(field, old=old)
