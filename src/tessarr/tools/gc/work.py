"""Find what conversions, plans and pyramids that were stopped left where they worked (`tessarr.tools.staging`, `tessarr.plan`).

| name | is | needed while |
|---|---|---|
| ``.NAME.ID.partial`` beside a directory or file ``NAME`` | the new data | it is complete, and there is no ``NAME`` |
| ``.NAME-ID.partial`` beside a node | the new data | it is complete, and there is no ``NAME`` |
| the same with ``ID.new`` | the data of a conversion that replaces nothing | the conversion goes on |
| the same with ``ID.sealed`` | the new data of a plan whose tasks are done | it is complete, and there is no ``NAME`` |
| ``.NAME.ID.partial.old`` | the data that is being replaced | there is no ``NAME`` |
| ``ID.stages`` | intermediate arrays of a plan | the plan goes on |

Complete data whose target is missing, because the process was killed between two renames, is never garbage.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress

from tessarr.core.stored.walk import read_entries
from tessarr.metadata.formats import DOCUMENT_NAMES
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import prefix_of

_BESIDE = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}(\.sealed)?\.partial(?P<old>\.old)?")
_NODE = re.compile(r"\.?(?P<name>.+)-[0-9a-f]{8}(?P<new>\.new)?(\.sealed)?\.partial")
_STAGES = re.compile(r"[0-9a-f]{8}\.stages")


def files_of_work(store: LocalStore, path: str) -> Iterator[str]:
    """Yield the paths of files and directories below a node, and beside the root of a store, that nothing needs."""
    base = os.path.abspath(store.root)
    if not path:
        folder, name = os.path.split(base)
        with suppress(OSError):
            found = (_BESIDE.fullmatch(one) for one in sorted(os.listdir(folder)))
            yield from (
                os.path.join(folder, one[0]) for one in found if one and one["name"] == name and _is_over(folder, one)
            )
    for folder, folders, files in os.walk(os.path.join(base, path)):
        matches = [one for one in map(_BESIDE.fullmatch, (*folders, *files)) if one]
        yield from (os.path.join(folder, one[0]) for one in matches if _is_over(folder, one))
        folders[:] = [name for name in folders if not _BESIDE.fullmatch(name)]


def _is_over(folder: str, found: re.Match[str]) -> bool:
    """Return whether the target is there, or the data is not complete."""
    if os.path.lexists(os.path.join(folder, found["name"])):
        return True
    place = os.path.join(folder, found[0])
    complete = not os.path.isdir(place) or not DOCUMENT_NAMES.isdisjoint(os.listdir(place))
    return not complete and not found["old"]


def remove_file(path: str) -> None:
    """Remove a file or a directory."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def prefixes_of_work(store: Store, paths: list[str]) -> Iterator[str]:
    """Yield the prefixes among the children of the nodes at `paths` that nothing needs."""
    for path in paths:
        for child in store.list_dir(prefix_of(path)).prefixes:
            name = child.rstrip("/").rpartition("/")[2]
            node = _NODE.fullmatch(name)
            if node is not None:
                target = prefix_of(path) + node["name"]
                work, there = read_entries(store, [prefix_of(path) + name, target])
                if node["new"] or there.kind is not None or work.kind is None:
                    yield prefix_of(path) + name + "/"
            elif _STAGES.fullmatch(name) and not _has_documents(store, prefix_of(path) + name + "/"):
                yield prefix_of(path) + name + "/"


def _has_documents(store: Store, prefix: str) -> bool:
    return any(key.rpartition("/")[2] in DOCUMENT_NAMES for key in store.list_prefix(prefix))
