"""Follow arrays that grow: hand out each row once, in order, as soon as it is published (`Follower`).

A follower compares the version of the array's document, and reads the document when it has another one. It hands out no row
beyond the published shape, so that with tessarr's writers, which publish rows after their data, each row is complete.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Mapping, Sequence
from itertools import product
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Self, TypeAlias, TypedDict, TypeVar

import numpy as np

from tessarr.core.asynchronous.sans_io import gather_calls, run_steps, run_steps_async, store_call
from tessarr.core.claims.settle import resolve_steps
from tessarr.core.stored.read_nodes import parsed
from tessarr.core.stored.walk import Entry
from tessarr.core.streams.watch import Event, Watch
from tessarr.errors import ArrayNotFoundError, ConflictError, TessarrError
from tessarr.grids.base import Axis
from tessarr.indexing.base import axis_from_front
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.fetch import Fetch, Unchanged, Version, version_of
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import JOURNAL, PlainFiles, Remote, may_be_claimed
from tessarr.stores.protocols import Settle as Settles
from tessarr.types import AnyArray, Buffer, SelectionLike

if TYPE_CHECKING:
    from tessarr.core.array import Array

T = TypeVar("T")
Settle: TypeAlias = Literal["shape", "chunks"]
_BLOCK_NBYTES = 64 << 20
"""A block has at most this size, unless one row of chunks is larger."""


class Position(TypedDict):
    """Where a follower is, as JSON: `row` is the first row that it has not handed out."""

    arrays: list[str]
    axis: int
    row: int


Start: TypeAlias = "int | Position | Mapping[str, object] | None"


class FollowOptions(TypedDict, total=False):
    """The keyword arguments of `Array.follow` and `Group.follow`."""

    axis: int
    """The axis that grows (0)."""
    start: Start
    """The first row to hand out: ``None`` is row 0, -1 is the end, -11 ten rows before the end; or a saved `Position`."""
    poll: float
    """The longest pause between two looks at a document, in seconds (1). After a change pauses are shorter; on local
    file systems of Linux the kernel ends them."""
    timeout: float | None
    """End the iteration after so many seconds without enough rows, having handed out those that are there; 0: without
    waiting. ``None``: never."""
    stop: Event | None
    """End the iteration when this event is set; rows that were not handed out are after `Follower.position`."""
    min_rows: int
    """How many rows are handed out at once, at least (1)."""
    max_rows: int | None
    """How many rows are handed out at once, at most. ``None``: whole chunks (shards) of up to 64 MiB."""
    settle: Settle
    """``"shape"``: hand out all rows within the shape, which with tessarr's writers are complete. ``"chunks"``: only up to the
    first chunk that is not stored, for writers that change the shape first (zarr-python). Such a writer has to store chunks
    of fill value too (``write_empty_chunks``)."""


class _First(NamedTuple):
    """The row at which to begin: negative from the end, or of a saved position, which must exist."""

    row: int
    is_saved: bool


class _Source:
    """One followed array, and the stored version of its document."""

    def __init__(self, array: Array, axis: int) -> None:
        self.array = array.with_config(None)
        """An object of its own, so that the caller's keeps its shape."""
        self.axis = axis
        self.key = prefix_of(array.path) + formats.KEYS[array.zarr_format].array
        self._version: Version | None = None
        self.published = array.shape[axis]

    async def look_steps(self) -> bool:
        """Read the document if it has changed. Returns whether there are more rows.

        A transaction that a process left unfinished is settled first: no writer may come that does so.
        """
        array, store = self.array, self.array._store
        if isinstance(store, Settles) and await store_call(store, "exists", prefix_of(array.path) + JOURNAL):
            await store_call(store, "settle", array.path)
        found = await store_call(store, "get_if_changed", self.key, self._version)
        if isinstance(found, Unchanged):
            return False
        data: Buffer | None = None if found is None else found[0]
        version = None if found is None else version_of(found)
        if data is not None and may_be_claimed(data):  # what the document is for readers depends on another value, too
            version = None
            (answer,) = await resolve_steps(store, [Fetch(self.key)], [[data]])
            data = answer[0] if answer else None
        if data is None:
            raise ArrayNotFoundError("the followed array is gone", store=store.url, path=array.name)
        node = parsed(store, Entry(array.path, {self.key.rpartition("/")[2]: data}), array._metadata.zarr_format)
        if not isinstance(node, ArrayMetadata):
            raise ArrayNotFoundError("the followed array is gone", store=store.url, path=array.name, got="a group")
        if node.zarr_format != 3:  # the attributes are in another document
            node = node.with_attributes(array._metadata.attributes)
        self._require_growth(node)
        array._adopt(node)
        self._version = version
        before, self.published = self.published, node.shape[self.axis]
        return self.published > before

    def _require_growth(self, node: ArrayMetadata) -> None:
        """Raise `ConflictError` unless only the length along the axis changed, and did not become less.

        Another array that is stored in the same way is not distinguished from the one that was followed.
        """
        known, axis = self.array._metadata, self.axis
        rest, now = [*known.shape], [*node.shape]
        grown = len(rest) == len(now) and now[axis] >= self.published
        if grown:
            rest[axis] = now[axis]
        if not grown or rest != now or not _is_stored_alike(known, node):
            raise ConflictError(
                "the followed array was changed, not only extended",
                store=self.array._store.url,
                path=self.array.name,
                expected=f"{_described(known)}, longer along axis {axis}",
                got=_described(node),
                hint="Follow the array again from a position that still exists",
            )

    async def settled_steps(self, start: int, stop: int) -> int:
        """Return up to which row, from `start` on, every chunk is stored."""
        bound, row = self.array._bound, start
        along = bound.axes[self.axis]
        while row < stop:
            index = along.find(row)
            counts = [range(one.nchunks) for one in bound.axes]
            counts[self.axis] = range(index, index + 1)
            present = await gather_calls(
                [store_call(bound.store, "exists", bound.key(coords)) for coords in product(*counts)]
            )
            if not all(present):
                break
            row = min(along.start(index) + along.size(index), stop)
        return row

    def block_length(self, row: int) -> int:
        """Return how many rows from `row` on make one block: whole chunks (shards) of at most `_BLOCK_NBYTES`, or one chunk."""
        along = self.array._bound.axes[self.axis]
        index = along.find(row)
        end = along.start(index) + along.size(index)
        nbytes = max(1, self.array.nbytes // self.array.shape[self.axis])
        more = _BLOCK_NBYTES // nbytes - (end - row)
        return end - row + max(0, more) // along.size(index) * along.size(index)

    def selection(self, rows: slice) -> tuple[slice, ...]:
        return (slice(None),) * self.axis + (rows,)


class Follower(Generic[T]):
    """Iterate over the rows of arrays as they are published: ``(rows, block)``, each row once, in order.

    Made by `Array.follow` and `Group.follow`. A synchronous and an asynchronous iterator, and a context manager that releases
    what waits for changes. One thread or task at a time may use it.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        options: FollowOptions,
    ) -> None:
        """Follow `arrays` (at least one) without I/O; `begin_steps` makes the first look."""
        unknown = options.keys() - FollowOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"follow takes no argument {', '.join(sorted(unknown))}")
        axis, start, poll, timeout = (
            options.get("axis", 0),
            options.get("start"),
            options.get("poll", 1.0),
            options.get("timeout"),
        )
        stop, settle = options.get("stop"), options.get("settle", "shape")
        min_rows, max_rows = options.get("min_rows", 1), options.get("max_rows")
        _check_options(poll, timeout, min_rows, max_rows, settle)
        self._sources = {
            name: _Source(array, axis_from_front(axis, array.ndim, array.name, "to be followed along"))
            for name, array in arrays.items()
        }
        self.axis = next(iter(self._sources.values())).axis
        """The axis whose rows are handed out, counted from the front."""
        self._min_rows, self._max_rows, self._settle = min_rows, max_rows, settle
        self._first = _checked_start(start, self.axis, self._names())
        self._row: int | None = None
        self._settled = 0
        self._timeout, self._stop = timeout, stop
        self._watch = Watch(self._directories(), poll, remote=self._is_remote())

    async def begin_steps(self) -> Self:
        """Look once, so that the start is a row that exists now."""
        await self._look_steps()
        return self

    def _names(self) -> list[str]:
        return [source.array.name for source in self._sources.values()]

    def _is_remote(self) -> bool:
        return any(isinstance(source.array._store, Remote) for source in self._sources.values())

    def _directories(self) -> list[str]:
        """List the local directories of the documents; empty unless all of them are local."""
        stores = [(source.array._store, source.key.rpartition("/")[0]) for source in self._sources.values()]
        found = [f"{store.directory}{above}" for store, above in stores if isinstance(store, PlainFiles)]
        return found if len(found) == len(stores) else []

    @property
    def position(self) -> Position:
        """Where to go on after the blocks that were handed out: JSON, to be given as `start` to another follower."""
        row = self._row if self._row is not None else _row_of(self._first, self._published(), self._names())
        return {"arrays": self._names(), "axis": self.axis, "row": row}

    def _published(self) -> int:
        return min(source.published for source in self._sources.values())

    # -- what to do next ---------------------------------------------------------------------------------------------

    async def _look_steps(self) -> None:
        """Look at each document, and resolve the start at the first look."""
        for source in self._sources.values():
            if await source.look_steps():
                self._watch.changed()
        published = self._published()
        if self._row is None:
            self._row = self._settled = _row_of(self._first, published, self._names())
        if self._settle == "chunks":
            ends = []
            for source in self._sources.values():
                ends.append(await source.settled_steps(self._settled, published))
            published = min(ends)
        self._settled = max(self._settled, published)

    async def _confirm_steps(self) -> None:
        """Raise the error of an array that was shortened, replaced or removed while rows of it were read."""
        for source in self._sources.values():
            if await source.look_steps():
                self._watch.changed()

    def _rows(self, *, last: bool) -> slice | None:
        """Return the rows of the next block; ``None`` while there are too few. `last`: there will be no more."""
        row, end = self._row, self._settled
        if row is None or row >= end or (end - row < self._min_rows and not last):
            return None
        length = self._max_rows or max(self._min_rows, min(one.block_length(row) for one in self._sources.values()))
        return slice(row, min(end, row + length))

    def _selections(self, rows: slice) -> list[tuple[Array, SelectionLike]]:
        return [(source.array, source.selection(rows)) for source in self._sources.values()]

    def _read(self, rows: slice) -> T:
        """Read one block."""
        raise NotImplementedError

    async def _read_async(self, rows: slice) -> T:
        raise NotImplementedError

    def _left(self, began: float) -> float:
        """Return the seconds until the timeout."""
        return self._watch.longest_s if self._timeout is None else max(0, began + self._timeout - time.monotonic())

    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    # -- iteration ---------------------------------------------------------------------------------------------------

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[slice, T]:
        began, rows = time.monotonic(), self._rows(last=False)
        while not self._is_stopped():
            if rows is not None:
                try:
                    block = self._read(rows)
                except TessarrError:
                    run_steps(self._confirm_steps())
                    raise
                run_steps(self._confirm_steps())
                self._row = rows.stop
                return rows, block
            run_steps(self._look_steps())
            left = self._left(began)
            rows = self._rows(last=left == 0)
            if rows is None and left == 0:
                break
            if rows is None:
                self._watch.pause(left, self._stop)
        raise StopIteration

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[slice, T]:
        began, rows = time.monotonic(), self._rows(last=False)
        while not self._is_stopped():
            if rows is not None:
                try:
                    block = await self._read_async(rows)
                except TessarrError:
                    await run_steps_async(self._confirm_steps())
                    raise
                await run_steps_async(self._confirm_steps())
                self._row = rows.stop
                return rows, block
            await run_steps_async(self._look_steps())
            left = self._left(began)
            rows = self._rows(last=left == 0)
            if rows is None and left == 0:
                break
            if rows is None:
                await self._watch.pause_async(left, self._stop)
        raise StopAsyncIteration

    def close(self) -> None:
        """Release what waits for changes; the follower may still be used, and then looks at intervals."""
        self._watch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        watch = getattr(self, "_watch", None)
        if watch is not None:
            watch.close()

    def __repr__(self) -> str:
        return f"<Follower of {', '.join(self._names())} axis={self.axis} row={self._row}>"


class ArrayFollower(Follower[AnyArray]):
    """The follower of one array: blocks are NumPy arrays."""

    def _read(self, rows: slice) -> AnyArray:
        ((array, selection),) = self._selections(rows)
        return np.asanyarray(array[selection])

    async def _read_async(self, rows: slice) -> AnyArray:
        ((array, selection),) = self._selections(rows)
        return np.asanyarray(await array.read_async(selection))


def _is_stored_alike(known: ArrayMetadata, grown: ArrayMetadata) -> bool:
    """Whether the chunks that `known` has are the first ones of `grown` along each axis, with the same keys and codecs."""
    same = (known.dtype, known.codecs, known.chunk_key_encoding) == (
        grown.dtype,
        grown.codecs,
        grown.chunk_key_encoding,
    )
    axes = zip(known.chunk_grid.axes(known.shape), grown.chunk_grid.axes(grown.shape), strict=True)
    return same and all(_begins_with(longer, axis) for axis, longer in axes)


def _begins_with(longer: Axis, axis: Axis) -> bool:
    if axis.uniform is not None and axis.uniform == longer.uniform:
        return True
    return all(i < longer.nchunks and longer.size(i) == axis.size(i) for i in range(axis.nchunks))


def _described(node: ArrayMetadata) -> str:
    codecs = ", ".join(codec.name for codec in node.codecs)
    return f"{node.dtype} of shape {node.shape}, chunks {node.chunk_grid.chunk_shape}, codecs {codecs}"


# -- arguments -----------------------------------------------------------------------------------------------------------


def _check_options(poll: float, timeout: float | None, min_rows: int, max_rows: int | None, settle: str) -> None:
    if not poll > 0:
        raise ValueError(f"poll must be a positive number of seconds, got {poll!r}")
    if timeout is not None and not timeout >= 0:
        raise ValueError(f"timeout must be None or at least 0 seconds, got {timeout!r}")
    if operator.index(min_rows) < 1:
        raise ValueError(f"min_rows must be at least 1, got {min_rows!r}")
    if max_rows is not None and operator.index(max_rows) < min_rows:
        raise ValueError(f"max_rows must be None or at least min_rows, {min_rows}, got {max_rows!r}")
    if settle not in ("shape", "chunks"):
        raise ValueError(f"settle must be 'shape' or 'chunks', got {settle!r}")


def _checked_start(start: Start, axis: int, names: list[str]) -> _First:
    """Return the row to begin at. Raise `ValueError` for a position of other arrays or another axis, and other values."""
    if start is None or (isinstance(start, int) and not isinstance(start, bool)):
        return _First(start or 0, is_saved=False)
    if not isinstance(start, Mapping) or not {"arrays", "axis", "row"} <= start.keys():
        raise ValueError(f"start must be None, a row, or a saved position, got {start!r}")
    if (start["arrays"], start["axis"]) != (names, axis):
        raise ValueError(
            f"the saved position is one of {start['arrays']}, axis {start['axis']}; not of {names}, axis {axis}"
        )
    row = start["row"]
    if not isinstance(row, int) or isinstance(row, bool) or row < 0:
        raise ValueError(f"the row of a saved position must be at least 0, got {row!r}")
    return _First(row, is_saved=True)


def _row_of(first: _First, published: int, names: Sequence[str]) -> int:
    """Return the first row to hand out. Negative rows count from the end, which is -1."""
    row = first.row if first.row >= 0 else max(0, published + 1 + first.row)
    if first.is_saved and row > published:
        raise ConflictError(
            "the saved position is beyond the end of the array",
            path=", ".join(names),
            expected=f"at least {row} rows",
            got=published,
            hint="The array was shortened or replaced since; follow it from a row that it has",
        )
    return row
