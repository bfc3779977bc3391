"""What a program does while a system call of it fails, or it is killed, and what a reader finds after that.

A workload prepares a directory, then changes it by one call of the library. `observe` reads everything there: per document and
per chunk what it is, so that the state after a fault is compared with those before and after the workload, part by part.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tessarr
from tessarr.core.stored.walk import is_staged, walk
from tessarr.storage import LocalStore
from tessarr.stores.local.lock import JOURNAL
from tessarr.stores.local.transactions import commit, late
from tessarr.tools.convert import convert
from tessarr.tools.migrate import migrate
from tessarr.tools.pyramid import build_pyramid
from tessarr.tools.rechunk import rechunk

State = dict[str, object]
CHUNK = 16


@dataclass(frozen=True)
class Workload:
    """One change of a hierarchy."""

    name: str
    act: Callable[[str], object]
    """Change the hierarchy in this directory."""
    prepare: Callable[[str], object]
    is_one_step: bool = False
    """Whether a reader finds all of the change or nothing of it; else each value is old or new."""
    creates: bool = False
    """Whether a reader may find a new array before all of its chunks: they read as fill value."""
    is_durable: bool = True
    """Whether it asks for durable writes."""
    begin: Callable[[str], object] | None = None
    """Change a copy of the prepared directory before the workload: by what is lost when a directory is copied."""
    is_transaction: bool = False
    """Whether readers see all of it or nothing at any moment, and snapshots keep what they saw."""
    has_snapshot: bool = False
    """Whether a snapshot that was taken before lives meanwhile."""

    is_local: bool = True
    """Whether its root is that of a `LocalStore`."""

    def neither_old_nor_new(self, found: State, before: State, after: State) -> tuple[str, object] | None:
        """Return the name and value of what is neither as before nor as after the change."""
        for name in found.keys() | before.keys() | after.keys():
            values = found.get(name)
            is_empty = self.creates and isinstance(values, list) and not any(values)
            if not is_empty and values not in (before.get(name), after.get(name)):
                return name, values
        return None


def _store(root: str) -> LocalStore:
    return LocalStore(root, durable=True)


def _hierarchy(root: str, zarr_format: Any = 3) -> None:
    """A group with attributes, an array of chunks, and one of shards (v3)."""
    group = tessarr.create_group(LocalStore(root), attributes={"title": "before"}, zarr_format=zarr_format)
    group.create_array("a", data=-1 - np.arange(40, dtype="i4"), chunks=(CHUNK,), fill_value=0)
    layout: dict[str, Any] = {"chunks": (4,), "shards": (CHUNK,)} if zarr_format == 3 else {"chunks": (CHUNK,)}
    group.create_array("s", data=-101 - np.arange(40, dtype="i4"), fill_value=0, **layout)


def _hierarchy_2(root: str) -> None:
    _hierarchy(root, 2)


def _array(root: str, path: str) -> Any:
    return tessarr.open_array(_store(root), path=path, mode="r+")


def _write_chunks(root: str) -> None:
    _array(root, "a")[:] = np.arange(1, 41)


def _write_part(root: str) -> None:
    _array(root, "a")[3:5] = 7


def _splice_shard(root: str) -> None:
    _array(root, "s")[5:9] = 7


def _append(root: str) -> None:
    _array(root, "a").append(np.full(20, 7, "i4"))


def _resize(root: str) -> None:
    _array(root, "a").resize((10,))


def _set_attributes(root: str) -> None:
    tessarr.open_group(_store(root), mode="r+").attrs.update({"title": "after", "more": 1})


def _create(root: str) -> None:
    data = np.arange(1, 41, dtype="i4")
    tessarr.create_array(_store(root), name="h/new", data=data, chunks=(CHUNK,), fill_value=0)


def _overwrite(root: str) -> None:
    layout: dict[str, Any] = {"shape": (4,), "chunks": (2,), "dtype": "f8"}
    tessarr.create_array(_store(root), name="a", overwrite=True, fill_value=0, **layout)


def _overwrite_root(root: str) -> None:
    tessarr.create_array(_store(root), data=np.arange(1, 41, dtype="i4"), chunks=(CHUNK,), fill_value=0, overwrite=True)


def _delete(root: str) -> None:
    del tessarr.open_group(_store(root), mode="r+")["a"]


def _consolidate(root: str) -> None:
    tessarr.consolidate_metadata(_store(root))


def _copy(root: str) -> None:
    store = _store(root)
    convert(tessarr.open_array(store, path="a", mode="r"), store, path="copied")


def _rechunk(root: str) -> None:
    rechunk(_array(root, "s"), os.path.join(root, "rechunked"), chunks=(8,))


def _pyramid(root: str) -> None:
    build_pyramid(tessarr.open_group(_store(root), mode="r+"), "a", levels=1, factors=[2])


def _migrate(root: str) -> None:
    migrate(_store(root), to_format=3)


def _move(root: str) -> None:
    tessarr.open_group(_store(root), mode="r+").move("a", "moved")


def _transaction(root: str) -> None:
    with tessarr.transaction(_store(root)) as transaction:
        group: Any = transaction.group
        group["a"][:] = np.arange(1, 41)
        group["s"][5:9] = 7
        group.attrs["title"] = "after"


def _three_arrays(root: str) -> None:
    """As `_hierarchy`, with an array of so many chunks that threads write them, and one that is removed; consolidated."""
    _hierarchy(root)
    group = tessarr.open_group(LocalStore(root), mode="r+")
    group.create_array("many", data=-1 - np.arange(36, dtype="i4"), chunks=(2,), fill_value=0)
    group.create_array("old", data=np.arange(1, 5, dtype="i4"), chunks=(2,), fill_value=0)
    tessarr.consolidate_metadata(LocalStore(root))


def _transaction_of_arrays(root: str, mode: Any = "auto") -> None:
    with tessarr.transaction(_store(root), mode) as transaction:
        group: Any = transaction.group
        group["many"][:] = np.arange(1, 37)
        group["a"][:16] = 0  # a chunk that is fill value is removed
        group["a"].append(np.full(20, 7, "i4"))
        group["s"][:32] = 9
        group["s"][35:37] = 7
        group.attrs["title"] = "after"
        del group["old"]
        group.create_array("new", data=np.arange(1, 5, dtype="i4"), chunks=(2,), fill_value=0)


def _swap(root: str) -> None:
    _transaction_of_arrays(root, "swap")


def _commit_and_end(root: str) -> None:
    """Let a process commit the transaction and end before it carries out any step."""
    _end_in(commit, _transaction_of_arrays, root)


def _swap_and_end(root: str) -> None:
    """Let a process exchange the root and end before it removes anything of the old tree."""
    _end_in(late, _swap, root)


def _end_in(module: ModuleType, act: Callable[[str], object], root: str) -> None:
    from unittest import mock

    child = os.fork()
    if child == 0:
        with mock.patch.object(module, "finish", side_effect=lambda *_, **__: os._exit(0)):
            act(root)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert Path(root, JOURNAL).exists()


def _open_for_writing(root: str) -> None:
    tessarr.open_group(_store(root), mode="r+")


def _zip_archive(root: str) -> str:
    return os.path.join(root, "archive.zip")


def _prepare_zip(root: str) -> None:
    os.makedirs(root)
    with tessarr.storage.ZipStore(_zip_archive(root), mode="w") as store:
        tessarr.create_array(store, data=-1 - np.arange(40, dtype="i4"), chunks=(CHUNK,), fill_value=0)


def _flush_zip(root: str) -> None:
    with tessarr.storage.ZipStore(_zip_archive(root), mode="a") as store:
        tessarr.open_array(store, mode="r+")[:] = np.arange(1, 41)


WORKLOADS = (
    Workload("chunks", _write_chunks, _hierarchy),
    Workload("part", _write_part, _hierarchy, is_one_step=True),
    Workload("splice", _splice_shard, _hierarchy, is_one_step=True),
    Workload("append", _append, _hierarchy),
    Workload("resize", _resize, _hierarchy),
    Workload("attributes", _set_attributes, _hierarchy, is_one_step=True),
    Workload("create", _create, _hierarchy, creates=True),
    Workload("overwrite", _overwrite, _hierarchy, is_one_step=True),
    Workload("overwrite root", _overwrite_root, _hierarchy, creates=True),
    Workload("delete", _delete, _hierarchy, is_one_step=True),
    Workload("consolidate", _consolidate, _hierarchy, is_one_step=True),
    Workload("copy", _copy, _hierarchy, creates=True),
    Workload("rechunk", _rechunk, _hierarchy, is_one_step=True, is_durable=False),
    Workload("pyramid", _pyramid, _hierarchy, creates=True),
    Workload("migrate", _migrate, _hierarchy_2),
    Workload("move", _move, _hierarchy, is_one_step=True),
    Workload("transaction", _transaction, _hierarchy, is_one_step=True, is_transaction=True),
    Workload("arrays", _transaction_of_arrays, _three_arrays, is_one_step=True, is_transaction=True),
    Workload("kept", _transaction_of_arrays, _three_arrays, is_one_step=True, is_transaction=True, has_snapshot=True),
    Workload(
        "recovery", _open_for_writing, _three_arrays, is_one_step=True, is_transaction=True, begin=_commit_and_end
    ),
    Workload("swap", _swap, _three_arrays, is_one_step=True, is_transaction=True),
    Workload("swap kept", _swap, _three_arrays, is_one_step=True, is_transaction=True, has_snapshot=True),
    Workload(
        "swap recovery", _open_for_writing, _three_arrays, is_one_step=True, is_transaction=True, begin=_swap_and_end
    ),
    Workload("zip", _flush_zip, _prepare_zip, is_local=False),
)


def observe(root: str) -> State:
    """What a reader finds; raises whatever it gets where something cannot be read."""
    with warnings.catch_warnings(), tessarr.config.set({"engine": "reference"}):
        warnings.simplefilter("ignore")
        if Path(_zip_archive(root)).exists():
            with tessarr.storage.ZipStore(_zip_archive(root), mode="r") as archive:
                return dict(found_in(archive))
        return dict(found_in(LocalStore(root, read_only=True)))


def found_in(store: Any) -> Iterator[tuple[str, object]]:
    """What a reader finds in a store, part by part."""
    for entry in walk(store, ""):
        if is_staged(entry.path):
            continue
        node = tessarr.open(store, path=entry.path, mode="r", use_consolidated=False)
        told: tuple[object, ...] = (entry.formats, dict(node.attrs))
        if isinstance(node, tessarr.Array):
            told += (node.shape, node.chunks, str(node.dtype))
            stored = node.shards or node.chunks
            values = np.asarray(node[...])
            for place in product(*(range(0, length, size) for length, size in zip(node.shape, stored, strict=True))):
                box = tuple(slice(start, start + size) for start, size in zip(place, stored, strict=True))
                yield f"{entry.path} from {place}", values[box].tolist()
        else:
            told += (b"consolidated_metadata" in bytes(store.get(f"{entry.path}/zarr.json".lstrip("/")) or b""),)
        yield entry.path, told
