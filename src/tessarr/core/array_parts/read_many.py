"""Read from several arrays at once, so that arrays in one remote store share their round trips."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tessarr.core.array import Array
from tessarr.engine.base import ReadPlan
from tessarr.engine.bound import Access, BoundArray
from tessarr.engine.run import run, run_async
from tessarr.indexing import request as requests
from tessarr.indexing.base import Request
from tessarr.indexing.selection import Selection
from tessarr.stores.base import Store
from tessarr.types import AnyArray, Fields, SelectionLike

if TYPE_CHECKING:
    from tessarr.core.array_parts.lazy_view import View


class ArrayRead(NamedTuple):
    """A read of one array: what is requested, and the memory for it."""

    array: Array
    bound: BoundArray
    request: Request
    fields: Fields
    full: AnyArray
    """Memory for the selection, at full rank."""
    direct: bool = False
    """`full` is a view of `out`."""
    out: AnyArray | None = None
    """The caller's memory for the result; ``None``: the result is new."""

    @classmethod
    def of_view(cls, view: View, wanted: Request, out: AnyArray) -> Self:
        """Read into `out` what `wanted` requests from a view. Raises `BoundsCheckError` where the array has become shorter."""
        array, transform = view._array, view._transform
        bound = array._bound
        request = transform.request(lambda _: wanted).as_request(bound.shape)
        full, direct = array._full(request, out, view._fields)
        return cls(array, bound, request, view._fields, full, direct, out)

    def result(self) -> Any:
        """Return what was read, after `full` was filled; fills `out`."""
        return self.array._finish(self.request, self.full, self.direct, self.out, self.fields)

    def target(self) -> tuple[BoundArray, Selection, AnyArray]:
        """Return the arguments of `Engine.read`: bound array, selection, output."""
        return self.bound, self.request.selection, self.full


def read_many(items: Iterable[tuple[Array, SelectionLike]]) -> list[Any]:
    """Read ``(array, selection)`` pairs. Returns the results in order, each equal to ``array[selection]``.

    Arrays of remote stores are read together: all shard indexes in one round of requests, all data in the next,
    however many arrays, selections and stores there are. Other arrays are read one after another.

    Raises the errors of ``array[selection]``; of several errors, one.

    >>> import numpy as np, tessarr
    >>> group = tessarr.group()
    >>> a, b = group.create_array("a", data=np.arange(4)), group.create_array("b", data=np.arange(6.0))
    >>> tessarr.read_many([(a, np.s_[1:3]), (b, 5), (a, ...)])
    [array([1, 2]), np.float64(5.0), array([0, 1, 2, 3])]
    """
    wanted = [_read_of(array, selection) for array, selection in items]
    carry_out(wanted)
    return [one.result() for one in wanted]


async def read_many_async(items: Iterable[tuple[Array, SelectionLike]]) -> list[Any]:
    """Read several selections as `read_many`, of all stores concurrently."""
    wanted = [_read_of(array, selection) for array, selection in items]
    await carry_out_async(wanted)
    return [one.result() for one in wanted]


def carry_out(wanted: list[ArrayRead]) -> None:
    """Fill the memory of several reads: those of remote stores together."""
    local, remote = _by_store(wanted)
    for one in local:
        one.array._engine.read(*one.target())
    if len(remote) > 1:
        from tessarr.stores.remote import loop

        loop.run(loop.gather_or_cancel([run_async(plans, access) for access, plans in remote.values()]))
        return
    for access, plans in remote.values():
        run(plans, access)


async def carry_out_async(wanted: list[ArrayRead]) -> None:
    """Fill the memory of several reads, of all stores concurrently."""
    from tessarr.stores.remote.loop import gather_or_cancel

    local, remote = _by_store(wanted)
    reads = [one.array._engine.read_async(*one.target()) for one in local]
    await gather_or_cancel([*reads, *(run_async(plans, access) for access, plans in remote.values())])


def _read_of(array: Array, selection: SelectionLike) -> ArrayRead:
    if not isinstance(array, Array):
        raise TypeError(f"read_many takes (array, selection) pairs, got a {type(array).__name__}")
    bound = array._bound  # read once: another thread may resize the array meanwhile
    fields, request = requests.with_fields(selection, bound.shape)
    out, _ = array._full(request, None, None)
    return ArrayRead(
        array,
        bound,
        request,
        fields[0] if fields and len(fields) == 1 else fields,
        out,
    )


def _by_store(wanted: list[ArrayRead]) -> tuple[list[ArrayRead], dict[Store, tuple[Access, list[ReadPlan]]]]:
    """Separate reads of local and in-process stores, each run by itself, from read plans grouped by remote store."""
    local: list[ArrayRead] = []
    remote: dict[Store, tuple[Access, list[ReadPlan]]] = {}
    for one in wanted:
        access = one.bound.access
        if access.remote:
            remote.setdefault(access.store, (access, []))[1].append(one.array._engine.plan_read(*one.target()))
        else:
            local.append(one)
    return local, remote
