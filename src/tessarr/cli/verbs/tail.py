"""``tessarr tail``: print the last rows of an array, and with ``--follow`` the rows to come."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import cast

from tessarr.cli.places import open_array
from tessarr.cli.printing import OK, add_place, add_verb, jsonable
from tessarr.core.streams.follow import Position, Start
from tessarr.types import AnyArray


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "tail",
        summary="print the last rows of an array, and those to come",
        text="Print the last rows along an axis. With --follow wait for rows that are appended, and print each once, in order. "
        "With --json each row is one line of JSON.",
        examples="""
tessarr tail data.zarr temperature
tessarr tail data.zarr temperature -n 3 --follow
tessarr tail s3://bucket/data.zarr temperature --follow --json --poll 10
tessarr tail data.zarr temperature --follow --position seen.json
""",
    )
    add_place(verb)
    verb.add_argument("-n", "--rows", type=int, default=10, metavar="N", help="how many of the present rows (10)")
    verb.add_argument("-f", "--follow", action="store_true", help="wait for more rows, until interrupted")
    verb.add_argument("--axis", type=int, default=0, help="the axis that grows (0)")
    verb.add_argument("--poll", type=float, default=1.0, metavar="SECONDS", help="look at least so often (1)")
    verb.add_argument("--timeout", type=float, metavar="SECONDS", help="end after so many seconds without a row")
    verb.add_argument("--settle", action="store_true", help="wait until the chunks of a row are stored")
    verb.add_argument("--position", metavar="FILE", help="go on where FILE says, and keep it up to date (JSON)")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print rows until there are no more, or the user interrupts."""
    array = open_array(arguments.place, arguments.path, storage=arguments.storage)
    with array.follow(
        axis=arguments.axis,
        start=_start(arguments),
        poll=arguments.poll,
        timeout=arguments.timeout if arguments.follow else 0,
        settle="chunks" if arguments.settle else "shape",
    ) as follower:
        for rows, block in follower:
            _print_block(rows.start, block, follower.axis, as_json=arguments.json)
            if arguments.position:
                _save(arguments.position, follower.position)
    return OK


def _start(arguments: argparse.Namespace) -> Start:
    rows: int = arguments.rows
    if arguments.position and os.path.exists(arguments.position):
        return _saved(arguments.position)
    return -1 - max(0, rows)


def _saved(path: str) -> Position:
    """Read a position. Raises `ValueError` with the name of the file where it holds none."""
    try:
        with open(path, encoding="utf-8") as file:
            saved: object = json.load(file)
        if not isinstance(saved, dict):
            raise ValueError(f"got {saved!r}")
    except ValueError as error:
        raise ValueError(
            f"{path} holds no saved position: {error}. Remove the file to begin with the last rows (-n)"
        ) from error
    return cast("Position", saved)


def _save(path: str, position: Position) -> None:
    """Replace the file in one step, so that an interrupted write leaves the old one."""
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        json.dump(position, file)
    os.replace(f"{path}.tmp", path)


def _print_block(first: int, block: AnyArray, axis: int, *, as_json: bool) -> None:
    for offset in range(block.shape[axis]):
        row = block.take(offset, axis=axis)
        if as_json:
            print(json.dumps({"row": first + offset, "value": jsonable(row)}, ensure_ascii=False, allow_nan=False))
        else:
            print(f"{first + offset}: {row}")
    sys.stdout.flush()
