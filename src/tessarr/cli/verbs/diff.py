"""``tessarr diff``: compare two hierarchies."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tessarr.cli.places import open_store
from tessarr.cli.printing import OK, PROBLEMS, add_html, add_storage, add_verb, print_json, write_html
from tessarr.cli.progress import bar
from tessarr.tools.diff import diff
from tessarr.tools.digest import Digest, digest


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "diff",
        summary="compare two hierarchies",
        text="Compare two arrays or hierarchies, of any versions: their structure, and with --data their values.\n"
        "The exit code is 1 when they differ.",
        examples="""
tessarr diff a.zarr b.zarr
tessarr diff a.zarr b.zarr --data
tessarr diff a.zarr b.zarr --ignore codecs --ignore attributes
tessarr diff a.zip/temperature b.zarr/temperature --json
tessarr diff a.zarr b.zarr --data --html differences.html
tessarr diff a.zarr --digest --json > a.json
tessarr diff copy.zarr a.json --digest
""",
    )
    verb.add_argument("a", metavar="A", help="a directory, a zip file or a URL")
    verb.add_argument("b", metavar="B", nargs="?", help="another; with --digest also a saved file of digests")
    verb.add_argument("--data", action="store_true", help="compare values too, bit by bit")
    verb.add_argument(
        "--digest",
        action="store_true",
        help="compare by digests of structure and values, which ignore the layout; without B, print them",
    )
    verb.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="MEMBER",
        help="a part to ignore, such as codecs (may be repeated)",
    )
    add_storage(verb)
    add_html(verb)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the differences."""
    if arguments.digest and arguments.html is not None:
        raise ValueError("--html shows differences, not digests")
    if arguments.digest:
        return _digests(arguments)
    if arguments.b is None:
        raise ValueError("two hierarchies are needed; one is enough only with --digest")
    a, path_a = open_store(arguments.a, storage=arguments.storage)
    b, path_b = open_store(arguments.b, storage=arguments.storage)
    with bar(nbytes=False) as progress:
        result = diff(
            a, b, data=arguments.data, ignore=arguments.ignore, path_a=path_a, path_b=path_b, progress=progress
        )
    if arguments.html is not None:
        from tessarr.cli.report_html import diff_page

        write_html(arguments.html, diff_page(result))
    if arguments.json:
        print_json(result.to_json())
    else:
        print(result)
    return OK if result.equal else PROBLEMS


def _digests(arguments: argparse.Namespace) -> int:
    """Print digests, or the paths at which they differ."""
    unknown = sorted({*arguments.ignore} - {"attributes"})
    if unknown:
        raise ValueError(
            f"a digest always ignores the layout, and can besides ignore only attributes; got {unknown[0]!r}"
        )
    a = _digest(arguments.a, arguments)
    if arguments.b is None:
        if arguments.json:
            print_json(a.to_json())
        else:
            print("\n".join(f"{value}  /{path}" for path, value in a.nodes.items()))
        return OK
    differing = a.differing(_digest(arguments.b, arguments))
    if arguments.json:
        print_json({"equal": not differing, "differing": differing})
    else:
        print("\n".join(f"/{path}: digests differ" for path in differing) or "no differences")
    return PROBLEMS if differing else OK


def _digest(place: str, arguments: argparse.Namespace) -> Digest:
    file = Path(place)
    if file.is_file() and file.suffix == ".json":
        return Digest.from_json(json.loads(file.read_text(encoding="utf-8")))
    import tessarr

    store, path = open_store(place, storage=arguments.storage)
    with bar(nbytes=False) as progress:
        node = tessarr.open(store, path=path, mode="r", use_consolidated=False)
        return digest(node, attributes="attributes" not in arguments.ignore, progress=progress)
