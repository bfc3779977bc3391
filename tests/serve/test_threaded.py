"""The server of the standard library: the wire, hostile connections, many clients, forks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.serve import BackgroundServer, app, serve_background, store_app, threaded
from tessarr.serve.content import WINDOW
from tessarr.serve.http.wire import MAX_CONTENT, MAX_HEAD, BadHead, Head, parse_head
from tessarr.storage import MemoryStore, WrapperStore
from tests.serve import load
from tests.serve.client import Raw
from tests.waiting import PATIENCE_S, until

GET = b"GET /zarr.json HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def served(place: Path) -> Iterator[BackgroundServer]:
    with serve_background(app(place), port=0) as running:
        yield running


def test_a_connection_serves_many_requests(served: BackgroundServer, place: Path) -> None:
    with Raw(served.port) as raw:
        for _ in range(3):
            raw.send(GET + b"\r\n")
            assert raw.answer().json["node_type"] == "group"
        raw.send(b"HEAD /shard/c/0/0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert raw.answer(has_content=False).headers["content-length"] == "4001604"
        raw.send(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n" + GET + b"\r\n")
        assert [raw.answer().status, raw.answer().status] == [404, 200]
        raw.send(b"GET /shard/c/0/0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert raw.answer().body == (place / "shard" / "c" / "0" / "0").read_bytes()
        assert raw.is_closed()


def test_a_head_that_comes_letter_by_letter_is_understood(served: BackgroundServer) -> None:
    with Raw(served.port) as raw:
        for letter in GET + b"\r\n":
            raw.send(bytes([letter]))
        assert raw.answer().status == 200


def test_http_1_0_closes_unless_it_is_kept_alive(served: BackgroundServer) -> None:
    with Raw(served.port) as raw:
        raw.send(b"GET /zarr.json HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert raw.answer().status == 200
        raw.send(b"GET /zarr.json HTTP/1.0\r\n\r\n")
        assert raw.answer().status == 200
        assert raw.is_closed()


def test_the_content_of_a_request_is_ignored(served: BackgroundServer) -> None:
    body = b"<x/>" * 100
    with Raw(served.port) as raw:
        raw.send(b"PROPFIND / HTTP/1.1\r\nHost: localhost\r\nDepth: 0\r\nContent-Length: 400\r\n\r\n" + body)
        assert raw.answer().status == 207
        raw.send(GET + b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert raw.answer(has_content=False).status == 100
        raw.send(b"abcd")
        assert raw.answer().status == 200


SMUGGLED = {
    "two lengths": (GET + b"Content-Length: 0\r\nContent-Length: 5\r\n", 400),
    "a signed length": (GET + b"Content-Length: +5\r\n", 400),
    "a list of lengths": (GET + b"Content-Length: 5, 5\r\n", 400),
    "chunked": (GET + b"Transfer-Encoding: chunked\r\n", 501),
    "chunked and a length": (GET + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 501),
    "hidden chunked": (GET + b"Transfer-Encoding : chunked\r\n", 400),
    "a folded line": (GET + b"X: a\r\n b\r\n", 400),
    "two hosts": (GET + b"Host: evil.test\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n", 400),
    "a bare line feed": (b"GET / HTTP/1.1\nHost: a\r\n", 400),
    "a bare carriage return": (GET + b"X: a\rHost: b\r\n", 400),
    "a nul": (GET + b"X: \0\r\n", 400),
    "a header without a colon": (GET + b"X\r\n", 400),
    "an empty name": (GET + b": x\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n", 400),
    "HTTP/0.9": (b"GET /\r\n", 400),
    "two spaces": (b"GET  / HTTP/1.1\r\nHost: a\r\n", 400),
    "a target without a slash": (b"GET zarr.json HTTP/1.1\r\nHost: a\r\n", 400),
    "letters beyond ASCII": ("GET /ü HTTP/1.1\r\nHost: a\r\n".encode(), 400),
    "a large content": (GET + f"Content-Length: {MAX_CONTENT + 1}\r\n".encode(), 413),
    "many headers": (GET + b"X: y\r\n" * 200, 431),
    "a long head": (GET + b"X: " + b"y" * MAX_HEAD + b"\r\n", 431),
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_hostile_head_ends_the_connection(served: BackgroundServer, name: str) -> None:
    head, status = SMUGGLED[name]
    with Raw(served.port) as raw:
        raw.send(head + b"\r\n")
        answer = raw.answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert raw.is_closed()
    with Raw(served.port) as raw:
        assert raw.send(GET + b"\r\n").answer().status == 200


def test_a_head_without_an_end_is_refused_before_it_fills_memory(served: BackgroundServer) -> None:
    with Raw(served.port) as raw:
        raw.send(b"GET /" + b"x" * (2 * MAX_HEAD))
        assert raw.answer().status in (400, 431)


def test_a_slow_head_is_given_up(served: BackgroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threaded, "HEAD_S", 0.05)
    with Raw(served.port) as raw:
        raw.send(b"GET /zarr")
        assert raw.answer().status == 408
        assert raw.is_closed()


def test_slow_content_of_a_request_is_given_up(served: BackgroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threaded, "HEAD_S", 0.05)
    with Raw(served.port) as raw:
        raw.send(GET + b"Content-Length: 1000\r\n\r\n<")
        assert raw.is_closed()


def test_a_head_in_two_parts_leaves_the_next_request_its_time(
    served: BackgroundServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []
    limit = threaded._limit

    def noted(connection: socket.socket, option: int, seconds: float) -> None:
        limits.append(seconds)
        limit(connection, option, seconds)

    monkeypatch.setattr(threaded, "_limit", noted)
    with Raw(served.port) as raw:
        raw.send(GET)
        until(lambda: len(limits) == 3, "the rest of the head is waited for")
        assert raw.send(b"\r\n").answer().status == 200
        assert raw.send(GET + b"\r\n").answer().status == 200
    idle, send, head, again = limits
    assert (idle, send, again) == (threaded.IDLE_S, threaded.SEND_S, threaded.IDLE_S)
    assert 0 < head <= threaded.HEAD_S


@pytest.mark.skipif(not hasattr(socket.socket, "sendmsg"), reason="this system sends one buffer per call")
def test_a_request_takes_one_call_to_receive_and_one_to_send(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call gives the GIL away, which other connections' threads then hold; the chunk has more bytes than a packet."""
    tessarr.create_array(
        place / "large", data=np.ones(1 << 18, "u1"), chunks=(1 << 18,), compressors=None, filters=None
    )
    calls: Counter[str] = Counter()
    with serve_background(app(place / "large"), port=0) as running, Raw(running.port) as raw:

        def counting(name: str) -> Callable[..., Any]:
            real = getattr(socket.socket, name)

            def call(self: socket.socket, *args: Any) -> Any:
                calls[name] += self is not raw.socket
                return real(self, *args)

            return call

        for name in ("recv", "send", "sendall", "sendmsg", "settimeout", "setblocking", "setsockopt"):
            monkeypatch.setattr(socket.socket, name, counting(name))
        get = b"GET /c/0 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        raw.send(get).answer()
        calls.clear()
        for _ in range(5):
            assert len(raw.send(get).answer().body) == 1 << 18
        assert calls.pop("recv") <= 6
        assert +calls == Counter(sendmsg=5)


