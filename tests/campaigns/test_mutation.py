"""What the campaign of mutants names exists: modules, tests, and the mutants that nothing can tell from the original."""

from __future__ import annotations

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from campaigns import mutation  # noqa: E402


def test_modules_and_their_tests_are_there() -> None:
    assert len(mutation.MODULES) > 10
    missing = [
        path
        for module, tests in mutation.MODULES.items()
        for path in (mutation.SRC / module, *(mutation.ROOT / test for test in tests))
        if not path.exists()
    ]
    assert missing == []


def test_an_equivalent_mutant_is_of_code_that_is_there_and_has_a_reason() -> None:
    entries = mutation.equivalents()
    for (module, function, old, new), reason in entries.items():
        text = " ".join((mutation.SRC / module).read_text(encoding="utf-8").split())
        assert " ".join(old.split()) in text, (module, function, old)
        assert old != new
        assert reason
