"""Describe the members of the fuzz targets in Python, and damage their inputs."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple


class Member(NamedTuple):
    """Hold valid inputs, the fuzzed function, and the function that damages inputs."""

    seeds: list[bytes]
    run: Callable[[bytes], None]
    damage: Callable[[bytes, random.Random], bytes]


class Target(NamedTuple):
    """Hold the members, and the reasons why others are missing."""

    members: dict[str, Member]
    missing: dict[str, str]

    def find(self, data: bytes) -> tuple[str, Member, bytes]:
        """Return the member that an input is for, and the rest of the input."""
        name, _, rest = data.partition(b"\n")
        found = name.decode("ascii", "replace")
        if found not in self.members:
            raise SystemExit(f"error: the first line of an input must be one of: {', '.join(self.members)}")
        return found, self.members[found], rest


def most_nbytes(array: Any) -> int:
    """Bytes that NumPy takes for the array or a chunk of it; an axis without elements adds none, and takes none away."""
    shapes: list[tuple[int, ...]] = [array.shape]
    with suppress(NotImplementedError):  # the chunks have many shapes, and cover the array
        shapes.append(array.shards or array.chunks)
    itemsize: int = array.dtype.itemsize
    return max(prod(max(1, length) for length in shape) for shape in shapes) * itemsize


# -- damage --------------------------------------------------------------------------------------------------------------

PLAIN: list[Any] = [
    *(0, -1, 1, 2, 255, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 10**30, 1e308, 1.5, float("nan"), float("inf")),
    *(None, True, False, "", "x", "/", "..", "\x00", "é" * 50, "a" * 5000, "NaN", "0x7fc00000", [], {}, [[]], [None]),
]


def damage_json(data: bytes, rng: random.Random) -> bytes:
    """Change one node of a JSON document: replace, remove, duplicate or wrap it; sometimes damage its text."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return damage_bytes(data, rng)
    if rng.random() < 0.08:
        return damage_bytes(data, rng)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        nodes = list(_nodes(document))
        if not nodes:
            break
        holder, name = rng.choice(nodes)
        kind = rng.randrange(9)
        if kind < 4:
            holder[name] = copy.deepcopy(rng.choice(PLAIN))
        elif kind == 4:
            other, there = rng.choice(nodes)
            try:
                holder[name] = json.loads(json.dumps(other[there]))
            except (KeyError, IndexError):
                continue
        elif kind == 5:
            del holder[name]
        elif kind == 6:
            holder[name] = [holder[name]] * rng.choice([1, 2, 40])
        elif kind == 7:
            holder[name] = {str(rng.choice(PLAIN))[:40]: holder[name]}
        elif isinstance(holder, dict):
            holder[str(name) + rng.choice(["", " ", "_", "é", "\x00"])] = holder.pop(name)
        elif isinstance(holder[name], int):
            holder[name] += rng.choice([-1, 1, 256])
    return json.dumps(document).encode()


def _nodes(node: Any) -> Iterator[tuple[Any, Any]]:
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, value in list(pairs):
        yield node, name
        yield from _nodes(value)


def damage_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, grow, repeat or overwrite bytes, mostly at the ends, which hold headers and indices."""
    if not data:
        return rng.randbytes(rng.randrange(1, 40))
    edges = [rng.randrange(min(40, len(data))), len(data) - 1 - rng.randrange(min(40, len(data)))]
    at = rng.choice([*edges, rng.randrange(len(data))])
    kind = rng.randrange(8)
    if kind <= 1:
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    if kind == 2:
        return data[:at]
    if kind == 3:
        return data[:at] + rng.randbytes(rng.randrange(1, 64)) + data[at:]
    if kind == 4:
        return data[:at] + rng.choice([b"\xff", b"\x00", b"\x7f"]) * rng.choice([1, 4, 8]) + data[at + 8 :]
    if kind == 5:
        return data[:at] + rng.randrange(2**16).to_bytes(2, "little") + data[at + 2 :]
    if kind == 6:
        other = rng.randrange(len(data))
        return data[:at] + data[other : other + rng.randrange(1, 60)] + data[at:]
    return data + data[: rng.randrange(len(data) + 1)]


def pack(values: dict[str, bytes]) -> bytes:
    """Pack several values into one input."""
    return json.dumps({key: value.decode("latin-1") for key, value in values.items()}).encode()


def unpack(data: bytes) -> dict[str, bytes]:
    """Unpack the values of `pack`."""
    return {key: value.encode("latin-1") for key, value in json.loads(data).items()}


def damage_packed(data: bytes, rng: random.Random) -> bytes:
    """Damage one or a few of the values: documents as JSON, others as bytes; sometimes exchange two."""
    values = unpack(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        key, other = rng.choice(sorted(values)), rng.choice(sorted(values))
        if rng.random() < 0.05:
            values[key] = values[other]
        elif re.search(r"(zarr\.json|\.z[a-z]+|meta|attrs|attributes\.json|info|\.tessarr_[a-z]+[.0-9a-f]*)$", key):
            values[key] = damage_json(values[key], rng)
        else:
            values[key] = damage_bytes(values[key], rng)
    return pack(values)
