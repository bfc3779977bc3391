"""Run a script or module with ``import zarr`` answered by tessarr, or write stubs of that ``zarr`` for editors."""

from __future__ import annotations

import os
import sys
from typing import Literal

from tessarr.as_zarr import install
from tessarr.common.program import run_program

USAGE = """\
usage: python -m tessarr.as_zarr [--v2] (SCRIPT | -m MODULE | -c CODE) [ARGUMENT …]
       python -m tessarr.as_zarr [--v2] --stubs DIRECTORY"""


def main(arguments: list[str]) -> int:
    """Run the script, module or code that `arguments` name. Child processes inherit the alias with the same version."""
    version: Literal[2, 3] = 2 if arguments[:1] == ["--v2"] else 3
    arguments = arguments[version == 2 :]
    if arguments[:1] == ["--stubs"]:
        if len(arguments) != 2:
            print(USAGE, file=sys.stderr)  # noqa: T201 - errors of a command go there
            return 2
        from tessarr.as_zarr.stubs import write_stubs

        print(f"{len(write_stubs(arguments[1], version))} stubs in {os.path.join(arguments[1], 'zarr')}")  # noqa: T201
        return 0

    def prepare() -> None:
        os.environ["TESSARR_AS_ZARR"] = str(version)
        install(version=version)

    return run_program(arguments, USAGE, prepare)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
