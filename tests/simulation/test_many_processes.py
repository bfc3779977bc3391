"""The short form of `scripts/campaigns/append.py`: real processes, local files and a real S3 server."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tessarr

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "campaigns" / "append.py"


@pytest.fixture(scope="module")
def campaign() -> ModuleType:
    spec = importlib.util.spec_from_file_location("append_campaign", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("store", "batch"), [("local", 0), ("s3", 0), ("s3", 10)])
def test_no_append_of_several_processes_is_lost_doubled_or_half(
    campaign: Any, store: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(tessarr.__file__).parents[1]))
    with campaign.started(store) as (place, options):
        report = campaign.measure(place, options, 4, 12, batch)
    assert report.is_whole, report
    assert report.appended == 48


def test_a_process_that_fails_hands_over_its_output_and_its_traceback(campaign: Any) -> None:
    def command(body: str) -> list[str]:
        return [sys.executable, "-c", f"import sys; print('ready', flush=True); sys.stdin.read(); {body}"]

    assert campaign.run_workers([command("")]) >= 0
    with pytest.raises(campaign.WorkersFailedError) as caught:
        campaign.run_workers([command("print('halfway'); raise ValueError('no bucket')"), command("")])
    text = str(caught.value)
    assert text.startswith("1 of 2 processes failed\n-- writer 0, exit status 1:\n")
    assert "halfway" in text
    assert "Traceback (most recent call last)" in text
    assert "ValueError: no bucket" in text


def test_the_judge_finds_what_is_wrong(campaign: Any) -> None:
    first, second = campaign.rows_of(0, 0), campaign.rows_of(0, 1)
    assert len(second) > 1

    def judged(*blocks: Any) -> tuple[int, int, int, int]:
        report = campaign.judge(np.concatenate(blocks), 1, 2, 1.0)
        return report.lost, report.doubled, report.half, report.foreign

    assert judged(first, second) == judged(second, first) == (0, 0, 0, 0)
    assert judged(first) == (1, 0, 0, 0)
    assert judged(first, second, first) == (0, 1, 0, 0)
    assert judged(first, second[:-1])[0] == 1
    assert judged(first, second[:-1])[2] > 0
    assert judged(first, second, np.zeros((2, 4), "i4")) == (0, 0, 0, 2)