def test_an_idle_connection_is_closed(served: BackgroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threaded, "IDLE_S", 0.05)
    with Raw(served.port) as raw:
        assert raw.is_closed()


def test_a_client_that_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threaded, "SEND_S", 0.05)
    large = store_app(MemoryStore({"k": bytes(64 << 20)}))
    with serve_background(large, port=0) as running, Raw(running.port) as raw:
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        raw.send(b"GET /k HTTP/1.1\r\nHost: a\r\n\r\n")
        until(lambda: not running._server._open, "the connection is given up")  # type: ignore[union-attr]


def test_a_value_that_changes_while_it_is_sent_ends_the_connection_early(place: Path) -> None:
    sent = threading.Event()
    changed = threading.Event()

    class Changing(MemoryStore):
        def fetch(self, requests: object) -> object:  # type: ignore[override]
            found = super().fetch(requests)  # type: ignore[arg-type]
            if sent.is_set() and not changed.is_set():
                changed.set()
                self.set("k", bytes(10 * WINDOW))
            sent.set()
            return found

    with serve_background(store_app(Changing({"k": bytes(10 * WINDOW)})), port=0) as running, Raw(running.port) as raw:
        raw.send(b"GET /k HTTP/1.1\r\nHost: a\r\n\r\n")
        with pytest.raises((EOFError, ConnectionError)):
            raw.answer()
    assert changed.is_set()


def test_200_clients_at_once_get_right_answers_in_bounded_memory(place: Path) -> None:
    with load.served(place) as (port, prefix, pid):
        asked = load.mixture(place)
        load.load(port, prefix, asked, 1, lambda turn: turn < len(asked))
        before = load.peak_mib(pid)
        turns = len(asked) // 2  # each client begins with another request
        report = load.load(port, prefix, asked, 200, lambda turn: turn < turns)
        print(report)
        assert (len(report.seconds), report.wrong) == (200 * turns, 0)
        after = load.peak_mib(pid)
        if before is not None and after is not None:  # a window of 1 MiB and a few decoded chunks for each of 200
            assert after - before < 200 * 3


