"""A process that is killed while it carries out a committed transaction: what is on the disk then is all there is."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import os, signal, sys
from tessarr.stores.local.transactions import late
from tessarr.stores.local.transactions import recovery
from tests.transactions.test_cuts import change
is_swap = sys.argv[2] == "swap"
carry_out, left = recovery._carry_out, 0 if is_swap else int(sys.argv[2])

def counted(*arguments, **options):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    carry_out(*arguments, **options)

recovery._carry_out = counted
recovery.StagedFiles.place = lambda *_: False  # one by one
late.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
change(sys.argv[1], mode="swap" if is_swap else "journal")
"""
STEPS = 9
"""How many values the transaction of `tests.transactions.test_cuts.change` changes."""


def kill_while_carried_out(place: Path, after: int | str) -> None:
    """Run the transaction in a process that kills itself when so many of its values are in place.

    ``"swap"``: of mode *swap*, when the root is exchanged.
    """
    command = [sys.executable, "-c", _PROGRAM, str(place), str(after)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert (place / ".tessarr-journal").exists()
