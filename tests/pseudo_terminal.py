"""The command line on a terminal, as somebody who watches it sees it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tessarr


def drawn_on_terminal(arguments: list[str], *, rich: bool) -> tuple[int, str]:
    """Run a command line in a process whose stderr is a terminal; return its exit code, and what was drawn there.

    `rich`: whether that package may be used. Progress is drawn at once.
    """
    pty = pytest.importorskip("pty", reason="pseudo-terminals are a matter of Unix")
    if rich:
        pytest.importorskip("rich", reason="rich belongs to the extra [cli]")
    parent, child = pty.openpty()
    block = "" if rich else "sys.modules['rich'] = None"
    code = (
        f"import sys\n{block}\nimport tessarr.cli.progress\nfrom tessarr.cli import main\n"
        f"tessarr.cli.progress._INTERVAL_S = 0\nsys.exit(main({arguments!r}))\n"
    )
    source = str(Path(tessarr.__file__).parents[1])
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONPATH": source}
    ran = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=child, env=environment, check=False
    )
    os.close(child)
    drawn = os.read(parent, 1 << 20).decode()
    os.close(parent)
    return ran.returncode, drawn
