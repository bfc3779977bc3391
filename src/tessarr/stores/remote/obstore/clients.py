"""One obstore client for everything of one place that is opened with the same options.

A client holds the kept-alive connections, and loads the certificates; a new one for every array that is opened
costs some milliseconds, and with a server far away the round trips of new connections (one, and one or two more for
TLS). Stores at different paths of one bucket or host share the client of its root, so that the second array of a place
is opened over connections that are there already.

The table holds at most `_MOST` clients, those used last. What decides about a client is its key: kind, place, options,
and the environment variables that the client reads. It is forgotten in a forked child.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from tessarr.errors import MissingDependencyError, UnsupportedOperationError
from tessarr.stores.locks import ForkSafeLock

_MOST = 64
_clients: dict[tuple[object, ...], tuple[Any, object]] = {}
"""Key → client, and the options: an object in them must live as long as a key that holds its `id`."""
_using = ForkSafeLock()
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
    """The client for `place` with `options`, made by `make` unless there is one."""
    key = (kind, place, _frozen(options), _environment())
    with _using:
        known = _clients.pop(key, None)
        if known is not None:
            _clients[key] = known
            return known[0]
    client = make()
    with _using:
        client, _ = _clients.setdefault(key, (client, options))
        while len(_clients) > _MOST:
            del _clients[next(iter(_clients))]
    return client


def _environment() -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in os.environ.items() if item[0].upper().startswith(_READ_BY_CLIENTS)))


def _frozen(value: object) -> object:
    """`value` as something that can be compared and hashed; what cannot be is itself alone."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), _frozen(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return (
        value
        if isinstance(value, str | bytes | int | float | bool | None)
        else (type(value).__name__, repr(value), id(value))
    )


is_checked = False
"""`check_threads` was called in this process, and raised nothing."""
_at_work = False
"""Whether obstore has threads in this process, for which a forked child would wait for ever."""
_left_behind = False
"""This process was forked from one where that was so."""


def check_threads() -> None:
    """To be called before obstore is asked for anything.

    Raises `UnsupportedOperationError` in a forked process whose parent has done so: the call would never return.
    """
    global _at_work, is_checked
    if _left_behind:
        raise UnsupportedOperationError(
            "object stores cannot be used in a forked process once the parent has used one: the threads of obstore, "
            "the client library, are not there",
            hint="Start processes by 'spawn' or 'forkserver', or open the store in the children alone",
        )
    _at_work = is_checked = True


def _forget() -> None:
    global _left_behind, is_checked
    _clients.clear()
    is_checked = False
    _left_behind = _at_work


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
