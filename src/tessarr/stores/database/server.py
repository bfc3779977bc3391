"""Base class of stores in database servers: the client, and compare-and-swap updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from tessarr.errors import StoreError
from tessarr.stores.base import ConditionalStore, Version, shared_copy
from tessarr.stores.compare_and_swap import blocking, compare_and_swap, sleep_blocking
from tessarr.stores.remote.fetch_methods import FetchingStore
from tessarr.types import Buffer


class DatabaseStore(FetchingStore, ConditionalStore):
    """A subclass gives `fetch`, `delete_many` and the methods below that raise `NotImplementedError`."""

    requests_at_once = 16
    _options: dict[str, Any]
    """Arguments of the client. Pickles contain no secrets of them."""
    _open_client: Any = None
    """The client; ``None`` before the first use in this process."""

    def _connect(self) -> object:
        """Make a new client. Raises `MissingDependencyError`."""
        raise NotImplementedError

    def _read_versioned(self, key: str) -> tuple[Buffer | None, Version | None]:
        """Read a value and its version; both are ``None`` where the key is missing."""
        raise NotImplementedError

    def _swap(self, key: str, version: Version | None, new: Buffer | None) -> None:
        """Replace the value, or delete it (`new` is ``None``). Raises `ConflictError` unless its version is `version`."""
        raise NotImplementedError

    def _client(self) -> Any:
        from tessarr.stores.remote.credentials import without_secrets

        if self._open_client is None:
            try:
                self._open_client = self._connect()
            except TypeError as error:  # a keyword argument that the client does not have
                text = without_secrets(str(error), self._options)
                raise StoreError("the client rejected the options", store=self.url, got=text) from None
        return self._open_client

    def close(self) -> None:
        if self._open_client is not None:
            self._open_client.close()
            self._open_client = None

    def __getstate__(self) -> dict[str, object]:
        from tessarr.stores.remote.credentials import strip_secrets

        return {**self.__dict__, "_open_client": None, "_options": strip_secrets(self.url, self._options)}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        from tessarr.stores.remote.credentials import restore_secrets

        self.__dict__.update(state)
        self._options = restore_secrets(self.url, self._options)

    __copy__ = shared_copy

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (other.url, other.read_only) == (self.url, self.read_only)

    def __hash__(self) -> int:
        return hash(self.url)

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._check_writable(key)
        # Under a lock, so that threads of one process do not use up each other's attempts. The loop ends at once
        # (StopIteration), because nothing that it awaits suspends it.
        with self.lock(key), suppress(StopIteration):
            compare_and_swap(
                partial(blocking(self._read_versioned), key),
                partial(blocking(self._swap), key),
                change,
                sleep=sleep_blocking,
                store=self.url,
                key=key,
            ).send(None)

    def delete(self, key: str) -> None:
        self.delete_many([key])

    def delete_if(self, key: str, version: Version | None) -> None:
        self._check_writable(key)
        self._swap(key, version, None)
