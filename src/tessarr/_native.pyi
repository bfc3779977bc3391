"""The Rust module of the native engine. Private: use `tessarr.engine.native.engine`."""

from collections.abc import Sequence
from typing import Any, Final, Literal, Self, TypeAlias, final, type_check_only

import numpy as np
import numpy.typing as npt

from tessarr.stores.fetch import Fetch
from tessarr.types import AnyArray, Buffer

__all__ = [
    "DEFAULT_CACHE_BYTES",
    "Array",
    "ComparedFiles",
    "FileSystem",
    "NativeError",
    "ReadPlan",
    "StagedFiles",
    "WritePlan",
    "cache_info",
    "clear_cache",
    "create_file",
    "decode_step",
    "encode_step",
    "read_values",
    "set_cache_bytes",
    "set_threads",
    "threads",
    "vlen_decode",
    "vlen_encode",
]

DEFAULT_CACHE_BYTES: int

class NativeError(Exception):
    """An error of the native engine: `args` is (kind, what, facts); kind and facts are named as in `tessarr.errors`."""

    args: tuple[str, str, dict[str, Any]]

@final
class FileSystem:
    """The file system of an open directory. On Linux only."""

    def __new__(cls, path: str) -> Self: ...
    @property
    def kind(self) -> str | None:
        """``None``: a network file system, or an unknown one."""
    def sync(self) -> None:
        """Sync all of it (``syncfs``). From Linux 5.8 on, errors since the directory was opened are reported."""

_At: TypeAlias = tuple[slice | npt.NDArray[np.int64], ...]

@final
class Array:
    """A bound array, described as JSON (see `tessarr.engine.native.describe`). Immutable; safe to share by threads."""

    def __new__(cls, binding: str, scratch: AnyArray | None = None) -> Self:
        """Bind an array; `scratch` is an array of one element, owned by the new object from now on."""

    def element(self, index: tuple[object, ...]) -> np.generic | None:
        """Read the element at `index`; `None` unless `index` has one `int` within bounds per axis, `scratch` is free and
        the store is a local directory."""

    def read(self, at: _At, points: bool, out: AnyArray) -> None:
        """Fill `out` with the selection `at`: with `points` the positions together name points, and `out` is 1-d; else `at`
        is the outer product of one slice (step >= 1) or list of positions per axis."""

    def write(self, at: _At, points: bool, value: AnyArray) -> None:
        """Store `value`, whose shape is that of the selection `at`."""

    def plan_read(self, at: _At, points: bool, out: AnyArray) -> ReadPlan:
        """Plan a `read` from a store that Python serves."""

    def plan_write(self, at: _At, points: bool, value: AnyArray) -> WritePlan:
        """Plan a `write` to a store that Python serves."""

    def forget(self, key: str) -> None:
        """Drop cached data of the value of `key`, which was written."""

@final
class ReadPlan:
    """Hold a selection and the output memory; its parts, one per chunk, are read in any number of `ChunkReads`."""

    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int:
        """Return how many decoded bytes are fetched for the first part, which is representative."""

    def keys(self) -> list[str]:
        """List the keys of the chunks of all parts."""

    def read_extents(
        self,
        files: Sequence[tuple[str, str | None]],
        values: Sequence[tuple[Sequence[tuple[int, int, int | None]], int | None] | None],
        whole_below: int,
    ) -> None:
        """Read all parts from extents of local files: `files` are paths, with versions where these are known; of each value
        (`None`: missing), its extents (number of the file, offset, bytes or `None` for the rest of the file) and its CRC-32,
        if known.
        """

    def start(self, first: int, stop: int, whole_below: int) -> ChunkReads:
        """Begin to read parts ``first:stop``; shards of at most `whole_below` decoded bytes are requested whole."""

@final
@type_check_only
class ChunkReads:
    """Read parts of a `ReadPlan`, in progress."""

    def requests(self) -> list[tuple[int, str, list[tuple[int, int | None]] | None]]:
        """Return the requests needed now: id, key, and ranges (or `None` for the whole value)."""

    def receive(self, responses: Sequence[tuple[Any, list[Buffer] | None, str | None]]) -> None:
        """Receive and decode responses: id, a buffer per range (`None`: no such key), version (where known)."""

