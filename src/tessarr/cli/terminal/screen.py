"""Find out what a stream can show: colours, characters, and how many cells.

| stream | colours | characters | cells |
|---|---|---|---|
| a terminal with ``COLORTERM=truecolor`` | 24 bits | half blocks, braille | its own |
| a terminal with 256 colours (``TERM=…-256color``) | the nearest of 256 | the same | its own |
| any other terminal, or ``NO_COLOR`` | none | ramps of characters, braille | its own |
| ``TERM=dumb``, or an encoding other than UTF-8 | none | ASCII | its own |
| a file or a pipe | none | ASCII | 80 × 24 |

Source: https://no-color.org (a variable that is not empty).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple, TextIO

Style = Literal["auto", "rgb", "256", "plain", "ascii"]
STYLES: tuple[Style, ...] = ("auto", "rgb", "256", "plain", "ascii")
"""What a user may ask for: 24 bits, 256 colours, no colours, or ASCII alone."""
COLUMNS, ROWS = 80, 24
"""Cells of a file or a pipe."""
_MIN_COLUMNS, _MIN_ROWS = 20, 8


class Screen(NamedTuple):
    """What is drawn on."""

    columns: int
    rows: int
    colours: Literal[0, 256, 16_777_216]
    """Number of colours; 0: none."""
    has_unicode: bool
    """Whether there are half blocks, braille and shades, not ASCII alone."""


def screen_of(
    stream: TextIO,
    environment: Mapping[str, str],
    *,
    style: Style = "auto",
    columns: int | None = None,
    rows: int | None = None,
) -> Screen:
    """Describe the screen behind `stream`; `style`, `columns` and `rows` replace what is found."""
    width, height = columns or COLUMNS, rows or ROWS
    found = _style(stream, environment) if style == "auto" else style
    if stream.isatty():
        size = _size(stream)
        width, height = columns or size[0], rows or size[1]
    colours: Literal[0, 256, 16_777_216] = 16_777_216 if found == "rgb" else 256 if found == "256" else 0
    return Screen(max(_MIN_COLUMNS, width), max(_MIN_ROWS, height), colours, found != "ascii")


def _style(stream: TextIO, environment: Mapping[str, str]) -> Style:
    kind = environment.get("TERM", "")
    encoding = (stream.encoding or "").lower().replace("-", "").replace("_", "")
    if not stream.isatty() or kind == "dumb" or encoding not in ("utf8", "cp65001"):
        return "ascii"
    if environment.get("NO_COLOR"):
        return "plain"
    if (
        environment.get("COLORTERM") in ("truecolor", "24bit")
        or kind.endswith("-direct")
        or "WT_SESSION" in environment
    ):
        return "rgb"
    return "256" if "256color" in kind else "plain"


def _size(stream: TextIO) -> tuple[int, int]:
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return COLUMNS, ROWS
    return columns or COLUMNS, rows or ROWS
