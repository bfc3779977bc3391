"""Run a script or module with zarr-python patched; ``--stats`` prints the counters at the end."""

from __future__ import annotations

import atexit
import sys

from tessarr.common.program import run_program
from tessarr.zarr_python import patch, stats

USAGE = "usage: python -m tessarr.zarr_python [--strict] [--stats] (SCRIPT | -m MODULE | -c CODE) [ARGUMENT …]"


def main(arguments: list[str]) -> int:
    """Run the program that `arguments` name."""
    options = set()
    while arguments[:1] in (["--strict"], ["--stats"]):
        options.add(arguments[0])
        arguments = arguments[1:]

    def prepare() -> None:
        patch(strict="--strict" in options)
        if "--stats" in options:
            atexit.register(lambda: print(stats(), file=sys.stderr))  # noqa: T201 - the option requests the output

    return run_program(arguments, USAGE, prepare)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
