"""Draw the picture of the README from a table of `make bench`.

    python benchmarks/summary.py benchmarks/results/2026-11-28-full.md docs/images/compared.svg

Each bar is the time of one implementation over tessarr's for one row of the table: shorter is faster, the line is tessarr.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROWS = {
    ("R1 read all", "blosc64"): "read a whole array",
    ("R2 read all, shards", "shard-blosc32"): "read a whole sharded array",
    ("R3 one (inner) chunk per call", "shard-blosc32"): "read one chunk of a shard",
    ("R4 one element per call", "raw64 cached"): "read one element again",
    ("W1 write all", "blosc64"): "write a whole array",
    ("W2 small writes inside chunks", "blosc64"): "change a part of a chunk",
}
"""Row and variant of the table → what the picture calls it; rows that the table lacks are left out."""
PEERS = {
    "zarr-python": "#c44e52",
    "zarr-fused": "#dd8452",
    "tensorstore": "#4c72b0",
    "zarrs": "#8172b3",
    "zarrista": "#64797a",
}
LONGEST = 8.0
"""Bars end here; the number beside them says how long they are."""
STYLE = """<style>
text { font: 11px system-ui, sans-serif; fill: #57606a }
.row { font-size: 13px }
@media (prefers-color-scheme: dark) { text { fill: #adbac7 } }
</style>"""
BAR, GAP, LEFT, WIDTH = 13, 22, 190, 520


class Bar(NamedTuple):
    """The time of one peer for one row, over tessarr's."""

    peer: str
    ratio: float


def number(cell: str) -> float | None:
    """Parse a figure of the table; ``None`` where there is none."""
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def bars(table: str) -> dict[str, list[Bar]]:
    """Read the ratios of the rows that the picture shows out of a table."""
    lines = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line] for line in lines]
    header = next(line for line in cells if line[0] == "row")
    found: dict[str, list[Bar]] = {}
    for line in cells:
        title = ROWS.get((line[0], line[1]))
        own = number(line[header.index("tessarr")]) if title else None
        if title and own:
            times = {peer: number(line[header.index(peer)]) for peer in PEERS if peer in header}
            found[title] = [Bar(peer, time / own) for peer, time in times.items() if time]
    return found


def picture(rows: dict[str, list[Bar]], source: str) -> str:
    """Draw the bars as SVG, readable on light and dark pages."""
    parts: list[str] = []
    y = 40
    for title, entries in rows.items():
        middle = y + len(entries) * BAR / 2 + 4
        parts.append(f'<text x="{LEFT - 10}" y="{middle}" text-anchor="end" class="row">{escape(title)}</text>')
        for entry in entries:
            length = min(entry.ratio, LONGEST) / LONGEST * WIDTH
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 3}" fill="{PEERS[entry.peer]}"/>'
            )
            parts.append(f'<text x="{LEFT + length + 5:.1f}" y="{y + BAR - 4}">{entry.ratio:.1f} {entry.peer}</text>')
            y += BAR
        y += GAP
    one = LEFT + WIDTH / LONGEST
    parts.append(f'<line x1="{one:.1f}" x2="{one:.1f}" y1="30" y2="{y - GAP + 4}" stroke="#2a9d8f" stroke-width="2"/>')
    parts.append(f'<text x="{one:.1f}" y="22" text-anchor="middle" class="row">tessarr = 1</text>')
    parts.append(f'<text x="{LEFT}" y="{y + 4}">time over tessarr’s; longer is slower; {escape(source)}</text>')
    width, height = LEFT + WIDTH + 120, y + 16
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', STYLE, *parts, "</svg>"]) + "\n"


def main() -> int:
    """Draw the picture that the command line names."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    rows = bars(source.read_text(encoding="utf-8"))
    target.write_text(picture(rows, f"make bench, {source.stem}"), encoding="utf-8")
    print(f"{target}: {', '.join(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
