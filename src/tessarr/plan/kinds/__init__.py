"""The kinds of plans: what their tasks do, what they cost, and what becomes of them when they have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, get_args

from tessarr.errors import MetadataValidationError
from tessarr.plan.executors import Ended, in_turn
from tessarr.plan.kinds.copying import Copying
from tessarr.plan.manifest import DAMAGED, Manifest, Place, noticing_damage
from tessarr.plan.markers import Receipt
from tessarr.plan.publish import discard, options_at
from tessarr.plan.sources import Folder, reopened
from tessarr.plan.task import Work, Worker
from tessarr.stores.path import join, prefix_of
from tessarr.stores.url import store_from
from tessarr.tools.sources.zarr import ZarrSource
from tessarr.types import JSONObject

if TYPE_CHECKING:
    from tessarr.plan.predict import Description
    from tessarr.tools.check.report import Report
    from tessarr.tools.digest import Digest

StorageOptions: TypeAlias = Mapping[str, object] | None


class Kind(NamedTuple):
    """What belongs to an operation."""

    open: Callable[[Manifest, StorageOptions, StorageOptions, Folder | None], Work]
    """Opens the places of a plan, with options of the target and of the source, and what its folder has, if it is saved.

    Raises `ConflictError` when the source has changed since the plan was made.
    """
    describe: Callable[[Manifest], Description]
    parse: Callable[[JSONObject], Digest | Report] | None = None
    """Parses the result of a plan that writes nothing."""
    needs: Callable[[Manifest], Callable[[int], Iterable[int]]] | None = None
    """Returns a function of the tasks that a task waits for; without it, a stage waits for the stage before in its block."""
    discard: Callable[[Manifest, StorageOptions, Folder | None], None] = discard
    """Removes what tasks wrote that is not the result: in the place that is given, where only this process has it."""
    options: Mapping[str, object] = MappingProxyType({})
    """The form of the options of its manifests, see `tessarr.plan.manifest.problem`."""


def _writing(work: Callable[..., Work]) -> Callable[[Manifest, StorageOptions, StorageOptions, Folder | None], Work]:
    def opened(manifest: Manifest, target: StorageOptions, given: StorageOptions, folder: Folder | None) -> Work:
        source = reopened(manifest, given, folder)
        assert manifest.work is not None
        url = manifest.work.url
        store, path = store_from(url, mode="a", storage_options=options_at(url, target))
        return work(manifest, source, store, join(path, manifest.work.path))

    return opened


def _describe(manifest: Manifest) -> Description:
    from tessarr.plan.predict import described

    return described(manifest)


def _moving(work: Callable[..., Work], **options: object) -> Kind:
    return Kind(_writing(work), _describe, options={"consolidate": bool, **options})


def _copy() -> Kind:
    from tessarr.plan.kinds.copying import described_copies

    return _moving(Copying)._replace(describe=described_copies)


def _pyramid() -> Kind:
    from tessarr.plan.kinds.pyramids import Levels, Pyramid, described_levels, discard_levels, needs_of

    return Kind(
        _writing(Levels), described_levels, needs=needs_of, discard=discard_levels,
        options=dict.fromkeys((field.name for field in fields(Pyramid)), object),
    )  # fmt: skip


def _digest() -> Kind:
    from tessarr.plan.kinds.digesting import Digesting, described_digests
    from tessarr.tools.digest import Digest

    def opened(manifest: Manifest, _target: StorageOptions, given: StorageOptions, _folder: Folder | None) -> Work:
        source = reopened(manifest, given)
        assert isinstance(source, ZarrSource)
        return Digesting(manifest, source.node, source)

    return Kind(opened, described_digests, Digest.from_json, options={"attributes": bool})


def _check() -> Kind:
    from tessarr.plan.kinds.checking import described_checks, open_check
    from tessarr.tools.check.report import Level, Report

    return Kind(
        open_check, described_checks, Report.from_json, options={"data": (None, *get_args(Level)), "conventions": bool}
    )


_KINDS: dict[str, Callable[[], Kind]] = {
    "rechunk": lambda: _moving(Worker, scratch=(None, str)),
    "convert": lambda: _moving(Worker, along=(None, str), gaps=bool, unpack=bool),
    "copy": _copy,
    "pyramid": _pyramid,
    "digest": _digest,
    "check": _check,
}
"""The operations of plans. What belongs to one is imported when it is used: a plan needs none of the others."""


@lru_cache
def kind_of(operation: str) -> Kind:
    """Return what belongs to an operation. Raises `KeyError` for an unknown one."""
    return _KINDS[operation]()


def load(document: bytes, where: str) -> Manifest:
    """Parse the document of a plan. Raises `MetadataValidationError` for one that no function of `tessarr.plan` made.

    Nothing is done by a document that somebody changed to one by which two tasks would write one stored value.
    """
    manifest = Manifest.loads(document, where=where)
    with noticing_damage(where):
        if manifest.operation not in _KINDS:
            raise MetadataValidationError(
                "the operation of the plan is unknown", key=where, expected=f"one of {', '.join(_KINDS)}",
                got=manifest.operation, hint=DAMAGED,
            )  # fmt: skip
        from tessarr.plan.kinds.check_manifest import check_manifest

        kind = kind_of(manifest.operation)
        check_manifest(manifest, kind.options, writes=kind.parse is None)
        kind.describe(manifest)
        if manifest.tasks:  # the arithmetic of all of them is that of the last one
            manifest.locate(manifest.tasks - 1)
            manifest.locate_block(manifest.blocks - 1)
    return manifest


@lru_cache(maxsize=4)
def _work_of(document: bytes, folder: Place | None) -> Work:
    manifest = load(document, "plan.json")
    saved: Folder | None = None
    if folder is not None:
        store, path = store_from(folder.url, mode="r")
        saved = store, prefix_of(join(path, folder.path))
    return kind_of(manifest.operation).open(manifest, None, None, saved)


class RunTasks:
    """Carry out tasks of the plan in a document, in any process. The opened places are kept for further tasks.

    `folder`: where the plan is saved; ``None``: it is not. `marked`: markers will hold the receipts. Dashboards of executors
    show its name, that of the operation.
    """

    def __init__(self, operation: str, folder: Place | None, *, marked: bool) -> None:
        self.__name__ = operation
        self._folder = folder
        self._marked = marked

    def __call__(self, document: bytes, *tasks: int) -> Ended[Receipt]:
        return in_turn(partial(_work_of(document, self._folder).run, marked=self._marked), tasks)
