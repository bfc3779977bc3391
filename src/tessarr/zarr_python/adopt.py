"""Make a tessarr array over an array of zarr-python."""

from __future__ import annotations

from typing import Any

from tessarr.core.array import Array
from tessarr.core.open import open_array
from tessarr.zarr_python.stores.unwrap import place_of

_OPTIONS = ("order", "write_empty_chunks", "read_missing_chunks")


def check_array(array: object) -> None:
    """Raise `TypeError` for an object that is not an array of zarr-python."""
    inner = getattr(array, "async_array", array)
    if not all(hasattr(inner, name) for name in ("metadata", "config", "store_path", "codec_pipeline")):
        raise TypeError(f"expected an array of zarr-python, got {type(array).__module__}.{type(array).__qualname__}")


def accelerate(array: Any) -> Array:
    """Make a tessarr array over the place of `array`, a ``zarr.Array`` or ``zarr.AsyncArray``; nothing is patched.

    Each of the two reads the values that the other writes, but caches the shape until it is opened again or refreshed. A store
    of a known class is unwrapped, any other is called through zarr-python's event loop; ``.store`` is the object that `array`
    has. Memory order and runtime options are those of `array`.

    Raises `TypeError` for any other object, `NodeNotFoundError` where no metadata is stored, and the errors of
    `tessarr.open_array`.

    >>> import zarr, tessarr
    >>> z = zarr.create_array({}, shape=(4,), dtype="i4", fill_value=3)
    >>> fast = tessarr.accelerate(z)
    >>> fast[:2] = 1
    >>> fast[...], z[1:3], fast.engine.name
    (array([1, 1, 3, 3], dtype=int32), array([1, 3], dtype=int32), 'native')
    """
    check_array(array)
    inner = getattr(array, "async_array", array)
    metadata, config = inner.metadata, inner.config
    place, path = place_of(inner)
    options = {name: getattr(config, name) for name in _OPTIONS if hasattr(config, name)}
    return open_array(
        place,
        path=path,
        mode="r" if place.read_only else "r+",
        zarr_format=metadata.zarr_format,
        config=options if metadata.zarr_format == 3 else {**options, "order": metadata.order},
    )
