"""Run applications: in this thread until it is interrupted, or in the background of a notebook or a test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Final, Literal, Self, TypeAlias

from tessarr.errors import MissingDependencyError
from tessarr.serve.apps import App, Message, Receive, Send, app
from tessarr.serve.threaded import Server
from tessarr.stores.url import StoreLike

AUTO_PORT: Final = "auto"
"""The port `DEFAULT_PORT`, or, where that is taken, a free one."""
DEFAULT_PORT = 8000
Port: TypeAlias = int | Literal["auto"]
ASGIApp: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]
_START_S = 60.0


def bind(host: str, port: Port) -> socket.socket:
    """Bind a socket, and hold it: the port cannot be taken between the choice and its use.

    Raises `OSError` when the address or the port cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (DEFAULT_PORT, 0) if port == AUTO_PORT else (port,):
        # With the protocol named, event loops switch Nagle's algorithm off, which delays a response in two parts by 40 ms.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host.strip("[]"), number))
        except OSError:
            sock.close()
            if port != AUTO_PORT or number == 0:
                raise
            continue
        return sock
    raise AssertionError("port 0 is always free or an error")


def serve(
    app: ASGIApp | StoreLike,
    *,
    host: str = "127.0.0.1",
    port: Port = AUTO_PORT,
    shutdown_timeout: int = 5,
    uvicorn_options: Mapping[str, object] | None = None,
) -> None:
    """Serve an application, or the hierarchy at a place, until the program is interrupted.

    Applications of tessarr run on the standard library's server; other ASGI applications, and any with
    `uvicorn_options`, on uvicorn (extra ``serve``). In-flight responses have `shutdown_timeout` seconds to finish.
    """
    server = _server(app, host, port, shutdown_timeout, uvicorn_options)
    with suppress(KeyboardInterrupt):
        server.run()
    server.shutdown()


def serve_background(
    app: ASGIApp | StoreLike,
    *,
    host: str = "127.0.0.1",
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

    def __init__(self, run: Server | _Uvicorn, sock: socket.socket, base: str, *, shutdown_timeout: int) -> None:
        self.host: str
        self.port: int
        self.host, self.port = sock.getsockname()[:2]
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
    application = given if callable(given) else app(given)
    base = application.served.base if isinstance(application, App) else ""
    sock = bind(host, port)
    if isinstance(application, App) and options is None:
        return BackgroundServer(Server(application, sock), sock, base, shutdown_timeout=timeout)
    try:
        uvicorn = _Uvicorn(application, sock, timeout, options or {})
    except BaseException:
        sock.close()
        raise
    return BackgroundServer(uvicorn, sock, base, shutdown_timeout=timeout)


class _Uvicorn:
    """A server of uvicorn, with the methods of `Server`."""

    def __init__(self, application: object, sock: socket.socket, timeout: int, options: Mapping[str, object]) -> None:
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
        self._socket = sock
        self._server = uvicorn.Server(uvicorn.Config(application, **settings))

    def run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
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
