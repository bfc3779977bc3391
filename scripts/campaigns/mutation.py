"""Change one place of what must not break, and look whether a test fails: the share of changes that tests notice.

`MODULES` are the modules and the tests that must notice. Mutants are those of mutmut, and steps that are left out or
swapped, conditions that are taken for false or true (`mutants.py`); `mutant_trials.py` runs the tests. A number is a mutant, in
a mixed order of all; behind the last one the first one comes again. A mutant that survives is a finding, unless
``tests/mutation/equivalent.toml`` says why nothing can tell it from the original.

    PYTHONPATH=scripts:. python -m campaigns.mutation [MODULE ...]

tries every mutant of these modules (paths below ``src``), or of all, and prints the survivors and the score per module; it
writes no log.
"""

from __future__ import annotations

import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from campaigns.slices import Slice, repeated, timed

if TYPE_CHECKING:
    from campaigns.mutant_trials import Trials
    from campaigns.mutants import Mutant, Sketch

SUMMARY = "changes of what must not break, of which a test must notice each (mutation score)"
ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
EQUIVALENT = ROOT / "tests" / "mutation" / "equivalent.toml"
MODULES: dict[str, tuple[str, ...]] = {
    "tessarr/metadata/reservations.py": ("tests/metadata/test_reservations.py",),
    "tessarr/keys/default.py": ("tests/keys",),
    "tessarr/keys/v2.py": ("tests/keys",),
    "tessarr/keys/template.py": ("tests/keys",),
    "tessarr/keys/templated.py": ("tests/keys",),
    "tessarr/indexing/boxes.py": ("tests/indexing",),
    "tessarr/indexing/chunk_plan.py": ("tests/indexing",),
    "tessarr/codecs/sharding.py": (
        "tests/codecs/test_shard_pieces.py",
        "tests/codecs/test_shard_arguments.py",
        "tests/codecs/test_shard_layouts.py",
        "tests/conformance/test_v3_sharding.py",
    ),
    "tessarr/stores/local/replace.py": ("tests/stores/test_local_steps.py", "tests/stores/test_local.py"),
    "tessarr/stores/local/lock.py": ("tests/stores/test_local_steps.py", "tests/stores/test_local.py"),
    "tessarr/stores/local/file.py": ("tests/stores/test_local_files.py", "tests/stores/test_local.py"),
    "tessarr/stores/local/exchange.py": ("tests/stores/test_local.py",),
    "tessarr/stores/local/sync.py": ("tests/stores/test_local_sync.py",),
    "tessarr/stores/local/transactions/journal.py": ("tests/transactions/test_journal.py",),
    "tessarr/stores/compare_and_swap.py": ("tests/stores/test_swapping.py",),
    "tessarr/core/claims/intents.py": ("tests/transactions/test_intents.py",),
    "tessarr/transactions/document_merge.py": ("tests/transactions/test_document_merge.py",),
}
"""Path below ``src`` → tests; of these run those that reach the mutant."""


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do mutants from `begin` on, for so long."""
    from campaigns.mutant_trials import Trials

    with closing(Trials(ROOT, MODULES)) as trials:
        yield from timed(begin, seconds, partial(_do, trials))


def repeat(number: int) -> str | None:
    """Do one mutant again."""
    from campaigns.mutant_trials import Trials

    with closing(Trials(ROOT, MODULES)) as trials:
        return repeated(number, partial(_do, trials))


@cache
def sketches() -> Sequence[Sketch]:
    """Every mutant of every module, in a mixed order."""
    return _sketches(MODULES)


def _sketches(modules: Iterable[str]) -> Sequence[Sketch]:
    from campaigns.mutants import Source

    found = [sketch for name in modules for sketch in Source(SRC, name).sketches()]
    return sorted(found, key=lambda sketch: sketch.order)


@cache
def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Mutants that nothing can tell from the original, and why."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", []) if EQUIVALENT.exists() else []
    return {(one["module"], one["function"], one["old"], one["new"]): one["reason"] for one in entries}


def outcome(trials: Trials, mutant: Mutant) -> str:
    """What became of a mutant: ``killed``, ``survived`` or ``equivalent``."""
    if (mutant.module, mutant.function, mutant.old, mutant.new) in equivalents():
        return "equivalent"
    return "killed" if trials.is_noticed(mutant) else "survived"


def _do(trials: Trials, number: int, part: Slice) -> None:
    mutant = sketches()[number % len(sketches())].mutant()
    found = outcome(trials, mutant)
    part.count("mutants")
    part.count(found)
    if found == "survived":
        part.find(number, str(mutant))


def main(names: Sequence[str]) -> int:
    """Try every mutant of modules; returns how many survived."""
    from campaigns.mutant_trials import Trials

    totals: Counter[str] = Counter()
    for name in names or MODULES:
        begin, counts = time.monotonic(), Counter[str]()
        with closing(Trials(ROOT, MODULES)) as trials:
            for mutant in (sketch.mutant() for sketch in _sketches([name])):
                found = outcome(trials, mutant)
                counts[found] += 1
                if found == "survived":
                    print(f"  {mutant.lines.start}: {mutant}", flush=True)
        print(f"{name}: {_told(counts)}, {time.monotonic() - begin:.0f} s", flush=True)
        totals += counts
    print(f"all: {_told(totals)}")
    return totals["survived"]


def _told(counts: Counter[str]) -> str:
    tried = counts["killed"] + counts["survived"]
    score = 100 * counts["killed"] / max(1, tried)
    told = ", ".join(f"{counts[name]:,} {name}" for name in ("killed", "survived", "equivalent"))
    return f"{tried + counts['equivalent']:,} mutants, {told}, {score:.1f} %"


if __name__ == "__main__":
    sys.exit(int(main(sys.argv[1:]) > 0))
