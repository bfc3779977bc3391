"""zarr-python gives and stores the same with tessarr's codec pipeline as with its own."""

from __future__ import annotations

import copy
import importlib.metadata
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from zarr.codecs import GzipCodec

import tessarr
from tessarr import registry
from tessarr.engine.bound import bind as real_bind
from tessarr.metadata import formats
from tessarr.zarr_python import binding, stats
from tessarr.zarr_python.counts import COUNTS, FallbackError
from tessarr.zarr_python.piped import array as piped_array
from tessarr.zarr_python.pipeline import TessarrCodecPipeline
from tessarr.zarr_python.serve import engine_read as real_engine_read
from tests.narrow import numpy_of
from tests.zarr_python.layouts import Layout, errs, kept, outcome
from tests.zarr_python.test_patch import FORMS, cases, get, put, written_to

NAME = "tessarr.zarr_python.pipeline.TessarrCodecPipeline"


@pytest.fixture(autouse=True)
def _counted() -> Iterator[None]:
    COUNTS.reset()
    yield
    COUNTS.reset()


def opened(z: Any) -> Any:
    """The array again, with our pipeline."""
    with zarr.config.set({"codec_pipeline.path": NAME}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin = zarr.Array(type(z.async_array)(z.metadata, z.store_path, z.config))
    assert isinstance(twin.async_array.codec_pipeline, TessarrCodecPipeline)
    return twin


@settings(max_examples=150, deadline=None)
@given(cases())
def test_reading_is_the_same(case: tuple[Layout, str, Any]) -> None:
    layout, kind, selection = case
    z = layout.make()
    twin = opened(z)
    assert outcome(lambda: get(twin, kind, selection)) == outcome(lambda: get(z, kind, selection))


@settings(max_examples=150, deadline=None)
@given(cases(), st.sampled_from(FORMS), st.integers(0, 9))
def test_writing_is_the_same(case: tuple[Layout, str, Any], form: str, seed: int) -> None:
    layout, kind, selection = case
    assume(not errs(layout, kind))
    a, b = layout.make(), layout.make()
    value = written_to(a, kind, selection, form, seed)
    plain = outcome(lambda: put(a, kind, selection, value))
    assert outcome(lambda: put(opened(b), kind, selection, value)) == plain
    if plain == ("None",):
        assert kept(b) == kept(a)


SELECTIONS: list[Any] = [
    (slice(None), slice(None)), (slice(3, 27, 4), slice(2, 9)), (7, slice(None)), (5, 6), (slice(8, 20), 3),
    (np.array([3, 28, 3, 11]), slice(1, 15)), (np.array([1, 2]), np.array([17, 4, 9])), (np.array([True, False] * 15), 5),
]  # fmt: skip


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
@pytest.mark.parametrize("shards", [None, (10, 10)])
def test_selections_are_put_together_again(selection: Any, shards: Any) -> None:
    z = opened(zarr.create_array({}, shape=(30, 20), chunks=(5, 5), shards=shards, dtype="i4"))
    expected = np.arange(600, dtype="i4").reshape(30, 20)
    z[...] = expected
    axes = [np.atleast_1d(np.arange(n)[item]) for n, item in zip(z.shape, selection, strict=True)]
    found = z.oindex[copy.deepcopy(selection)]
    assert np.array_equal(found.reshape([len(axis) for axis in axes]), expected[np.ix_(*axes)])
    z.oindex[copy.deepcopy(selection)] = -found
    expected[np.ix_(*axes)] *= -1
    assert np.array_equal(z[...], expected)
    assert stats() == (2, 2, {}), "one call of the engine each"


def test_the_pipeline_outlives_a_change_of_the_shape() -> None:
    z = opened(zarr.create_array({}, shape=(10,), chunks=(4,), dtype="i4", fill_value=9))
    z[...] = 1
    z.resize((17,))
    assert z[...].tolist() == [1] * 10 + [1] * 0 + [9] * 7
    z[10:] = 2
    z.resize((6,))
    z[...] = 3
    z.resize((8,))
    assert z[...].tolist() == [3] * 6 + [9] * 2, (
        "zarr-python fills what lies beyond an edge when it writes the whole chunk"
    )
    assert stats().fallbacks == {}


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([None, (4,)]),
    st.lists(st.tuples(st.integers(1, 17), st.integers(0, 17), st.integers(0, 17), st.integers(1, 9)), max_size=6),
)
def test_arrays_whose_shape_changes_are_the_same(shards: Any, steps: list[tuple[int, int, int, int]]) -> None:
    """The pipeline keeps the metadata of the first shape; at an edge decides the present one whether a chunk is covered."""
    pair = [zarr.create_array({}, name="deep/a", shape=(10,), chunks=(2,), shards=shards, dtype="i4") for _ in range(2)]
    a, b = pair[0], opened(pair[1])
    for length, start, stop, value in steps:
        for z in (a, b):
            z.resize((length,))
            z[start:stop] = value
            z[length - 1 :] = value
        assert kept(b) == kept(a)


