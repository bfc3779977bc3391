"""Notice functions of zarr-python that a program replaced: mocks, spies, patches of other packages.

tessarr calls none of the functions that a codec pipeline, a codec or a store of zarr-python consists of. Where one of them was
replaced before an array is bound, or a method of the store object at any time, the replacement is meant to run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

_ALWAYS = ("zarr.core.codec_pipeline", "zarr.core.chunk_utils", "zarr.codecs.sharding")
"""The modules through which every chunk passes in zarr-python; 3.1 lacks the second."""
_OTHERS = ("zarr.codecs.", "zarr.storage._")
"""The beginnings of the names of modules that define codecs and stores."""

_originals: dict[str, list[tuple[ModuleType | type, dict[str, object]]]] = {}
"""Module name → the module and each class that it defines, with their functions, as they were first seen."""


def remember() -> None:
    """Record the functions of the loaded modules of codecs, stores and codec pipelines, unless they are known."""
    for name in [*sys.modules]:
        if name in _ALWAYS or name.startswith(_OTHERS):
            _functions_of(name)


def replaced(objects: Iterable[object]) -> str | None:
    """Return the name of a replaced function: of a codec pipeline, or of the modules of the classes of `objects`."""
    for name in {*_ALWAYS, *(type(obj).__module__ for obj in objects)}:
        for owner, functions in _functions_of(name):
            present = vars(owner)
            # A loop takes twice as long, and this runs for each opened array.
            if not functions.items() <= present.items():
                changed = next(name for name, function in functions.items() if present.get(name) is not function)
                return f"{owner.__name__}.{changed}"
    return None


def replaced_method(obj: object) -> str | None:
    """Return the name of a method of the class of `obj` that an attribute of `obj` replaces."""
    kind = type(obj)
    for name in vars(obj):
        if callable(getattr(kind, name, None)):
            return f"{kind.__name__}.{name}"
    return None


def _functions_of(name: str) -> list[tuple[ModuleType | type, dict[str, object]]]:
    found = _originals.get(name)
    if found is None:
        module = sys.modules.get(name)
        owners: list[ModuleType | type] = [] if module is None else [module, *_classes(module)]
        found = [(owner, _functions(owner)) for owner in owners]
        if module is not None:
            _originals[name] = found
    return found


def _classes(module: ModuleType) -> list[type]:
    return [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]


def _functions(owner: ModuleType | type) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(owner).items()
        if not isinstance(value, type) and (callable(value) or isinstance(value, classmethod | staticmethod | property))
    }
