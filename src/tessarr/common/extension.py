"""Import the Rust module for packages below the engines, which also work without it."""

from __future__ import annotations

from types import ModuleType

NOT_LOADED = (ImportError, SystemError)
"""Errors of importing the Rust module where it is missing or was built for another Python: a free-threaded interpreter
also finds the module of other interpreters."""


def module() -> ModuleType | None:
    """Return the Rust module; ``None`` where it is not built, or cannot be loaded."""
    try:
        from tessarr import _native
    except NOT_LOADED:
        return None
    return _native
