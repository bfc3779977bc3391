"""Arrays whose metadata are made of the same objects share what follows from these, and nobody sees a difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tessarr
from tessarr.engine import bound as binding
from tessarr.engine.bound import RuntimeOptions, bind, layout_of
from tessarr.engine.native.describe import describe
from tessarr.engine.native.step import UnsupportedError
from tessarr.storage import LocalStore, MemoryStore
from tests.properties.strategies import Layout, layouts

STORES = (MemoryStore(), LocalStore("somewhere"), LocalStore("else where", durable=True))


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_layouts", {})


def described(*place: Any) -> str:
    """What Rust is told of the array, or why it does not support the array."""
    try:
        return describe(bind(*place))
    except UnsupportedError as reason:
        return str(reason)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layouts())
def test_an_array_that_shares_its_layout_is_bound_as_if_it_were_alone(layout: Layout) -> None:
    metadata = tessarr.create_array({}, **layout.arguments())._metadata
    places = [
        (store, path, metadata.with_attributes({"of": path}), RuntimeOptions(write_empty_chunks=bool(path)))
        for store in STORES
        for path in ("", "a", 'b/"c"')
    ]
    shared = [described(*place) for place in places]
    irregular = any(axis.uniform is None for axis in bind(*places[0]).axes)
    assert irregular or len({id(bind(*place).layout) for place in places}) == 1
    for place, together in zip(places, shared, strict=True):
        binding._layouts.clear()
        assert described(*place) == together
        assert bind(*place).axes == bind(*places[0]).axes


def test_another_shape_or_fill_value_is_another_layout() -> None:
    metadata = tessarr.create_array({}, shape=(8, 8), chunks=(4, 4), dtype="i4")._metadata
    others = [metadata.with_(shape=(8, 9)), metadata.with_(fill_value=np.array(3, "i4"))]
    assert layout_of(metadata.with_attributes({"a": 1})) is layout_of(metadata)
    assert all(layout_of(other) is not layout_of(metadata) for other in others)


def test_layouts_that_were_used_are_not_kept_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_MAX_LAYOUTS", 3)
    metadata = tessarr.create_array({}, shape=(8,), chunks=(4,), dtype="i4")._metadata
    for length in range(1, 10):
        layout_of(metadata.with_(shape=(length,)))
        assert len(binding._layouts) <= 3
    irregular = tessarr.create_array({}, shape=(6,), chunks=[[1, 5]], dtype="i4")._metadata
    binding._layouts.clear()
    layout_of(irregular)
    assert not binding._layouts


def test_equal_arrays_of_one_group_read_their_own_elements(tmp_path: Path) -> None:
    group = tessarr.create_group(tmp_path / "g")
    for i in range(4):
        group.create_array(f"a{i}", shape=(6, 6), chunks=(3, 3), shards=(6, 6), dtype="u2")[...] = i
    assert [int(array[3, 3]) for _, array in tessarr.open_group(tmp_path / "g").arrays()] == [0, 1, 2, 3]
