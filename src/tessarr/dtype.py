"""zarr-python's ``zarr.dtype``; see `tessarr.facade.zarr3.dtype`, which imports a class at its first use."""

from typing import TYPE_CHECKING

from tessarr.facade.zarr3 import dtype as _home

if TYPE_CHECKING:
    from tessarr.facade.zarr3.dtype import *  # noqa: F403

__all__ = _home.__all__
__dir__ = _home.__dir__


def __getattr__(name: str) -> object:
    return getattr(_home, "full_registry" if name == "data_type_registry" else name)
