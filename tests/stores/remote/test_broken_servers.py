"""What servers do that are no servers, or break off: each fault is told by its cause, and tried again where that may help."""

from __future__ import annotations

import functools
import http.server
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import tessarr
from tessarr.stores.base import Store
from tessarr.stores.remote.retry import RequestError
from tessarr.stores.url import store_from

HEAD = b"HTTP/1.1 200 OK\r\nLast-Modified: Sat, 21 Nov 2026 19:00:00 GMT\r\n"
ANSWERS = {
    "reset": (b"", "connection reset"),
    "closed": (b"", "without a response"),
    "silent": (b"", "timed out"),
    "truncated": (HEAD + b"Content-Length: 10\r\n\r\nabc", "ended"),
    "no HTTP": (b"hello\r\n\r\n", "not HTTP"),
}


@contextmanager
def _answering(answer: bytes, kind: str) -> Iterator[str]:
    """A place that gives every connection `answer` and then breaks it off, or (``silent``) keeps it."""
    listening = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.recv(4096)
            connection.sendall(answer)
            if kind == "silent":
                kept.append(connection)
                continue
            if kind == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/x"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for one in kept:
            one.close()


def _open(url: str, *, timeout: str = "300s") -> Store:
    retry = {"max_retries": 2, "backoff": {"init_backoff": timedelta(milliseconds=1)}}
    return store_from(url, storage_options={"retry_config": retry, "client_options": {"timeout": timeout}})[0]


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_that_breaks_off_is_asked_for_again_and_then_told_by_its_cause(kind: str) -> None:
    answer, cause = ANSWERS[kind]
    with _answering(answer, kind) as url, pytest.raises(RequestError, match=cause) as caught:
        _open(url, timeout="300ms" if kind == "silent" else "300s").get("k")
    assert (caught.value.attempts, caught.value.status, caught.value.key) == (3, None, "k")
    assert caught.value.store == url


@pytest.mark.parametrize("more", [b"\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"])
def test_an_answer_of_unknown_length_is_an_error_that_says_how_to_read_it(more: bytes) -> None:
    with _answering(HEAD + more, "closed") as url:
        with pytest.raises(RequestError, match=r"fsspec\+http") as caught:
            _open(url).get("k")
        assert caught.value.attempts == 1
        assert bytes(store_from(f"fsspec+{url}")[0].get("k") or b"") == b"abc"


def test_a_name_that_nobody_has_and_a_port_where_nobody_listens_are_told() -> None:
    with pytest.raises(RequestError, match=r"lookup|resolve|Name or service|nodename") as caught:
        _open("https://nobody-has-this-name.invalid/x").get("k")
    assert caught.value.attempts == 3
    with pytest.raises(RequestError, match="Connection refused"):
        _open("http://127.0.0.1:9/x").get("k")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _https(tmp_path: Path) -> Iterator[str]:
    """A server over `tmp_path` whose certificate nobody has signed."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{server.server_port}/x"
    finally:
        server.shutdown()
        server.server_close()


def test_a_certificate_that_is_not_accepted_is_told_at_once(tmp_path: Path) -> None:
    with _https(tmp_path) as url, pytest.raises(RequestError, match="certificate is not accepted") as caught:
        _open(url).get("k")
    assert caught.value.attempts == 1


def test_a_place_behind_https_is_read(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "x", data=[1, 2, 3])
    with _https(tmp_path) as url:
        options = {"client_options": {"allow_invalid_certificates": True}}
        array = tessarr.open_array(url, mode="r", storage_options=options)
        assert array[...].tolist() == [1, 2, 3]
        assert array.store.url == url
