"""What a store can do is asked by ``isinstance`` of a Protocol; no flags, no looking at who overrides what."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tessarr.stores import protocols

from .sources import parsed

SOURCE = Path(__file__).parents[2] / "src" / "tessarr"
PUBLIC = {  # zarr-python's attributes, answered from the Protocols
    "supports_writes", "supports_deletes", "supports_listing", "supports_partial_writes",
    "supports_consolidated_metadata",
}  # fmt: skip
FORBIDDEN = re.compile(
    r"_overrides\(|_has_own\(|type\(\w+\)\.\w+ is (not )?\w|\bupdate_sees_set\b|\bis_remote\b|\b\w+_reaches_all\b|"
    r"supports_conditional\w*|getattr\(\w+, \"supports_"
)


def modules() -> list[Path]:
    # `facade` has zarr-python's own classes, `zarr_python` is a codec pipeline of zarr-python, `xarray` is a backend of
    # xarray: they name what these packages look for.
    others = {"facade", "zarr_python", "xarray"}
    return sorted(path for path in SOURCE.rglob("*.py") if not others & {*path.relative_to(SOURCE).parts})


def test_no_store_says_by_a_flag_what_it_can_do() -> None:
    found = []
    for path in modules():
        for node in ast.walk(parsed(path)):
            name = getattr(node, "attr", getattr(node, "id", None))
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [getattr(target, "attr", getattr(target, "id", "")) for target in targets]
                found += [f"{path.name}:{node.lineno} {one}" for one in names if one.startswith(("supports_", "sees_"))]
            elif isinstance(name, str) and name.startswith("supports_") and name not in PUBLIC:
                found.append(f"{path.name}:{getattr(node, 'lineno', 0)} {name}")
    assert not found, found


def test_nobody_looks_at_who_overrides_what() -> None:
    found = []
    for path in modules():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if FORBIDDEN.search(line):
                found.append(f"{path.name}:{number} {line.strip()}")
    assert not found, found


def test_no_store_rewires_the_methods_of_its_subclasses() -> None:
    rewiring = re.compile(r"__init_subclass__|setattr\((cls|\w+Store)")
    found = [path.name for path in (SOURCE / "stores").rglob("*.py") if rewiring.search(path.read_text())]
    assert not found, found


def test_no_method_is_marked_after_its_definition() -> None:
    """Only the decorator `fallback` declares something of a method, as `abc.abstractmethod` does."""
    found = []
    for path in (SOURCE / "stores").rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "setattr":
                found.append(f"{path.name}:{node.lineno} setattr")
            if (
                isinstance(node, ast.Name | ast.Attribute)
                and getattr(node, "id", getattr(node, "attr", "")) == "fallback"
            ):
                found.append(f"{path.name}: fallback")
    decorating = [
        f"{path.name}: fallback"
        for path in (SOURCE / "stores").rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Name) and decorator.id == "fallback"
    ]
    assert sorted(found) == sorted(decorating)
    assert len(decorating) > 10


def test_the_methods_of_wrappers_state_no_ability() -> None:
    """A wrapper answers for the wrapped store in one method, so that an override cannot claim an ability by mistake."""
    wrappers = SOURCE / "stores" / "wrappers"
    assert not [path.name for path in wrappers.glob("*.py") if "fallback" in path.read_text()]
    deciding = {path.name for path in wrappers.glob("*.py") if "def has_ability" in path.read_text()}
    assert deciding == {"base.py", "four_methods.py", "latency.py"}


def test_the_abilities_are_runtime_checkable_protocols() -> None:
    named = (
        "Get GetRanges FetchOne Set Delete List ListDir Size ConditionalSet ConditionalDelete RenamePrefix Lock Update "
        "Splice Remote"
    )
    for name in named.split():
        ability = getattr(protocols, name)
        assert ability._is_protocol, name
        assert not isinstance(object(), ability), name
