"""The short form of `scripts/campaigns/stateful.py`: the first programs, and whether one that is wrong is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stateful.programs import KINDS, Folder
from tests.stateful.stores import StoreProgram

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def folder() -> Iterator[Folder]:
    made = Folder()
    yield made
    made.close()


def test_programs_do_what_their_models_do(folder: Folder) -> None:
    outcomes = [folder.run(number) for number in range(6 * len(KINDS))]
    assert [one.wrong for one in outcomes if one.wrong] == []
    assert {one.kind for one in outcomes if one.steps > 1} == set(KINDS)


def test_a_store_that_forgets_a_value_is_found(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: StoreProgram) -> None:
        self.model["forgotten"] = b"x"

    monkeypatch.setattr(StoreProgram, "set_value", forget)
    number = KINDS.index("store")
    assert "forgotten" in str(folder.run(number).wrong) or "list" in str(folder.run(number).wrong)
