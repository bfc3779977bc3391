"""Create a value where there is none by one call of the Rust module (protocol: `tessarr.stores.local.lock`)."""

from __future__ import annotations

from tessarr.common import extension
from tessarr.stores.local import lock as filelock
from tessarr.stores.local import replace as localswap
from tessarr.stores.locks import CANCEL_CHECK
from tessarr.types import Buffer


def create(path: str, base: str, value: Buffer, *, probe: bool) -> tuple[bool, bool] | None:
    """Write `value` to a new file at `path`, under the lock of the value and without syncing anything.

    Returns whether it was created, and whether the file system kept the time of the file. ``None``: nothing was done, and the
    caller has to do it step by step: the Rust module is not built, a transaction left a mark, the file system ignores the case
    of names (looked for only with `probe`), or a call failed.
    """
    create_file = getattr(extension.module(), "create_file", None)
    name = path[len(base) :].rpartition("/")[2]
    shortened = len(name) * 3 > filelock.NAME_BYTES
    if create_file is None or shortened or not localswap.IS_EXACT or CANCEL_CHECK.raise_if_cancelled is not None:
        return None
    found: tuple[bool, bool] | None = create_file(path, base, bytes(value), probe)
    return found
