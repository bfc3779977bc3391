"""``tessarr migrate``: describe data in another Zarr version by metadata alone."""

from __future__ import annotations

import argparse

from tessarr.cli.places import open_store
from tessarr.cli.printing import OK, PROBLEMS, add_place, add_verb, print_json
from tessarr.cli.progress import bar
from tessarr.tools.migrate import migrate, undo


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "migrate",
        summary="convert metadata to another Zarr version without copying chunks",
        text="Describe data in another Zarr version, beside its present description; no chunk is read or written.\n"
        "The exit code of a dry run is 1 when there are blockers.",
        examples="""
tessarr migrate data.zarr --dry-run
tessarr migrate data.zarr --to 3 --verify all
tessarr migrate data.zarr --to 3 --remove-old
tessarr migrate data.zarr --undo 3
""",
    )
    add_place(verb)
    verb.add_argument("--to", type=int, choices=(2, 3), default=3, help="the version (default: 3)")
    verb.add_argument("--dry-run", action="store_true", help="only show what would be written, and the blockers")
    verb.add_argument(
        "--verify",
        choices=("sample", "all", "none"),
        default="sample",
        help="chunks read both ways before anything is written",
    )
    verb.add_argument("--remove-old", action="store_true", help="remove the old documents at the end")
    verb.add_argument("--overwrite", action="store_true", help="replace existing documents of the new version")
    verb.add_argument(
        "--undo", type=int, choices=(2, 3), metavar="VERSION", help="remove the documents of that version again"
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Migrate, and print the result."""
    store, path = open_store(arguments.place, arguments.path, storage=arguments.storage, writable=not arguments.dry_run)
    if arguments.undo:
        removed = undo(store, path=path, zarr_format=arguments.undo)
        store.close()
        if arguments.json:
            print_json({"removed": removed})
        else:
            print("\n".join([f"{len(removed)} documents removed", *(f"  {key}" for key in removed)]))
        return OK
    with bar(nbytes=False) as progress:
        result = migrate(
            store,
            to_format=arguments.to,
            path=path,
            dry_run=arguments.dry_run,
            remove_old=arguments.remove_old,
            overwrite=arguments.overwrite,
            verify=None if arguments.verify == "none" else arguments.verify,
            progress=progress,
        )
    store.close()
    if arguments.json:
        print_json(result.to_json())
    else:
        print(result)
    return PROBLEMS if result.blockers else OK
