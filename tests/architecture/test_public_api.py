"""The public API changes only on purpose: `make api-snapshot` accepts a change, and the diff is reviewed."""

from __future__ import annotations

import difflib
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
