"""Checking the conventions of whole hierarchies takes time in proportion to their nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tessarr.conventions import Node, base, check_hierarchy, hierarchy_of


class Counting(dict[str, Any]):
    """Attributes that count how often they are looked at."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        Counting.asked += 1
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        Counting.asked += 1
        return super().get(key, default)


def same_dimensions(number: int) -> Node:
    return Node(kind="array", attributes=Counting(units="K"), shape=(3, 4), dimension_names=("y", "x"))


def own_dimension(number: int) -> Node:
    return Node(kind="array", attributes=Counting(units="K"), shape=(3,), dimension_names=(f"a{number}",))


def groups_of_proj(number: int) -> Node:
    entry = {"uuid": "f17cb550-5864-4468-aeb7-f3180cfb622f"}
    return Node(kind="group", attributes=Counting(zarr_conventions=[entry]))


@pytest.mark.parametrize("make", [same_dimensions, own_dimension, groups_of_proj])
def test_a_node_costs_the_same_in_a_large_group_as_in_a_small_one(make: Callable[[int], Node]) -> None:
    costs = []
    for count in (50, 400):
        tree = {"": Node(kind="group", attributes={"Conventions": "CF-1.8"})}
        tree |= {f"a{number}": make(number) for number in range(count)}
        Counting.asked = 0
        list(check_hierarchy(tree))
        costs.append(Counting.asked / count)
    assert costs[1] <= 1.1 * costs[0], costs


def test_children_are_the_nodes_directly_below_a_group() -> None:
    node = Node(kind="group", attributes={})
    plain = dict.fromkeys(("", "a", "a/b", "a/b/c", "d"), node)
    for hierarchy in (plain, hierarchy_of(plain)):
        assert list(base.children("", hierarchy)) == ["a", "d"]
        assert list(base.children("a", hierarchy)) == ["a/b"]
        assert list(base.children("d", hierarchy)) == []


def test_a_hierarchy_is_read_in_the_order_it_is_given() -> None:
    def nodes() -> Iterator[tuple[str, Node]]:
        for path in ("", "b", "a"):
            yield path, Node(kind="group", attributes={"zarr_conventions": 1})

    assert [path for path, _ in check_hierarchy(dict(nodes()))] == ["", "b", "a"]
