"""Stage the levels of an array beside an archive that cannot delete, and copy them into it when they are complete.

The same for a session of Icechunk, which takes no checkpoint.

Until then the archive is not written, so a run that fails or is killed leaves it unchanged. Levels and checkpoint are in
a directory, ``.ARCHIVE.ARRAY.pyramid.partial`` beside the archive, where the next run resumes. An archive that is not a
file (in memory, remote) gets a temporary directory, which is removed when the run stops.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.stored import metadata_io
from tessarr.core.stored.walk import read_entries
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import Delete
from tessarr.stores.virtual.branches import is_session
from tessarr.stores.zip.store import ZipStore
from tessarr.tools.pyramid.levels import Level


@contextmanager
def staging_group(group: Group, base: Array) -> Iterator[Group]:
    """Yield the group to build levels in: `group`, or a group in a directory beside a store that cannot delete, or has no
    other keys than those of nodes.

    The directory is removed when the block ends without an error; else it is kept, if the next run can find it.
    """
    store: Store = group._store
    if not is_session(store) and isinstance(store, Delete):
        yield group
        return
    file = store.path if isinstance(store, ZipStore) else None
    if file is None:
        place = tempfile.mkdtemp(suffix=".pyramid.partial")
    else:
        folder, name = os.path.split(file)
        last = hashlib.sha256(base.path.encode()).hexdigest()[:8]
        place = os.path.join(folder, f".{name}.{last}.pyramid.partial")
        os.makedirs(place, exist_ok=True)
    with LocalStore(place) as beside:
        if read_entries(beside, [group.path])[0].kind is None:
            metadata_io.create_node(beside, group.path, group._metadata.with_attributes({}))
        try:
            yield Group(beside, group.path)
        except BaseException:
            if file is None:
                shutil.rmtree(place, ignore_errors=True)
            raise
    shutil.rmtree(place)


def copy_levels(group: Group, built: Group, levels: Sequence[Level]) -> None:
    """Copy complete levels from their staging group into the archive, replacing existing nodes."""
    if built is group:
        return
    group._will_change()
    for level in levels:
        path = group._join(level.name)
        array = built[level.name]
        assert isinstance(array, Array)
        metadata_io.create_node(group._store, path, array._metadata, overwrite=True)
        documents = set(array._metadata.documents())
        prefix = prefix_of(path)
        for key in built._store.list_prefix(prefix):
            if key.removeprefix(prefix) not in documents:
                value = built._store.get(key)
                assert value is not None
                group._store.set(key, value)


def publish(group: Group, built: Group) -> None:
    """Make the copied levels in an archive durable, before the staging directory is removed."""
    if built is not group and isinstance(group._store, ZipStore):
        group._store.flush()
