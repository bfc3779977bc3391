"""The documents of a node, read by one call of Rust, are those that Python reads key by key, with the same errors."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tessarr.storage import LocalStore
from tessarr.stores.base import Fetch
from tessarr.stores.local import file as localfile
from tessarr.types import ByteRange

pytestmark = pytest.mark.skipif(localfile.reader_of_many() is None, reason="the Rust module is not built")

NAMES = (
    "zarr.json",
    ".zarray",
    ".zattrs",
    "meta",
    "a",
    "b",
    "c",
    "link",
    "loop",
    "long",
    "empty",
    ".a.tessarr-tmp",
    ".shape.tessarr-lock",
)
STRANGE = (
    "",
    ".",
    "..",
    "...",
    "..a",
    "a\0",
    "é",
    "日本",
    "a" * 300,
    "a\\b",
    "nul",
    "con.txt",
    "A",
    " ",
    "a ",
    "\ud800",
)
KEYS = st.lists(st.sampled_from(NAMES + STRANGE), min_size=1, max_size=4).map("/".join)
RANGES = st.sampled_from([None, None, None, (ByteRange(0, 3),)])
REQUESTS = st.lists(st.builds(Fetch, KEYS, RANGES), min_size=2, max_size=6)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    root = tmp_path_factory.mktemp("values") / "data.zarr"
    for folder in ("", "a", "a/b", "a/b/c", "é", "A", "c"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in ("zarr.json", ".zarray", "meta", ".a.tessarr-tmp", ".shape.tessarr-lock"):
            (root / folder / name).write_text(f"{folder}/{name}")
        (root / folder / "empty").touch()
        (root / folder / "long").write_bytes(bytes(localfile.SMALL + 1))
        os.symlink("a", root / folder / "link")
        os.symlink("loop", root / folder / "loop")
    (root / "a" / "b" / "é").write_text("é")
    return LocalStore(root)


def outcome(store: LocalStore, requests: list[Fetch]) -> Any:
    try:
        return [None if found is None else [bytes(part) for part in found] for found in store.fetch(requests)]
    except Exception as error:
        return type(error), str(error)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([Fetch("link/b/zarr.json"), Fetch("loop/zarr.json")])
@example([Fetch(".shape.tessarr-lock"), Fetch("zarr.json")])
@example([Fetch("zarr.json/zarr.json"), Fetch("a")])
@given(REQUESTS)
def test_many_values_are_those_that_are_read_one_by_one(store: LocalStore, requests: list[Fetch]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(localfile, "reader_of_many", lambda: None)
        expected = outcome(store, requests)
    assert outcome(store, requests) == expected
