"""What the campaign of mutants names exists: modules, tests, and the mutants that nothing can tell from the original."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

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


MODULE = '''
def check(seen, name, problems):
    """Check a name."""
    def add(text):
        problems.append(text)
    hint = "rename it"
    if name in seen:
        add("twice")
    seen.add(name)
    failure = ValueError("bad name", name)
    pairs = list(zip(name, name, strict=True))
    return trouble(failure, hint="look at it", limit=3)
'''


def test_texts_for_people_are_no_mutants(tmp_path: Path) -> None:
    pytest.importorskip("libcst", reason="mutants need the extra 'mutation' (mutmut)")
    from campaigns.mutants import Source

    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    mutants = [sketch.mutant() for sketch in Source(tmp_path, "module.py").sketches()]
    changed = [(one.old, one.new) for one in mutants]
    texts = ("rename it", "twice", "bad name", "look at it")
    assert [(old, new) for old, new in changed for text in texts if text in old and text not in new] == [
        ('add("twice")', "pass"),
        ('failure = ValueError("bad name", name)', "failure = None"),
    ]
    assert [new for old, new in changed if "limit=3" in old and "limit=3" not in new]
    assert [new for old, new in changed if old == "seen.add(name)"]
    zipped = [new for old, new in changed if "zip" in old]
    assert zipped
    assert not [new for new in zipped if "zip(name, name" in new]


STEPS = """
def add(first, second):
    first.append(1)
    second.append(2)
    second.append(3)
    second.sort()
"""


def test_steps_change_places_but_not_where_they_append_to_two_lists(tmp_path: Path) -> None:
    pytest.importorskip("libcst", reason="mutants need the extra 'mutation' (mutmut)")
    from campaigns.mutants import Source

    (tmp_path / "module.py").write_text(STEPS, encoding="utf-8")
    changed = [sketch.mutant() for sketch in Source(tmp_path, "module.py").sketches()]
    swapped = [one.new for one in changed if len(one.lines) == 2]
    assert swapped == ["second.append(3) second.append(2)", "second.sort() second.append(3)"]


ELSEWHERE = """
import os
import sys

def here(path):
    if sys.platform == "another system":
        path.lower()
    if os.name == "another system":
        path.upper()
    return path
"""


def test_code_of_other_operating_systems_is_not_changed(tmp_path: Path) -> None:
    pytest.importorskip("libcst", reason="mutants need the extra 'mutation' (mutmut)")
    from campaigns.mutants import Source

    (tmp_path / "module.py").write_text(ELSEWHERE, encoding="utf-8")
    changed = {sketch.mutant().old for sketch in Source(tmp_path, "module.py").sketches()}
    assert changed == {'if sys.platform == "another system":', 'if os.name == "another system":'}


TRIED = """
from functools import cache

@cache
def larger(one, other):
    return one if one > other else other

def unused():
    return 1
"""
TESTS = """
import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "src"))
from tried import larger

def test_the_larger_one():
    assert larger(1, 2) == larger(2, 1) == 2

def test_that_fails_in_any_case():
    assert larger(1, 1) == 2
"""


def test_mutants_are_noticed_by_tests_that_pass_without_them(tmp_path: Path) -> None:
    pytest.importorskip("libcst", reason="mutants need the extra 'mutation' (mutmut)")
    from campaigns.mutant_trials import Trials
    from campaigns.mutants import Source

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "tried.py").write_text(TRIED, encoding="utf-8")
    (tmp_path / "test_tried.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "conftest.py").write_text("def pytest_runtest_logreport(): pass\n", encoding="utf-8")
    (tmp_path / "other" / "test_other.py").write_text("def test_other(): pass\n", encoding="utf-8")
    mutants = [sketch.mutant() for sketch in Source(tmp_path / "src", "tried.py").sketches()]
    with closing(Trials(tmp_path, {"tried.py": ["test_tried.py", "other"]})) as trials:
        noticed = {mutant.new: trials.is_noticed(mutant) for mutant in mutants}
    assert noticed == {
        "return one if (one > other) or True else other": True,
        "return one if (one > other) and False else other": True,
        "return one if one >= other else other": False,
        "return 2": False,
    }
