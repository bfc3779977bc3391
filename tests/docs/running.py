"""Run the examples of a page and compare what they print with what the page says.

A page's blocks run in order and share their names. ``python`` blocks with ``>>>`` are doctests, others are programs.
In ``console`` blocks each line ``$ tessarr …`` is run and its output compared, or it must succeed if the page shows none; other
commands are not run.

This needs nothing but the standard library and tessarr, so that an environment with nothing else can run the README::

    python -m tests.docs.running README.md
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.docs.pages import Block, blocks

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
LANGUAGES = {"python", "console", "text", "json", "toml", "sh", "bash", ""}


def run_doctest(block: Block, names: dict[str, Any], page: Path) -> None:
    """Run a block with prompts in `names`."""
    test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line - 1)
    test.globs = names  # shared, not copied
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)


def run_program(block: Block, names: dict[str, Any], page: Path) -> None:
    """Run a block without prompts in `names`."""
    # Empty lines in front make the numbers in a traceback the page's.
    exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)


def run_console(block: Block, page: Path) -> None:
    """Run the ``$ tessarr …`` lines of a block and compare what they print."""
    from tessarr.cli import main

    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        line, number = lines[at], block.line + at
        at += 1
        wanted: list[str] = []
        while at < len(lines) and not lines[at].startswith("$ "):
            wanted.append(lines[at])
            at += 1
        if not line.startswith("$ tessarr"):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(shlex.split(line.removeprefix("$ tessarr"), comments=True))
        place = f"{page.name}:{number}: {line}\n{printed.getvalue()}"
        assert code == 0 or (code == 1 and wanted), f"exit code {code}, of which the page says nothing: {place}"
        want = "\n".join(wanted).strip() + "\n"
        if wanted and not doctest.OutputChecker().check_output(want, printed.getvalue().strip() + "\n", FLAGS):
            raise AssertionError(f"{place}\nthe page says:\n{want}")


def run_page(page: Path) -> int:
    """Run every block of `page` in the current directory, which should be empty; return how many ran."""
    names: dict[str, Any] = {"__name__": page.stem}
    ran = 0
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{page.name}:{block.line}: unknown language {block.language!r}"
        if block.not_run is not None:
            assert block.not_run, f"{page.name}:{block.line}: say why it is not run"
            if block.language == "python":
                ast.parse(block.text)
            continue
        if block.language == "python" and ">>> " in block.text:
            run_doctest(block, names, page)
        elif block.language == "python":
            run_program(block, names, page)
        elif block.language == "console":
            run_console(block, page)
        else:
            continue
        ran += 1
    return ran


def main() -> int:
    """Run the pages named on the command line, each in an empty directory."""
    os.environ["COLUMNS"] = "120"
    for page in map(Path.resolve, map(Path, sys.argv[1:])):
        with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
            print(f"{page.name}: {run_page(page)} blocks ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
