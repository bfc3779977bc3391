"""The marker ``spec``: which requirements of `tests/conformance/requirements.csv` a test shows.

``@pytest.mark.spec("V3-GZIP-01", "V3-GZIP-02")`` on a test, class or module (``pytestmark``). An id that is not in the
list stops the collection. ``--spec-only ID,ID`` runs only the tests of these ids, ``--spec-report FILE`` writes the
outcome of every test of every id as JSON (`scripts/conformance.py` prints it).
"""

from __future__ import annotations

import csv
import importlib.metadata
import json
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
REQUIREMENTS = Path(__file__).parent / "conformance" / "requirements.csv"

settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("project")

collect_ignore_glob = ["codecs/golden/*.py", "codecs/golden/registry/*.py", "dtypes/golden/*.py"]
"""Programs that wrote fixtures with other libraries; kept to show how, never run by tests."""


def known_ids() -> frozenset[str]:
    """Every requirement's id."""
    with REQUIREMENTS.open(encoding="utf-8", newline="") as file:
        return frozenset(row["id"] for row in csv.DictReader(file))


def spec_ids(item: pytest.Item) -> list[str]:
    """The ids a test is marked with, its class's and module's included."""
    return sorted({str(name) for marker in item.iter_markers("spec") for name in marker.args})


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption("--spec-only", default=None, metavar="ID,ID", help="run only the tests marked with these ids")
    group.addoption("--spec-report", default=None, metavar="FILE", help="write per id the outcome of its tests (JSON)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "short: a test of tests/browser that `make test` runs too")
    config.addinivalue_line("markers", "spec(*ids): the requirements of tests/conformance/requirements.csv it shows")
    path = config.getoption("--spec-report")
    if path and not hasattr(config, "workerinput"):  # under xdist the controller sees every report
        config.pluginmanager.register(SpecReport(Path(path)), "spec-report")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = known_ids()
    unknown = [f"{item.nodeid}: {name}" for item in items for name in spec_ids(item) if name not in known]
    if unknown:
        raise pytest.UsageError("ids that requirements.csv does not hold:\n  " + "\n  ".join(sorted(set(unknown))))
    for item in items:
        item.user_properties.extend(("spec", name) for name in spec_ids(item))
    only = config.getoption("--spec-only")
    if only is not None:
        wanted = set(only.split(","))
        kept = [item for item in items if wanted.intersection(spec_ids(item))]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


class SpecReport:
    """Collects the outcome of each test of each id and writes them when the run ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, dict[str, str]] = defaultdict(dict)
        self.broken: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        for key, name in report.user_properties:
            # A failing teardown outweighs the call before it.
            if key == "spec" and self.outcomes[str(name)].get(report.nodeid) != "failed":
                self.outcomes[str(name)][report.nodeid] = outcome

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and report.nodeid not in self.broken:
            self.broken.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps({"ids": self.outcomes, "broken": self.broken}), encoding="utf-8")


@pytest.fixture(scope="session", autouse=True)
def entry_points(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The entry points of this checkout are found although an older one, or none, is installed."""
    points = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    found = importlib.metadata.entry_points()
    installed = {(group, point.name) for group in points for point in found.select(group=group)}
    missing = {
        group: new
        for group, names in points.items()
        if (new := {name: value for name, value in names.items() if (group, name) not in installed})
    }
    if missing:
        place = tmp_path_factory.mktemp("metadata")
        folder = place / "tessarr_checkout-0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tessarr_checkout\nVersion: 0\n")
        lines = [
            line
            for group, names in missing.items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in names.items()))
        ]
        (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
        sys.path.append(str(place))


@pytest.fixture(autouse=True)
def registered_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    from tessarr import built_in, registry

    assert (
        built_in.TABLE.keys() == registry._TABLE.keys()
    )  # its import added the built-in names, which the copy has to have
    monkeypatch.setattr(registry, "_TABLE", {point: dict(names) for point, names in registry._TABLE.items()})
    monkeypatch.setattr(registry, "_entry_points_read", set(registry._entry_points_read))
