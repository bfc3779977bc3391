"""Fuzz every decoder, the shard parser, documents, archives and whole arrays.

    python scripts/fuzz.py --list
    python scripts/fuzz.py [TARGET ...] [--seconds 1800] [--jobs 2] [--seed N] [--out build/fuzz]
    python scripts/fuzz.py TARGET --input FILE
    python scripts/fuzz.py --table [--commit COMMIT]
    python scripts/fuzz.py [TARGET ...] --coverage

Every input must give values or a typed error, promptly and in bounded memory.

Targets of the native engine (``native-…``, rust/fuzz) run under libFuzzer, guided by coverage, with AddressSanitizer in
Rust and C; where that cannot be built, under the plain mutator of rust/tests/fuzz.rs. Targets in Python
(scripts/fuzz_targets.py) damage valid data and keep inputs that reach a new place. Every target has members, each of
them one decoder, parser or chain; the beginning of an input chooses the member, and members share the target's time.

The seconds of a target are processor time: a busy or paused machine takes longer, but tests as much. Each target
leaves in the output folder ``TARGET.json`` (every run: commit, seed, seconds, executions, those of each member,
findings), ``corpus/`` (libFuzzer's, and the inputs to keep, ``TARGET.json``), and ``findings/TARGET-…``, inputs that
``--input`` repeats. ``--table`` prints the logs as a table, ``--coverage`` how much of the decoders the inputs reach that are
kept in tests/fixtures/fuzz. The exit status is 1 when there were findings.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fuzz_coverage
import fuzz_python
from fuzz_native import NATIVE, RUST, Native, native_names
from fuzz_process import ROOT

SLICE_S = 300
"""A target runs in slices of at most so long."""
MOST_FINDINGS = 10
ORDER = (
    *("native-codecs", "native-blosc", "native-chunk", "native-shard", "documents", "python-codecs"),
    *("native-description", "arrays", "archives", "pending", "written", "kept", "containers"),
)
"""By risk: what parses offsets and lengths from the data first."""


class Campaign:
    """Hold the options that all targets share."""

    def __init__(self, out: Path, seconds: float, seed: int) -> None:
        self.out, self.seconds, self.seed = out, seconds, seed
        self.native: Native | None = None
        self.commit = commit()

    def run(self, name: str) -> dict[str, Any]:
        """Run one target for its time, slice by slice, and write its log."""
        native = self.native if name.startswith(NATIVE) else None
        record: dict[str, Any] = {
            "target": name,
            "commit": self.commit,
            "engine": native.engine if native else "mutation",
            "sanitizer": native.sanitizer if native else None,
            "seed": self.seed,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "cpu_seconds": 0.0,
            "wall_seconds": 0.0,
            "executions": 0,
            "coverage": None,
            "members": {},
            "missing": {},
            "findings": [],
        }
        begin, number = time.monotonic(), 0
        while record["cpu_seconds"] < self.seconds and len(record["findings"]) < MOST_FINDINGS:
            left = min(SLICE_S, self.seconds - record["cpu_seconds"])
            if native is not None:
                cpu, told = native.slice(name, left, self.seed + number)
            else:
                cpu, told = fuzz_python.run_slice(name, left, self.seed + number, self.out)
            add(record, cpu, told)
            number += 1
            record["wall_seconds"] = round(time.monotonic() - begin, 1)
            self.log(name, record)
        if native is not None:
            native.keep(name)
        print(summary(record), flush=True)
        return record

    def log(self, name: str, record: dict[str, Any]) -> None:
        """Write the run to the target's log, replacing its earlier record."""
        file = self.out / f"{name}.json"
        runs = json.loads(file.read_text())["runs"] if file.exists() else []
        runs = [run for run in runs if run["started"] != record["started"]] + [record]
        content = {"target": name, **total(runs), "runs": runs}
        temporary = file.with_suffix(".new")
        temporary.write_text(json.dumps(content, indent=1) + "\n")
        temporary.replace(file)


