"""The public API changes only on purpose: `make api-snapshot` accepts a change, and the diff is reviewed."""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOT = Path(__file__).with_name("public_api.txt")


def test_the_public_api_is_the_one_that_was_reviewed() -> None:
    # A fresh interpreter, as other tests may have registered names.
    command = [sys.executable, "-W", "ignore", str(ROOT / "scripts" / "api_snapshot.py"), "--print"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    expected = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    changes = list(difflib.unified_diff(expected, run.stdout.splitlines(), "reviewed", "present", lineterm="", n=0))
    assert not changes, "\n".join([*changes, "If this is meant: make api-snapshot"])


def test_every_public_name_has_a_docstring() -> None:
    import tessarr

    bare = [name for name in tessarr.__all__ if callable(thing := getattr(tessarr, name)) and not thing.__doc__]
    assert not bare


def unreachable(names: list[str]) -> list[str]:
    """Those of the dotted `names` that a program which only imports tessarr cannot reach."""
    program = """
import sys, tessarr
from functools import reduce
for name in sys.argv[1:]:
    try:
        reduce(getattr, name.split(".")[1:], tessarr)
    except (AttributeError, ImportError):
        print(name)
"""
    command = [sys.executable, "-W", "ignore", "-c", program, *names]
    return subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout.split()


def test_import_tessarr_is_enough_for_every_name_that_it_lists() -> None:
    import tessarr

    assert unreachable([f"tessarr.{name}" for name in dir(tessarr)]) == []


def test_import_tessarr_is_enough_for_the_line_of_each_user() -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "which-line.md"]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    lines = set(re.findall(r"(?<![\w.])tessarr(?:\.[a-z_]+)+(?=[(`])", text))
    assert {"tessarr.as_zarr.install", "tessarr.zarr_python.patch", "tessarr.dask.store"} <= lines
    assert unreachable(sorted(lines)) == []
