"""Let all readers read the sample of a number, and say what tessarr does wrong and what the ledger does not explain."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import tessarr
from tessarr.storage import LocalStore
from tests.differential.judge import disagreements, ledger, own_errors
from tests.differential.readers import ENGINES, Readers
from tests.differential.samples import Sample, sample


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
        if made.values is not None and number % 8 >= 4:
            made = written_by_tessarr(made, place, ENGINES[number % 16 >= 8])
        else:
            _put(made, place)
        answers = self._readers.ask(made, place)
        shutil.rmtree(place)
        outcome = Outcome(len(answers), wrong=list(own_errors(made, answers)))
        for found in disagreements(made, answers):
            if any(entry.explains(found) for entry in self._ledger):
                outcome.explained += 1
            else:
                outcome.wrong.append(f"{found.reader} {found.what} ({made.change or 'valid'}): {found.detail}")
        return outcome


def written_by_tessarr(made: Sample, place: Path, engine: str) -> Sample:
    """Store the values of a valid sample under its document by an engine of tessarr. Returns the sample with its files."""
    document = ".zarray" if made.zarr_format == 2 else "zarr.json"
    _put(replace(made, files={document: made.files[document]}), place)
    with tessarr.config.set({"engine": "auto" if engine == "native" else engine}):
        tessarr.open_array(LocalStore(place), mode="r+")[...] = made.values
    files = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    return replace(made, files=files, features=made.features | {f"written by {engine}"})


def _put(made: Sample, place: Path) -> None:
    for name, content in made.files.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