def commit() -> str | None:
    """Return the fuzzed commit, with a + if files differ from it."""
    try:
        told = [
            subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout
            for arguments in (["rev-parse", "--short=10", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        ]
    except (OSError, subprocess.CalledProcessError):
        return None
    return told[0].strip() + ("+" if told[1] else "")


def add(record: dict[str, Any], cpu: float, told: dict[str, Any]) -> None:
    """Add the results of a slice to the record of a run."""
    record["cpu_seconds"] = round(record["cpu_seconds"] + max(cpu, 0.1), 1)
    record["executions"] += told["executions"]
    record["coverage"] = max(record["coverage"] or 0, told["coverage"] or 0) or None
    record["missing"] = told.get("missing", {})
    for name, (runs, seconds) in told["members"].items():
        before = record["members"].get(name, [0, 0.0])
        record["members"][name] = [before[0] + runs, round(before[1] + seconds, 2)]
    known = {(found["member"], found["finding"].split(": ", 1)[0]) for found in record["findings"]}
    for found in told["findings"]:
        if (found["member"], found["finding"].split(": ", 1)[0]) not in known or record["sanitizer"]:
            record["findings"].append(found)
            print(f"{record['target']}: {found}", flush=True)


def total(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum the seconds, executions and findings of several runs."""
    told = {key: round(sum(run[key] for run in runs), 1) for key in ("cpu_seconds", "executions")}
    return {**told, "findings": sum(len(run["findings"]) for run in runs)}


def summary(record: dict[str, Any]) -> str:
    """Summarize a run in one line."""
    found = f"{len(record['findings'])} FINDINGS" if record["findings"] else "clean"
    kind = record["engine"] + (f"+{record['sanitizer']}" if record["sanitizer"] else "")
    runs, seconds = record["executions"], record["cpu_seconds"]
    least = min(record["members"].items(), key=lambda item: item[1][0], default=("", [0, 0]))
    return (
        f"{record['target']:<20}{kind:<20}{seconds:>8.0f} s{runs:>14,} inputs  coverage {record['coverage']}  "
        f"{len(record['members'])} members, least {least[0]} {least[1][0]:,}"
        + (f", missing {', '.join(record['missing'])}" if record["missing"] else "")
        + f"  {found}"
    )


def table(out: Path, wanted: str | None) -> str:
    """Format the logs in Markdown; with a commit, only its runs."""
    lines = ["| target | members | commit | processor seconds | executions | findings |", "|---|--:|---|--:|--:|--:|"]
    for name in ORDER:
        file = out / f"{name}.json"
        runs = json.loads(file.read_text())["runs"] if file.exists() else []
        for key in dict.fromkeys(run["commit"] for run in runs if wanted in (None, run["commit"])):
            these = [run for run in runs if run["commit"] == key]
            told = total(these)
            numbers = f"{told['cpu_seconds']:,.0f} | {told['executions']:,} | {told['findings']}"
            lines.append(f"| {name} | {len(these[-1]['members'])} | {key} | {numbers} |")
    return "\n".join(lines)


def all_names() -> list[str]:
    """List every target, by risk."""
    from fuzz_targets import TARGETS

    native = native_names() if (RUST / "fuzz").exists() and shutil.which("cargo") else []
    return sorted([*native, *TARGETS], key=ORDER.index)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="names or patterns; all when none is given")
    parser.add_argument("--list", action="store_true", help="print the names of the targets")
    parser.add_argument("--table", action="store_true", help="print the logs as a table")
    parser.add_argument("--coverage", action="store_true", help="print what of the decoders the kept inputs reach")
    parser.add_argument("--commit", default=None, help="the only commit for the table")
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once")
    parser.add_argument("--seed", type=int, default=None, help="where randomness begins; printed when not given")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--input", type=Path, default=None, help="run this one input of a target")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    out = options.out.absolute()
    (out / "findings").mkdir(parents=True, exist_ok=True)
    seed = options.seed if options.seed is not None else int(time.time())
    if options.work:
        fuzz_python.work(options.targets[0], options.seconds, seed, out)
        return 0
    if options.table:
        print(table(out, options.commit))
        return 0
    names = all_names()
    wanted = options.targets or ["*"]
    chosen = [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)]
    unknown = [pattern for pattern in wanted if not fnmatch.filter(names, pattern)]
    if unknown:
        raise SystemExit(f"error: no target is called {', '.join(unknown)}; --list prints them")
    if options.list:
        print("\n".join(chosen))
        return 0
    return fuzz(Campaign(out, options.seconds, seed), chosen, options)


def fuzz(campaign: Campaign, chosen: list[str], options: argparse.Namespace) -> int:
    """Run one input of a target, or each target for its time; or its kept inputs, to see what they reach."""
    if any(name.startswith(NATIVE) for name in chosen):
        campaign.native = Native(campaign.out)
    if options.coverage:
        print(fuzz_coverage.report(campaign.native, chosen, campaign.out))
        return 0
    if options.input is not None:
        name, file = chosen[0], options.input.absolute()
        native = campaign.native if name.startswith(NATIVE) else None
        return native.repeat(name, file) if native else fuzz_python.repeat(name, file)
    seconds, seed = campaign.seconds, campaign.seed
    print(f"{len(chosen)} targets, {seconds:.0f} s of processor time each, seed {seed}, logs in {campaign.out}")
    sys.stdout.flush()
    with ThreadPoolExecutor(options.jobs) as pool:
        records = list(pool.map(campaign.run, chosen))
    findings = sum(len(record["findings"]) for record in records)
    print(f"{len(records)} targets, {sum(record['executions'] for record in records):,} inputs, {findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
