"""Cache obstore's clients: one per place and options.

A client holds the kept-alive connections, and loads the certificates; a new one for every array that is opened
costs some milliseconds, and the round trips of new connections (one, and one or two more for TLS). Stores at different
paths of one bucket or host share the client of its root, so that the second array of a place is opened over existing
connections.

The cache holds the `_MAX_CLIENTS` most recently used clients. The key of a client is its kind, place and options, and the
environment variables that it reads. The cache is cleared in a forked child.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from tessarr.errors import MissingDependencyError, UnsupportedOperationError
from tessarr.stores.locks import fork_safe_lock

_MAX_CLIENTS = 64
_clients: dict[tuple[object, ...], tuple[Any, object]] = {}
"""Key → client and options. An object in the options must live as long as a key that contains its `id`."""
_clients_lock = fork_safe_lock()
_READ_BY_CLIENTS = ("AWS_", "GOOGLE_", "AZURE_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def obstore_stores() -> Any:
    """Return the module `obstore.store`. Raises `MissingDependencyError`."""
    try:
        import obstore.store
    except ImportError as error:
        raise MissingDependencyError(
            "s3, gs, az and http URLs need obstore", hint="pip install 'tessarr[cloud]'"
        ) from error
    return obstore.store


def shared_client(kind: str, place: str, options: Mapping[str, object], make: Callable[[], object]) -> Any:
    """Return the cached client for `place` with `options`; a cache miss calls `make`."""
    key = (kind, place, _hashable(options), _environment())
    with _clients_lock:
        known = _clients.pop(key, None)
        if known is not None:
            _clients[key] = known
            return known[0]
    client = make()
    with _clients_lock:
        client, _ = _clients.setdefault(key, (client, options))
        while len(_clients) > _MAX_CLIENTS:
            del _clients[next(iter(_clients))]
    return client


def _environment() -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in os.environ.items() if item[0].upper().startswith(_READ_BY_CLIENTS)))


def _hashable(value: object) -> object:
    """Convert `value` to a hashable key; an object that cannot be compared equals only itself."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), _hashable(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    return (
        value
        if isinstance(value, str | bytes | int | float | bool | None)
        else (type(value).__name__, repr(value), id(value))
    )


is_checked = False
"""`check_threads` was called in this process, and raised nothing."""
_has_threads = False
"""Whether obstore has threads in this process. A forked child does not have them, and would wait for them forever."""
_forked_after_use = False
"""Whether the parent had such threads when this process was forked."""


def check_threads() -> None:
    """Check, before a call of obstore, that its threads exist in this process.

    Raises `UnsupportedOperationError` in a forked process whose parent has called obstore: the call would never return.
    """
    global _has_threads, is_checked
    if _forked_after_use:
        raise UnsupportedOperationError(
            "object stores cannot be used in a forked process once the parent has used one: the threads of obstore, "
            "the client library, do not exist there",
            hint="Start processes by 'spawn' or 'forkserver', or open the store in the children alone",
        )
    _has_threads = is_checked = True


def _after_fork() -> None:
    global _forked_after_use, is_checked
    _clients.clear()
    is_checked = False
    _forked_after_use = _has_threads


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
