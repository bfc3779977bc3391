"""Every example of the README and of the documentation runs, and prints what the page says it prints.

A page's blocks run in order and share their names. ``python`` blocks with ``>>>`` are doctests, others are programs.
In ``console`` blocks each line ``$ tessarr …`` is run and its output compared; other commands are not run.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import shlex
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.cli import main
from tests.docs.pages import PAGES, ROOT, Block, blocks

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
LANGUAGES = {"python", "console", "text", "json", "toml", "sh", "bash", ""}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pages are read from an empty directory; what they set is gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    yield
    tessarr.config.reset()


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
        assert code in (0, 1), place
        want = "\n".join(wanted).strip() + "\n"
        if wanted and not doctest.OutputChecker().check_output(want, printed.getvalue().strip() + "\n", FLAGS):
            raise AssertionError(f"{place}\nthe page says:\n{want}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path) -> None:
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{page.name}:{block.line}: unknown language {block.language!r}"
        if block.not_run is not None:
            assert block.not_run, f"{page.name}:{block.line}: say why it is not run"
            if block.language == "python":
                ast.parse(block.text)
        elif block.language == "python" and ">>> " in block.text:
            run_doctest(block, names, page)
        elif block.language == "python":
            run_program(block, names, page)
        elif block.language == "console":
            run_console(block, page)
