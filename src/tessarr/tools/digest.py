"""Compute digests of arrays and hierarchies from structure and values, independent of their storage.

Two copies have equal digests when their nodes, attributes, shapes, data types, dimension names, fill values and values
are the same bit for bit; Zarr format, chunks, codecs, byte order and store do not matter. So a copy can be compared with a
saved digest, without the original.

    array    SHA-256 over its description and the digests of its blocks, in C order
    block    at most 4 Mi elements, cut by a rule that depends on the shape only: leading axes first. Digest of the elements
             as little-endian bytes in C order; text as UTF-8, each with its length before it; other objects as JSON
    group    SHA-256 over its attributes and the names and digests of its members, sorted
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tessarr import registry
from tessarr.common.strict_json import plain
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.notebook.bar import shows_progress
from tessarr.dtypes.base import DataType
from tessarr.dtypes.optional import OptionalValue
from tessarr.engine.pool import for_each
from tessarr.errors import MetadataValidationError
from tessarr.indexing.boxes import Box, tiles
from tessarr.metadata.array import ArrayMetadata
from tessarr.types import AnyArray, JSONObject, Progress, Shape

BLOCK_ELEMENTS = 1 << 22
"""Elements per block. Part of the digest's definition: another number gives other digests."""
_VERSION = "tessarr-digest-1"
_ELEMENTS_AT_ONCE = 1 << 17
"""Elements that are copied at once, where they are not stored as they are digested."""


@dataclass(slots=True)
class Digest:
    """Hold the digests of a hierarchy."""

    nodes: dict[str, str] = field(default_factory=dict)
    """Path (from the digested node, which is "") → hexadecimal SHA-256."""

    @property
    def root(self) -> str:
        """The digest of the whole hierarchy."""
        return self.nodes[""]

    def differing(self, other: Digest) -> list[str]:
        """List the paths whose digests differ or that only one has, sorted; groups also when a node below differs."""
        paths = sorted(self.nodes.keys() | other.nodes.keys())
        return [path for path in paths if self.nodes.get(path) != other.nodes.get(path)]

    def __str__(self) -> str:
        return "\n".join(f"{digest}  /{path}" for path, digest in self.nodes.items())

    def to_json(self) -> JSONObject:
        """Return the digests as a JSON object."""
        return {"digest": _VERSION, "nodes": dict(self.nodes)}

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> Digest:
        """Parse the result of `to_json`. Raises `MetadataValidationError` for digests made by another rule."""
        if obj.get("digest") != _VERSION:
            raise MetadataValidationError("unknown kind of digest", expected=_VERSION, got=obj.get("digest"))
        return cls(dict(obj["nodes"]))


@shows_progress()
def digest(node: object, *, attributes: bool = True, jobs: int = 4, progress: Progress | None = None) -> Digest:
    """Compute the digests of an opened array or group and everything below it: a plan, carried out in this process.

    Without `attributes` only structure and values are digested. Memory: `jobs` blocks of `BLOCK_ELEMENTS` elements.
    """
    made: Digest = registry.higher("tessarr.plan.digest_at_once")(
        node, attributes=attributes, jobs=jobs, progress=progress
    )
    return made


def nodes_of(node: object) -> list[tuple[str, Array | Group]]:
    """List an array, or a group and everything below it, by path: the nodes in the order of `combined`."""
    if isinstance(node, Array):
        return [("", node)]
    assert isinstance(node, Group)
    return [("", node), *sorted(node.members(max_depth=None))]


def combined(nodes: Sequence[tuple[str, Array | Group]], found: Iterable[bytes], *, attributes: bool = True) -> Digest:
    """Combine the digests of blocks, those of all arrays in the order of `nodes`, to the digests of these."""
    digests = iter(found)
    tree: dict[str, dict[str, str]] = {path: {} for path, node in nodes if isinstance(node, Group)}
    made: dict[str, str] = {}
    for path, node in nodes:
        if isinstance(node, Array):
            sha = hashlib.sha256(_hash(describe(node._metadata, attributes)).encode())
            for block in islice(digests, count_blocks(node.shape)):
                sha.update(block)
            made[path] = sha.hexdigest()
    for path, node in sorted(nodes, key=lambda item: (-item[0].count("/"), item[0] == "")):
        if isinstance(node, Group):
            made[path] = _group(node, tree[path], attributes)
        if path:
            above, _, name = path.rpartition("/")
            tree[above][name] = made[path]
    return Digest(dict(sorted(made.items())))


