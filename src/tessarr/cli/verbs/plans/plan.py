"""``tessarr plan``: plan long work as tasks, which ``tessarr run`` carries out."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypedDict, get_args

import tessarr.plan
from tessarr.cli.places import open_node, open_store, printable_place, storage_options
from tessarr.cli.printing import OK, add_place, add_source_storage, add_storage, add_verb, note, print_json
from tessarr.cli.verbs import pyramid
from tessarr.cli.verbs.check import add_level
from tessarr.cli.verbs.convert import add_choices, add_joining, add_layout, chosen, layout_of, source_of
from tessarr.plan.kinds.make import MEMORY
from tessarr.plan.plan import Plan
from tessarr.plan.publish import options_at
from tessarr.plan.sources import options_of_source
from tessarr.plan.strategies.strategy import Name

LIKE_DEST = "; default: those of --storage, unless DEST is a URL of another scheme"


class Operation(NamedTuple):
    """An operation that is planned."""

    summary: str
    text: str
    examples: str
    add: Callable[[argparse.ArgumentParser], None]
    """Adds its options."""
    make: Callable[[argparse.Namespace], Plan]
    """Makes the plan of its options."""


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "plan",
        summary="plan long work as tasks for many machines",
        text="Plan to rewrite, copy, convert, digest or check data, or to build a pyramid. The plan is a small folder;\n"
        "'tessarr run' carries it out, here, on dask, or in numbered parts on many machines. No credential is written to it.",
        examples="""
tessarr plan rechunk A.zarr B.zarr --chunks time=8760,lat=20,lon=20 --memory 4GB --dry-run
tessarr plan rechunk A.zarr s3://bucket/B.zarr --chunks 100,50 --save PLAN
tessarr plan copy A.zarr s3://bucket/A.zarr --save PLAN
tessarr run PLAN --part 17/1000
tessarr finish PLAN
""",
    )
    operations = verb.add_subparsers(dest="operation", metavar="OPERATION", required=True)
    for name, operation in OPERATIONS.items():
        examples = operation.examples.replace("tessarr", "tessarr plan").replace("\n", " --save PLAN\n")
        one = add_verb(operations, name, summary=operation.summary, text=operation.text, examples=examples)
        operation.add(one)
        todo = one.add_mutually_exclusive_group(required=True)
        todo.add_argument("--save", metavar="PLAN", help="write the plan to this folder")
        todo.add_argument("--dry-run", action="store_true", help="only describe it")
        one.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make the plan, save it, and describe it."""
    plan = OPERATIONS[arguments.operation].make(arguments)
    if arguments.save:
        plan.save(arguments.save, storage_options=options_at(arguments.save, storage_options(arguments.storage)))
    describe(plan, json=arguments.json)
    for notice in plan.notices:
        note(f"note: {notice}")
    if arguments.save and not arguments.json:
        print(f"saved; carry it out with: tessarr run {printable_place(arguments.save)}")
    return OK


def describe(plan: Plan, *, json: bool) -> None:
    """Print what a plan costs."""
    described = plan.describe()
    if json:
        print_json(described.to_json())
    else:
        print(described)


