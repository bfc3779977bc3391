"""Warn at the line that called the package.

The warnings of this package name the file and line of the first frame outside of it, at any call depth. So the ``default``
filter shows each warning once per line of the user's program, and Python's own filters show deprecations to scripts. A
``stacklevel`` would not do: the depth differs from call to call, and a worker thread has no frame of the caller at all.
`context_with_caller` carries the location to such threads.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from types import FrameType
from typing import NamedTuple

from tessarr.errors import ZarrRuntimeWarning, ZarrUserWarning
from tessarr.settings import config as settings


class Diagnostic(NamedTuple):
    """Something unusual about a stored document that was read nevertheless."""

    message: str
    category: type[Warning] = ZarrRuntimeWarning
    names_array: bool = False
    """Whether the warning begins with the place of the array, as zarr-python's does."""


class Location(NamedTuple):
    """A line of Python code, for `warnings.warn_explicit`."""

    filename: str
    lineno: int
    module: str
    registry: dict[str | tuple[str, type[Warning], int], int]
    """The module's ``__warningregistry__``, in which `warnings` records what it has shown."""


_caller: ContextVar[Location | None] = ContextVar("tessarr_caller", default=None)
"""Set only in contexts made by `context_with_caller`, for threads that do not have the caller on their stack."""

_is_silent: ContextVar[bool] = ContextVar("tessarr_is_silent", default=False)
_issued = 0
"""Changed by every warning; two at once may count as one."""
_OURS = __name__.partition(".")[0]
_DRIVERS = frozenset(("asyncio", "concurrent", "contextlib", "functools", "threading", "weakref"))
"""Modules of the standard library that call functions on behalf of other code, whose line the warning names."""


def warn(
    message: str, category: type[Warning], *, through: frozenset[str] = frozenset(), module: str | None = None
) -> None:
    """Issue a warning at the caller's line. `through` names packages that called on behalf of other code.

    `module` is what filters by module compare, in place of the caller's module.
    """
    global _issued
    _issued += 1
    if _is_silent.get():
        return
    place = caller(through)
    warnings.warn_explicit(
        message, category, place.filename, place.lineno, module=module or place.module, registry=place.registry
    )


@contextmanager
def without_warnings() -> Iterator[None]:
    """Issue no warnings in this context: for what another call, of which this one is a part, warns of."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


def warnings_issued() -> int:
    """Return a number that every warning changes: who keeps a result compares it, so that the next caller is warned too."""
    return _issued


def warn_as_zarr_python(message: str, category: type[Warning] = ZarrUserWarning, *, module: str | None = None) -> None:
    """Issue a warning that zarr-python issues and tessarr itself does not, where the settings ask for those.

    `module` names the module of zarr-python to which the warning belongs there, where that is not the caller's: a package
    whose tests make the warnings of its own modules errors does not get this one as an error.
    """
    if settings.get("zarr_python.warnings"):
        warn(message, category, module=module)


def report(diagnostics: Iterable[Diagnostic], place: str = "") -> None:
    """Issue a warning at the caller's line for each of `diagnostics` of the node at `place`, a URL."""
    for message, category, names_array in diagnostics:
        warn(f"Array {place!r}: {message}" if names_array and place else message, category)


def caller(through: frozenset[str] = frozenset()) -> Location:
    """Find the line that called the package.

    It is the innermost frame outside of the package and of the standard library's event loops and thread pools, or the
    location that `context_with_caller` carried here. In a task that no frame of the user's program awaits on this stack it
    is the line that runs the event loop; without any such frame, the innermost one outside of the package.
    """
    carried = _caller.get()
    if carried is not None:
        return carried
    frame: FrameType | None = sys._getframe(1)
    fallback: FrameType | None = None
    while frame is not None:
        # Not by file: methods that `dataclasses` generates have no file.
        root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if root != _OURS:
            if root not in _DRIVERS and root not in through:
                return _location(frame)
            fallback = fallback or frame
        frame = frame.f_back
    return _location(fallback or sys._getframe(1))


def _location(frame: FrameType) -> Location:
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    return Location(frame.f_code.co_filename, frame.f_lineno, str(names.get("__name__", "<string>")), registry)


def context_with_caller() -> Context:
    """Copy the present context for another thread, where `warn` then names the line that `caller` finds here."""
    context = copy_context()
    if _caller.get() is None:
        context.run(_caller.set, caller())
    return context
