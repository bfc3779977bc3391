"""``tessarr pyramid``: build lower resolutions of an array, beside it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, get_args

import tessarr
from tessarr.cli.places import open_store
from tessarr.cli.printing import OK, add_storage, add_verb, lengths, print_json
from tessarr.cli.progress import bar
from tessarr.cli.verbs.convert import parse_layout
from tessarr.core.group import Group
from tessarr.stores.path import join
from tessarr.tools.pyramid import Describing, Method, build_pyramid
from tessarr.tools.pyramid.levels import MIN_SIZE

Made = TypeVar("Made")


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "pyramid",
        summary="build lower resolutions of an array, for viewers",
        text="Build the levels of a multiscale pyramid beside an array, and describe them in the group's attributes.\n"
        "Repeat the command with the same options to resume a stopped run.",
        examples="""
tessarr pyramid image.zarr 0 --convention ome-0.5 --scale 0.5,0.5
tessarr pyramid image.zarr 0 --levels 3 --method gaussian
tessarr pyramid image.zarr labels/0 --labels --factors y=2,x=2
tessarr pyramid dem.zarr elevation --missing -9999 --json
""",
    )
    add_choices(verb)
    verb.add_argument("--fresh", action="store_true", help="start over instead of resuming a stopped run")
    verb.add_argument("--jobs", type=int, default=1, metavar="N", help="pieces processed concurrently (default: 1)")
    verb.set_defaults(run=run)


def add_choices(verb: argparse.ArgumentParser) -> None:
    """Add the options of the array and its levels, which `built` reads."""
    verb.add_argument("place", metavar="PLACE", help="a directory or a URL")
    verb.add_argument("path", metavar="ARRAY", help="the array in it; its levels are made in the same group")
    add_storage(verb)
    verb.add_argument("--levels", type=int, metavar="N", help="number of new levels (default: until they are small)")
    verb.add_argument("--factors", default="2", metavar="FACTORS", help='"2", per axis "1,2,2", or by name "y=2,x=2"')
    verb.add_argument(
        "--method", choices=get_args(Method), help="how blocks are reduced (default: mean; mode for labels)"
    )
    verb.add_argument("--labels", action="store_true", help="the values are labels, which are never mixed")
    verb.add_argument("--missing", type=float, metavar="VALUE", help="a value to ignore")
    verb.add_argument(
        "--convention", choices=get_args(Describing), default="multiscales-0.1", help="how the levels are described"
    )
    verb.add_argument(
        "--min-size", type=int, default=MIN_SIZE, metavar="N", help=f"stop when no axis is longer (default: {MIN_SIZE})"
    )
    verb.add_argument("--name", metavar="NAME", help="name of the pyramid, in the description")
    verb.add_argument("--scale", metavar="SIZES", help='OME-Zarr: physical size of an element per axis, "1,0.5,0.5"')
    verb.add_argument("--overwrite", action="store_true", help="replace existing levels")


def built(arguments: argparse.Namespace, build: Callable[..., Made]) -> tuple[Group, Made]:
    """Call `build` with the group and the arguments of `build_pyramid` that the options mean; return the group and its result.

    Raises `ValueError` for options that mean nothing.
    """
    factors: Any = parse_layout(arguments.factors)
    if isinstance(factors, str) or factors is None:
        raise ValueError(f"{arguments.factors!r} are not factors; write 2, 1,2,2 or y=2,x=2")
    store, path = open_store(arguments.place, storage=arguments.storage, writable=True)
    above, _, name = join(path, arguments.path.strip("/")).rpartition("/")
    group = tessarr.open_group(store, path=above or None, mode="r+", use_consolidated=False)
    made = build(
        group,
        name,
        levels=arguments.levels,
        min_size=arguments.min_size,
        factors=factors[0] if isinstance(factors, tuple) and len(factors) == 1 else factors,
        method=arguments.method,
        labels=arguments.labels,
        missing=_number(arguments.missing),
        convention=arguments.convention,
        name=arguments.name,
        scale=_numbers(arguments.scale),
        overwrite=arguments.overwrite,
    )
    return group, made


def run(arguments: argparse.Namespace) -> int:
    """Build the levels and print them."""
    with bar() as progress:
        build = partial(build_pyramid, resume=not arguments.fresh, jobs=arguments.jobs, progress=progress)
        group, levels = built(arguments, build)
    group._store.close()
    made = [{"path": level.name, "shape": list(level.shape), "factors": list(level.total)} for level in levels]
    if arguments.json:
        print_json({"group": group.name, "convention": arguments.convention, "levels": made})
    else:
        for level in levels:
            print(f"{group.name.rstrip('/')}/{level.name}  {lengths(level.shape)}")
    return OK


def _numbers(text: str | None) -> list[float] | None:
    """Parse numbers separated by commas. Raises `ValueError`."""
    return None if text is None else [float(part) for part in text.split(",")]


def _number(value: float | None) -> float | int | None:
    """Convert a whole number to an integer: integers may be too large for exact floats."""
    return int(value) if value is not None and value.is_integer() else value
