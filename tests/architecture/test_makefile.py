"""The commands of the project: each is listed, and asks for what it needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = dict(re.findall(r"^([a-z-]+): *(.*?) *## ", MAKEFILE, re.MULTILINE))
"""Target → what it depends on."""


def test_every_target_is_phony_and_listed_in_contributing() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert sorted(phony[1].split()) == sorted(TARGETS)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `make ([a-z-]+)", text, re.MULTILINE))
    assert sorted(listed) == sorted(set(TARGETS) - {"help"})


def recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:[\t#].*\n)*)", MAKEFILE, re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_target_makes_the_environment_that_it_runs_in(target: str) -> None:
    if "$(PY)" in recipe(target) or "$(VENV)" in recipe(target):
        needed = TARGETS[target] + "".join(TARGETS[name] for name in made_first(target))
        assert re.search(r"\$\((STAMP|PY|DEMO)\)", needed)


def made_first(target: str) -> list[str]:
    """The targets that the first line of a recipe makes side by side."""
    first = re.match(r"\t\$\(MAKE\) --no-print-directory -j \d+ (.*)\n", recipe(target))
    return first[1].split() if first else []


@pytest.mark.parametrize("target", ["test", "test-busy", "conformance", "freethreaded"])
def test_what_runs_tests_with_servers_or_strace_installs_them(target: str) -> None:
    assert "servers" in TARGETS[target] or "servers" in recipe(target)


def test_a_campaign_with_servers_or_strace_installs_them() -> None:
    campaigns = (ROOT / "scripts" / "campaigns").glob("*.py")
    need = {
        path.stem
        for path in campaigns
        if re.search(r"^from tests\.(stores\.(remote|tracing)|differential\.comparison) import", path.read_text(), re.M)
    } | {"s3_histories"}  # by way of `histories`
    assert len(need) > 1
    assert f"$(if $(filter {' '.join(sorted(need))},$(NAME)),servers)" in TARGETS["campaign"]
