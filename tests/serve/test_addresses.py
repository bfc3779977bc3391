"""Where servers listen: at both addresses of this machine for itself, on one port, and who is answered there."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from tessarr.serve import app, running, serve_background
from tests.cli.test_serve import read, server
from tests.waiting import PATIENCE_S

IPV4, IPV6 = "127.0.0.1", "::1"
needs_ipv6 = pytest.mark.skipif(running._loopback() == [IPV4], reason="this machine has no address ::1")
UVICORN: dict[str, object] = {"log_level": "error"}


def status(address: str, port: int, path: str = "/zarr.json", host: str | None = None) -> int:
    """Ask at an address, for a host; by default the host is the address."""
    at = f"[{address}]" if ":" in address else address
    headers = {} if host is None else {"Host": host}
    return httpx.get(f"http://{at}:{port}{path}", headers=headers, timeout=PATIENCE_S, trust_env=False).status_code


@needs_ipv6
@pytest.mark.parametrize("options", [None, UVICORN], ids=["standard library", "uvicorn"])
def test_both_addresses_of_loopback_answer_on_one_port(place: Path, options: dict[str, object] | None) -> None:
    application = app(place, allowed_hosts=["localhost", IPV4, f"[{IPV6}]"])
    with serve_background(application, uvicorn_options=options) as served:
        for address in (IPV4, IPV6):
            assert status(address, served.port) == 200
            assert status(address, served.port, host=f"localhost:{served.port}") == 200
            assert status(address, served.port, host="evil.test") == 421
        assert served.url == f"http://{IPV4}:{served.port}"


@needs_ipv6
def test_the_command_listens_at_both(place: Path) -> None:
    with server(place) as (_, lines):
        url = lines[0].strip()
        assert read(f"{url}zarr.json")[0] == 200
        assert read(f"{url.replace(IPV4, f'[{IPV6}]')}zarr.json")[0] == 200
        assert read(f"{url.replace(IPV4, f'[{IPV6}]')}zarr.json", Host="evil.test")[0] == 421


@needs_ipv6
@pytest.mark.parametrize("address", [IPV4, IPV6])
def test_an_address_is_that_address_alone(place: Path, address: str) -> None:
    other = IPV6 if address == IPV4 else IPV4
    with serve_background(app(place), host=address, port=0) as served:
        assert status(address, served.port) == 200
        with pytest.raises(httpx.ConnectError):
            status(other, served.port)


@needs_ipv6
@pytest.mark.parametrize("address", [IPV4, IPV6])
def test_a_port_that_is_taken_at_one_address_is_taken(
    place: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = IPV6 if address == IPV4 else IPV4
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError):
            serve_background(app(place), port=port)
        socket.create_server((other, port), family=socket.AF_INET6 if ":" in other else socket.AF_INET).close()
        monkeypatch.setattr(running, "DEFAULT_PORT", port)
        with serve_background(app(place)) as served:
            assert served.port != port
            assert [status(one, served.port) for one in (IPV4, IPV6)] == [200, 200]


def test_without_ipv6_the_other_address_answers(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket

    def without(family: Any = -1, *arguments: Any, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return real(family, *arguments, **options)

    monkeypatch.setattr(socket, "socket", without)
    sockets = running.listen("localhost", 0)
    monkeypatch.undo()
    try:
        assert [one.getsockname()[0] for one in sockets] == [IPV4]
    finally:
        for one in sockets:
            one.close()


def test_a_place_that_is_served_from_python_needs_its_secret_and_a_name_of_this_machine(place: Path) -> None:
    with serve_background(place) as served:
        path = httpx.URL(served.url).path
        assert path.startswith("/t/")
        assert status(IPV4, served.port, f"{path}/zarr.json") == 200
        assert status(IPV4, served.port, f"{path}/zarr.json", host="evil.test") == 421
        assert status(IPV4, served.port) == 401
    with serve_background(place, host="0.0.0.0") as served:
        assert status(IPV4, served.port, f"{httpx.URL(served.url).path}/zarr.json", host="data.example") == 200
