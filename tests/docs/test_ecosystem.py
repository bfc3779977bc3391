"""The page about the tests of others says what the kept results say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def script() -> Any:
    spec = importlib.util.spec_from_file_location("ecosystem", ROOT / "scripts" / "ecosystem.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_written_from_the_kept_results() -> None:
    ecosystem = script()
    kept = json.loads((ROOT / "scripts" / "ecosystem_results.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "ecosystem.md").read_text(encoding="utf-8") == ecosystem.page(kept)
    assert set(kept) <= set(ecosystem.projects())


def test_every_explanation_names_a_project_that_is_run() -> None:
    ecosystem = script()
    for entry in ecosystem.ledger():
        assert set(entry["projects"]) <= set(ecosystem.projects())
        assert len(entry["why"]) > 40


def test_a_difference_is_a_test_that_passes_with_zarr_python_alone(tmp_path: Path) -> None:
    ecosystem = script()
    ecosystem.BUILD = tmp_path
    project = ecosystem.Project("x", [], None, [], 100.0, {})
    (tmp_path / "results").mkdir()
    outcomes = {
        "zarr-python": {
            "a": ["passed", ""],
            "b": ["passed", ""],
            "c": ["failed", "e"],
            "d": ["passed", ""],
            "e": ["skipped", ""],
        },
        "tessarr": {"a": ["passed", ""], "b": ["failed", "no such name"], "c": ["failed", "e"]},
    }
    for mode, tests in outcomes.items():
        report = {"answered_by": mode, "version": "1", "tests": tests}
        project.result(mode).write_text(json.dumps(report), encoding="utf-8")
    found = ecosystem.compare(project, [{"projects": ["x"], "cause": "no such", "why": "a private name"}])
    assert (found.counted, found.passed) == (3, 1)
    assert found.explained == {"a private name": ["b"]}
    assert found.unexplained == ["d"]
