"""Change one place of what must not break, and look whether a test fails: the share of changes that tests notice.

`MODULES` are the modules and the tests that must notice. Mutants are those of mutmut, and steps that are left out or
swapped, conditions that are taken for false or true (`mutants.py`). A number is a mutant, in a mixed order of all;
behind the last one the first one comes again. A mutant that survives is a finding, unless
``tests/mutation/equivalent.toml`` says why nothing can tell it from the original.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from campaigns.slices import Slice, repeated, timed

SUMMARY = "changes of what must not break, of which a test must notice each (mutation score)"
ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
EQUIVALENT = ROOT / "tests" / "mutation" / "equivalent.toml"
MODULES: dict[str, tuple[str, ...]] = {
    "tessarr/metadata/reservations.py": (
        "tests/metadata/test_reservations.py",
        "tests/simulation/test_appends.py",
    ),
    "tessarr/keys/default.py": ("tests/keys",),
    "tessarr/keys/v2.py": ("tests/keys",),
    "tessarr/keys/template.py": ("tests/keys",),
    "tessarr/keys/templated.py": ("tests/keys",),
    "tessarr/indexing/boxes.py": ("tests/indexing",),
    "tessarr/indexing/chunk_plan.py": ("tests/indexing",),
    "tessarr/codecs/sharding.py": ("tests/codecs/test_shard_pieces.py", "tests/codecs/test_shard_arguments.py"),
    "tessarr/stores/local/replace.py": ("tests/stores/test_local.py",),
    "tessarr/stores/local/lock.py": ("tests/stores/test_local.py",),
    "tessarr/stores/local/file.py": ("tests/stores/test_local.py",),
    "tessarr/stores/local/exchange.py": ("tests/stores/test_localswap.py",),
    "tessarr/stores/local/sync.py": ("tests/stores/test_durable.py",),
    "tessarr/stores/local/transactions/journal.py": (
        "tests/transactions/test_transactions.py",
        "tests/transactions/test_swap.py",
    ),
    "tessarr/stores/compare_and_swap.py": ("tests/stores/test_swapping.py",),
    "tessarr/core/claims/intents.py": ("tests/transactions/test_publish.py",),
    "tessarr/transactions/document_merge.py": ("tests/transactions/test_transactions.py",),
}
"""Path below ``src`` → tests, the quickest first."""
LONGEST_S = 60
"""Processor time; a mutant that takes more is noticed too, because it hangs."""
_PASSED, _FAILED = 0, 1


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do mutants from `begin` on, for so long."""
    with tempfile.TemporaryDirectory(prefix="tessarr-mutants-") as folder:
        yield from timed(begin, seconds, partial(_do, Path(folder)))


def repeat(number: int) -> str | None:
    """Do one mutant again."""
    with tempfile.TemporaryDirectory(prefix="tessarr-mutants-") as folder:
        return repeated(number, partial(_do, Path(folder)))


@cache
def sketches() -> Sequence[object]:
    """Every mutant of every module, in a mixed order."""
    from campaigns.mutants import Source

    found = [sketch for name in MODULES for sketch in Source(SRC, name).sketches()]
    return sorted(found, key=lambda sketch: sketch.order)


@cache
def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Mutants that nothing can tell from the original, and why."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", []) if EQUIVALENT.exists() else []
    return {(one["module"], one["function"], one["old"], one["new"]): one["reason"] for one in entries}


def _do(folder: Path, number: int, part: Slice) -> None:
    from campaigns.mutants import Sketch

    sketch = sketches()[number % len(sketches())]
    assert isinstance(sketch, Sketch)
    mutant = sketch.mutant()
    part.count("mutants")
    if (mutant.module, mutant.function, mutant.old, mutant.new) in equivalents():
        part.count("equivalent")
    elif is_noticed(folder, mutant.module, mutant.code):
        part.count("killed")
    else:
        part.count("survived")
        part.find(number, str(mutant))


def is_noticed(folder: Path, module: str, code: str) -> bool:
    """Whether a test of `MODULES` fails when `module` has this code. `folder` is used for its copy."""
    copy = _package(folder, module)
    with suppress(FileNotFoundError):
        copy.unlink()
    copy.write_text(code, encoding="utf-8")
    for cached in copy.parent.glob(f"__pycache__/{copy.stem}.*.pyc"):
        cached.unlink()
    return _ended(folder / module.replace("/", "-"), MODULES[module]) != _PASSED


def _package(folder: Path, module: str) -> Path:
    """Make a package whose files are links to those of the source, with the one that is changed as a file of its own."""
    root = folder / module.replace("/", "-")
    place, source = root, SRC
    if not root.exists():
        for name in module.split("/"):
            place.mkdir()
            for path in source.iterdir():
                if path.name not in (name, "__pycache__"):
                    (place / path.name).symlink_to(path)
            place, source = place / name, source / name
    return root / module


@cache
def _preload() -> None:
    """Import what every test needs, and nothing of the package, so that the processes of mutants need not."""
    import numcodecs  # noqa: F401
    import numpy as np  # noqa: F401
    import pytest  # noqa: F401


def _ended(package: Path, tests: Sequence[str]) -> int:
    """Run tests with the package in place of ``src``; returns the exit status of pytest, or minus the number of a signal."""
    _preload()
    child = os.fork()
    if not child:
        status = _FAILED
        try:
            status = _test(package, tests)
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(ended)


def _test(package: Path, tests: Sequence[str]) -> int:
    """Run tests in this process."""
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_S, LONGEST_S + 5))
    signal.alarm(5 * LONGEST_S)  # against one that waits
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(package)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tessarr", "tests")]:
        del sys.modules[name]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-o", f"pythonpath={package} scripts ."]
    return int(pytest.main([*options, *tests]))
