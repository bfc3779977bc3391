"""What stores in database servers share: the client, and updates as a loop that compares and swaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessarr.errors import StoreError
from tessarr.stores.base import ConditionalStore, Version, shared_copy
from tessarr.stores.compare_and_swap import compare_and_swap
from tessarr.stores.remote.fetch_methods import FetchingStore
from tessarr.types import Buffer


class DatabaseStore(FetchingStore, ConditionalStore):
    """A subclass gives `fetch`, `delete_many` and the methods below that raise `NotImplementedError`."""

    requests_at_once = 16
    _options: dict[str, Any]
    """Arguments of the client. What is secret of them is in no pickle."""
    _made: Any = None
    """The client, once it was needed. Each process makes its own."""

    def _connect(self) -> object:
        """A new client. Raises `MissingDependencyError`."""
        raise NotImplementedError

    def _read_versioned(self, key: str) -> tuple[Buffer | None, Version | None]:
        """A value and its version, which are ``None`` where there is none."""
        raise NotImplementedError

    def _swap(self, key: str, version: Version | None, new: Buffer | None) -> None:
        """Replace the value of that version, or delete it (``None``). Raises `ConflictError` where it has another."""
        raise NotImplementedError

    def _client(self) -> Any:
        from tessarr.stores.remote.credentials import without_secrets

        if self._made is None:
            try:
                self._made = self._connect()
            except TypeError as error:  # a keyword that the client does not know
                text = without_secrets(str(error), self._options)
                raise StoreError("the client rejected the options", store=self.url, got=text) from None
        return self._made

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
            self._made = None

    def __getstate__(self) -> dict[str, object]:
        from tessarr.stores.remote.credentials import remember_secrets

        return {**self.__dict__, "_made": None, "_options": remember_secrets(self.url, self._options)}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        from tessarr.stores.remote.credentials import recall_secrets

        self.__dict__.update(state)
        self._options = recall_secrets(self.url, self._options)

    __copy__ = shared_copy

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (other.url, other.read_only) == (self.url, self.read_only)

    def __hash__(self) -> int:
        return hash(self.url)

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._check_writable(key)
        # Threads of one process take turns, so that they do not use up each other's rounds.
        with self.lock(key):
            compare_and_swap(
                lambda: self._read_versioned(key),
                lambda version, new: self._swap(key, version, new),
                change,
                store=self.url,
                key=key,
            )

    def delete(self, key: str) -> None:
        self.delete_many([key])

    def delete_if(self, key: str, version: Version | None) -> None:
        self._check_writable(key)
        self._swap(key, version, None)
