"""The scripts of ``examples/plans`` carry a plan out: on Slurm, on Kubernetes, on Ray and as functions in the cloud."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tessarr.plan
from tessarr.plan import Plan
from tests.plan.conftest import assert_carried_out

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
def place(plan: Plan, tmp_path: Path) -> Path:
    """Where a plan of several tasks is saved."""
    place = tmp_path / "PLAN"
    assert tessarr.plan.load(place).tasks == plan.tasks
    return place


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == {
        "slurm.sh",
        "kubernetes.yaml",
        "ray_executor.py",
        "lithops_executor.py",
    }


def test_the_jobs_of_a_slurm_array_run_parts_and_a_further_job_finishes(
    place: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    script = ["bash", str(EXAMPLES / "slurm.sh"), str(place)]
    for number in ("5", "6", "7"):
        variables = {"SLURM_ARRAY_TASK_ID": number, "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "3"}
        subprocess.run(script, env={**environment, **variables}, check=True)
    status = tessarr.plan.load(place).status()
    assert (status.missing, status.finished) == (0, False)
    subprocess.run(script, env=environment, check=True)
    assert_carried_out(tmp_path)


def test_the_pods_of_an_indexed_job_run_parts(place: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    text = (EXAMPLES / "kubernetes.yaml").read_text()
    found = re.search(r"&& (tessarr run) s3://bucket/plan( --part)\"", text)
    assert found is not None
    assert "{name: JOB_COMPLETIONS, value: " in text
    for index in ("1", "0"):
        variables = {"JOB_COMPLETION_INDEX": index, "JOB_COMPLETIONS": "2"}
        subprocess.run(["sh", "-c", f"{found[1]} {place}{found[2]}"], env={**environment, **variables}, check=True)
    assert tessarr.plan.load(place).finish().finished
    assert_carried_out(tmp_path)


SBATCH = """
import os, re, subprocess, sys
first, last = map(int, next(found for word in sys.argv if (found := re.fullmatch(r"--array=(\\d+)-(\\d+)", word))).groups())
job = ["bash", *(word for word in sys.argv[1:] if not word.startswith("--"))]
for number in range(first, last + 1):
    variables = {"TASK_ID": number, "TASK_MIN": first, "TASK_COUNT": last + 1 - first}
    array = {f"SLURM_ARRAY_{name}": str(value) for name, value in variables.items()}
    subprocess.run(job, env={**os.environ, **array}, check=True)
"""
"""As Slurm's: runs the jobs of an array, one after the other."""


def test_the_commands_of_the_guide_that_need_a_cluster_run(
    place: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    distributed = pytest.importorskip("distributed", reason="belongs to the extra [dask]")
    root = EXAMPLES.parents[1]
    batch, dask = re.findall(r"```sh\n(.*?)\n```", (root / "docs" / "too-big.md").read_text())
    (tmp_path / "bin" / "sbatch").write_text(f"#!{sys.executable}\n{SBATCH}")
    (tmp_path / "bin" / "sbatch").chmod(0o755)
    command = batch.replace("--array=1-200 ", "--array=1-2 ").replace(" PLAN", f" {place}")
    subprocess.run(command, shell=True, env=environment, cwd=root, check=True)
    assert tessarr.plan.load(place).finish().finished
    assert_carried_out(tmp_path)
    tessarr.plan.digest(tmp_path / "series.zarr").save(tmp_path / "DIGEST")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", protocol="tcp"
    ) as cluster:
        command = dask.replace("tcp://scheduler:8786", cluster.scheduler_address)
        subprocess.run(command, shell=True, env=environment, cwd=tmp_path, check=True)
    found = tessarr.plan.load(tmp_path / "DIGEST")
    assert found.status().finished
    assert found.result() == tessarr.tools.digest.digest(tessarr.open_array(tmp_path / "series.zarr"))


@pytest.mark.parametrize("package", ["ray", "lithops"])
def test_an_executor_of_a_few_lines_carries_a_plan_out(
    package: str, place: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip(package, reason="it belongs to no extra: tested where it is installed")
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{package}_executor.py"), str(place)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "finished=True" in ran.stdout
    assert_carried_out(tmp_path)
