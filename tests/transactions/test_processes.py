"""Processes that commit to the same two arrays, some of which are killed (invariants I1, I2, I5)."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import tessarr
from tests.waiting import until

WORKER = """
import sys, tessarr
from tessarr.errors import ConflictError
for number in range(int(sys.argv[2])):
    while True:
        try:
            with tessarr.transaction(sys.argv[1]) as tx:
                tx.group["a"][0] = tx.group["a"][0] + 1
                tx.group["b"][3] = tx.group["b"][3] + 1
                tx.group.attrs["count"] = tx.group.attrs["count"] + 1
            break
        except ConflictError:
            pass
    print(number, flush=True)
"""
COMMITS = 6


def test_counters_in_two_arrays_and_an_attribute_stay_equal(tmp_path: Path) -> None:
    place = tmp_path / "a"
    root = tessarr.create_group(place, attributes={"count": 0})
    root.create_array("a", data=[0] * 4, chunks=(2,))
    root.create_array("b", data=[0] * 4, chunks=(4,))
    acknowledged: list[str] = []
    killed = 0

    def listen(worker: subprocess.Popen[str]) -> None:
        assert worker.stdout is not None
        acknowledged.extend(worker.stdout)

    def start(commits: int) -> tuple[subprocess.Popen[str], threading.Thread]:
        command = [sys.executable, "-W", "ignore", "-c", WORKER, str(place), str(commits)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        listener = threading.Thread(target=listen, args=(worker,))
        listener.start()
        return worker, listener

    running = [start(COMMITS) for _ in range(2)]
    for _ in range(3):
        before = len(acknowledged)
        victim, listener = start(10_000)
        until(lambda before=before: len(acknowledged) > before + 1, "a commit")  # type: ignore[misc]
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        listener.join()
        victim.stdout.close()  # type: ignore[union-attr]
        killed += 1
        taken: Any = tessarr.snapshot(place)
        with taken:
            assert taken["a"][0] == taken["b"][3] == taken.attrs["count"]
    for worker, listener in running:
        assert worker.wait() == 0
        listener.join()
        worker.stdout.close()  # type: ignore[union-attr]
    found: Any = tessarr.open_group(place, mode="r+")
    assert found["a"][0] == found["b"][3] == found.attrs["count"]
    assert len(acknowledged) <= found["a"][0] <= len(acknowledged) + killed
