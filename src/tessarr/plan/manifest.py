"""The manifest of a plan: what is read, what is written, and how the work is cut into tasks, as one JSON document.

Its size depends on the number of arrays, not on their sizes: task `i` is computed from the tilings. No credential is in it.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, Self

from tessarr.common import strict_json
from tessarr.core.stored.parse_cache import parse_document
from tessarr.errors import MetadataValidationError, TessarrError, UnsupportedOperationError
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.plan.strategies.strategy import Strategy, StrategyJSON
from tessarr.plan.tiling import Tiling
from tessarr.types import JSONObject, Shape

VERSION = 7
"""The version of the manifest. A plan of another version is refused."""


def new_id() -> str:
    """Return the id of a new plan: eight random hexadecimal digits."""
    return os.urandom(4).hex()


class Place(NamedTuple):
    """Where a hierarchy is: a directory, file or URL, and the path of a node in it."""

    url: str
    path: str = ""


_PLACE = {"url": str, "path": str}
_CUTS = [(int, [int])]
_STRATEGY = {
    "name": str, "why": str, "threads": int, "in_flight": int, "memory": int,
    "intermediates": [{"shards": [int], "chunks": [int]}], "blocks": _CUTS, "stages": [_CUTS],
}  # fmt: skip
_FORM = {
    "tessarr_plan": int, "id": str, "operation": str, "source": {**_PLACE, "kind": str, "identity": str},
    "target": (None, _PLACE), "work": (None, _PLACE), "overwrite": bool, "verify": bool,
    "nodes": [{"path": str, "source": str, "document": dict, "strategy": (None, _STRATEGY), "read": [int],
               "read_shards": [int], "read_itemsize": int}],
    "options": dict,
}  # fmt: skip
"""The members of the document; see `problem`."""
_NAMES: dict[object, str] = {
    str: "a string",
    int: "a number that is not negative",
    bool: "true or false",
    dict: "an object",
    None: "null",
}


def problem(value: object, form: object, at: str) -> tuple[str, str, object] | None:
    """Return what of a value differs from its form first: where, what was expected, what was found.

    A form is a type (`object` for any value; numbers are not negative), a list or an object of forms, a value, or a tuple of
    alternatives.
    """
    if isinstance(form, tuple):
        problems = [problem(value, one, at) for one in form]
        return None if None in problems else problems[-1]
    if isinstance(form, list):
        items = enumerate(value) if isinstance(value, list) else None
        if items is None:
            return at, "a list", value
        return next((found for number, one in items if (found := problem(one, form[0], f"{at}[{number}]"))), None)
    if isinstance(form, Mapping):
        if not isinstance(value, Mapping) or value.keys() != form.keys():
            return at, f"an object with the members {', '.join(form)}", value
        return next((found for name in form if (found := problem(value[name], form[name], f"{at}.{name}"))), None)
    if form is None or isinstance(form, str):
        return None if value == form else (at, "null" if form is None else form, value)
    if form is object:
        return None
    assert isinstance(form, type)
    if type(value) is not form or (isinstance(value, int) and value < 0):
        return at, _NAMES[form], value
    return None


DAMAGED = "Restore the document, or make the plan again"
"""What to do about a damaged plan."""


@contextmanager
def noticing_damage(where: str) -> Iterator[None]:
    """Raise `MetadataValidationError` in place of the errors to which a damaged document leads."""
    try:
        yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, TessarrError) as error:
        if isinstance(error, MetadataValidationError) and error.key == where and error.hint is not None:
            raise
        raise MetadataValidationError(
            "the plan is damaged", key=where, expected="what tessarr saved",
            got=str(error) if isinstance(error, TessarrError) else repr(error), hint=DAMAGED,
        ) from error  # fmt: skip


DOCUMENT = "plan.json"
"""The name of a saved plan, in its folder."""


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node that is to be written."""

    path: str
    """Path below the target."""
    source: str
    """Path below the source."""
    metadata: ArrayMetadata | GroupMetadata
    strategy: Strategy | None
    """How an array is moved; ``None`` for a group."""
    read: Shape = ()
    """The chunks that the source reads as one."""
    read_shards: Shape = ()
    """The shards of the source that hold these; empty where there are none."""
    read_itemsize: int = 0
    """Bytes of an element of the source, where elements are converted to another type; else 0."""

    @property
    def tiling(self) -> Tiling | None:
        """The boxes of the target; ``None`` for a group."""
        return None if self.strategy is None else self.strategy.stages.tilings[-1]

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return 0 if self.strategy is None else self.strategy.tasks

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return 0 if self.strategy is None else self.strategy.stages.blocks.count

    def to_json(self) -> JSONObject:
        """Return the node as JSON."""
        return {
            "path": self.path,
            "source": self.source,
            "document": self.metadata.to_dict(),
            "strategy": None if self.strategy is None else self.strategy.to_json(),
            "read": list(self.read),
            "read_shards": list(self.read_shards),
            "read_itemsize": self.read_itemsize,
        }

    @classmethod
    def from_json(
        cls,
        path: str,
        source: str,
        document: JSONObject,
        strategy: StrategyJSON | None,
        read: Sequence[int],
        read_shards: Sequence[int],
        read_itemsize: int,
    ) -> Self:
        """Parse the members of the result of `to_json`."""
        metadata = parse_document(document, group=strategy is None)
        moved = None
        if strategy is not None and isinstance(metadata, ArrayMetadata):
            moved = Strategy.from_json(metadata.shape, strategy)
        return cls(path, source, metadata, moved, tuple(read), tuple(read_shards), read_itemsize)