def _group(group: Group, members: dict[str, str], attributes: bool) -> str:
    own = dict(group.attrs) if attributes else {}
    return _hash({"kind": "group", "attributes": own, "members": dict(sorted(members.items()))})


def _hash(value: object) -> str:
    text = json.dumps(plain(value), sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def describe(metadata: ArrayMetadata, attributes: bool = True) -> dict[str, object]:
    """Return the digested part of an array's metadata: without format, chunks, codecs, byte order."""
    data_type = metadata.data_type.with_byteorder("<")
    fill = metadata.fill_value if metadata.fill_value is not None else metadata.data_type.default_fill()
    own = dict(metadata.attributes) if attributes else {}
    own.pop("_ARRAY_DIMENSIONS", None)
    names = metadata.dimension_names
    return {
        "kind": "array",
        "shape": list(metadata.shape),
        "dtype": data_type.dtype.descr if data_type.dtype.names else _type_name(data_type),
        "fill_value": block_digest(fill).hex(),
        "dimension_names": None if names is None or not any(names) else list(names),
        "attributes": own,
    }


def _type_name(data_type: DataType) -> str:
    """Return the name of the data type, with the size in bytes or the unit of time."""
    if data_type.dtype.kind in "mM":
        unit, count = np.datetime_data(data_type.dtype)
        return f"{data_type.name}[{count}{unit}]"
    if isinstance(data_type, OptionalValue):
        return f"optional {_type_name(data_type.data_type)}"
    return data_type.name + str(data_type.itemsize or "")


def block_shape(shape: Shape) -> Shape:
    """Return the shape of the blocks of an array."""
    return _slab(shape, BLOCK_ELEMENTS)


def _slab(shape: Shape, elements: int) -> Shape:
    """Return the shape of the largest box of at most `elements` that is adjacent in C order."""
    lengths = list(shape)
    for axis in range(len(lengths)):
        rest = prod(lengths[axis + 1 :])
        if lengths[axis] * rest <= elements:
            break
        lengths[axis] = max(1, elements // max(rest, 1))
        if lengths[axis] > 1:
            break
    return tuple(lengths)


def blocks(shape: Shape) -> Iterator[Box]:
    """Yield the boxes into which an array of `shape` is cut, in C order.

    >>> [tuple((part.start, part.stop) for part in box) for box in blocks((3, 1 << 22))]
    [((0, 1), (0, 4194304)), ((1, 2), (0, 4194304)), ((2, 3), (0, 4194304))]
    """
    yield from tiles(shape, block_shape(shape))


def count_blocks(shape: Shape) -> int:
    """Count the blocks of an array."""
    return prod(-(-n // max(1, size)) for n, size in zip(shape, block_shape(shape), strict=True))


def block_digest(values: npt.ArrayLike) -> bytes:
    """Compute SHA-256 of one block's elements."""
    array = np.asarray(values)
    if array.dtype.kind in "OT":
        sha = hashlib.sha256()
        for item in array.reshape(-1).tolist():
            data = _object_bytes(item)
            sha.update(len(data).to_bytes(8, "little"))
            sha.update(data)
        return sha.digest()
    little, sha = array.dtype.newbyteorder("<"), hashlib.sha256()
    for box in tiles(array.shape, _slab(array.shape, _ELEMENTS_AT_ONCE)):
        piece = np.ascontiguousarray(array[box or ...].astype(little, order="C", copy=False)).reshape(-1)
        if piece.nbytes:
            sha.update(piece.view(np.uint8))
    return sha.digest()


def box_digest(values: AnyArray) -> bytes:
    """Compute SHA-256 of the digests of the blocks of a box, in the threads of the process."""
    boxes = list(blocks(values.shape))
    found = [b""] * len(boxes)

    def work(number: int) -> None:
        found[number] = block_digest(values[boxes[number] or ...])

    for_each(work, range(len(boxes)))
    return hashlib.sha256(b"".join(found)).digest()


_MISSING = b"\xff"
"""Stands for an element that is missing, or null: no text has this byte."""


def _object_bytes(item: object) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes):
        return item
    if item is None:
        return _MISSING
    return json.dumps(plain(item), sort_keys=True, default=str).encode()
