"""The course of a conversation with a network store: questions become requests, and what lands becomes replies.

Knows nothing of threads, loops or clients. Questions about one key that come together share their requests, ranges near
each other are one (`tessarr.stores.remote.coalesce`), big objects are cut into pieces, and parts of one object that turn
out to be of different versions are asked for again, so that no reply mixes two versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tessarr.errors import StoreError
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import Asker, Fetch, Question, Reply, Version
from tessarr.stores.remote.coalesce import PIECE, Piece, gather, plan_spans, split
from tessarr.types import Buffer, ByteRange

_TORN_ROUNDS = 5


class Answer(NamedTuple):
    """What one request for bytes brought."""

    body: Buffer
    start: int
    """Where in the object `body` begins."""
    size: int | None
    """Bytes of the whole object, where the answer tells."""
    version: Version | None


class Job:
    """A value of which something is wanted, and what came of it."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.whole = False
        self.ranges: list[ByteRange] = []
        self.torn = 0
        self.reset()

    def reset(self) -> None:
        self.pieces: list[Piece] = []
        self.size: int | None = None
        self.version: Version | None = None
        self.missing = False
        self._is_torn = self._is_big = False

    def want(self, ranges: Sequence[ByteRange] | None) -> None:
        if ranges is None:
            self.whole = True
        else:
            self.ranges.extend(ranges)

    def first_spans(self) -> list[ByteRange | None]:
        if self.whole:
            return [None]
        spans: list[ByteRange | None] = [span.byte_range for span in plan_spans(self.ranges)]
        return spans or ([ByteRange(0, 0)] if self.ranges else [])

    def take(self, span: ByteRange | None, answer: Answer | None) -> None:
        if answer is None:
            self.missing = True
            return
        if answer.version is not None:
            if self.version is not None and answer.version != self.version:
                self._is_torn = True
            self.version = answer.version
        self.size = answer.size if answer.size is not None else self.size
        body = byte_view(answer.body).toreadonly()
        if body.nbytes:
            self.pieces.append(Piece(answer.start, body))
        if span is None and answer.size is not None and body.nbytes < answer.size:
            self._is_big = True

    def next_spans(self, store: str) -> list[ByteRange | None]:
        """What is still to be asked for."""
        if self.missing:
            return []
        if self._is_torn:
            self.torn += 1
            if self.torn >= _TORN_ROUNDS:
                raise StoreError(
                    "the object changed while it was being read", store=store, key=self.key, got=f"{self.torn} times"
                )
            self.reset()
            return self.first_spans()
        if self._is_big:
            self._is_big = False
            assert self.size is not None
            return [*split(self.pieces[0].body.nbytes, self.size, cap=PIECE)]
        return []

    def result(self, ranges: Sequence[ByteRange] | None) -> list[Buffer] | None:
        if self.missing:
            return None
        size = max([self.size or 0, *(piece.start + piece.body.nbytes for piece in self.pieces)])
        self.pieces.sort(key=lambda piece: piece.start)
        parts = [ByteRange(0)] if ranges is None else ranges
        return [gather(self.pieces, part, size) for part in parts]


class Want(NamedTuple):
    """A request to send: a span of a value, or all of it."""

    job: Job
    span: ByteRange | None


class Course:
    """Of one `asker`. `store` is the URL for errors; where `ranges_work` is false, everything is fetched whole."""

    def __init__(self, asker: Asker, store: str, *, ranges_work: bool) -> None:
        self._asker = asker
        self._store = store
        self._ranges_work = ranges_work
        self._questions: dict[Job, list[Question]] = {}
        self._underway: dict[Job, int] = {}

    def begin(self) -> list[Want]:
        """The requests for what is wanted now."""
        jobs: dict[str, Job] = {}
        for question in self._asker.asks():
            key, ranges = question.fetch
            job = jobs.setdefault(key, Job(key))
            job.want(ranges if self._ranges_work else None)
            self._questions.setdefault(job, []).append(question)
        todo: list[Want] = []
        for job in jobs.values():
            todo += self._send(job, job.first_spans())
        return todo

    def land(self, landed: Sequence[tuple[Want, Answer | None]]) -> list[Want]:
        """Take answers (``None``: no such key), hand over the values that are complete, and say what to request next."""
        todo: list[Want] = []
        found: list[Reply] = []
        for (job, span), answer in landed:
            job.take(span, answer)
            self._underway[job] -= 1
            if self._underway[job] == 0:
                todo += self._send(job, job.next_spans(self._store))
            if self._underway[job] == 0:
                del self._underway[job]
                for question in self._questions.pop(job):
                    found.append(Reply(question.id, job.result(question.fetch.ranges), job.version))
        if found:
            self._asker.answer(found)
            todo += self.begin()
        return todo

    def _send(self, job: Job, spans: Sequence[ByteRange | None]) -> list[Want]:
        self._underway[job] = len(spans)
        return [Want(job, span) for span in spans]


class Once:
    """An `Asker` that wants `requests` and then nothing more."""

    def __init__(self, requests: Sequence[Fetch]) -> None:
        self._questions = [Question(number, request) for number, request in enumerate(requests)]
        self.answers: list[list[Buffer] | None] = [[] for _ in requests]
        self.versions: list[Version | None] = [None] * len(requests)

    def asks(self) -> Sequence[Question]:
        """The requests, when called first."""
        questions, self._questions = self._questions, []
        return questions

    def answer(self, replies: Sequence[Reply]) -> None:
        """Keep what came."""
        for number, parts, version in replies:
            assert isinstance(number, int)
            self.answers[number], self.versions[number] = parts, version
