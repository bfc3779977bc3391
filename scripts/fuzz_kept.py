"""Fuzz what is done with arrays of other writers: their values stay, or nothing is changed. A target of `fuzz_targets`."""

from __future__ import annotations

import json
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from fuzz_members import Member, Target, damage_packed, most_nbytes, pack, unpack

import tessarr
from tessarr.errors import TessarrError
from tessarr.storage import LocalStore, MemoryStore, SQLiteStore
from tessarr.stores.base import Store
from tessarr.tools.check import check
from tessarr.tools.convert import convert
from tessarr.tools.migrate import migrate
from tessarr.tools.repair import repair

_LARGEST_NBYTES = 1 << 17
"""Bytes of an array, and of one of its chunks, that something is done with."""
_LOSSY = re.compile(
    rb"quantize|bitround|zfp|fixedscale|scale_offset|cast_value|astype|categorize|jpeg|packbits|delta|vlen-array"
)
"""Codecs that do not keep each value."""

_Do = Callable[[Store, Any, np.random.Generator], "tuple[Store, str]"]


def kept(arrays: list[dict[str, bytes]]) -> Target:
    """Fuzz each operation over small arrays of other writers."""
    seeds = [pack(values) for values in arrays]
    return Target({name: Member(seeds, _run(do), damage_packed) for name, do in _OPERATIONS.items()}, {})


def _run(do: _Do) -> Callable[[bytes], None]:
    """Read an array, do something with it, and compare what is where it should be; after an error, what was there."""

    def run(data: bytes) -> None:
        values, number = unpack(data), zlib.crc32(data)
        # Attributes that are not JSON would be refused by most operations.
        with _stored(values, number) as store, tessarr.config.set({"attributes.allow_nan": True}):
            array, before = _read(store, "", small=True)
            if before is None:
                return
            if {key: store.get(key) for key in store.list()} != values:
                raise AssertionError("reading changed the store")
            exactly = do in (_copy_keys, _move, _consolidate, _repair) or not _LOSSY.search(data)
            try:
                place, path = do(store, before, np.random.default_rng(number))
            except TessarrError:
                _compare(array, before, store, "", exactly=exactly)
                raise
            _compare(array, before, place, path, exactly=exactly)

    return run


@contextmanager
def _stored(values: dict[str, bytes], number: int) -> Iterator[Store]:
    """Store `values`: half of all in memory, the others in a directory, or in a database, which have other locks."""
    if number % 2:
        yield MemoryStore({**values})
        return
    with tempfile.TemporaryDirectory(prefix="tessarr-fuzz-") as folder:
        store = SQLiteStore(f"{folder}/values.db") if number % 8 == 0 else LocalStore(folder)
        with closing(store):
            for key, value in values.items():
                store.set(key, value)
            yield store


def _read(store: Store, path: str, *, small: bool = False) -> tuple[Any, Any]:
    """Read a whole array; ``None`` where it should be small, and is not."""
    array: Any = tessarr.open_array(store, path=path, mode="r")
    if not small:
        return array, np.asarray(array[...])
    if most_nbytes(array) > _LARGEST_NBYTES or array.nchunks > 1000:
        return array, None
    return array, np.asarray(array[...])


def _compare(array: Any, before: Any, store: Store, path: str, *, exactly: bool) -> None:
    """Compare values, fill values that are given, and attributes but the one that means the names of dimensions in v2."""
    try:
        other, after = _read(store, path)
    except TessarrError as error:
        raise AssertionError(f"it cannot be read any more: {type(error).__name__}: {error}") from error
    if before.shape != after.shape or (exactly and _bits(before) != _bits(after)):
        raise AssertionError(f"other values: {array.dtype} {array.shape}, then {other.dtype} {other.shape}")
    if array.fill_value is not None and repr(array.fill_value) != repr(other.fill_value):
        raise AssertionError(f"another fill value: {array.fill_value!r}, then {other.fill_value!r}")
    names = {*array.attrs, *other.attrs} - {"_ARRAY_DIMENSIONS"}
    if any(_json(array.attrs.get(name, ...)) != _json(other.attrs.get(name, ...)) for name in names):
        raise AssertionError("other attributes")


