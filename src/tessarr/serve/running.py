"""Run applications: in this thread until it is interrupted, or in the background of a notebook or a test."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Final, Literal, Self, TypeAlias

from tessarr.errors import MissingDependencyError
from tessarr.serve.apps import App, Message, Receive, Send, app
from tessarr.serve.http.paths import LOCAL_NAMES
from tessarr.serve.served import new_token
from tessarr.serve.threaded import Server
from tessarr.stores.url import StoreLike

AUTO_PORT: Final = "auto"
"""The port `DEFAULT_PORT`, or, where that is taken, a free one."""
DEFAULT_PORT = 8000
LOOPBACK: Final = "localhost"
"""The host of programs on this machine alone, by IPv4 and IPv6."""
Port: TypeAlias = int | Literal["auto"]
ASGIApp: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]
_START_S = 60.0
_BACKLOG = 1024
_ATTEMPTS = 20
"""How many free ports are tried: one that is free at the first address may be taken at the next."""


def listen(host: str, port: Port) -> list[socket.socket]:
    """Listen at each address of a host, on one port, so that no other program can take it between its choice and its use.

    `LOOPBACK` is 127.0.0.1 and, where this machine has it, ::1: another program that listened there would be sent the requests,
    and the tokens, of clients that ask for ``localhost``. So a port that is taken at one of both is taken.

    Raises `OSError` when an address or the port cannot be used.
    """
    addresses = _loopback() if host == LOOPBACK else [host.strip("[]")]
    free = (0,) * _ATTEMPTS
    numbers = (DEFAULT_PORT, *free) if port == AUTO_PORT else (port,) if port else free
    *first, last = numbers
    for number in first:
        with suppress(OSError):
            return _listen_at(addresses, number)
    return _listen_at(addresses, last)


def _loopback() -> list[str]:
    """Return the addresses of this machine for itself: without ::1 where the system or its network has no IPv6."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return ["127.0.0.1"]
    return ["127.0.0.1", "::1"]


def _listen_at(addresses: Sequence[str], number: int) -> list[socket.socket]:
    """Listen at a port of each address; 0: the port that the system gives at the first."""
    bound: list[socket.socket] = []
    try:
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            # With the protocol named, event loops switch Nagle's algorithm off, which delays a response in two parts by 40 ms.
            sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            bound.append(sock)
            if sys.platform == "win32":  # there SO_REUSEADDR lets another program take the port
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            else:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, number))
            sock.listen(_BACKLOG)
            number = sock.getsockname()[1]
    except BaseException:
        for sock in bound:
            sock.close()
        raise
    return bound


def serve(
    app: ASGIApp | StoreLike,
    *,
    host: str = LOOPBACK,
    port: Port = AUTO_PORT,
    shutdown_timeout: int = 5,
    uvicorn_options: Mapping[str, object] | None = None,
) -> None:
    """Serve an application, or the hierarchy at a place, until the program is interrupted.

    The server listens at `host`, by default for this machine only. A place is served below a path with a secret, and then to
    requests for names of this machine alone, as by ``tessarr serve``; an application as it is.

    Applications of tessarr, and places, run on the standard library's server; other ASGI applications, and any with
    `uvicorn_options`, on uvicorn (extra ``serve``). In-flight responses have `shutdown_timeout` seconds to finish.
    """
    server = _server(app, host, port, shutdown_timeout, uvicorn_options)
    with suppress(KeyboardInterrupt):
        server.run()
    server.shutdown()


