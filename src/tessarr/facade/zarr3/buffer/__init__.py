"""zarr-python's ``zarr.buffer``, for codecs and stores that were written for it; tessarr passes plain Python buffers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessarr.facade.zarr3.buffer.cpu import BufferPrototype


def default_buffer_prototype() -> BufferPrototype:
    """Return the value that zarr-python's ``prototype=`` arguments take; tessarr's functions accept and ignore it."""
    from tessarr.facade.zarr3.buffer.cpu import buffer_prototype

    return buffer_prototype


def __getattr__(name: str) -> Any:
    if name == "cpu":
        return importlib.import_module("tessarr.facade.zarr3.buffer.cpu")
    raise AttributeError(f"module 'tessarr.buffer' has no attribute {name!r}")


__all__ = ["default_buffer_prototype"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "cpu"})
