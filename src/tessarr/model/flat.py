"""Convert a model to a flat map, path → node without members, and back. Consolidated metadata is this map (ZEP 6,
"Implementing consolidated metadata").

>>> from tessarr.model.node import ArraySpecV2, GroupSpec
>>> array = ArraySpecV2(shape=[1], chunks=[1], dtype="|u1", compressor=None)
>>> tree = GroupSpec(zarr_format=2, members={"g": GroupSpec(zarr_format=2, members={"x": array})})
>>> list(flatten(tree)), unflatten(flatten(tree)) == tree
(['', 'g', 'g/x'], True)
"""

from __future__ import annotations

from collections.abc import Mapping

from tessarr.errors import ContainsArrayError, NodeNotFoundError
from tessarr.model.node import GroupSpec, Spec, walk
from tessarr.types import JSONObject


def flatten(spec: Spec) -> dict[str, Spec]:
    """Map the path of every node (the root under "") to the node, groups without members, parents before children."""
    return {
        path: node.with_(members={}) if isinstance(node, GroupSpec) else node
        for path, node in walk(spec)
    }  # fmt: skip


def unflatten(nodes: Mapping[str, Spec]) -> Spec:
    """Build the tree of a flat map, in any order; paths may begin with a slash.

    Raises `NodeNotFoundError` when a node's parent is not in the map, `ContainsArrayError` when it is an array.
    """
    flat = {path.strip("/"): node for path, node in nodes.items()}
    if "" not in flat:
        raise NodeNotFoundError("the flat model has no root", expected='a node under ""', got=sorted(flat)[:5])
    children: dict[str, dict[str, str]] = {}
    for path in flat:
        if path:
            parent, _, name = path.rpartition("/")
            if parent not in flat:
                raise NodeNotFoundError("a node of the flat model has no parent", path=path, expected=repr(parent))
            if not isinstance(flat[parent], GroupSpec):
                raise ContainsArrayError("an array cannot have members", path=parent, got=name)
            children.setdefault(parent, {})[name] = path

    def build(path: str) -> Spec:
        node = flat[path]
        if not isinstance(node, GroupSpec):
            return node
        return node.with_(members={name: build(child) for name, child in children.get(path, {}).items()})

    return build("")


def consolidated(spec: GroupSpec[object, object]) -> JSONObject:
    """Make the consolidated metadata of the hierarchy: v3, the ``consolidated_metadata`` object; v2, ``.zmetadata``."""
    from tessarr.metadata.consolidated import dump_v2, dump_v3

    nodes = {path: node.documents() for path, node in flatten(spec).items()}
    return dump_v3(nodes) if spec.zarr_format == 3 else dump_v2(nodes)
