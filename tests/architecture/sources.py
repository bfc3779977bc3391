"""The syntax trees of source files, each parsed once per process."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file, which no test changes."""
    return ast.parse(path.read_text(encoding="utf-8"))
