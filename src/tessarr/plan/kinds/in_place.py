"""Make the plans that work within one place: pyramids, and digests and checks, which write nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tessarr.conventions.ome import Axis
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.open import open as open_node
from tessarr.core.stored.walk import read_entries
from tessarr.engine.choose import may_be_native
from tessarr.errors import UnsupportedOperationError
from tessarr.grids.guess import parse_nbytes
from tessarr.plan.kinds.checking import Checking, planned_check, state_of
from tessarr.plan.kinds.digesting import Digesting, planned_digests
from tessarr.plan.kinds.make import MEMORY
from tessarr.plan.kinds.pyramids import Levels, Pyramid, planned_pyramid
from tessarr.plan.manifest import Manifest, Place, new_id
from tessarr.plan.plan import Plan
from tessarr.plan.publish import check_writable, reopenable_url
from tessarr.plan.sources import identity, place_of
from tessarr.stores.local.store import LocalStore
from tessarr.stores.protocols import Delete
from tessarr.stores.url import StoreLike
from tessarr.tools.check import Level, check_documents
from tessarr.tools.pyramid import Describing, Method, check_free, levels_of, open_writable
from tessarr.tools.pyramid.levels import MIN_SIZE, Factors
from tessarr.tools.sources.zarr import ZarrSource
from tessarr.tools.staging import beside_node


def pyramid(
    group: Group | StoreLike, array: str, *, levels: int | None = None, min_size: int = MIN_SIZE, factors: Factors = 2,
    method: Method | None = None, labels: bool = False, missing: float | int | None = None,
    convention: Describing = "multiscales-0.1", names: Sequence[str] | None = None, name: str | None = None,
    axes: Sequence[Axis] | None = None, scale: Sequence[float] | None = None, translation: Sequence[float] | None = None,
    memory: int | str = MEMORY, overwrite: bool = False, verify: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> Plan:  # fmt: skip
    """Plan the levels of a pyramid; the arguments of `tessarr.tools.pyramid.build_pyramid` mean the same here.

    `memory`: the most bytes that a task may hold, its threads included. A task writes whole shards, or chunks, of a level, and
    waits only for the tasks of the level before that write what it reads. Levels get their documents, and the group its
    attributes, when all are complete; with `overwrite` existing levels are replaced then.

    Raises the errors of `build_pyramid`, `BaseZarrError` where one stored chunk needs more memory, and
    `UnsupportedOperationError` for a store that cannot delete, such as a zip file.

    >>> import tessarr, tessarr.plan
    >>> group = tessarr.create_group({})
    >>> image = group.create_array("0", data=[[1, 3], [5, 7]], chunks=(1, 1))
    >>> tessarr.plan.pyramid(group, "0", levels=1).run().finished, group["1"][...].tolist()
    (True, [[4]])
    """
    where = open_writable(group, storage_options)
    store = where._store
    if not isinstance(store, Delete):
        hint = "Build it in a directory, or in one process (tessarr.tools.pyramid)"
        raise UnsupportedOperationError("tasks cannot share a store that cannot delete", store=store.url, hint=hint)
    base, made, chosen = levels_of(
        where, array, levels=levels, min_size=min_size, factors=factors, method=method, labels=labels, missing=missing,
        names=names,
    )  # fmt: skip
    if not overwrite:
        check_free(where, made)
    number = new_id()
    found = read_entries(store, [where._join(level.name) for level in made[1:]])
    given = Pyramid(
        levels=tuple(made), documents=(), method=chosen, missing=missing, labels=labels, convention=convention, name=name,
        places=tuple(
            beside_node(one.name, number) if at.kind or isinstance(store, LocalStore) else one.name
            for one, at in zip(made[1:], found, strict=True)
        ),
        axes=None if axes is None else tuple(axes), scale=None if scale is None else tuple(scale),
        translation=None if translation is None else tuple(translation),
    )  # fmt: skip
    attributes: dict[str, object] = {**given.described(where, base)}  # what does not fit is an error here
    most, source, place = (
        parse_nbytes(memory, "memory") if isinstance(memory, str) else memory,
        ZarrSource(base),
        where._path,
    )
    nodes, given = planned_pyramid(base, given, most, streamed=isinstance(store, LocalStore) and may_be_native())
    check_writable([where._metadata.with_attributes(attributes), *given.documents])
    manifest = Manifest(
        number, "pyramid", place_of(base, source)[0], "zarr", identity(Place(""), "zarr", source),
        Place(reopenable_url(store), place), Place(reopenable_url(store), place), overwrite, verify, nodes, given.to_json(),
    )  # fmt: skip
    return Plan(manifest, Levels(manifest, source, store, place), (store, place))


def digest(
    source: StoreLike | Array | Group,
    *,
    path: str = "",
    attributes: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> Plan:
    """Plan the digests of an array, or of a group and everything below it: those of `tessarr.tools.digest.digest`.

    `source`: an opened node, or a place, and the `path` of the node in it. A task digests one block, of at most 4 Mi elements.
    `Plan.result` returns them. Raises the errors of `tessarr.open`.

    >>> import tessarr, tessarr.plan
    >>> array = tessarr.array([1, 2], store={})
    >>> plan = tessarr.plan.digest(array)
    >>> plan.run().finished, plan.result() == tessarr.tools.digest.digest(array)
    (True, True)
    """
    if isinstance(source, Array | Group):
        node: Array | Group = source
    else:
        node = open_node(source, path=path or None, mode="r", storage_options=storage_options)
    opened = ZarrSource(node)
    place, kind = place_of(node, opened)
    manifest = Manifest(
        new_id(), "digest", place, kind, identity(place, kind, opened), None, None, False, False,
        tuple(planned_digests(node)), {"attributes": attributes},
    )  # fmt: skip
    return Plan(manifest, Digesting(manifest, node, opened))


def check(
    store: StoreLike | Array | Group,
    *,
    path: str = "",
    data: Level | None = None,
    conventions: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> Plan:
    """Plan the check of a hierarchy: that of `tessarr.tools.check.check`, whose arguments mean the same here.

    A task checks the stored values of a part of an array; without `data` there is none. Documents are checked when the plan is
    made, and when it is finished. `Plan.result` returns the report.

    Raises `NodeNotFoundError` when there is nothing at `path`; problems of nodes are only reported.

    >>> import tessarr, tessarr.plan
    >>> plan = tessarr.plan.check(tessarr.array([1, 2], store={}), data="decode")
    >>> plan.run().finished, plan.result().findings
    (True, [])
    """
    where, path, _ = locate(store, path, "r", storage_options)
    _, arrays = check_documents(where, path, data, conventions=False)
    nodes = (planned_check(at, metadata) for at, metadata in arrays.items() if data is not None)
    manifest = Manifest(
        new_id(), "check", Place(reopenable_url(where), path), "zarr", state_of(where, path), None, None, False,
        False, tuple(nodes), {"data": data, "conventions": conventions},
    )  # fmt: skip
    return Plan(manifest, Checking(manifest, where, path))
