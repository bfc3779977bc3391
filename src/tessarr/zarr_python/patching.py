"""Patch zarr-python: tessarr's engines serve its selections, array by array, until the patch is undone.

The patch replaces the selection methods of ``zarr.Array``, and the two functions that all of zarr-python's reads and writes of
elements call, ``zarr.core.array._get_selection`` and ``_set_selection``. A replacement falls back to the original where its
result might differ: for errors, methods of subclasses, GPU buffers, fields, ``out=`` and arrays that
`tessarr.zarr_python.binding` does not bind. Importing this module replaces nothing.
"""

from __future__ import annotations

import importlib.metadata
import threading
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np

from tessarr.engine.bound import BoundArray
from tessarr.indexing.base import Request
from tessarr.zarr_python import originals, selections, serve
from tessarr.zarr_python.adopt import check_array
from tessarr.zarr_python.binding import Binding, binding, binding_of
from tessarr.zarr_python.counts import COUNTS, FallbackError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArrayConfig
    from zarr.core.metadata import ArrayMetadata
    from zarr.storage import StorePath
    from zarr.types import AnyArray, AnyAsyncArray

TESTED = ("3.1.6", "3.2.1", "3.3.0", "3.4.0", "3.4.1", "3.4.2")
"""The releases of zarr-python that the tests pass with; of the first and the last, zarr-python's own tests do too."""


_Call: TypeAlias = Callable[..., Any]
"""A function of zarr-python, or what stands in its place: its arguments differ between releases."""
_Make: TypeAlias = Callable[[_Call, type], _Call]
_Find: TypeAlias = Callable[[BoundArray, object], Request | None]


class PatchError(RuntimeError):
    """The patch cannot be applied or undone in this process."""


class _Replaced(NamedTuple):
    owner: type | ModuleType
    name: str
    original: _Call
    ours: _Call


_state_lock = threading.RLock()
_replaced: list[_Replaced] = []
_holders: list[patch] = []
"""Calls of `patch` that are not undone."""
_is_strict = False


class patch:  # noqa: N801 - called like a function, used like a context manager
    """Serve the selections of ``zarr.Array`` by tessarr's engines from now on, in this process.

    Call it from a program, not from a library: the patch affects the whole process. A second call changes nothing but `strict`.
    As a context manager, in any number of threads, it is undone at the end of the last one, unless `patch` was also called
    without. `strict` raises `FallbackError` in place of falling back to zarr-python; without it a second call leaves that as it
    is. `force` also patches releases that are not in `TESTED`.

    Raises `PatchError` where zarr-python is another release, or is missing.

    >>> import numpy as np, zarr, tessarr.zarr_python
    >>> z = zarr.create_array({}, shape=(4, 4), chunks=(2, 2), dtype="i4")
    >>> with tessarr.zarr_python.patch():
    ...     z[1] = 7
    ...     print(z[:2, 0], tessarr.zarr_python.stats().reads)
    [0 7] 1
    """

    def __init__(self, *, strict: bool | None = None, force: bool = False) -> None:
        self._strict = strict
        with _state_lock:
            if not _replaced:
                _check_version(force)
                _apply()
                COUNTS.reset()
            _hold([*_holders, self])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with _state_lock:
            if _holders == [self]:
                unpatch()
            else:
                _hold([holder for holder in _holders if holder is not self])


def _hold(holders: list[patch]) -> None:
    """Let these calls hold the patch: the last of them that says so decides whether it is strict."""
    global _is_strict
    _holders[:] = holders
    _is_strict = next((held._strict for held in reversed(holders) if held._strict is not None), False)


def unpatch() -> None:
    """Undo the patch, with all blocks that hold it; no effect if there is none.

    Raises `PatchError`, and changes nothing, where another package replaced the same functions after the patch: its
    replacements may still call ours.
    """
    with _state_lock:
        for owner, name, _, ours in _replaced:
            present = vars(owner)[name]
            if present is not ours:
                raise PatchError(
                    f"{owner.__name__}.{name} was replaced after the patch, by {present.__module__}.{present.__qualname__}: "
                    "undo that replacement first"
                )
        for owner, name, original, _ in _replaced:
            setattr(owner, name, original)
        _replaced.clear()
        _hold([])


def is_patched() -> bool:
    """Return whether the patch is applied in this process."""
    return bool(_replaced)