def serve_background(
    app: ASGIApp | StoreLike,
    *,
    host: str = LOOPBACK,
    port: Port = AUTO_PORT,
    shutdown_timeout: int = 5,
    uvicorn_options: Mapping[str, object] | None = None,
) -> BackgroundServer:
    """Serve an application, or the hierarchy at a place, from a thread, and return as soon as it listens.

    The thread ends with the process; a forked process does not serve. See `serve` for the arguments.

    >>> import tessarr, urllib.request
    >>> store = tessarr.storage.MemoryStore()
    >>> _ = tessarr.create_array(store, shape=4, dtype="i4")
    >>> with serve_background(store) as server:
    ...     urllib.request.urlopen(f"{server.url}/zarr.json").status
    200
    """
    server = _server(app, host, port, shutdown_timeout, uvicorn_options)
    server.start()
    return server


class BackgroundServer:
    """A server that runs in a thread. A context manager that shuts it down at its end."""

    def __init__(
        self, run: Server | _Uvicorn, sockets: Sequence[socket.socket], base: str, *, shutdown_timeout: int
    ) -> None:
        self.host: str
        self.port: int
        self.host, self.port = sockets[0].getsockname()[:2]
        self._server = run
        self._base = base
        self._timeout = shutdown_timeout
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"BackgroundServer({self.host}:{self.port})"  # the URL may hold a token

    @property
    def url(self) -> str:
        """The URL of the root, without a slash at its end: ``f"{server.url}/zarr.json"``."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}{self._base}"

    def run(self) -> None:
        """Serve from this thread."""
        self._server.run()

    def start(self) -> None:
        """Serve from a new thread, which ends with the process."""
        self._thread = threading.Thread(target=self._server.run, name="tessarr-server", daemon=True)
        self._thread.start()
        self._server.wait()

    def shutdown(self) -> None:
        """Stop the server: responses in flight may finish, for the seconds given when it was started. May be called twice."""
        self._server.close(self._timeout)
        if self._thread is not None:
            self._thread.join(_START_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


def _server(
    given: ASGIApp | StoreLike, host: str, port: Port, timeout: int, options: Mapping[str, object] | None
) -> BackgroundServer:
    application = given if callable(given) else app(given, token=new_token(), allowed_hosts=_names_of(host))
    base = application.served.base if isinstance(application, App) else ""
    sockets = listen(host, port)
    if isinstance(application, App) and options is None:
        return BackgroundServer(Server(application, sockets), sockets, base, shutdown_timeout=timeout)
    try:
        uvicorn = _Uvicorn(application, sockets, timeout, options or {})
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    return BackgroundServer(uvicorn, sockets, base, shutdown_timeout=timeout)


def _names_of(host: str) -> Collection[str] | None:
    """Return the names by which a browser may ask for what is served at `host`; ``None``: other machines may use any."""
    return LOCAL_NAMES if (f"[{host}]" if ":" in host else host) in LOCAL_NAMES else None


class _Uvicorn:
    """A server of uvicorn, with the methods of `Server`."""

    def __init__(
        self, application: object, sockets: Sequence[socket.socket], timeout: int, options: Mapping[str, object]
    ) -> None:
        try:
            uvicorn = import_module("uvicorn")
        except ImportError as error:
            raise MissingDependencyError(
                "running an ASGI application needs the package uvicorn, which is not installed",
                hint="pip install 'tessarr[serve]'; applications of tessarr without uvicorn_options run without it",
            ) from error
        settings: dict[str, object] = {
            "timeout_graceful_shutdown": timeout,
            "access_log": False,  # paths hold tokens
            "server_header": False,
            **options,
        }
        self._failed = threading.Event()
        self._sockets = list(sockets)
        self._server = uvicorn.Server(uvicorn.Config(application, **settings))

    def run(self) -> None:
        try:
            self._server.run(sockets=self._sockets)
        finally:
            self._failed.set()

    def wait(self) -> None:
        """Wait until the server accepts connections. Raises `RuntimeError` if it does not start."""
        import time

        end = time.monotonic() + _START_S
        while not self._server.started:
            if self._failed.is_set() or time.monotonic() > end:
                raise RuntimeError("the server did not start; its log says why")
            time.sleep(0.01)

    def close(self, timeout_s: float) -> None:
        self._server.should_exit = True
