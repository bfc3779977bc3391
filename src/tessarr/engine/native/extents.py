"""Let Rust read values that are extents of local files: members of archives, chunks of referenced files.

The store locates the values (`tessarr.stores.protocols.Locate`), and Rust reads the files. Where Rust finds that a file is
missing, is too short or has another version, or that a value has another checksum, the store reads the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tessarr import _native
from tessarr.stores.fetch import Located
from tessarr.stores.path import check_key
from tessarr.stores.protocols import Locate, PlainFiles

if TYPE_CHECKING:
    from tessarr.engine.bound import Access

_ELSEWHERE = ("moved", "store")
"""Kinds of errors after which the store reads the values."""
_Files = list[tuple[str, str | None]]
_Values = list[tuple[list[tuple[int, int, int | None]], int | None] | None]


def read_extents(store: Locate, plan: _native.ReadPlan, access: Access) -> bool:
    """Read all parts of `plan` from extents of local files. ``False``: not all of the values are there."""
    keys = plan.keys()
    # One first, instead of locating thousands of values behind a network.
    if access.remote and len(keys) > 1 and _in_files(store.locate(keys[:1])) is None:
        return False
    found = _in_files(store.locate(keys))
    if found is None:
        return False
    try:
        plan.read_extents(*found, access.whole_below)
    except _native.NativeError as error:
        if error.args[0] in _ELSEWHERE:
            return False
        raise
    return True


def _in_files(located: Sequence[Located | None] | None) -> tuple[_Files, _Values] | None:
    """Convert extents to files and extents by number of the file; ``None`` if a value is not in local files."""
    if located is None:
        return None
    files: dict[tuple[str, str | None], int] = {}
    known: dict[tuple[int, str, str | None], int] = {}
    values: _Values = []
    for value in located:
        if value is None:
            values.append(None)
            continue
        extents = []
        for store, key, offset, nbytes, version in value.extents:
            number = known.get((id(store), key, version))
            if number is None:
                if not isinstance(store, PlainFiles):
                    return None
                check_key(key)
                number = files.setdefault((store.directory + key, version), len(files))
                known[id(store), key, version] = number
            extents.append((number, offset, nbytes))
        values.append((extents, value.crc32))
    return [*files], values
