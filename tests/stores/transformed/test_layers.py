"""Transformers that no document names: arrays, their documents and the tools through each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.storage import CacheStore, ChecksummingStore, MemoryStore, NormalizingStore, Store
from tessarr.tools.check import check
from tessarr.tools.convert import convert
from tessarr.tools.digest import digest
from tests.narrow import array_of
from tests.stores.contract import ENGINES
from tests.stores.transformed.test_transformers import DATA, LAYOUTS


@pytest.mark.spec("ZEP1-17")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wrap", [CacheStore, ChecksummingStore, NormalizingStore])
def test_arrays_and_tools_through_a_layer(
    wrap: Callable[[Store], Store], layout: dict[str, tuple[int, ...]], engine: str, tmp_path: Path
) -> None:
    store, expected = wrap(MemoryStore()), DATA.copy()
    with tessarr.config.set({"engine": engine}):
        root = tessarr.open_group(store, mode="w")
        z = root.create_array("é", shape=DATA.shape, dtype="i4", compressors=None, **layout)  # type: ignore[arg-type]
        z[...] = DATA
        z[3:9, 2:5] = expected[3:9, 2:5] = 7
        np.testing.assert_array_equal(z[2:12:3, 4:1:-1], expected[2:12:3, 4:1:-1])
    tessarr.consolidate_metadata(store)
    found = array_of(tessarr.open_consolidated(store)["é"])
    np.testing.assert_array_equal(found[...], expected)
    report = check(store, data="decode")
    assert (report.chunks > 0, report.findings) == (True, [])
    convert(store, tmp_path / "plain", plain=True)
    copied = MemoryStore()
    tessarr.copy_store(store, copied)
    for place in (copied, tmp_path / "plain"):
        copy = tessarr.open_array(place, path="é", mode="r")
        assert digest(copy).root == digest(found).root
