"""The short form of `scripts/campaigns/schedules.py`: few orders, and whether a defect is found."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from campaigns import schedules  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no Rust toolchain")


def test_threads_do_their_work_in_every_order() -> None:
    # Both ways of choosing threads, each with waits that time out and without.
    seeds = (0, 2, 5, 7)
    found = [schedules.wrong(name, seed, 100) for name in schedules.scenarios() for seed in seeds]
    assert [one for one in found if one] == []
    assert len(found) >= 44


@pytest.mark.parametrize("seed", [0, 5])
def test_a_thread_that_waits_forever_is_found(seed: int) -> None:
    assert "deadlock" in str(schedules.wrong("never-notified", seed, 1000))
