"""Make the environment with zarr-python 2.18, which cannot be installed beside zarr 3, in build/zarr2.

    python scripts/zarr2_env.py        # prints the interpreter's path, making the environment where it is missing

The tests run this zarr in a process of its own, as the outside oracle for Zarr v2 (tests/parity/test_written_data.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import venv
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / "build" / "zarr2"
# numcodecs 0.16 dropped what zarr 2.18 imports; zarr 2.18 predates NumPy 2.3.
PACKAGES = ("zarr==2.18.7", "numcodecs>=0.15,<0.16", "numpy>=2,<2.3", "msgpack>=1")
TIMEOUT_S = 600


def interpreter(home: Path) -> Path:
    """Return the interpreter of the environment at `home`."""
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_environment(home: Path = HOME) -> Path:
    """Return the interpreter; make the environment if it is missing, in one process at a time.

    Raises `subprocess.CalledProcessError` when the packages cannot be installed.
    """
    ready = home / ".ready"
    lock = home.with_name(f"{home.name}.lock")
    home.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + TIMEOUT_S
    while not ready.exists():
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{lock} stays; remove it if no other process makes the environment") from None
            time.sleep(0.2)
            continue
        try:
            if not ready.exists():
                venv.create(home, with_pip=True, clear=True)
                command = [str(interpreter(home)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
                subprocess.run([*command, *PACKAGES], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
                ready.touch()
        finally:
            lock.unlink()
    return interpreter(home)


if __name__ == "__main__":
    print(make_environment())
