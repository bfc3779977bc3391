"""Import the submodules of a package lazily, as attributes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable


def submodules(
    package: str, names: str, homes: dict[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make a module's ``__getattr__`` and ``__dir__``: `names` are its submodules, `homes` maps other names to the modules
    that define them.
    """
    known = frozenset(names.split())

    def getattribute(name: str) -> object:
        if name in known:
            return importlib.import_module(f"{package}.{name}")
        home = (homes or {}).get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home), name)

    def directory() -> list[str]:
        return sorted({*vars(sys.modules[package]), *known, *(homes or {})})

    return getattribute, directory
