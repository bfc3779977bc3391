"""Every problem of a convention has a rule, a severity and something to do about it."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tessarr
from tessarr import conventions
from tessarr.conventions import RULES, Convention, Node, Problem
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools.check import Report, check

SOURCE = Path(conventions.__file__).parent


def test_every_problem_names_a_rule_of_the_table_and_every_rule_is_used() -> None:
    named = set()
    for file in sorted(SOURCE.rglob("*.py")):
        if file.name not in ("rules.py", "base.py"):
            named |= set(re.findall(r'"([A-Z]+-[A-Z]+)"', file.read_text(encoding="utf-8")))
    assert named - {"NZ-NAMES"} <= RULES.keys()
    assert RULES.keys() - named == {"CONV"}


def test_every_rule_says_how_grave_it_is_and_what_to_do() -> None:
    for name, rule in RULES.items():
        assert rule.severity in ("error", "warning", "info"), name
        assert rule.meaning[0].islower() or rule.meaning.startswith(("CF", "OME", "NCZarr", "_")), name
        assert rule.fix, name


def test_a_problem_takes_severity_and_fix_from_its_rule_unless_it_says_otherwise() -> None:
    problem = Problem("CF", ("units",), "no unit", "CF-TIME")
    assert (problem.severity, problem.fix) == ("error", RULES["CF-TIME"].fix)
    assert Problem("CF", (), "x", "CF-TIME", "info", "Do nothing")[3:] == ("CF-TIME", "info", "Do nothing")
    assert Problem("mine", (), "x").rule == "CONV"
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert problem.to_json() == {
        "convention": "CF", "loc": ["units"], "message": "no unit", "rule": "CF-TIME", "severity": "error",
        "fix": RULES["CF-TIME"].fix,
    }  # fmt: skip


def test_a_check_reports_conventions_by_rule_severity_and_fix() -> None:
    store = MemoryStore()
    group = tessarr.create_group(store, attributes={"multiscales": [{"datasets": [{"path": "0"}]}]})
    group.create_array("t", shape=(2,), dtype="f4", attributes={"units": "days since never", "axis": "Q"})
    report = check(store)
    found = {finding.rule: finding for finding in report.findings}
    assert set(found) == {"CF-TIME", "CF-AXIS", "LEVEL-MISSING", "LEVEL-VERSION"}
    assert {rule: finding.severity for rule, finding in found.items()} == {
        "CF-TIME": "error", "CF-AXIS": "warning", "LEVEL-MISSING": "error", "LEVEL-VERSION": "info",
    }  # fmt: skip
    assert all(finding.fix == RULES[rule].fix for rule, finding in found.items())
    assert found["CF-TIME"].loc == ("attributes", "units")
    assert Report.from_json(json.loads(json.dumps(report.to_json()))).findings == report.findings


def test_the_rules_of_a_third_party_keep_their_severity_in_a_report() -> None:
    def broken(node: Node, path: str, hierarchy: Any) -> Iterator[Problem]:
        yield Problem("lab", ("lab",), "is empty", "LAB-1", "error", "Name the lab")
        yield Problem("lab", ("lab",), "is empty", severity="info")

    conventions.register(Convention("lab", lambda node: "lab" in node.attributes, broken))
    try:
        store = MemoryStore()
        tessarr.create_group(store, attributes={"lab": ""})
        report = check(store)
    finally:
        conventions.unregister("lab")
    assert [(item.rule, item.severity, item.fix) for item in report.findings] == [
        ("LAB-1", "error", "Name the lab"),
        ("CONV", "info", RULES["CONV"].fix),
    ]
    again = Report.from_json(json.loads(json.dumps(report.to_json())))
    assert [(item.severity, str(item)) for item in again.findings] == [
        (item.severity, str(item)) for item in report.findings
    ]
    assert "LAB-1" in str(report)


PLUGIN = """
from tessarr.conventions import Convention, Problem
def check(node, path, hierarchy):
    if "owner" not in node.attributes:
        yield Problem("owner", (), "no owner", "OWNER-1", "error", "Add an owner")
    if node.attributes.get("owner") == 1:
        raise RuntimeError("oops")
CONVENTION = Convention("owner", lambda node: node.kind == "group", check)
"""
POINTS = "[tessarr.convention]\nowner = plugin:CONVENTION\nbroken = nothing:X\nother = json:dumps\n"


def test_an_installed_package_offers_a_convention_by_an_entry_point(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    info = tmp_path / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    program = """
        import sys, warnings
        sys.path.insert(0, sys.argv[1])
        import tessarr
        from tessarr import conventions
        from tessarr.tools.check import check
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            names = conventions.conventions()
        print(*sorted(str(item.message).split("(")[0] for item in caught), sep="|")
        print("owner" in names, "broken" in names, "other" in names)
        from tessarr.stores.memory.store import MemoryStore
        store = MemoryStore()
        group = tessarr.create_group(store)
        print(*[(item.rule, item.severity, item.fix) for item in check(store).findings])
        group.attrs["owner"] = 1
        print(*[(item.rule, item.severity, item.message) for item in check(store).findings])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "the convention 'broken' |the entry point 'other' ",
        "True False False",
        "('OWNER-1', 'error', 'Add an owner')",
        "('CONV', 'info', \"owner: could not be checked: RuntimeError('oops')\")",
    ]


def test_a_convention_that_cannot_tell_whether_it_is_followed_does_not_stop_the_check() -> None:
    conventions.register(Convention("bad", lambda node: node.attributes["x"] == 1, lambda *_: []))
    try:
        assert conventions.detect(Node(kind="group", attributes={})) == ()
        (problem,) = conventions.check_node(Node(kind="group", attributes={}))
        assert "KeyError" in problem.message
    finally:
        conventions.unregister("bad")
