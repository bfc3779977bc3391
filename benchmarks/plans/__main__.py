"""Measure rows P1 to P11 and P4L, and print a table: time, memory of processes, objects.

    python benchmarks/plans [--rows P1 P3] [--peers tessarr "dask p2p"] [--rounds 3] [--patience 600]
    BENCH_SCALE=small python benchmarks/plans        # quick, to see that it works

`make bench ROWS="P1 P3"` does the same. Each peer has a process of its own, one after the other, round by round; each result is
compared with the source. Peers live in `.bench/main`, `.bench/plans` and `.bench/rechunker`, which are made where they are
missing. Memory is that of the largest process, and of all together. The table is written to `benchmarks/results`. A wrong value
is the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent)]

from layouts import BENCH, SCALE  # noqa: E402
from setup_env import make, pip  # noqa: E402

from plans.child import NOT_INSTALLED  # noqa: E402
from plans.row import Row  # noqa: E402
from plans.rows import ROWS  # noqa: E402
from plans.watch import watched  # noqa: E402

PACKAGES = (
    "zarr>=3.1", "dask[array,distributed]", "xarray", "tensorstore", "cubed", "ngff-zarr[dask-image,itk]", "ome-zarr>=0.12",
    "netCDF4", "cfgrib", "eccodes", "icechunk", "s5cmd",
)  # fmt: skip
FOR_TESSARR = ("dask[array,distributed]", "netCDF4", "h5py", "eccodes", "cfgrib", "icechunk")
FOR_RECHUNKER = ("rechunker", "zarr<3", "numcodecs<0.16", "dask[array]")


class Cell(NamedTuple):
    """What came of a peer in a row."""

    rounds: list[dict[str, float]]
    note: str = ""

    def of(self, figure: str) -> float | None:
        """Return the median of a figure."""
        values = [one[figure] for one in self.rounds if figure in one]
        return median(values) if values else None


def environments() -> None:
    """Make the environments of the peers; what cannot be installed is left out."""
    for name, packages in (("plans", PACKAGES), ("rechunker", FOR_RECHUNKER)):
        if make(BENCH / name, str(BENCH / "main" / "bin" / "python")):
            for package in packages if name == "plans" else (" ".join(packages),):
                pip(BENCH / name, *package.split(" "), required=False)
    stamp = BENCH / "main" / ".plans"
    if not stamp.exists():
        for package in FOR_TESSARR:
            pip(BENCH / "main", package, required=False)
        stamp.touch()


def python_of(peer: str) -> Path:
    """Return the interpreter of a peer."""
    name = "main" if peer.startswith("tessarr") else "rechunker" if peer == "rechunker" else "plans"
    return BENCH / name / "bin" / "python"


def once(name: str, row: Row, peer: str, source: Path, folder: Path, patience_s: float) -> dict[str, float] | str:
    """Let a peer do the work once; return its figures, or why there are none."""
    folder.mkdir(parents=True)
    target = folder / "target"
    command = [str(python_of(peer)), "-m", "plans.child", name, peer, str(source), str(target)]
    around = row.around(folder / "server") if row.around is not None else nullcontext({})
    with around as variables:
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent), **variables}
        ended = watched(command, environment=environment, cwd=folder, patience_s=patience_s)
    if ended.status is None:
        return f"stopped after {patience_s:.0f} s"
    if ended.status:
        told = next((line for line in reversed(ended.error.splitlines()) if line.strip()), "")[:160]
        return f"not installed: {told}" if ended.status == NOT_INSTALLED else f"failed ({ended.status}): {told}"
    try:
        row.check(source, target, peer)
    except Exception as error:
        return f"wrong: {type(error).__name__}: {error}"[:160]
    figures: dict[str, float] = json.loads(ended.output.splitlines()[-1])
    objects = sum(path.is_file() for path in target.rglob("*")) if target.is_dir() else 0
    memory = {"largest process MB": ended.largest_process, "all processes MB": ended.together}
    return {**figures, **memory, **({"objects": objects} if objects else {})}


def measure(name: str, peers: list[str], rounds: int, patience_s: float) -> dict[str, Cell]:
    """Measure a row, round by round; a peer that fails is not asked again."""
    row = ROWS[name]
    folder = BENCH / "scratch-plans" / str(os.getpid())  # that of other rows is emptied at their end
    cells = {peer: Cell([]) for peer in peers if peer in row.jobs}
    try:
        folder.mkdir(parents=True)
        source = folder / "source"
        row.make(source)
        for number in range(rounds):
            for peer in [peer for peer, cell in cells.items() if not cell.note]:
                found = once(name, row, peer, source, folder / f"{number}-{peer.replace(' ', '-')}", patience_s)
                shutil.rmtree(folder / f"{number}-{peer.replace(' ', '-')}", ignore_errors=True)
                if isinstance(found, str):
                    cells[peer] = Cell(cells[peer].rounds, found)
                else:
                    cells[peer].rounds.append(found)
                print(f"  {name} {peer}: {_shown(found)}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return cells


def _shown(found: dict[str, float] | str) -> str:
    return found if isinstance(found, str) else ", ".join(f"{key} {value:,.4g}" for key, value in found.items())


def table(results: dict[str, dict[str, Cell]]) -> str:
    """Return the results as Markdown."""
    lines = [f"{platform.platform()}, {os.cpu_count()} processors, scale {SCALE}. Medians; ratios are to tessarr.", ""]
    for name, cells in results.items():
        limit = f", at most {ROWS[name].limit / 1e9:g} GB" if ROWS[name].limit else ""
        lines += [f"## {name}: {ROWS[name].title}{limit}", ""]
        figures = list(dict.fromkeys(key for cell in cells.values() for one in cell.rounds for key in one))
        lines += ["| peer | ratio | " + " | ".join(figures) + " | |", "|" + "---|" * (len(figures) + 3)]
        own = next(iter(cells.values())).of("seconds")
        for peer, cell in cells.items():
            seconds = cell.of("seconds")
            ratio = f"{seconds / own:.2f}" if seconds and own else ""
            values = ["" if (value := cell.of(key)) is None else f"{value:,.4g}" for key in figures]
            lines.append(f"| {peer} | {ratio} | {' | '.join(values)} | {cell.note} |")
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    every: list[Any] = list(dict.fromkeys(peer for row in ROWS.values() for peer in row.jobs))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS), metavar="ROW")
    parser.add_argument("--peers", nargs="*", default=every, choices=every, metavar="PEER")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds after which a peer is stopped")
    parser.add_argument("--name", default=time.strftime("%Y-%m-%d"), help="of the file in benchmarks/results")
    options = parser.parse_args(arguments)
    environments()
    results: dict[str, dict[str, Cell]] = {}
    for name in options.rows:
        print(f"{name}: {ROWS[name].title}", flush=True)
        try:
            results[name] = measure(name, options.peers, options.rounds, options.patience)
        except ImportError as error:
            print(f"  {name} left out: {error}")
    out = HERE.parent / "results" / f"{options.name}-plans-{SCALE}.md"
    out.write_text(table(results))
    print(f"written: {out.relative_to(ROOT)}")
    return int(any(cell.note.startswith("wrong") for cells in results.values() for cell in cells.values()))


if __name__ == "__main__":
    sys.exit(main())
