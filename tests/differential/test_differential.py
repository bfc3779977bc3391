"""The short form of `scripts/campaigns/differential.py`: the first arrays of its list."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tests.differential.changes import V2_CHANGES, V3_CHANGES
from tests.differential.comparison import Comparison, written_by_tessarr
from tests.differential.encoding import Values
from tests.differential.judge import disagreements, ledger, own_errors
from tests.differential.readers import ENGINES, Apart, Refusal
from tests.differential.samples import Sample, sample
from tests.narrow import array_of

pytestmark = pytest.mark.filterwarnings("ignore")
ARRAYS = 2000


@pytest.fixture(scope="module")
def comparison() -> Iterator[Comparison]:
    with Comparison() as made:
        yield made


def test_all_readers_agree_or_the_ledger_says_why_not(comparison: Comparison) -> None:
    wrong = [f"{number}: {told}" for number in range(ARRAYS // 2) for told in comparison.compare(number).wrong]
    assert wrong == []
    assert {"native", "reference", "zarr-python", "TensorStore", "zarrs"} <= set(comparison.names)


@pytest.mark.parametrize("engine", ENGINES)
def test_half_of_the_valid_arrays_are_written_by_tessarr(tmp_path: Path, engine: str) -> None:
    made = next(one for one in map(sample, range(0, 1000, 2)) if one.values is not None and one.values.any())
    assert made.values is not None
    written = written_by_tessarr(made, tmp_path, engine)
    assert f"written by {engine}" in written.features
    assert written.files.keys() > {"zarr.json"} or written.files.keys() > {".zarray"}
    np.testing.assert_array_equal(array_of(tessarr.open(tmp_path, mode="r"))[...], made.values)


def test_every_second_array_is_changed_in_one_thing() -> None:
    made = [sample(number) for number in range(ARRAYS)]
    assert (
        [one.change is None for one in made]
        == [one.values is not None for one in made]
        == [True, False] * (ARRAYS // 2)
    )
    assert len({one.change for one in made}) > 100


def test_each_entry_of_the_ledger_names_what_there_is() -> None:
    known = {*V2_CHANGES, *V3_CHANGES}.union(*(sample(number).features for number in range(ARRAYS)))
    assert [label for entry in ledger() for label in entry.labels - known] == []


def test_what_is_wrong_is_told() -> None:
    """The judge has nothing to say of equal answers, and says of each other kind of answer what is wrong."""
    made = next(one for one in map(sample, range(0, 100, 2)) if one.values is not None and one.values.size)
    assert made.values is not None
    other = np.zeros_like(made.values) if made.values.any() else np.ones_like(made.values)
    right = {"native": made.values, "reference": made.values, "zarrs": made.values}
    assert list(own_errors(made, right)) == []
    assert list(disagreements(made, right)) == []
    assert len(list(own_errors(made, {**right, "native": other}))) == 2
    assert len(list(own_errors(made, {**right, "native": Refusal("no", typed=False)}))) == 3
    assert [found.what for found in disagreements(made, {**right, "zarrs": other})] == ["other values"]
    assert [found.what for found in disagreements(made, {**right, "zarrs": Refusal("no")})] == ["refuses"]
    refused = dict.fromkeys(("native", "reference"), Refusal("no"))
    assert [found.what for found in disagreements(made, {**right, **refused})] == ["reads"]


def _read_or_end(place: Path, _sample: Sample) -> Values:
    if place.name == "end":
        os.abort()
    return np.arange(3)


def test_a_reader_whose_process_ends_refuses_one_array_and_reads_the_next() -> None:
    reader = Apart(_read_or_end)
    with pytest.raises(RuntimeError, match="ended with status -6"):
        reader.read(Path("end"), sample(0))
    np.testing.assert_array_equal(reader.read(Path("next"), sample(0)), np.arange(3))
    reader.close()
