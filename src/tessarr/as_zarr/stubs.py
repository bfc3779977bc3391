"""Stub files of ``zarr`` as the alias answers it, for editors and type checkers, which do not run `install`.

``python -m tessarr.as_zarr --stubs typings`` writes a folder ``zarr`` into ``typings``, where pyright (and so Pylance) looks by
itself; for mypy add the folder to ``mypy_path``. The stubs name tessarr's classes and functions and hold no types of their
own. They belong to one project: a distribution with a top-level package ``zarr`` would break environments with zarr-python.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tessarr.as_zarr._alias import _FACADES, _VERSIONS

_HEAD = "# Written by `python -m tessarr.as_zarr --stubs`, tessarr {version}. Write it again rather than change it.\n"


def write_stubs(directory: str | Path, version: Literal[2, 3] = 3) -> list[Path]:
    """Write the stubs of ``zarr``, as `install` with this `version` answers it, below `directory`; return their paths.

    >>> import tempfile
    >>> paths = write_stubs(tempfile.mkdtemp())
    >>> "from tessarr.core.array import Array as Array" in paths[0].read_text().splitlines()
    True

    Files of earlier stubs are replaced. Raises `FileExistsError` where a folder ``zarr`` holds something else.
    """
    top = Path(directory) / "zarr"
    stale = sorted(top.rglob("*")) if top.exists() else []
    foreign = [path for path in stale if path.is_file() and not _is_ours(path)]
    if foreign:
        raise FileExistsError(f"{foreign[0]} is not a stub that tessarr wrote; choose another folder than {directory}")
    for path in stale:
        if path.is_file():
            path.unlink()
    written = []
    facade = _FACADES[version]
    for module in _modules(facade):
        name = module.__name__.removeprefix(facade).lstrip(".")
        folder = top.joinpath(*name.split(".")) if name else top
        path = folder / "__init__.pyi" if hasattr(module, "__path__") else folder.with_suffix(".pyi")
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [*_lines(module, facade)] + (["__version__: str"] if not name else [])
        path.write_text(_HEAD.format(version=_VERSIONS[3]) + "".join(f"{line}\n" for line in lines), encoding="utf-8")
        written.append(path)
    return written


def _is_ours(path: Path) -> bool:
    return path.suffix == ".pyi" and "--stubs" in path.read_text(encoding="utf-8").partition("\n")[0]


def _modules(facade: str) -> Iterator[types.ModuleType]:
    package = importlib.import_module(facade)
    yield package
    for found in pkgutil.walk_packages(package.__path__, f"{facade}."):
        yield importlib.import_module(found.name)


def _lines(module: types.ModuleType, facade: str) -> Iterator[str]:
    """Write one import for each name of `module`, from the place that defines it."""
    names = {*dir(module), *getattr(module, "__all__", ())}
    for name in sorted(name for name in names if not name.startswith("__")):
        value = getattr(module, name, None)
        if isinstance(value, types.ModuleType):
            if value.__name__ == f"{module.__name__}.{name}":
                yield f"from {value.__name__.replace(facade, 'zarr').rpartition('.')[0]} import {name} as {name}"
            elif name in getattr(module, "__all__", ()):
                yield f"import {value.__name__} as {name}"
        elif name in getattr(module, "__all__", ()) or str(getattr(value, "__module__", "")).startswith("tessarr"):
            home = _home(module, name, value)
            if home is not None:
                yield f"from {home[0]} import {home[1]} as {name}"


def _home(module: types.ModuleType, name: str, value: object) -> tuple[str, str] | None:
    """Find the module, and the name there, under which a type checker finds `value`; ``None`` for a value without one."""
    own = (str(getattr(value, "__module__", "")), str(getattr(value, "__qualname__", "")))
    if getattr(sys.modules.get(own[0]), own[1], None) is value:
        return own
    if name in vars(module):
        return module.__name__, name
    for candidate in sorted(sys.modules):
        if candidate.startswith(("tessarr.", "numcodecs.")) and vars(sys.modules[candidate]).get(name) is value:
            return candidate, name
    return None
