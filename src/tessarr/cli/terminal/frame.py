"""Put names, labels and limits around a drawing. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def framed(
    lines: Sequence[str], *, upper: str, lower: str, left: str, right: str, middle: str, columns: int
) -> list[str]:
    """Put the labels `upper` and `lower` before the first and the last line, and a line of three labels below.

    `columns` is the width of the drawing in cells, which its lines hide in escape sequences.

    >>> print("\\n".join(framed(["..", "##"], upper="10", lower="0", left="a", right="z", middle="x", columns=7)))
    10 ..
     0 ##
       a  x  z
    """
    margin = max(len(upper), len(lower))
    first, last = 0, len(lines) - 1
    labels = [upper if row == first else lower if row == last else "" for row in range(len(lines))]
    drawn = [f"{label:>{margin}} {line}".rstrip() for label, line in zip(labels, lines, strict=True)]
    space = max(2, columns - len(left) - len(right))
    below = f"{left}{middle.center(space) if len(middle) + 2 <= space else ' ' * space}{right}"
    return [*drawn, " " * (margin + 1) + below]


def cut_line(text: str, columns: int) -> str:
    """Cut a line without escape sequences to a width.

    >>> cut_line("abcdef", 4)
    'abc~'
    """
    return text if len(text) <= columns else f"{text[: columns - 1]}~"
