"""A store that behaves as one behind a network does, without one."""

from __future__ import annotations

import hashlib
import itertools
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from tessarr.errors import ConflictError
from tessarr.stores.base import ANY, Any_, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.protocols import ConditionalSet
from tessarr.stores.remote.base import NetworkStore, RangeResponse
from tessarr.stores.remote.limiter import limiter_for
from tessarr.stores.remote.loop import in_thread
from tessarr.stores.remote.retry import Fault
from tessarr.types import Buffer, ByteRange

_number = itertools.count()


class FarStore(NetworkStore):
    """Values with versions in a dictionary; answers come late, and out of order."""

    requests_at_once = 64
    conditional = True

    def __init__(self, *, versions: bool = True, delay_s: float = 0.0) -> None:
        super().__init__()
        self._limiter = limiter_for("far://")
        self._number = next(_number)
        self.versions = versions
        self.delay_s = delay_s
        self.held: dict[str, bytes] = {}
        self.guard = threading.Lock()
        self.requests: list[tuple[str, ByteRange | None]] = []
        self.nbytes = 0
        self.before: Callable[[str, ByteRange | None], object] = lambda *_: None

    def has_ability(self, ability: type) -> bool:
        return self.conditional if ability is ConditionalSet else super().has_ability(ability)

    @property
    def url(self) -> str:
        return f"far://{self._number}"

    def _version(self, key: str) -> Version | None:
        return hashlib.sha256(self.held[key]).hexdigest() if self.versions else None

    async def _request(self, key: str, byte_range: ByteRange | None) -> RangeResponse:
        return await in_thread(self._read, key, byte_range)

    def _read(self, key: str, byte_range: ByteRange | None) -> RangeResponse:
        if self.delay_s:
            time.sleep(random.random() * self.delay_s)
        self.before(key, byte_range)
        with self.guard:
            self.requests.append((key, byte_range))
            if key not in self.held:
                raise Fault("missing", "not there")
            value = self.held[key]
            start, stop = (0, len(value)) if byte_range is None else byte_range.bounds(len(value))
            self.nbytes += stop - start
            return RangeResponse(value[start:stop], start, len(value), self._version(key))

    def _fault(self, error: Exception) -> Fault | None:
        return None

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        with self.guard:
            now = self._version(key) if key in self.held else None
            if if_match is not ANY and now != if_match:
                raise ConflictError("another writer was faster", store=self.url, key=key)
            self.held[key] = bytes(byte_view(value))
            return self._version(key)

    async def delete_async(self, key: str) -> None:
        with self.guard:
            self.held.pop(key, None)

    async def list_prefix_async(self, prefix: str) -> list[str]:
        return sorted(key for key in self.held if key.startswith(prefix))

    def cost(self, call: Callable[[], Any]) -> tuple[Any, int, int]:
        """What `call` returns, and how many requests and bytes that took."""
        self.requests.clear()
        self.nbytes = 0
        return call(), len(self.requests), self.nbytes
