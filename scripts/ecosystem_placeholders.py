"""A pytest plugin for zarr-python's own suite with tessarr in place: undocumented names that tessarr lacks fail in use.

The suite's modules, and the one conftest of all, import undocumented functions of zarr-python at their heads. One that tessarr
has not would keep every test of a file from running, also those that use documented names alone, which are the ones that count
(`ecosystem_public.py`). So ``from zarr.… import name`` gives a placeholder for a name that tessarr lacks, and a module of
placeholders for a module that zarr-python has.
"""

from __future__ import annotations

import dis
import importlib.machinery
import os
import sys
import types
from pathlib import Path
from typing import Any

from tessarr.as_zarr import _alias


class _Kind(type):
    """A class that is there to be named: subclassed, subscripted, called, asked for attributes."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return placeholder(f"{cls.__name__}.{name}")

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __iter__(cls) -> Any:
        return iter(())

    def __len__(cls) -> int:
        return 0

    def __contains__(cls, item: Any) -> bool:
        return False

    def __bool__(cls) -> bool:
        return True

    def __or__(cls, other: Any) -> Any:
        return Any

    __ror__ = __or__


class _Instance(metaclass=_Kind):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return placeholder(f"{type(self).__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args else self


def placeholder(name: str) -> Any:
    """What stands for `name`."""
    return _Kind(name, (_Instance,), {})


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return placeholder(f"{self.__name__}.{name}")


class _Modules:
    """Modules that zarr-python has and tessarr has not."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.place = next(Path(entry, "zarr") for entry in sys.path if Path(entry, "zarr", "core").is_dir())

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The module that tessarr has, or one of placeholders."""
        try:
            return self.inner.find_spec(fullname, path, target)
        except ModuleNotFoundError:
            base = self.place.joinpath(*fullname.split(".")[1:])
            if fullname.startswith("zarr.") and (base.with_suffix(".py").exists() or base.is_dir()):
                return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]
            raise

    def create_module(self, spec: Any) -> Any:
        """A module of placeholders."""
        return _Module(spec.name)

    def exec_module(self, module: Any) -> None:
        """Leave it empty."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _imports(frame: Any) -> bool:
    """Whether a frame is at ``from … import name``, or at the head of a test module, outside of functions."""
    code = frame.f_code
    at_head = code.co_name in ("<module>", "<lambda>", "<genexpr>") and f"{os.sep}tests{os.sep}" in code.co_filename
    return bool(at_head or dis.opname[code.co_code[frame.f_lasti]] == "IMPORT_FROM")


def install() -> None:
    """Put the placeholders under the alias."""
    original = _alias.AliasModule.__getattr__

    def get(self: Any, name: str) -> Any:
        try:
            return original(self, name)
        except AttributeError:
            if name.startswith("__") or not _imports(sys._getframe(1)):
                raise
            return placeholder(f"{self.__name__}.{name}")

    _alias.AliasModule.__getattr__ = get  # type: ignore[method-assign]
    finder: Any = _Modules(_alias._installed)
    sys.meta_path[sys.meta_path.index(finder.inner)] = finder


install()
