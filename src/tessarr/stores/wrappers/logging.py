"""A wrapper that logs calls with their duration."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tessarr.stores.base import Store, shared_copy
from tessarr.stores.wrappers.counting import CountingStore


class LoggingStore(CountingStore):
    """Log every call with its duration at `log_level`, and count the calls in `counter`.

    `log_handler` handles the records; ``None`` writes them to standard error.
    """

    def __init__(self, store: Store, log_level: str = "DEBUG", log_handler: logging.Handler | None = None) -> None:
        super().__init__(store)
        self.log_level = log_level
        self.log_handler = log_handler or logging.StreamHandler()
        self._open_log()

    def _open_log(self) -> None:
        # Not `getLogger`: handler and level belong to this store, not to all stores of its class.
        self.logger = logging.Logger(f"tessarr.{type(self.store).__name__}", self.log_level)  # noqa: LOG001
        self.logger.addHandler(self.log_handler)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("logger", "log_handler")}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        self.log_handler = logging.StreamHandler()
        self._open_log()

    __copy__ = shared_copy

    @contextmanager
    def _around(self, method: str, place: str) -> Iterator[None]:
        self._count(method)
        started = time.perf_counter()
        level = logging.getLevelName(self.log_level)
        self.logger.log(level, "%s.%s(%s)", type(self.store).__name__, method, place)
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            self.logger.log(level, "%s.%s(%s): %.6f s", type(self.store).__name__, method, place, seconds)
