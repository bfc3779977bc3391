"""zarr-python's ``zarr.creation``: create arrays."""

from tessarr.core.creation.arrays import create
from tessarr.core.creation.shorthands import (
    array,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    open_like,
    zeros,
    zeros_like,
)
from tessarr.core.open import open_array

__all__ = [
    "array",
    "create",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "open_array",
    "open_like",
    "zeros",
    "zeros_like",
]
