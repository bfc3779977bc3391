"""Append many small pieces as few large ones: `appender`."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from tessarr.core.array_parts.append import check_append, publish_steps
from tessarr.core.array_parts.append_reserved import EXPIRE_S, HolePolicy, OnHole
from tessarr.core.array_parts.region_io import fit_elements
from tessarr.core.asynchronous.sans_io import async_variant, run_steps, run_steps_async, sans_io
from tessarr.errors import PendingAppendError
from tessarr.indexing.base import axis_from_front
from tessarr.types import AnyArray

if TYPE_CHECKING:
    from tessarr.core.array import Array
    from tessarr.types import Shape


class Appender:
    """Collect rows to append to an array, and publish them in batches. Made by `appender`.

    One thread or task at a time may use an appender, in the process that made it; each writer makes another one. Other uses are
    `RuntimeError`, and so is an append after the end of the block.
    """

    def __init__(self, array: Array, batch: int, axis: int, holes: HolePolicy) -> None:
        self.array = array
        """The array to append to."""
        self.axis = axis_from_front(axis, array.ndim, array.name, "to append along")
        """The axis to append along, counted from the front."""
        self.batch = batch
        """Number of rows from which on `append` publishes."""
        self._holes = holes
        self._pieces: list[AnyArray] = []
        self._pending = 0
        self._process, self._is_closed, self._in_use = os.getpid(), False, threading.Lock()
        self._is_interrupted = False

    @property
    def pending(self) -> int:
        """Number of rows that were appended here and are not published yet."""
        return self._pending

    @sans_io
    async def append(self, data: npt.ArrayLike) -> None:
        """Append a copy of `data`; publish all collected rows once they are a batch.

        `data` has the array's number of axes, and the array's lengths on all axes but `axis`. Raises the errors of
        `Array.append`.
        """
        with self._using():
            if self._is_closed:
                raise RuntimeError(
                    "the block of this appender has ended: make another one with tessarr.appender(array)"
                )
            values, _ = fit_elements(self.array, data, self.axis, self.array.shape, self.array.dtype)
            self._pieces.append(np.array(values))
            self._pending += values.shape[self.axis]
            if self._pending >= self.batch:
                await self._flush_steps()

    @sans_io
    async def flush(self) -> Shape:
        """Publish all rows that were appended so far. Returns the shape, which ends with these rows.

        After an error the rows are still collected, and not in the array: another flush retries. After Ctrl-C, or where a task
        was cancelled, they may be in the array, and another flush of them raises `RuntimeError`. Errors of which `pending` is 0
        come after the rows were stored: `PendingAppendError`, `StaleConsolidatedError`, and `DurabilityError` with a note.
        """
        with self._using():
            return await self._flush_steps()

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Raise `RuntimeError` where another thread or task uses the appender at this moment, or in another process."""
        if os.getpid() != self._process:
            raise RuntimeError("this appender is of another process, which publishes its rows: make another one here")
        if not self._in_use.acquire(blocking=False):
            raise RuntimeError("another thread or task uses this appender: make one for each")
        try:
            yield
        finally:
            self._in_use.release()

    async def _end_steps(self, is_error: bool) -> None:
        """End the block: publish the rest, unless there was an error, or the block ends in a forked process."""
        if os.getpid() != self._process:
            return
        if is_error:  # a thread may still be ending an append that was cancelled
            self._is_closed = True
            return
        with self._using():
            self._is_closed = True
            await self._flush_steps()

    async def _flush_steps(self) -> Shape:
        if not self._pending:
            return self.array.shape
        if self._is_interrupted:
            raise RuntimeError(
                "an append was interrupted while it published rows, so that they may be in the array: "
                "look at the array, and make another appender"
            )
        values = self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces, axis=self.axis)
        try:
            shape, late = await publish_steps(self.array, values, self.axis, self._holes)
        except PendingAppendError:
            self._pieces, self._pending = [], 0  # stored: another flush must not store it twice
            raise
        except Exception:
            raise  # nothing is published
        except BaseException:
            self._is_interrupted = True
            raise
        self._pieces, self._pending = [], 0
        if late is not None:
            raise late
        return shape

    append_async = async_variant(append)
    flush_async = async_variant(flush)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run_steps(self._end_steps(kind is not None))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await run_steps_async(self._end_steps(kind is not None))

    def __repr__(self) -> str:
        return f"<Appender of {self.array!r} axis={self.axis} batch={self.batch} pending={self._pending}>"


def appender(
    array: Array, *, batch: int = 1000, axis: int = 0, on_hole: OnHole = "wait", expire: float = EXPIRE_S
) -> Appender:
    """Collect small appends to `array`, and publish them in batches of at least `batch` rows along `axis`.

    One publication costs a few requests, however many rows it has. The end of the block publishes the rest, as `flush` does
    at any time. After an exception in the block nothing more is published: flushed rows are in the array, the rest is not.
    ``async with`` works too. `on_hole` and `expire` (seconds) are those of `Array.append`.

    If the length of the array and the batch are multiples of the chunk length (with shards: the shard length) along `axis`,
    no chunk is written twice.

    A process that forks within the block publishes nothing in the child.

    Raises `ValueError` for a batch below 1, another `on_hole` or `expire`, `IndexError` when the array has no such
    axis, `ReadOnlyError`, and
    `UnsupportedOperationError` where `Array.append` does.

    >>> import numpy as np
    >>> import tessarr
    >>> z = tessarr.create_array({}, shape=(0, 2), chunks=(100, 2), dtype="f4")
    >>> with tessarr.appender(z, batch=100) as out:
    ...     for i in range(250):
    ...         out.append(np.full((1, 2), i))
    ...     z.shape, out.pending
    ((200, 2), 50)
    >>> z.shape
    (250, 2)
    """
    holes = check_append(array, on_hole, expire)
    try:
        number = 0 if isinstance(batch, bool) else operator.index(batch)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"batch must be a positive number of rows, got {batch!r}")
    return Appender(array, number, axis, holes)
