"""The kinds of plans: what their tasks do, what they cost, and what becomes of them when they have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from tessarr.plan.kinds.checking import open_check
from tessarr.plan.kinds.copying import Copying
from tessarr.plan.kinds.digesting import Digesting, described_reads
from tessarr.plan.kinds.pyramids import Levels, described_levels, discard_levels, needs_of
from tessarr.plan.manifest import Manifest
from tessarr.plan.markers import Receipt
from tessarr.plan.predict import Description, described
from tessarr.plan.publish import discard
from tessarr.plan.sources import reopened
from tessarr.plan.task import Work, Worker
from tessarr.stores.path import join
from tessarr.stores.url import store_from
from tessarr.tools.check.report import Report
from tessarr.tools.digest import Digest
from tessarr.tools.sources.zarr import ZarrSource
from tessarr.types import JSONObject

StorageOptions: TypeAlias = Mapping[str, object] | None


class Kind(NamedTuple):
    """What belongs to an operation."""

    open: Callable[[Manifest, StorageOptions], Work]
    """Opens the places of a plan. Raises `ConflictError` when the source has changed since the plan was made."""
    describe: Callable[[Manifest], Description]
    parse: Callable[[JSONObject], Digest | Report] | None = None
    """Parses the result of a plan that writes nothing."""
    needs: Callable[[Manifest], Callable[[int], Iterable[int]]] | None = None
    """Returns a function of the tasks that a task waits for; without it, a stage waits for the stage before in its block."""
    discard: Callable[[Manifest, StorageOptions], None] = discard
    """Removes what tasks wrote that is not the result."""


def _writing(work: Callable[..., Work]) -> Callable[[Manifest, StorageOptions], Work]:
    def opened(manifest: Manifest, storage_options: StorageOptions) -> Work:
        source = reopened(manifest, storage_options)
        assert manifest.work is not None
        store, path = store_from(manifest.work.url, mode="a", storage_options=storage_options)
        return work(manifest, source, store, join(path, manifest.work.path))

    return opened


def _digesting(manifest: Manifest, storage_options: StorageOptions) -> Work:
    source = reopened(manifest, storage_options)
    assert isinstance(source, ZarrSource)
    return Digesting(manifest, source.node)


KINDS = {
    "rechunk": Kind(_writing(Worker), described),
    "convert": Kind(_writing(Worker), described),
    "copy": Kind(_writing(Copying), described),
    "pyramid": Kind(_writing(Levels), described_levels, needs=needs_of, discard=discard_levels),
    "digest": Kind(_digesting, described_reads, Digest.from_json),
    "check": Kind(open_check, described_reads, Report.from_json),
}
"""The operations of plans."""


@lru_cache(maxsize=4)
def _work_of(document: bytes) -> Work:
    manifest = Manifest.loads(document, where="plan.json")
    return KINDS[manifest.operation].open(manifest, None)


class RunTask:
    """Carry out a task of the plan in a document, in any process. The opened places are kept for further tasks.

    Dashboards of executors show its name, that of the operation.
    """

    def __init__(self, operation: str) -> None:
        self.__name__ = operation

    def __call__(self, document: bytes, task: int) -> Receipt:
        return _work_of(document).run(task)
