"""Serve an application over HTTP/1.1 with the standard library alone: one thread per connection.

Threads suit stores and codecs, which are synchronous and release the GIL. A connection has a limit for the bytes of a head,
for the seconds in which a head must arrive and in which a window must be received; connections beyond the limit wait in the
backlog.
"""

from __future__ import annotations

import email.utils
import logging
import os
import selectors
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.serve.apps import App
from tessarr.serve.http.messages import Response, problem, without_content
from tessarr.serve.http.wire import HEAD_END, MAX_HEAD, BadHead, Head, dump_head, parse_head
from tessarr.stores.buffers import byte_view
from tessarr.types import Buffer

MAX_CONNECTIONS = 512
HEAD_S = 20.0
"""Seconds in which a head must arrive after its first byte."""
IDLE_S = 120.0
"""Seconds for which a connection without request stays open."""
SEND_S = 120.0
"""Seconds in which a client must receive one window: 9 kB/s."""
_LOG = logging.getLogger("tessarr.serve")


class Server:
    """Sockets that listen, one per address, and the threads that serve their connections.

    After a fork the child process closes its copies of the sockets: only the parent serves.
    """

    def __init__(self, app: App, sockets: Sequence[socket.socket]) -> None:
        self.app = app
        self.sockets = tuple(sockets)
        for sock in self.sockets:
            sock.setblocking(False)
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._open: set[socket.socket] = set()
        self._busy: set[socket.socket] = set()
        """Connections with a request that is not answered yet."""
        self._lock = threading.Lock()
        self._closing = False
        self._runs = False
        self._pid = os.getpid()
        _SERVERS.add(self)

    def run(self) -> None:
        """Accept connections until `stop` is called, from another thread or a signal handler."""
        self._runs = True
        try:
            self._accept_all()
        finally:
            self._release()

    def _release(self) -> None:
        for one in (*self.sockets, self._wake, self._woken):
            one.close()

    def _accept_all(self) -> None:
        with selectors.DefaultSelector() as selector:
            for sock in (*self.sockets, self._woken):
                selector.register(sock, selectors.EVENT_READ)
            while not self._closing:
                ready = {key.fileobj for key, _ in selector.select()}
                with suppress(BlockingIOError):
                    self._woken.recv(64)
                if self._closing:
                    break
                for sock in self.sockets:
                    with suppress(BlockingIOError, ConnectionError, InterruptedError):
                        if sock in ready:
                            self._accept(sock)

    def _accept(self, sock: socket.socket) -> None:
        connection, _ = sock.accept()
        while not self._slots.acquire(timeout=1.0):
            if self._closing:
                connection.close()
                return
        with self._lock:
            self._open.add(connection)
        threading.Thread(target=self._serve, args=(connection,), name="tessarr-serve", daemon=True).start()

    @property
    def wakeup_fd(self) -> int:
        """For `signal.set_wakeup_fd`: else a signal that arrives just before the server waits is noticed when the wait ends."""
        return self._wake.fileno()

    def wait(self) -> None:
        """Wait until connections are accepted: the sockets listen already."""

    def stop(self) -> None:
        """Stop accepting connections."""
        self._closing = True
        with suppress(OSError):
            self._wake.send(b"x")

    def close(self, timeout_s: float) -> None:
        """Stop, wait up to `timeout_s` for responses in flight, then end their connections."""
        self.stop()
        end = time.monotonic() + timeout_s
        with self._lock:
            idle = self._open - self._busy
        for connection in idle:
            _shut(connection)
        while self._busy and time.monotonic() < end:
            time.sleep(0.01)
        with self._lock:
            left = list(self._open)
        for connection in left:
            _shut(connection)
        if not self._runs:
            self._release()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.setblocking(True)  # some systems inherit it from the socket that listens
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _limit(connection, socket.SO_RCVTIMEO, IDLE_S)
                _limit(connection, socket.SO_SNDTIMEO, SEND_S)
                self._requests(connection)
        except OSError:  # the client is gone, or too slow
            pass
        except Exception:
            _LOG.exception("a response ended before its length")
        finally:
            with self._lock:
                self._open.discard(connection)
                self._busy.discard(connection)
            self._slots.release()

    def _requests(self, connection: socket.socket) -> None:
        """Answer the requests of a connection, one after another."""
        received = b""
        while not self._closing:
            head, received = _read_head(connection, received)
            if head is None:
                return
            if isinstance(head, BadHead):
                _send(connection, problem(head.status, head.text), closes=True)
                return
            with self._lock:
                self._busy.add(connection)
            if (head.request.header("expect") or "").lower() == "100-continue" and head.nbytes:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            received = _skip(connection, received, head.nbytes)
            response = self.app.respond(head.request)
            closes = not head.keeps_alive or self._closing
            if head.request.method == "HEAD":
                response = without_content(response)
            _send(connection, response, closes=closes)
            with self._lock:
                self._busy.discard(connection)
            if closes:
                return


