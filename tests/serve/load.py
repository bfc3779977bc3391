"""Load a server: many clients at once, each on a connection of its own, that check every answer.

    python -m tests.serve.load --clients 200 --seconds 60

serves a hierarchy from a process of its own, and prints the requests, how long they took, and the memory of the server.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.serve.client import Raw
from tests.serve.conftest import SHARD, fill
from tests.waiting import PATIENCE_S


class Asked(NamedTuple):
    """A request, and the answer that it must have."""

    key: str
    status: int
    body: bytes
    more: str = ""


class Report(NamedTuple):
    """What a load found."""

    seconds: list[float]
    """How long each request took, sorted."""
    wrong: int
    """Requests without the right answer."""

    def __str__(self) -> str:
        def at(part: float) -> str:
            return f"{self.seconds[min(len(self.seconds) - 1, int(len(self.seconds) * part))] * 1000:.1f} ms"

        return (
            f"{len(self.seconds)} requests, {self.wrong} wrong; half within {at(0.5)}, 95 % within {at(0.95)}, "
            f"99 % within {at(0.99)}, all within {at(1)}"
        )


def mixture(place: Path) -> list[Asked]:
    """Requests of every kind: documents, chunks, ranges, a value of several windows, missing keys, slices and views."""
    shard = (place / "shard" / "c" / "0" / "0").read_bytes()
    return [
        *(Asked(key, 200, (place / key).read_bytes()) for key in ("air/zarr.json", "air/c/0/0", "air/c/1/1")),
        Asked("shard/c/0/0", 200, shard),
        Asked("shard/c/0/0", 206, shard[-1000:], "Range: bytes=-1000\r\n"),
        Asked("nothing", 404, b"404 Not Found\n"),
        Asked("shard.raw?0=3&1=5:500", 200, SHARD[3, 5:500].tobytes()),
        Asked("shard/@chunks=50x1000,dtype=int64/c/3/0", 200, SHARD[150:200].astype("<i8").tobytes()),
    ]


def load(port: int, prefix: str, asked: list[Asked], clients: int, goes_on: Callable[[int], bool]) -> Report:
    """Let `clients` threads ask, each another request first, while `goes_on` holds for the number of a turn."""
    ready = threading.Barrier(clients)

    def one(number: int) -> tuple[list[float], int]:
        seconds, wrong, turn = [], 0, 0
        with Raw(port) as raw:
            ready.wait(PATIENCE_S)
            while goes_on(turn):
                wanted = asked[(number + turn) % len(asked)]
                start = time.perf_counter()
                raw.send(f"GET {prefix}/{wanted.key} HTTP/1.1\r\nHost: 127.0.0.1\r\n{wanted.more}\r\n".encode())
                answer = raw.answer()
                seconds.append(time.perf_counter() - start)
                wrong += (answer.status, answer.body) != (wanted.status, wanted.body)
                turn += 1
        return seconds, wrong

    with ThreadPoolExecutor(clients) as pool:
        found = list(pool.map(one, range(clients)))
    return Report(sorted(second for seconds, _ in found for second in seconds), sum(wrong for _, wrong in found))


@contextmanager
def served(place: Path) -> Iterator[tuple[int, str, int]]:
    """Serve a place by ``tessarr serve`` in a process of its own: its port, the path of the root, its number."""
    command = [sys.executable, "-m", "tessarr", "serve", str(place), "--port", "0"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ
    ) as process:
        try:
            assert process.stdout is not None
            url = urlsplit(process.stdout.readline().strip())
            assert url.port is not None
            yield url.port, url.path.rstrip("/"), process.pid
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def peak_mib(pid: int) -> float | None:
    """The most memory that a process has had, in MiB; ``None`` where no ``/proc`` tells."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)


def main() -> None:
    """Load a server for some seconds, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "data.zarr"
        fill(place, 3)
        with served(place) as (port, prefix, pid):
            end = time.monotonic() + arguments.seconds
            print(load(port, prefix, mixture(place), arguments.clients, lambda _: time.monotonic() < end))
            print(f"the server had at most {peak_mib(pid):,.0f} MiB")


if __name__ == "__main__":
    main()
