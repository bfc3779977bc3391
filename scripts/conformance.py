"""List which requirements of the specifications have a passing test, which fail, and which no test covers.

    python scripts/conformance.py                      # every requirement
    python scripts/conformance.py N5 REG OGC-01..05    # families: an id, a prefix of ids, or a range
    python scripts/conformance.py --list V3-SHARD      # what they say, without running anything

Exits 0 only when every requirement asked for has a passing test and no failing one. A skipped test shows nothing.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "tests" / "conformance" / "requirements.csv"


def requirements() -> dict[str, dict[str, str]]:
    """Read the requirements by id, in the order of the file."""
    with REQUIREMENTS.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def selected(names: list[str], families: list[str]) -> list[str]:
    """Return the ids of `names` in `families`; all without a family. Raises SystemExit for a family that names none."""
    chosen: set[str] = set() if families else {*names}
    for family in families:
        span = re.fullmatch(r"([A-Z0-9-]+-)(\d+)\.\.(?:[A-Z0-9-]+-)?(\d+)", family)
        if span:
            inside = range(int(span[2]), int(span[3]) + 1)
            found = {n for n in names if n.rpartition("-")[0] + "-" == span[1] and int(n.rpartition("-")[2]) in inside}
        else:
            found = {n for n in names if n == family or n.startswith(family.rstrip("-") + "-")}
        if not found:
            raise SystemExit(
                f"error: no requirement is called {family}; families are prefixes of the ids in {REQUIREMENTS}"
            )
        chosen |= found
    return [name for name in names if name in chosen]


def verdict(outcomes: dict[str, str]) -> str:
    """Summarize the outcomes of the tests of one requirement in one word."""
    if any(outcome == "failed" for outcome in outcomes.values()):
        return "failing"
    return "passing" if "passed" in outcomes.values() else "not covered"


def run_tests(names: list[str], jobs: int) -> dict[str, dict[str, dict[str, str]]]:
    """Run the tests marked with `names`; return their outcomes by id, and the errors of collection."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "tests"]
        command += ["--spec-only", ",".join(names), "--spec-report", str(report), "-n", str(jobs)]
        status = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
        if not report.exists():
            raise SystemExit(f"error: pytest ended with {status} and wrote no report")
        outcomes: dict[str, dict[str, dict[str, str]]] = json.loads(report.read_text(encoding="utf-8"))
        if status not in (0, 1, 5) and not outcomes["broken"]:
            raise SystemExit(f"error: pytest ended with {status}; the outcomes are not complete")
        return outcomes


def print_table(names: list[str], rows: dict[str, dict[str, str]], words: dict[str, str]) -> None:
    """Print one line per requirement that is not passing, then the counts per section."""
    for name in names:
        if words[name] != "passing":
            print(f"{words[name]:<12} {name:<12} {rows[name]['level']:<8} {rows[name]['requirement'][:110]}")
    print(f"\n{'section':<60} {'passing':>8} {'failing':>8} {'not covered':>12}")
    for section in dict.fromkeys(rows[name]["section"] for name in names):
        found = [words[name] for name in names if rows[name]["section"] == section]
        counts = [found.count(word) for word in ("passing", "failing", "not covered")]
        print(f"{section[:60]:<60} {counts[0]:>8} {counts[1]:>8} {counts[2]:>12}")
    counts = [list(words.values()).count(word) for word in ("passing", "failing", "not covered")]
    print(f"{'total ' + str(len(names)):<60} {counts[0]:>8} {counts[1]:>8} {counts[2]:>12}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the requirements and run nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the verdicts there")
    options = parser.parse_args()
    rows = requirements()
    names = selected(list(rows), options.families)
    if options.list:
        for name in names:
            print(f"{name:<12} {rows[name]['level']:<8} {rows[name]['requirement']}")
        return 0
    report = run_tests(names, options.jobs)
    words = {name: verdict(report["ids"].get(name, {})) for name in names}
    print_table(names, rows, words)
    if options.json:
        options.json.write_text(json.dumps(words, indent=1) + "\n", encoding="utf-8")
    for broken in report["broken"]:
        print(f"could not be collected: {broken}")
    return int(bool(report["broken"]) or any(word != "passing" for word in words.values()))


if __name__ == "__main__":
    sys.exit(main())
