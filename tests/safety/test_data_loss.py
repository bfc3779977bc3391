"""What other libraries lost is kept here. Each test names the line of the list in CORRECTNESS.md that it stands for."""

from __future__ import annotations

import contextlib
import itertools
import json
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore

import tessarr
from tessarr.errors import (
    BaseZarrError,
    ContainsArrayError,
    NodeNotFoundError,
    ShardIndexError,
    StoreError,
    TessarrError,
    UnsupportedOperationError,
)
from tessarr.storage import LocalStore, MemoryStore, WrapperStore, ZipStore
from tests.narrow import array_of

LAYOUTS = [{"chunks": (4,), "shards": (64,)}, {"chunks": (64,)}]
"""64 elements in one stored value: as a shard of 16 inner chunks, and as one chunk."""


def run(program: str, *arguments: str, environment: dict[str, str], timeout: float = 60) -> str:
    """What a Python program prints, run in a process of its own; it must end well and in time."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- several writers of one stored value ---------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=["shard", "chunk"])
def test_threads_that_write_parts_of_one_value_lose_nothing(store: Any, engine: str, layout: dict[str, Any]) -> None:
    tessarr.create_array(store, shape=(64,), dtype="i4", fill_value=-1, **layout)

    def write(index: int) -> None:
        tessarr.open_array(store, mode="r+")[index] = index

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(64)))
    assert tessarr.open_array(store, mode="r")[:].tolist() == list(range(64))


@pytest.mark.parametrize("layout", LAYOUTS, ids=["shard", "chunk"])
def test_processes_that_write_parts_of_one_value_lose_nothing(
    local: LocalStore, environment: dict[str, str], layout: dict[str, Any]
) -> None:
    tessarr.create_array(local, shape=(64,), dtype="i4", fill_value=-1, **layout)
    program = """
import sys, tessarr
tessarr.config.set({"engine": sys.argv[3]})
z = tessarr.open_array(sys.argv[1], mode="r+")
for index in range(int(sys.argv[2]), 64, 4):
    z[index] = index
"""
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(local.root), str(first), engine], env=environment)
        for first, engine in zip(range(4), ["auto", "reference", "auto", "reference"], strict=True)
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert tessarr.open_array(local, mode="r")[:].tolist() == list(range(64))


def test_regions_that_are_not_aligned_with_chunks_lose_nothing(store: Any, engine: str) -> None:
    tessarr.create_array(store, shape=(100,), chunks=(16,), dtype="i4", fill_value=-1)
    regions = [slice(start, min(start + 7, 100)) for start in range(0, 100, 7)]

    def write(region: slice) -> None:
        tessarr.open_array(store, mode="r+")[region] = np.arange(region.start, region.stop)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, regions))
    assert tessarr.open_array(store, mode="r")[:].tolist() == list(range(100))


# -- crashes -------------------------------------------------------------------------------------------------------------


def test_a_killed_writer_leaves_whole_shards(local: LocalStore, environment: dict[str, str], engine: str) -> None:
    tessarr.create_array(local, shape=(4096,), chunks=(256,), shards=(4096,), dtype="i4", compressors=None)
    program = """
import itertools, sys, tessarr
tessarr.config.set({"engine": sys.argv[2]})
z = tessarr.open_array(sys.argv[1], mode="r+")
for value in itertools.count(1):
    z[:] = value
    print(value, flush=True)
