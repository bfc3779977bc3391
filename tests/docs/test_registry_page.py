"""docs/registry.md says what `scripts/registry_table.py` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import registry_table


def test_the_page_holds_the_tables_as_they_are_printed_today() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "registry.md").read_text(encoding="utf-8")
    assert registry_table.tables() in page, "run scripts/registry_table.py --write"


@pytest.mark.spec("REG-10")
def test_every_codec_data_type_and_grid_of_the_registry_is_here() -> None:
    assert len(registry_table.CODECS) == 17
    assert len(set(registry_table.DATA_TYPES)) == 51
    missing = [name for name in registry_table.CODECS if not registry_table.is_there("codec", name)]
    missing += [name for name in registry_table.DATA_TYPES if not registry_table.is_there("data type", name)]
    missing += [name for name in registry_table.GRIDS if not registry_table.is_there("chunk_grid", name)]
    missing += [name for name in registry_table.KEYS if not registry_table.is_there("key encoding", name)]
    assert not missing
