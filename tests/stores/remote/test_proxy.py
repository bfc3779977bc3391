"""The proxy that other tests use leaves nothing behind."""

from __future__ import annotations

import gc
import socket
import sys
from pathlib import Path

import pytest

from tests.stores.remote.proxy import start_proxy
from tests.stores.remote.servers import Server


def test_a_proxy_that_ends_closes_what_connects_at_that_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    left: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: left.append(found.exc_value))
    clients: list[socket.socket] = []
    for _ in range(20):
        with start_proxy(Server("127.0.0.1", 1, Path())) as proxy:

            def connect(address: tuple[str, int] = (proxy.host, proxy.port)) -> None:
                clients.extend(socket.create_connection(address) for _ in range(3))

            connect()
            assert proxy._loop is not None
            proxy._loop.call_soon_threadsafe(connect)
    for one in clients:
        one.close()
    gc.collect()
    assert not left  # ResourceWarning is an error