def _json(value: object) -> str:
    """JSON in the order of the names, which format 2 does not keep; NaN is equal to NaN."""
    return json.dumps(value, sort_keys=True, default=repr)


def _bits(values: Any) -> tuple[Any, ...]:
    if values.dtype.kind in "OT":
        return values.shape, [repr(value) for value in values.ravel().tolist()]
    # Formats differ in which byte order they can name.
    native = values if values.dtype.names else values.astype(values.dtype.newbyteorder("="))
    return values.shape, native.dtype.str, native.tobytes()


# -- operations: each returns where the values of the array are then -----------------------------------------------------


def _copy_keys(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:  # noqa: ARG001
    dest = MemoryStore()
    tessarr.copy_store(store, dest)
    return dest, ""


def _copy(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:  # noqa: ARG001
    dest = MemoryStore()
    group: Any = tessarr.create_group(dest, zarr_format=2 + int(rng.integers(2)))
    tessarr.copy(tessarr.open_array(store, mode="r"), group, name="x")
    return dest, "x"


def _in_group(store: Store) -> Any:
    """Return a group that has a copy of the array as its member ``x``."""
    group: Any = tessarr.create_group(zarr_format=tessarr.open_array(store, mode="r").metadata.zarr_format)
    tessarr.copy_store(store, group.store, dest_path="x")
    return group


def _move(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:  # noqa: ARG001
    group = _in_group(store)
    group.move("x", "y/z")
    return group.store, "y/z"


def _consolidate(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:  # noqa: ARG001
    dest = _in_group(store).store
    tessarr.consolidate_metadata(dest)
    return dest, "x"


def _migrate(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:  # noqa: ARG001
    migrate(store, to_format=2 + int(rng.integers(2)), remove_old=rng.random() < 0.5)  # type: ignore[arg-type]
    return store, ""


def _convert(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:
    dest = MemoryStore()
    chunks: Any = tuple(int(n) for n in rng.choice([1, 2, 5, 7], before.ndim)) if rng.random() < 0.5 else "keep"
    convert(store, dest, zarr_format=2 + int(rng.integers(2)), chunks=chunks, verify=rng.random() < 0.3)
    return dest, ""


def _cut(array: Any, shape: tuple[int, ...]) -> None:
    # Of format 1 a database deletes no chunks.
    array.resize(shape, delete_outside_chunks=array.zarr_format > 1)


def _resize(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:
    array = tessarr.open_array(store, mode="r+")
    array.resize(tuple(n + int(rng.integers(3)) for n in before.shape))
    _cut(array, before.shape)
    return store, ""


def _append(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:
    if before.ndim:
        array = tessarr.open_array(store, mode="r+")
        array.append(before[: int(rng.integers(1, 3))])
        _cut(array, before.shape)
    return store, ""


def _write(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:
    """Write the whole back, or a part."""
    box = tuple(slice(*sorted(int(n) for n in rng.integers(n + 1, size=2))) for n in before.shape)
    place = ... if rng.random() < 0.5 else box
    tessarr.open_array(store, mode="r+")[place] = before[place]
    return store, ""


def _repair(store: Store, before: Any, rng: np.random.Generator) -> tuple[Store, str]:  # noqa: ARG001
    repair(check(store), store, dry_run=False)
    return store, ""


_OPERATIONS: dict[str, _Do] = {
    "copied-keys": _copy_keys,
    "copied": _copy,
    "moved": _move,
    "consolidated": _consolidate,
    "migrated": _migrate,
    "converted": _convert,
    "resized": _resize,
    "appended-to": _append,
    "written": _write,
    "repaired": _repair,
}
