"""Judge what several clients came to: it must be what some order of their steps comes to, one after the other.

The oracle is the library itself, run without concurrency: the steps of the operations (`tests.simulation.operations`) in every
order, each client's own steps in theirs, until one gives the same results and the same hierarchy. The invariants:

1. *Serial.* Results and hierarchy are those of some order. A client that got an error of tessarr may also have done only the
   first of its steps, or none; one that crashed may have stopped anywhere, and is judged by 3 to 5 only. A transaction in
   object storage that got one may also have left its rows as fill value, below those of another client.
2. *Typed.* Every error is one of tessarr, or a built-in that the same operation raises in some order.
3. *Whole.* The hierarchy can be read: every document, every chunk.
4. *Followed.* Consolidated metadata say what the documents say; a client that crashed, or got no answer, may have stopped
   between a document and the consolidated one.
5. *Ended.* Every client ends; nobody waits for a lock that nobody holds.

Of transactions these are (docs/campaigns.md has the list): 1 is I5, I6 and I8, and of one whose client crashed I1 and I2;
`recover` is I2 and I4; 3 is I3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

import tessarr
from tessarr.core.stored.walk import is_staged, walk
from tessarr.errors import TessarrError
from tests.simulation.bulk_operations import IN_STEPS
from tests.simulation.expected import Ran, unexpected
from tests.simulation.operations import VOID, Operation, void, whole
from tests.simulation.promises import ATOMIC, BLIND, OTHER_CHUNKS, REQUESTS, UNPROMISED, VOIDED
from tests.simulation.simulator import Crashed, Outcome, StuckError

State = tuple[Any, ...]


UNREADABLE = "unreadable"


def observe(store: Any, known: dict[Any, State] | None = None) -> State:
    """What a reader finds: every node with its metadata and values, and where consolidated metadata are not true.

    `known`: what was found for stored values that are equal.
    """
    known = {} if known is None else known
    values = {key: bytes(value) for key in store.list() if (value := store.get(key)) is not None}
    identity = tuple(sorted(values.items()))
    if identity not in known:
        try:
            known[identity] = (tuple(_nodes(store)), *_untrue(values))
        except Exception as error:
            known[identity] = (UNREADABLE, repr(error))
    return known[identity]


def _nodes(store: Any) -> Iterator[tuple[Any, ...]]:
    for entry in walk(store, ""):
        node = tessarr.open(store, path=entry.path, mode="r", use_consolidated=False)
        attributes = tuple(sorted((key, repr(value)) for key, value in dict(node.attrs).items()))
        content: tuple[Any, ...] = ("group",)
        if isinstance(node, tessarr.Array):
            content = ("array", node.shape, node.chunks, str(node.dtype), tuple(node[...].tolist()))
        yield (entry.path, entry.formats, attributes, content)


def recover(store: Any) -> str | None:
    """Open the hierarchy for writing, which completes a transaction of a client that died; tells if readers found something
    else before."""
    try:
        before = (*_nodes(store),)
        tessarr.open_group(store, mode="r+")
        after = (*_nodes(store),)
        tessarr.open_group(store, mode="r+")
        again = (*_nodes(store),)
    except Exception as error:
        return f"I3: the hierarchy cannot be read after a crash: {error!r}"
    if before != after:
        return f"I2: readers found {before} until a transaction was completed, and then {after}"
    return None if after == again else f"I4: who completed a transaction found {after}, and the next one {again}"


_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs")


def _untrue(values: dict[str, bytes]) -> Iterator[str]:
    """Where consolidated metadata differ from the documents."""
    documents = {
        key: json.loads(value)
        for key, value in values.items()
        if key.rpartition("/")[2] in (*_DOCUMENTS, ".zmetadata") and not key.startswith("__") and not is_staged(key)
    }
    for key, document in documents.items():
        folder, slash, name = key.rpartition("/")
        below = {
            other[len(folder + slash) :]: _stripped(content)
            for other, content in documents.items()
            if other.startswith(folder + slash)
            and other.rpartition("/")[2] in _DOCUMENTS
            and (not other.endswith(".zattrs") or _has_node(documents, other))
        }
        if name == ".zmetadata":
            said = document["metadata"]
            expected = {other: content for other, content in below.items() if not other.endswith("zarr.json")}
        elif name == "zarr.json" and "consolidated_metadata" in document:
            said = {
                f"{path}/zarr.json": _stripped(content)
                for path, content in document["consolidated_metadata"]["metadata"].items()
            }
            expected = {other: content for other, content in below.items() if other.endswith("/zarr.json")}
        else:
            continue
        if said != expected:
            differ = sorted(path for path in said.keys() | expected.keys() if said.get(path) != expected.get(path))
            yield f"{key} differs from the documents {differ}"


def _has_node(documents: Collection[str], attributes: str) -> bool:
    """Whether the node with these attributes is there: in object storage they may outlive it, and are not the next one's."""
    return any(attributes.replace(".zattrs", name) in documents for name in (".zarray", ".zgroup"))


