"""The Rust module of the native engine. Private: use `tessarr.engine.native.engine`."""

from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.types import Buffer

DEFAULT_CACHE_BYTES: int

class NativeError(Exception):
    """`args` is (kind, what, facts); `kind` and the names of the facts are those of `tessarr.errors`."""

    args: tuple[str, str, dict[str, Any]]

_At: TypeAlias = tuple[slice | npt.NDArray[np.int64], ...]

class Array:
    """A bound array, described as JSON (see `tessarr.engine.native.describe`). Immutable; safe to share by threads."""

    def __new__(cls, binding: str, scratch: npt.NDArray[Any] | None = None) -> Self:
        """`scratch` is an array of one element that belongs to the new object from now on."""

    def element(self, index: tuple[object, ...]) -> np.generic | None:
        """The element at `index`; `None` unless that is one `int` inside per axis, `scratch` is free and the store is
        local files."""

    def read(self, at: _At, points: bool, out: npt.NDArray[Any]) -> None:
        """Fill `out` with the selection `at`: with `points` the positions name points together, and `out` is
        one-dimensional; else the outer product of one slice (step >= 1) or list of positions per axis is meant."""

    def write(self, at: _At, points: bool, value: npt.NDArray[Any]) -> None:
        """Store `value`, whose shape is that of the selection `at`."""

    def plan_read(self, at: _At, points: bool, out: npt.NDArray[Any]) -> ReadPlan:
        """Plan a `read` from a store that Python serves."""

    def plan_write(self, at: _At, points: bool, value: npt.NDArray[Any]) -> WritePlan:
        """Plan a `write` to a store that Python serves."""

    def forget(self, key: str) -> None:
        """Drop what the cache has of the value of `key`, which was written."""

class ReadPlan:
    """A selection and the memory it is read into; its parts, one per chunk, are read in any number of `ChunkReads`."""

    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int:
        """Decoded bytes that are fetched for a part; the first stands for all."""

    def start(self, first: int, stop: int, whole_below: int) -> ChunkReads:
        """Begin to read parts ``first:stop``; shards of at most `whole_below` decoded bytes are requested whole."""

class ChunkReads:
    """Parts of a `ReadPlan` in progress."""

    def requests(self) -> list[tuple[int, str, list[tuple[int, int | None]] | None]]:
        """What is needed now: id, key, and ranges (or `None` for the whole value)."""

    def receive(self, responses: Sequence[tuple[Any, list[Buffer] | None, str | None]]) -> None:
        """Take and decode responses: id, a buffer per range (`None`: no such key), version (where it is known)."""

class WritePlan:
    """A selection and the values to write there."""

    def __len__(self) -> int: ...
    def part(self, number: int) -> tuple[tuple[int, ...], str, bool]:
        """Grid index and key of a chunk, and whether it is covered."""

    def encode(self, number: int, old: Buffer | None) -> bytes | None:
        """The new value of a chunk that held `old`; `None` when there is nothing to store."""

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

def read_files(paths: Sequence[str], most: int) -> list[bytes | Literal[False] | None]:
    """The values of files of at most `most` bytes each: ``None`` where there is none, ``False`` where Python must look
    itself, as the file is larger or cannot be read."""

def vlen_texts(data: bytes, at: int, count: int, widest: int) -> tuple[bytes | list[str], int, int] | None:
    """`count` texts of a vlen-utf8 chunk from the position `at` on: `(texts, width, end)`.

    `texts` holds them padded with NUL to `width` bytes, at most `widest`, or, with a `width` of 0, is a list. `None`: they are
    not there, or not UTF-8.
    """

def vlen_bytes(data: bytes, at: int, count: int) -> tuple[list[bytes], int] | None:
    """`count` elements of a vlen-bytes chunk from the position `at` on, and the end. `None`: they are not there."""

def vlen_join(texts: list[str | None]) -> bytes | None:
    """The texts each after its length. `None`: another object is among them, or text that has no UTF-8."""

def encode_step(name: str, configuration: str, data: bytes) -> bytes:
    """What the codec `name` of the engine makes of `data`; `configuration` is JSON, as the engine has it."""

def decode_step(name: str, configuration: str, data: bytes, nbytes: int) -> bytes:
    """The `nbytes` bytes that `data` was made of."""
