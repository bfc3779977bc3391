"""numcodecs, also where another package breaks its import.

numcodecs imports its optional parts, such as zfpy, as it is itself imported, and a package that it cannot cope with ends that:
``ValueError: invalid literal for int() … 'post0'`` of zfpy 1.0.1.post0. All its other codecs work without that part.

>>> from tessarr.common.numcodecs import numcodecs
>>> numcodecs.zlib.Zlib(level=1).codec_id
'zlib'
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from tessarr.errors import MissingDependencyError

LEFT_OUT: dict[str, Exception] = {}
"""The modules of numcodecs that could not be imported, and their errors; not those whose package is missing."""


def faults() -> str:
    """Say which modules were left out, and why; an empty text where none was."""
    return "; ".join(f"{name} raises {error!r}" for name, error in LEFT_OUT.items())


def _import_package() -> ModuleType:
    """Import numcodecs without the parts that raise other errors than `ImportError`, which it expects of them."""
    while True:
        for name in LEFT_OUT:
            sys.modules[name] = None  # type: ignore[assignment]  # documented: stops the import
        try:
            package = importlib.import_module("numcodecs")
            break
        except Exception as error:
            part = _part_at_fault(error)
            if isinstance(error, ImportError) and not LEFT_OUT:
                raise
            if isinstance(error, ImportError) or part in LEFT_OUT:  # it cannot do without them
                raise MissingDependencyError(f"numcodecs cannot be imported: {faults()}") from error
            LEFT_OUT[part] = error
        finally:
            for name in LEFT_OUT:
                sys.modules.pop(name, None)
    if LEFT_OUT:  # modules of the first attempt stay loaded, and unknown to the package
        for name, module in [*sys.modules.items()]:
            parent, _, child = name.rpartition(".")
            if parent == "numcodecs":
                vars(package).setdefault(child, module)
    return package


def _part_at_fault(error: Exception) -> str:
    """Return the innermost module of numcodecs that was being imported."""
    found, frames = "numcodecs", error.__traceback__
    while frames is not None:
        name = frames.tb_frame.f_globals.get("__name__", "")
        if name.startswith("numcodecs."):
            found = name
        frames = frames.tb_next
    return found


numcodecs = _import_package()