"""
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", program, str(local.root), engine], env=environment, stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.02)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        assert len(set(tessarr.open_array(local, mode="r")[:].tolist())) == 1


# -- modes ---------------------------------------------------------------------------------------------------------------


def everything(store: Any) -> dict[str, bytes]:
    return {key: bytes(store.get(key)) for key in store.list()}


@pytest.mark.parametrize("mode", ["r", "r+", "a"])
def test_opening_deletes_nothing(store: Any, mode: str) -> None:
    root = tessarr.create_group(store)
    root["x"] = np.arange(4)
    store.set("not/ours", b"1")
    before = everything(store)
    tessarr.open(store, mode=mode)
    tessarr.open_group(store, mode=mode)
    tessarr.open_array(store, path="x", mode=mode)
    assert everything(store) == before


@pytest.mark.parametrize("kind", ["array", "group"])
@pytest.mark.parametrize("mode", ["w-", "x"])
def test_exclusive_creation_replaces_nothing(store: Any, kind: str, mode: str) -> None:
    tessarr.create_group(store)["x"] = np.arange(4)
    before = everything(store)
    wanted: dict[str, Any] = {"path": "x", "shape": (1,), "dtype": "u1"} if kind == "array" else {}
    with pytest.raises(BaseZarrError, match=r"path .* contains a"):
        tessarr.open(store, mode=mode, **wanted)
    assert everything(store) == before


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_missing_node_is_not_created_by_looking_for_it(store: Any, mode: str) -> None:
    with pytest.raises(NodeNotFoundError):
        tessarr.open(store, mode=mode, path="x")
    assert everything(store) == {}


BAD = [
    {"dtype": "no such type"},
    {"chunks": (3, 3)},
    {"chunks": (0,)},
    {"shards": (3,), "chunks": (2,)},
    {"compressors": "no such codec"},
    {"fill_value": "x"},
    {"dimension_names": ["a", "b"]},
    {"attributes": {"x": object()}},
]


@pytest.mark.parametrize("wrong", BAD, ids=lambda wrong: next(iter(wrong)))
def test_a_replacement_that_is_not_valid_replaces_nothing(local: LocalStore, wrong: dict[str, Any]) -> None:
    tessarr.create_array(local, data=np.arange(4), chunks=(2,))
    before = everything(local)
    with pytest.raises((TessarrError, ValueError, TypeError)):
        tessarr.create_array(local, overwrite=True, **{"shape": (4,), "dtype": "i4", **wrong})
    assert everything(local) == before


class Failing(WrapperStore):
    """A store that fails at the n-th write."""

    def __init__(self, store: Any, after: int) -> None:
        super().__init__(store)
        self.left = after

    def _spend(self) -> None:
        if self.left == 0:
            raise StoreError("no space left on device")
        self.left -= 1

    def set(self, key: str, value: Any, **options: Any) -> Any:
        self._spend()
        return self.store.set(key, value, **options)

    def update(self, key: str, change: Any) -> None:
        self._spend()
        self.store.update(key, change)

    def delete_prefix(self, prefix: str) -> None:
        self._spend()
        self.store.delete_prefix(prefix)

    def replace_prefix(self, prefix: str, items: Any) -> None:
        self._spend()
        self.store.replace_prefix(prefix, items)


@pytest.mark.parametrize("after", range(3))
def test_a_replacement_that_cannot_be_stored_leaves_the_old_or_the_new_node(after: int) -> None:
    store = MemoryStore()
    tessarr.create_array(store, data=np.arange(4), chunks=(2,))
    try:
        tessarr.create_array(Failing(store, after), data=np.arange(10, 14), chunks=(4,), overwrite=True)
        values = [10, 11, 12, 13]
    except StoreError:
        # Either nothing was replaced, or the new node stands and its data is missing.
        values = [0, 1, 2, 3] if after == 0 else [0, 0, 0, 0]
    assert tessarr.open_array(store, mode="r")[:].tolist() == values


def test_a_node_is_replaced_and_nothing_beside_it(local: LocalStore) -> None:
    root = tessarr.create_group(local)
    root["x"] = np.arange(4)
    root["xy"] = np.arange(5)
    local.set("notes.txt", b"mine")
    tessarr.open_array(local, path="x", mode="w", shape=(2,), dtype="u1")
    assert array_of(root["xy"])[:].tolist() == [0, 1, 2, 3, 4]
    assert local.get("notes.txt") == b"mine"
    assert local.get("x/c/0") is None


def test_the_arguments_of_a_made_array_say_what_is_in_the_way(local: LocalStore) -> None:
    tessarr.create_array(local, shape=(1,), dtype="u1")
    with pytest.raises(ContainsArrayError, match="overwrite=True"):
        tessarr.create_array(local, shape=(1,), dtype="u1")


# -- a source that is its own target -----------------------------------------------------------------------------------


def test_a_source_is_not_overwritten_by_itself(local: LocalStore) -> None:
    source = tessarr.create_array(local, name="a/x", data=np.arange(4), chunks=(2,))
    before = everything(local)
    again = tessarr.open_array(str(local.root), path="a/x")
    for target in ("a/x", "a"):
        for data in (source, again):
            with pytest.raises(BaseZarrError):
                tessarr.from_array(local, name=target, data=data, overwrite=True)
            with pytest.raises(BaseZarrError):
                tessarr.create_array(local, name=target, data=data, overwrite=True)
    assert everything(local) == before


def test_a_source_is_recognised_under_another_name_of_its_place(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "x.zarr", data=np.arange(4))
    (tmp_path / "link.zarr").symlink_to(tmp_path / "x.zarr")
    with pytest.raises(BaseZarrError):
        tessarr.from_array(
            tmp_path / "link.zarr", data=tessarr.open_array(tmp_path / "x.zarr", mode="r"), overwrite=True
        )
    assert tessarr.open_array(tmp_path / "x.zarr", mode="r")[:].tolist() == [0, 1, 2, 3]


# -- append and resize -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", range(5))
def test_an_append_that_fails_leaves_the_array_as_it_was(after: int) -> None:
    store = MemoryStore()
    tessarr.create_array(store, data=np.arange(6), chunks=(4,))
    broken = tessarr.open_array(Failing(store, after), mode="r+")
    try:
        broken.append(np.arange(6, 14))
        expected = list(range(14))
    except StoreError:
        expected = list(range(6))
    assert tessarr.open_array(store, mode="r")[:].tolist() == expected
    assert (after == 4) == (len(expected) == 14), "only the last case may succeed"


def test_concurrent_appends_all_survive(store: Any, engine: str) -> None:
    tessarr.create_array(store, shape=(0,), chunks=(5,), dtype="i4")

    def append(value: int) -> None:
        tessarr.open_array(store, mode="r+").append(np.full(3, value, "i4"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(20)))
    values = tessarr.open_array(store, mode="r")[:].reshape(-1, 3)
    assert sorted(values[:, 0].tolist()) == list(range(20))
    assert (values == values[:, :1]).all()


def test_appends_of_several_processes_all_survive(local: LocalStore, environment: dict[str, str]) -> None:
    tessarr.create_array(local, shape=(0,), chunks=(5,), dtype="i4")
    program = """
