"""Measure HTTP servers of Zarr side by side, and print a table.

    python benchmarks/serving [--servers NAME …] [--out FILE]

Python's http.server, zarr-http-server, xpublish and Tiled run in ``.bench/serving``, which is made when it is missing; tessarr
runs there too, from this checkout. All serve the same directory on loopback. A row is the quickest of several rounds.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "benchmarks")]

from setup_env import make, newest_python, pip  # noqa: E402

from serving import clients  # noqa: E402
from serving.servers import PREFIXES  # noqa: E402

PLACE = ROOT / ".bench" / "serving"
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


def measure(server: clients.Server, modules: Path | None) -> dict[str, float | None]:
    """Measure all rows of one server. A row that the server fails is ``None``."""
    rows: dict[str, float | None] = {}
    rows |= clients.chunks(server)
    rows |= clients.whole_by_obstore(server)
    rows |= clients.whole_by_zarrita(server, modules)
    rows |= clients.small_ranges(server)
    rows |= clients.large(server)
    return rows


def table(found: dict[str, dict[str, float | None]]) -> str:
    """Write the rows as Markdown, a column per server."""
    names = list(dict.fromkeys(name for rows in found.values() for name in rows))
    lines = [f"| | {' | '.join(found)} |", f"|---{'|---:' * len(found)}|"]
    for name in names:
        cells = [_cell(rows.get(name)) for rows in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"


def main() -> None:
    """Measure the servers that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--servers", nargs="+", choices=PREFIXES, default=list(PREFIXES))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    python, modules = environment(), zarrita()
    found: dict[str, dict[str, float | None]] = {}
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        for name in arguments.servers:
            with running(python, name, Path(folder)) as server:
                found[name] = measure(server, modules)
            print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    text = table(found)
    print(text)
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    if arguments.out is not None:
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
