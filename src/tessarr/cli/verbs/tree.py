"""``tessarr tree``: draw the members of a group."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tessarr.cli.places import open_node
from tessarr.cli.printing import OK, add_place, add_verb, human, lengths, print_json
from tessarr.core.array import Array
from tessarr.core.group import Group


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "tree",
        summary="draw the members of a group",
        text="Draw a hierarchy: groups, arrays, their dimensions and data types.",
        examples="""
tessarr tree data.zarr
tessarr tree data.zarr group --level 1
tessarr tree data.zarr --sizes
tessarr tree data.zarr --json
""",
    )
    add_place(verb)
    verb.add_argument("-L", "--level", type=int, metavar="N", help="go down N levels only")
    verb.add_argument("--sizes", action="store_true", help="show the bytes of each array and the bytes stored")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the tree."""
    node = open_node(arguments.place, arguments.path, storage=arguments.storage)
    if arguments.json:
        print_json(branch(node, arguments.level, arguments.sizes))
        return OK
    print(f"{node.name} {_label(node, arguments.sizes)}".rstrip())
    if isinstance(node, Group):
        for line in _lines(node, "", arguments.level, arguments.sizes):
            print(line)
    return OK


def _lines(group: Group, indent: str, level: int | None, sizes: bool) -> Iterator[str]:
    if level is not None and level <= 0:
        return
    members = group.members()
    for position, (name, node) in enumerate(members):
        stem, deeper = ("└── ", "    ") if position == len(members) - 1 else ("├── ", "│   ")
        yield f"{indent}{stem}{name} {_label(node, sizes)}".rstrip()
        if isinstance(node, Group):
            yield from _lines(node, indent + deeper, None if level is None else level - 1, sizes)


def _label(node: Array | Group, sizes: bool) -> str:
    if isinstance(node, Group):
        return ""
    label = f"{lengths(node.shape, node.dims)} {_type_name(node)}"
    if sizes:
        label += f"  {human(node.nbytes)}" if node._metadata.data_type.itemsize is not None else ""
        if node._store.supports_listing:
            label += f", stored {human(node.nbytes_stored())}"
    return label


def _type_name(array: Array) -> str:
    """Return the v3 name, or NumPy's where it is more specific (the lengths of strings, the units of times)."""
    name = array._metadata.data_type.name
    return name if "." not in name and "_" not in name else str(array.dtype)


def branch(node: Array | Group, level: int | None, sizes: bool) -> dict[str, object]:
    """Return a node and the nodes below it, as plain values."""
    if isinstance(node, Array):
        names = node.dims
        described: dict[str, object] = {
            "kind": "array",
            "shape": list(node.shape),
            "data_type": _type_name(node),
            "dimension_names": None if names is None else list(names),
        }
        if sizes:
            stored = node.nbytes_stored() if node._store.supports_listing else None
            described |= {"nbytes": node.nbytes, "nbytes_stored": stored}
        return described
    described = {"kind": "group", "zarr_format": node.zarr_format}
    if level is None or level > 0:
        deeper = None if level is None else level - 1
        described["members"] = {name: branch(member, deeper, sizes) for name, member in node.members()}
    return described
