"""A client of applications without a socket, and the wire as bytes."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.serve import App
from tessarr.serve.http.messages import Request, Response
from tessarr.serve.served import Served
from tests.waiting import PATIENCE_S


class Answer(NamedTuple):
    """A response with its content read."""

    status: int
    headers: dict[str, str]
    body: bytes
    nbytes: int
    """The announced length."""
    windows: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def links(self) -> list[str]:
        return re.findall(r'<a href="([^"]*)"', self.body.decode())


class Client:
    """Requests to an application."""

    def __init__(self, app: App) -> None:
        self.app = app

    def __call__(self, method: str, target: str, headers: Mapping[str, str] | None = None) -> Answer:
        response = self.app.respond(Request.of(method, target, headers or {}))
        parts = [bytes(run_steps(window()) if callable(window) else window) for window in response.windows]
        fields = {name.lower(): value for name, value in response.headers}
        return Answer(response.status, fields, b"".join(parts), response.nbytes, len(parts))

    def get(self, target: str, **headers: str) -> Answer:
        return self("GET", target, {name.replace("_", "-"): value for name, value in headers.items()})


class Counting(App):
    """Records the requests that it answers: method, path, range."""

    def __init__(self, served: Served) -> None:
        super().__init__(served)
        self.seen: list[tuple[str, str, str | None]] = []

    def respond(self, request: Request) -> Response:
        self.seen.append((request.method, request.path, request.header("range")))
        return super().respond(request)


def parts_of(answer: Answer) -> list[tuple[str, bytes]]:
    """The ranges of a ``multipart/byteranges`` content: Content-Range and bytes, cut as RFC 2046 says."""
    boundary = answer.headers["content-type"].partition("boundary=")[2].encode()
    pieces = (b"\r\n" + answer.body).split(b"\r\n--" + boundary)
    assert pieces[0] == b""
    assert pieces[-1] == b"--\r\n"
    found = []
    for piece in pieces[1:-1]:
        head, _, data = piece.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().strip().split("\r\n"))
        found.append((fields["Content-Range"], data))
    return found


class Raw:
    """A connection on which bytes are written as they are."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> Raw:
        self.socket.sendall(data)
        return self

    def answer(self, *, has_content: bool = True) -> Answer:
        """Read one response."""
        while b"\r\n\r\n" not in self.received:
            self._more()
        head, _, self.received = self.received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        while has_content and len(self.received) < length:
            self._more()
        body, self.received = (self.received[:length], self.received[length:]) if has_content else (b"", self.received)
        return Answer(int(lines[0].split()[1]), headers, body, length, 1)

    def _more(self) -> None:
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError(f"closed after {self.received!r}")
        self.received += data

    def is_closed(self) -> bool:
        """Whether the server closes the connection, having sent nothing more."""
        return self.received == b"" and self.socket.recv(1) == b""
