"""The Rust module of the native engine. Private: use `tessarr.engine.native`."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

DEFAULT_CACHE_BYTES: int

class NativeError(Exception):
    """`args` is (kind, what, facts); `kind` and the names of the facts are those of `tessarr.errors`."""

    args: tuple[str, str, dict[str, Any]]

class Array:
    """A bound array, described as JSON (see `tessarr.engine.native.describe`). Immutable; safe to share by threads."""

    def __new__(cls, binding: str, store: Any | None = None, scratch: npt.NDArray[Any] | None = None) -> Self:
        """`scratch` is an array of one element that belongs to the new object from now on."""

    def read(self, dims: tuple[slice | npt.NDArray[np.int64], ...], out: npt.NDArray[Any]) -> None:
        """Fill `out` with the outer product of `dims`: per axis a slice (step >= 1) or an int64 array."""

    def element(self, index: tuple[object, ...]) -> np.generic | None:
        """The element at `index`; `None` unless that is one `int` inside per axis, and there is a free `scratch`."""

    def read_points(self, coords: tuple[npt.NDArray[np.int64], ...], out: npt.NDArray[Any]) -> None:
        """Fill the one-dimensional `out` with the points that `coords` name together."""

    def write(self, dims: tuple[slice | npt.NDArray[np.int64], ...], value: npt.NDArray[Any]) -> None:
        """Store `value`, whose shape is that of the selection `dims`."""

    def write_points(self, coords: tuple[npt.NDArray[np.int64], ...], value: npt.NDArray[Any]) -> None:
        """Store the one-dimensional `value` at the points that `coords` name together."""

def threads() -> int:
    """Threads that work on one request, the caller included."""

def set_threads(n: int) -> None:
    """Set that number; 0: the processors that this process may use."""

def set_cache_bytes(n: int) -> None:
    """Set the size of the cache of decoded chunks; 0 switches it off."""

def clear_cache() -> None:
    """Forget all cached chunks and shard indices."""

def cache_info() -> dict[str, int]:
    """What the cache holds and did: capacity, nbytes, entries, hits, misses, evictions."""