@final
class WritePlan:
    """Hold a selection and the values to write there."""

    def __len__(self) -> int: ...
    def part(self, number: int) -> tuple[tuple[int, ...], str, bool]:
        """Return coords and key of a chunk, and whether the selection covers it."""

    def is_cut(self, number: int) -> bool:
        """Whether the end of the array cuts a chunk, and the selection covers all else of it."""

    def encode_covered(self, first: int, stop: int) -> list[tuple[str, bytes | None]] | None:
        """Encode chunks: their keys and values (`None`: nothing is to be stored). `None`: the selection does not cover one."""

    def stage_covered(
        self, first: int, stop: int, files: StagedFiles
    ) -> list[tuple[str, tuple[str, int] | None]] | None:
        """Encode chunks to staged files: keys, and version and bytes of each file (`None`: nothing is to be stored).

        `None`: the selection does not cover one, or a file could not be written, and none was.
        """

    def encode(self, number: int, old: Buffer | None) -> bytes | None:
        """Encode the new value of a chunk whose stored value is `old`; `None` when nothing is to be stored."""

@final
class StagedFiles:
    """Hold the files that a transaction stages for keys below a directory."""

    CHECKS_LINKS: Final[bool]
    """Whether `write` refuses links that lead out of the directory."""

    def __new__(cls, root: str, identifier: str) -> Self: ...
    def write(self, values: Sequence[tuple[str, bytes]]) -> list[str] | None:
        """Write files for keys: their versions, without the device. ``None``: none was written."""

    def compare(self, keys: Sequence[tuple[str, str | None]], locks: int) -> ComparedFiles | None:
        """Compare keys (key, version of its staged file without the device; `None`: nothing is staged), of which the first
        `locks` may have a lock file. ``None``: a name is too long. Raises `OSError`."""

    def place(self, compared: ComparedFiles, first: int, stop: int) -> bool:
        """Rename the staged files of the keys `first` to `stop` over their values, in any order.

        Return whether all were renamed, which another version than the compared one, or a failure, prevents.
        """

@final
class ComparedFiles:
    """Hold what there was for keys when they were compared."""

    @property
    def locked(self) -> list[str]:
        """The keys that have a lock file."""
    @property
    def changed(self) -> list[str]:
        """The keys whose staged file has another version, or is missing."""
    def version(self, number: int) -> str | None:
        """Return the version of the value of a key; ``None``: no value."""

    def lines(self, total: int) -> bytes:
        """Return the lines of a journal that has the first `total` keys."""

def threads() -> int:
    """Return the number of threads that work on one request, the caller included."""

def set_threads(n: int) -> None:
    """Set the number of threads; 0: the processors that this process may use."""

def set_cache_bytes(n: int) -> None:
    """Set the size of the cache of decoded chunks; 0 switches it off."""

def clear_cache() -> None:
    """Drop all cached chunks and shard indices."""

def cache_info() -> dict[str, int]:
    """Return state and counters of the cache: capacity, nbytes, entries, hits, misses, evictions."""

def read_values(root: str, requests: Sequence[Fetch], most: int) -> list[list[bytes] | Literal[False] | None]:
    """Read the whole values of requests below the directory `root`, files of at most `most` bytes each: the answers of
    `Store.fetch`, or ``False`` for a request that the caller must carry out itself: one for ranges, one for a key that is not
    plain, one for a file that is larger or cannot be read."""

def create_file(path: str, root: str, value: bytes, probe: bool) -> tuple[bool, bool] | None:
    """Create a value of a local store under its lock: whether it was created, and whether the file system kept the time of
    the file. ``None``: nothing was done, and the caller must do it itself."""

def vlen_decode(data: Buffer, out: AnyArray, as_text: bool) -> bool:
    """Decode a vlen chunk into the one-dimensional `out`: StringDType, or objects, which become `str`, or without `as_text`
    `bytes`. ``False``: the chunk is corrupt or of another number of elements, or `out` is another array; some elements may
    have been written then. No thread may write to `data` meanwhile.
    """

def vlen_encode(values: AnyArray, as_text: bool) -> bytes | None:
    """Encode the one-dimensional `values` to a vlen chunk: StringDType, or objects, which are `str`, or without `as_text`
    `bytes`, or ``None``. ``None``: an element is something else, is missing, or has no UTF-8 form.
    """

def encode_step(name: str, configuration: str, data: bytes) -> bytes:
    """Encode `data` with the codec `name` of the engine; `configuration` is JSON, as in the engine's description."""

def decode_step(name: str, configuration: str, data: bytes, nbytes: int) -> bytes:
    """Decode `data` to `nbytes` bytes."""