def explain(array: AnyArray | AnyAsyncArray) -> str:
    """Return which engine serves `array` (a ``zarr.Array`` or ``zarr.AsyncArray``) under the patch, or why zarr-python does.

    >>> import zarr, tessarr.zarr_python
    >>> tessarr.zarr_python.explain(zarr.create_array({}, shape=(4,), dtype="i4"))
    'tessarr: the native engine: serves this array'

    Raises `TypeError` for any other object.
    """
    check_array(array)
    found = binding_of(array)
    own = (
        ""
        if type(array).__module__.startswith("zarr.core.array")
        else f"; its class {type(array).__name__} may add to that"
    )
    return f"{'zarr-python' if found.bound is None else 'tessarr'}: {found.why}{own}"


# -- applying ------------------------------------------------------------------------------------------------------------


def _check_version(force: bool) -> None:
    try:
        version = importlib.metadata.version("zarr")
    except importlib.metadata.PackageNotFoundError:
        raise PatchError("zarr-python is not installed, so that there is nothing to patch") from None
    import zarr

    if not hasattr(zarr, "__file__") or "tessarr" in repr(zarr):
        raise PatchError("`zarr` is tessarr in this process (tessarr.as_zarr), so that there is nothing to patch")
    if version not in TESTED and not force:
        raise PatchError(
            f"the patch was tested with zarr-python {', '.join(TESTED)}, and this is {version}: patch(force=True) applies it "
            "nevertheless"
        )


def _apply() -> None:
    from zarr.core import array as module

    originals.remember()
    _replace(module.Array, "__getitem__", _getter(selections.basic, bracket=True))
    _replace(module.Array, "__setitem__", _setter(selections.basic))
    for name, find in _SELECTIONS.items():
        _replace(module.Array, f"get_{name}_selection", _getter(find))
        _replace(module.Array, f"set_{name}_selection", _setter(find))
    _replace(module, "_get_selection", _async_getter)
    _replace(module, "_set_selection", _async_setter)


_SELECTIONS = {
    "basic": selections.basic,
    "orthogonal": selections.orthogonal,
    "coordinate": selections.coordinate,
    "mask": selections.mask,
}


def _replace(owner: type | ModuleType, name: str, make: _Make) -> None:
    from zarr.core.array import Array

    original = vars(owner)[name]
    ours = wraps(original)(make(original, Array))
    _replaced.append(_Replaced(owner, name, original, ours))
    setattr(owner, name, ours)


def _is_default(prototype: object) -> bool:
    """Return whether results are NumPy arrays: neither the argument nor zarr-python's configuration names other buffers."""
    from zarr.core.buffer import cpu
    from zarr.core.config import config

    if prototype is not None:
        return bool(prototype == cpu.buffer_prototype)
    settings = config.config
    return bool(settings["buffer"] == "zarr.buffer.cpu.Buffer" and settings["ndbuffer"] == "zarr.buffer.cpu.NDBuffer")


# -- the methods of Array ------------------------------------------------------------------------------------------------


_NOT_SERVED = object()
"""Sentinel: the selection falls back to zarr-python."""


def _getter(find: _Find, *, bracket: bool = False) -> _Make:
    is_basic = find is selections.basic

    def served(found: Binding, selection: object) -> object:
        bound, engine = found.bound, found.engine
        assert bound is not None
        assert engine is not None
        if (
            bracket
            and isinstance(selection, tuple)
            and selection.__class__ is tuple
            and selection
            and selection[-1].__class__ is int
        ):
            element = engine.element(bound, selection)
            if element is not None:
                return np.array(element, bound.dtype)
        request = find(bound, selection)
        if request is None:
            return _NOT_SERVED
        result = serve.read(found, request)
        is_scalar = is_basic and not request.shape and not (bracket and _is_orthogonal(selection, bound.shape))
        return result[()] if is_scalar else result

    def make(original: _Call, array_class: type) -> _Call:
        def get(self: AnyArray, selection: object = Ellipsis, **options: object) -> object:
            if self.__class__ is array_class and not options and _is_default(None):
                found = _binding_of_inner(self)
                if found.bound is not None:
                    try:
                        result = served(found, selection)
                    except Exception:  # the original raises its own error, or succeeds
                        result = _NOT_SERVED
                    if result is not _NOT_SERVED:
                        COUNTS.read()
                        return result
            return original(self, selection, **options)

        return get

    return make


