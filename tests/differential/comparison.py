"""Let all readers read the sample of a number, and say what tessarr does wrong and what the ledger does not explain."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.differential.judge import disagreements, ledger, own_errors
from tests.differential.readers import Readers
from tests.differential.samples import sample


@dataclass
class Outcome:
    """What came of one sample: `readings` is the number of readers that were asked."""

    readings: int
    explained: int = 0
    wrong: list[str] = field(default_factory=list)


class Comparison:
    """The readers, the ledger, and a directory in memory, if there is one, for the samples."""

    def __init__(self) -> None:
        self._readers = Readers()
        self._ledger = ledger()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="differential", dir=memory))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._readers.close()
        shutil.rmtree(self._folder)

    @property
    def names(self) -> list[str]:
        """The readers that are here."""
        return list(self._readers.readers)

    def compare(self, number: int) -> Outcome:
        """Compare what the readers make of the sample of a number."""
        made = sample(number)
        place = self._folder / str(number)
        for name, content in made.files.items():
            file = place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        answers = self._readers.ask(made, place)
        shutil.rmtree(place)
        outcome = Outcome(len(answers), wrong=list(own_errors(made, answers)))
        for found in disagreements(made, answers):
            if any(entry.explains(found) for entry in self._ledger):
                outcome.explained += 1
            else:
                outcome.wrong.append(f"{found.reader} {found.what} ({made.change or 'valid'}): {found.detail}")
        return outcome
