"""Share arguments, exit codes and printing of results between all verbs."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

OK, PROBLEMS, ERROR = 0, 1, 2
"""Exit codes."""


def add_verb(verbs: Any, name: str, *, summary: str, text: str, examples: str) -> argparse.ArgumentParser:
    """Add a subcommand with the options that every verb has."""
    verb: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=text,
        epilog="examples:\n" + "".join(f"  {line}\n" for line in examples.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--json", action="store_true", help="print one JSON document")
    verb.add_argument("--debug", action="store_true", help="show where an error was raised")
    return verb


def add_place(verb: argparse.ArgumentParser) -> None:
    """Add the arguments that name a node."""
    verb.add_argument("place", metavar="PLACE", help="a directory, a zip file or a URL")
    verb.add_argument("path", metavar="PATH", nargs="?", default="", help="the node in it (default: its root)")
    add_storage(verb)


def add_storage(verb: argparse.ArgumentParser) -> None:
    """Add the option for options of remote stores."""
    verb.add_argument(
        "--storage",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of a remote store, such as skip_signature=true (may be repeated)",
    )


def add_source_storage(verb: argparse.ArgumentParser, default: str = "") -> None:
    """Add the option for options of a source that is not where is written. `default`: what holds without it."""
    verb.add_argument(
        "--source-storage", metavar="NAME=VALUE", action="append", default=[],
        help=f"an option of a remote SOURCE (may be repeated{default})",
    )  # fmt: skip


def add_html(verb: argparse.ArgumentParser) -> None:
    """Add the option for a page of the result."""
    verb.add_argument("--html", metavar="FILE", help="write the result as a page, which needs nothing else, into FILE")


def add_jobs(verb: argparse.ArgumentParser, what: str) -> None:
    """Add the option for how much is done at once; ``None`` without it."""
    verb.add_argument("--jobs", type=_positive, metavar="N", help=f"{what} (default: 1)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 on is needed, got {text!r}")
    return int(text)


def write_html(path: str, page: str) -> None:
    """Write a page into a new file, or in place of an old one."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)
    note(f"{path}: written")


def note(text: str) -> None:
    """Print a line on standard error."""
    print(f"tessarr: {text}" if text.startswith(("error:", "warning:")) else text, file=sys.stderr, flush=True)


def print_json(document: object) -> None:
    """Print the JSON document of a verb."""
    print(json.dumps(jsonable(document), indent=2, ensure_ascii=False, allow_nan=False))


def jsonable(value: object) -> object:
    """Convert `value` to JSON: NaN and infinities by name, bytes as text, complex numbers as pairs."""
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind in "mM":
            return jsonable(value.astype(str).tolist())
        return jsonable(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, complex):
        return [jsonable(value.real), jsonable(value.imag)]
    if isinstance(value, float):
        return named_float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def named_float(value: float) -> float | str:
    """Convert NaN and the infinities to the strings that Zarr uses for them; other floats stay.

    >>> named_float(float("nan")), named_float(0.5)
    ('NaN', 0.5)
    """
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Format labels and values in two columns; further lines of a value are below its first."""
    listed = list(rows)
    width = max((len(label) for label, _ in listed), default=0)
    return "\n".join(
        f"{label:<{width}}  " + value.replace("\n", "\n" + " " * (width + 2)) if value else label
        for label, value in listed
    )


def human(nbytes: float) -> str:
    """Format a size for reading.

    >>> human(512), human(3_500_000)
    ('512 B', '3.3 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} PiB"


def lengths(shape: Sequence[int], names: Sequence[str | None] | None = None) -> str:
    """Format a shape, with the names of its dimensions where known.

    >>> lengths((124, 11), ("time", None)), lengths((5,))
    ('(time: 124, 11)', '(5)')
    """
    named = names or [None] * len(shape)
    return f"({', '.join(f'{name}: {n}' if name else str(n) for n, name in zip(shape, named, strict=True))})"
