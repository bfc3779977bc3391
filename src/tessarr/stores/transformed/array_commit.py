"""What a commit of a versioned array says, and the forms of values in its documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tessarr.types import JSONObject

DIGITS = 64
"""Hexadecimal digits of a digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A committed state of one array."""

    id: str
    """Digest of the commit, 64 hexadecimal digits."""
    parent: str | None
    """The commit before; ``None`` for the first."""
    time: datetime
    """Time of the commit by the clock of its writer, with time zone."""
    message: str
    document: JSONObject
    """The array's document."""
    pages: tuple[str, ...]
    """Digests of the pages, which map chunks to objects."""


def is_digest(value: object) -> bool:
    """Whether `value` has the form of a digest."""
    return isinstance(value, str) and len(value) == DIGITS and not value.strip("0123456789abcdef")


def is_time(value: object) -> bool:
    """Whether `value` is the text of a time with time zone."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


COMMIT_MEMBERS: Mapping[str, Callable[[object], bool]] = {
    "parent": lambda value: value is None or is_digest(value),
    "time": is_time,
    "message": lambda value: isinstance(value, str),
    "document": lambda value: isinstance(value, Mapping),
    "pages": lambda value: isinstance(value, list) and all(map(is_digest, value)),
}
"""The members of a commit, and what they are."""
