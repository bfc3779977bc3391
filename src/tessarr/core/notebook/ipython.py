"""Show HTML below the cell of a notebook, and replace it, by IPython."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Protocol


class Display(Protocol):
    """What is shown below a cell."""

    def update(self, content: object) -> None:
        """Replace it."""


def in_notebook() -> bool:
    """Whether this process is a kernel of notebooks: IPython is loaded, and its shell has a kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def show(content: object) -> Display | None:
    """Show an object below the cell that runs, by its ``_repr_html_``; ``None`` where IPython cannot."""
    handle: Display | None = import_module("IPython.display").display(content, display_id=True)
    return handle
