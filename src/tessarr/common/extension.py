"""The Rust module, for those below the engines that are faster with it and do without it."""

from __future__ import annotations

from types import ModuleType

NOT_LOADED = (ImportError, SystemError)
"""What importing the Rust module raises where it is not there, or is one for another build of Python: free-threaded
interpreters find the module of the others beside their own."""


def module() -> ModuleType | None:
    """The Rust module; ``None`` where it is not built, or cannot be loaded."""
    try:
        from tessarr import _native
    except NOT_LOADED:
        return None
    return _native
