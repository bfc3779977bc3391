"""Choose the engine that serves an array, once, when the array is bound.

``config["engine"]`` is ``"auto"`` (the native engine where it supports the array), ``"reference"`` or ``"native"``.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, cast

from tessarr.common.extension import NOT_LOADED
from tessarr.engine.base import Engine, HasEngine
from tessarr.engine.bound import BoundArray
from tessarr.errors import UnsupportedOperationError
from tessarr.stores.local.store import LocalStore

NOT_BUILT = "it was not built when tessarr was installed, because a Rust toolchain or a crate registry was missing"
_COARSE = ", and caches no chunks: this file system rounds times, so that a replaced file may look unchanged"
_BUILD = "Set engine to 'auto', or install Rust (rustup.rs) and then tessarr again with pip's --force-reinstall"


class Choice(NamedTuple):
    """An engine, and the reason for its choice."""

    engine: Engine
    reason: str

    @property
    def name(self) -> str:
        """Name of the engine: "native" or "reference"; of arrays made of arrays "virtual"."""
        return self.engine.name

    def __str__(self) -> str:
        return f"{self.engine.name} ({self.reason})"


def choose(bound: BoundArray) -> Choice:
    """Choose the engine for `bound`.

    Raises `UnsupportedOperationError` when the configuration requires the native engine, which does not support the array.
    """
    from tessarr.settings import config

    kind: type = type(bound.store)
    if _has_engine(kind):
        return Choice(cast("HasEngine", bound.store).engine_of(bound.path), "its elements are those of other arrays")
    wanted = config.get("engine", "auto")
    if wanted == "reference":
        return Choice(_reference(), "set in the configuration")
    native, missing = _native()
    why_not = missing if native is None else native.supports(bound)
    if native is not None and why_not is None:
        coarse = isinstance(bound.store, LocalStore) and bound.store.has_coarse_times
        return Choice(native, f"serves this array{_COARSE if coarse else ''}")
    if wanted == "native":
        raise UnsupportedOperationError(
            f"the native engine cannot serve this array: {why_not}",
            path="/" + bound.path,
            hint=_BUILD if why_not == NOT_BUILT else "Set engine to 'auto'",
        )
    return Choice(_reference(), f"the native engine cannot: {why_not}")


def may_be_native() -> bool:
    """Return whether the native engine is built, and not ruled out by the configuration."""
    from tessarr.settings import config

    return config.get("engine", "auto") != "reference" and _native()[0] is not None


@functools.cache
def _has_engine(kind: type) -> bool:
    return issubclass(kind, HasEngine)


@functools.cache
def _reference() -> Engine:
    from tessarr.engine.reference.engine import ReferenceEngine

    return ReferenceEngine()


def _native() -> tuple[Engine | None, str]:
    try:
        # Import the extension first: without it, `engine.native` need not be loaded for every array.
        import tessarr._native  # noqa: F401
        from tessarr.engine.native.engine import NativeEngine
    except NOT_LOADED as error:
        return None, why_not_loaded(error)
    return NativeEngine(), ""


def why_not_loaded(error: BaseException) -> str:
    """Return the reason why the Rust module cannot be imported: `NOT_BUILT`, or the text of `error`."""
    from importlib.util import find_spec

    return NOT_BUILT if find_spec("tessarr._native") is None else f"it cannot be loaded ({error})"