def _limit(connection: socket.socket, option: int, seconds: float) -> None:
    """Let the kernel end a wait to receive (``SO_RCVTIMEO``) or to send (``SO_SNDTIMEO``) after `seconds`.

    With `socket.settimeout`, each call would first ask whether the socket is ready, and this thread would give away the GIL,
    and wait for it again, three times as often.
    """
    if os.name == "nt":
        value = struct.pack("@L", max(1, int(seconds * 1e3)))
    else:
        value = struct.pack("@ll", *divmod(max(1, int(seconds * 1e6)), 1_000_000))
    connection.setsockopt(socket.SOL_SOCKET, option, value)


def _read_head(connection: socket.socket, received: bytes) -> tuple[Head | BadHead | None, bytes]:
    """Read the next head; return it (``None``: the client sent no further request) and the bytes after it."""
    end: float | None = None
    while HEAD_END not in received:
        if len(received) > MAX_HEAD:
            return BadHead(431, f"the head has more than {MAX_HEAD} bytes"), b""
        if received and end is None:
            end = time.monotonic() + HEAD_S
        try:
            more = _receive(connection, MAX_HEAD, end)
        except (BlockingIOError, TimeoutError):
            late = BadHead(408, f"the head did not arrive within {HEAD_S:.0f} seconds")
            return None if end is None else late, b""
        if not more:
            return None, b""
        received = received.lstrip(b"\r\n") + more if not received.strip(b"\r\n") else received + more
    if end is not None:
        _limit(connection, socket.SO_RCVTIMEO, IDLE_S)
    head, _, rest = received.partition(HEAD_END)
    if len(head) > MAX_HEAD:
        return BadHead(431, f"the head has more than {MAX_HEAD} bytes"), b""
    return parse_head(head), rest


def _skip(connection: socket.socket, received: bytes, nbytes: int) -> bytes:
    """Read the content of a request and ignore it; return the bytes after it. Raises `OSError` if it takes too long."""
    if len(received) >= nbytes:
        return received[nbytes:]
    end = time.monotonic() + HEAD_S
    while len(received) < nbytes:
        more = _receive(connection, min(nbytes - len(received), 1 << 16), end)
        if not more:
            raise ConnectionError
        received += more
    _limit(connection, socket.SO_RCVTIMEO, IDLE_S)
    return received[nbytes:]


def _receive(connection: socket.socket, most: int, end: float | None) -> bytes:
    """Receive up to `most` bytes before the time `end`. Raises `OSError` when none arrive in time."""
    if end is not None:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        _limit(connection, socket.SO_RCVTIMEO, left)
    return connection.recv(most)


def _send(connection: socket.socket, response: Response, *, closes: bool) -> None:
    """Send a response, window by window. An error ends the connection before the announced length is reached."""
    head = dump_head(response, closes=closes, date=_date(int(time.time())))
    if not response.windows:
        connection.sendall(head)
    for number, window in enumerate(response.windows):
        data: Buffer = run_steps(window()) if callable(window) else window
        _send_all(connection, [*([memoryview(head)] if number == 0 else []), byte_view(data)])


def _send_all(connection: socket.socket, parts: list[memoryview]) -> None:
    """Send all bytes, by one system call where the system can. Raises `OSError` for a client that receives too slowly."""
    end = time.monotonic() + SEND_S
    while parts:
        sent = connection.sendmsg(parts) if hasattr(connection, "sendmsg") else connection.send(parts[0])
        while parts and sent >= parts[0].nbytes:
            sent -= parts.pop(0).nbytes
        if parts:
            if time.monotonic() > end:
                raise TimeoutError
            parts[0] = parts[0][sent:]


@lru_cache(maxsize=2)
def _date(seconds: int) -> str:
    return email.utils.formatdate(seconds, usegmt=True)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


# -- after a fork -------------------------------------------------------------------------------------------------------------

_SERVERS: weakref.WeakSet[Server] = weakref.WeakSet()


def _close_in_child() -> None:
    """Close the copies of sockets in a forked process, which has none of the threads that serve them."""
    for server in list(_SERVERS):
        for sock in (*server.sockets, *server._open):
            sock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
