"""The contract of an engine, which moves elements between a bound array's store and NumPy memory.

Two engines implement it: `tessarr.engine.reference` (Python, complete, the executable specification) and
`tessarr.engine.native` (Rust). The engine is chosen when an array is opened (`tessarr.engine.choose`).

Both engines read by one protocol. A *chunk read* requests byte ranges of one stored value, gets their bytes and version, and
may request more: of a shard first the index, then inner chunks. A `ChunkReads` is a set of chunk reads. It does no I/O and uses
no thread and no event loop; `tessarr.engine.run` carries it out, synchronously or asynchronously.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from tessarr.common.segments import Piece, Stored
from tessarr.engine.bound import BoundArray
from tessarr.indexing.selection import Selection
from tessarr.stores.fetch import Fetch, Version
from tessarr.types import AnyArray, Buffer, Coords

if TYPE_CHECKING:
    from tessarr.stores.local.transactions.many import StagedFiles


class Request(NamedTuple):
    """Bytes of one stored value that a chunk read needs."""

    id: int
    fetch: Fetch


class Response(NamedTuple):
    """Response to a `Request`."""

    id: int
    parts: list[Buffer] | None
    """One buffer for a whole value, one per range for ranges; ``None``: no such key."""
    version: Version | None
    """Version of the value; ``None`` where the store has no versions."""


class ChunkReads(Protocol):
    """Chunk reads in progress."""

    def receive(self, responses: Sequence[Response]) -> Sequence[Request]:
        """Take responses, in any order, decode the chunks that are complete, and return the next requests.

        Without responses the first requests are returned. Once all requests have responses and no further request is
        returned, everything is read.
        """
        ...


class ReadPlan(NamedTuple):
    """A selection in parts, one per chunk, and the memory for its elements."""

    parts: int
    """Number of parts."""
    nbytes: int
    """Decoded bytes of one part."""
    has_shards: bool
    start: Callable[[int, int, int], ChunkReads]
    """``start(first, stop, whole_below)`` starts to read parts ``first:stop``; called for consecutive ranges, from the
    first part to the last. A shard of at most `whole_below` decoded bytes is requested whole, instead of its index first and
    then ranges."""


Change = Callable[[Stored | None], list[Piece] | None]


class ChunkWrite(NamedTuple):
    """The planned change of one stored chunk."""

    coords: Coords
    key: str
    covers: bool
    """Whether the whole chunk is replaced."""
    is_cut: bool
    """Whether the end of the array cuts the chunk, and all else of it is written. Rows beyond the end, which another writer may
    have appended, stay."""
    change: Change
    """Makes the new value from the old one; ``None``: the chunk is all fill value."""


class WritePlan(Protocol):
    """The planned changes of the chunks of one array by writing a selection."""

    @property
    def nbytes(self) -> int:
        """Decoded bytes of a chunk. Undefined for a plan without chunks."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[ChunkWrite]: ...

    def encode_covered(self, first: int, stop: int) -> Sequence[tuple[str, Buffer | None]] | None:
        """Encode chunks, by number: keys and new values (``None``: nothing is to be stored).

        Returns ``None`` if the selection does not cover one of them, or the engine encodes one at a time.
        """
        ...

    def stage_covered(
        self, first: int, stop: int, files: StagedFiles
    ) -> Sequence[tuple[str, tuple[Version, int] | None]] | None:
        """Encode chunks, as `encode_covered` does, to files: keys, and versions and bytes of the files.

        Returns ``None`` also if one of the files could not be written; none was written then.
        """
        ...

    def forget(self, key: str) -> None:
        """Invalidate cached chunks and indexes of the old value of `key`, which was written."""


class Engine(Protocol):
    """Reads and writes selections of bound arrays. Apart from caches stateless; safe for use by several threads at once."""

    name: str

    def supports(self, bound: BoundArray) -> str | None:
        """Return ``None``, or the reason why this engine does not support `bound`."""
        ...

    def plan_read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> ReadPlan:
        """Plan a read into `out`, for `tessarr.engine.run` to carry out, alone or together with other plans."""
        ...

    def plan_write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> WritePlan:
        """Plan a write of `value`, for `tessarr.engine.write_chunks` to carry out."""
        ...

    def read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        """Fill `out`: shape ``selection.shape``, dtype ``bound.dtype``, writable, any strides, owned by the caller.

        Raises `CodecError` (with path, chunk and key) for chunks that cannot be decoded, `StoreError` for I/O faults.
        `out` is undefined after an error.
        """

    async def read_async(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        """Call `read` without blocking the event loop."""

    def element(self, bound: BoundArray, index: tuple[object, ...]) -> Any:
        """Read the element at `index` as a NumPy scalar, faster than `read` does. Returns ``None`` where the engine has no
        faster way, or where `index` is not one `int` within the array per axis."""
        ...

    def write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        """Store `value`: broadcastable to ``selection.shape``, dtype ``bound.dtype``, any strides, not modified.

        Every stored value is replaced atomically; chunks that are only partly covered are updated under the store's
        lock, or by compare-and-swap. After an error some chunks have the new value and the others the old one.
        """

    async def write_async(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        """Call `write` without blocking the event loop."""


@runtime_checkable
class HasEngine(Protocol):
    """A store that knows the elements of its arrays: it has an engine for them, and encodes chunks only for other callers."""

    def engine_of(self, path: str) -> Engine:
        """Return the engine of the array at `path`."""
        ...
