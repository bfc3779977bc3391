"""The contract of an engine: it moves elements between a bound array's store and NumPy memory.

Two engines implement it: `tessarr.engine.reference` (Python, complete, the executable specification) and
`tessarr.engine.native` (Rust). The engine is chosen when an array is opened (`tessarr.engine.choose`).

Reading is one protocol for both. A *chunk read* needs byte ranges of one stored value, is sent them with the version that
they are of, and may need more: of a shard first the index, then inner chunks. A `ChunkReads` is many chunk reads together.
It does no I/O and knows no thread and no event loop; `tessarr.engine.run` carries it out, synchronously or awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from tessarr.common.segments import Piece, Stored
from tessarr.engine.bound import BoundArray
from tessarr.indexing.selection import Selection
from tessarr.stores.fetch import Fetch, Version
from tessarr.types import AnyArray, Buffer, Coords


class Request(NamedTuple):
    """Bytes of one stored value that a chunk read needs."""

    id: int
    fetch: Fetch


class Response(NamedTuple):
    """What a request was answered with."""

    id: int
    parts: list[Buffer] | None
    """One buffer for a whole value, one per range for ranges; ``None``: no such key."""
    version: Version | None
    """Of the value, where the store names it."""


class ChunkReads(Protocol):
    """Chunk reads in progress."""

    def receive(self, responses: Sequence[Response]) -> Sequence[Request]:
        """Take responses, in any order, decode what can be decoded, and return what is needed next.

        Without responses it returns what is needed first. When all is answered and nothing more is needed, all is read.
        """


class ReadPlan(NamedTuple):
    """A selection in parts, one per chunk, and the memory that it is read into."""

    parts: int
    """How many there are."""
    nbytes: int
    """Decoded bytes that reading one part takes."""
    has_shards: bool
    start: Callable[[int, int, int], ChunkReads]
    """``start(first, stop, whole_below)`` begins to read parts ``first:stop``; called for one range after another, from the
    first part to the last. A shard of at most `whole_below` decoded bytes is requested whole, instead of its index first and
    then ranges."""


Change = Callable[[Stored | None], list[Piece] | None]


class ChunkWrite(NamedTuple):
    """What is to happen to one stored chunk."""

    coords: Coords
    key: str
    covers: bool
    """The chunk is replaced whole."""
    change: Change
    """Makes the new value from the old one; ``None``: nothing but fill value is left."""


class WritePlan(Protocol):
    """What writing a selection does to the chunks of one array."""

    @property
    def nbytes(self) -> int:
        """Decoded bytes of a chunk; only asked when there is one."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[ChunkWrite]: ...

    def forget(self, key: str) -> None:
        """Drop what is cached of the old value of `key`, which was written."""


class Engine(Protocol):
    """Stateless as far as the caller sees; safe to use from several threads at once."""

    name: str

    def supports(self, bound: BoundArray) -> str | None:
        """``None``, or a sentence that says why this engine cannot serve `bound`."""

    def plan_read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> ReadPlan:
        """Plan a read into `out`, for `tessarr.engine.run` to carry out, alone or together with others."""

    def plan_write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> WritePlan:
        """Plan a write of `value`, for `tessarr.engine.write_chunks` to carry out."""

    def read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        """Fill `out`: shape ``selection.shape``, dtype ``bound.dtype``, writable, any strides, owned by the caller.

        Raises `CodecError` (with path, chunk and key) for chunks that cannot be decoded, `StoreError` for I/O faults.
        `out` is undefined after an error.
        """

    async def read_async(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        """Call `read` without blocking the event loop."""

    def element(self, bound: BoundArray, index: tuple[object, ...]) -> Any:
        """The element at `index` as a NumPy scalar; ``None`` where this engine has no shorter way than `read`, or where
        `index` is not one plain `int` inside the array per axis."""

    def write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        """Store `value`: broadcastable to ``selection.shape``, dtype ``bound.dtype``, any strides, not modified.

        Every stored value is replaced atomically; chunks that are not covered whole are updated under the store's
        lock. After an error some chunks hold the new value and the others the old one.
        """

    async def write_async(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        """Call `write` without blocking the event loop."""
