"""What of the decoders the kept inputs of the fuzz targets reach, for `scripts/fuzz.py --coverage`.

Of the native engine, functions and edges of control flow, as libFuzzer reports them (its SanitizerCoverage); of the Python
engine, lines, by the package coverage. Seeds count, because every run begins with them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import fuzz_python
from fuzz_native import NATIVE, Native
from fuzz_process import ROOT, ended

SOURCES = ("array.rs", "chain.rs", "codecs/", "decode.rs", "part.rs", "vlen.rs")
"""What parses or decodes what is stored, below rust/src."""
PACKAGES = ("codecs", "metadata")
"""The same, below src/tessarr."""
_FUNCTION = re.compile(r"(?:UN)?COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) .*/rust/src/(\S+?):(\d+)$", re.MULTILINE)


class Reached(NamedTuple):
    """How much of a source file was reached, and of how much: functions and edges, or lines."""

    functions: tuple[int, int]
    edges: tuple[int, int]


def native(engine: Native, names: Iterable[str]) -> dict[str, Reached]:
    """Run the kept inputs of native targets; return what they reach together, by source file.

    A generic function counts once, with the edges of that of its instances of which one target reaches most.
    """
    most: dict[tuple[str, str], tuple[int, int]] = {}
    for name in names:
        for covered, edges, file, line in _FUNCTION.findall(_report(engine, name)):
            found = (int(covered), int(edges))
            if file.startswith(SOURCES):
                most[file, line] = max(most.get((file, line), found), found)
    files = defaultdict(list)
    for (file, _), found in most.items():
        files[file].append(found)
    return {
        file: Reached(
            (sum(covered > 0 for covered, _ in all_), len(all_)),
            (sum(covered for covered, _ in all_), sum(edges for covered, edges in all_ if covered)),
        )
        for file, all_ in sorted(files.items())
    }


def _report(engine: Native, name: str) -> str:
    """Run the seeds and kept inputs of a target; return libFuzzer's report."""
    folder = engine.out / "kept" / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    command, environment = engine.command(name, 1, 1)
    environment |= {"FUZZ_SEEDS": str(folder)}
    # The first run writes the seeds, the second one finds them.
    for more in (["-runs=1"], ["-runs=0", "-print_coverage=1"]):
        ran = ended([command[0], *more, str(folder)], environment, engine.out)
        if ran.status:
            raise SystemExit(f"error: {name}, over its kept inputs: {ran.text[-1000:]}")
    return ran.text


def python(names: list[str], out: Path) -> dict[str, tuple[int, int]]:
    """Run the seeds and kept inputs of targets in Python; return the lines that they reach together, by folder or file."""
    if find_spec("coverage") is None:
        raise SystemExit("error: lines of Python are counted by the package coverage: pip install coverage")
    package, data, told = ROOT / "src" / "tessarr", f"--data-file={out / 'lines'}", out / "measured.json"
    include = ",".join(f"{package / part}/*" for part in PACKAGES)
    for command in (["run", f"--include={include}", __file__, *names], ["json", "--quiet", f"-o{told}"]):
        subprocess.run([sys.executable, "-m", "coverage", command[0], data, *command[1:]], check=True, cwd=ROOT)
    found: dict[str, tuple[int, int]] = {}
    for file, measured in json.loads(told.read_text())["files"].items():
        place = "/".join((ROOT / file).relative_to(package).parts[:2])
        reached, all_ = found.get(place, (0, 0))
        summary = measured["summary"]
        found[place] = (reached + summary["covered_lines"], all_ + summary["num_statements"])
    return found


def repeat(names: list[str]) -> None:
    """Run the seeds and kept inputs of targets in Python."""
    from fuzz_targets import TARGETS

    warnings.simplefilter("ignore")
    for name in names:
        kept = fuzz_python.corpus(name)
        for member, made in TARGETS[name]().members.items():
            for data in [*made.seeds, *kept.get(member, ())]:
                fuzz_python.outcome(made.run, data)


def report(engine: Native | None, names: list[str], out: Path) -> str:
    """Format what the kept inputs of targets reach, in Markdown."""
    lines = []
    if engine is not None and engine.binary is not None:
        lines += ["| decoder, in `rust/src` | functions | edges of those |", "|---|--:|--:|"]
        for file, reached in native(engine, [name for name in names if name.startswith(NATIVE)]).items():
            lines.append(f"| `{file}` | {_of(reached.functions)} | {_of(reached.edges)} |")
    others = [name for name in names if not name.startswith(NATIVE)]
    if others:
        lines += ["", "| decoder, in `src/tessarr` | lines |", "|---|--:|"]
        lines += [f"| `{place}` | {_of(reached)} |" for place, reached in python(others, out).items() if reached[1]]
    return "\n".join(lines).strip()


def _of(pair: tuple[int, int]) -> str:
    reached, all_ = pair
    return f"{reached} of {all_} ({100 * reached // max(all_, 1)} %)"


if __name__ == "__main__":
    repeat(sys.argv[1:])
