"""zarr-python's ``zarr.storage._logging``."""

from __future__ import annotations

import logging
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from tessarr.facade.zarr3.abc.store import ByteRequest, Store
from tessarr.facade.zarr3.storage._wrapper import T_Store, WrapperStore


class LoggingStore(WrapperStore[T_Store]):
    """Log every call of the wrapped store with its duration, and count the calls by method in ``counter``."""

    counter: defaultdict[str, int]

    def __init__(self, store: T_Store, log_level: str = "DEBUG", log_handler: logging.Handler | None = None) -> None:
        """Wrap `store`; records go to `log_handler`, or to standard output (``None``)."""
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
        # Not `getLogger`: handler and level belong to this store, not to all stores of its class.
        self.logger = logging.Logger(f"LoggingStore({self._store})", self.log_level)  # noqa: LOG001
        self.logger.addHandler(handler)
        self.logger.parent = logging.getLogger()  # so that the handlers of the root get the records too

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in super().__getstate__().items() if name not in ("logger", "log_handler")}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self.log_handler = None
        self._open_log()

    @contextmanager
    def log(self, method: str, hint: object = "") -> Iterator[None]:
        """Count a call of `method`, and log it before and after."""
        self.counter[method] += 1
        call = f"{type(self._store).__name__}.{method}({hint})"
        self.logger.info("Calling %s", call)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.logger.info("Finished %s in %.6f s", call, time.perf_counter() - started)

    def _with_store(self, store: T_Store) -> Self:
        return type(self)(store, self.log_level, self.log_handler)

    @classmethod
    async def open(cls, store_cls: Callable[..., T_Store], *args: object, **kwargs: object) -> Self:
        own: dict[str, object] = {name: kwargs.pop(name) for name in ("log_level", "log_handler") if name in kwargs}
        opened = await super().open(store_cls, *args, **kwargs)
        vars(opened).update(own)
        opened._open_log()
        return opened

    def with_read_only(self, read_only: bool = False) -> Store:
        """Wrap the wrapped store's ``with_read_only`` in the same way."""
        with self.log("with_read_only", read_only):
            return super().with_read_only(read_only)

    def __str__(self) -> str:
        return f"logging-{self._store}"

    def __repr__(self) -> str:
        return f"LoggingStore({type(self._store).__name__}, '{self._store}')"

    async def is_empty(self, prefix: str) -> bool:
        with self.log("is_empty", prefix):
            return await super().is_empty(prefix)

    async def clear(self) -> None:
        with self.log("clear"):
            await super().clear()

    async def get(self, key: str, prototype: object, byte_range: ByteRequest | None = None) -> Any:
        with self.log("get", key):
            return await super().get(key, prototype, byte_range)

    async def get_partial_values(
        self, prototype: object, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[object]:
        with self.log("get_partial_values", prototype):
            return await super().get_partial_values(prototype, key_ranges)

    async def exists(self, key: str) -> bool:
        with self.log("exists", key):
            return await super().exists(key)

    async def set(self, key: str, value: object) -> None:
        with self.log("set", key):
            await super().set(key, value)

    async def set_if_not_exists(self, key: str, value: object) -> None:
        with self.log("set_if_not_exists", key):
            await super().set_if_not_exists(key, value)

    def get_sync(self, key: str, *, prototype: object = None, byte_range: ByteRequest | None = None) -> object:
        """Call `get` without an event loop. Raises `TypeError` if the wrapped store cannot."""
        with self.log("get_sync", key):
            return super().get_sync(key, prototype=prototype, byte_range=byte_range)

    def set_sync(self, key: str, value: object) -> None:
        """Call `set` without an event loop. Raises `TypeError` if the wrapped store cannot."""
        with self.log("set_sync", key):
            super().set_sync(key, value)

    def delete_sync(self, key: str) -> None:
        """Call `delete` without an event loop. Raises `TypeError` if the wrapped store cannot."""
        with self.log("delete_sync", key):
            super().delete_sync(key)

    async def delete(self, key: str) -> None:
        with self.log("delete", key):
            await super().delete(key)

    async def delete_dir(self, prefix: str) -> None:
        with self.log("delete_dir", prefix):
            await super().delete_dir(prefix)

    async def getsize(self, key: str) -> int:
        with self.log("getsize", key):
            return await super().getsize(key)

    async def getsize_prefix(self, prefix: str) -> int:
        with self.log("getsize_prefix", prefix):
            return await super().getsize_prefix(prefix)

    async def list(self) -> AsyncIterator[str]:
        with self.log("list"):
            async for key in super().list():
                yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        with self.log("list_prefix", prefix):
            async for key in super().list_prefix(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        with self.log("list_dir", prefix):
            async for key in super().list_dir(prefix):
                yield key


__all__ = ["LoggingStore"]
