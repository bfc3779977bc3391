"""The importer behind `tessarr.as_zarr`: finds the facade's modules under the name ``zarr``, and sets their version.

The package ``zarr.testing``, zarr-python's tests for stores that others write, is loaded from the files of an installed
zarr-python, where there is one, and tests tessarr.

A module ``zarr.x`` is a separate object that forwards to `tessarr.facade.zarr3.x` (`AliasModule`). Its ``__path__`` is a
sentinel that no other importer accepts. So ``zarr.x.y`` cannot be loaded a second time from the facade's directory, nor from
an installed zarr-python, not even by an importer earlier in ``sys.meta_path``, such as pytest's.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import tessarr
from tessarr.common.warn import warn
from tessarr.errors import ZarrDeprecationWarning
from tessarr.stores.base import Store

_FACADES: dict[int, str] = {3: "tessarr.facade.zarr3", 2: "tessarr.facade.zarr2"}
_VERSIONS: dict[int, str] = {3: tessarr.__version__, 2: "2.18.7"}
_SPAWNED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spawned")
"""The directory of the ``sitecustomize`` that installs the alias as an interpreter starts."""
_NOWHERE = "tessarr.as_zarr:"
"""The beginning of the ``__path__`` of alias modules."""


class AliasError(RuntimeError):
    """The alias cannot be installed or removed in this process as it is."""


class Status(NamedTuple):
    """Result of `status`."""

    installed: bool
    """Whether ``import zarr`` imports tessarr."""
    version: str | None
    """The version that ``zarr.__version__`` reports; ``None`` when the alias is not installed."""
    modules: tuple[str, ...]
    """The imported modules under the name ``zarr``, sorted."""
    zarr_python: str | None
    """The version of an installed zarr-python, which the alias hides; ``None`` when there is none."""

    def __str__(self) -> str:
        hidden = f"; zarr-python {self.zarr_python} is installed and hidden" if self.zarr_python else ""
        if self.installed:
            return f"`import zarr` gives tessarr {tessarr.__version__}, as zarr {self.version}{hidden}"
        return (
            "`import zarr` is not answered by tessarr; call tessarr.as_zarr.install() before the first import of zarr"
        )


class AliasModule(types.ModuleType):
    """A module under the name ``zarr``. Attributes set on this module stay here; all others are read from the facade."""

    __facade__: Any

    def __getattr__(self, name: str) -> Any:
        if name == "__facade__":
            raise AttributeError(name)
        try:
            value = getattr(self.__facade__, name)
        except AttributeError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None
        below = isinstance(value, types.ModuleType) and value.__name__ == f"{self.__facade__.__name__}.{name}"
        if below and sys.modules.get(self.__name__) is self:
            return importlib.import_module(f"{self.__name__}.{name}")
        return value

    def __dir__(self) -> list[str]:
        return sorted({*dir(self.__facade__), *getattr(self.__facade__, "__all__", ()), *self.__dict__})

    def __reduce__(self) -> tuple[Callable[[str], types.ModuleType], tuple[str]]:
        """Pickle the name alone: functions that are sent to other processes refer to modules."""
        return importlib.import_module, (self.__name__,)

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} of tessarr, {self.__facade__.__file__!r}>"


class _Distribution(importlib.metadata.Distribution):
    """The distribution ``zarr`` in ``importlib.metadata`` while the alias is installed."""

    def __init__(self, version: str) -> None:
        self._version = version

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: zarr\nVersion: {self._version}\nSummary: tessarr under the name zarr\n"

    def locate_file(self, path: Any) -> Any:
        import pathlib

        return pathlib.Path(__file__).parent / path


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find and load the modules of a facade under the name ``zarr``."""

    def __init__(self, version: Literal[2, 3]) -> None:
        self.version = _VERSIONS[version]
        self.facade = _FACADES[version]

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module under the name ``zarr``; ``None`` for any other name.

        Raises `ModuleNotFoundError` for a module that the facade lacks, so that no other importer is tried.
        """
        if fullname != "zarr" and not fullname.startswith("zarr."):
            return None
        if fullname.startswith("zarr.testing"):
            theirs = _of_zarr_python(fullname)
            if theirs is not None:
                return theirs
        try:
            found = importlib.util.find_spec(self._home(fullname))
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r} (`zarr` is tessarr here: tessarr.as_zarr)", name=fullname
            )
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=found.origin)
        spec.has_location = True
        # Every module is a package with this path, so that only this importer looks for submodules.
        spec.submodule_search_locations = [_NOWHERE + fullname]
        return spec

    def _home(self, fullname: str) -> str:
        return self.facade + fullname.removeprefix("zarr")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        """Make a module that forwards to the facade's module."""
        module = AliasModule(spec.name)
        module.__facade__ = importlib.import_module(self._home(spec.name))
        module.__doc__ = module.__facade__.__doc__
        module.__path__ = spec.submodule_search_locations or []  # otherwise it would be the facade's, by `__getattr__`
        return module

    def exec_module(self, module: Any) -> None:
        """Set ``__version__`` of the package ``zarr``; warn of modules that zarr-python 3 deprecates."""
        if module.__name__ == "zarr":
            module.__version__ = self.version
        elif module.__name__ in ("zarr.convenience", "zarr.creation") and self.facade == _FACADES[3]:
            message = (
                f"{module.__name__} is deprecated. Import these functions from the top level zarr. namespace instead."
            )
            warn(message, ZarrDeprecationWarning, through=frozenset(("importlib",)))

    def get_code(self, fullname: str) -> object:
        """Return the code of the facade's module, for ``runpy``."""
        spec = importlib.util.find_spec(self._home(fullname))
        return None if spec is None or spec.loader is None else spec.loader.get_code(spec.name)  # type: ignore[attr-defined]

    def find_distributions(self, context: object = None) -> Iterable[importlib.metadata.Distribution]:
        """Return the distribution ``zarr``, when `context` names this distribution or none."""
        name = getattr(context, "name", None)
        return [_Distribution(self.version)] if name is None or name.lower() == "zarr" else []


