"""The log of the campaigns: ``campaigns/log.jsonl``, one line per run, committed; and the table of it in ``docs/campaigns.md``.

A line is ``{"campaign", "commit", "time", "seconds", "from", "to", "figures", "findings"}``: the run did the numbers (seeds,
or places in a list of cases) from ``from`` to ``to``, without ``to``, so that the next run goes on at ``to``. A run that is
under way replaces its line after every slice, so that a run that is killed loses a slice and no more.

A commit with ``+`` behind it: files differed from it. With ``~``: the commit that ran is not in the history, because it
was squashed or rebased; the one that is named has its changes.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "campaigns" / "log.jsonl"
PAGE = ROOT / "docs" / "campaigns.md"
BEGIN, END = "<!-- campaigns: the table begins here -->\n", "<!-- campaigns: the table ends here -->\n"

Line = dict[str, Any]


def read(file: Path = LOG) -> list[Line]:
    """Read the lines of the log, the oldest first."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def position(campaign: str, lines: Iterable[Line]) -> int:
    """Where the next run of a campaign begins: where those end that follow each other from the first number on.

    A run that began farther (``--begin``) is skipped when it is reached.
    """
    spans = sorted((line["from"], line["to"]) for line in lines if line["campaign"] == campaign)
    at = spans[0][0] if spans else 0
    for begin, end in spans:
        at = max(at, end) if begin <= at else at
    return at


def commit() -> str:
    """The commit that runs; with a + when files differ from it."""
    told = [
        subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False).stdout
        for arguments in (
            ["rev-parse", "--short=10", "HEAD"],
            ["status", "--porcelain", "--untracked-files=no", "src", "tests", "scripts"],
        )
    ]
    return told[0].strip() + ("+" if told[1] else "")


@dataclass
class Entry:
    """The line of one run, which grows with the run."""

    campaign: str
    begin: int
    file: Path = LOG
    commit: str = field(default_factory=commit)
    figures: dict[str, int] = field(default_factory=dict)
    findings: int = 0
    _at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    _began: float = field(default_factory=time.monotonic)

    def add(self, to: int, figures: Mapping[str, int], findings: int) -> None:
        """Add a slice that went on to the number `to`, and write the line."""
        for name, figure in figures.items():
            self.figures[name] = self.figures.get(name, 0) + figure
        self.findings += findings
        mine = {
            "campaign": self.campaign,
            "commit": self.commit,
            "time": self._at,
            "seconds": round(time.monotonic() - self._began),
            "from": self.begin,
            "to": to,
            "figures": self.figures,
            "findings": self.findings,
        }
        others = [line for line in read(self.file) if (line["campaign"], line["time"]) != (self.campaign, self._at)]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.file.with_suffix(".new")
        temporary.write_text("".join(json.dumps(line) + "\n" for line in [*others, mine]))
        temporary.replace(self.file)


def table(lines: Iterable[Line]) -> str:
    """The sums over all runs of each campaign, in Markdown."""
    rows: dict[str, list[Line]] = {}
    for line in lines:
        rows.setdefault(line["campaign"], []).append(line)
    told = ["| campaign | runs | last commit | hours | figures | findings |", "|---|--:|---|--:|---|--:|"]
    for name, runs in sorted(rows.items()):
        figures: dict[str, int] = {}
        for run in runs:
            for key, figure in run["figures"].items():
                figures[key] = figures.get(key, 0) + figure
        said = ", ".join(f"{figure:,} {key}" for key, figure in figures.items())
        hours = sum(run["seconds"] for run in runs) / 3600
        found = sum(run["findings"] for run in runs)
        told.append(f"| `{name}` | {len(runs)} | {runs[-1]['commit']} | {hours:.1f} | {said} | {found} |")
    return "\n".join(told) + "\n"


def write_page(page: Path = PAGE, lines: Iterable[Line] | None = None) -> None:
    """Put the table into the page."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{table(read() if lines is None else lines)}\n{END}{after}")
