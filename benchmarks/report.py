"""Format the measurements as a Markdown table and an SVG plot."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Protocol

from task import ROWS, Row

SCALES = {"ms": 1e3, "µs": 1e6, "1/s": 1.0, "MiB": 1.0, "requests": 1.0}
COLOURS = ("#d55e00", "#e69f00", "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#999999", "#000000", "#882255")


class Measured(Protocol):
    """Hold the displayed values of a cell."""

    figures: list[float]
    note: str

    @property
    def median(self) -> float | None: ...


Cells = Mapping[str, Measured]
Results = Mapping[tuple[str, str], Cells]


NO_PEERS = {"limit", "zarr-pipeline", "zarr-patched"}
"""What tessarr is not compared with: no library, and tessarr itself."""


def shown(row: Row, cell: Measured | None) -> str:
    """Format a number in the row's unit, with three digits."""
    if cell is None or cell.median is None:
        return "wrong" if cell is not None and cell.note.startswith("wrong") else "–"
    value = cell.median * SCALES[row.unit]
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ours(cells: Cells) -> str:
    """Return the column of tessarr."""
    return "tessarr" if "tessarr" in cells else "tessarr-reference"


def ratio(row: Row, cells: Cells) -> float | None:
    """Return the best peer's value over tessarr's; ``None`` if either is missing."""
    own = cells[ours(cells)].median if ours(cells) in cells else None
    others = [
        c.median for n, c in cells.items() if c.median is not None and not n.startswith("tessarr") and n not in NO_PEERS
    ]
    if own is None or not others or own <= 0 or min(others) <= 0:
        return None
    return own / max(others) if row.larger_is_better else min(others) / own


NOISE = 1.05
"""A row is slower than before when its median and its best figure both are, by more than this factor."""


def slower(results: Results) -> str:
    """List the rows in which tessarr is slower than at the earlier commit."""
    found = []
    for (name, variant), cells in results.items():
        now, before = cells.get("tessarr"), cells.get("old")
        if now is None or before is None or not now.median or not before.median:
            continue
        if ROWS[name].larger_is_better:
            losses = before.median / now.median, max(before.figures) / max(now.figures)
        else:
            losses = now.median / before.median, min(now.figures) / min(before.figures)
        if min(losses) > NOISE:
            found.append(f"  {name} {variant}: {losses[0]:.2f} by the median, {losses[1]:.2f} by the best figure")
    return "\n".join([f"slower than before by more than {NOISE - 1:.0%}: {len(found)} of {len(results)} rows", *found])


def over_limit(cells: Cells) -> float | None:
    """Return tessarr's time over the limit's."""
    own = cells[ours(cells)].median if ours(cells) in cells else None
    limit = cells["limit"].median if "limit" in cells else None
    return own / limit if own and limit else None


def line(row: Row, cells: Cells) -> str:
    """Format one variant for the terminal."""
    parts = [f"{name} {shown(row, cell)}" for name, cell in cells.items() if cell.median is not None]
    times = ratio(row, cells)
    return f"    {row.unit}: " + " · ".join(parts) + (f"   → {times:.2f}× the best peer" if times else "")


def machine() -> str:
    """Describe the machine, without its name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"


def table(results: Results, versions: Mapping[str, str]) -> str:
    """Format the Markdown page."""
    names = list(versions)
    lines = [
        "# Benchmark",
        "",
        f"{machine()}. Medians of interleaved runs; every value was checked before it was timed.",
        "Nothing is fsynced unless the row says so. `×` is the best other implementation over tessarr (more is",
        "better), `/limit` is tessarr over the limit (pread + memcpy, or the codec's library on all cores + memcpy; one chunk",
        "per call: open, pread and the codec's library; writes: the codec's library and new files). Variants in memory write",
        "to a file system without a disk.",
        "",
        *(f"- **{name}**: {version}" for name, version in versions.items()),
        "",
        "| row | variant | unit | " + " | ".join(names) + " | × | bar | /limit |",
        "|" + "---|" * 3 + "---:|" * (len(names) + 3),
    ]
    for (name, variant), cells in results.items():
        row, times, limit = ROWS[name], ratio(ROWS[name], cells), over_limit(cells)
        figures = " | ".join(shown(row, cells.get(peer)) for peer in names)
        lines.append(
            f"| {name} {row.title} | {variant} | {row.unit} | {figures} | {f'{times:.2f}' if times else '–'} | "
            f"{row.bar or '–'} | {f'{limit:.2f}' if limit else '–'} |"
        )
    return "\n".join(lines) + "\n"


def plot(results: Results, versions: Mapping[str, str]) -> str:
    """Plot every peer's time over tessarr's, a line per variant, logarithmic; right of 1 is slower than tessarr."""
    left, width, step, top = 260, 640, 18, 60
    drawn = [(key, cells) for key, cells in results.items() if ours(cells) in cells and cells[ours(cells)].median]
    low, high = -1.0, 2.0

    def x(times: float) -> float:
        return left + width * (min(max(math.log10(times), low), high) - low) / (high - low)

    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(versions)}
    height = top + step * len(drawn) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 20}" height="{height}" font-size="11">',
        "<style>text { font-family: sans-serif }</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="10" y="18" font-size="14">Time relative to tessarr (1 = tessarr; right is slower)</text>',
    ]
    for number, (name, colour) in enumerate(colours.items()):
        parts.append(f'<circle cx="{15 + 105 * number}" cy="34" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{23 + 105 * number}" y="38">{escape(name)}</text>')
    for times in (0.1, 0.3, 1, 3, 10, 30, 100):
        grey = "#000" if times == 1 else "#ddd"
        parts.append(
            f'<line x1="{x(times):.1f}" x2="{x(times):.1f}" y1="{top - 8}" y2="{height - 22}" stroke="{grey}"/>'
        )
        parts.append(f'<text x="{x(times):.1f}" y="{height - 8}" text-anchor="middle">{times:g}×</text>')
    for number, ((name, variant), cells) in enumerate(drawn):
        y = top + step * number + 6
        own = cells[ours(cells)].median or 1.0
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(f"{name} {variant}")}</text>')
        for peer, cell in cells.items():
            if cell.median:
                times = own / cell.median if ROWS[name].larger_is_better else cell.median / own
                title = f"{peer}: {shown(ROWS[name], cell)} {ROWS[name].unit}"
                parts.append(
                    f'<circle cx="{x(times):.1f}" cy="{y}" r="4" fill="{colours[peer]}" fill-opacity="0.85">'
                    f"<title>{escape(title)}</title></circle>"
                )
    return "\n".join([*parts, "</svg>"]) + "\n"


def write(folder: Path, name: str, results: Results, versions: Mapping[str, str]) -> list[Path]:
    """Write page and plot; return their paths."""
    folder.mkdir(exist_ok=True)
    page, picture = folder / f"{name}.md", folder / f"{name}.svg"
    page.write_text(table(results, versions), encoding="utf-8")
    picture.write_text(plot(results, versions), encoding="utf-8")
    return [page, picture]
