"""Compare what readers make of a sample, and explain disagreements by the ledger (`ledger.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.differential.encoding import Values
from tests.differential.readers import ENGINES, Answer, Refusal
from tests.differential.samples import Sample


class Disagreement(NamedTuple):
    """A reader and tessarr disagree about a sample."""

    reader: str
    what: str
    """One of: *refuses* what tessarr reads, *reads* what tessarr refuses, reads *other values*."""
    labels: frozenset[str]
    detail: str


class Entry(NamedTuple):
    """An entry of the ledger: it explains what these readers do to samples that have one of the labels."""

    readers: frozenset[str]
    what: frozenset[str]
    labels: frozenset[str]
    why: str

    def explains(self, found: Disagreement) -> bool:
        return found.reader in self.readers and found.what in self.what and bool(found.labels & self.labels)


def ledger() -> list[Entry]:
    """The entries of the ledger."""
    document = tomllib.loads(Path(__file__).with_name("ledger.toml").read_text(encoding="utf-8"))
    return [
        Entry(frozenset(entry["readers"]), frozenset(entry["what"]), frozenset(entry["labels"]), entry["why"])
        for entry in document["entry"]
    ]


def own_errors(sample: Sample, answers: Mapping[str, Answer]) -> Iterator[str]:
    """What is wrong with tessarr whatever others do: engines differ, a valid array is refused or misread, an untyped error."""
    native, reference = (answers[engine] for engine in ENGINES)
    if isinstance(native, Refusal) != isinstance(reference, Refusal):
        yield f"one engine refuses: native {_told(native)}, reference {_told(reference)}"
    elif not isinstance(native, Refusal) and not isinstance(reference, Refusal) and not same_bits(native, reference):
        yield f"the engines differ: native {_told(native)}, reference {_told(reference)}"
    for engine in ENGINES:
        answer = answers[engine]
        if isinstance(answer, Refusal):
            if not answer.typed:
                yield f"{engine}: an untyped error: {answer.message}"
            if sample.values is not None:
                yield f"{engine}: a valid array is refused: {answer.message}"
        elif sample.values is not None and not same_bits(answer, sample.values):
            yield f"{engine}: {_told(answer)} instead of {_told(sample.values)}"


def disagreements(sample: Sample, answers: Mapping[str, Answer]) -> Iterator[Disagreement]:
    """Where a reader differs from tessarr's reference engine."""
    ours = answers["reference"]
    labels = sample.features | ({sample.change} if sample.change else {"valid"})
    for name, answer in answers.items():
        if name in ENGINES:
            continue
        if isinstance(answer, Refusal):
            if not isinstance(ours, Refusal):
                yield Disagreement(name, "refuses", labels, answer.message)
        elif isinstance(ours, Refusal):
            yield Disagreement(name, "reads", labels, f"{_told(answer)}; tessarr: {ours.message}")
        elif not same_values(answer, ours):
            yield Disagreement(name, "other values", labels, f"{_told(answer)}; tessarr: {_told(ours)}")


def same_bits(left: Values, right: Values) -> bool:
    """Whether arrays are equal bit for bit, in whatever byte order."""
    return (
        left.shape == right.shape
        and left.dtype.newbyteorder("=") == right.dtype.newbyteorder("=")
        and left.astype(left.dtype.newbyteorder("<")).tobytes() == right.astype(right.dtype.newbyteorder("<")).tobytes()
    )


def same_values(left: Values, right: Values) -> bool:
    """Whether arrays have the same type and elements, NaN equal to NaN."""
    if left.dtype.newbyteorder("=") != right.dtype.newbyteorder("="):
        return False
    return np.array_equal(left, right, equal_nan=left.dtype.kind in "fc")


def _told(answer: Any) -> str:
    if isinstance(answer, Refusal):
        return f"refuses ({answer.message[:200]})"
    return f"{answer.dtype}{list(answer.shape)} {answer.reshape(-1)[:8].tolist()}"
