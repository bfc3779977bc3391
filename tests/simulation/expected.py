"""What clients must find whatever the library says: judged by the values alone, which say who wrote them.

The oracle runs the library to know what is right, and does not see what is wrong in every run of it. These rules are about rows
that were appended, blocks that a follower took, and copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.simulation.bulk_operations import rows_of
from tests.simulation.promises import ALL, ATOMIC
from tests.simulation.simulator import Crashed

FIRST_ROWS = {"a": 6, "g/b": 8, "x/t": 4, "x/v": 4}
"""How many rows arrays have at the beginning."""
_BOTH = ("a", "g/b")
APPENDS: dict[str, tuple[tuple[str, ...], int]] = {
    "append": (("a",), 3),
    "append_many": (("a",), 7),
    "append_to_shard": (("g/b",), 3),
    "transact_append": (_BOTH, 3),
    "publish": (_BOTH, 3),
    "publish_merge": (("g/b",), 3),
    "publish_nodes": (("g/b",), 3),
}
"""Operations that append their number so many times: arrays, number of rows."""
_ROOT = frozenset({"replace_root"})
REMOVES = {
    "a": _ROOT
    | {"shrink", "overwrite", "delete", "tx_move", "transact_nodes"}
    | {"copy_over", "copy_keys_over", "convert_over", "plan_over"},
    "g/b": _ROOT | {"delete_group", "replace_model", "move", "rename", "tx_delete_group"},
    "x": _ROOT,
    "n": _ROOT | {"rename"},
}
"""Node → operations after which its rows need not be there."""
_CLEARS = frozenset({"grow", "clear_chunk", "clear_part"})
_NOT_AT_ONCE = frozenset({"copy_keys", "copy_new", "convert_new"})
"""Operations of which a client that dies or fails may leave an array without its values."""
_COPIES_OVER = frozenset({"copy_over", "copy_keys_over"})
"""Copies that replace an array: others of them are waited for, or refused."""


class Ran(NamedTuple):
    """A client, and what came of it."""

    name: str
    number: int
    result: Any

    @property
    def is_acknowledged(self) -> bool:
        """Whether the client was told that everything is done."""
        return not isinstance(self.result, BaseException) and self.result is not Crashed


def unexpected(clients: Sequence[Ran], nodes: Sequence[tuple[Any, ...]]) -> str | None:
    """What is wrong with the nodes that were found; ``None`` when nothing is."""
    values = {path: content[4] for path, _, _, content in nodes if content[0] == "array"}
    said = {path: dict(attributes).get("from") for path, _, attributes, _ in nodes}
    names = {client.name for client in clients}
    rules = (
        _of_rows(clients, names, values),
        _of_dataset(clients, names, values),
        _of_followers(clients, names),
        _of_copies(clients, names, values, said),
        _of_formats(clients, names, nodes),
    )
    return next((wrong for rule in rules for wrong in rule), None)


def _of_rows(clients: Sequence[Ran], names: set[str], values: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Each append that was acknowledged is there once, in one piece; of others all rows or none; and nothing else."""
    for path in _BOTH:
        if names & REMOVES[path] or path not in values:
            continue
        rows, known = list(values[path][FIRST_ROWS[path] :]), {0}
        for client in clients:
            for piece, number in _pieces(client, path):
                known |= set(piece)
                times = sum(rows[at : at + len(piece)] == piece for at in range(len(rows)))
                there = sum(row in piece for row in rows)
                wanted = (number,) if client.is_acknowledged else (0, number)
                if times not in wanted or there != times * len(piece):
                    yield f"rows {piece} of {client.name} are {times} times in {path}: {rows}"
        if not set(rows) <= known:
            yield f"nobody appended rows of {path}: {rows}"
        if 0 in rows and not names & _CLEARS and all(client.is_acknowledged for client in clients):
            yield f"rows of {path} are fill value: {rows}"


def _pieces(client: Ran, path: str) -> Iterator[tuple[list[int], int]]:
    """The rows that a client appends at once, and how often they must be there."""
    if client.name == "appender" and path == "a":
        rows = rows_of(client.number)
        yield from ((piece, 1) for piece in (rows[:3], rows[3:4], rows[4:]))
    paths, count = APPENDS.get(client.name, ((), 0))
    if path in paths:
        yield [client.number] * count, 1


def _of_dataset(clients: Sequence[Ran], names: set[str], values: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Rows that were appended to a dataset are equal in both variables, and there once if that was acknowledged."""
    appends = [client for client in clients if client.name in ("xarray_append", "tx_xarray_append")]
    in_turn = [client for client in appends if client.name == "xarray_append"]
    if not appends or names & REMOVES["x"] or len(in_turn) > 1 or (in_turn and len(appends) > 1):
        return
    if any(not client.is_acknowledged for client in in_turn):
        return
    t, v = (list(values.get(f"x/{name}", ()))[4:] for name in ("t", "v"))
    if t != v or 0 in t:
        yield f"rows of the dataset are half: {t} and {v}"
    for client in appends:
        times = sum(t[at : at + 2] == [client.number, client.number + 1] for at in range(len(t)))
        if times not in ((1,) if client.is_acknowledged else (0, 1)):
            yield f"rows of {client.name} are {times} times in the dataset: {t}"


def _of_followers(clients: Sequence[Ran], names: set[str]) -> Iterator[str]:
    """A follower takes each row once, in order, and no fill value where nobody clears rows or fails to append."""
    for client in clients:
        if client.name not in ("follow", "follow_together") or not client.is_acknowledged:
            continue
        path = "a" if client.name == "follow" else "x"
        at = 0
        for start, stop, *columns in client.result:
            if start != at or any(len(column) != stop - start for column in columns):
                yield f"a follower has taken rows up to {at}, and then {start} to {stop}: {columns}"
            at = stop
            is_quiet = not names & (REMOVES[path] | _CLEARS | {"xarray_append"})
            if is_quiet and all(one.is_acknowledged for one in clients) and any(0 in column for column in columns):
                yield f"a follower has taken fill value for rows {start} to {stop}"


def _of_copies(
    clients: Sequence[Ran], names: set[str], values: Mapping[str, Sequence[int]], said: Mapping[str, str | None]
) -> Iterator[str]:
    """An array that says from whom it was copied has the values of that client, all of them."""
    half = [client for client in clients if client.name in _NOT_AT_ONCE and not client.is_acknowledged]
    for path in () if names & REMOVES["n"] or half else ("n", "n/s"):
        if path in values and said.get(path) is not None and set(map(str, values[path])) != {said[path]}:
            yield f"the copy from {said[path]} at {path} has other values: {values[path]}"
    died = any(client.result is Crashed for client in clients)  # and left a part of its copy
    if names <= _COPIES_OVER and said.get("a") is not None and not died:
        filled = set() if all(client.is_acknowledged for client in clients) else {"0"}
        if not set(map(str, values["a"])) - filled <= {said["a"]}:
            yield f"a has values of several copies: {values['a']}, {said['a']}"


def _of_formats(clients: Sequence[Ran], names: set[str], nodes: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """A node is described in one format, unless it is migrated, or a client died before it removed what it had created
    beside another node."""
    died = any(client.result is Crashed and ALL.get(client.name) not in ATOMIC for client in clients)
    for path, formats, *_ in nodes if "migrate_all" not in names and not died else ():
        if len(formats) > 1:
            yield f"there are nodes of two formats at {path}: {formats}"
