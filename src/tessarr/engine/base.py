"""The contract of an engine: it moves elements between a bound array's store and NumPy memory.

Two engines implement it: `tessarr.engine.reference.engine` (Python, complete, the executable specification) and
`tessarr.engine.native.engine` (Rust). The engine is chosen when an array is opened (`tessarr.engine.choose`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt

from tessarr.engine.bound import BoundArray
from tessarr.indexing.selection import Selection
from tessarr.stores.fetch import Asker


class Reading(Protocol):
    """A selection in parts, one per chunk, to be read from a store that is asked for many values at once."""

    @property
    def nbytes(self) -> int:
        """Decoded bytes that reading one part takes; only asked when there is one."""

    def __len__(self) -> int: ...

    def start(self, first: int, stop: int, small: int) -> Asker:
        """Begin to read parts ``first:stop``; called for one range after another, from the first part to the last.

        A shard of at most `small` decoded bytes is fetched whole, instead of its index first and what is wanted then.
        """


class Engine(Protocol):
    """Stateless as far as the caller sees; safe to use from several threads at once."""

    name: str

    def supports(self, bound: BoundArray) -> str | None:
        """``None``, or a sentence that says why this engine cannot serve `bound`."""

    def read(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """Fill `out`: shape ``selection.shape``, dtype ``bound.dtype``, writable, any strides, owned by the caller.

        Raises `CodecError` (with path, chunk and key) for chunks that cannot be decoded, `StoreError` for I/O faults.
        `out` is undefined after an error.
        """

    def reading(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> Reading:
        """`read` for `tessarr.engine.remote_read` to carry out, together with others."""

    async def read_async(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """Call `read` without blocking the event loop."""

    def write(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """Store `value`: broadcastable to ``selection.shape``, dtype ``bound.dtype``, any strides, not modified.

        Every stored value is replaced atomically; chunks that are not covered whole are updated under the store's
        lock. After an error some chunks hold the new value and the others the old one.
        """

    async def write_async(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """Call `write` without blocking the event loop."""
