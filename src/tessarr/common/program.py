"""Run a Python program as its own interpreter would: for ``python -m … SCRIPT | -m MODULE | -c CODE``."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable


def run_program(arguments: list[str], usage: str, prepare: Callable[[], object]) -> int:
    """Run what `arguments` name, after `prepare`. Returns the exit status: 2, with `usage` on stderr, for wrong arguments."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage)  # noqa: T201 - the output is requested
        return 0 if arguments else 2
    first = arguments[0]
    problem = ""
    if first in ("-m", "-c"):
        problem = "" if len(arguments) > 1 else f"{first} needs an argument"
    elif first.startswith("-"):
        problem = f"unknown option {first}"
    elif not os.path.exists(first):
        problem = f"no such script: {first}"
    if problem:
        print(f"{problem}\n{usage}", file=sys.stderr)  # noqa: T201 - errors of a command go there
        return 2
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
