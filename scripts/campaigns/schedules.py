"""Run the threads of the native engine (pool, chunk jobs, cache) in orders that Shuttle chooses.

`rust/schedules` has the scenarios, and compiles the modules of the engine with Shuttle's locks. A number is a scenario and a
seed, of which `SCHEDULES` orders are run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from campaigns.slices import Slice, repeated, timed

SUMMARY = "threads of the native engine's pool, chunk jobs and cache, in orders that Shuttle chooses"
CRATE = Path(__file__).resolve().parents[2] / "rust" / "schedules"
SCHEDULES = 5000


@cache
def program() -> Path:
    """Build the program, where it is not the newest, and return its path. `cargo` must be there."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR") or CRATE / "target").absolute()
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", str(CRATE / "Cargo.toml")]
    subprocess.run([*command, "--target-dir", str(folder)], check=True)
    return folder / "release" / "tessarr-schedules"


@cache
def scenarios() -> tuple[str, ...]:
    """Return the names of the scenarios."""
    return tuple(subprocess.run([program()], check=True, capture_output=True, text=True).stdout.split())


def wrong(scenario: str, seed: int, schedules: int) -> str | None:
    """Run a scenario in so many orders. Returns what is wrong."""
    command = [str(program()), scenario, str(seed), str(schedules)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{scenario}, seed {seed}: {ran.stderr[-3000:]}" if ran.returncode else None


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Run numbers from `begin` on, for so long."""
    yield from timed(begin, seconds, partial(_do, SCHEDULES))


def repeat(number: int) -> str | None:
    """Run one number again."""
    return repeated(number, partial(_do, SCHEDULES))


def _do(schedules: int, number: int, part: Slice) -> None:
    seed, scenario = divmod(number, len(scenarios()))
    part.count("schedules", schedules)
    if found := wrong(scenarios()[scenario], seed, schedules):
        part.find(number, found)
