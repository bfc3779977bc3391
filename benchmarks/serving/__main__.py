"""Measure HTTP servers of Zarr side by side, and print a table.

    python benchmarks/serving [--servers NAME …] [--out FILE]

Python's http.server, zarr-http-server, xpublish and Tiled run in ``.bench/serving``, which is made when it is missing; tessarr
runs there too, from this checkout. All serve the same directory on loopback, and are asked in turn, round by round. A row is
the median round of each server; below it is the processor time that its process used per round, which other work on the
machine changes less.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "benchmarks")]

from setup_env import make, newest_python, pip  # noqa: E402

from serving import clients  # noqa: E402
from serving.servers import PREFIXES  # noqa: E402

PLACE = ROOT / ".bench" / "serving"
PATIENCE_S = 8.0
"""Seconds of one row after which a server is not asked again: those that encode each chunk take long."""
PACKAGES = (
    "numpy>=2.0", "numcodecs>=0.15", "google-crc32c", "obstore>=0.6", "uvicorn[standard]", "zarr>=3.1", "zarr-http-server",
    "xpublish", "xpublish-zarr", "tiled[server]",
)  # fmt: skip


def environment() -> Path:
    """Make the environment of the servers; return its interpreter."""
    if make(PLACE, newest_python()):
        for package in PACKAGES:
            pip(PLACE, package, required=False)
    return PLACE / "bin" / "python"


def zarrita() -> Path | None:
    """Install zarrita; return its folder, or ``None`` without Node."""
    folder = PLACE / "node"
    if shutil.which("npm") is None:
        return None
    if not (folder / "node_modules" / "zarrita").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "zarrita"]
        if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
            return None
    return folder


def fill(place: Path) -> None:
    """Make an array of chunks, and one shard of 4 GiB, of which the file system stores the index only."""
    import numpy as np

    import tessarr

    group = tessarr.open_group(place, mode="w")
    data = np.arange(clients.SIDE**2, dtype="<i4").reshape(clients.SIDE, clients.SIDE)
    chunks = (clients.CHUNK, clients.CHUNK)
    group.create_array("air", data=data, chunks=chunks, compressors=None, dimension_names=("y", "x"))
    side = 1 << 16
    whole, inner, names = (side, side), (1 << 13, 1 << 13), ("row", "column")
    group.create_array("shard", shape=whole, chunks=inner, shards=whole, dtype="u1", dimension_names=names)
    file = place / "shard" / "c" / "0" / "0"
    file.parent.mkdir(parents=True)
    with file.open("wb") as out:
        out.truncate(clients.LARGE)
        out.seek(clients.LARGE - 16)
        out.write(struct.pack("<QQ", 0, 0))


@contextmanager
def running(python: Path, name: str, place: Path) -> Iterator[clients.Server]:
    """Run a server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}
    command = [str(python), str(ROOT / "benchmarks" / "serving" / "servers.py"), name, str(place), str(port)]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        server = clients.Server(port, process.pid, PREFIXES[name])
        clients.ready(server, "air/zarr.json")
        yield server
    finally:
        process.kill()
        process.wait()


def measure(servers: Mapping[str, clients.Server], modules: Path | None, rounds: int) -> list[Row]:
    """Measure all rows. In each round every server is asked in turn, so that what else the machine does meets all of them."""
    zarrita = None if modules is None else clients.Zarrita(modules)
    try:
        rows = [
            *interleaved("chunk GET of 256 KiB, µs", 1e6 / clients.CHUNKS, _each(servers, clients.chunks), rounds),
            *interleaved("whole array by obstore, ms", 1e3, _each(servers, clients.whole_by_obstore), rounds),
            *interleaved("1,000 small ranges, ms", 1e3, _each(servers, clients.small_ranges), rounds),
        ]
        if zarrita is not None:
            rows[4:4] = interleaved("whole array by zarrita, ms", 1e3, _each(servers, zarrita.whole), rounds)
    finally:
        if zarrita is not None:
            zarrita.close()
    growth = {name: clients.growth_mib(server) for name, server in servers.items()}
    return [*rows, Row("growth by a shard of 4 GiB, MiB", growth)]


def _each(
    servers: Mapping[str, clients.Server], make: Callable[[clients.Server], clients.Round | None]
) -> dict[str, clients.Round | None]:
    """Make the rounds of all servers. A row that a server fails is ``None``."""
    return {name: make(server) for name, server in servers.items()}


def interleaved(name: str, unit: float, made: Mapping[str, clients.Round | None], rounds: int) -> list[Row]:
    """Measure one row: the median round of each server, and the mean processor time of its process."""
    taken: dict[str, list[clients.Taken]] = {server: [] for server in made}
    for number in range(rounds):
        order = list(made.items())
        for server, one in order if number % 2 == 0 else reversed(order):
            if one is not None and (number < 2 or sum(past.wall_s for past in taken[server]) < PATIENCE_S):
                taken[server].append(one())
    rows = [
        Row(name, {server: median(one.wall_s for one in of) if of else None for server, of in taken.items()}, unit),
        Row(
            "– the server's processor",
            {server: sum(one.cpu_s for one in of) / len(of) if of else None for server, of in taken.items()},
            unit,
        ),
    ]
    print(*rows, sep="\n", file=sys.stderr, flush=True)
    return rows


class Row(NamedTuple):
    """One row of the table."""

    name: str
    values: Mapping[str, float | None]
    unit: float = 1.0
    """By what values are multiplied."""

    def __str__(self) -> str:
        return f"| {self.name} | {' | '.join(self._cell(value) for value in self.values.values())} |"

    def _cell(self, value: float | None) -> str:
        if value is None:
            return "–"
        shown = value * self.unit
        text = f"{shown:,.3g}" if shown < 100 else f"{shown:,.0f}"
        return f"**{text}**" if value == min(other for other in self.values.values() if other is not None) else text


def table(rows: Sequence[Row]) -> str:
    """Write the rows as Markdown, a column per server; the best value of a row is bold."""
    names = list(rows[0].values)
    return "\n".join([f"| | {' | '.join(names)} |", f"|---{'|---:' * len(names)}|", *map(str, rows)])


def main() -> None:
    """Measure the servers that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--servers", nargs="+", choices=PREFIXES, default=list(PREFIXES))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    python, modules = environment(), zarrita()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        fill(Path(folder))
        servers = {}
        for name in arguments.servers:
            try:
                servers[name] = stack.enter_context(running(python, name, Path(folder)))
            except RuntimeError as error:
                print(f"{name} does not run: {error}", file=sys.stderr)
        text = table(measure(servers, modules, arguments.rounds))
    print(text)
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    if arguments.out is not None:
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
