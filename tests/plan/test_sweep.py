"""A task that holds a part of its box at a time writes what one does that holds it whole, and reads no chunk twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
import tessarr.plan
from tessarr.plan.cost import Sizes, sweep_of
from tessarr.plan.plan import Plan
from tessarr.plan.task import Worker
from tessarr.storage import MemoryStore

_BAND = "tessarr.plan.cost.BAND"


def _sweeps(plan: Plan) -> bool:
    work, node = plan._opened(), plan._manifest.nodes[-1]
    assert isinstance(work, Worker)
    return work._sweep(node) is not None


def _stored(store: MemoryStore) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list() if not key.endswith(".json")}


@st.composite
def _layouts(draw: st.DrawFn) -> dict[str, Any]:
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.lists(st.integers(0, 40), min_size=ndim, max_size=ndim)))
    source, target = (tuple(draw(st.integers(1, max(1, n))) for n in shape) for _ in range(2))
    shards = tuple(n * draw(st.integers(1, 3)) for n in target) if draw(st.booleans()) else None
    source_shards = tuple(n * draw(st.integers(1, 3)) for n in source) if draw(st.booleans()) else None
    return {
        "shape": shape, "chunks": source, "shards": source_shards, "order": draw(st.sampled_from("CF")),
        "target": {"chunks": target, "shards": shards, "dtype": draw(st.sampled_from([None, "i8"]))},
        "memory": draw(st.integers(1, 8)), "band": draw(st.integers(1, 600)),
    }  # fmt: skip


@given(layouts=_layouts())
def test_bands_are_what_the_whole_box_is(layouts: dict[str, Any]) -> None:
    shape, target = layouts["shape"], layouts["target"]
    values = np.arange(1, 1 + int(np.prod(shape)), dtype="i4").reshape(shape)
    made = tessarr.create_array(
        {}, shape=shape, chunks=layouts["chunks"], shards=layouts["shards"], order=layouts["order"], dtype="i4"
    )
    made[...] = values
    found = []
    for band in (layouts["band"], 1 << 30):
        store = MemoryStore()
        with patch(_BAND, band), tessarr.config.set({"threading.max_workers": 1}):
            plan = tessarr.plan.rechunk(made, store, path="a", memory=1 << 20, strategy="direct", **target)
            assert band < 1 << 30 or not _sweeps(plan)
            plan.run(slots=1)
        found.append(_stored(store))
        assert (tessarr.open_array(store, path="a")[...] == values).all()
    assert found[0] == found[1]


@given(layouts=_layouts())
def test_a_task_holds_less_than_its_box_and_every_band(layouts: dict[str, Any]) -> None:
    """Positions are counted as `in_bands` reads them."""
    document = tessarr.create_array(
        {}, shape=layouts["shape"], chunks=layouts["target"]["chunks"], dtype="i4"
    )._metadata
    with patch(_BAND, layouts["band"]):
        sizes = Sizes.of(document, layouts["chunks"], 0)
        sweep = sweep_of(Sizes(sizes.axes, sizes.read, sizes.write, 4, 0, stops=layouts["chunks"]), layouts["shape"])
    if sweep is None:
        return
    length, read = layouts["shape"][sweep.axis], 0
    assert sweep.band % layouts["target"]["chunks"][sweep.axis] == 0
    for start in range(0, length, sweep.band):
        stop = min(length, start + sweep.band)
        read = max(read, min(length, -(-stop // sweep.stop) * sweep.stop))
        assert read - start <= sweep.held < length


class _Counting:
    """A store that notes what is read."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.read: list[str] = []

    def get(self, key: str, byte_range: Any = None) -> Any:
        self.read.append(key)
        return self.store.get(key, byte_range)

    def list(self, prefix: str = "") -> Any:
        return self.store.list(prefix)


@pytest.mark.parametrize("memory", ["1MB", 20_000])
def test_every_chunk_is_read_as_often_as_predicted(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tessarr.create_array(MemoryStore(), name="s", shape=(99, 60), chunks=(10, 10), dtype="i4")
    made[...] = np.arange(99 * 60).reshape(99, 60) + 1
    source = _Counting(made.store)
    opened = tessarr.open_array(source, path="s", mode="r")
    monkeypatch.setattr(_BAND, 400)
    with tessarr.config.set({"threading.max_workers": 1}):
        plan = tessarr.plan.rechunk(opened, MemoryStore(), path="a", chunks=(9, 9), memory=memory, strategy="direct")
        costs = plan.describe().arrays[0]
        assert _sweeps(plan)
        source.read.clear()
        plan.run(slots=1)
    assert len([key for key in source.read if "/c/" in key]) == costs.chunks_read


def test_a_saved_plan_that_sweeps_says_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tessarr.create_array(tmp_path / "a", shape=(99, 60), chunks=(10, 10), dtype="f8")
    made[...] = np.random.default_rng(3).random((99, 60))
    monkeypatch.setattr(_BAND, 400)
    digests = []
    for name in ("b", "c"):
        with tessarr.config.set({"threading.max_workers": 1}):
            plan = tessarr.plan.rechunk(tmp_path / "a", tmp_path / name, chunks=(9, 9), dtype="f4", strategy="direct")
            assert _sweeps(plan)
            work, only = plan._opened(), 0
            digests.append(work.run(only, marked=True).digest)
            plan.save(tmp_path / f"{name}.plan")
            plan.run()
    assert digests[0] == digests[1] != ""
    assert np.array_equal(tessarr.open_array(tmp_path / "c")[...], made[...].astype("f4"))