def test_memory_does_not_grow_with_a_value() -> None:
    size = 256 << 20

    class Large(WrapperStore):
        """A value of zeros that is not in memory."""

        def getsize(self, key: str) -> int | None:
            return size

        def version(self, key: str) -> str | None:
            return "1"

        def fetch(self, requests: object) -> object:  # type: ignore[override]
            assert isinstance(requests, list)
            bounds = [part.bounds(size) for request in requests for part in request.ranges]
            return [[bytes(stop - start) for start, stop in bounds]]

    with serve_background(store_app(Large(MemoryStore({"k": b""}))), port=0) as running, Raw(running.port) as raw:
        tracemalloc.start()
        try:
            raw.send(b"GET /k HTTP/1.1\r\nHost: a\r\n\r\n")
            received = 0
            while b"\r\n\r\n" not in raw.received:
                raw._more()
            received = len(raw.received.partition(b"\r\n\r\n")[2])
            while received < size:
                received += len(raw.socket.recv(1 << 16))
            assert received == size
            assert tracemalloc.get_traced_memory()[1] < 8 * WINDOW
        finally:
            tracemalloc.stop()


def test_a_connection_beyond_the_limit_waits(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threaded, "MAX_CONNECTIONS", 2)
    with serve_background(app(place), port=0) as running:
        first, second, third = Raw(running.port), Raw(running.port), Raw(running.port)
        assert first.send(GET + b"\r\n").answer().status == 200
        assert second.send(GET + b"\r\n").answer().status == 200
        third.send(GET + b"\r\n")
        first.socket.close()
        assert third.answer().status == 200
        second.socket.close()
        third.socket.close()


def test_the_port_is_free_after_the_shutdown(place: Path) -> None:
    before = threading.enumerate()  # `tessarr.view` keeps a server for as long as the process lives
    running = serve_background(app(place), port=0)
    port = running.port
    with Raw(port) as idle:
        assert idle.send(GET + b"\r\n").answer().status == 200
        running.shutdown()
        running.shutdown()
        assert idle.is_closed()
    with serve_background(app(place), port=port) as again:
        assert again.port == port
    new = [thread for thread in threading.enumerate() if thread not in before]
    assert not [thread for thread in new if thread.name == "tessarr-server"]


def test_auto_takes_a_free_port_where_the_usual_is_taken(place: Path) -> None:
    with serve_background(app(place)) as first, serve_background(app(place)) as second:
        assert first.port != second.port
        with pytest.raises(OSError):
            serve_background(app(place), port=first.port)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_does_not_take_the_server_away(served: BackgroundServer) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, b"1" if {one.fileno() for one in served._server.sockets} == {-1} else b"0")  # type: ignore[union-attr]
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1) == b"1", "the child closed its copy of the socket"
    with Raw(served.port) as raw:
        assert raw.send(GET + b"\r\n").answer().status == 200


def test_a_server_in_the_background_does_not_keep_its_process(place: Path) -> None:
    program = (
        "import sys, tessarr.serve as s, urllib.request as u\n"
        "print(u.urlopen(s.serve_background(sys.argv[1], port=0).url + '/zarr.json').status)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "no_proxy": "127.0.0.1"}
    command = [sys.executable, "-c", program, str(place)]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (ran.returncode, ran.stdout) == (0, "200\n"), ran.stderr


def test_the_url_is_that_of_the_root(place: Path) -> None:
    with serve_background(app(place, name="d.zarr", token="secret"), port=0) as running:
        assert running.url == f"http://127.0.0.1:{running.port}/t/secret/d.zarr"
        assert "secret" not in repr(running)
        z = tessarr.open_array(f"{running.url}/air", mode="r")
        assert z[9, 9] == 99


def test_heads_are_parsed_without_a_socket() -> None:
    head = parse_head(b"GET http://Example.org:80/a%20b?x HTTP/1.1\r\nHost: other\r\nX:  a\t\r\nx: b")
    assert isinstance(head, Head)
    assert (head.request.path, head.request.query) == ("/a%20b", "x")
    assert head.request.headers["host"] == ("Example.org:80",)
    assert head.request.header("x") == "a, b"
    assert isinstance(parse_head(b""), BadHead)


def test_a_signal_just_before_the_wait_for_connections_ends_it() -> None:
    """What is left of such a signal is the byte that the C handler of Python writes to `signal.set_wakeup_fd`."""
    server = threaded.Server(store_app(MemoryStore()), [socket.create_server(("127.0.0.1", 0))])
    running = threading.Thread(target=server.run, daemon=True)
    running.start()
    os.write(server.wakeup_fd, b"\x02")
    server._closing = True
    os.write(server.wakeup_fd, b"\x0f")
    running.join(60)
    assert not running.is_alive()
