"""Further conventions of the framework are recognised by uuid, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from tessarr.conventions import check_hierarchy, check_node, detect, framework
from tessarr.conventions.base import Node
from tessarr.conventions.recognised import registered

CASES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("license", registered.LICENSE, {"license": {"spdx": "CC-BY-4.0"}}, {"license": {"name": "?"}}),
    ("uom", registered.UOM, {"uom": {"ucum": {"unit": "m/s", "version": "2.1"}}}, {"uom": {"ucum": "m/s"}}),
    ("dggs", registered.DGGS, {"dggs": {"name": "healpix", "refinement_level": 8}}, {"dggs": {"level": 8}}),
    ("stac", registered.STAC, {"stac:item": {"id": "a"}, "stac:encoding": "json"}, {"stac:item": 3}),
]


@pytest.mark.parametrize(("name", "uuid", "right", "wrong"), CASES)
def test_a_convention_is_recognised_by_its_uuid_and_checked(name: str, uuid: str, right: Any, wrong: Any) -> None:
    node = Node(kind="group", attributes=framework.write(right, uuid))
    assert name in detect(node)
    assert not check_node(node)
    found = registered.read(node.attributes, name)
    assert found == ({"item": {"id": "a"}, "encoding": "json"} if name == "stac" else right[name])
    problems = check_node(Node(kind="group", attributes=framework.write(wrong, uuid)))
    assert [problem.convention for problem in problems] == [name]


@pytest.mark.parametrize(("name", "uuid", "right", "wrong"), CASES)
def test_words_that_a_convention_uses_do_not_make_a_node_follow_it(
    name: str, uuid: str, right: Any, wrong: Any
) -> None:
    node = Node(kind="group", attributes=right)
    assert name not in detect(node)
    assert registered.read(right, name) is None


def test_entries_by_url_are_recognised_too() -> None:
    entry = {"spec_url": "https://github.com/zarr-conventions/dggs/blob/main/README.md"}
    assert "dggs" in detect(Node(kind="group", attributes={"zarr_conventions": [entry], "dggs": {"name": "h3"}}))


def test_nz_wants_names_for_all_dimensions() -> None:
    root = Node(kind="group", attributes={"conventions": "NZ-1.0 CF-1.12"})
    assert registered.nz_version(root.attributes) == "1.0"
    assert {"NZ", "CF"} <= set(detect(root))
    named = Node(kind="array", attributes={}, shape=(3,), dimension_names=("x",))
    tree = {"": root, "x": named, "v": named, "s": Node(kind="array", attributes={})}
    assert not list(check_hierarchy(tree))
    node = Node(kind="array", attributes={}, shape=(3,))
    for place in ("v", "a/v"):
        assert [problem.convention for _, problem in check_hierarchy({**tree, place: node})] == ["NZ"]


@pytest.mark.parametrize("name", ["license", "uom", "dggs"])
@pytest.mark.parametrize("value", [None, 3, "MIT", [1]])
def test_what_is_no_object_is_told_and_not_read(name: str, value: Any) -> None:
    uuid = {case[0]: case[1] for case in CASES}[name]
    node = Node(kind="array", attributes=framework.write({name: value}, uuid))
    assert registered.read(node.attributes, name) is None
    assert [problem.loc for problem in check_node(node)] == [(name,)]
