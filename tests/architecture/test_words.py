"""No docstring, comment, message or page uses a word that hides what the field has a term for."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CORRECTNESS.md", "GLOSSARY.md", "README.md")
SOURCES = sorted(
    path
    for pattern in ("src/**/*.py", "src/**/*.pyi", "rust/src/**/*.rs", "docs/**/*.md", *PAGES)
    for path in ROOT.glob(pattern)
)

SAY = {
    r"anew": "again, from the start",
    r"told": "say what is passed, reported, sent or configured",
    r"aside": "say where the value goes: staged, in a temporary file, ignored",
    r"in vain": "without effect, or say what fails",
    r"affairs?": "say who is responsible",
    r"nobody": "no caller, no writer, no process",
    r"of (?:one's|his|her) own": "dedicated, separate, private",
    r"whoever": "name the caller, the writer, the process",
    r"(?:it|that|this|which|what) is none": "is not one, is neither … nor …",
    r"beforehand": "before, and say before what",
    r"lets? go(?: of)?": "release",
    r"(?<!there )(?:is|are) no (?!longer\b|more\b|such\b)\w+": "is not a …, are not …",
    r"asked for": "requested, needed, at its first use",
    r"remember(?:s|ed)?": "cache, record, store",
    r"mend(?:s|ed|ing)?": "repair",
    r"(?:take|takes|taken|took) back": "undo",
    r"put together": "assemble, reconstruct, join",
    r"under ?way": "in flight, running",
    r"all the same": "nevertheless",
    r"in silence": "without a warning",
    r"twins?": "async variant, counterpart, copy",
    r"for ever": "forever, or say until when",
    r"again and again": "repeatedly, or say how often",
    r"before or behind": "before or after",
    r"stands? at": "is at, shares",
    r"hand(?:s|ed|ing)? (?:on|back|over)": "pass, return",
}
"""What not to write, as a regular expression of whole words, and what to write instead."""

NEVER = re.compile(r"\b(?:" + "|".join(f"({pattern})" for pattern in SAY) + r")\b", re.IGNORECASE)
RUST = re.compile(
    r"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | b?r(?P<hashes>\#*)".*?"(?P=hashes)
    | (?P<text> "(?:\\.|[^"\\])*" )
    | '(?:\\.[^']*|[^'\\])'
    """,
    re.VERBOSE | re.DOTALL,
)


def python_prose(source: str) -> Iterator[tuple[int, str]]:
    """Each docstring, comment and message of a Python file, with its line. A string without a space is a name."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def rust_prose(source: str) -> Iterator[tuple[int, str]]:
    """Each comment and string literal of a Rust file, with its line."""
    for found in RUST.finditer(source):
        text = found["comment"] or found["text"]
        if text:
            yield source.count("\n", 0, found.start()) + 1, text


def page_prose(source: str) -> Iterator[tuple[int, str]]:
    """The whole page: the comments in its examples are prose too."""
    yield 1, source


READ = {".py": python_prose, ".pyi": python_prose, ".rs": rust_prose, ".md": page_prose}


def offenders(source: str, suffix: str) -> list[str]:
    """The words of a file that are not to be written, each with its line and what to write."""
    found = []
    for start, text in READ[suffix](source):
        for match in NEVER.finditer(text):
            line = start + text.count("\n", 0, match.start())
            say = list(SAY.values())[(match.lastindex or 0) - 1]
            found.append(f"line {line}: {match[0]!r} (write: {say})")
    return found


NOISE = re.compile(r"See `[^`]+`\.?|Call `[^`]+` asynchronously\.?")
"""Docstrings that say only where another one is; an override without a docstring has that of its base."""


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Each docstring of a Python file, with the line of what it describes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def noise(source: str) -> list[int]:
    return [line for line, text in docstrings(source) if NOISE.fullmatch(text)]


def test_no_docstring_only_names_another_one() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): noise(path.read_text(encoding="utf-8"))
        for path in SOURCES
        if path.suffix == ".py"
    }
    assert len(found) > 500
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert noise('def f():\n    """See `X.y`."""\nasync def g():\n    """Call `f` asynchronously."""\n') == [1, 3]
    assert noise('def f():\n    """See `X.y`: all ranges are of one version."""\n') == []


def names(source: str) -> Iterator[tuple[int, str]]:
    """What a Python file defines or assigns to, with the line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


IN_NAMES = re.compile(
    r"(?:^|_)(?:told|anew|aside|vain|affairs?|nobody|whoever|twins?|mend(?:s|ed|ing)?)(?:_|$)", re.IGNORECASE
)


def test_names_use_the_words_of_the_field() -> None:
    assert [*names("def f(a):\n    told = a")] == [(1, "f"), (1, "a"), (2, "told")]
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{line}: {name}"
        for path in SOURCES
        if path.suffix == ".py"
        for line, name in names(path.read_text(encoding="utf-8"))
        if IN_NAMES.search(name)
    }
    assert found == set()


def test_prose_uses_the_words_of_the_field() -> None:
    found = {path.relative_to(ROOT): offenders(path.read_text(encoding="utf-8"), path.suffix) for path in SOURCES}
    assert len(found) > 500
    assert {path.as_posix(): words for path, words in found.items() if words} == {}


@pytest.mark.parametrize(
    ("source", "suffix"),
    [
        ('def f():\n    """Read the document anew."""\n', ".py"),
        ("x = 1  # nobody waits for it\n", ".py"),
        ('raise ValueError(f"{name} is for stores of one\'s own")\n', ".py"),
        ("/// Lets go of the lock.\nfn f() {}\n", ".rs"),
        ('let text = "whoever reads it"; // a reader\n', ".rs"),
        ("A document\nthat is none of references\n", ".md"),
        ("x = 'this file is no archive'\n", ".py"),
    ],
)
def test_a_word_is_found(source: str, suffix: str) -> None:
    assert len(offenders(source, suffix)) == 1


@pytest.mark.parametrize(
    ("source", "suffix"),
    [
        ("nobody = {'told': 'anew'}\n", ".py"),
        ('"""Read the manewal; ``None`` when there is none."""\n', ".py"),
        ("There is no lock, and the file is no longer open.\n", ".md"),
        ('let aside = \'"\'; let told = r#"//"#;\n', ".rs"),
    ],
)
def test_names_and_parts_of_words_are_not(source: str, suffix: str) -> None:
    assert offenders(source, suffix) == []
