"""The pages of the documentation as data: their code blocks in order, their links, their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TOP = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "GLOSSARY.md", "CONTRIBUTING.md", "CORRECTNESS.md")]
PAGES = [*TOP, *sorted((ROOT / "docs").glob("*.md"))]
"""What a reader reads."""

_FENCE = re.compile(r"^```(.*)$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
NOT_RUN = "<!-- not run:"
"""Opens the line above a block that cannot run here; the rest of the line says why."""


class Block(NamedTuple):
    """One fenced block."""

    language: str
    line: int
    """Number of the block's first line in its page, from 1."""
    text: str
    not_run: str | None
    """Why it is not run; ``None`` when it is."""


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    language, start, reason = "", 0, None
    inside: list[str] | None = None
    above = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and inside is None:
            language, start, inside = fence[1].strip(), number + 1, []
            reason = above.removeprefix(NOT_RUN).removesuffix("-->").strip() if above.startswith(NOT_RUN) else None
        elif fence and inside is not None:
            yield Block(language, start, "\n".join(inside) + "\n", reason)
            inside = None
        elif inside is not None:
            inside.append(line)
        if line.strip():
            above = line
    assert inside is None, f"{page}: a block that begins at line {start} has no end"


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def links(page: Path) -> list[str]:
    """The targets of all links of a page."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ +(.+?)\s*$", prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}