def _add_places(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("source", metavar="SOURCE", help="a directory, file or URL")
    verb.add_argument("dest", metavar="DEST", help="a directory or URL")
    add_storage(verb)
    add_source_storage(verb, LIKE_DEST)
    verb.add_argument("--path", default="", metavar="PATH", help="the node in DEST (default: its root)")
    verb.add_argument("--overwrite", action="store_true", help="replace what is at DEST when the work is done")
    verb.add_argument("--no-verify", action="store_true", help="do not read back what was written")


def _add_memory(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--memory", default=MEMORY, metavar="SIZE", help=f"what a task may hold (default: {MEMORY})")


def _add_rechunk(verb: argparse.ArgumentParser) -> None:
    _add_places(verb)
    add_layout(verb)
    _add_memory(verb)
    verb.add_argument("--strategy", choices=get_args(Name), default="auto", help="how (default: what costs least)")
    verb.add_argument(
        "--scratch", metavar="DIR", help='a directory of each worker for intermediate arrays; "local": TMPDIR'
    )
    verb.add_argument("--dtype", metavar="TYPE", help="another data type of the same kind, such as float32")


def _rechunk(arguments: argparse.Namespace) -> Plan:
    return tessarr.plan.rechunk(
        arguments.source,
        arguments.dest,
        path=arguments.path,
        **layout_of(arguments),
        memory=arguments.memory,
        strategy=arguments.strategy,
        scratch=arguments.scratch,
        dtype=arguments.dtype,
        overwrite=arguments.overwrite,
        verify=not arguments.no_verify,
        **_options(arguments),
    )


class _Options(TypedDict):
    storage_options: Mapping[str, object] | None
    source_storage_options: Mapping[str, object] | None


def _options(arguments: argparse.Namespace) -> _Options:
    """Parse the options of the stores of DEST and SOURCE."""
    options, own = storage_options(arguments.storage), storage_options(arguments.source_storage)
    return {
        "storage_options": options_at(arguments.dest, options),
        "source_storage_options": options_of_source(arguments.source, arguments.dest, options, own),
    }


def _copy(arguments: argparse.Namespace) -> Plan:
    return tessarr.plan.copy(
        arguments.source,
        arguments.dest,
        path=arguments.path,
        overwrite=arguments.overwrite,
        verify=not arguments.no_verify,
        **_options(arguments),
    )


def _add_convert(verb: argparse.ArgumentParser) -> None:
    add_choices(verb)
    add_joining(verb)
    _add_memory(verb)


def _convert(arguments: argparse.Namespace) -> Plan:
    source, options = source_of(arguments)
    return tessarr.plan.convert(
        source,
        arguments.dest,
        **chosen(arguments),
        along=arguments.along,
        gaps=arguments.allow_gaps,
        unpack=arguments.unpack,
        memory=arguments.memory,
        storage_options=storage_options(arguments.storage),
        source_storage_options=options,
    )


def _add_pyramid(verb: argparse.ArgumentParser) -> None:
    pyramid.add_choices(verb)
    _add_memory(verb)
    verb.add_argument("--no-verify", action="store_true", help="do not read back what was written")


def _pyramid(arguments: argparse.Namespace) -> Plan:
    build = partial(tessarr.plan.pyramid, memory=arguments.memory, verify=not arguments.no_verify)
    return pyramid.built(arguments, build)[1]


def _add_digest(verb: argparse.ArgumentParser) -> None:
    add_place(verb)
    verb.add_argument("--no-attributes", action="store_true", help="digest structure and values only")


def _digest(arguments: argparse.Namespace) -> Plan:
    node = open_node(arguments.place, arguments.path, storage=arguments.storage)
    return tessarr.plan.digest(node, attributes=not arguments.no_attributes)


def _add_check(verb: argparse.ArgumentParser) -> None:
    add_place(verb)
    add_level(verb)
    verb.add_argument("--no-conventions", action="store_true", help="do not check attributes against conventions")


def _check(arguments: argparse.Namespace) -> Plan:
    store, path = open_store(arguments.place, arguments.path, storage=arguments.storage)
    level = None if arguments.level == "documents" else arguments.level
    return tessarr.plan.check(store, path=path, data=level, conventions=not arguments.no_conventions)


OPERATIONS = {
    "copy": Operation(
        "copy an array or a hierarchy, its stored chunks as they are",
        "Copy an array or a hierarchy of any version of Zarr; its chunks or shards are copied as they are stored.\n"
        "Nothing is at DEST until all is copied.",
        """tessarr copy A.zarr B.zarr
tessarr copy A.zarr s3://bucket/A.zarr
""",
        _add_places,
        _copy,
    ),
    "rechunk": Operation(
        "rewrite an array or a hierarchy with other chunks or shards",
        "Rewrite an array or a hierarchy with other chunks or shards; all else is kept.\n"
        "Nothing is at DEST until all is written.",
        """tessarr rechunk A.zarr B.zarr --chunks time=8760,lat=20,lon=20 --memory 4GB
tessarr rechunk A.zarr B.zarr --chunks 100,50 --shards 1000,500
tessarr rechunk A.zarr B.zarr --chunks 100,50 --compressor blosc:zstd:5 --dtype float32
""",
        _add_rechunk,
        _rechunk,
    ),
    "convert": Operation(
        "convert NumPy, HDF5, NetCDF, TIFF or Zarr to Zarr",
        "Convert as the verb convert does, in tasks.",
        """tessarr convert air.nc air.zarr --chunks time=100,lat=50 --memory 1GB
tessarr convert air-*.nc air.zarr --along time
""",
        _add_convert,
        _convert,
    ),
    "pyramid": Operation(
        "build lower resolutions of an array, for viewers",
        "Build the levels of a pyramid as the verb pyramid does, in tasks. Levels are seen when all are complete.",
        """tessarr pyramid image.zarr 0 --convention ome-0.5 --memory 1GB
tessarr pyramid image.zarr 0 --levels 3 --method gaussian
""",
        _add_pyramid,
        _pyramid,
    ),
    "digest": Operation(
        "compute digests of arrays and groups, which do not depend on how they are stored",
        "Compute a SHA-256 of every array and group from structure and values, whatever their format, chunks, codecs and\n"
        "store: copies have equal digests when they are the same bit for bit.",
        """tessarr digest A.zarr
tessarr digest A.zarr group/temperature --json
""",
        _add_digest,
        _digest,
    ),
    "check": Operation(
        "find problems in stored data",
        "Check metadata, keys and chunks, as the verb check does.",
        """tessarr check A.zarr --data=decode
""",
        _add_check,
        _check,
    ),
}
"""The operations that can be planned, by name."""
AT_ONCE = ("copy", "rechunk", "digest")
"""Those that are verbs of `tessarr.cli.at_once`; others have verbs of their own."""
