"""Change the data type of elements, without changing integers silently."""

from __future__ import annotations

import numpy as np

from tessarr.errors import BaseZarrError, UnsupportedOperationError
from tessarr.types import AnyArray, AnyDType


def check_cast(given: AnyDType, wanted: AnyDType) -> None:
    """Raise `UnsupportedOperationError` where elements of `given` have no meaning as `wanted`, such as text as numbers."""
    if not np.can_cast(given, wanted, "same_kind") or (
        given != wanted and not {given.kind, wanted.kind} <= set("biufc")
    ):
        raise UnsupportedOperationError(
            "elements are not converted to another kind of data type",
            expected=f"a type to which NumPy casts {given} as the same kind",
            got=str(wanted),
            hint="Convert the values yourself, then write them",
        )


def cast(values: AnyArray, dtype: AnyDType) -> AnyArray:
    """Return elements in another data type. Raises `BaseZarrError` for an integer that it cannot hold, or a finite number
    that would become infinite.

    >>> cast(np.array([1, 2], "i8"), np.dtype("i2")).dtype
    dtype('int16')
    """
    if values.dtype == dtype or values.dtype.newbyteorder("=") == dtype.newbyteorder("="):
        return values
    if dtype.kind in "iu" and values.size and not np.can_cast(values.dtype, dtype):
        limits = np.iinfo(dtype)
        if int(values.min()) < limits.min or int(values.max()) > limits.max:
            raise _outside(dtype, f"{values.min()} to {values.max()}")
    try:
        with np.errstate(over="raise"):
            return values.astype(dtype)
    except FloatingPointError as error:
        raise _outside(dtype, f"{values.min()} to {values.max()}") from error


def _outside(dtype: AnyDType, got: str) -> BaseZarrError:
    return BaseZarrError(
        "the data type cannot hold these values", expected=str(dtype), got=got, hint="Choose a wider one"
    )
