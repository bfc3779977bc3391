"""Run one peer in one process: read commands and write answers as JSON lines.

    {"do": "version"}                        → {"ok": "zarr-python 3.4.2"}
    {"do": "task", "row": "R1", "variant": "raw64"} → {"ok": true} once it was run and every value checked
    {"do": "once"}                           → {"ok": 0.123}       one figure of the present task
An answer may be {"none": why} (not supported) or {"error": what happened} instead.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
import warnings
from typing import Any

import rows_datasets
import rows_latency
import rows_read
import rows_transactions
import rows_varying
import rows_write
from peers.base import NotSupportedError, Peer, load
from task import ROWS, Task

assert all((rows_datasets, rows_latency, rows_read, rows_transactions, rows_varying, rows_write)), (
    "importing them fills ROWS"
)


class Worker:
    """Hold the peer and its current task."""

    def __init__(self, name: str) -> None:
        self.peer: Peer = load(name)
        self.task: Task | None = None

    def answer(self, command: dict[str, Any]) -> Any:
        """Carry out one command."""
        if command["do"] == "version":
            return self.peer.version()
        if command["do"] == "task":
            self.task = None
            gc.collect()
            self.task = ROWS[command["row"]].make(self.peer, command["variant"])
            self.task.before()
            result = self.task.run()
            self.task.check(result)
            return True
        assert self.task is not None, "no task"
        gc.collect()
        return self.task.once()


def probe(name: str, variant: str) -> None:
    """Print the peak memory of one M2 variant in a process that has done nothing else."""
    print(rows_write.peak_memory(load(name), variant))


def main() -> None:
    """Serve until the input ends."""
    # The protocol has its own copy of stdout; whatever a library prints goes to stderr.
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    try:
        worker = Worker(sys.argv[1])
    except ImportError as error:
        print(json.dumps({"none": f"not installed: {error}"}), file=channel)
        return
    print(json.dumps({"ok": "ready"}), file=channel)
    for line in sys.stdin:
        try:
            reply: dict[str, Any] = {"ok": worker.answer(json.loads(line))}
        except (NotSupportedError, AttributeError, NotImplementedError) as error:
            reply = {"none": f"{type(error).__name__}: {error}"}
        except Exception as error:  # a wrong value or a crash of one peer must not end the others' run
            reply = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        print(json.dumps(reply), file=channel)


if __name__ == "__main__":
    probe(*sys.argv[1:]) if len(sys.argv) == 3 else main()