import sys, numpy, tessarr
z = tessarr.open_array(sys.argv[1], mode="r+")
for value in range(int(sys.argv[2]), 20, 4):
    z.append(numpy.full(3, value, "i4"))
"""
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(local.root), str(first)], env=environment)
        for first in range(4)
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    values = tessarr.open_array(local, mode="r")[:].reshape(-1, 3)
    assert sorted(values[:, 0].tolist()) == list(range(20))
    assert (values == values[:, :1]).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=["shard", "chunk"])
def test_old_values_come_back_after_a_shrink_only_when_they_are_not_cleared(
    local: LocalStore, engine: str, layout: dict[str, Any]
) -> None:
    for clear, rest in ((False, list(range(10, 64))), (True, [0] * 54)):
        z = tessarr.create_array(local, data=np.arange(64), fill_value=0, overwrite=True, **layout)
        z.resize((10,), clear=clear)
        z.resize((64,))
        assert z[:].tolist() == [*range(10), *rest]


# -- consolidated metadata ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_follows_every_change(local: LocalStore, zarr_format: int) -> None:
    root = tessarr.create_group(local, zarr_format=zarr_format)
    root.create_array("a/x", shape=(4,), chunks=(2,), dtype="i4")
    root.create_array("b", shape=(1,), dtype="i4")
    tessarr.consolidate_metadata(local)
    root["a/x"].attrs["units"] = "m"
    root["a/x"].append([1, 2, 3])
    root["a"].attrs["title"] = "A"
    del root["b"]
    root.create_group("c")
    root.move("c", "a/d")
    seen = tessarr.open_consolidated(local, mode="r")
    assert [path for path, _ in seen.members(max_depth=None)] == ["a", "a/d", "a/x"]
    assert seen["a/x"].shape == (7,)
    assert seen["a/x"].attrs.asdict() == {"units": "m"}
    assert seen["a"].attrs.asdict() == {"title": "A"}


def test_consolidating_again_reads_the_truth(local: LocalStore) -> None:
    root = tessarr.create_group(local)
    root.create_array("x", shape=(4,), dtype="i4")
    tessarr.consolidate_metadata(local)
    # A writer that knows nothing of consolidated metadata.
    document = json.loads((local.root / "x" / "zarr.json").read_text())
    document["shape"] = [9]
    (local.root / "x" / "zarr.json").write_text(json.dumps(document))
    stale = tessarr.open_group(local, mode="r")
    assert stale["x"].shape == (4,)
    assert tessarr.open_group(local, mode="r", use_consolidated=False)["x"].shape == (9,)
    tessarr.consolidate_metadata(local)
    stale.refresh()
    assert stale["x"].shape == (9,)


# -- bits --------------------------------------------------------------------------------------------------------------


def test_negative_zero_and_nan_payloads_are_stored(store: Any, engine: str) -> None:
    payload = np.array([0x7FC00001, 0xFFC00000, 0x7FC00000], "u4").view("f4")
    tessarr.create_array(store, name="zero", shape=(2,), dtype="f4", fill_value=0.0)[:] = -0.0
    tessarr.create_array(store, name="nan", shape=(3,), dtype="f4", fill_value=np.nan)[:] = payload
    assert np.signbit(tessarr.open_array(store, path="zero", mode="r")[:]).all()
    assert tessarr.open_array(store, path="nan", mode="r")[:].tobytes() == payload.tobytes()


def test_a_chunk_of_the_fill_value_s_bits_is_not_stored(local: LocalStore, engine: str) -> None:
    for fill in (-0.0, np.uint32(0x7FC00001).view("f4")):
        z = tessarr.create_array(local, shape=(2,), dtype="f4", fill_value=fill, overwrite=True)
        z[:] = fill
        assert local.get("c/0") is None
        assert z[:].tobytes() == np.full(2, fill, "f4").tobytes()


# -- short shards ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("nbytes", [0, 1, 20, -20, -1])
def test_a_short_shard_is_an_error_and_stays_as_it_is(
    local: LocalStore, engine: str, location: str, nbytes: int
) -> None:
    z = tessarr.create_array(
        local, shape=(64,), chunks=(16,), shards={"shape": (64,), "index_location": location}, dtype="i4"
    )
    z[:] = np.arange(64)
    whole = bytes(local.get("c/0") or b"")
    local.set("c/0", whole[:nbytes] if nbytes else b"")
    z = tessarr.open_array(local, mode="r+")
    before = local.get("c/0")
    with pytest.raises(TessarrError):
        z[:]
    # Inner chunks that the index finds whole may be read; those that were cut off never are fill.
    for index in (0, 63):
        with contextlib.suppress(TessarrError):
            assert z[index] == index
    with pytest.raises(TessarrError):
        z[3] = 1
    assert local.get("c/0") == before


def test_an_empty_shard_is_not_fill_value(store: Any, engine: str) -> None:
    z = tessarr.create_array(store, shape=(64,), chunks=(16,), shards=(64,), dtype="i4")
    store.set("c/0", b"")
    with pytest.raises(ShardIndexError):
        z[0]
    with pytest.raises(ShardIndexError):
        z[:]


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [None, (8,)], ids=["chunk", "shard"])
def test_an_array_keeps_nothing_of_the_caller_s_memory(store: Any, engine: str, shards: Any) -> None:
    z = tessarr.create_array(store, shape=(8,), chunks=(4,), shards=shards, dtype="i4", compressors=None)
    values = np.arange(8, dtype="i4")
    z[:] = values
    values[:] = -1
    assert z[:].tolist() == list(range(8))
    read = z[:]
    read[:] = -1
    assert z[:].tolist() == list(range(8))


def test_what_was_read_is_not_changed_by_later_writes(store: Any, engine: str) -> None:
    z = tessarr.create_array(store, shape=(8,), chunks=(8,), dtype="i4", compressors=None)
    z[:] = 1
    read = z[:]
    z[:] = 2
    assert read.tolist() == [1] * 8


# -- zip ---------------------------------------------------------------------------------------------------------------


def test_a_writable_archive_has_one_writer_and_is_not_pickled(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w") as archive:
        z = tessarr.create_array(archive, shape=(4,), dtype="i4")
        with pytest.raises(UnsupportedOperationError):
            pickle.dumps(z)
        z[:] = 1
        with pytest.raises(StoreError, match="another store"), ZipStore(tmp_path / "a.zip", mode="a") as second:
            second.set("x", b"1")
    read = tessarr.open_array(tmp_path / "a.zip", mode="r")
    assert pickle.loads(pickle.dumps(read))[:].tolist() == [1] * 4


# -- fork --------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_forked_child_reads_and_writes_after_its_parent_did(
    local: LocalStore, environment: dict[str, str], engine: str
) -> None:
    tessarr.create_array(local, data=np.arange(4096), chunks=(64,))
    program = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads, which is what is tested
import tessarr
tessarr.config.set({"engine": sys.argv[2], "threading.max_workers": 4})
z = tessarr.open_array(sys.argv[1], mode="r+")
assert z[:].sum() == 4095 * 2048
child = os.fork()
if child == 0:
    z[10:20] = 0
    os._exit(0 if z[:].sum() == 4095 * 2048 - 145 else 1)
assert os.waitpid(child, 0)[1] == 0
assert z[:].sum() == 4095 * 2048 - 145
"""
    run(program, str(local.root), engine, environment=environment)


