"""zarr-python's ``zarr.storage._logging``."""

from __future__ import annotations

import logging
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tessarr.facade.zarr3.abc.store import Store
from tessarr.facade.zarr3.storage._wrapper import WrapperStore

_AWAITED = (
    "is_empty", "clear", "get", "get_partial_values", "exists", "set", "set_if_not_exists", "delete", "delete_dir",
    "getsize", "getsize_prefix",
)  # fmt: skip
_LISTED = ("list", "list_prefix", "list_dir")


class LoggingStore(WrapperStore):
    """Logs every call of the wrapped store with its duration, and counts the calls by method in ``counter``."""

    counter: defaultdict[str, int]

    def __init__(self, store: Any, log_level: str = "DEBUG", log_handler: logging.Handler | None = None) -> None:
        """The records go to `log_handler`; ``None`` is standard output."""
        super().__init__(store)
        self.counter = defaultdict(int)
        self.log_level = log_level
        self.log_handler = log_handler
        self._open_log()

    def _open_log(self) -> None:
        handler = self.log_handler
        if handler is None:
            handler = logging.StreamHandler(stream=sys.stdout)
            handler.setLevel(self.log_level)
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        # Not `getLogger`: the handler and level are this store's, not those of every store of its kind.
        self.logger = logging.Logger(f"LoggingStore({self._store})", self.log_level)  # noqa: LOG001
        self.logger.addHandler(handler)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in super().__getstate__().items() if name not in ("logger", "log_handler")}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        self.log_handler = None
        self._open_log()

    @contextmanager
    def log(self, method: str, hint: object = "") -> Iterator[None]:
        """Count a call of `method`, and log it before and after."""
        self.counter[method] += 1
        call = f"{type(self._store).__name__}.{method}({hint})"
        self.logger.info("%s begins", call)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.logger.info("%s took %.6f s", call, time.perf_counter() - started)

    def with_read_only(self, read_only: bool = False) -> Store:
        """The same around the wrapped store's ``with_read_only``."""
        with self.log("with_read_only", read_only):
            return type(self)(self._store.with_read_only(read_only), self.log_level, self.log_handler)

    def __str__(self) -> str:
        return f"logging-{self._store}"

    def __repr__(self) -> str:
        return f"LoggingStore({type(self._store).__name__}, '{self._store}')"


def _awaited(name: str) -> Any:
    wrapped = getattr(WrapperStore, name)

    async def method(self: LoggingStore, *args: Any, **kwargs: Any) -> object:
        with self.log(name, args[0] if args else ""):
            return await wrapped(self, *args, **kwargs)

    return method


def _listed(name: str) -> Any:
    wrapped = getattr(WrapperStore, name)

    async def method(self: LoggingStore, *args: Any) -> AsyncIterator[str]:
        with self.log(name, *args):
            async for key in wrapped(self, *args):
                yield key

    return method


for _names, _make in ((_AWAITED, _awaited), (_LISTED, _listed)):
    for _name in _names:
        _method = _make(_name)
        _method.__name__ = _name
        _method.__qualname__ = f"LoggingStore.{_name}"
        _method.__doc__ = f"See `Store.{_name}`."
        setattr(LoggingStore, _name, _method)


__all__ = ["LoggingStore"]
