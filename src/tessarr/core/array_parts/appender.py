"""Append many small pieces as few large ones: `appender`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from tessarr.core.array_parts.append import EXPIRE_S, OnHole, append_steps, fit_elements
from tessarr.core.asynchronous.sans_io import Steps, async_variant, run_steps, run_steps_async, sans_io
from tessarr.errors import PendingAppendError
from tessarr.types import AnyArray

if TYPE_CHECKING:
    from tessarr.core.array import Array
    from tessarr.types import Shape


class Appender:
    """Collects what is appended to an array, and publishes it in batches. Made by `appender`.

    For one thread or task at a time; each writer makes its own.
    """

    def __init__(self, array: Array, batch: int, axis: int, on_hole: OnHole, expire: float) -> None:
        self.array = array
        """The array that is appended to."""
        self.axis = range(array.ndim)[axis]
        """The axis that is appended along, counted from the front."""
        self.batch = batch
        """Publish as soon as so many rows are collected."""
        self._holes: tuple[OnHole, float] = (on_hole, expire)
        self._pieces: list[AnyArray] = []
        self._pending = 0

    @property
    def pending(self) -> int:
        """Rows that were appended here and are not published yet."""
        return self._pending

    @sans_io
    def append(self, data: npt.ArrayLike) -> Steps[None]:
        """Append `data`, which is copied; publish all that is collected once it is a batch.

        `data` has the array's number of axes, and its lengths on all but `axis`. Raises what `Array.append` raises.
        """
        values, _ = fit_elements(self.array, data, self.axis, self.array.shape, self.array.dtype)
        self._pieces.append(np.array(values))
        self._pending += values.shape[self.axis]
        if self._pending >= self.batch:
            yield from self._flush_steps()

    @sans_io
    def flush(self) -> Steps[Shape]:
        """Publish all that was appended so far; returns the shape, which ends with it.

        After an error it is still collected, and not in the array: to flush again tries again. Only after a
        `PendingAppendError` it is stored, and will be in the array.
        """
        return (yield from self._flush_steps())

    def _flush_steps(self) -> Steps[Shape]:
        if not self._pending:
            return self.array.shape
        values = self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces, axis=self.axis)
        try:
            shape = yield from append_steps(self.array, values, self.axis, *self._holes)
        except PendingAppendError:
            self._pieces, self._pending = [], 0  # stored: another flush must not store it twice
            raise
        self._pieces, self._pending = [], 0
        return shape

    append_async = async_variant(append)
    flush_async = async_variant(flush)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            run_steps(self._flush_steps())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await run_steps_async(self._flush_steps())

    def __repr__(self) -> str:
        return f"<Appender of {self.array!r} axis={self.axis} batch={self.batch} pending={self._pending}>"


def appender(
    array: Array, *, batch: int = 1000, axis: int = 0, on_hole: OnHole = "wait", expire: float = EXPIRE_S
) -> Appender:
    """Collect small appends to `array`, and publish them in batches of at least `batch` rows along `axis`.

    One publication costs a few requests, however many rows it has. The end of the block publishes the rest, as `flush` does
    at any time. After an exception in the block nothing more is published: what was flushed is in the array, the rest is not.
    ``async with`` works too. `on_hole` and `expire` (seconds) are those of `Array.append`.

    Batches that are a multiple of the array's chunks (its shards), appended to an array whose length is one, write no chunk
    twice.

    Raises `ValueError` for a batch below 1, `IndexError` for an axis that the array has not, `ReadOnlyError`.

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
    array._require_writable()
    given: object = batch
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ValueError(f"batch must be a positive number of rows, got {batch!r}")
    return Appender(array, batch, axis, on_hole, expire)
