"""``tessarr bridge``: describe an N5 container as Zarr v3 too, or Zarr v3 as N5, by metadata alone."""

from __future__ import annotations

import argparse

from tessarr.cli.places import open_store
from tessarr.cli.printing import OK, add_place, add_verb, print_json
from tessarr.common.counted import counted
from tessarr.core.creation.bridge import bridge


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "bridge",
        summary="describe N5 as Zarr v3 too, or Zarr as N5, without copying blocks",
        text="Write the documents of the other format beside those that are there: zarr.json in an N5 container, or\n"
        "attributes.json where the chunks of Zarr arrays are blocks of N5. Both programs then read the same blocks.",
        examples="""
tessarr bridge cells.n5 --dry-run
tessarr bridge cells.n5
tessarr bridge cells.n5 --overwrite
""",
    )
    add_place(verb)
    verb.add_argument("--dry-run", action="store_true", help="only show what would be written")
    verb.add_argument("--overwrite", action="store_true", help="replace existing documents of the other format")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the documents, and print their keys."""
    store, path = open_store(arguments.place, arguments.path, storage=arguments.storage, writable=not arguments.dry_run)
    keys = bridge(store, path=path, dry_run=arguments.dry_run, overwrite=arguments.overwrite)
    store.close()
    if arguments.json:
        print_json({"written": [] if arguments.dry_run else keys, "documents": keys})
    else:
        outcome = "would be written" if arguments.dry_run else "written"
        print("\n".join([f"{counted(len(keys), 'document')} {outcome}", *(f"  {key}" for key in keys)]))
    return OK
