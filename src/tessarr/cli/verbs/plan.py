"""``tessarr plan``: plan long work as tasks, which ``tessarr run`` carries out."""

from __future__ import annotations

import argparse

import tessarr.plan
from tessarr.cli.places import storage_options
from tessarr.cli.printing import OK, add_storage, add_verb, print_json
from tessarr.cli.verbs.convert import parse_layout
from tessarr.plan.make import MEMORY


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "plan",
        summary="plan long work as tasks for many machines",
        text="Plan to rewrite an array or hierarchy with other chunks. The plan is a small folder; 'tessarr run' carries it\n"
        "out, here, on dask, or in numbered parts on many machines. No credential is written to it.",
        examples="""
tessarr plan rechunk A.zarr B.zarr --chunks time=8760,lat=20,lon=20 --memory 4GB --dry-run
tessarr plan rechunk A.zarr s3://bucket/B.zarr --chunks 100,50 --save PLAN
tessarr run PLAN --part 17/1000
tessarr finish PLAN
""",
    )
    verb.add_argument("operation", choices=("rechunk",), help="the work")
    verb.add_argument("source", metavar="SOURCE", help="a directory, file or URL")
    verb.add_argument("dest", metavar="DEST", help="a directory or URL")
    add_storage(verb)
    verb.add_argument("--path", default="", metavar="PATH", help="the node in DEST (default: its root)")
    verb.add_argument("--chunks", default="keep", metavar="LAYOUT", help='"100,50", "time=100,lat=-1", "8MB" or "auto"')
    verb.add_argument("--shards", default="keep", metavar="LAYOUT", help='as --chunks, or "none"')
    verb.add_argument("--memory", default=MEMORY, metavar="SIZE", help=f"what a task may hold (default: {MEMORY})")
    verb.add_argument("--overwrite", action="store_true", help="replace what is at DEST when the work is done")
    verb.add_argument("--no-verify", action="store_true", help="do not read back what was written")
    todo = verb.add_mutually_exclusive_group(required=True)
    todo.add_argument("--save", metavar="PLAN", help="write the plan to this folder")
    todo.add_argument("--dry-run", action="store_true", help="only describe it")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make the plan, save it, and describe it."""
    options = storage_options(arguments.storage)
    plan = tessarr.plan.rechunk(
        arguments.source,
        arguments.dest,
        path=arguments.path,
        chunks=parse_layout(arguments.chunks),
        shards=parse_layout(arguments.shards),
        memory=arguments.memory,
        overwrite=arguments.overwrite,
        verify=not arguments.no_verify,
        storage_options=options,
        source_storage_options=options,
    )
    if arguments.save:
        plan.save(arguments.save, storage_options=options)
    described = plan.describe()
    if arguments.json:
        print_json(described.to_json())
    else:
        print(described)
        if arguments.save:
            print(f"saved; carry it out with: tessarr run {arguments.save}")
    return OK
