"""The patch: zarr-python's selections answered by tessarr's engines, array by array, until it is taken back.

Replaced are the selection methods of ``zarr.Array`` and the two functions that all of zarr-python's reading and writing of
elements goes through, ``zarr.core.array._get_selection`` and ``_set_selection``. Each replacement serves what it surely can and
calls the original for everything else, so that errors are always the original's, and so are subclasses' own methods, GPU
buffers, fields, ``out=`` and arrays that `tessarr.zarr_python.binding` does not bind. Nothing is replaced on import.
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
from tessarr.zarr_python import selections, serve
from tessarr.zarr_python.binding import Binding, binding, binding_of
from tessarr.zarr_python.counts import COUNTS

if TYPE_CHECKING:
    from zarr.core.array_spec import ArrayConfig
    from zarr.core.metadata import ArrayMetadata
    from zarr.storage import StorePath
    from zarr.types import AnyArray, AnyAsyncArray

TESTED = ("3.1.6", "3.4.2")
"""The releases of zarr-python whose own tests pass with the patch."""


_Call: TypeAlias = Callable[..., Any]
"""A function of zarr-python, or what stands in its place: its arguments differ between releases."""
_Make: TypeAlias = Callable[[_Call, type], _Call]
_Find: TypeAlias = Callable[[BoundArray, object], Request | None]


class PatchError(RuntimeError):
    """The patch cannot be applied or taken back in this process as it is."""


class FallbackError(RuntimeError):
    """Under ``patch(strict=True)``: zarr-python itself would have had to serve this."""


class _Replaced(NamedTuple):
    owner: type | ModuleType
    name: str
    original: _Call
    ours: _Call


_CHANGING = threading.RLock()
_replaced: list[_Replaced] = []
_is_strict = False


class patch:  # noqa: N801 - called like a function, used like a context manager
    """Answer the selections of ``zarr.Array`` with tessarr's engines from now on, in this process.

    To be called by the program that runs, not by a library: it is seen by everybody. A second call has no effect. Used as a
    context manager it is taken back at the end, unless it was there before. `strict` raises `FallbackError` wherever
    zarr-python would have to serve an array itself. `force` also patches releases that are not among `TESTED`.

    Raises `PatchError` where zarr-python is another release, or is missing.

    >>> import numpy as np, zarr, tessarr.zarr_python
    >>> z = zarr.create_array({}, shape=(4, 4), chunks=(2, 2), dtype="i4")
    >>> with tessarr.zarr_python.patch():
    ...     z[1] = 7
    ...     print(z[:2, 0], tessarr.zarr_python.stats().reads)
    [0 7] 1
    """

    def __init__(self, *, strict: bool = False, force: bool = False) -> None:
        global _is_strict
        with _CHANGING:
            self._is_first = not _replaced
            self._was_strict = _is_strict
            if self._is_first:
                _check_version(force)
                _apply()
                COUNTS.reset()
            _is_strict = strict

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        global _is_strict
        if self._is_first:
            unpatch()
        else:
            _is_strict = self._was_strict


def unpatch() -> None:
    """Take the patch back; no effect where there is none.

    Raises `PatchError`, and changes nothing, where another package replaced the same functions after the patch: what it put
    there may still call them.
    """
    global _is_strict
    with _CHANGING:
        for owner, name, _, ours in _replaced:
            there = vars(owner)[name]
            if there is not ours:
                raise PatchError(
                    f"{owner.__name__}.{name} was replaced after the patch, by {there.__module__}.{there.__qualname__}: "
                    "take that back first"
                )
        for owner, name, original, _ in _replaced:
            setattr(owner, name, original)
        _replaced.clear()
        _is_strict = False


def is_patched() -> bool:
    """Whether the patch is applied in this process."""
    return bool(_replaced)


def explain(array: AnyArray | AnyAsyncArray) -> str:
    """Say which engine serves `array` (a ``zarr.Array`` or ``zarr.AsyncArray``) under the patch, or why zarr-python does.

    >>> import zarr, tessarr.zarr_python
    >>> tessarr.zarr_python.explain(zarr.create_array({}, shape=(4,), dtype="i4"))
    'tessarr: the native engine: serves this array'
    """
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
        raise PatchError("zarr-python is not installed: there is nothing to patch") from None
    import zarr

    if not hasattr(zarr, "__file__") or "tessarr" in repr(zarr):
        raise PatchError("`zarr` is tessarr in this process (tessarr.as_zarr): there is nothing to patch")
    if version not in TESTED and not force:
        raise PatchError(
            f"the patch was tested with zarr-python {', '.join(TESTED)}, and this is {version}: patch(force=True) applies it "
            "all the same"
        )


def _apply() -> None:
    from zarr.core import array as module

    _replace(module.Array, "__getitem__", _getting(selections.basic, bracket=True))
    _replace(module.Array, "__setitem__", _setting(selections.basic))
    for name, find in _SELECTIONS.items():
        _replace(module.Array, f"get_{name}_selection", _getting(find))
        _replace(module.Array, f"set_{name}_selection", _setting(find))
    _replace(module, "_get_selection", _getting_async)
    _replace(module, "_set_selection", _setting_async)


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
    """Whether arrays are to be NumPy's: no other buffers are asked for, by the argument or by zarr-python's configuration."""
    from zarr.core.buffer import cpu
    from zarr.core.config import config

    if prototype is not None:
        return bool(prototype == cpu.buffer_prototype)
    settings = config.config
    return bool(settings["buffer"] == "zarr.buffer.cpu.Buffer" and settings["ndbuffer"] == "zarr.buffer.cpu.NDBuffer")


# -- the methods of Array ------------------------------------------------------------------------------------------------


_MISSED = object()
"""What zarr-python has to do itself."""


def _getting(find: _Find, *, bracket: bool = False) -> _Make:
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
            return _MISSED
        result = serve.read(found, request)
        is_scalar = is_basic and not request.shape and not (bracket and _is_orthogonal(selection, bound.shape))
        return result[()] if is_scalar else result

    def make(original: _Call, exactly: type) -> _Call:
        def get(self: AnyArray, selection: object = Ellipsis, **options: object) -> object:
            if self.__class__ is exactly and not options and _is_default(None):
                found = _found(self)
                if found.bound is not None:
                    try:
                        result = served(found, selection)
                    except Exception:  # the original raises its own error, or knows better
                        result = _MISSED
                    if result is not _MISSED:
                        COUNTS.read()
                        return result
            return original(self, selection, **options)

        return get

    return make


def _is_orthogonal(selection: object, shape: tuple[int, ...]) -> bool:
    """Whether brackets mean an orthogonal selection to zarr-python, whose result is an array even if it is one element."""
    items = selection if isinstance(selection, tuple) and selection.__class__ is tuple else (selection,)
    return bool(shape) and all(isinstance(item, int | slice) for item in items)


def _setting(find: _Find) -> _Make:
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

    def make(original: _Call, exactly: type) -> _Call:
        def set_(self: AnyArray, selection: object, value: object, **options: object) -> None:
            if self.__class__ is exactly and not options and _is_default(None):
                found = _found(self)
                if found.bound is not None and found.bound.read_only is None:
                    try:
                        done = is_served(found, selection, value)
                    except Exception:  # the original raises its own error, or knows better
                        done = False
                    if done:
                        COUNTS.write()
                        return
            original(self, selection, value, **options)

        return set_

    return make


def _found(array: AnyArray) -> Binding:
    inner = array._async_array
    return binding(inner.metadata, inner.config, inner.store_path, inner.codec_pipeline)


# -- what asynchronous and all other selections go through ----------------------------------------------------------------


def _getting_async(original: _Call, _: type) -> _Call:
    async def get_selection(
        store_path: StorePath, metadata: ArrayMetadata, codec_pipeline: object, config: ArrayConfig, *rest: object,
        prototype: object = None, out: object = None, fields: object = None, **more: object
    ) -> object:  # fmt: skip
        found = binding(metadata, config, store_path, codec_pipeline)
        indexer = more["indexer"] if "indexer" in more else rest[-1]
        why = found.why if found.bound is None else _why_not(prototype, out=out, fields=fields)
        request = None if why else selections.of_indexer(indexer)
        if request is not None:
            try:
                result = await serve.read_async(found, request)
            except Exception as error:
                why = _failed(error)
            else:
                COUNTS.read()
                is_scalar = type(indexer).__name__ == "BasicIndexer" and not request.shape
                return result[()] if is_scalar else result
        _fall_back(why or f"a selection by {type(indexer).__name__}")
        return await original(
            store_path, metadata, codec_pipeline, config, *rest, prototype=prototype, out=out, fields=fields, **more
        )

    return get_selection


def _setting_async(original: _Call, _: type) -> _Call:
    async def set_selection(
        store_path: StorePath, metadata: ArrayMetadata, codec_pipeline: object, config: ArrayConfig, *rest: object,
        prototype: object = None, fields: object = None, **more: object
    ) -> None:  # fmt: skip
        found = binding(metadata, config, store_path, codec_pipeline)
        named = dict(zip(("value", "indexer"), reversed(rest), strict=False)) | more
        why = found.why if found.bound is None else found.bound.read_only or _why_not(prototype, fields=fields)
        if not why:
            try:
                if await _is_written(found, named["indexer"], named["value"]):
                    COUNTS.write()
                    return
                why = "a value that is neither a scalar nor of the selection's shape"
            except Exception as error:
                why = _failed(error)
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


def _why_not(prototype: object, *, out: object = None, fields: object = None) -> str:
    if not _is_default(prototype):
        return "other buffers than NumPy's are asked for"
    if out is not None:
        return "an out= is to be filled"
    return "fields of a structured type are selected" if fields else ""


def _failed(error: Exception) -> str:
    if _is_strict:
        raise error
    return f"tessarr could not: {type(error).__name__}"


def _fall_back(why: str) -> None:
    COUNTS.fall_back(why)
    if _is_strict:
        raise FallbackError(f"zarr-python itself would have to serve this: {why}")