def _stripped(document: Any) -> Any:
    """A document without what consolidated metadata leave out, or write in more than one way."""
    left = {
        name: member for name, member in document.items() if name not in ("consolidated_metadata", "tessarr_append")
    }
    if not left.get("attributes", True):
        del left["attributes"]
    return left


def name_of(result: Any) -> Any:
    """A result as it is compared: of an error its type."""
    if result is Crashed:
        return "Crashed"
    return type(result).__name__ if isinstance(result, BaseException) else result


def _are_among(one: str, others: Collection[str], names: list[str]) -> bool:
    """Whether clients do `one` and, beside it, one of `others`."""
    left = [*names]
    if one not in left:
        return False
    left.remove(one)
    return any(name in others for name in left)


@dataclass(frozen=True)
class Case:
    """Clients that do one operation each, in worlds that are equal."""

    operations: tuple[tuple[Operation, int], ...]
    """Per client: the operation and the client's number."""
    make_world: Callable[[], Any] = field(compare=False)
    kind: str = ""
    """The kind of the world, where operations promise less in some."""
    zarr_format: int = 3

    @property
    def is_atomic(self) -> bool:
        """Whether every operation is promised to be there whole or not at all, also when its client dies."""
        return all(operation in ATOMIC for operation, _ in self.operations)

    @property
    def unpromised(self) -> str | None:
        """Why the operations need not be serial when they run at the same time; ``None`` when they must."""
        names = [operation.__name__ for operation, _ in self.operations]
        return next(
            (
                unpromised.reason
                for unpromised in UNPROMISED
                if self.kind in unpromised.kinds
                and self.zarr_format in unpromised.formats
                and _are_among(unpromised.one, unpromised.others, names)
            ),
            None,
        )

    @property
    def may_be_unreadable(self) -> bool:
        """Whether an array may have chunks of two shapes: where nothing is promised, or by a client that looks at nothing."""
        names = {operation.__name__ for operation, _ in self.operations}
        return bool(names & OTHER_CHUNKS) and (self.unpromised is not None or bool(names & BLIND))

    def orders(self, lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Every order of so many steps of each client, as client numbers."""
        if not any(lengths):
            yield ()
            return
        for client, left in enumerate(lengths):
            if left:
                fewer = [n - (number == client) for number, n in enumerate(lengths)]
                for rest in self.orders(fewer):
                    yield (client, *rest)


class Oracle:
    """The serial outcomes of one `Case`, computed as they are needed, and kept."""

    MOST_STEPS = 5

    def __init__(self, case: Case) -> None:
        self._case = case
        self._known: dict[tuple[int, ...], tuple[list[Any], State]] = {}
        self._found: dict[Any, State] = {}
        self._with_void: dict[tuple[tuple[str, ...], ...], Oracle] = {}
        self._steps = [self._count(number) for number in range(len(case.operations))]

    @property
    def programs(self) -> list[Callable[[Any], Any]]:
        """What the clients do."""
        return [whole(operation, number) for operation, number in self._case.operations]

    def _count(self, client: int) -> int:
        """The number of steps of a client's operation, when nothing stops it."""
        store = self._case.make_world().connect("counts")
        operation, number = self._case.operations[client]
        steps, count = IN_STEPS.get(operation, operation)(store, number), 1
        try:
            while True:
                next(steps)
                count += 1
        except StopIteration:
            return count
        except (TessarrError, *_BUILT_IN):
            return count

    def serial(self, order: tuple[int, ...]) -> tuple[list[Any], State]:
        """Results and hierarchy after these steps in this order; the result of a client with steps left is ``...``."""
        if order not in self._known:
            world = self._case.make_world()
            running = [
                IN_STEPS.get(operation, operation)(world.connect(f"serial-{client}"), number)
                for client, (operation, number) in enumerate(self._case.operations)
            ]
            results: list[Any] = [...] * len(running)
            for client in order:
                if results[client] is not ...:
                    continue
                try:
                    next(running[client])
                except StopIteration as end:
                    results[client] = end.value
                except (TessarrError, *_BUILT_IN) as error:
                    results[client] = type(error).__name__
            self._known[order] = (results, observe(world.connect("observer"), self._found))
        return self._known[order]

    def judge(self, outcome: Outcome, *, faults: bool = False, serial: bool = True) -> str | None:
        """What is wrong; ``None`` when nothing is. With `faults` a client may be told of an error after it did everything;
        without `serial` only 2 to 5 are judged."""
        for result in outcome.results:
            if isinstance(result, StuckError):
                return f"a client does not end: {result}"
            if isinstance(result, BaseException) and not isinstance(result, (TessarrError, *_BUILT_IN)):
                return f"an error that is not one of tessarr: {result!r}"
        store = outcome.bucket.connect("observer")
        wrong = recover(store) if Crashed in outcome.results else None
        found = observe(store, self._found)
        if wrong is None and found[0] == UNREADABLE:
            wrong = f"I3: the hierarchy cannot be read: {found[1]}"
        if wrong is not None:
            return None if self._case.may_be_unreadable and "CodecError" in wrong else wrong
        ran = [Ran(one.__name__, number, result) for (one, number), result in self._results(outcome)]
        if wrong := unexpected(ran, found[0]):
            return wrong
        if Crashed in outcome.results and not self._case.is_atomic:
            return None
        results = [name_of(result) for result in outcome.results]
        failed = [result is Crashed or isinstance(result, BaseException) for result in outcome.results]
        if self._case.unpromised or not serial:
            return None
        for one in self._alternatives(failed, found):
            if one._is_serial(results, failed, found, faults=faults, steps=outcome.steps):
                return None
        which = "I1, I2" if Crashed in outcome.results else "I5, I6, I8"
        return f"{which}: no order of the steps gives the results {results} and {found}"

    def _results(self, outcome: Outcome) -> Iterator[tuple[tuple[Operation, int], Any]]:
        """The clients' operations, and what came of them."""
        return zip(self._case.operations, outcome.results, strict=True)

    def _is_serial(
        self, results: Sequence[Any], failed: Sequence[bool], found: State, *, faults: bool, steps: Sequence[int]
    ) -> bool:
        """Whether some order of the steps gives these results and this hierarchy. `steps`: the order in which they ended."""
        may_be_stale = faults or "Crashed" in results
        for order in self._likely_first(failed, steps):
            expected, state = self.serial(order)
            if (state == found or (may_be_stale and state[0] == found[0])) and all(
                one == other or (raised and (other in (..., VOID) or faults or one in _UNDECIDED))
                for one, other, raised in zip(results, expected, failed, strict=True)
            ):
                return True
        return False

    def _likely_first(self, failed: Sequence[bool], steps: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The orders of `_orders`: those whose outcome is known, then that in which steps ended, then all.

        Most runs come to what the order in which their steps ended comes to, where who raised an error did not do the last
        step, or none. To work out an order takes longer than a run.
        """
        wanted = [(client, count) for client, count in enumerate(self._steps) if not failed[client]]
        yield from [order for order in self._known if all(order.count(client) == count for client, count in wanted)]
        ended = self._ended(failed, steps)
        done = [ended.count(client) for client in range(len(self._steps))]
        choices = [
            sorted({count, max(count - 1, 0), 0}) if raised else [count]
            for count, raised in zip(done, failed, strict=True)
        ]
        for lengths in sorted(product(*choices), key=sum, reverse=True):
            yield _first_of_each(ended, lengths)
        yield from self._orders(failed)

    def _ended(self, failed: Sequence[bool], steps: Sequence[int]) -> tuple[int, ...]:
        """The order in which steps ended. Where the operation is judged in more steps than it has, the last one stands for
        the rest."""
        order: list[int] = []
        for at, client in enumerate(steps):
            left = self._steps[client] - order.count(client)
            is_last = client not in steps[at + 1 :] and not failed[client]
            order += [client] * (left if is_last else min(left, 1))
        return tuple(order)

    def _alternatives(self, failed: Sequence[bool], found: State) -> Iterator[Oracle]:
        """This oracle, then those with transactions that failed replaced by their rows of fill value, which others follow."""
        yield self
        if self._case.kind not in REQUESTS:
            return
        values = {path: content[4] for path, _, _, content in found[0] if content[0] == "array"}
        names = [operation.__name__ for operation, _ in self._case.operations]
        followed = [path for path in values if any(values[path][-1:]) or (path == "a" and "grow" in names)]
        choices: list[list[tuple[str, ...]]] = []
        for name, raised in zip(names, failed, strict=True):
            paths = [path for path in VOIDED.get(name, ()) if raised and path in followed]
            choices.append([some for count in range(len(paths) + 1) for some in combinations(paths, count)])
        for chosen in product(*choices):
            if any(chosen):
                if chosen not in self._with_void:
                    changed = tuple(
                        (void(paths), number) if paths else (operation, number)
                        for paths, (operation, number) in zip(chosen, self._case.operations, strict=True)
                    )
                    self._with_void[chosen] = Oracle(replace(self._case, operations=changed))
                yield self._with_void[chosen]

    def _orders(self, failed: Sequence[bool]) -> Iterator[tuple[int, ...]]:
        """All orders of all steps, then those in which clients that raised did fewer."""
        counts = [range(count, -1 if one else count - 1, -1) for one, count in zip(failed, self._steps)]
        for lengths in product(*counts):
            yield from self._case.orders(lengths)


def _first_of_each(order: Sequence[int], lengths: Sequence[int]) -> tuple[int, ...]:
    """An order with so many steps of each client, the first ones."""
    left, found = [*lengths], []
    for client in order:
        found += [client] * (left[client] > 0)
        left[client] -= 1
    return tuple(found)


_UNDECIDED = ("Crashed", "PendingCommitError")
"""Results of a client that may have done everything."""
_BUILT_IN = (KeyError, FileNotFoundError, ValueError)
"""Errors of other kinds that operations are documented to raise."""
