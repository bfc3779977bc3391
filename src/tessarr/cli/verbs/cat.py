"""``tessarr cat``: print the values of an array, or of a part of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tessarr.cli.places import open_array
from tessarr.cli.printing import OK, add_place, add_verb, jsonable, print_json
from tessarr.core.array import Array
from tessarr.errors import BoundsCheckError, UnsupportedOperationError
from tessarr.types import AnyArray

Axis: TypeAlias = "int | range | list[int]"
"""The selection along one axis: one index (which drops the axis), a range, or a list of indices."""

_EDGE = 3
_SUMMARY = 1000
"""Larger selections are summarized by their edges, as in NumPy; only the edges are read."""
_PIECE_NBYTES = 16 << 20


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "cat",
        summary="print the values of an array, or of a part of it",
        text="Print values. A large array is summarized by its edges, and only those are read; --all prints every value.",
        examples="""
tessarr cat data.zarr temperature
tessarr cat data.zarr temperature --slice "0, :10, ::-1"
tessarr cat data.zarr temperature -s "..., [0, 4, 7]" --csv
tessarr cat data.zarr table --field station --field value --csv
tessarr cat data.zarr temperature --raw > temperature.f32
""",
    )
    add_place(verb)
    verb.add_argument(
        "-s", "--slice", metavar="SELECTION", default="...", help='as in NumPy: "0, 2:5, ..., ::10, [1, 4]"'
    )
    verb.add_argument(
        "-f",
        "--field",
        action="append",
        default=[],
        metavar="NAME",
        help="a field of a structured array (may be repeated)",
    )
    verb.add_argument("--all", action="store_true", help="print every value")
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="comma-separated values, of one or two dimensions")
    form.add_argument("--raw", action="store_true", help="the bytes themselves: C order, little endian")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the values."""
    node = open_array(arguments.place, arguments.path, storage=arguments.storage)
    axes = parse_selection(arguments.slice, node.shape)
    if arguments.raw:
        _print_raw(node, axes, arguments.field)
    elif arguments.csv:
        _print_csv(node, axes, arguments.field)
    elif arguments.json:
        values = read(node, axes, arguments.field)
        print_json({"shape": list(values.shape), "dtype": str(values.dtype), "values": jsonable(values)})
    else:
        print(format_values(node, axes, arguments.field, everything=arguments.all))
    return OK


def parse_selection(text: str, shape: tuple[int, ...]) -> list[Axis]:
    """Parse ``"0, :10, ..."`` to one `Axis` per dimension.

    Raises `ValueError` for an invalid selection, `BoundsCheckError` for an index outside the array.

    >>> parse_selection("-1, ::2", (4, 5, 6))
    [3, range(0, 5, 2), range(0, 6)]
    """
    items = [item for item in (item.strip() for item in _split(text)) if item]
    if items.count("...") > 1:
        raise ValueError(f"more than one ... in the selection {text!r}")
    if "..." not in items:
        items.append("...")
    if len(items) - 1 > len(shape):
        raise ValueError(f"{len(items) - 1} selections for {len(shape)} dimensions: {text!r}")
    at = items.index("...")
    items[at : at + 1] = [":"] * (len(shape) - len(items) + 1)
    return [_axis(item, length, dimension) for dimension, (item, length) in enumerate(zip(items, shape, strict=True))]


def _split(text: str) -> Iterator[str]:
    """Split at the commas that are not in brackets."""
    depth, item = 0, ""
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and not depth:
            yield item
            item = ""
        else:
            item += character
    yield item


def _axis(item: str, length: int, dimension: int) -> Axis:
    try:
        if item.startswith("[") and item.endswith("]"):
            return [_index(int(index), length, dimension) for index in item[1:-1].split(",") if index.strip()]
        if ":" not in item:
            return _index(int(item), length, dimension)
        parts = [int(part) if part.strip() else None for part in item.split(":")]
        if len(parts) <= 3:
            return range(length)[slice(*parts)]
    except BoundsCheckError:
        raise
    except ValueError as error:
        if "zero" in str(error):
            raise
    raise ValueError(f"{item!r} is not an index, a slice start:stop:step or a list [i, j] (dimension {dimension})")


def _index(index: int, length: int, dimension: int) -> int:
    if not -length <= index < length:
        raise BoundsCheckError(f"index {index} is outside dimension {dimension}", expected=f"-{length} to {length - 1}")
    return index % length


