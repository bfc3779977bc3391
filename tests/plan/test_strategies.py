"""Every strategy writes what NumPy would, costs what it says, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.errors import FailedTasksError, UnsupportedOperationError
from tessarr.plan.strategies.strategy import Name
from tessarr.storage import MemoryStore
from tessarr.stores.base import Store
from tessarr.types import AnyArray, ByteRange

VALUES = np.random.default_rng(5).integers(0, 1000, (60, 44), "i4")


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """The memory of a task depends on its threads, and the order of inner chunks in a shard may."""
    with tessarr.config.set({"threading.max_workers": 2}):
        yield


def _source(place: Path, values: AnyArray = VALUES, **options: Any) -> str:
    array = tessarr.create_array(place, shape=values.shape, dtype=values.dtype, **{"chunks": (2, 44), **options})
    array[...] = values
    return str(place)


def _stored(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("strategy", ["direct", "staged", "scratch"])
@pytest.mark.parametrize("target", [{"chunks": (20, 4)}, {"chunks": (5, 4), "shards": (20, 12)}])
def test_every_strategy_writes_the_same_bytes_again_and_again(
    strategy: Name, target: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    source = _source(tmp_path / "a")
    written = []
    for name in ("b", "c"):
        plan = tessarr.plan.rechunk(source, tmp_path / name, memory=6000, strategy=strategy, **target)
        assert plan.describe().arrays[0].strategy == strategy
        assert plan.run(slots=2).finished
        assert (tessarr.open_array(tmp_path / name)[...] == VALUES).all()
        written.append(_stored(tmp_path / name))
    assert written[0] == written[1]
    direct = tessarr.plan.rechunk(source, tmp_path / "direct", memory=6000, strategy="direct", **target)
    direct.run()
    assert _stored(tmp_path / "direct") == written[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "direct", "scratch"]
    assert not list((tmp_path / "scratch").iterdir())


class _Counting:
    """A store that counts the values that are read and written."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read: list[str] = []
        self.written: list[tuple[str, int]] = []

    def get(self, key: str, byte_range: ByteRange | None = None) -> Any:
        self.read.append(key)
        return self.store.get(key, byte_range)

    def set(self, key: str, value: Any) -> None:
        self.written.append((key, memoryview(value).nbytes))
        self.store.set(key, value)

    def delete(self, key: str) -> None:
        self.store.delete(key)

    def list(self, prefix: str = "") -> Any:
        return self.store.list(prefix)


@pytest.mark.parametrize("strategy", ["direct", "staged"])
def test_chunks_bytes_and_objects_are_as_predicted(strategy: Name, tmp_path: Path) -> None:
    source = _Counting(tessarr.open_array(_source(tmp_path / "a", VALUES + 1, compressors=None), mode="r").store)
    target = _Counting(MemoryStore())
    plan = tessarr.plan.rechunk(source, target, path="b", chunks=(20, 4), memory=3000, strategy=strategy, verify=False)
    costs = plan.describe().arrays[0]
    before = len(source.read)
    plan.run()
    read = [key for key in source.read[before:] if not key.endswith("json")]
    assert len(read) == costs.chunks_read
    assert len(read) * 2 * 44 * 4 == costs.bytes_read
    between = [key for key, _ in target.written if ".stages/" in key]
    stored = [nbytes for key, nbytes in target.written if ".stages/" not in key and not key.endswith("json")]
    assert len(between) == costs.temporary_objects
    assert len(stored) == costs.objects == 33
    assert sum(stored) == costs.bytes_written == VALUES.nbytes
    assert (strategy == "staged") == bool(between)


def test_scratch_directories_of_killed_tasks_go_and_those_in_use_stay(tmp_path: Path) -> None:
    from tessarr.plan.strategies.scratch import scratch_store

    left = tmp_path / "tessarr-id-left"
    (left / "arrays").mkdir(parents=True)
    with scratch_store(str(tmp_path), "id") as first, scratch_store(str(tmp_path), "id") as second:
        first.set("a", b"1")
        second.set("a", b"2")
        assert not left.exists()
        assert (bytes(first.get("a") or b""), bytes(second.get("a") or b"")) == (b"1", b"2")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"shards": (20, 44)}),
        ({"shards": (20, 44)}, {"shards": None}),
        ({"shards": (20, 44)}, {"shards": (30, 88)}),
        ({"chunks": (7, 9)}, {"shards": (28, 27)}),
        ({"chunks": (7, 9), "shards": (14, 18)}, {"shards": (21, 9)}),
        ({}, {}),
    ],
)
def test_encoded_chunks_move_into_between_and_out_of_shards(
    before: dict[str, Any], after: dict[str, Any], tmp_path: Path
) -> None:
    values = VALUES.copy()
    values[10:40] = 0  # some chunks are not stored
    source = _source(tmp_path / "a", values, **before)
    plan = tessarr.plan.rechunk(source, tmp_path / "b", memory="2MB", **after)
    assert plan.describe().arrays[0].strategy == "regroup"
    assert plan.run(slots=2).finished
    decoded = tessarr.plan.rechunk(source, tmp_path / "c", memory="2MB", strategy="direct", **after)
    decoded.run()
    assert (tessarr.open_array(tmp_path / "b")[...] == values).all()
    assert _stored(tmp_path / "b") == _stored(tmp_path / "c")


def test_chunks_that_would_be_encoded_otherwise_are_decoded(tmp_path: Path) -> None:
    source = _source(tmp_path / "a")
    changes: list[dict[str, Any]] = [{"compressors": None}, {"dtype": "i8"}, {"chunks": (4, 44)}]
    for number, change in enumerate(changes):
        wanted: Any = {"shards": (20, 44), **change}
        plan = tessarr.plan.rechunk(source, tmp_path / f"b{number}", **wanted)
        assert plan.describe().arrays[0].strategy != "regroup"
        with pytest.raises(UnsupportedOperationError, match="only where chunks, codecs, data type"):
            tessarr.plan.rechunk(source, tmp_path / f"b{number}", strategy="regroup", **wanted)
        plan.run()
        made = tessarr.open_array(tmp_path / f"b{number}")
        assert (made[...] == VALUES).all()
        assert made.dtype == change.get("dtype", "i4")


@pytest.mark.parametrize("strategy", ["direct", "staged"])
def test_a_data_type_that_cannot_hold_a_value_is_an_error(strategy: Name, tmp_path: Path) -> None:
    source = _source(tmp_path / "a")
    plan = tessarr.plan.rechunk(source, tmp_path / "b", chunks=(20, 4), dtype="i1", memory=6000, strategy=strategy)
    with pytest.raises(FailedTasksError, match="the data type cannot hold these values"):
        plan.run(retries=0)
    assert not (tmp_path / "b").exists()
    with pytest.raises(UnsupportedOperationError, match="another kind of data type"):
        tessarr.plan.rechunk(source, tmp_path / "b", dtype="S4")
