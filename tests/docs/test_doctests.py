"""The examples in the docstrings of the package run."""

from __future__ import annotations

import contextlib
import doctest
import importlib
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.errors import MissingDependencyError

PACKAGE = Path(str(tessarr.__file__)).parent
WITH_EXAMPLES = sorted(
    path.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def lazy_names(module: Any) -> dict[str, Any]:
    """What a door gives out when asked, and does not hold before."""
    found = {}
    for name in getattr(module, "__all__", ()):
        with contextlib.suppress(MissingDependencyError):
            found[name] = getattr(module, name)
    return found


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        module = importlib.import_module(name)
    except MissingDependencyError as error:
        pytest.skip(f"needs an optional package: {error}")
    found = doctest.testmod(
        module, extraglobs=lazy_names(module), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert found.failed == 0
    assert found.attempted > 0
    assert list(tmp_path.iterdir()) == [], "an example leaves files in the current directory"


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) > 50