@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_an_array_is_bound_once_for_all_its_chunks(monkeypatch: pytest.MonkeyPatch, shards: Any) -> None:
    z = opened(zarr.create_array({}, shape=(19, 18), chunks=(2, 2), shards=shards, dtype="i4"))
    shapes = []

    def bind(*arguments: Any) -> Any:
        shapes.append(arguments[2].shape)
        return real_bind(*arguments)

    monkeypatch.setattr(piped_array, "bind", bind)
    expected = np.arange(19 * 18, dtype="i4").reshape(19, 18)
    z[...] = expected
    for index in np.ndindex(19, 18):
        assert z[index] == expected[index]
    for start in range(19):
        assert np.array_equal(z[start : start + 3, 5:9], expected[start : start + 3, 5:9])
    assert len(shapes) == (1 if shards else 0), (
        "beside the array of the metadata: to keep what shards hold beyond its edge"
    )
    assert stats().fallbacks == {}


def test_an_array_that_is_opened_again_is_bound_once_and_documents_are_parsed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening is what zarr-python takes, so that reading one chunk of each array is not slower than with its own pipeline."""
    for name in "ab":
        zarr.create_array(tmp_path / name, shape=(7, 5), chunks=(3, 5), dtype="i2", fill_value=7)
    calls: list[str] = []
    monkeypatch.setattr(registry, "is_extended", lambda: False)  # whatever other tests have registered

    def counted(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            calls.append(function.__name__)
            return function(*arguments)

        return call

    monkeypatch.setattr(binding, "bind", counted(real_bind))
    monkeypatch.setattr(formats, "parse_node", counted(formats.parse_node))
    for name in "aab":
        with zarr.config.set({"codec_pipeline.path": NAME}):
            z = zarr.open_array(tmp_path / name, mode="r")
        assert numpy_of(z[:3, 1]).tolist() == [7, 7, 7]
    assert calls == ["parse_node", "bind", "bind"]
    assert stats() == (3, 0, {})


def test_what_decides_how_an_array_is_bound_is_asked_each_time_it_is_opened(tmp_path: Path) -> None:
    zarr.create_array(tmp_path, shape=(4,), chunks=(2,), dtype="i2")
    assert "native" in tessarr.zarr_python.explain(zarr.open_array(tmp_path, mode="r"))
    with tessarr.config.set({"engine": "reference"}):
        assert "reference" in tessarr.zarr_python.explain(zarr.open_array(tmp_path, mode="r"))
    for empty in (True, False):
        with zarr.config.set({"codec_pipeline.path": NAME, "array.write_empty_chunks": empty}):
            assert numpy_of(zarr.open_array(tmp_path, mode="r")[:]).tolist() == [0] * 4
            zarr.open_array(tmp_path, mode="r+")[:2] = 0
        assert (tmp_path / "c/0").exists() == empty


_COUNTED = """
import sys
import zarr
zarr.config.set({"codec_pipeline.path": "tessarr.zarr_python.pipeline.TessarrCodecPipeline"})
import tessarr.zarr_python
from tessarr.zarr_python import pipeline
zarr.create_array(sys.argv[1], shape=(6,), chunks=(int(sys.argv[2]),), dtype="i4", fill_value=3)
z = zarr.open_array(sys.argv[1], mode="r")
for count in range(50):
    if pipeline._ENGINES in sys.modules:
        break
    assert z[2] == 3
