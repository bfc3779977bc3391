"""Scan files: what each one holds, and where its chunks are. The result can be pickled, so that any executor can scan."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from math import prod
from typing import Never

import numpy as np

from tessarr.engine.jobs import Jobs
from tessarr.errors import StoreError
from tessarr.stores.remote.credentials import restore_secrets, strip_secrets
from tessarr.tools.digest import block_digest, blocks
from tessarr.tools.sources import open_source, takes_files, typed_error
from tessarr.tools.sources.base import SourceArray, SourceGroup, StoredChunks, is_axis
from tessarr.tools.sources.remote_file import RemoteFile, State, is_file_url
from tessarr.types import AnyArray

MOST_KEPT = 1 << 20
"""The most bytes of a coordinate in one file whose values are kept with what was scanned."""
_BATCH = 20
"""Files that one task of an executor scans."""
_NAMING = ("coordinates", "bounds", "grid_mapping")
"""CF attributes that name variables which describe others."""


@dataclass(slots=True, kw_only=True)
class ScannedArray:
    """Describe one array of a file."""

    node: SourceArray
    """Without functions: the file is closed."""
    stored: StoredChunks | str
    """Where its chunks are, or why only the format's package can read them."""
    values: AnyArray | None
    """The values of a coordinate."""
    digest: str | None
    """Of the values, for arrays that must be the same in all files."""


@dataclass(slots=True, kw_only=True)
class ScannedFile:
    """Describe one file."""

    place: str
    kind: str
    nodes: list[SourceGroup | ScannedArray]
    notices: list[str]
    unsupported: list[tuple[str, str]]
    state: State
    downloaded: bool
    """Whether the format's package needs a copy of the file on a local disk."""

    @property
    def arrays(self) -> dict[str, ScannedArray]:
        """The arrays, by path."""
        return {one.node.path: one for one in self.nodes if isinstance(one, ScannedArray)}


def state_of(place: str) -> State:
    """Return the state of a local file."""
    found = os.stat(place)
    return found.st_size, str(found.st_mtime_ns)


def scan_files(
    places: Sequence[str],
    kind: str | None,
    along: str | None,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[ScannedFile]:
    """Scan files in parallel: in `jobs` threads, or by an executor, whose processes import tessarr. Yields in order.

    Other processes get no credentials: they read them from their environment.
    """
    if executor is not None:
        batches = (places[start : start + _BATCH] for start in range(0, len(places), _BATCH))
        options = strip_secrets(places[0], storage_options or {})
        tasks = [executor.submit(_scan_some, some, kind, along, places[0], options) for some in batches]
        for task in tasks:
            yield from task.result()
        return
    with Jobs(jobs) as pool:
        yield from pool.map(lambda place: scan(place, kind, along, storage_options), places)


def _scan_some(
    places: Sequence[str], kind: str | None, along: str | None, first: str, options: Mapping[str, object]
) -> list[ScannedFile]:
    given = restore_secrets(first, options)
    return [scan(place, kind, along, given) for place in places]


def scan(
    file: str | RemoteFile,
    kind: str | None = None,
    along: str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> ScannedFile:
    """Describe a file at a path or URL, or an opened one, which is closed. `along`: the dimension of which it has a part.

    Raises `StoreError` for a file that is damaged, cut off, or of an unknown format, `MissingDependencyError`.
    """
    if isinstance(file, str) and is_file_url(file):
        file = RemoteFile(file, storage_options)
    place = file.name if isinstance(file, RemoteFile) else file
    with closing(open_source(file, kind)) as source:
        state = file.state if isinstance(file, RemoteFile) else state_of(place)
        arrays = [node for node in source.nodes if isinstance(node, SourceArray)]
        kept = _coordinates(arrays)
        parted = any(along in (node.dimension_names or ()) for node in arrays)
        nodes: list[SourceGroup | ScannedArray] = []
        for node in source.nodes:
            if isinstance(node, SourceGroup):
                nodes.append(node)
                continue
            try:
                stored = node.stored()
            except Exception as error:
                raise typed_error(error, source.kind, place) from error
            _check_complete(stored, state[0], place, node.path)
            same = along is not None and along not in (node.dimension_names or ()) and (parted or node.path in kept)
            nodes.append(
                ScannedArray(
                    node=replace(node, read=_closed, stored=_closed, is_coordinate=node.path in kept or is_axis(node)),
                    stored=stored,
                    values=_values(node) if node.path in kept else None,
                    digest=_digest(node) if same else None,
                )
            )
        return ScannedFile(
            place=place if isinstance(file, RemoteFile) else os.path.abspath(place), kind=source.kind, nodes=nodes,
            notices=source.notices, unsupported=source.unsupported, state=state,
            downloaded=isinstance(file, RemoteFile) and not takes_files(source.kind, file),
        )  # fmt: skip


def _closed(*_: object) -> Never:
    raise AssertionError("the file of a scanned array is closed")


def _coordinates(arrays: Sequence[SourceArray]) -> set[str]:
    """Return the paths of the arrays that describe others: named like a dimension, or by an attribute."""
    names = {name for node in arrays for name in node.dimension_names or ()}
    for node in arrays:
        for attribute in _NAMING:
            named = node.attributes.get(attribute)
            names |= set(named.split()) if isinstance(named, str) else set()
    return {
        node.path
        for node in arrays
        if node.dimension_names is not None
        and (node.path.rpartition("/")[2] in names or not node.shape)
        and node.nbytes <= MOST_KEPT
    }


def _check_complete(stored: StoredChunks | str, size: int, place: str, path: str) -> None:
    if isinstance(stored, StoredChunks) and stored.offsets.size:
        needed = int(np.where(stored.offsets >= 0, stored.offsets + stored.nbytes, 0).max())
        if needed > size:
            raise StoreError(
                "the file is cut off", store=place, path=f"/{path}", expected=f"{needed} bytes", got=f"{size} bytes",
                hint="It is truncated or damaged",
            )  # fmt: skip


def _values(node: SourceArray) -> AnyArray:
    return np.asarray(node.read(tuple(slice(0, n) for n in node.shape))).reshape(node.shape)


def _digest(node: SourceArray) -> str:
    """Return a digest of all values, read block by block."""
    made = hashlib.sha256()
    if prod(node.shape):
        for box in blocks(node.shape):
            made.update(block_digest(node.read(box)))
    return made.hexdigest()
