"""What the documentation lists is what there is: names, decisions, links, commands."""

from __future__ import annotations

import csv
import importlib.util
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest

import tessarr
from tessarr import registry
from tessarr.settings import DEFAULTS
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.zip.store import ZipStore
from tests.docs.pages import PAGES, ROOT, anchors, blocks, links, prose
from tests.native.far import FarStore

DOCS = ROOT / "docs"


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def words(name: str) -> set[str]:
    """Everything that a page sets in code."""
    return set(re.findall(r"`([^`\n]+)`", prose(ROOT / name)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = unquote(target).partition("#")
        leads_to = (page.parent / name).resolve() if name else page
        assert leads_to.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(leads_to), f"{page.name} links to {target}"


def test_the_index_names_every_page() -> None:
    linked = {(DOCS / target).resolve() for target in links(DOCS / "index.md") if ":" not in target}
    missing = [page.name for page in DOCS.glob("*.md") if page.name != "index.md" and page.resolve() not in linked]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), flags=re.M))
    shell = "".join(block.text for block in blocks(page) if block.language in ("sh", "console"))
    named = set(re.findall(r"`make ([a-z-]+)", prose(page))) | set(re.findall(r"^make ([a-z-]+)", shell, flags=re.M))
    assert named <= targets


def test_every_data_type_is_in_the_table() -> None:
    listed = words("docs/data-types.md")
    floats = [name for name in listed if name.startswith(("float8", "float6", "float4"))]
    listed |= {f"complex_{name}" for name in floats}
    assert set(registry.names("data_type")) - {name for name in registry.names("data_type") if "." in name} <= listed


def test_every_codec_is_in_a_table() -> None:
    listed = {name.removesuffix("*") for name in words("docs/codecs.md")}
    assert {name.removeprefix("numcodecs.") for name in registry.names("codec")} <= listed


def test_every_error_is_in_the_table() -> None:
    names = {
        name
        for name, value in vars(tessarr.errors).items()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == "tessarr.errors"
    }
    assert names - {"TessarrError"} <= words("docs/errors.md")


def test_every_store_is_named() -> None:
    from tessarr import storage

    classes = {name for name in storage.__all__ if name[0].isupper()} - {
        "Store",
        "StoreLike",
        "StorePath",
        "WrapperStore",
        "ForwardingStore",
        "AsyncStore",
        "ANY",
    }
    assert classes <= words("docs/stores.md")


def test_every_gap_of_the_specifications_has_its_decision() -> None:
    with (ROOT / "tests" / "conformance" / "requirements.csv").open(encoding="utf-8", newline="") as file:
        gaps = {row["id"] for row in csv.DictReader(file) if row["level"] == "GAP" or "(GAP)" in row["requirement"]}
    told = set(re.findall(r"^\| ([A-Z0-9]+-[A-Z0-9-]+) \|", text_of("docs/decisions.md"), flags=re.M))
    assert gaps == told


def test_every_decision_about_data_of_others_is_told() -> None:
    decisions = tomllib.loads(text_of("scripts/fixtures_decisions.toml"))["decision"]
    assert set(decisions) <= words("docs/decisions.md")


def test_the_settings_named_in_the_documentation_exist() -> None:
    for page in DOCS.glob("*.md"):
        for name in re.findall(r"config\.set\(\{\"([a-z_.]+)\"", page.read_text(encoding="utf-8")):
            branch = name.partition(".")[0]
            assert branch in DEFAULTS, f"{page.name}: {name}"


def test_the_changelog_speaks_of_this_version() -> None:
    assert f"## [{tessarr.__version__}]" in text_of("CHANGELOG.md")


def test_every_test_that_the_ledger_names_exists() -> None:
    short = {"S": "tests/safety/test_data_loss.py", "H": "tests/safety/test_hostile.py"}
    named = re.findall(r"`([\w/.]+)::(test_\w+)`", text_of("CORRECTNESS.md"))
    assert len(named) > 50
    named += re.findall(r"`([\w/.]+)::(test_\w+)`", text_of("CONTRIBUTING.md"))
    for file, name in named:
        path = ROOT / short.get(file, file)
        assert f"def {name}(" in path.read_text(encoding="utf-8"), f"{path}::{name}"


def test_no_page_denies_a_store_that_the_native_engine_serves(tmp_path: Path) -> None:
    pytest.importorskip("tessarr._native", reason="the Rust module was not built: no Rust toolchain or crate registry")
    stores: dict[str, Store] = {"local": LocalStore(tmp_path / "z"), "zip": ZipStore(tmp_path / "z.zip", mode="w")}
    stores |= {"remote": FarStore(), "memory": MemoryStore()}
    for store in stores.values():
        assert tessarr.create_array(store, shape=4, dtype="i4").engine.name == "native"
    denial = re.compile(r"native\s+engine\s+(?:does\s+not|cannot|never)\s+(?:serve|read|write|support)s?\s+([^.:]*)")
    for page in PAGES:
        for denied in denial.findall(prose(page)):
            assert not set(stores) & set(re.findall(r"\w+", denied)), f"{page.name}: the native engine and {denied}"


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    in_navigation = re.findall(r"^ *- ([\w-]+\.md)$", text_of("mkdocs.yml"), flags=re.M)
    assert sorted(in_navigation) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_every_verb_of_the_command_line_is_in_the_table() -> None:
    from tessarr.cli import VERBS

    told = re.findall(r"^\| `(\w+)` \|", text_of("docs/command-line.md"), flags=re.M)
    assert told == list(VERBS)


def test_every_rule_of_the_check_is_explained_with_its_severity() -> None:
    from tessarr.tools.check import RULES

    told = dict(re.findall(r"^\| `([A-Z0-9-]+)` \| ([EWI]) \|", text_of("docs/checking.md"), flags=re.M))
    assert told == {rule: severity[0].upper() for rule, (severity, _) in RULES.items()}


def test_the_counts_of_requests_are_those_that_the_script_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for round trips, which are times; `tests/stores/remote/test_round_trips.py` counts those."""
    spec = importlib.util.spec_from_file_location("request_counts", ROOT / "scripts" / "request_counts.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "LATENCY_S", 0.001)
    script.nodes_table()
    script.layouts_table()
    line = re.compile(r"^ +(\S.*?) +(\d+) requests +\d+ round trips +([\d,]+) kB$", re.M)
    printed = line.findall(capsys.readouterr().out)
    assert len(printed) > 25
    written = line.findall(text_of("docs/object-storage.md"))
    if tessarr.create_array({}, shape=(1,), dtype="u1").engine.name != "native":
        # The reference engine keeps no parts of shards decoded, and fetches them again.
        printed, written = ([row for row in rows if "again" not in row[0]] for rows in (printed, written))
    assert sorted(written) == sorted(printed)