print(count, sum(tessarr.zarr_python.stats().fallbacks.values()))
"""


@pytest.mark.parametrize(("chunk", "early"), [(3, 32), (1 << 20, 0)])
def test_the_first_small_chunks_of_a_process_are_read_without_loading_the_engines(
    tmp_path: Path, chunk: int, early: int
) -> None:
    command = [sys.executable, "-c", _COUNTED, str(tmp_path), str(chunk)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(early + 1), str(early)]


@pytest.mark.parametrize(("compressors", "handed"), [(None, 0), (GzipCodec(level=1), 1)])
def test_a_chunk_that_is_only_copied_is_read_in_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressors: Any, handed: int
) -> None:
    """A hand-over to a thread takes longer than half a megabyte of copying, and less than its decompression."""
    z = opened(
        zarr.create_array(tmp_path, shape=(2, 1 << 19), chunks=(1, 1 << 19), dtype="u1", compressors=compressors)
    )
    z[...] = 7
    calls = []

    async def engine_read(*arguments: Any) -> None:
        calls.append(arguments)
        await real_engine_read(*arguments)

    monkeypatch.setattr(piped_array, "engine_read", engine_read)
    assert z[1].sum() == 7 << 19
    assert len(calls) == handed


def test_a_pickle_reads() -> None:
    z = opened(zarr.create_array({}, shape=(10,), chunks=(4,), dtype="i4"))
    z[...] = 4
    assert pickle.loads(pickle.dumps(z))[...].tolist() == [4] * 10


def test_what_is_not_served_says_why(tmp_path: Path) -> None:
    z = opened(zarr.create_array(zarr.storage.WrapperStore(zarr.storage.LocalStore(tmp_path)), shape=(4,), dtype="i4"))
    z[...] = 1
    assert z[...].tolist() == [1, 1, 1, 1]
    (why,) = stats().fallbacks
    assert "WrapperStore, which may do more than hold bytes" in why


def test_errors_are_those_of_zarr_python(tmp_path: Path) -> None:
    z = zarr.create_array(tmp_path, shape=(4,), dtype="i4", compressors=GzipCodec())
    z[...] = 1
    (tmp_path / "c" / "0").write_bytes(b"no gzip")
    assert outcome(lambda: opened(z)[...]) == outcome(lambda: z[...])
    assert outcome(lambda: z[...])[0] == "raises"


def test_the_entry_point_names_the_pipeline() -> None:
    (point,) = importlib.metadata.entry_points(group="zarr.codec_pipeline", name="tessarr")
    assert point.load() is TessarrCodecPipeline


_LOADED = """
import importlib.metadata, sys
import zarr
zarr.ones(shape=(4,), store={})[:]
(point,) = importlib.metadata.entry_points(group="zarr.codec_pipeline", name="tessarr")
before = set(sys.modules)
point.load()
zarr.create_array({}, shape=(4,), dtype="i4")[:] = 1
print(*sorted(name for name in sys.modules if name.split(".")[0] == "tessarr"))
print(*sorted(name for name in set(sys.modules) - before if name.split(".")[0] != "tessarr"))
"""


def test_loading_the_entry_point_loads_no_engine() -> None:
    """zarr-python loads it in every program, wherever tessarr is installed."""
    done = subprocess.run([sys.executable, "-c", _LOADED], check=True, capture_output=True, text=True)
    ours, others = (line.split() for line in done.stdout.split("\n")[:2])
    light = {"tessarr", "tessarr.built_in", "tessarr.registry", "tessarr.zarr_python", "tessarr.zarr_python.pipeline"}
    of_data_types = {"tessarr.zarr_python.data_types"}  # an entry point too, which zarr-python 3.4 loads
    assert set(ours) <= light | of_data_types | {"tessarr.errors"}
    assert others == []


def test_the_strict_setting_makes_errors_of_fallbacks(tmp_path: Path) -> None:
    served = opened(zarr.create_array(tmp_path / "served", shape=(6,), chunks=(3,), dtype="i4"))
    foreign = opened(zarr.create_array(Hooked(tmp_path / "foreign"), shape=(6,), chunks=(3,), dtype="i4"))
    foreign[:] = 1
    with zarr.config.set({"codec_pipeline.strict": True}):
        served[:] = 2
        assert served[:].tolist() == [2] * 6
        assert served[4:4].tolist() == []
        served[4:4] = 0
        with pytest.raises(FallbackError, match="may do more than hold bytes"):
            foreign[:]
        with pytest.raises(FallbackError, match="may do more than hold bytes"):
            foreign[:] = 3
    assert foreign[:].tolist() == [1] * 6


def test_the_strict_setting_shows_the_error_of_the_engine(tmp_path: Path) -> None:
    array = opened(zarr.create_array(tmp_path, shape=(6,), chunks=(6,), dtype="i4", compressors=GzipCodec()))
    array[:] = 2
    (tmp_path / "c" / "0").write_bytes(b"broken")
    with zarr.config.set({"codec_pipeline.strict": True}), pytest.raises(tessarr.errors.CodecError):
        array[:]


class Hooked(zarr.storage.LocalStore):
    """A store of another class, whose methods may do more."""
