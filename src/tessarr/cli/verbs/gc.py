"""``tessarr gc``: remove what nothing needs any more."""

from __future__ import annotations

import argparse
from datetime import timedelta

from tessarr.cli.places import open_store
from tessarr.cli.printing import OK, add_place, add_verb, human, print_json
from tessarr.common.counted import counted
from tessarr.tools.gc import GRACE, Garbage, gc

_WHAT = {
    "objects": "unused object",
    "leftovers": "temporary file",
    "transactions": "unfinished transaction",
    "appends": "unfinished append",
    "work": "partial result",
    "plan": "unfinished value",
}


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "gc",
        summary="remove what nothing needs any more",
        text="Remove objects that no version of an array refers to, and what stopped processes left: temporary files,\n"
        "partial results of conversions and plans, transactions, reserved rows. Of a saved plan that was not finished: what\n"
        "it wrote. Where a store tells no times, garbage is listed by the first call, and removed by one after the grace.",
        examples="""
tessarr gc data.zarr --dry-run
tessarr gc data.zarr
tessarr gc s3://bucket/data.zarr --grace 30
tessarr gc my-plan
""",
    )
    add_place(verb)
    verb.add_argument("--dry-run", action="store_true", help="count garbage, and remove nothing")
    verb.add_argument(
        "--grace", type=float, default=GRACE.days, metavar="DAYS",
        help=f"how long garbage stays (default: {GRACE.days}); 0 is safe only while no process writes",
    )  # fmt: skip
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Collect garbage, and print what was found."""
    place = arguments.place, arguments.path
    store, path = open_store(*place, storage=arguments.storage, writable=not arguments.dry_run)
    report = gc(store, path=path, dry_run=arguments.dry_run, grace=timedelta(days=arguments.grace))
    if arguments.json:
        print_json(report.to_json())
    else:
        print("\n".join(map(_line, report.items)) or "nothing here leaves garbage")
    return OK


def _line(item: Garbage) -> str:
    size = "" if item.nbytes is None else f", {human(item.nbytes)}"
    return f"{item.path}: {counted(item.unused, _WHAT[item.kind])}{size}; {item.removed} removed"
