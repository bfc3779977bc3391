"""Find a free-threaded CPython, 3.14 or newer, and print its path; download one with uv if none is installed.

    python scripts/freethreaded_python.py [PYTHON]

The script tries PYTHON first, then the interpreters on PATH, under pyenv's root, and under build/python. It installs uv
from the Python registry into build/uv; uv downloads CPython from its publisher. If that fails, the script says what to do
and exits with 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

BUILD = Path(__file__).resolve().parents[1] / "build"
FETCHED = BUILD / "python"
WANTED = "3.14t"
NAMES = ("python3.14t", "python3.15t", "python3.14-nogil", "python3.15-nogil")
CHECK = "import sys, sysconfig; sys.exit(not sysconfig.get_config_var('Py_GIL_DISABLED') or sys.version_info < (3, 14))"
HELP = f"""error: a free-threaded CPython, 3.14 or newer, is needed, and none was found or could be fetched. Get one by
  uv python install {WANTED}                      where uv can reach the releases of python-build-standalone
  pyenv install {WANTED}                          compiles it from python.org's sources
  apt install python3.14-nogil                  where Debian or Ubuntu have it
  ./configure --disable-gil && make install     in the sources of CPython
and name it, where it is not found by itself: make freethreaded PYTHON=/path/to/python{WANTED}"""


def suits(python: str) -> bool:
    """Return whether an interpreter is free-threaded and new enough."""
    try:
        return subprocess.run([python, "-c", CHECK], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def candidates(named: str | None) -> Iterator[str]:
    """Yield the paths where such an interpreter may be."""
    if named:
        yield named
    yield from filter(None, map(shutil.which, NAMES))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from (str(path) for path in sorted(pyenv.glob("versions/3.*t*/bin/python"), reverse=True))
    yield from (str(path) for path in sorted(FETCHED.glob("*/bin/python3.*t"), reverse=True))


def fetch() -> None:
    """Download an interpreter into build/python with uv; the output of uv goes to standard error."""
    uv = BUILD / "uv"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(uv), "uv"]
    program = uv / "bin" / "uv"
    if not program.exists() and subprocess.run(pip, stdin=subprocess.DEVNULL, check=False).returncode:
        return
    environment = {**os.environ, "UV_PYTHON_INSTALL_DIR": str(FETCHED), "UV_NO_PROGRESS": "1"}
    command = [str(program), "python", "install", "--no-bin", WANTED]
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)


def main() -> int:
    named = sys.argv[1] if len(sys.argv) > 1 else None
    found = next(filter(suits, candidates(named)), None)
    if found is None:
        fetch()
        found = next(filter(suits, candidates(None)), None)
    if found is None:
        print(HELP, file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
