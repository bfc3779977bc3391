"""zarr-python's ``zarr.buffer``. tessarr passes plain Python buffers; the names are here for code that mentions them."""

from __future__ import annotations


def default_buffer_prototype() -> None:
    """What zarr-python's ``prototype=`` arguments take; tessarr accepts and ignores it."""


__all__ = ["default_buffer_prototype"]
