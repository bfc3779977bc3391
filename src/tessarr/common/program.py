"""Run a Python program as its own interpreter would: for ``python -m … SCRIPT | -m MODULE | -c CODE``."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable


def run_program(arguments: list[str], usage: str, prepare: Callable[[], object]) -> int | str:
    """Run what `arguments` name, after `prepare`; gives what `sys.exit` is to be given: a number, or `usage`."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage)  # noqa: T201 - the output is requested
        return 0 if arguments else 2
    if arguments[0] in ("-m", "-c") and len(arguments) < 2:
        return usage
    prepare()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path[0] = ""
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0
