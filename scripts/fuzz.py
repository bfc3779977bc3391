"""Damages real data and reads it: tessarr must give values or a typed error, promptly and without crashing.

    python scripts/fuzz.py --seconds 60 [--seed N] [--source zarrs ...] [--no-rust]

Every array under tests/fixtures that is small enough is a target. A round copies it, damages one of its files
(flipped bits, cut, grown, numbers replaced in documents, values swapped between keys), opens it and reads it in a child
process with bounded memory and time. Findings are printed with the seed that repeats them; the exit status is 1 when
there are any.

Where there is a Rust toolchain, the decoders, the shard parser and the array descriptions of the native engine are then
fuzzed too (rust/tests/fuzz.rs), each for as many seconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

from fixtures import Case, cases

import tessarr
from tessarr.errors import TessarrError

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures"
RUST = FIXTURES.parent.parent / "rust"
LARGEST_TARGET = 2_000_000
MEMORY = 2 * 2**30
"""Address space beyond what the child holds when it starts."""
WITHIN_S = 10.0
DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs"}
NUMBERS = [
    *("0", "-1", "1", "2", "255", "4294967296", "9223372036854775807", "18446744073709551615", "1e308", "1.5"),
    *("null", "true", '"x"', "[]", "{}", "NaN"),
]


def damage_document(data: bytes, rng: random.Random) -> bytes:
    """Replace one number, string or bracket of a JSON document; the rest stays well-formed as often as not."""
    text = data.decode("utf-8", errors="replace")
    spots = list(re.finditer(r'-?\d+(\.\d+)?|"[^"]*"|null|true|false', text))
    if not spots or rng.random() < 0.1:
        return damage_bytes(data, rng)
    spot = rng.choice(spots)
    return (text[: spot.start()] + rng.choice(NUMBERS) + text[spot.end() :]).encode()


def damage_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, grow, repeat or overwrite; the ends, where headers and indices are, more often than the middle."""
    if not data:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 40)))
    edges = [rng.randrange(min(40, len(data))), len(data) - 1 - rng.randrange(min(40, len(data)))]
    at = rng.choice([*edges, rng.randrange(len(data))])
    kind = rng.randrange(6)
    if kind == 0:
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 64)))
    if kind == 3:
        return data[:at] + rng.choice([b"\xff", b"\x00", b"\x7f"]) * rng.choice([1, 4, 8]) + data[at + 8 :]
    if kind == 4:
        return data + data
    return b""


def damage(folder: Path, rng: random.Random) -> str:
    """Damage one file below `folder`; says which and how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    data = path.read_bytes()
    if path.name in DOCUMENTS:
        path.write_bytes(damage_document(data, rng))
        return f"document {path.relative_to(folder)}"
    if rng.random() < 0.1:
        path.write_bytes(rng.choice(files).read_bytes())
        return f"another value as {path.relative_to(folder)}"
    path.write_bytes(damage_bytes(data, rng))
    return f"bytes of {path.relative_to(folder)}"


def limit_memory() -> None:
    """Cap the address space where the system can."""
    try:
        import resource
    except ImportError:
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


def read_all(folder: str, channel: Connection) -> None:
    """In the child: open and read, and say what came of it. Large shapes are read in one corner only."""
    warnings.simplefilter("ignore")
    limit_memory()
    try:
        array = tessarr.open_array(folder, mode="r")
        array[tuple(slice(0, 4096 if array.ndim == 1 else 256 if array.ndim == 2 else 32) for _ in array.shape)]
        channel.send("values")
    except TessarrError as error:
        channel.send(f"typed {error.kind}")
    except BaseException as error:  # anything else is a finding
        channel.send(f"finding: {type(error).__name__}: {str(error)[:200]}")


def one_round(case: Case, seed: int, scratch: Path) -> str:
    """Damage a copy of the array and read it; gives what came of it."""
    rng = random.Random(seed)
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(case.source / case.entry["path"], scratch)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        what = damage(scratch, rng)
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=read_all, args=(str(scratch), theirs))
    child.start()
    theirs.close()
    said = ours.poll(WITHIN_S)
    try:
        outcome = str(ours.recv()) if said else f"finding: no answer within {WITHIN_S:.0f} s"
    except EOFError:
        child.join()
        outcome = f"finding: the process ended with {child.exitcode}"
    if child.is_alive() and not said:
        child.kill()
    child.join()
    return f"{outcome} ({what})" if outcome.startswith("finding") else outcome


def fuzz_rust(seconds: float) -> bool:
    """Run the targets of the native engine, one thread each; tells whether they held or could not be run here."""
    if shutil.which("cargo") is None or not (RUST / "Cargo.toml").exists():
        print("no cargo here: the native engine's own targets were not fuzzed")
        return True
    command = ["cargo", "test", "--release", "--test", "fuzz", "--", "--nocapture"]
    environment = {**os.environ, "FUZZ_SECONDS": str(max(1, round(seconds)))}
    return subprocess.run(command, cwd=RUST, env=environment, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="repeat one round")
    parser.add_argument("--source", nargs="*", default=None)
    parser.add_argument("--no-rust", action="store_true", help="leave out the native engine's own targets")
    options = parser.parse_args()
    targets = [
        case
        for case in cases(FIXTURES, options.source)
        if case.entry["expect"] == "values"
        and (folder := case.source / case.entry["path"]).is_dir()
        and sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < LARGEST_TARGET
    ]
    if not targets:
        raise SystemExit("error: no targets")
    counts: dict[str, int] = {}
    findings = []
    seed = options.seed if options.seed is not None else int(time.time() * 1000)
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        while True:
            case = targets[seed % len(targets)]
            outcome = one_round(case, seed, Path(folder) / "a.zarr")
            counts[outcome.partition(":")[0]] = counts.get(outcome.partition(":")[0], 0) + 1
            if outcome.startswith("finding"):
                findings.append(outcome)
                print(f"seed {seed} {case.name}: {outcome}", flush=True)
            if options.seed is not None or time.monotonic() > end:
                break
            seed += 1
    print(json.dumps(counts, indent=1, sort_keys=True))
    held = options.no_rust or options.seed is not None or fuzz_rust(options.seconds)
    return int(bool(findings) or not held)


if __name__ == "__main__":
    sys.exit(main())
