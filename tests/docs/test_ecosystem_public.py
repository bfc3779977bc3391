"""`scripts/ecosystem_public.py` finds the tests that use only documented names of zarr-python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "ecosystem_public.py"
ZARR = {
    "__init__.py": "from zarr.core.array import Array\n__all__ = ['Array']\n",
    "core/__init__.py": "",
    "core/array.py": "class Array: ...\nclass Hidden: ...\n",
    "testing/__init__.py": "",
    "testing/store.py": (
        "from zarr.core.array import Hidden\n"
        "class StoreTests:\n"
        "    def test_plain(self, store): assert store\n"
        "    def test_hidden(self, store): assert Hidden\n"
    ),
}
SUITE = {
    "__init__.py": "",
    "conftest.py": (
        "import pytest\nfrom zarr.core.array import Hidden\n"
        "@pytest.fixture\ndef hidden(): return Hidden()\n"
        "@pytest.fixture\ndef plain(): return 1\n"
    ),
    "test_x.py": """
from typing import TYPE_CHECKING
import pytest
import zarr
from zarr.core.array import Array, Hidden
from zarr.testing.store import StoreTests
if TYPE_CHECKING:
    from zarr.core.types import Kind

def helper(): return Hidden()
def test_public(plain): assert zarr.Array is Array
def test_annotation(x: "Kind", y: Hidden) -> Hidden: assert zarr.open(x).shape
def test_name(): assert Hidden
def test_helper(): helper()
def test_fixture(hidden): pass
def test_attribute(): assert zarr.open("x")._async_array
def test_text(monkeypatch): monkeypatch.setattr("zarr.core.array.Hidden", 1)
@pytest.mark.parametrize("x", [Hidden])
def test_parameter(x): pass
class TestStore(StoreTests):
    def test_own(self, store): self._mine = store
""",
}


def test_names_are_followed_to_where_they_are_used(tmp_path: Path) -> None:
    for root, files in (("path/zarr", ZARR), ("tests", SUITE)):
        for name, text in files.items():
            place = tmp_path / root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / "tests"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "path")},
        capture_output=True,
        text=True,
        check=True,
    )
    found = {test.removeprefix("tests/test_x.py::"): names for test, names in json.loads(done.stdout).items()}
    public = {"test_public", "test_annotation", "TestStore::test_plain", "TestStore::test_own"}
    assert {test for test, names in found.items() if not names} == public
    hidden = ["zarr.core.array.Hidden"]
    assert {test: names for test, names in found.items() if names} == {
        "test_name": hidden,
        "test_helper": hidden,
        "test_fixture": hidden,
        "test_attribute": ["…._async_array"],
        "test_text": hidden,
        "test_parameter": hidden,
        "TestStore::test_hidden": hidden,
    }
