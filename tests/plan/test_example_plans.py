"""The scripts of ``examples/plans`` carry a plan out: on Slurm, on Kubernetes, on Ray and as functions in the cloud."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tessarr
import tessarr.plan

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plans"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``tessarr`` is this one."""
    command = tmp_path / "bin" / "tessarr"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tessarr "$@"\n')
    command.chmod(0o755)
    python = Path(sys.executable).parent  # which Lithops starts by its name
    return {**os.environ, "PATH": f"{command.parent}:{python}:{os.environ['PATH']}"}


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A saved plan of several tasks."""
    days = tessarr.create_array(tmp_path / "days.zarr", shape=(60, 20, 20), chunks=(1, 20, 20), dtype="f4")
    days[...] = np.random.default_rng(0).random(days.shape, dtype="f4")
    made = tessarr.plan.rechunk(days, tmp_path / "series.zarr", chunks=(60, 5, 5), memory="60kB")
    assert made.tasks >= 4
    made.save(tmp_path / "PLAN")
    return tmp_path / "PLAN"


def _check(tmp_path: Path) -> None:
    made, days = tessarr.open_array(tmp_path / "series.zarr"), tessarr.open_array(tmp_path / "days.zarr")
    assert (made[...] == days[...]).all()


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == {
        "slurm.sh",
        "kubernetes.yaml",
        "ray_executor.py",
        "lithops_executor.py",
    }


def test_the_jobs_of_a_slurm_array_run_parts_and_a_further_job_finishes(
    plan: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    script = ["bash", str(EXAMPLES / "slurm.sh"), str(plan)]
    for number in ("5", "6", "7"):
        variables = {"SLURM_ARRAY_TASK_ID": number, "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "3"}
        subprocess.run(script, env={**environment, **variables}, check=True)
    status = tessarr.plan.load(plan).status()
    assert (status.missing, status.finished) == (0, False)
    subprocess.run(script, env=environment, check=True)
    _check(tmp_path)


def test_the_pods_of_an_indexed_job_run_parts(plan: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    text = (EXAMPLES / "kubernetes.yaml").read_text()
    found = re.search(r"&& (tessarr run) s3://bucket/plan( --part)\"", text)
    assert found is not None
    assert "{name: JOB_COMPLETIONS, value: " in text
    for index in ("1", "0"):
        variables = {"JOB_COMPLETION_INDEX": index, "JOB_COMPLETIONS": "2"}
        subprocess.run(["sh", "-c", f"{found[1]} {plan}{found[2]}"], env={**environment, **variables}, check=True)
    assert tessarr.plan.load(plan).finish().finished
    _check(tmp_path)


@pytest.mark.parametrize("package", ["ray", "lithops"])
def test_an_executor_of_a_few_lines_carries_a_plan_out(
    package: str, plan: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip(package, reason="it belongs to no extra: tested where it is installed")
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{package}_executor.py"), str(plan)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "finished=True" in ran.stdout
    _check(tmp_path)
