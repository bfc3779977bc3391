"""Run a campaign: a search for lost and wrong bytes that goes on for as long as it is given, and remembers where it was.

    python scripts/campaign.py --list
    python scripts/campaign.py NAME [--seconds 600] [--jobs 2] [--log FILE] [--begin NUMBER]
    python scripts/campaign.py NAME --repeat NUMBER
    python scripts/campaign.py --page

A campaign is a module of ``scripts/campaigns`` with ``SUMMARY``, ``slices(begin, seconds)`` (an iterator of `Slice`) and
``repeat(number)``. Where numbers are independent of each other (`jobs.BLOCKS`), ``--jobs`` processes share them. Each run
goes on where the log says that the one before stopped, prints its figures, and adds a line to ``campaigns/log.jsonl``, which
``docs/campaigns.md`` quotes (``--page``, and the end of each run). Findings are printed, with the number that repeats them;
the exit status is then 1. The short forms are tests: ``tests/simulation``, ``tests/campaigns``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from campaigns import jobs, log  # noqa: E402

NAMES = (
    "pairs",
    "stalls",
    "simulate",
    "triples",
    "bulk",
    "faults",
    "interrupts",
    "power",
    "scarce",
    "append",
    "histories",
    "local_histories",
    "s3_histories",
    "plan",
    "differential",
    "stateful",
    "schedules",
    "sanitizers",
    "mutation",
)


def campaign(name: str) -> Any:
    """The module of a campaign."""
    return importlib.import_module(f"campaigns.{name}")


def run(name: str, seconds: float, file: Path, processes: int = 1, begin: int | None = None) -> int:
    """Run a campaign for `seconds` from where its log stopped, or from `begin`; returns the number of findings."""
    begin = log.position(name, log.read(file)) if begin is None else begin
    entry = log.Entry(name, begin, file)
    at = begin
    is_shared = processes > 1 and name in jobs.BLOCKS
    for part in jobs.shared(name, begin, seconds, processes) if is_shared else campaign(name).slices(begin, seconds):
        for finding in part.findings:
            print(f"{name}: FINDING {finding}", flush=True)
        at = part.to
        entry.add(at, part.figures, len(part.findings))
    told = ", ".join(f"{figure:,} {key}" for key, figure in entry.figures.items())
    print(f"{name}: {begin:,} to {at:,}: {told}, {entry.findings} findings")
    if file == log.LOG:
        log.write_page()
    return entry.findings


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=1, help="processes, where numbers are independent of each other")
    parser.add_argument("--begin", type=int, help="the number to begin with, in place of where the log stopped")
    parser.add_argument("--log", type=Path, default=log.LOG)
    parser.add_argument("--repeat", type=int, help="do one number again, and say what came of it")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--page", action="store_true", help="put the table of the log into docs/campaigns.md")
    options = parser.parse_args(arguments)
    if options.page:
        log.write_page()
        return 0
    if options.list or options.name is None:
        for name in NAMES:
            print(f"{name:<16}{campaign(name).SUMMARY}")
        return 0
    if options.repeat is not None:
        found = campaign(options.name).repeat(options.repeat)
        print(found or "nothing is wrong")
        return int(found is not None)
    return int(run(options.name, options.seconds, options.log, options.jobs, options.begin) > 0)


if __name__ == "__main__":
    sys.exit(main())