def _is_orthogonal(selection: object, shape: tuple[int, ...]) -> bool:
    """Return whether zarr-python takes brackets for an orthogonal selection, whose result is an array even for one element."""
    items = selection if isinstance(selection, tuple) and selection.__class__ is tuple else (selection,)
    return bool(shape) and all(isinstance(item, int | slice) for item in items)


def _setter(find: _Find) -> _Make:
    def is_served(found: Binding, selection: object, value: object) -> bool:
        bound = found.bound
        assert bound is not None
        request = find(bound, selection)
        if request is None:
            return False
        wanted = serve.value_for(request, value, bound.dtype)
        if wanted is not None:
            serve.write(found, request, wanted)
        return wanted is not None

    def make(original: _Call, array_class: type) -> _Call:
        def set_(self: AnyArray, selection: object, value: object, **options: object) -> None:
            if self.__class__ is array_class and not options and _is_default(None):
                found = _binding_of_inner(self)
                if found.bound is not None and found.bound.read_only is None:
                    try:
                        done = is_served(found, selection, value)
                    except Exception:  # the original raises its own error, or succeeds
                        done = False
                    if done:
                        COUNTS.write()
                        return
            original(self, selection, value, **options)

        return set_

    return make


def _binding_of_inner(array: AnyArray) -> Binding:
    inner = array._async_array
    return binding(inner.metadata, inner.config, inner.store_path, inner.codec_pipeline)


# -- the functions that asynchronous and all other selections call -------------------------------------------------------


def _async_getter(original: _Call, _: type) -> _Call:
    async def get_selection(
        store_path: StorePath, metadata: ArrayMetadata, codec_pipeline: object, config: ArrayConfig, *rest: object,
        prototype: object = None, out: object = None, fields: object = None, **more: object
    ) -> object:  # fmt: skip
        found = binding(metadata, config, store_path, codec_pipeline)
        indexer = more["indexer"] if "indexer" in more else rest[-1]
        why = found.why if found.bound is None else _fallback_reason(prototype, out=out, fields=fields)
        request = None if why else selections.of_indexer(indexer)
        if request is not None:
            try:
                result = await serve.read_async(found, request)
            except Exception as error:
                why = _failure_reason(error)
            else:
                COUNTS.read()
                is_scalar = type(indexer).__name__ == "BasicIndexer" and not request.shape
                return result[()] if is_scalar else result
        _fall_back(why or f"a selection by {type(indexer).__name__}")
        return await original(
            store_path, metadata, codec_pipeline, config, *rest, prototype=prototype, out=out, fields=fields, **more
        )

    return get_selection


def _async_setter(original: _Call, _: type) -> _Call:
    async def set_selection(
        store_path: StorePath, metadata: ArrayMetadata, codec_pipeline: object, config: ArrayConfig, *rest: object,
        prototype: object = None, fields: object = None, **more: object
    ) -> None:  # fmt: skip
        found = binding(metadata, config, store_path, codec_pipeline)
        named = dict(zip(("value", "indexer"), reversed(rest), strict=False)) | more
        why = found.why if found.bound is None else found.bound.read_only or _fallback_reason(prototype, fields=fields)
        if not why:
            try:
                if await _is_written(found, named["indexer"], named["value"]):
                    COUNTS.write()
                    return
                why = "a value that is neither a scalar nor of the selection's shape"
            except Exception as error:
                why = _failure_reason(error)
        _fall_back(why)
        await original(store_path, metadata, codec_pipeline, config, *rest, prototype=prototype, fields=fields, **more)

    return set_selection


async def _is_written(found: Binding, indexer: object, value: object) -> bool:
    assert found.bound is not None
    request = selections.of_indexer(indexer)
    wanted = None if request is None else serve.value_for(request, value, found.bound.dtype)
    if request is not None and wanted is not None:
        await serve.write_async(found, request, wanted)
    return wanted is not None


def _fallback_reason(prototype: object, *, out: object = None, fields: object = None) -> str:
    if not _is_default(prototype):
        return "the prototype has other buffers than NumPy's"
    if out is not None:
        return "the result goes to an out= argument"
    return "fields of a structured type are selected" if fields else ""


def _failure_reason(error: Exception) -> str:
    if _is_strict:
        raise error
    return f"tessarr raised {type(error).__name__}"


def _fall_back(why: str) -> None:
    COUNTS.fall_back(why)
    if _is_strict:
        raise FallbackError(why)
