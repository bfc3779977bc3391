"""tessarr's own code asks the store that does the work, not the object that users are shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tessarr"
SHOWN = re.compile(r"\b(?:array|group|node|built|source|dest|target|where)\.(?:store|store_path|chunk_store)\b")
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if "as_zarr" not in path.parts and path.name != "shown.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_no_module_takes_the_store_that_is_shown_for_the_one_that_works(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [f"{number}: {line}" for number, line in enumerate(lines, 1) if SHOWN.search(line)] == []
