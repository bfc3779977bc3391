"""What plans and their verbs say, and the exit codes with which they end."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.cli.verbs.plans.run import part_of
from tessarr.errors import BaseZarrError, FailedTasksError, StoreError
from tessarr.plan import Plan
from tessarr.plan.strategies.simulate import Expected, Workers, in_bytes
from tests.stores.remote import servers


@pytest.fixture
def saved(plan: Plan, tmp_path: Path) -> str:
    """The place of `plan`."""
    assert plan.tasks
    return str(tmp_path / "PLAN")


def test_no_password_of_a_place_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tessarr.create_array(tmp_path / "a.zarr", data=np.arange(4))
    (tmp_path / "redis").mkdir()
    with servers.redis_server(tmp_path / "redis") as server:
        place = f"redis://nobody:SECRET@{server.address}/0/PLAN".replace("nobody:SECRET@", "")
        told = f"redis://:SECRET@{server.address}"
        assert main(["plan", "digest", str(tmp_path / "a.zarr"), "--save", place]) == 0
        assert f"tessarr run {place}" in capsys.readouterr().out
    assert main(["run", f"{told}/0/PLAN"]) != 0
    assert "SECRET" not in capsys.readouterr().err


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("scheme", ["http", "s3+http"])
def test_the_query_of_a_url_is_refused_and_not_told(listed: bool, scheme: str, tmp_path: Path) -> None:
    url = f"{scheme}://127.0.0.1:1/bucket/0.h5?token=SECRET"
    with pytest.raises(StoreError, match="names one object, not a place") as raised:
        tessarr.plan.convert([url, url] if listed else url, tmp_path / "b.zarr", along="t")
    assert "SECRET" not in str(raised.value)


def test_a_verb_that_keeps_nothing_does_not_say_that_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tessarr.create_array(tmp_path / "a.zarr", data=np.arange(4))

    def failing(*_: object, **__: object) -> Any:
        raise FailedTasksError(
            "1 of 1 task failed", {0: OSError()}, hint="Those that ended are kept: run the plan again"
        )

    monkeypatch.setattr(Plan, "run", failing)
    assert main(["copy", str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")]) == 1
    told = capsys.readouterr().err
    assert "Nothing is kept. To go on after an error: tessarr plan copy" in told
    assert "are kept" not in told


def test_rechunking_keeps_names_of_v2_and_consolidated_metadata(tmp_path: Path) -> None:
    group = tessarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    group.create_array("__x", data=np.arange(4), chunks=(2,))
    tessarr.consolidate_metadata(tmp_path / "a.zarr")
    plan = tessarr.plan.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(4,))
    assert plan.notices == ()
    assert plan.run().finished
    assert [name for name, _ in tessarr.open_group(tmp_path / "b.zarr").arrays()] == ["__x"]
    assert (tmp_path / "b.zarr" / ".zmetadata").exists()


def test_the_notices_of_a_conversion_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = tessarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    group.create_array("__x", data=np.arange(4), chunks=(2,))
    wanted = ["plan", "convert", str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr"), "--save", str(tmp_path / "P")]
    assert main(wanted) == 0
    assert "note: /__x: stored as 'x'" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["lots", "1G", "10"])
def test_a_size_that_is_none_is_said_to_be_that_of_memory(size: str, tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a.zarr", data=np.arange(4))
    with pytest.raises(ValueError, match=f'expected a size of memory such as "100MB" or "1MiB"; got {size!r}'):
        tessarr.plan.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", memory=size)


def test_a_plan_that_cannot_go_on_has_failed_and_is_no_wrong_usage(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = Path(saved, "plan.json")
    text = document.read_text()
    document.write_text(json.dumps(json.loads(text) | {"tessarr_plan": 1}))
    assert main(["run", saved]) == main(["finish", saved]) == 1
    document.write_text(text)
    tessarr.open_array(tmp_path / "days.zarr").attrs["changed"] = True
    assert main(["run", saved]) == 1
    assert "the source has changed" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "nowhere")]) == 2


SLURM = {"SLURM_ARRAY_TASK_ID": "17", "SLURM_ARRAY_TASK_MIN": "17", "SLURM_ARRAY_TASK_MAX": "42"}


def test_the_index_of_a_job_is_that_of_its_part() -> None:
    assert part_of("/200", SLURM | {"SLURM_ARRAY_TASK_COUNT": "2"}) == (17, 200)
    assert part_of("/200", {"JOB_COMPLETION_INDEX": "0"}) == (1, 200)
    assert part_of("/200", {"AWS_BATCH_JOB_ARRAY_INDEX": "199"}) == (200, 200)
    whole = {"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "9"}
    assert part_of("", whole | {"SLURM_ARRAY_TASK_STEP": "4", "SLURM_ARRAY_TASK_COUNT": "3"}) == (3, 3)


@pytest.mark.parametrize(
    ("text", "variables", "told"),
    [
        ("", {"JOB_COMPLETION_INDEX": "0"}, "Kubernetes does not: set it to that of completions, or write --part /N"),
        ("", SLURM | {"SLURM_ARRAY_TASK_COUNT": "2"}, "the array of Slurm has holes"),
        ("/4", {}, "needs one of the variables SLURM_ARRAY_TASK_ID, "),
        ("1/", {}, "--part is I/N"),
        ("/4", {"JOB_COMPLETION_INDEX": "$INDEX"}, r"JOB_COMPLETION_INDEX is not a number: '\$INDEX'"),
        ("", SLURM | {"SLURM_ARRAY_TASK_COUNT": ""}, "SLURM_ARRAY_TASK_COUNT is not a number: ''"),
    ],
)
def test_what_a_job_must_be_told_is_said(text: str, variables: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        part_of(text, variables)


def test_a_plan_that_writes_nothing_is_not_said_to_write(tmp_path: Path) -> None:
    array = tessarr.create_array(tmp_path / "a.zarr", data=np.arange(4))
    assert "write" not in str(tessarr.plan.digest(array).describe())
    assert "writes 1 object" in str(tessarr.plan.copy(array, tmp_path / "b.zarr").describe())


def test_a_file_without_chunks_is_not_said_to_be_read_by_element(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(1000))
    costs = tessarr.plan.convert(tmp_path / "a.npy", tmp_path / "b.zarr").describe().arrays[0]
    assert (costs.chunks_read, costs.requests, costs.bytes_read) == (1, 1 + costs.objects, 8000)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_files_without_chunks_are_read_in_parts_where_they_are_joined(engine: str, tmp_path: Path) -> None:
    """Each of 12 MB, which a task reads whole; the native engine reads any part of one file."""
    files = [tmp_path / f"{name}.npy" for name in "ab"]
    for file in files:
        np.save(file, np.zeros((100, 200, 300), "f4"))
    planned = partial(tessarr.plan.convert, memory="60MB", along="t")
    with tessarr.config.set({"engine": engine, "threading.max_workers": 2}):
        joined = planned(files, tmp_path / "c.zarr", chunks=(2, 100, 20, 30)).describe().arrays[0]
        assert joined.chunks_read == 4 * joined.tasks == 4 * joined.amplification > 4
        with pytest.raises(BaseZarrError, match="a task needs more memory"):
            planned(files, tmp_path / "c.zarr", chunks=(2, 100, 20, 30), memory="8MB")
        one = planned(files[0], tmp_path / "c.zarr", chunks=(100, 20, 30), along=None).describe().arrays[0]
        assert one.amplification == (1 if engine == "native" else one.tasks)


def test_a_plan_says_what_it_is_and_what_is_left_to_do(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tessarr.plan.load(saved)
    assert repr(plan).startswith("<Plan rechunk ")
    assert repr(plan).endswith(f"series.zarr: {plan.tasks} tasks>")
    assert main(["run", saved, "--part", "1/1"]) == 0
    told = f"{plan.tasks} of {plan.tasks} tasks done; publish the result with: tessarr finish {saved}\n"
    assert capsys.readouterr().out == told


def test_numbers_agree_with_their_nouns_and_small_ones_have_small_units(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a.zarr", data=np.arange(4), chunks=(4,))
    told = str(tessarr.tools.check.check(tmp_path / "a.zarr", data="decode"))
    assert told.endswith("a.zarr: 0 groups, 1 array, 1 chunk checked; 0 errors, 0 warnings, 0 notes")
    assert [in_bytes(nbytes) for nbytes in (0, 999, 1e3, 3.2e7, 1e12, 2e15)] == [
        "0 B", "999 B", "1.0 kB", "32.0 MB", "1.0 TB", "2000.0 TB",
    ]  # fmt: skip
    some = Expected(seconds=2.5, attempts=1, read=3200, written=10, requests=12, busy=0.5)
    assert str(some).startswith("2.5 seconds with workers 50% busy\n1 attempt, ")
    assert str(some).endswith("3.2 kB read and 10 B written, 0 B of it lost, by 12 requests")


@pytest.mark.parametrize("wrong", [{"lifetime": 0}, {"shared": 0}, {"network": -1}, {"in_flight": 0}, {"restart": -1}])
def test_workers_that_are_none_are_refused(wrong: dict[str, Any], saved: str) -> None:
    with pytest.raises(ValueError, match="rates are positive"):
        tessarr.plan.load(saved).simulate(Workers(count=1, **wrong))


def test_fill_values_that_disagree_are_told_as_numbers(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="belongs to the extra [test]")
    for number, fill in enumerate((-1, -2)):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("a", data=np.arange(3, dtype="i4")).attrs["_FillValue"] = np.int32(fill)
    files = [str(tmp_path / f"{number}.h5") for number in range(2)]
    with pytest.raises(BaseZarrError, match=r"_FillValue -2, where 0\.h5 has -1"):
        tessarr.plan.convert(files, tmp_path / "b.zarr", along="t")
