"""Make the environments of the benchmarks: the newest installed Python, every peer, and tessarr.

    python benchmarks/setup_env.py [--refresh] [--old COMMIT] [--free]

`.bench/main` holds the newest zarr, TensorStore, zarrs, zarrista and tessarr; `.bench/zarr2` holds zarr 2.18, which
cannot live beside zarr 3. Peers that this Python cannot install are omitted and printed. tessarr is installed again
whenever its sources changed. `.bench/old` holds tessarr as it was at COMMIT, to be measured beside the present one, and
`.bench/tessarr-free` the present one on a free-threaded Python, which is found, downloaded or compiled.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / ".bench"
OLDEST, NEWEST = (3, 11), (3, 14)
PEERS = ("zarr", "tensorstore", "zarrs", "zarrista", "icechunk")
BASE = ("numpy>=2.0", "numcodecs>=0.15", "google-crc32c", "obstore>=0.6", "dask[array]>=2024.8", "xarray>=2025.6")
FREE = ("numpy>=2.1", "numcodecs>=0.16", "google-crc32c")
ZARR2 = ("zarr==2.18.*", "numcodecs<0.16")


def candidates() -> Iterator[str]:
    """Yield the interpreters on PATH and under pyenv's root."""
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found:
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from (str(path) for path in sorted(pyenv.glob("versions/3.*/bin/python"), reverse=True))
    yield sys.executable


def version_of(python: str) -> tuple[int, ...] | None:
    """Return the version of an interpreter that can make environments; ``None`` if it cannot run."""
    code = "import sys, venv, ensurepip; print(*sys.version_info[:3])"
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return tuple(map(int, run.stdout.split())) if run.returncode == 0 else None


def newest_python() -> str:
    """Return the newest supported interpreter."""
    known = {python: version_of(python) for python in candidates()}
    usable = {p: v for p, v in known.items() if v is not None and OLDEST <= v[:2] <= NEWEST}
    if not usable:
        raise SystemExit("error: no Python 3.11 to 3.14 found")
    return max(usable, key=lambda python: usable[python])


def pip(environment: Path, *arguments: str, required: bool = True) -> bool:
    """Run pip in `environment`; return whether it succeeded."""
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", *arguments]
    worked = subprocess.run(command, stdin=subprocess.DEVNULL, check=False, cwd=ROOT).returncode == 0
    if required and not worked:
        raise SystemExit(f"error: pip install {' '.join(arguments)} failed")
    return worked


def make(environment: Path, python: str) -> bool:
    """Make `environment` unless it exists; return whether it was made."""
    if (environment / "bin" / "python").exists():
        return False
    subprocess.run([python, "-m", "venv", str(environment)], check=True)
    pip(environment, "--upgrade", "pip")
    return True


def sources() -> str:
    """Return a digest of the sources of tessarr."""
    digest = hashlib.sha256()
    folders = [ROOT / "src", ROOT / "rust"]
    files = [p for folder in folders for p in folder.rglob("*") if p.suffix in {".py", ".pyi", ".rs", ".toml", ".lock"}]
    for path in sorted([*files, ROOT / "pyproject.toml", ROOT / "setup.py"]):
        if not re.search(r"/(target|__pycache__|[^/]*\.egg-info)/", path.as_posix()):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def install_tessarr(environment: Path) -> None:
    """Install tessarr from this checkout, unless the same sources are already installed."""
    stamp = environment / ".tessarr"
    present = sources()
    if not stamp.exists() or stamp.read_text() != present:
        pip(environment, "--force-reinstall", "--no-deps", ".")
        stamp.write_text(present)


def install_old(python: str, commit: str) -> None:
    """Install tessarr of `commit` into a separate environment, unless it is already installed."""
    environment, tree = BENCH / "old", BENCH / "old-sources"
    name = subprocess.run(
        ["git", "rev-parse", commit], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    stamp = environment / ".commit"
    if stamp.exists() and stamp.read_text() == name:
        return
    if make(environment, python):
        pip(environment, *BASE)
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", name], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=tree, input=archive, check=True)
    pip(environment, "--force-reinstall", "--no-deps", str(tree))
    stamp.write_text(name)


def install_free() -> None:
    """Install tessarr, from this checkout, on a free-threaded Python."""
    environment = BENCH / "tessarr-free"
    if not (environment / "bin" / "python").exists():
        finder = [sys.executable, str(ROOT / "scripts" / "freethreaded_python.py")]
        make(environment, subprocess.run(finder, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
        pip(environment, *FREE)
    install_tessarr(environment)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--refresh", action="store_true", help="make the environments again, with the newest peers")
    parser.add_argument("--old", metavar="COMMIT", help="also install tessarr as it was at this commit")
    parser.add_argument("--free", action="store_true", help="also install tessarr on a free-threaded Python")
    options = parser.parse_args()
    if options.refresh:
        for name in ("main", "zarr2"):
            shutil.rmtree(BENCH / name, ignore_errors=True)
    BENCH.mkdir(exist_ok=True)
    python = newest_python()
    if make(BENCH / "main", python):
        pip(BENCH / "main", *BASE)
        pip(BENCH / "main", "isal", required=False)  # for the limit of gzip
        missing = [peer for peer in PEERS if not pip(BENCH / "main", peer, required=False)]
        if missing:
            print(f"not installable here and left out: {', '.join(missing)}", file=sys.stderr)
    if make(BENCH / "zarr2", python) and not pip(BENCH / "zarr2", *ZARR2, required=False):
        print("zarr 2.18 is not installable here and left out", file=sys.stderr)
    install_tessarr(BENCH / "main")
    if options.old:
        install_old(python, options.old)
    if options.free:
        install_free()
    return 0


if __name__ == "__main__":
    sys.exit(main())
