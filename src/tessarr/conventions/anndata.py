"""AnnData, recognised: which kind of element each node is.

    {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [164114, 40145]}

>>> read({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [3, 4]})
Element(type='csr_matrix', version='0.1.0')

Source: anndata, "On-disk format". Files of anndata 0.7 lack the encoding of many nodes, which is no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem, join

NAME = "anndata"

_MEMBERS: dict[str, tuple[str, ...]] = {
    "anndata": ("obs", "var"),
    "csr_matrix": ("data", "indices", "indptr"),
    "csc_matrix": ("data", "indices", "indptr"),
    "categorical": ("codes", "categories"),
    "nullable-integer": ("values", "mask"),
    "nullable-boolean": ("values", "mask"),
    "nullable-string-array": ("values", "mask"),
}
"""Members that an element must have."""
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "csr_matrix": ("shape",),
    "csc_matrix": ("shape",),
    "dataframe": ("_index", "column-order"),
    "categorical": ("ordered",),
    "awkward-array": ("form", "length"),
}
_ARRAYS = ("array", "string-array", "string", "numeric-scalar", "rec-array")
_GROUPS = (*_MEMBERS, "dataframe", "dict", "raw", "awkward-array")


class Element(NamedTuple):
    """What a node is."""

    type: str
    version: str


def read(attributes: Attributes) -> Element | None:
    """The kind of element; ``None`` when the node is none of AnnData's."""
    kind, version = attributes.get("encoding-type"), attributes.get("encoding-version")
    return Element(kind, str(version)) if isinstance(kind, str) and kind else None


def is_anndata(hierarchy: Hierarchy, path: str = "") -> bool:
    """Whether the group at `path` is an AnnData object; those of anndata 0.7 are known by their members."""
    node = hierarchy.get(path)
    if node is None or node.kind != "group":
        return False
    found = read(node.attributes)
    if found is not None:
        return found.type == "anndata"
    return all(join(path, name) in hierarchy for name in ("obs", "var", "X"))


def _detect(node: Node) -> bool:
    return read(node.attributes) is not None


def _check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    found = read(node.attributes)
    assert found is not None
    if "encoding-version" not in node.attributes:
        yield Problem(NAME, ("encoding-version",), "is missing", "ANNDATA-VERSION")
    if (found.type in _ARRAYS and node.kind != "array") or (found.type in _GROUPS and node.kind != "group"):
        yield Problem(
            NAME,
            ("encoding-type",),
            f"{found.type} cannot be {'an array' if node.kind == 'array' else 'a group'}",
            "ANNDATA-KIND",
        )
        return
    for name in _ATTRIBUTES.get(found.type, ()):
        if name not in node.attributes:
            yield Problem(NAME, (name,), f"is required for {found.type}", "ANNDATA-ATTRIBUTE")
    if len(hierarchy) > 1:
        members = list(_MEMBERS.get(found.type, ()))
        if found.type == "dataframe":
            columns = node.attributes.get("column-order", ())
            if not isinstance(columns, list | tuple):
                yield Problem(NAME, ("column-order",), f"must be a list of names, got {columns!r}", "ANNDATA-ATTRIBUTE")
                columns = ()
            members += [str(node.attributes.get("_index", "")), *map(str, columns)]
        for name in members:
            if name and join(path, name) not in hierarchy:
                yield Problem(NAME, ("encoding-type",), f"{found.type} has no member {name!r}", "ANNDATA-MEMBER")


CONVENTION = Convention(
    NAME, _detect, _check, spec_url="https://anndata.readthedocs.io/en/latest/fileformat-prose.html"
)
