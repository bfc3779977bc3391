"""The demonstration runs from end to end, as a user starts it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import tessarr

ROOT = Path(__file__).resolve().parents[2]
HIDE_AND_RUN = """
import runpy, sys
script, folder, *hidden = sys.argv[1:]
sys.modules.update(dict.fromkeys(hidden))  # None: importing the module raises ImportError
sys.argv = [script, folder]
runpy.run_path(script, run_name="__main__")
"""


def with_requirements(names: set[str]) -> set[str]:
    """Return these distributions and all that they require, extras of others left out."""
    found: set[str] = set()
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name not in found:
            found.add(name)
            try:
                requires = metadata.requires(name) or []
            except metadata.PackageNotFoundError:
                continue
            names |= {re.split(r"[^\w.-]", text)[0] for text in requires if "extra ==" not in text}
    return found


def hidden_modules() -> list[str]:
    """Return the installed top-level modules that `make demo` does not install."""
    recipe = re.search(r"^\$\(DEMO\):.*\n\t(.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe is not None
    editable, *packages = re.findall(r"'([^']+)'", recipe[1])
    assert editable == ".[cli]"
    installed = with_requirements({"tessarr", "rich", "pip", *(re.split(r"[^\w.-]", text)[0] for text in packages)})
    modules = metadata.packages_distributions().items()
    return [
        module
        for module, distributions in modules
        if not installed & {re.sub(r"[-_.]+", "-", name).lower() for name in distributions}
        and not module.startswith("_")
    ]


def test_the_demonstration_runs_with_the_packages_of_make_demo_and_draws_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4", reason="belongs to the extra [convert]; `make demo` and `make setup` install it")
    hidden = hidden_modules()
    assert "h5py" not in metadata.packages_distributions() or "h5py" in hidden
    ran = subprocess.run(
        [sys.executable, "-c", HIDE_AND_RUN, str(ROOT / "scripts" / "demo.py"), str(tmp_path / "demo"), *hidden],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    words = ("convert", "tree", "info", "check", "cat")
    positions = [ran.stdout.index(f"$ tessarr {word} ") for word in words]
    assert positions == sorted(positions)
    assert "no problems found" in ran.stdout
    assert "What to try next" in ran.stdout
    assert (tmp_path / "demo" / "modis.png").read_bytes().startswith(b"\x89PNG")
    array = tessarr.open_array(tmp_path / "demo" / "modis.zarr", path="modis", mode="r")
    assert (array.chunks, array.shards, array.dimension_names) == ((50, 50), (100, 100), ("y", "x"))
