"""Adds the Rust engine to the build where it can be built; everything else is in pyproject.toml.

``TESSARR_NATIVE=auto`` (default) builds it and goes on without it, with a warning, where there is no Rust toolchain or
no crate registry; ``require`` makes that an error (release wheels); ``off`` leaves it out.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import setup

CARGO = Path("rust") / "Cargo.toml"
# Free-threaded CPython has not this stable ABI: PyO3 then leaves abi3 alone, and setuptools refuses its tag. What counts is
# the build of the interpreter, not whether its GIL is on at the moment (PYTHON_GIL=1, or a module that needs it).
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def warn(text: str) -> None:
    print(f"warning: tessarr: {text}; only the reference engine (Python) is installed", file=sys.stderr)


def rust_extensions() -> list[object]:
    """The extension `tessarr._native`, or nothing when it is switched off, absent, or certain not to build."""
    mode = os.environ.get("TESSARR_NATIVE", "auto")
    if mode not in {"auto", "require", "off"}:
        raise SystemExit(f"TESSARR_NATIVE must be auto, require or off; got {mode!r}")
    if mode == "off" or not CARGO.exists():
        return []
    if mode == "auto" and not (shutil.which("cargo") or (Path.home() / ".cargo" / "bin" / "cargo").exists()):
        warn("no Rust toolchain found")
        return []
    from setuptools_rust import Binding, RustExtension

    return [
        RustExtension(
            "tessarr._native",
            path=str(CARGO),
            binding=Binding.PyO3,
            # Named `….abi3.so` in a checkout too, where every CPython from 3.11 on then finds it.
            py_limited_api=not FREE_THREADED,
            # An editable install is measured and tested as well, so never a debug build.
            debug=False,
            optional=mode == "auto",
        )
    ]


EXTENSIONS = rust_extensions()
OPTIONS = {"bdist_wheel": {"py_limited_api": "cp311"}} if EXTENSIONS and not FREE_THREADED else {}

setup(rust_extensions=EXTENSIONS, options=OPTIONS)

if EXTENSIONS and not FREE_THREADED and "editable_wheel" in sys.argv:
    # Earlier builds named it after one CPython, which would go on loading that file.
    Path("src", "tessarr", f"_native{sysconfig.get_config_var('EXT_SUFFIX')}").unlink(missing_ok=True)
