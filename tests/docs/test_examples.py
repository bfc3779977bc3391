"""Every example of the README and of the documentation runs, and prints what the page says it prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tessarr
from tests.docs.pages import PAGES, ROOT
from tests.docs.running import run_page


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pages are read from an empty directory; what they set is gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    yield
    tessarr.config.reset()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path) -> None:
    run_page(page)
