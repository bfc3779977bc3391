"""Implement chunk key encodings that consist of a key template: building, parsing and checking keys.

`rust/src/keys.rs` builds the same keys.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from string import digits

from tessarr.errors import MetadataValidationError, Problem
from tessarr.keys.base import ChunkKeyEncoding, KeyTemplate, Slot
from tessarr.types import Coords

_DIGITS = re.compile(r"[0-9]*", re.ASCII)
_MOST_GROUPS = 20
"""Limit on the number of digit groups of an index."""
LONGEST_TEXT = 1024
"""Longest key, in bytes, that object storage allows."""


def join_slots(axes: Iterable[int], separator: str, width: int = 0) -> KeyTemplate:
    """Make slots of `axes` with `separator` between them.

    >>> join_slots((0, 2), "/")
    (Slot(axis=0, width=0, group=0), '/', Slot(axis=2, width=0, group=0))
    """
    parts: list[str | Slot] = []
    for axis in axes:
        parts += [separator, Slot(axis, width)]
    return tuple(parts[1:])


def check_text(value: object) -> str | None:
    """Describe what is wrong with text for chunk keys; ``None`` for valid text."""
    if not isinstance(value, str):
        return f"must be a string, got {value!r}"
    if len(value) > LONGEST_TEXT:
        return f"must have at most {LONGEST_TEXT} characters, got {len(value)}"
    found = [part for part in ("..", "\\", "\0", "//", "zarr.json") if part in value]
    return f"must not hold {found[0]!r}, got {value!r}" if found else None


def spell(parts: KeyTemplate, coords: Coords) -> str:
    """Return the key of the chunk at `coords`."""
    return "".join(part if isinstance(part, str) else part.spell(coords[part.axis]) for part in parts)


def read(parts: KeyTemplate, key: str, ndim: int) -> Coords | None:
    """Return the coords that `key` encodes, or ``None``; strict: one spelling per chunk."""
    coords: dict[int, int] = {}
    at = 0
    for number, part in enumerate(parts):
        if isinstance(part, str):
            at += len(part)  # `spell` compares it
            continue
        following = parts[number + 1] if number + 1 < len(parts) else ""
        end = _end(part, key, at, following if isinstance(following, str) else "")
        index = key[at:end].partition("/")[2].replace("/", "") if part.group else key[at:end]
        if not _DIGITS.fullmatch(index) or not 0 < len(index) <= LONGEST_TEXT:
            return None
        coords[part.axis], at = int(index), end
    found = tuple(coords[axis] for axis in sorted(coords))
    return found if len(found) == ndim and spell(parts, found) == key else None


def _end(slot: Slot, key: str, at: int, following: str) -> int:
    """Find the end of the digits that fill `slot` from `at` on; `following` is the text after the slot."""
    run = _end_of_digits(key, at)
    if not slot.group:
        return run - _end_of_digits(following, 0)
    count = key[at:run]
    segments = int(count) + 1 if 0 < len(count) < 4 else 0
    return run + min(segments, _MOST_GROUPS) * (1 + slot.group)


def _end_of_digits(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip(digits))


def check_template(name: str, parts: KeyTemplate, ndim: int) -> None:
    """Refuse a template that gives two chunks the same key, or a chunk a key that no store accepts.

    Raises `MetadataValidationError`.
    """
    problem = _problem(parts, ndim)
    if problem is not None:
        found = [Problem((), "value", problem)]
        raise MetadataValidationError(f"the {name} chunk key encoding does not fit {ndim} dimensions", found)


def _problem(parts: KeyTemplate, ndim: int) -> str | None:
    axes = sorted(part.axis for part in parts if isinstance(part, Slot))
    if axes != list(range(ndim)):
        return f"names the axes {axes}, must name each of {ndim} once"
    merged = _merged(parts)
    for left, right in pairwise(merged):
        if isinstance(left, Slot) and isinstance(right, Slot):
            return "has nothing between two indices: different chunks would have the same key"
    for text in merged[1:-1]:
        if isinstance(text, str) and _DIGITS.fullmatch(text):
            return f"has only digits, {text!r}, between two indices: different chunks would have the same key"
    key = spell(parts, (0,) * ndim)
    segments = key.split("/")
    if not all(segment.strip(".") for segment in segments):
        return f"gives keys such as {key!r}, in which a part between slashes is empty or only periods"
    return check_text(key)


def _merged(parts: KeyTemplate) -> list[str | Slot]:
    """Merge adjacent text in `parts`, and drop empty text."""
    found: list[str | Slot] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return found


class TemplatedKeyEncoding(ChunkKeyEncoding):
    """Base class of encodings that consist of a template. Subclasses implement `parts`, and are equal by their JSON."""

    __slots__ = ()

    @abstractmethod
    def parts(self, ndim: int) -> KeyTemplate:
        """Return the template for arrays of `ndim` axes, without checking that it fits them."""

    def template(self, ndim: int) -> KeyTemplate:
        parts = self.parts(ndim)
        check_template(self.name, parts, ndim)
        return parts

    def encode(self, coords: Coords) -> str:
        return spell(self.parts(len(coords)), coords)

    def decode(self, key: str, ndim: int) -> Coords | None:
        return read(self.parts(ndim), key, ndim)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TemplatedKeyEncoding) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self.to_json()))

    def __repr__(self) -> str:
        configuration = self.to_json().get("configuration", {})
        members = configuration if isinstance(configuration, dict) else {}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in members.items())})"
