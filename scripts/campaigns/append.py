"""Append to one array from many processes, and count what was lost, doubled or stored by half.

    python scripts/campaigns/append.py --store local --processes 8 --appends 1000
    python scripts/campaigns/append.py --store s3 --processes 8 --appends 1000

``--store s3`` starts the S3 server that the tests use (scripts/install_test_servers.sh). Each append is of 1 to 7 rows, so that
hardly one begins or ends at a chunk. Every row says who appended it, in which of its appends, and which row of how many it is.
Prints one line, and adds it as JSON to ``build/campaigns/append.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from campaigns.slices import Slice, repeated, timed  # noqa: E402

import tessarr  # noqa: E402
from tests.stores.remote import servers  # noqa: E402

SUMMARY = "processes that append to one array, on local files and on an S3 server"
CHUNK_ROWS = 64
MOST_ROWS = 7
LOG = ROOT / "build" / "campaigns" / "append.jsonl"


class Report(NamedTuple):
    """Hold the results of a run."""

    appended: int
    lost: int
    doubled: int
    half: int
    foreign: int
    """Rows that no process appended."""
    seconds: float

    @property
    def is_whole(self) -> bool:
        """Whether every append is there once, and nothing else."""
        return not (self.lost or self.doubled or self.half or self.foreign)


def rows_of(writer: int, number: int) -> np.ndarray[Any, Any]:
    """The rows of one append."""
    count = 1 + (writer + 3 * number) % MOST_ROWS
    return np.array([[writer + 1, number + 1, row, count] for row in range(count)], "i4")


def append_all(place: str, options: dict[str, str], writer: int, appends: int, batch: int) -> None:
    """What each process does: open, say so, wait for the others, append."""
    array = tessarr.open_array(place, mode="r+", storage_options=options or None)
    print("ready", flush=True)
    sys.stdin.read()
    if batch:
        with tessarr.appender(array, batch=batch) as out:
            for number in range(appends):
                out.append(rows_of(writer, number))
        return
    for number in range(appends):
        array.append(rows_of(writer, number))


def judge(found: np.ndarray[Any, Any], processes: int, appends: int, seconds: float) -> Report:
    """Count what is there against what was appended."""
    whole: Counter[tuple[int, int]] = Counter()
    half = foreign = at = 0
    while at < len(found):
        writer, number, row, count = (int(value) for value in found[at])
        if not (0 < writer <= processes and 0 < number <= appends):
            foreign, at = foreign + 1, at + 1
            continue
        block = found[at : at + count]
        if row == 0 and np.array_equal(block, rows_of(writer - 1, number - 1)):
            whole[writer, number] += 1
            at += count
        else:
            half, at = half + 1, at + 1
    lost = processes * appends - len(whole)
    return Report(processes * appends, lost, sum(whole.values()) - len(whole), half, foreign, seconds)


class WorkersFailedError(RuntimeError):
    """Processes failed; the message holds the exit status, the output and the traceback of each."""


def run_workers(commands: Sequence[Sequence[str]]) -> float:
    """Run `commands` concurrently, and return the seconds from when all of them were ready until the last one ended.

    A command prints a line when it is ready, and begins when its standard input ends.

    Raises `WorkersFailedError` when one fails.
    """
    with ExitStack() as stack:
        # Files, because a child that writes much to a pipe would block while no process reads the pipe.
        errors = [stack.enter_context(tempfile.TemporaryFile()) for _ in commands]
        children = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=error))
            for command, error in zip(commands, errors, strict=True)
        ]
        said = [child.stdout.readline() for child in children if child.stdout is not None]  # they are ready
        began = time.monotonic()
        for child in children:
            assert child.stdin is not None
            child.stdin.close()  # begin
        said = [
            line + child.stdout.read() for line, child in zip(said, children, strict=True) if child.stdout is not None
        ]
        failed = [child.wait() for child in children]
        seconds = time.monotonic() - began
        reports = []
        for number, (status, output, error) in enumerate(zip(failed, said, errors, strict=True)):
            error.seek(0)
            if status:
                text = (output + error.read()).decode(errors="replace")
                reports.append(f"-- writer {number}, exit status {status}:\n{text}")
    if reports:
        raise WorkersFailedError(f"{len(reports)} of {len(commands)} processes failed\n" + "\n".join(reports))
    return seconds


def measure(place: str, options: dict[str, str], processes: int, appends: int, batch: int = 0) -> Report:
    """Append from `processes` processes, `appends` times each, to a new array at `place`.

    Raises `WorkersFailedError` when one of them fails.
    """
    tessarr.create_array(
        place, shape=(0, 4), chunks=(CHUNK_ROWS, 4), dtype="i4", storage_options=options or None, overwrite=True
    )
    command = [sys.executable, "-X", "faulthandler", __file__, "--worker", place, "--options", json.dumps(options)]
    command += ["--appends", str(appends), "--batch", str(batch)]
    seconds = run_workers([[*command, "--writer", str(writer)] for writer in range(processes)])
    found = tessarr.open_array(place, mode="r", storage_options=options or None)[:]
    return judge(found, processes, appends, seconds)


@contextmanager
def started(store: str) -> Iterator[tuple[str, dict[str, str]]]:
    """A place for an array, and the options to open it with."""
    with tempfile.TemporaryDirectory() as folder:
        if store == "local":
            yield str(Path(folder) / "a.zarr"), {}
            return
        with servers.s3_server(Path(folder)) as server:
            name = f"append-{random.getrandbits(32):08x}"
            yield f"s3+http://{server.address}/bucket/{name}", dict(servers.S3_OPTIONS)


def run(store: str, processes: int, appends: int, batch: int, alone: int) -> bool:
    """Run, print and log; tells whether nothing was wrong."""
    with started(store) as (place, options):
        one = measure(place, options, 1, alone, batch)
        many = measure(place, options, processes, appends, batch)
    rates = [report.appended / report.seconds for report in (one, many)]
    print(
        f"{store}: {processes} processes x {appends} appends"
        + (f" in batches of {batch} rows" if batch else "")
        + f": {many.lost} lost, {many.doubled} doubled, {many.half} half, {many.foreign} foreign; "
        f"{rates[1]:.1f} appends/s, one writer {rates[0]:.1f} appends/s"
    )
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("a") as log:
        figures = {"store": store, "processes": processes, "appends": appends, "batch": batch, **many._asdict()}
        log.write(json.dumps({**figures, "rate": rates[1], "rate_of_one": rates[0], "time": int(time.time())}) + "\n")
    return many.is_whole and one.is_whole


RUN = (8, 100)
"""Processes, and appends of each, of one run of the campaign."""


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do runs from `begin` on, for so long, at least one: even numbers on local files, odd ones on the S3 server."""
    return timed(begin, seconds, _do, slice_s=0)


def repeat(number: int) -> str | None:
    """Do one run again."""
    return repeated(number, _do)


def _do(number: int, part: Slice) -> None:
    store = ("local", "s3")[number % 2]
    with started(store) as (place, options):
        report = measure(place, options, *RUN)
    part.count(f"appends ({store})", report.appended)
    if not report.is_whole:
        part.find(number, f"{store}: {report}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--appends", type=int, default=1000, help="per process")
    parser.add_argument("--batch", type=int, default=0, help="append through an appender with batches of so many rows")
    parser.add_argument("--alone", type=int, default=200, help="appends of the single writer that is compared with")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--options", default="{}", help=argparse.SUPPRESS)
    parser.add_argument("--writer", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.worker:
        append_all(chosen.worker, json.loads(chosen.options), chosen.writer, chosen.appends, chosen.batch)
        return 0
    return 0 if run(chosen.store, chosen.processes, chosen.appends, chosen.batch, chosen.alone) else 1


if __name__ == "__main__":
    sys.exit(main())