def read(array: Array, axes: list[Axis], fields: list[str]) -> AnyArray:
    """Read the selected values; axes with one index are dropped."""
    if not axes:
        return _fields(np.asanyarray(array[()]), fields)
    selection = tuple(_as_selection(axis) for axis in axes)
    return _fields(np.asanyarray(array.oindex[selection]), fields)


def _as_selection(axis: Axis) -> Any:
    if isinstance(axis, range) and axis.step > 0:
        return slice(axis.start, axis.stop, axis.step)
    return axis if isinstance(axis, int) else np.asarray(axis, dtype=np.intp)


def _fields(values: AnyArray, fields: list[str]) -> AnyArray:
    if not fields:
        return values
    known = values.dtype.names
    if known is None:
        raise ValueError(f"only structured arrays have fields; this one has dtype {values.dtype}")
    missing = [name for name in fields if name not in known]
    if missing:
        raise ValueError(f"no field {', '.join(missing)}; there is {', '.join(known)}")
    return values[fields[0]] if len(fields) == 1 else values[fields]


def _lengths(axes: list[Axis]) -> list[int]:
    return [len(axis) for axis in axes if not isinstance(axis, int)]


def format_values(array: Array, axes: list[Axis], fields: list[str], *, everything: bool = False) -> str:
    """Format the values as NumPy prints them; of many values only the edges are read, unless `everything`."""
    summary = not everything and prod(_lengths(axes)) > _SUMMARY
    if summary:
        # One index between the edges makes NumPy print its dots there; its value is not shown.
        axes = [
            [*axis[: _EDGE + 1], *axis[-_EDGE:]] if not isinstance(axis, int) and len(axis) > 2 * _EDGE else axis
            for axis in axes
        ]
    values = read(array, axes, fields)
    options: dict[str, Any] = {"threshold": 0, "edgeitems": _EDGE} if summary else {"threshold": sys.maxsize}
    with np.printoptions(**options, linewidth=110):
        return str(values)


def _pieces(array: Array, axes: list[Axis], fields: list[str]) -> Iterator[AnyArray]:
    """Yield the selected values in bounded pieces along the first remaining axis."""
    first = next((d for d, axis in enumerate(axes) if not isinstance(axis, int)), None)
    if first is None:
        yield read(array, axes, fields)
        return
    axis = axes[first]
    assert not isinstance(axis, int)
    row = max(1, prod(_lengths(axes)) // max(1, len(axis)) * array.dtype.itemsize)
    whole = max(1, array.read_chunk_sizes[first][0] if array.nchunks else 1)  # a chunk is decoded once, not once a row
    step = max(1, _PIECE_NBYTES // row // whole) * whole
    for start in range(0, len(axis), step):
        yield read(array, [*axes[:first], axis[start : start + step], *axes[first + 1 :]], fields)


def _print_raw(array: Array, axes: list[Axis], fields: list[str]) -> None:
    missing = array._metadata.data_type.may_be_missing
    if missing or array.dtype.hasobject or array.dtype.kind == "T":
        raise UnsupportedOperationError(
            f"elements {'that may be missing' if missing else 'of variable length'} have no raw bytes",
            path=array.name,
            hint="Use --csv or --json",
        )
    sys.stdout.flush()
    for piece in _pieces(array, axes, fields):
        sys.stdout.buffer.write(np.ascontiguousarray(piece, dtype=piece.dtype.newbyteorder("<")).tobytes())
    sys.stdout.buffer.flush()


def _print_csv(array: Array, axes: list[Axis], fields: list[str]) -> None:
    import csv

    if len(_lengths(axes)) > 2:
        raise ValueError(
            f"--csv needs one or two dimensions, the selection has {len(_lengths(axes))}; choose with --slice"
        )
    writer = csv.writer(sys.stdout, lineterminator="\n")
    header = True
    for piece in _pieces(array, axes, fields):
        names = piece.dtype.names
        if names and header:
            writer.writerow(names)
        header = False
        for row in piece if piece.ndim else piece[np.newaxis]:
            cells = row.item() if names and not np.ndim(row) else np.atleast_1d(row)
            writer.writerow([_cell(cell) for cell in cells])


def _cell(value: object) -> object:
    if value is np.ma.masked:
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.item() if isinstance(value, np.generic) and value.dtype.kind not in "mM" else value
