"""Compute pieces of levels, and record finished ones in a checkpoint.

The checkpoint is a JSON value beside the array; it identifies the work (shapes, factors, method, state of the array's values
…) and counts the finished pieces of each level, from the first on. It is written about once a second and when a run stops,
so after a kill at most the pieces of the last second are repeated; a repeated piece gives the same values.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.engine.jobs import Jobs
from tessarr.indexing.boxes import Box
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import Remote
from tessarr.stores.zip.store import ZipStore
from tessarr.tools.pyramid.levels import Level
from tessarr.tools.pyramid.reduce import Method, halo, reduce
from tessarr.types import AnyArray

PIECE_NBYTES = 32 << 20
_SECONDS = 1.0


class Checkpoint:
    """Record the work and its progress."""

    def __init__(self, store: Store, key: str, work: str, paths: Sequence[str]) -> None:
        self.store, self.key, self.work, self.paths = store, key, work, list(paths)
        self.done: dict[str, int] = {}
        self.putting = False
        """Whether complete levels are being copied to their destination."""
        self._written = 0.0

    @classmethod
    def of(
        cls,
        group: Group,
        base: Array,
        levels: Sequence[Level],
        method: Method,
        missing: Any,
        memory: int,
        jobs: int = 1,
    ) -> Checkpoint:
        """Make the checkpoint of this work, in the store of `group`; `load` reads the one of an earlier run.

        `memory` determines the size of pieces. The stored values of `base` are part of the work's identity: after a change
        to them (`state_of`) the checkpoint describes other work.
        """
        folder, _, last = levels[0].name.rpartition("/")
        place = group._join(folder) if folder else group.path
        stated = [[level.name, level.shape, level.factors] for level in levels]
        state = state_of(base, jobs)
        parts = [stated, method, str(missing), memory, base._metadata.to_dict(), state]
        work = json.dumps(parts, sort_keys=True, default=str)
        digest = hashlib.sha256(work.encode()).hexdigest()
        paths = [group._join(level.name) for level in levels[1:]]
        return cls(group._store, f"{prefix_of(place)}.{last}.pyramid.partial", digest, paths)

    def _read(self) -> dict[str, Any]:
        found = self.store.get(self.key)
        try:
            noted: object = json.loads(bytes(found)) if found is not None else None
        except ValueError:
            return {}
        return noted if isinstance(noted, dict) else {}

    def owned(self) -> set[str]:
        """Return the paths of incomplete levels from an earlier run, of this work or another."""
        return set(map(str, self._read().get("paths", ())))

    def load(self) -> bool:
        """Return whether an earlier run began the same work, and load its progress."""
        noted = self._read()
        if noted.get("work") != self.work or noted.get("created") is not True:
            return False
        self.done = {str(name): int(count) for name, count in noted.get("done", {}).items()}
        self.putting = noted.get("putting") is True
        return True

    def begin(self) -> None:
        """Record that the levels of this work are being created."""
        self.done, self.putting = {}, False
        self._write(created=False)

    def advance(self, level: str) -> None:
        """Count one more piece of `level`; all pieces before it are finished."""
        self.done[level] = self.done.get(level, 0) + 1
        if time.monotonic() - self._written > _SECONDS:
            self.keep()

    def keep(self) -> None:
        """Write the checkpoint."""
        self._write(created=True)

    def put(self) -> None:
        """Record that every piece is finished."""
        self.putting = True
        self.keep()

    def forget(self) -> None:
        """Remove the checkpoint: the work is finished."""
        self.store.delete(self.key)

    def _write(self, *, created: bool) -> None:
        noted = {"work": self.work, "paths": self.paths, "created": created, "done": self.done, "putting": self.putting}
        self.store.set(self.key, json.dumps(noted).encode())
        self._written = time.monotonic()


def state_of(array: Array, jobs: int = 1) -> str:
    """Return a digest that changes with every stored value of `array`: of all keys and their versions.

    In a store without versions the values themselves are read, which costs about as much as building a level.
    """
    store = array._store
    entries = store._archive.entries() if isinstance(store, ZipStore) else None

    def version_of(key: str) -> bytes:
        if entries is not None:  # such versions are valid in one process only
            known: str | None = f"{entries[key].header_offset}:{entries[key].CRC}:{entries[key].file_size}"
        else:
            known = store.version(key)
        if known is None:
            value = store.get(key)
            known = hashlib.sha256(value if value is not None else b"-").hexdigest()
        return f"{key}\0{known}\n".encode()

    digest = hashlib.sha256()
    with Jobs(max(8 if isinstance(store, Remote) else 1, jobs)) as pool:
        for line in pool.map(version_of, sorted(store.list_prefix(prefix_of(array.path)))):
            digest.update(line)
    return digest.hexdigest()


class Held:
    """The elements of an array from which a box of a level is made, read once, to be reduced part by part with `piece`."""

    def __init__(self, source: Array, box: Box, factors: tuple[int, ...], method: Method) -> None:
        region = _region(source.shape, box, factors, method)
        self.shape = source.shape
        self._corner = [part.start for part in region]
        self._values = np.asarray(source[region or ...])

    def __getitem__(self, region: Box) -> AnyArray:
        within = (slice(part.start - low, part.stop - low) for part, low in zip(region, self._corner, strict=True))
        values: AnyArray = self._values[tuple(within)]
        return values


def piece(
    source: Array | Held, box: Box, factors: tuple[int, ...], method: Method, missing: float | int | None
) -> AnyArray:
    """Compute the values of one box of a level."""
    region = _region(source.shape, box, factors, method)
    before = tuple(part.start * factor - read.start for part, factor, read in zip(box, factors, region, strict=True))
    values = source[region] if isinstance(source, Held) else np.asarray(source[region or ...])
    length = tuple(part.stop - part.start for part in box)
    return reduce(values, factors, method, missing=missing, before=before, length=length)


def _region(shape: tuple[int, ...], box: Box, factors: tuple[int, ...], method: Method) -> Box:
    """Return the elements of an array of `shape` from which a box of a level is made."""
    region = []
    for part, factor, size in zip(box, factors, shape, strict=True):
        low, high = halo(method, factor)
        region.append(slice(max(0, part.start * factor - low), min(size, part.stop * factor + high)))
    return tuple(region)
