"""Every strategy writes what NumPy would, costs what it says, and leaves nothing behind."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import tessarr
import tessarr.plan
from tessarr.core.claims.intents import CLAIM
from tessarr.errors import BaseZarrError, FailedTasksError, UnsupportedOperationError
from tessarr.plan.requests import Shards, reads_of_shards
from tessarr.plan.strategies.strategy import Name
from tessarr.plan.tiling import Tiling
from tessarr.storage import MemoryStore
from tessarr.stores.base import Store
from tessarr.types import AnyArray, ByteRange

VALUES = np.random.default_rng(5).integers(0, 1000, (60, 44), "i4")


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """The memory of a task depends on its threads, and the order of inner chunks in a shard may."""
    with tessarr.config.set({"threading.max_workers": 2}):
        yield


def test_a_name_that_no_strategy_has_is_refused(tmp_path: Path) -> None:
    wrong: Any = "fast"
    with pytest.raises(ValueError, match="strategy must be one of auto, direct, staged, scratch, regroup; got 'fast'"):
        tessarr.plan.rechunk(_source(tmp_path / "a.zarr"), tmp_path / "b.zarr", strategy=wrong)


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
    """A store that counts the values that are read and written. It has no conditional writes: whether a chunk is there that the
    end of an array cuts is looked up, which is not counted."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read: list[str] = []
        self.written: list[tuple[str, int]] = []

    def get(self, key: str, byte_range: ByteRange | None = None) -> Any:
        value = self.store.get(key, byte_range)
        self.read += [key] if value is not None else []
        return value

    def set(self, key: str, value: Any) -> None:
        self.written.append((key, memoryview(value).nbytes))
        self.store.set(key, value)

    def delete(self, key: str) -> None:
        self.store.delete(key)

    def list(self, prefix: str = "") -> Any:
        return self.store.list(prefix)


class _Ranged(_Counting):
    """A store that reads several parts of a value by one request."""

    def get_ranges(self, key: str, ranges: Any) -> Any:
        self.read.append(key)
        return self.store.get_ranges(key, ranges)


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
    stored = [nbytes for key, nbytes in target.written if ".stages/" not in key and not key.endswith(("json", CLAIM))]
    assert len(between) == costs.temporary_objects
    assert len(stored) == costs.objects == 33
    assert sum(stored) == costs.bytes_written == VALUES.nbytes
    assert (strategy == "staged") == bool(between)


_ELEMENT = 66_000
"""Bytes of an element, so that no shard is small: one of at most 64 KiB is read whole."""


@st.composite
def _layouts(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], int]:
    """The layouts of a source and of a target of up to two axes, and how many elements a task may hold."""
    ndim = draw(st.integers(1, 2))

    def lengths(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=ndim, max_size=ndim)))

    def layout(chunks: tuple[int, ...]) -> dict[str, Any]:
        counts = lengths(1, 4)
        shards = tuple(size * count for size, count in zip(chunks, counts, strict=True))
        return {"chunks": chunks, "shards": draw(st.sampled_from([None, shards]))}

    before = layout(lengths(1, 3))
    after = layout(draw(st.sampled_from([before["chunks"], lengths(1, 4)])))
    return {"shape": lengths(1, 9), **before}, after, draw(st.integers(20, 300))


@settings(max_examples=40, deadline=None)
@given(_layouts(), st.sampled_from(["auto", "direct", "staged"]))
def test_requests_are_as_predicted_also_for_shards(
    layouts: tuple[dict[str, Any], dict[str, Any], int], strategy: Name
) -> None:
    """A shard is read whole where at least half of its inner chunks are wanted; else its index, then some of it."""
    before, after, elements = layouts
    with tempfile.TemporaryDirectory() as folder, tessarr.config.set({"threading.max_workers": 2}):
        made = tessarr.create_array(f"{folder}/a", dtype=f"S{_ELEMENT}", compressors=None, **before)
        made[...] = np.arange(1, made.size + 1).astype("S").reshape(made.shape)
        source, target = _Ranged(made.store), _Ranged(tessarr.storage.LocalStore(f"{folder}/t"))
        options: Any = {"memory": elements * _ELEMENT, "strategy": strategy, "verify": False, **after}
        try:
            plan = tessarr.plan.rechunk(source, target, path="b", **options)
        except (BaseZarrError, UnsupportedOperationError):
            assume(False)
        costs = plan.describe().arrays[0]
        opened = len(source.read)
        assert plan.run(retries=0).finished
        reads = [key for key in (*source.read[opened:], *target.read) if "c/" in key]
        writes = [key for key, _ in target.written if not key.endswith(("json", CLAIM))]
        event(costs.strategy)
        assert costs.objects + costs.temporary_objects == len(writes)
        assert costs.requests == len(reads) + len(writes)
        assert np.array_equal(tessarr.open_array(target, path="b")[...], made[...])


