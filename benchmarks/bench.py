"""Measure tessarr and the other implementations in one run on the same files.

    make bench                                             # everything
    make bench ROWS="R1 W3" PEERS="tessarr tensorstore"    # a part
    BENCH_SCALE=small make bench                           # quick, to see that it works

Every peer has its own process. Runs are interleaved (A B C A B C …), only one process works at a time, every value is
checked against the truth before anything is timed, and medians and ratios are what is reported. The table and the plot
are written to `benchmarks/results`. No figure can fail; a wrong value does (exit status 1).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import data
import report
import rows_datasets
import rows_latency
import rows_read
import rows_transactions
import rows_varying
import rows_write
from layouts import BENCH, MEMORY, SCALE, SCRATCH
from peers.base import NAMES
from plans.rows import ROWS as PLAN_ROWS
from task import ROWS, Row

assert all((rows_datasets, rows_latency, rows_read, rows_transactions, rows_varying, rows_write)), (
    "importing them fills ROWS"
)
HERE = Path(__file__).resolve().parent
OWN_ENVIRONMENTS = ("zarr2", "old", "tessarr-free")
ON_REQUEST = ("old", "tessarr-free")
"""Peers that are measured only if they are named."""


@dataclass
class Process:
    """Run a peer in a process, and exchange messages with it."""

    name: str
    process: subprocess.Popen[str]
    version: str = ""

    @classmethod
    def start(cls, name: str) -> Process:
        """Start the process. Raises LookupError with the reason when the peer is not there."""
        python = BENCH / (name if name in OWN_ENVIRONMENTS else "main") / "bin" / "python"
        if not python.exists():
            raise LookupError(f"{python.relative_to(BENCH.parent)} is missing: run benchmarks/setup_env.py")
        command = [str(python), str(HERE / "worker.py"), name]
        started = cls(
            name, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE)
        )
        ready = started.read()
        if "ok" not in ready:
            raise LookupError(ready.get("none") or ready["error"])
        started.version = started.ask(do="version")["ok"]
        return started

    def read(self) -> dict[str, Any]:
        """Read the next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"{self.name} ended with {self.process.wait()}"}

    def ask(self, **command: str) -> dict[str, Any]:
        """Send a command and wait for the answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": f"{self.name} ended with {self.process.wait()}"}
        return self.read()

    def stop(self) -> None:
        """End the process by ending its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Cell:
    """Hold the results of one peer in one variant of a row."""

    figures: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def median(self) -> float | None:
        """Return the median; ``None`` without results."""
        return statistics.median(self.figures) if self.figures else None


def run_variant(row: Row, variant: str, peers: list[Process], seconds: float, rounds: int) -> dict[str, Cell]:
    """Prepare and check every peer, then interleave their runs until `seconds` or `rounds` are spent."""
    cells = {peer.name: Cell() for peer in peers}
    able = []
    for peer in peers:
        if peer.name == "limit" and not row.limited:
            continue
        reply = peer.ask(do="task", row=row.name, variant=variant)
        if "ok" in reply:
            able.append(peer)
        else:
            cells[peer.name].note = f"wrong: {reply['error']}" if "error" in reply else reply["none"]
            print(f"    {peer.name}: {cells[peer.name].note}"[:200])
    began = time.monotonic()
    for number in range(min(rounds, row.most_rounds)):
        if number >= 3 and time.monotonic() - began > seconds:
            break
        for peer in able[number % len(able) :] + able[: number % len(able)] if able else []:
            reply = peer.ask(do="once")
            if "ok" in reply:
                cells[peer.name].figures.append(reply["ok"])
            else:
                cells[peer.name].note = f"wrong: {reply.get('error') or reply['none']}"
    return cells


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rows = [*ROWS, *PLAN_ROWS]
    parser.add_argument(
        "--rows", nargs="*", default=list(ROWS), choices=rows, metavar="ROW", help="all but P1 to P11, unless named"
    )
    parser.add_argument(
        "--peers", nargs="*", default=[n for n in NAMES if n not in ON_REQUEST], choices=list(NAMES), metavar="PEER"
    )
    parser.add_argument("--variants", default="", help="only where row and variant match this regular expression")
    parser.add_argument("--engine", choices=("native", "reference", "both"), default="native")
    parser.add_argument("--seconds", type=float, default=20.0, help="per variant, for all peers together")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--name", default=time.strftime("%Y-%m-%d"), help="of the files in benchmarks/results")
    return parser.parse_args()


def start_peers(names: list[str]) -> list[Process]:
    """Start every installed peer, and print the names of the others."""
    peers = []
    for name in names:
        try:
            peers.append(Process.start(name))
        except LookupError as error:
            print(f"left out: {name}: {error}")
    return peers


def main() -> int:
    options = parse_arguments()
    if plans := [name for name in options.rows if name in PLAN_ROWS]:
        options.rows = [name for name in options.rows if name not in PLAN_ROWS]
        status = subprocess.run([sys.executable, str(HERE / "plans"), "--rows", *plans], check=False).returncode
        if status or not options.rows:
            return status
    if "tessarr" not in options.peers and "old" in options.peers:
        options.peers.insert(0, "tessarr")
    if options.engine != "both":
        left_out = "tessarr-reference" if options.engine == "native" else "tessarr"
        options.peers = [name for name in options.peers if name != left_out]
    data.main()
    peers = start_peers(options.peers)
    if not peers:
        return 1
    results: dict[tuple[str, str], dict[str, Cell]] = {}
    versions = {peer.name: peer.version for peer in peers}
    written: list[Path] = []
    try:
        # Rows with servers come last: what goes on in them would disturb the others.
        for name in sorted(options.rows, key=lambda name: name.startswith("L")):
            for variant in (v for v in ROWS[name].variants if re.search(options.variants, f"{name} {v}")):
                print(f"{name} {variant}", flush=True)
                results[name, variant] = run_variant(ROWS[name], variant, peers, options.seconds, options.rounds)
                print(report.line(ROWS[name], results[name, variant]), flush=True)
            written = report.write(HERE / "results", f"{options.name}-{SCALE}", results, versions)
    finally:
        for peer in peers:
            peer.stop()
        for folder in (SCRATCH, MEMORY):
            shutil.rmtree(folder, ignore_errors=True)
    if "old" in versions:
        print(report.slower(results))
    print("written: " + ", ".join(str(path.relative_to(HERE.parent)) for path in written))
    return int(any(cell.note.startswith("wrong") for cells in results.values() for cell in cells.values()))


if __name__ == "__main__":
    sys.exit(main())
