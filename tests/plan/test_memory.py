"""A task holds no more memory than it may, its threads included: the resident memory of a worker is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.engine.choose import may_be_native
from tessarr.plan.strategies.strategy import Name
from tessarr.tools.pyramid import Method
from tests.stores.remote import servers

MEMORY = 200 * 10**6
WORKER = """
import json
import os
import sys
import tessarr.plan

def resident(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

options = json.loads(os.environ.get("STORAGE_OPTIONS", "null"))
plan = tessarr.plan.load(sys.argv[1], storage_options=options)
work = plan._opened()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = resident("VmRSS")
plan.run()
print(resident("VmHWM") - before)
"""


native = pytest.mark.skipif(not may_be_native(), reason="memory is predicted to a tenth for the native engine alone")


def _rise(plan: Path, **variables: str) -> int:
    """The rise of the resident memory of a process that carries out a plan."""
    found = subprocess.run(
        [sys.executable, "-c", WORKER, str(plan)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **variables, "PYTHONPATH": str(Path(tessarr.__file__).parents[1])},
    )
    return int(found.stdout)


@native
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of resident memory")
@pytest.mark.parametrize(
    ("strategy", "target"),
    [
        ("direct", {"chunks": (160, 25, 100)}),
        ("staged", {"chunks": (160, 25, 100), "shards": (160, 50, 1000)}),
        ("scratch", {"chunks": (160, 25, 100), "shards": (160, 50, 1000)}),
        ("direct", {"chunks": (160, 25, 100), "dtype": "f2"}),
        ("staged", {"chunks": (160, 25, 100), "dtype": "f2"}),
        ("regroup", {"chunks": "keep", "shards": (80, 500, 1000)}),
    ],
)
def test_the_resident_memory_of_a_worker_rises_by_at_most_what_was_allowed(
    strategy: Name, target: dict[str, Any], tmp_path: Path
) -> None:
    rows = np.random.default_rng(3).random((500, 1000), "f4")  # bytes that no codec shortens
    compressors = None if strategy == "regroup" else "auto"
    source = tessarr.create_array(
        tmp_path / "a", shape=(160, 500, 1000), chunks=(1, 500, 1000), dtype="f4", compressors=compressors
    )
    for row in range(160):
        source[row] = rows + np.float32(row)
    with tessarr.config.set({"threading.max_workers": 2}):
        plan = tessarr.plan.rechunk(
            tmp_path / "a", tmp_path / "b", memory=MEMORY, strategy=strategy,
            scratch=str(tmp_path) if strategy == "scratch" else None, **target,
        )  # fmt: skip
        assert [(array.strategy, array.inexact) for array in plan.describe().arrays] == [(strategy, "")]
        predicted = plan.describe().peak_memory
        plan.save(tmp_path / "plan")
    assert 0.5 * MEMORY <= predicted <= MEMORY
    rise = _rise(tmp_path / "plan")
    assert rise <= 1.1 * MEMORY
    assert 0.9 * predicted <= rise <= 1.1 * predicted
    found, expected = tessarr.open_array(tmp_path / "b"), rows[7, 9] + np.arange(160, dtype="f4")
    assert (found[:, 7, 9] == expected.astype(found.dtype)).all()


SMALL = 60 * 10**6


def _incompressible(place: str | Path, options: dict[str, Any] | None = None) -> tuple[tessarr.Array, Any]:
    """An array of 120 MB, in chunks of 2 MB, and its first value along the first axis."""
    rows = np.random.default_rng(3).random((500, 1000), "f4")
    source = tessarr.create_array(
        place, shape=(60, 500, 1000), chunks=(1, 500, 1000), dtype="f4", storage_options=options
    )
    for row in range(60):
        source[row] = rows + np.float32(row)
    return source, rows[7, 9] + np.arange(60, dtype="f4")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of resident memory")
@pytest.mark.parametrize(
    ("strategy", "shards"), [("direct", None), ("direct", (60, 50, 1000)), ("staged", None)], ids=str
)
def test_the_reference_engine_holds_no_more_than_was_allowed(
    strategy: Name, shards: tuple[int, ...] | None, tmp_path: Path
) -> None:
    _, expected = _incompressible(tmp_path / "a")
    with tessarr.config.set({"threading.max_workers": 2, "engine": "reference"}):
        plan = tessarr.plan.rechunk(
            tmp_path / "a", tmp_path / "b", memory=SMALL, strategy=strategy, chunks=(60, 25, 100), shards=shards
        )
        assert plan.describe().peak_memory <= SMALL
        assert "requested at once" in plan.describe().arrays[0].inexact
        plan.save(tmp_path / "plan")
    assert plan.tasks > 1
    assert _rise(tmp_path / "plan", TESSARR_ENGINE="reference") <= 1.1 * SMALL
    assert np.array_equal(tessarr.open_array(tmp_path / "b")[:, 7, 9], expected)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of resident memory")
@pytest.mark.parametrize("strategy", ["direct", "staged"])
def test_what_is_in_flight_to_object_storage_is_within_what_was_allowed(strategy: Name, tmp_path: Path) -> None:
    options = dict(servers.S3_OPTIONS)
    with servers.s3_server(tmp_path / "server") as server:
        place = f"s3+http://{server.address}/bucket"
        _, expected = _incompressible(f"{place}/a", options)
        with tessarr.config.set({"threading.max_workers": 2}):
            plan = tessarr.plan.rechunk(
                f"{place}/a", f"{place}/b", memory=SMALL, strategy=strategy, chunks=(60, 25, 100),
                storage_options=options, source_storage_options=options,
            )  # fmt: skip
            plan.save(tmp_path / "plan")
        assert plan.tasks > 1
        assert _rise(tmp_path / "plan", STORAGE_OPTIONS=json.dumps(options)) <= 1.1 * SMALL
        found = tessarr.open_array(f"{place}/b", storage_options=options)
        assert np.array_equal(found[:, 7, 9], expected)


@native
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of resident memory")
@pytest.mark.parametrize("dtype", [None, "f4"])
def test_a_task_that_sweeps_its_box_holds_less_than_the_box_as_predicted(dtype: str | None, tmp_path: Path) -> None:
    source = tessarr.create_array(tmp_path / "a", shape=(8000, 4000), chunks=(500, 500), dtype="f8")
    rows = np.random.default_rng(3).random((500, 4000))  # bytes that no codec shortens
    for row in range(0, 8000, 500):
        source[row : row + 500] = rows
    with tessarr.config.set({"threading.max_workers": 2}):
        plan = tessarr.plan.rechunk(tmp_path / "a", tmp_path / "b", memory="500MB", chunks=(499, 499), dtype=dtype)
        predicted = plan.describe().peak_memory
        plan.save(tmp_path / "plan")
    assert plan.tasks == 1
    assert predicted < 0.6 * source.nbytes
    assert 0.9 * predicted <= _rise(tmp_path / "plan") <= 1.1 * predicted
    assert np.array_equal(tessarr.open_array(tmp_path / "b")[7500:], rows.astype(dtype or "f8"))


def _whole(tmp_path: Path, operation: str, layout: dict[str, Any]) -> tessarr.plan.Plan:
    """A plan whose tasks hold stored values of 40 MB whole, or blocks that lie in these."""
    rows = np.random.default_rng(3).random((500, 1000), "f4")
    source = tessarr.create_array(tmp_path / "a", shape=(40, 500, 1000), dtype="f4", **layout)
    for first in range(0, 40, 20):
        source[first : first + 20] = np.stack([rows + np.float32(first + row) for row in range(20)])
    if operation == "copy":
        return tessarr.plan.copy(tmp_path / "a", tmp_path / "b")
    if operation == "digest":
        return tessarr.plan.digest(tmp_path / "a")
    if operation == "check":
        return tessarr.plan.check(tmp_path / "a", data="decode")
    shards = None if source.shards is not None else (20, 500, 1000)
    return tessarr.plan.rechunk(tmp_path / "a", tmp_path / "b", chunks="keep", shards=shards, strategy="regroup")


SHARDED = {"chunks": (10, 500, 1000), "shards": (20, 500, 1000)}
AS_LARGE = "as large as they compress"


@native
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of resident memory")
@pytest.mark.parametrize(
    ("operation", "layout", "compressors", "inexact"),
    [
        ("copy", {"chunks": (20, 500, 1000)}, None, None),
        ("copy", SHARDED, None, None),
        ("copy", SHARDED, "auto", AS_LARGE),
        ("check", {"chunks": (20, 500, 1000)}, None, "read more slowly than they are checked"),
        ("check", {"chunks": (20, 500, 1000)}, "auto", AS_LARGE),
        ("digest", {"chunks": (20, 500, 1000)}, None, "blocks end within chunks"),
        ("digest", {"chunks": (40, 500, 1000)}, None, None),
        ("digest", {"chunks": (2, 500, 1000)}, None, None),
        ("digest", {"chunks": (2, 500, 1000)}, "auto", AS_LARGE),
        ("regroup", SHARDED, None, None),
        ("regroup", {"chunks": (10, 500, 1000)}, None, None),
        ("regroup", {"chunks": (10, 500, 1000)}, "auto", AS_LARGE),
    ],
)
def test_tasks_that_hold_whole_values_hold_what_is_predicted_or_less_where_these_compress(
    operation: str, layout: dict[str, Any], compressors: str | None, inexact: str | None, tmp_path: Path
) -> None:
    with tessarr.config.set({"threading.max_workers": 2}):
        plan = _whole(tmp_path, operation, {**layout, "compressors": compressors})
        (costs,) = plan.describe().arrays
        plan.save(tmp_path / "plan")
    rise = _rise(tmp_path / "plan")
    assert rise <= 1.1 * costs.peak_memory
    if inexact is None:
        assert not costs.inexact
        assert 0.9 * costs.peak_memory <= rise
    else:
        assert inexact in costs.inexact


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of resident memory")
def test_a_digest_keeps_no_decoded_chunks_that_the_process_cannot_keep_until_they_are_read_again(
    tmp_path: Path,
) -> None:
    source = tessarr.create_array(tmp_path / "a", shape=(160, 500, 1000), chunks=(160, 50, 100), dtype="f4")
    source[...] = np.arange(1000, dtype="f4")
    with tessarr.config.set({"threading.max_workers": 2}):
        plan = tessarr.plan.digest(tmp_path / "a")
        predicted = plan.describe().peak_memory
        plan.save(tmp_path / "plan")
    assert predicted < 64 << 20
    assert _rise(tmp_path / "plan") <= 1.1 * predicted


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of resident memory")
@pytest.mark.parametrize("method", ["mean", "mode", "gaussian"])
def test_the_resident_memory_of_a_worker_that_builds_a_pyramid_is_bounded_too(method: Method, tmp_path: Path) -> None:
    most = 100 * 10**6
    group = tessarr.create_group(tmp_path / "a")
    image = group.create_array("0", shape=(5000, 6000), chunks=(500, 500), dtype="u2")
    rows = np.random.default_rng(3).integers(0, 60_000, (500, 6000), "u2")  # bytes that no codec shortens
    for row in range(0, 5000, 500):
        image[row : row + 500] = rows
    with tessarr.config.set({"threading.max_workers": 2}):
        plan = tessarr.plan.pyramid(group, "0", levels=2, method=method, memory=most)
        predicted = plan.describe().peak_memory
        plan.save(tmp_path / "plan")
    assert predicted <= most
    assert _rise(tmp_path / "plan") <= 1.1 * predicted
    assert tessarr.open_array(tmp_path / "a", path="2").shape == (1250, 1500)


FLOOR = 5 * 10**6
"""docs/plans.md: of a few megabytes, a prediction is not exact to a tenth."""
_Layout = tuple[tuple[int, ...], tuple[int, ...] | None]
SMALL_TASKS: dict[str, tuple[Name, int, tuple[int, ...], str, _Layout, _Layout, int | None]] = {
    "direct": ("direct", 1, (300, 700, 40), "f8", ((30, 70, 40), (30, 140, 40)), ((300, 35, 8), (300, 70, 40)), 3),
    "converted": ("direct", 2, (300, 700, 40), "f4", ((30, 70, 40), None), ((300, 35, 8), None), 3),
    "staged": ("staged", 1, (600, 200, 60), "f8", ((7, 200, 60), None), ((600, 6, 60), (600, 24, 60)), 3),
    "staged and cut": ("staged", 2, (611, 217, 60), "f4", ((40, 200, 60), None), ((600, 7, 60), None), 3),
    "scratch": ("scratch", 1, (6242, 46, 100), "u1", ((10, 46, 100), None), ((373, 46, 16), (1119, 46, 64)), 3),
    "scratch in threads": ("scratch", 2, (424, 180, 99), "f8", ((44, 5, 99), (44, 40, 99)), ((230, 27, 46), None), 3),
    "long tables": ("direct", 1, (1000, 2500), "f4", ((100, 2500), None), ((1000, 250), None), 19),
    "no codecs": ("direct", 2, (1000, 2500), "f8", ((100, 2500), None), ((1000, 50), (1000, 250)), None),
    "regroup": ("regroup", 2, (1000, 2500), "f4", ((100, 250), None), ((100, 250), (500, 2500)), None),
}
"""Strategy, threads, shape, data type, chunks and shards of source and target, level of zstd."""


@native
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of resident memory")
@pytest.mark.parametrize("case", SMALL_TASKS)
def test_small_tasks_hold_what_is_predicted(case: str, tmp_path: Path) -> None:
    strategy, threads, shape, dtype, (chunks, shards), (to_chunks, to_shards), level = SMALL_TASKS[case]
    codecs = None if level is None else [{"name": "zstd", "configuration": {"level": level, "checksum": False}}]
    source = tessarr.create_array(
        tmp_path / "a", shape=shape, chunks=chunks, shards=shards, dtype=dtype, compressors=codecs and [_FAST_ZSTD]
    )
    bits = np.random.default_rng(3).integers(1, 255, source.nbytes, "u1")  # bytes that no codec shortens
    bits[source.itemsize - 1 :: source.itemsize] &= 63  # no NaN
    source[...] = bits.view(dtype).reshape(shape)
    options: dict[str, Any] = {} if strategy == "regroup" else {"compressors": codecs}
    if case == "converted":
        options["dtype"] = "f8"
    with tessarr.config.set({"threading.max_workers": threads}):
        plan = tessarr.plan.rechunk(
            tmp_path / "a", tmp_path / "b", chunks=to_chunks, shards=to_shards, strategy=strategy,
            memory=SMALL, scratch=str(tmp_path) if strategy == "scratch" else None, **options,
        )  # fmt: skip
        predicted = plan.describe().peak_memory
        plan.save(tmp_path / "plan")
    rise = _rise(tmp_path / "plan")
    assert rise <= 1.1 * SMALL
    assert abs(rise - predicted) <= max(0.1 * predicted, FLOOR)


_FAST_ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
