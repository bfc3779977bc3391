"""``tessarr diff``: how two hierarchies differ."""

from __future__ import annotations

import argparse
from typing import Any

from tessarr.cli.places import open_store
from tessarr.cli.printing import OK, PROBLEMS, add_storage, add_verb, print_json
from tessarr.cli.progress import bar
from tessarr.tools.diff import diff


def add(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "diff",
        summary="how two hierarchies differ",
        text="Compare two arrays or hierarchies, of any versions: their structure, and with --data their values.\n"
        "The exit code is 1 when they differ.",
        examples="""
tessarr diff a.zarr b.zarr
tessarr diff a.zarr b.zarr --data
tessarr diff a.zarr b.zarr --ignore codecs --ignore attributes
tessarr diff a.zip/temperature b.zarr/temperature --json
""",
    )
    verb.add_argument("a", metavar="A", help="a directory, a zip file or a URL")
    verb.add_argument("b", metavar="B", help="another")
    verb.add_argument("--data", action="store_true", help="compare values too, bit by bit")
    verb.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="MEMBER",
        help="what does not count, such as codecs (may be repeated)",
    )
    add_storage(verb)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the differences."""
    a, path_a = open_store(arguments.a, storage=arguments.storage)
    b, path_b = open_store(arguments.b, storage=arguments.storage)
    with bar(nbytes=False) as progress:
        result = diff(
            a, b, data=arguments.data, ignore=arguments.ignore, path_a=path_a, path_b=path_b, progress=progress
        )
    if arguments.json:
        print_json(result.to_json())
    else:
        print(result)
    return OK if result.equal else PROBLEMS
