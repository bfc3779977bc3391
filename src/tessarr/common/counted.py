"""Say how many there are of something."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Format a number and its noun.

    >>> counted(1, "array"), counted(2000, "array")
    ('1 array', '2,000 arrays')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
