"""Check cibuildwheel's configuration in pyproject.toml: cibuildwheel accepts it, and builds wheels for the promised platforms.

    python scripts/wheel_targets.py     # in an environment with cibuildwheel

Prints what cibuildwheel would build on each system, without building. Exits 1 when it refuses the configuration, or when one of
the wheels is missing: for Linux, macOS and Windows, x86-64 and arm64 each, one for CPython 3.11 and newer (abi3) and one for
free-threaded CPython.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("cp311", "cp314t")
PLATFORMS = {
    "linux": ("manylinux_x86_64", "manylinux_aarch64"),
    "macos": ("macosx_x86_64", "macosx_arm64"),
    "windows": ("win_amd64", "win_arm64"),
}


def targets(system: str) -> list[str]:
    """List the wheels that cibuildwheel builds on `system`. Raises `CalledProcessError` when it refuses the configuration."""
    command = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", system, str(ROOT)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def main() -> int:
    """Compare what is built with what is promised."""
    missing = []
    for system, platforms in PLATFORMS.items():
        found = targets(system)
        print(f"{system}: {' '.join(found)}")
        missing += [name for name in map("-".join, product(PYTHONS, platforms)) if name not in found]
    if missing:
        print(f"not built: {', '.join(missing)} (tool.cibuildwheel in pyproject.toml)", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
