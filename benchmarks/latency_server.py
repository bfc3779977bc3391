"""Serve a directory over HTTP with a delay before each response, and count the requests.

    python benchmarks/latency_server.py DIRECTORY SECONDS      prints its port, and serves until its input ends

``GET`` and ``HEAD`` with one range, kept-alive connections, ETags. The directories in DIRECTORY are buckets of S3 as well, and
can be listed. ``GET /-/requests`` gives how many requests came since the last such question, without waiting. Requests wait
side by side, as those to a place far away do.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

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
        asked_for = parse_qs(target.partition("?")[2])
        if "list-type" in asked_for:
            return _message(
                "200 OK", listing(path, asked_for.get("prefix", [""])[0]), {"Content-Type": "application/xml"}
            )
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


def listing(bucket: Path, prefix: str) -> bytes:
    """Return the response to ListObjectsV2 with the delimiter ``/``: all objects and prefixes right below `prefix`."""
    found = []
    for path in sorted((bucket / prefix).iterdir()):
        key = escape(f"{prefix}{path.name}")
        if path.is_dir():
            found.append(f"<CommonPrefixes><Prefix>{key}/</Prefix></CommonPrefixes>")
            continue
        size, changed = path.stat().st_size, "2026-01-01T00:00:00.000Z"
        found.append(
            f"<Contents><Key>{key}</Key><LastModified>{changed}</LastModified><ETag>&quot;{size:x}&quot;</ETag>"
            f"<Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        )
    return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(found)}</ListBucketResult>".encode()


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
