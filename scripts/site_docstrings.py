"""Show the examples of docstrings as code on the documentation site.

mkdocstrings loads this as an extension of griffe (`extensions` in mkdocs.yml). Docstrings are Markdown whose examples are
doctests without a fence, as Python itself shows them; the site needs the fence.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*?(?=\n *\n|\Z)", re.M | re.S)


def fenced(docstring: str) -> str:
    """Put each doctest of a docstring into a fenced block.

    The prompt and what follows it, up to an empty line or the end, goes between the fences.
    """
    return _EXAMPLE.sub(lambda found: f"{found['indent']}```pycon\n{found[0]}\n{found['indent']}```", docstring)


class Examples(Extension):
    """Rewrite every docstring that griffe collects."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Fence the examples of one object."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
