"""Run the tests several times while other processes keep the processors busy.

    python scripts/busy.py                                   # the whole suite, 5 times beside 4 busy processes
    python scripts/busy.py --times 2 --busy 8 -- tests/stores -x

What follows ``--`` goes to pytest. Exits 0 only when every run passes. A test that fails here and passes on an idle
machine depends on time: tests/architecture/test_clocks.py says how tests do without.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPIN = "import os, sys\nparent = int(sys.argv[1])\nwhile os.getppid() == parent:\n    sum(range(1_000_000))"
"""Uses a processor for as long as its parent is there."""


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run `count` busy processes."""
    command = [sys.executable, "-c", SPIN, str(os.getpid())]
    spinning = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5, help="how often the tests are run (5)")
    parser.add_argument("--busy", type=int, default=4, help="how many processes are busy beside them (4)")
    parser.add_argument("--jobs", type=int, default=2, help="processes of pytest (2)")
    parser.add_argument("arguments", nargs="*", metavar="-- ARGUMENT", help="for pytest")
    options = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(options.jobs), *options.arguments]
    statuses = []
    with busy(options.busy):
        for number in range(1, options.times + 1):
            began = time.monotonic()
            statuses.append(subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode)
            word = "failed" if statuses[-1] else "passed"
            print(f"run {number} of {options.times} {word} in {time.monotonic() - began:.0f} s", flush=True)
    print(f"{statuses.count(0)} of {options.times} runs passed beside {options.busy} busy processes")
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main())