@given(st.data())
def test_requests_for_shards_are_those_of_every_box(data: st.DataObject) -> None:
    """Also where the boxes of an axis repeat themselves, which are counted once."""
    lengths = [data.draw(st.integers(0, 60)) for _ in range(2)]
    chunks = [data.draw(st.integers(1, 4)) for _ in lengths]
    shards = [size * data.draw(st.integers(1, 4)) for size in chunks]
    tiling = Tiling(tuple(lengths), tuple(data.draw(st.integers(1, 20)) for _ in lengths))
    expected = 0
    for number in range(tiling.count):
        wanted = Counter[tuple[int, ...]]()
        box = tiling.box(number)
        spans = [range(part.start // size, -(-part.stop // size)) for part, size in zip(box, chunks, strict=True)]
        for inner in product(*spans):
            wanted[tuple(at * size // shard for at, size, shard in zip(inner, chunks, shards, strict=True))] += 1
        for shard, count in wanted.items():
            corner = [(at * size, min(n, (at + 1) * size)) for at, size, n in zip(shard, shards, lengths, strict=True)]
            covered = all(
                part.start <= low and high <= part.stop for part, (low, high) in zip(box, corner, strict=True)
            )
            half = 2 * count >= prod(shards) // prod(chunks)
            expected += 1 if covered or half else 2
    assert reads_of_shards(tiling, Shards(tuple(shards), tuple(chunks))) == expected


def test_a_description_says_how_many_parts_have_work_and_what_converted_elements_cost(tmp_path: Path) -> None:
    source = _source(tmp_path / "a", VALUES + 1)
    plain, cast = (
        tessarr.plan.rechunk(source, tmp_path / "b", chunks=(20, 4), memory=12_000, dtype=dtype, strategy="direct")
        for dtype in (None, "i8")
    )
    found = cast.describe()
    assert found.parts == cast.tasks == found.to_json()["parts"]
    assert f"for up to {found.parts} parts" in str(found)
    costs, before = found.arrays[0], plain.describe().arrays[0]
    assert costs.bytes_read / costs.chunks_read == before.bytes_read / before.chunks_read == 2 * 44 * 4
    assert costs.bytes_written == 2 * before.bytes_written
    for part in range(1, 3 * found.parts):
        cast.run_part(part, 3 * found.parts)
    assert cast.status().done < cast.tasks + 1 == cast.run_part(3 * found.parts, 3 * found.parts).done + 1


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
    assert "encoded chunks are as large as they compress" in plan.describe().arrays[0].inexact
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


@pytest.mark.parametrize(
    "compressor",
    [numcodecs.Blosc(), numcodecs.Blosc("lz4", clevel=9), numcodecs.LZMA(preset=1), numcodecs.BZ2(), numcodecs.Zstd(3),
     numcodecs.Zlib(), numcodecs.LZ4(), None],
    ids=["blosc", "lz4 in blosc", "lzma", "bz2", "zstd", "zlib", "lz4", "none"],
)  # fmt: skip
@pytest.mark.parametrize("strategy", ["direct", "staged"])
def test_a_v2_array_is_moved_with_its_compressor(strategy: Name, compressor: Any, tmp_path: Path) -> None:
    values = np.arange(100, dtype=">i4").reshape(10, 10)
    tessarr.create_array(
        tmp_path / "a", data=values, chunks=(3, 4), zarr_format=2, order="F", filters=[numcodecs.Delta(">i4")],
        compressors=compressor,
    )  # fmt: skip
    plan = tessarr.plan.rechunk(tmp_path / "a", tmp_path / "b", chunks=(10, 2), strategy=strategy, memory="1GB")
    assert plan.run().finished
    found = tessarr.open_array(tmp_path / "b")
    assert (found[...] == values).all()
    assert found._metadata.codecs == tessarr.open_array(tmp_path / "a")._metadata.codecs
