"""What is asked of a store, and how it answers: one value (`Fetch`), or a conversation (`Asker`)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tessarr.types import Buffer, ByteRange

Version: TypeAlias = str
"""Opaque; two equal versions of one key mean equal bytes (an etag, or device:inode:mtime:size)."""


class Fetch(NamedTuple):
    """One value to fetch, whole (`ranges` is ``None``) or in parts."""

    key: str
    ranges: tuple[ByteRange, ...] | None = None


class Question(NamedTuple):
    """A value that an `Asker` wants."""

    id: Hashable
    fetch: Fetch


class Reply(NamedTuple):
    """What a question was answered with."""

    id: Hashable
    parts: list[Buffer] | None
    """One buffer for a whole value, one per range for parts; ``None``: no such key."""
    version: Version | None
    """Of the value, where the store tells it along."""


class Asker(Protocol):
    """Whoever wants values and takes them as they come, and may find by them what it wants next."""

    def asks(self) -> Sequence[Question]:
        """What is wanted now and was not asked for before."""

    def answer(self, replies: Sequence[Reply]) -> None:
        """Take some of what was asked for, in any order."""


def replies(
    questions: Sequence[Question], answers: Sequence[list[Buffer] | None], versions: Sequence[Version | None]
) -> list[Reply]:
    """The answers of one `Store.fetch_versioned` to `questions`."""
    triples = zip(questions, answers, versions, strict=True)
    return [Reply(question.id, parts, version) for question, parts, version in triples]
