"""Run a script or module with ``import zarr`` answered by tessarr."""

from __future__ import annotations

import os
import sys

from tessarr.as_zarr import install
from tessarr.common.program import run_program

USAGE = "usage: python -m tessarr.as_zarr [--v2] (SCRIPT | -m MODULE | -c CODE) [ARGUMENT …]"


def main(arguments: list[str]) -> int | str:
    """Run the script, module or code that `arguments` name. Child processes inherit the alias with the same version."""
    version = 2 if arguments[:1] == ["--v2"] else 3

    def prepare() -> None:
        os.environ["TESSARR_AS_ZARR"] = str(version)
        install(version=2 if version == 2 else 3)

    return run_program(arguments[1:] if version == 2 else arguments, USAGE, prepare)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