_installed: Alias | None = None
_SETTINGS: dict[int, dict[str, Any]] = {
    3: {
        "attributes.allow_nan": True,
        "attributes.write_empty": True,
        "zarr_python.arguments": True,
        "zarr_python.warnings": True,
        "zarr_python.auto_chunks": True,
        "zarr_python.overwrite_all": True,
        "zarr_python.only_empty": True,
        "zarr_python.both_formats": True,
        "zarr_python.little_endian": True,
        "zarr_python.only_given_names": True,
        "zarr_python.given_attributes": True,
        "zarr_python.info": True,
        "zarr_python.memory_urls": True,
        "zarr_python.storage_options": True,
        "zarr_python.documents": True,
        "zarr_python.all_members": True,
    },
    2: {
        "attributes.allow_nan": True,
        "zarr_python.auto_chunks": True,
        "zarr_python.overwrite_all": True,
        "zarr_python.both_formats": True,
        "zarr_python.little_endian": True,
        "zarr_python.only_given_names": True,
        "zarr_python.given_attributes": True,
        "zarr_python.info": True,
        "zarr_python.memory_urls": True,
        "zarr_python.storage_options": True,
        "zarr_python.all_members": True,
        "zarr_python.absolute_names": True,
        "zarr_python.consolidated_on_request": True,
        "default_zarr_format": 2,
    },
}
"""Version of the alias → defaults of tessarr's settings that make tessarr behave like zarr-python."""
_settings: list[Callable[[], None]] = []
"""Restores the settings that `install` changed."""


def install(version: Literal[2, 3] = 3) -> None:
    """Answer ``import zarr`` with tessarr from now on, in this process and in those that it spawns.

    ``version=2`` provides the names and the version of zarr-python 2, and makes Zarr v2 the default format of new arrays and
    groups; ``version=3`` hides these names, because programs detect the major version of zarr-python by them.

    Does nothing when the same version is installed already.

    Raises `AliasError` when zarr-python was imported already, because its objects are in use then, and when the alias is
    installed with another version.
    """
    global _installed
    if version not in _FACADES:
        raise ValueError(f"version is 2 or 3, not {version!r}")
    if _installed is not None:
        if _installed.version != _VERSIONS[version]:
            raise AliasError(
                f"tessarr already answers as zarr {_installed.version}; call tessarr.as_zarr.uninstall() first"
            )
        if sys.meta_path[:1] != [_installed]:
            sys.meta_path[:] = [_installed, *(finder for finder in sys.meta_path if finder is not _installed)]
        return
    loaded = sys.modules.get("zarr")
    if loaded is not None:
        raise AliasError(
            f"zarr-python is imported already, from {getattr(loaded, '__file__', None)}. Call tessarr.as_zarr.install() before "
            "anything imports zarr; in a notebook restart the kernel first. Under pytest, switch zarr-python's plugin off "
            "with -p no:zarr, or run python -m tessarr.as_zarr -m pytest"
        )
    _installed = Alias(version)
    sys.meta_path.insert(0, _installed)
    importlib.invalidate_caches()
    try:
        importlib.import_module("zarr")
        _switch(version)
    except BaseException:
        uninstall()
        raise
    os.environ["TESSARR_AS_ZARR"] = str(version)
    _change_python_path([_SPAWNED])


