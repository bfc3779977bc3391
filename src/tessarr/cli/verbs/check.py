"""``tessarr check``: find problems in stored data."""

from __future__ import annotations

import argparse
from typing import Any

from tessarr.cli.places import open_store
from tessarr.cli.printing import OK, PROBLEMS, add_html, add_place, add_verb, print_json, write_html
from tessarr.cli.progress import bar
from tessarr.tools.check import check

LEVELS = ("documents", "stat", "size", "decode")


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "check",
        summary="find problems in stored data",
        text="Check metadata against the specifications, consolidated metadata against the documents, and stored chunks.\n"
        "The exit code is 1 when there are errors or warnings.",
        examples="""
tessarr check data.zarr
tessarr check data.zarr --data --jobs 8
tessarr check data.zarr group/temperature --json
tessarr check s3://bucket/data.zarr --data documents
tessarr check huge.zarr --data --resume check.journal
tessarr check data.zarr --data --html report.html
""",
    )
    add_place(verb)
    add_level(verb)
    verb.add_argument("--jobs", type=int, metavar="N", help="chunks checked concurrently (default: 4)")
    verb.add_argument("--resume", metavar="FILE", help="record finished arrays in FILE, and resume from it")
    verb.add_argument("--no-conventions", action="store_true", help="do not check attributes against conventions")
    add_html(verb)
    verb.set_defaults(run=run)


def add_level(verb: Any) -> None:
    """Add the option for the thoroughness of the check."""
    verb.add_argument(
        "--data",
        "--level",
        dest="level",
        nargs="?",
        const="decode",
        choices=LEVELS,
        default="size",
        help="what to check: metadata only; also the stored keys; also the size of every chunk (default); "
        "also decode every chunk (also with --data alone)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the findings."""
    store, path = open_store(arguments.place, arguments.path, storage=arguments.storage)
    with bar(nbytes=False) as progress:
        report = check(
            store,
            path=path,
            data=None if arguments.level == "documents" else arguments.level,
            jobs=arguments.jobs,
            resume=arguments.resume,
            conventions=not arguments.no_conventions,
            progress=progress,
        )
    if arguments.html is not None:
        from tessarr.cli.report_html import check_page

        write_html(arguments.html, check_page(report, store))
    if arguments.json:
        print_json(report.to_json())
    else:
        print(report)
        if report.repairable:
            print(f"{len(report.repairable)} of these can be repaired; see: tessarr repair {arguments.place}")
        elif report.ok:
            print("no problems found")
    return OK if report.ok else PROBLEMS
