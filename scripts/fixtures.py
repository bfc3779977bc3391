"""Read every array of other writers with tessarr, and compare it with the values of independent readers.

    python scripts/fixtures.py DIR [--source gdal ...] [--all]

DIR holds one folder per source with an `expected.json` (see tests/fixtures/README.md). `fixtures_decisions.toml` beside this
file lists deliberate differences of tessarr with their reasons; an unused entry is a mismatch too. Exits 0 only when
everything agrees.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DECISIONS = Path(__file__).with_name("fixtures_decisions.toml")
ERROR_WITHIN_S = 60.0
"""An array that nothing can read must be refused before this: a bound against hanging, which a busy machine keeps too."""
MOST_ELEMENTS = 8 * 2**20
"""Larger arrays are only opened, and one corner of them is read."""


class Case(NamedTuple):
    """Describe one array of one source."""

    source: Path
    entry: dict[str, Any]
    expected: np.ndarray[Any, Any] | None
    lenient: np.ndarray[Any, Any] | None

    @property
    def name(self) -> str:
        """Return ``source:key``, the name in the file of decisions."""
        version = f"@{self.entry['zarr_format']}" if self.entry.get("twin") else ""
        return f"{self.source.name}:{self.entry['key']}{version}"


class Result(NamedTuple):
    """Hold the result for one array: `word` is ok, decided, or mismatch."""

    name: str
    word: str
    detail: str


def _values(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def cases(folder: Path, sources: list[str] | None = None) -> Iterator[Case]:
    """Yield every Zarr array of every source under `folder`."""
    for document in sorted(folder.glob("*/expected.json")):
        source = document.parent
        content = json.loads(document.read_text(encoding="utf-8"))
        if "arrays" not in content or (sources and source.name not in sources):
            continue
        values, lenient = _values(source / "expected.npz"), _values(source / "lenient.npz")
        keys = Counter(entry["key"] for entry in content["arrays"])
        for entry in content["arrays"]:
            entry["twin"] = keys[entry["key"]] > 1  # documents of two versions stand in one folder
            yield Case(source, entry, values.get(entry["key"]), lenient.get(entry["key"]))


def open_case(case: Case) -> Any:
    """Open the array with tessarr."""
    import tessarr

    path = case.source / case.entry["path"]
    if case.entry["twin"]:
        return tessarr.open_array(str(path), mode="r", zarr_format=case.entry["zarr_format"])
    inner = case.entry.get("inner")
    return tessarr.open_array(str(path), path=inner or "", mode="r")


def digest(values: np.ndarray[Any, Any]) -> str:
    """Return the SHA-256 of the C-order little-endian bytes; of strings and objects, of their JSON list."""
    if values.dtype.kind in "OT":
        return hashlib.sha256(json.dumps(plain(values), ensure_ascii=False).encode()).hexdigest()
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return hashlib.sha256(np.ascontiguousarray(little).tobytes()).hexdigest()


def plain(values: np.ndarray[Any, Any]) -> list[Any]:
    """Return the elements in C order, as JSON values."""

    def element(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if isinstance(value, np.ndarray | list | tuple):
            return [element(one) for one in value]
        return value.item() if isinstance(value, np.generic) else value

    return [element(value) for value in values.ravel().tolist()]


def same(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> str | None:
    """Describe how `left` (tessarr's) differs from `right`; return ``None`` if equal. NaN equals NaN with any payload."""
    if left.shape != right.shape:
        return f"shape {left.shape}, expected {right.shape}"
    if right.dtype.names is not None:
        if left.dtype.names != right.dtype.names:
            return f"fields {left.dtype.names}, expected {right.dtype.names}"
        found = (same(left[name], right[name]) for name in right.dtype.names)
        return next((difference for difference in found if difference), None)
    if right.dtype.kind == "U" or left.dtype.kind in "OT":
        unequal = [a != b for a, b in zip(plain(left), plain(right), strict=True)]
        return f"{sum(unequal)} of {len(unequal)} values differ" if any(unequal) else None
    if left.dtype.newbyteorder("=") != right.dtype.newbyteorder("="):
        return f"dtype {left.dtype}, expected {right.dtype}"
    equal = np.asarray(left == right)
    if right.dtype.kind in "fcMm":
        equal = equal | ((left != left) & (right != right))
    return None if equal.all() else f"{int((~equal).sum())} of {equal.size} values differ"


def peer_values(case: Case) -> np.ndarray[Any, Any]:
    """Read the array with zarr-python, the oracle for arrays whose expected values are too large to store.

    Raises whatever zarr-python raises, ImportError when it is not installed.
    """
    import zarr

    return np.asarray(zarr.open_array(str(case.source / case.entry["path"]), mode="r")[...])


def compare(case: Case, array: Any) -> str | None:
    """Describe how the values that tessarr reads differ from the expected ones; return ``None`` if equal."""
    if array.size > MOST_ELEMENTS and case.expected is None:
        corner = plain(np.asarray(array[tuple(slice(0, 1) for _ in array.shape)]))[0]
        first = case.entry["first"][0]
        agrees = corner == first or (first == "NaN" and corner != corner)
        return None if agrees else f"first value {corner!r}, expected {first!r}"
    got = np.asarray(array[...])
    if case.expected is not None:
        return same(got, case.expected)
    if "values" in case.entry:
        expected = case.entry["values"]
        return None if plain(got) == expected else f"got {plain(got)[:4]} …, expected {expected[:4]} …"
    if "digest" in case.entry:
        return None if digest(got) == case.entry["digest"] else f"digest differs; first values {plain(got)[:4]}"
    return same(got, peer_values(case))


def check(case: Case) -> str | None:
    """Describe an unexpected result of tessarr for the array; return ``None`` for the expected result."""
    from tessarr.errors import TessarrError

    began = time.monotonic()
    try:
        array = open_case(case)
        if case.entry["expect"] == "skipped":
            return None if list(array.shape) == case.entry["shape"] else f"shape {array.shape}"
        if case.entry["expect"] == "values":
            return compare(case, array)
        got = np.asarray(array[...])
    except TessarrError as error:
        if case.entry["expect"] != "error":
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
        elapsed = time.monotonic() - began
        return None if elapsed < ERROR_WITHIN_S else f"refused after {elapsed:.0f} s"
    except Exception as error:
        return f"untyped {type(error).__name__}: {error}"
    if case.lenient is not None:
        return same(got, case.lenient)
    return "is read, though no reader accepts it"


def decisions() -> dict[str, str]:
    """Map the names of arrays with a deliberate difference to its reason."""
    content = tomllib.loads(DECISIONS.read_text(encoding="utf-8"))
    return {name: entry["why"] for name, entry in content.get("decision", {}).items()}


def run(case: Case, decided: dict[str, str]) -> Result:
    """Compare one array, and apply the decisions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        difference = check(case)
    reason = decided.get(case.name)
    if difference is None:
        ok = Result(case.name, "ok", "")
        return Result(case.name, "mismatch", "agrees, but a decision says it does not") if reason else ok
    return (
        Result(case.name, "decided", f"{difference} — {reason}")
        if reason
        else Result(case.name, "mismatch", difference)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--source", nargs="*", default=None)
    parser.add_argument("--all", action="store_true", help="list the arrays that agree, too")
    options = parser.parse_args()
    decided = decisions()
    results = [run(case, decided) for case in cases(options.folder, options.source)]
    if not results:
        print(f"error: no expected.json under {options.folder}", file=sys.stderr)
        return 2
    for result in results:
        if options.all or result.word != "ok":
            print(f"{result.word:<9} {result.name:<70} {result.detail}"[:240])
    by_source: dict[str, Counter[str]] = {}
    for result in results:
        by_source.setdefault(result.name.partition(":")[0], Counter())[result.word] += 1
    print(f"\n{'source':<24} {'ok':>5} {'decided':>8} {'mismatch':>9}")
    for source, counts in [*by_source.items(), ("total", sum(by_source.values(), Counter()))]:
        print(f"{source:<24} {counts['ok']:>5} {counts['decided']:>8} {counts['mismatch']:>9}")
    return int(any(result.word == "mismatch" for result in results))


if __name__ == "__main__":
    sys.exit(main())
