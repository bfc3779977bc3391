"""Run a script or module with ``import zarr`` answered by tessarr."""

from __future__ import annotations

import os
import runpy
import sys

from tessarr.as_zarr import install

USAGE = "usage: python -m tessarr.as_zarr [--v2] (SCRIPT | -m MODULE | -c CODE) [ARGUMENT …]"


def main(arguments: list[str]) -> int | str:
    """Run what `arguments` name; processes that it starts with `tessarr.as_zarr` on their path see the same version."""
    version = 3
    if arguments[:1] == ["--v2"]:
        version, arguments = 2, arguments[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)  # noqa: T201 - that is what was asked for
        return 0 if arguments else 2
    if arguments[0] in ("-m", "-c") and len(arguments) < 2:
        return USAGE
    os.environ["TESSARR_AS_ZARR"] = str(version)
    install(version=2 if version == 2 else 3)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
