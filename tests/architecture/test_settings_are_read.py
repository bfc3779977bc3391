"""Every setting is read somewhere, or is listed as an accepted name without effect; and the documentation says so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tessarr.settings import DEFAULTS, WITHOUT_EFFECT

from .sources import parsed

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tessarr"
ONLY_REPORTS = "cli/doctor.py"
"""What shows a setting does not read it: nothing changes with it."""


def names(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting with its default."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from names(value, f"{above}{name}.")
        else:
            yield above + name, value


def read() -> set[str]:
    """The names that the package gives to ``config.get``."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).as_posix() == ONLY_REPORTS:
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("config.get", "settings.get") and node.args:
                (name, *_) = node.args
                if isinstance(name, ast.Constant):
                    found.add(str(name.value))
    return found


def documented() -> dict[str, str]:
    """The first two cells of every row of the page's tables."""
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `([a-z_.]+)` \| (.*?) \|", page, flags=re.MULTILINE))


def test_every_setting_is_read_or_listed_as_without_effect() -> None:
    assert {name for name, _ in names(DEFAULTS)} - read() == WITHOUT_EFFECT.keys()


def test_the_page_has_every_setting_with_its_default_or_why_it_has_no_effect() -> None:
    said = {name: WITHOUT_EFFECT.get(name, f"`{default!r}`".replace("'", '"')) for name, default in names(DEFAULTS)}
    assert documented() == said
