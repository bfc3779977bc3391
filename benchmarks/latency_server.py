"""Serve a directory over HTTP with a delay before each response, and count the requests.

    python benchmarks/latency_server.py DIRECTORY SECONDS      prints its port, and serves until its input ends

``GET`` and ``HEAD`` with one range, kept-alive connections, ETags. ``GET /-/requests`` gives how many requests came since
the last such question, without waiting. Requests wait side by side, as those to a place far away do.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import unquote

COUNT = "/-/requests"


class Server:
    """Serve `root`, with a delay of `latency_s` before each response."""

    def __init__(self, root: Path, latency_s: float) -> None:
        self.root = root
        self.latency_s = latency_s
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                writer.writelines(await self.answer(head))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.transport.abort()  # who has gone reads nothing more

    async def answer(self, head: str) -> list[bytes]:
        """Return head and body of the response to one request."""
        method, target, _ = head.split(" ", 2)
        if target == COUNT:
            count, self.requests = self.requests, 0
            return _message("200 OK", str(count).encode())
        self.requests += 1
        await asyncio.sleep(self.latency_s)
        path = self.root / unquote(target.partition("?")[0]).lstrip("/")
        if not path.is_file():
            return _message("404 Not Found", b"")
        stat = path.stat()
        start, stop, status = 0, stat.st_size, "200 OK"
        extra = {
            "ETag": f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"',
            "Last-Modified": formatdate(stat.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        asked = re.search(r"(?im)^range: *bytes=(\d*)-(\d*)", head)
        if asked:
            first, last = asked.groups()
            start = int(first) if first else max(0, stop - int(last))
            stop = min(stop, int(last) + 1) if first and last else stop
            extra["Content-Range"], status = f"bytes {start}-{stop - 1}/{stat.st_size}", "206 Partial Content"
        if method == "HEAD":
            return _message(status, b"", {**extra, "Content-Length": str(stop - start)})
        with path.open("rb") as file:
            file.seek(start)
            return _message(status, file.read(stop - start), extra)


def _message(status: str, body: bytes, extra: dict[str, str] | None = None) -> list[bytes]:
    headers = {"Content-Length": str(len(body)), **(extra or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return [f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1"), body]


@contextlib.contextmanager
def running(root: Path, latency_s: float) -> Iterator[str]:
    """Run the server in a separate process; yield its URL."""
    import subprocess

    command = [sys.executable, __file__, str(root), str(latency_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.stdin.close()


async def main() -> None:
    """Serve until the input ends."""
    server = Server(Path(sys.argv[1]), float(sys.argv[2]))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(main())
