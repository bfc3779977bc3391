"""Run the Rust code under Miri and ThreadSanitizer, which find undefined behaviour and data races.

1. `rust/tests/soundness.rs` under Miri: copies between memory layouts, plans, chunks and shards, codecs in Rust.
2. The scenarios of `rust/schedules` (pool, chunk jobs, cache) with the threads, locks and atomics of the standard
library, under
   Miri, which chooses the order of threads by a seed and lets weak atomics read old values.
3. The same scenarios, many times, in real threads under ThreadSanitizer.

A number is one of these and a seed. Needs a nightly toolchain with miri and rust-src: ``rustup toolchain install
nightly -c miri -c rust-src``.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from campaigns import schedules
from campaigns.slices import Slice, repeated, timed

SUMMARY = "pure modules and threads of the native engine under Miri, its threads under ThreadSanitizer"
ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "build").absolute() / "sanitizers"
TARGET = "x86_64-unknown-linux-gnu"
TIMES = 5000
"""How often a scenario is repeated under ThreadSanitizer."""
# Memory of the process is not given back at its end, and threads of the pool are still there.
MIRI = "-Zmiri-ignore-leaks -Zmiri-permissive-provenance"
CRATE = ["--manifest-path", str(schedules.CRATE / "Cargo.toml"), "--locked", "--no-default-features"]


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do numbers from `begin` on, for so long."""
    yield from timed(begin, seconds, _do)


def repeat(number: int) -> str | None:
    """Do one number again."""
    return repeated(number, _do)


def _do(number: int, part: Slice) -> None:
    scenarios = _scenarios()
    seed, at = divmod(number, 1 + 2 * len(scenarios))
    if at == 0:
        part.count("tests under Miri", 1)
        ran = _pure(seed)
    elif at <= len(scenarios):
        part.count("threads under Miri", 1)
        ran = _threads(scenarios[at - 1], seed)
    else:
        part.count("runs under ThreadSanitizer", TIMES)
        ran = _races(scenarios[at - 1 - len(scenarios)])
    if ran.returncode:
        part.find(number, (ran.stdout + ran.stderr)[-3000:])


@cache
def _scenarios() -> tuple[str, ...]:
    """The names of the scenarios, by the program with threads of the system."""
    command = [str(_program())]
    return tuple(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def _run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def _pure(seed: int) -> subprocess.CompletedProcess[str]:
    manifest = ["--manifest-path", str(ROOT / "rust" / "Cargo.toml"), "--locked", "--target-dir", str(BUILT / "miri")]
    command = ["cargo", "+nightly", "miri", "test", "--quiet", *manifest, "--test", "soundness"]
    return _run(command, MIRIFLAGS=f"{MIRI} -Zmiri-seed={seed}")


def _threads(scenario: str, seed: int) -> subprocess.CompletedProcess[str]:
    command = ["cargo", "+nightly", "miri", "run", "--quiet", *CRATE, "--target-dir", str(BUILT / "threads")]
    return _run([*command, "--", scenario, "0", "1"], MIRIFLAGS=f"{MIRI} -Zmiri-seed={seed}")


def _races(scenario: str) -> subprocess.CompletedProcess[str]:
    return _run([str(_program()), scenario, "0", str(TIMES)], TSAN_OPTIONS="halt_on_error=1")


@cache
def _program() -> Path:
    """Build the scenarios for ThreadSanitizer, with a standard library that it sees too, and return the path."""
    folder = BUILT / "races"
    command = ["cargo", "+nightly", "build", "--quiet", "--release", *CRATE, "--target-dir", str(folder)]
    environment = {**os.environ, "RUSTFLAGS": "-Zsanitizer=thread"}
    subprocess.run([*command, "-Zbuild-std", "--target", TARGET], check=True, env=environment)
    return folder / TARGET / "release" / "tessarr-schedules"
