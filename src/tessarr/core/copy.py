"""Copy values between arrays, and nodes and keys between places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tessarr.core import open_transactions
from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import async_variant, run_steps
from tessarr.core.claims.one_copy import one_copy
from tessarr.core.creation.arrays import write_values
from tessarr.core.creation.shorthands import from_array
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.stored.consolidated import follow_changes
from tessarr.core.stored.create_nodes import Watched
from tessarr.core.stored.move import copy_key, documents_last, take_back_copies
from tessarr.errors import CopyError
from tessarr.metadata import formats
from tessarr.stores.base import Store
from tessarr.stores.functions import settle_below
from tessarr.stores.path import join, prefix_of
from tessarr.stores.url import StoreLike
from tessarr.stores.virtual.branches import commits

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class CopyCounts(NamedTuple):
    """Counts of one copy: nodes or keys copied and skipped, and bytes."""

    copied: int
    skipped: int
    nbytes: int

    def plus(self, other: CopyCounts) -> CopyCounts:
        """Add the counts of another copy."""
        return CopyCounts(*(a + b for a, b in zip(self, other, strict=True)))


def _logger(log: Log) -> Callable[[str], object]:
    if log is None:
        return lambda line: None
    return log if callable(log) else lambda line: print(line, file=log)


Log: TypeAlias = "Callable[[str], object] | SupportsWrite[str] | None"
"""Where lines about the progress go: a function, a file, or nowhere."""
_IF_EXISTS = ("raise", "replace", "skip", "skip_initialized")


def copy(
    source: Array | Group,
    dest: Group,
    name: str | None = None,
    shallow: bool = False,
    without_attrs: bool = False,
    log: Log = None,
    if_exists: str = "raise",
    dry_run: bool = False,
    **create_kws: object,
) -> CopyCounts:
    """Copy an array or a group, with everything below it (unless `shallow`), into the group `dest`.

    Values are decoded and encoded again, so `create_kws` may choose other chunks, codecs or another format. `if_exists` is
    "raise", "replace", "skip" or "skip_initialized" (arrays all of whose chunks are stored). After a copy that was killed, or
    failed while it wrote values, an array may lack some: "skip" leaves it so, the other two copy it again. `log` is a file or
    callable that gets a line per node.

    Another copy to the same place is waited for where the store has locks that reach it; elsewhere it is a `ConflictError`.

    Raises `CopyError` when something is there and `if_exists` is "raise", `ConflictError` also where an array of the source was
    removed, moved, replaced or made shorter meanwhile.
    """
    if if_exists not in _IF_EXISTS:
        raise ValueError(f"if_exists must be one of {_IF_EXISTS}, got {if_exists!r}")
    foreign = not isinstance(source, Array | Group)
    name = name or (source.name.strip("/").rpartition("/")[2] if foreign else source.basename)
    if not name and not foreign:
        raise TypeError("name is missing: a root node has no name to copy to")
    with nullcontext() if dry_run else one_copy(dest._store, join(dest.path, name)):
        if foreign:
            return _copy_foreign(source, dest, name, log, if_exists, dry_run, create_kws)
        return _copy_node(source, dest, name, shallow, without_attrs, log, if_exists, dry_run, create_kws)


def _copy_node(
    source: Array | Group,
    dest: Group,
    name: str,
    shallow: bool,
    without_attrs: bool,
    log: Log,
    if_exists: str,
    dry_run: bool,
    create_kws: Mapping[str, object],
) -> CopyCounts:
    say = _logger(log)
    if isinstance(source, Array):
        return _copy_array(source, dest, name, without_attrs, say, if_exists, dry_run, create_kws)
    say(f"copy {source.name} -> {dest.name.rstrip('/')}/{name}")
    present = dest.get(name)
    if isinstance(present, Array):
        if if_exists == "raise":
            raise CopyError("an array exists at the destination", path=present.name, hint="See if_exists")
        if if_exists != "replace":
            return CopyCounts(0, 1, 0)
    total = CopyCounts(0, 0, 0)
    target = present if isinstance(present, Group) else None
    if not dry_run:
        target = dest.require_group(name, overwrite=isinstance(present, Array))
        if not without_attrs:
            target.attrs.update(source.attrs.asdict())
    for child, node in () if shallow else source.members():
        if target is None:
            say(f"copy {node.name}")
            total = CopyCounts(total.copied + 1, total.skipped, total.nbytes + getattr(node, "nbytes", 0))
            continue
        total = total.plus(copy(node, target, child, False, without_attrs, log, if_exists, dry_run, **create_kws))
    return CopyCounts(total.copied + 1, *total[1:])


def _copy_array(
    source: Array,
    dest: Group,
    name: str,
    without_attrs: bool,
    say: Callable[[str], object],
    if_exists: str,
    dry_run: bool,
    options: Mapping[str, object],
) -> CopyCounts:
    present = dest.get(name)
    if present is not None:
        full = isinstance(present, Array) and present.nchunks_initialized == present.nchunks
        if if_exists == "raise":
            kind = "an array" if isinstance(present, Array) else "a group"
            raise CopyError(f"{kind} exists at the destination", path=present.name, hint="See if_exists")
        if if_exists == "skip" or (if_exists == "skip_initialized" and full):
            say(f"skip {source.name}")
            return CopyCounts(0, 1, 0)
    say(f"copy {source.name} -> {dest.name.rstrip('/')}/{name} {source.shape} {source.dtype}")
    if not dry_run:
        arguments: dict[str, Any] = {"zarr_format": dest.zarr_format, **options}
        if without_attrs:
            arguments["attributes"] = {}
        path, replaces = join(dest.path, name), present is not None or if_exists == "replace"

        async def creating() -> Array:
            return from_array(dest._store, data=source, name=path, overwrite=replaces, **arguments)

        run_steps(dest._described_steps(creating()))
    return CopyCounts(1, 0, source.nbytes)


def _copy_foreign(
    source: Any, dest: Group, target_name: str, log: Log, if_exists: str, dry_run: bool, options: Mapping[str, Any]
) -> CopyCounts:
    """Copy an h5py dataset or group, which is read as a mapping or an array-like."""
    say = _logger(log)
    say(f"copy {source.name} -> {target_name}")
    if not hasattr(source, "shape"):
        total = CopyCounts(1, 0, 0)
        if dry_run:
            return total
        target = dest.require_group(target_name)
        for child in source:
            total = total.plus(_copy_foreign(source[child], target, child, log, if_exists, dry_run, options))
        target.attrs.update(dict(source.attrs))
        return total
    if target_name in dest and if_exists in ("skip", "skip_initialized"):
        return CopyCounts(0, 1, 0)
    if not dry_run:
        made = dest.create_array(
            target_name, shape=source.shape, dtype=source.dtype, overwrite=if_exists == "replace", **options
        )
        write_values(source, made)
        made.attrs.update(dict(getattr(source, "attrs", {})))
    return CopyCounts(1, 0, int(np.dtype(source.dtype).itemsize * np.prod(source.shape)))


def copy_all(
    source: Group,
    dest: Group,
    shallow: bool = False,
    without_attrs: bool = False,
    log: Log = None,
    if_exists: str = "raise",
    dry_run: bool = False,
    **create_kws: object,
) -> CopyCounts:
    """Copy every member of `source`, and its attributes, into `dest`. The other arguments and errors are those of `copy`."""
    total = CopyCounts(0, 0, 0)
    with nullcontext() if dry_run else one_copy(dest._store, dest.path):
        for name in source:
            total = total.plus(
                copy(source[name], dest, name, shallow, without_attrs, log, if_exists, dry_run, **create_kws)
            )
        if not without_attrs and not dry_run and hasattr(source, "attrs"):
            dest.attrs.update(dict(source.attrs))
    return total


@commits
def copy_store(
    source: StoreLike,
    dest: StoreLike,
    source_path: str = "",
    dest_path: str = "",
    excludes: str | Iterable[str] | None = None,
    includes: str | Iterable[str] | None = None,
    flags: int = 0,
    if_exists: str = "raise",
    dry_run: bool = False,
    log: Log = None,
) -> CopyCounts:
    """Copy keys and their bytes unchanged from one store to another; nothing is decoded.

    `includes` and `excludes` are regular expressions (one or several) on keys relative to `source_path`. Raises `CopyError`
    when a key exists at the destination and `if_exists` is "raise", before anything is copied; also for one that appears
    meanwhile, and then the copies are removed. Raises `ConflictError` where a node of the source was removed, moved, replaced
    or made shorter meanwhile, and for another copy to `dest_path` as `copy` does.
    """
    if if_exists not in _IF_EXISTS[:3]:
        raise ValueError(f"if_exists must be one of {_IF_EXISTS[:3]}, got {if_exists!r}")
    from_store, from_path, _ = locate(source, source_path, "r")
    to_store, to_path, _ = locate(dest, dest_path, None)
    from_prefix = prefix_of(from_path)
    keep, drop = _matcher(includes, True, flags), _matcher(excludes, False, flags)
    settle_below(from_store, from_prefix)
    if not dry_run:
        open_transactions.refuse_outside(to_store, to_path)
        settle_below(to_store, prefix_of(to_path))
    names = sorted((key[len(from_prefix) :] for key in from_store.list_prefix(from_prefix)), key=documents_last)
    names = [name for name in names if keep(name) and not drop(name)]
    with nullcontext() if dry_run else one_copy(to_store, to_path):
        return _copy_keys(from_store, from_path, to_store, to_path, names, if_exists, dry_run, _logger(log))


def _copy_keys(
    from_store: Store,
    from_path: str,
    to_store: Store,
    to_path: str,
    names: Sequence[str],
    if_exists: str,
    dry_run: bool,
    say: Callable[[str], object],
) -> CopyCounts:
    """Copy the keys called `names` below `from_path`."""
    from_prefix, to_prefix = prefix_of(from_path), prefix_of(to_path)
    documents = [name for name in names if name.rpartition("/")[2] in formats.DOCUMENT_NAMES]
    nodes = list(dict.fromkeys(name.rpartition("/")[0] for name in documents))
    watched = Watched(from_store, [join(from_path, node) for node in nodes])
    present = {name for name in names if if_exists != "replace" and to_store.exists(to_prefix + name)}
    if present and if_exists == "raise":
        raise CopyError(
            f"{len(present)} keys exist at the destination", store=to_store.url, key=to_prefix + min(present)
        )
    made: dict[str, str] = {}
    nbytes, keys = 0, {from_prefix + name for name in names}
    for name in names:
        if name in present:
            say(f"skip {name}")
            continue
        say(f"copy {name}")
        key, new_key = from_prefix + name, to_prefix + name
        try:
            nbytes += copy_key(from_store, key, to_store, new_key, dry_run, overwrite=if_exists == "replace", keys=keys)
        except CopyError:  # another client has stored it meanwhile
            if if_exists == "raise":
                take_back_copies(from_store, to_store, made)
                raise
            continue
        made[key] = new_key
    watched.check(grown=True)
    if not dry_run:
        follow_changes(to_store, [join(to_path, node) for node in nodes])
    return CopyCounts(len(made), len(names) - len(made), nbytes)


def _matcher(patterns: str | Iterable[str] | None, default: bool, flags: int) -> Callable[[str], bool]:
    if patterns is None:
        return lambda name: default
    listed = [patterns] if isinstance(patterns, str) else patterns
    compiled = [re.compile(pattern, flags) for pattern in listed]
    return lambda name: any(pattern.search(name) for pattern in compiled)


copy_async = async_variant(copy)
copy_all_async = async_variant(copy_all)
copy_store_async = async_variant(copy_store)