# -- v2 that others read -----------------------------------------------------------------------------------------------


COMPRESSORS: list[Any] = [
    None,
    {"id": "zlib", "level": 1},
    {"id": "zstd", "level": 1},
    {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
    "auto",
]
COMBINATIONS = list(itertools.product("CF", ["<i2", ">i2", "<f8", ">f8", "|u1"], COMPRESSORS))


@pytest.mark.parametrize(("order", "dtype", "compressor"), COMBINATIONS)
def test_v2_data_of_any_layout_comes_back_here_and_elsewhere(
    local: LocalStore, engine: str, order: str, dtype: str, compressor: Any
) -> None:
    values = np.arange(35).reshape(5, 7).astype(dtype)
    z = tessarr.create_array(
        local, shape=(5, 7), chunks=(2, 3), dtype=dtype, order=order, compressors=compressor, zarr_format=2
    )
    z[...] = np.asfortranarray(values)
    z[1:4, 2:5] = values[1:4, 2:5]
    assert z[...].tolist() == values.tolist()
    other = tensorstore.open(
        {"driver": "zarr", "kvstore": {"driver": "file", "path": str(local.root)}}, open=True
    ).result()
    assert other.read().result().tolist() == values.tolist()


def test_a_v2_document_holds_what_version_2_knows_and_no_more(local: LocalStore) -> None:
    tessarr.create_array(local, shape=(4,), chunks=(2,), dtype="<i4", zarr_format=2)
    assert json.loads((local.root / ".zarray").read_text()) == {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [2],
        "dtype": "<i4",
        "compressor": {"id": "zstd", "level": 0},
        "fill_value": 0,
        "order": "C",
        "filters": None,
    }


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 70_000])
def test_text_of_any_length_comes_back(local: LocalStore, zarr_format: int, length: int) -> None:
    z = tessarr.create_array(local, shape=(3,), chunks=(2,), dtype=str, zarr_format=zarr_format)
    z[1] = "ä" * length
    assert tessarr.open_array(local, mode="r")[:].tolist() == ["", "ä" * length, ""]