def _change_python_path(first: list[str]) -> None:
    """Put `first` at the beginning of ``PYTHONPATH``, which child processes inherit; without `first` remove our entry."""
    rest = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != _SPAWNED]
    if first or rest:
        os.environ["PYTHONPATH"] = os.pathsep.join([*first, *rest])
    else:
        os.environ.pop("PYTHONPATH", None)


def _switch(version: Literal[2, 3] | None) -> None:
    """Apply the settings and store classes of the alias `version` to tessarr, or restore tessarr's own (``None``)."""
    from tessarr.settings import config
    from tessarr.stores.url import shape_with

    shapes: dict[int | None, Callable[[Any], Any]] = {3: _shape, 2: _shape_of_2}
    shape_with(shapes.get(version))
    if _settings:
        _settings.pop()()
    if version is not None:
        _settings.append(config.set_defaults(_SETTINGS[version]))


def _shape(store: Store) -> Any:
    from tessarr.facade.zarr3 import storage
    from tessarr.facade.zarr3.storage._inner import adapt_store
    from tessarr.facade.zarr3.storage._memory import hold_buffers
    from tessarr.stores.memory.store import MemoryStore

    getattr(storage, type(store).__name__, None)  # importing the class registers it
    if type(store) is MemoryStore:
        hold_buffers(store)
    return adapt_store(store)


def _shape_of_2(store: Store) -> Any:
    """Return a directory as zarr-python 2's store of it, which has a ``path``; stores of other places as they are."""
    from tessarr.stores.local.store import LocalStore
    from tessarr.stores.local.zarr2 import DirectoryStore

    return DirectoryStore(store.root, read_only=store.read_only) if type(store) is LocalStore else None


def uninstall() -> None:
    """Remove the alias, so that ``import zarr`` loads zarr-python. Does nothing when the alias is not installed.

    Objects that were imported under the name ``zarr`` keep working.
    """
    global _installed
    if _installed is None:
        return
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not _installed]
    for name in _loaded():
        del sys.modules[name]
    _installed = None
    _switch(None)
    importlib.invalidate_caches()
    os.environ.pop("TESSARR_AS_ZARR", None)
    _change_python_path([])


def status() -> Status:
    """Return whether the alias is installed, its version, and the version of zarr-python that the alias hides."""
    return Status(
        _installed is not None,
        None if _installed is None else _installed.version,
        tuple(sorted(_loaded())) if _installed is not None else (),
        _zarr_python(sys.path),
    )


def _loaded() -> list[str]:
    """List the modules under the name ``zarr``."""
    return [name for name in sys.modules if name == "zarr" or name.startswith("zarr.")]


def _zarr_python(paths: Sequence[str]) -> str | None:
    found = _distribution(paths)
    return None if found is None else found.version


def _distribution(paths: Sequence[str]) -> importlib.metadata.Distribution | None:
    context = importlib.metadata.DistributionFinder.Context(name="zarr", path=list(paths))
    return next(iter(importlib.metadata.MetadataPathFinder.find_distributions(context)), None)


def _of_zarr_python(fullname: str) -> importlib.machinery.ModuleSpec | None:
    """Find the spec of a module in the files of an installed zarr-python; ``None`` where there is none."""
    hidden = _distribution(sys.path)
    if hidden is None:
        return None
    name = fullname.rpartition(".")[2]
    folder = os.path.join(str(hidden.locate_file("zarr")), *fullname.split(".")[1:-1])
    package = os.path.join(folder, name, "__init__.py")
    is_package = os.path.exists(package)
    path = package if is_package else os.path.join(folder, f"{name}.py")
    if not os.path.exists(path):
        return None
    places = [_NOWHERE + fullname] if is_package else None
    return importlib.util.spec_from_file_location(fullname, path, submodule_search_locations=places)
