"""Measure one server: the requests of clients, in this process, and the processor time and memory of the server's process."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

SIDE, CHUNK = 4096, 256
"""Elements of 4 bytes along each of two axes: 64 MiB in 256 chunks of 256 KiB."""
LARGE = 4 << 30
"""Bytes of the large shard."""
HERE = Path(__file__).parent


class Server(NamedTuple):
    """A running server."""

    port: int
    pid: int
    prefix: str

    @property
    def url(self) -> str:
        """The URL of the root of the hierarchy."""
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def cpu_s(self) -> float:
        """Seconds of processor time that its process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        """The most memory that its process has had, in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


class Connection:
    """A connection that stays open, if the server lets it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._socket = self._connect()

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._server.port), timeout=300)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def get(self, key: str, more: str = "") -> tuple[int, int]:
        """Request a key; return the status and the bytes received."""
        head = f"GET {self._server.prefix}/{key} HTTP/1.1\r\nHost: 127.0.0.1:{self._server.port}\r\n{more}\r\n"
        self._socket.sendall(head.encode())
        received = b""
        while b"\r\n\r\n" not in received:
            data = self._socket.recv(1 << 18)
            if not data:
                raise ConnectionError(f"closed after {received[:100]!r}")
            received += data
        text, _, rest = received.partition(b"\r\n\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in text.split(b"\r\n")[1:] if b": " in line)
        nbytes, got = int(headers.get(b"content-length", 0)), len(rest)
        while got < nbytes:
            got += len(self._socket.recv(1 << 20))
        if headers.get(b"connection") == b"close":
            self._socket.close()
            self._socket = self._connect()
        return int(text.split()[1]), got


def ready(server: Server, key: str, patience_s: float = 120) -> None:
    """Wait until the server answers for a key."""
    end = time.monotonic() + patience_s
    while True:
        try:
            status, _ = Connection(server).get(key)
        except OSError:
            status = 0
        if status == 200:
            return
        if time.monotonic() > end:
            raise RuntimeError(f"{server.url}/{key} answered {status}")
        time.sleep(0.5)


def each(server: Server, requests: Sequence[Callable[[], object]], rounds: int) -> tuple[float, float]:
    """Make requests one after another, in rounds; return the seconds of the quickest round, and of the server's processor for
    one round."""
    best, began = float("inf"), server.cpu_s()
    for _ in range(rounds):
        start = time.perf_counter()
        for request in requests:
            request()
        best = min(best, time.perf_counter() - start)
    return best, (server.cpu_s() - began) / rounds


def chunks(server: Server) -> dict[str, float]:
    """Measure GET of single chunks."""
    connection = Connection(server)
    keys = [f"air/c/{n % 16}/{n // 16}" for n in range(100)]
    assert connection.get(keys[0])[0] == 200
    best, cpu = each(server, [partial(connection.get, key) for key in keys], 5)
    return {"chunk GET, µs": best / 100 * 1e6, "the server's processor, µs": cpu / 100 * 1e6}


def small_ranges(server: Server) -> dict[str, float | None]:
    """Measure 1,000 ranges of 100 bytes of the large shard; ``None`` where the server sends the whole value."""
    connection = Connection(server)
    name = "1,000 ranges, s"
    if connection.get("air/c/0/0", "Range: bytes=0-9\r\n") != (206, 10):
        return {name: None}
    key = "shard/c/0/0"

    def one(start: int) -> None:
        answer = connection.get(key, f"Range: bytes={start}-{start + 99}\r\n")
        assert answer == (206, 100), answer

    starts = range(0, LARGE, LARGE // 1000)[:1000]
    best, _ = each(server, [partial(one, start) for start in starts], 3)
    return {name: best}


def large(server: Server) -> dict[str, float | None]:
    """Measure by how much the memory of the server grows when the large shard is read."""
    name = "growth by a shard of 4 GiB, MiB"
    before = server.peak_mib()
    try:
        answer = Connection(server).get("shard/c/0/0")
    except OSError:
        return {name: None}
    return {name: server.peak_mib() - before if answer == (200, LARGE) else None}


def whole_by_obstore(server: Server) -> dict[str, float]:
    """Measure the reading of all chunks by obstore, 32 at a time."""
    from obstore.store import HTTPStore

    store = HTTPStore.from_url(server.url, client_options={"allow_http": True})

    async def read() -> int:
        slots = asyncio.Semaphore(32)

        async def one(key: str) -> int:
            async with slots:
                return len(await (await store.get_async(key)).bytes_async())

        keys = [f"air/c/{y}/{x}" for y in range(SIDE // CHUNK) for x in range(SIDE // CHUNK)]
        return sum(await asyncio.gather(*map(one, keys)))

    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        assert asyncio.run(read()) > 0  # Tiled compresses
        best = min(best, time.perf_counter() - start)
    return {"whole array by obstore, s": best}


def whole_by_zarrita(server: Server, modules: Path | None) -> dict[str, float | None]:
    """Measure the reading of the array by zarrita on Node; ``None`` where that is not installed."""
    name = "whole array by zarrita, s"
    if modules is None:
        return {name: None}
    script = modules / "whole_array.mjs"
    script.write_bytes((HERE / "whole_array.mjs").read_bytes())
    found = subprocess.run(["node", str(script), f"{server.url}/air", "5"], capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"{server.url}: {found.stderr[-300:]}", file=sys.stderr)
        return {name: None}
    return {name: float(found.stdout)}
