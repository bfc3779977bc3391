"""The command ``tessarr``: one verb per file of `tessarr.cli.verbs`.

Exit codes: 0 success, 1 problems were found in data, 2 wrong usage or an error. With ``--json`` a verb prints one JSON
document on standard output, ``{"error": …}`` after an error; messages, warnings and progress go to standard
error.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from tessarr.cli.printing import ERROR, OK, PROBLEMS, note, print_json
from tessarr.errors import TessarrError, ZarrUserWarning
from tessarr.stores.virtual.branches import committing

VERBS = (
    "info",
    "tree",
    "cat",
    "show",
    "tail",
    "convert",
    "check",
    "repair",
    "gc",
    "migrate",
    "bridge",
    "diff",
    "pyramid",
    "copy",
    "rechunk",
    "digest",
    "plan",
    "run",
    "finish",
    "view",
    "serve",
    "doctor",
)
"""Verbs in the order of the help; each is a module of `tessarr.cli.verbs` with ``add(verbs)`` and ``run(arguments) ->
int``, or an operation of ``plan``.
"""
_OF_PLANS = ("plan", "run", "finish")
"""Verbs whose modules are in the room `plans`."""

_EXAMPLES = """\
examples:
  tessarr info data.zarr                   what an array or group is
  tessarr tree data.zarr                   what is in it
  tessarr cat data.zarr air -s "0, :3"     some of its values
  tessarr show data.zarr air               a picture of them, here
  tessarr view data.zarr                   look at it in a browser
  tessarr convert air.nc air.zarr          from NetCDF, HDF5, NumPy, TIFF or Zarr
  tessarr check air.zarr                   is everything readable and consistent
  tessarr doctor                           what this installation can do

Places are paths, zip files (data.zip) and URLs (https://…, s3://…). "tessarr VERB --help" has more examples.
"""


def parser() -> argparse.ArgumentParser:
    """Make the parser of the whole command line."""
    import tessarr
    from tessarr.cli import at_once
    from tessarr.cli.verbs.plans.plan import AT_ONCE

    top = argparse.ArgumentParser(
        prog="tessarr",
        description="Look at, convert, check and change Zarr data of any version.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"tessarr {tessarr.__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name in VERBS:
        if name in AT_ONCE:
            at_once.add(verbs, name)
        else:
            room = "plans." if name in _OF_PLANS else ""
            import_module(f"tessarr.cli.verbs.{room}{name}").add(verbs)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (``None``: that of this process); return the exit code."""
    try:
        return _parsed_and_run(argv)
    except KeyboardInterrupt:
        note("interrupted")
        return 130


def _parsed_and_run(argv: Sequence[str] | None) -> int:
    if argv is None:
        _use_utf8()
    top = parser()
    try:
        arguments = top.parse_args(_attached(sys.argv[1:] if argv is None else argv))
    except SystemExit as leaving:  # argparse has printed an error or the help
        return leaving.code if isinstance(leaving.code, int) else ERROR
    if arguments.verb is None:
        top.print_help()
        return ERROR
    with warnings.catch_warnings():
        warnings.simplefilter("default", ZarrUserWarning)
        warnings.showwarning = _show_warning
        return _run(arguments)


def _attached(argv: Sequence[str]) -> list[str]:
    """Attach values such as ``-1,2`` and ``-3:`` to their options: argparse would parse them as options.

    And the reverse: the argument after ``--data`` of ``check`` is its level only if it is the name of a level.
    """
    from tessarr.cli.verbs.check import LEVELS

    words: list[str] = []
    for word, after in zip(argv, [*argv[1:], ""], strict=False):
        before = words[-1] if words else ""
        if re.match(r"-\d", word) and re.fullmatch(r"--[a-z-]+|-[a-z]", before):
            words[-1] = f"{before}={word}" if before.startswith("--") else before + word
        else:
            words.append(
                "--data=decode" if word == "--data" and words[:1] == ["check"] and after not in LEVELS else word
            )
    return words


def _use_utf8() -> None:
    """Write UTF-8 to files and pipes in any locale; a terminal gets the characters that it can show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")


def _run(arguments: argparse.Namespace) -> int:
    try:
        with committing(f"tessarr {arguments.verb}"):
            code: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        return OK
    except Exception as error:
        if arguments.debug:
            raise
        note(f"error: {explain(error)}")
        if getattr(arguments, "json", False):
            print_json({"error": _facts(error)})
        if not isinstance(error, TessarrError | OSError | ValueError):
            note("This may be a mistake in tessarr; with --debug it shows where.")
        return PROBLEMS if isinstance(error, getattr(arguments, "failures", ())) else ERROR
    return code


def explain(error: BaseException) -> str:
    """Make one readable message: the error's text, with its kind where the text is too short."""
    text = str(error)
    if isinstance(error, TessarrError) or (isinstance(error, OSError | ValueError) and text):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _facts(error: BaseException) -> dict[str, object]:
    """Return the error as JSON: its kind, its text, and the attributes of a `TessarrError`."""
    names = ("store", "path", "chunk", "key", "codec", "expected", "got", "hint")
    known = {name: getattr(error, name, None) for name in names}
    plain = {
        name: value if isinstance(value, str | int) else str(value)
        for name, value in known.items()
        if value is not None
    }
    kind = error.kind if isinstance(error, TessarrError) else type(error).__name__
    return {"kind": kind, "message": explain(error), **plain}


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    note(f"warning: {message}")


def _forget_output() -> None:
    """Replace a stdout whose reader closed the pipe (``| head``), so that Python reports no error at exit."""
    import os

    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
