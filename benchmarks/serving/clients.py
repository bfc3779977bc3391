"""Measure one server: the requests of clients, in this process, and the processor time and memory of the server's process."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

SIDE, CHUNK = 4096, 256
"""Elements of 4 bytes along each of two axes: 64 MiB in 256 chunks of 256 KiB."""
LARGE = 4 << 30
"""Bytes of the large shard."""
CHUNKS = 400
"""Requests of a round of chunks."""
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


class Taken(NamedTuple):
    """What one round of requests took."""

    wall_s: float
    cpu_s: float
    """Of the processor, by the server's process."""


Round = Callable[[], Taken]


def timed(server: Server, work: Callable[[], object]) -> Round:
    """Make a round of a piece of work."""

    def one() -> Taken:
        before, start = server.cpu_s(), time.perf_counter()
        work()
        return Taken(time.perf_counter() - start, server.cpu_s() - before)

    return one


def chunks(server: Server) -> Round:
    """GET of 400 single chunks over one connection, a new one per round: servers close idle ones."""
    keys = [f"air/c/{n % 16}/{n // 16 % 16}" for n in range(CHUNKS)]

    def work() -> None:
        connection = Connection(server)
        for key in keys:
            assert connection.get(key)[0] == 200

    return timed(server, work)


def small_ranges(server: Server) -> Round | None:
    """1,000 ranges of 100 bytes of the large shard; ``None`` where the server sends the whole value."""
    if Connection(server).get("air/c/0/0", "Range: bytes=0-9\r\n") != (206, 10):
        return None

    def work() -> None:
        connection = Connection(server)
        for start in range(0, LARGE, LARGE // 1000)[:1000]:
            answer = connection.get("shard/c/0/0", f"Range: bytes={start}-{start + 99}\r\n")
            assert answer == (206, 100), answer

    return timed(server, work)


def growth_mib(server: Server) -> float | None:
    """Return by how much the memory of the server grows when the large shard is read; ``None`` where it fails."""
    before = server.peak_mib()
    try:
        answer = Connection(server).get("shard/c/0/0")
    except OSError:
        return None
    return server.peak_mib() - before if answer == (200, LARGE) else None


def whole_by_obstore(server: Server) -> Round:
    """All chunks by obstore, 32 at a time."""
    from obstore.store import HTTPStore

    store = HTTPStore.from_url(server.url, client_options={"allow_http": True})

    async def read() -> int:
        slots = asyncio.Semaphore(32)

        async def one(key: str) -> int:
            async with slots:
                return len(await (await store.get_async(key)).bytes_async())

        keys = [f"air/c/{y}/{x}" for y in range(SIDE // CHUNK) for x in range(SIDE // CHUNK)]
        return sum(await asyncio.gather(*map(one, keys)))

    assert asyncio.run(read()) > 0  # Tiled compresses
    return timed(server, lambda: asyncio.run(read()))


class Zarrita:
    """zarrita in one process of Node, which reads a whole array when it is asked to, so that all servers meet warm code."""

    def __init__(self, modules: Path) -> None:
        script = modules / "whole_array.mjs"
        script.write_bytes((HERE / "whole_array.mjs").read_bytes())
        self._process = subprocess.Popen(
            ["node", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _ask(self, url: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{url}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def whole(self, server: Server) -> Round | None:
        """The whole array; ``None`` where zarrita cannot read it from this server."""
        url = f"{server.url}/air"
        answer = self._ask(url)
        if answer != "read":
            print(f"{url}: {answer}", file=sys.stderr)
            return None
        return timed(server, lambda: self._ask(url))