@dataclass(frozen=True)
class Manifest:
    """See the head of this module."""

    id: str
    operation: str
    source: Place
    kind: str
    """The format of the source; see `tessarr.tools.sources`."""
    identity: str
    """A digest of what the source was when the plan was made: its documents, or size and time of a file."""
    target: Place | None
    """``None`` for a plan that writes nothing: it has a result instead."""
    work: Place | None
    """Where tasks write; `finish` moves this to `target` where the two differ."""
    overwrite: bool
    verify: bool
    nodes: tuple[PlannedNode, ...]
    options: JSONObject = field(default_factory=dict)
    """What else the operation needs."""

    @property
    def intermediates(self) -> str:
        """The name of the place of intermediate arrays, below that where tasks write."""
        return f"{self.id}.stages"

    @property
    def files(self) -> str:
        """The name of the table of scanned files: in the folder of a saved plan, else below the place where tasks write."""
        return f"{self.id}.files"

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return self._ends[-1] if self._ends else 0

    @cached_property
    def _ends(self) -> list[int]:
        """The number of tasks of each node and those before it."""
        return list(accumulate(node.tasks for node in self.nodes))

    def locate(self, task: int) -> tuple[PlannedNode, int]:
        """Return the node that a task writes to, and the number of its box. Raises `IndexError`."""
        if not 0 <= task < self.tasks:
            raise IndexError(f"task {task} of {self.tasks}")
        node = bisect_right(self._ends, task)
        return self.nodes[node], task - (self._ends[node - 1] if node else 0)

    @property
    def blocks(self) -> int:
        """The number of blocks, none of which depends on another."""
        return sum(node.blocks for node in self.nodes)

    @property
    def stages(self) -> int:
        """The most stages that an array is moved in; 1 where nothing is to be moved."""
        found = (len(node.strategy.ranges(0)) for node in self.nodes if node.strategy is not None and node.blocks)
        return max(found, default=1)

    def tasks_of_blocks(self, wanted: range) -> Iterator[tuple[range, ...]]:
        """Yield the tasks of blocks, stage by stage."""
        tasks = 0
        for node, blocks in self._arrays():
            for block in range(max(0, wanted.start - blocks.start), min(len(blocks), wanted.stop - blocks.start)):
                assert node.strategy is not None
                found = node.strategy.ranges(block)
                yield tuple(range(tasks + stage.start, tasks + stage.stop) for stage in found)
            tasks += node.tasks

    def locate_block(self, block: int) -> tuple[PlannedNode, int]:
        """Return the node that a block is of, and its number there. Raises `IndexError`."""
        for node, blocks in self._arrays():
            if block in blocks:
                return node, block - blocks.start
        raise IndexError(f"block {block} of {self.blocks}")

    def _arrays(self) -> Iterator[tuple[PlannedNode, range]]:
        """Yield the arrays, and the numbers of their blocks."""
        first = 0
        for node in self.nodes:
            stop = first + node.blocks
            yield node, range(first, stop)
            first = stop

    def dumps(self) -> bytes:
        """Return the manifest as a JSON document. Raises `UnsupportedOperationError` for places that only this process has."""
        for what, place in (("source", self.source), ("target", self.target)):
            if place is not None and not place.url:
                raise UnsupportedOperationError(
                    f"the {what} of this plan exists in this process only",
                    hint="Save plans between directories, files and URLs; run this one with plan.run()",
                )
        return strict_json.dumps(
            {
                "tessarr_plan": VERSION,
                "id": self.id,
                "operation": self.operation,
                "source": {
                    "url": self.source.url,
                    "path": self.source.path,
                    "kind": self.kind,
                    "identity": self.identity,
                },
                "target": None if self.target is None else self.target._asdict(),
                "work": None if self.work is None else self.work._asdict(),
                "overwrite": self.overwrite,
                "verify": self.verify,
                "nodes": [node.to_json() for node in self.nodes],
                "options": self.options,
            },
            allow_nan=True,  # of attributes; whether such documents are written was decided when the plan was made
        )

    @classmethod
    def loads(cls, data: bytes, *, where: str) -> Self:
        """Parse a manifest. Raises `MetadataValidationError` for anything else, and for a plan of another version.

        See `tessarr.plan.kinds.load`, which also checks what its operation needs.
        """
        obj = strict_json.loads(data, key=where, allow_nan=True)
        if not isinstance(obj, dict) or "tessarr_plan" not in obj:
            raise MetadataValidationError(
                "this is not a plan of tessarr", key=where, expected="an object with the member tessarr_plan",
                got=repr(obj)[:80], hint="Load the folder that plan.save wrote",
            )  # fmt: skip
        version = obj["tessarr_plan"]
        if version != VERSION:
            raise MetadataValidationError(
                "the plan was made by another version of tessarr", key=where, expected=VERSION, got=repr(version),
                hint="Make the plan again",
            )  # fmt: skip
        if found := problem(obj, _FORM, "plan"):
            at, expected, got = found
            raise MetadataValidationError(
                f"the plan is damaged at {at}", key=where, expected=expected, got=repr(got)[:80], hint=DAMAGED
            )
        with noticing_damage(where):
            source = obj["source"]
            target, work = (None if obj[name] is None else Place(**obj[name]) for name in ("target", "work"))
            return cls(
                obj["id"], obj["operation"], Place(source["url"], source["path"]), source["kind"], source["identity"],
                target, work, obj["overwrite"], obj["verify"],
                tuple(PlannedNode.from_json(**node) for node in obj["nodes"]), obj["options"],
            )  # fmt: skip
