"""Find a free-threaded CPython, 3.14 or newer, and print its path; get one if none is installed.

    python scripts/freethreaded_python.py [PYTHON]

The script tries PYTHON first, then the interpreters on PATH, under pyenv's root, and under build/python. It installs uv
from the Python registry into build/uv; uv downloads CPython from its publisher. If that fails, the script compiles the
sources that the machine's Debian mirror has (some minutes; a C compiler, make, and the headers of OpenSSL, libffi and zlib
are needed). If that fails too, it says what to do and exits with 1.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

BUILD = Path(__file__).resolve().parents[1] / "build"
FETCHED = BUILD / "python"
WANTED = "3.14t"
SOURCES = "pool/main/p/python3.14/python3.14_3.14.7.orig.tar.xz"
SHA256 = "3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81"
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


def mirrors() -> list[str]:
    """Return the addresses of the mirrors that apt is set up with."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return []
    return sorted(set(found.split()))


def sources() -> Path | None:
    """Download the sources of CPython from a mirror of Debian into build/python. Returns the archive, if one was found."""
    archive = FETCHED / SOURCES.rpartition("/")[2]
    for mirror in mirrors():
        try:
            with urllib.request.urlopen(f"{mirror}/{SOURCES}", timeout=60) as answer:
                data = answer.read()
        except OSError:
            continue
        if hashlib.sha256(data).hexdigest() == SHA256:
            FETCHED.mkdir(parents=True, exist_ok=True)
            archive.write_bytes(data)
            return archive
    return None


def compile_sources() -> None:
    """Compile CPython in build/python/source and install it in build/python/compiled; the output goes to a file."""
    archive = sources()
    if archive is None:
        return
    source, log = FETCHED / "source", FETCHED / "compile.log"
    print(f"compiling {archive.name} (some minutes); the output goes to {log}", file=sys.stderr)
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    steps = (
        ["tar", "--extract", "--file", str(archive), "--strip-components=1"],
        ["./configure", "--disable-gil", f"--prefix={FETCHED / 'compiled'}"],
        ["make", f"-j{os.cpu_count()}"],
        ["make", "install"],
    )
    with log.open("wb") as output:
        for step in steps:
            if subprocess.run(step, cwd=source, stdin=subprocess.DEVNULL, stdout=output, stderr=output).returncode:
                return


def main() -> int:
    named = sys.argv[1] if len(sys.argv) > 1 else None
    found = next(filter(suits, candidates(named)), None)
    for get in (fetch, compile_sources):
        if found is None:
            get()
            found = next(filter(suits, candidates(None)), None)
    if found is None:
        print(HELP, file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
