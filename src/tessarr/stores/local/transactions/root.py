"""Replace everything in a store's root, which cannot be renamed: all of it or nothing, whenever the process ends.

New entries are staged in a hidden directory. A journal of its own form (`RootJournal`), which names them and the old entries,
is renamed into place: the commit point. Then the old entries are moved to another hidden directory, and the new ones to their
places. Any process may repeat that (`carry_out`): an entry that is not where it was has been moved.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping

from tessarr.errors import JournalError
from tessarr.stores.local import file as localfile
from tessarr.stores.local import replace as localswap
from tessarr.stores.local import tree as localtree
from tessarr.stores.local.lock import JOURNAL, temporary_name
from tessarr.stores.local.sync import sync_directory, sync_names
from tessarr.stores.local.transactions.journal import RootJournal, version_in_journal
from tessarr.types import Buffer


def identity(base: str) -> str:
    """Return what identifies a directory, but not a copy of it: its inode."""
    return f"{os.stat(base).st_ino:x}"


def replace_root(base: str, items: Mapping[str, Buffer], *, durable: bool) -> None:
    """Replace the content of the directory `base`, whose lock of transactions is held, by `items`.

    An error before the commit point, or a rename that fails, leaves the old content. Raises `OSError`.
    """
    identifier = os.urandom(6).hex()
    staged, doomed = _hidden(base, "new", identifier), _hidden(base, "old", identifier)
    temporary = base + temporary_name(JOURNAL, identifier)
    try:
        localtree.stage(staged, items, durable=durable)
        os.mkdir(doomed)
        files, folders = localtree.children(base)
        journal = RootJournal(identifier, identity(base), (*files, *folders), tuple(os.listdir(staged)))
        if durable:
            sync_directory(base)
        localfile.write_value(os.open(temporary, localfile.CREATE, 0o666), [journal.dump()], durable=durable)
        os.replace(temporary, base + JOURNAL)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        for folder in (staged, doomed):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        if durable:
            sync_directory(base)
        _move(base, journal, durable=durable)
    except OSError:
        _undo(base, journal)
        raise
    _end(base, journal, durable=durable)


def carry_out(base: str, journal: RootJournal, *, durable: bool) -> None:
    """Carry out what is left of a journal, and remove it. May be repeated. Raises `JournalError`, `OSError`."""
    _move(base, journal, durable=durable)
    _end(base, journal, durable=durable)


def pending(base: str, journal: RootJournal) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return what a store must show that must not carry the journal out: path → staged file, path → version that is removed."""
    staged, doomed = _folders(base, journal)
    new = {f"{base}{key}": f"{staged}{os.sep}{key}" for key in localtree.walk(f"{staged}{os.sep}", "")}
    old = [name for name in journal.old if not os.path.lexists(os.path.join(doomed, name))]
    removed: dict[str, str | None] = {}
    for name in old:
        keys = localtree.walk(base, f"{name}/") if os.path.isdir(base + name) else [name]
        for path in (base + key for key in keys):
            if path not in new:
                removed[path] = version_in_journal(localfile.version_at(path))
    return new, removed


def _move(base: str, journal: RootJournal, *, durable: bool) -> None:
    staged, doomed = _folders(base, journal)
    left = [name for name in journal.old if not os.path.lexists(os.path.join(doomed, name))]
    missing = [name for name in journal.new if not os.path.lexists(os.path.join(staged, name))]
    if left and missing:
        raise JournalError(
            "what the journal of a replaced root has staged is not there any more, and nothing was carried out",
            key=JOURNAL,
            expected=f"{missing[0]!r} in {os.path.basename(staged)!r}",
            hint="Rename the journal: the old values stay as they are",
        )
    os.makedirs(doomed, exist_ok=True)  # it may be lost in a power cut, if the replacement was not durable
    for name in left:
        _rename(base + name, os.path.join(doomed, name))
    if durable and left:  # else a name that was moved away could be there again, and look as one that is not moved yet
        sync_directory(doomed)
        sync_directory(base)
    for name in journal.new:
        if name not in missing:
            if os.path.lexists(base + name):  # written since, through an object that was opened before
                _rename(base + name, os.path.join(doomed, temporary_name(name)))
            os.rename(os.path.join(staged, name), base + name)


def _rename(path: str, target: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        (os.rename if os.path.isdir(path) else localswap.move)(path, target)


def _undo(base: str, journal: RootJournal) -> None:
    """Move everything back, and remove the journal."""
    staged, doomed = _folders(base, journal)
    for name in journal.new:
        if not os.path.lexists(os.path.join(staged, name)) and os.path.lexists(base + name):
            os.rename(base + name, os.path.join(staged, name))
    for name in journal.old:
        if os.path.lexists(os.path.join(doomed, name)):
            os.rename(os.path.join(doomed, name), base + name)
    os.unlink(base + JOURNAL)
    _discard(base, journal)


def _end(base: str, journal: RootJournal, *, durable: bool) -> None:
    if durable:
        sync_names(base + JOURNAL, base, "the directory is replaced")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(base + JOURNAL)
    if durable:
        sync_names(base + JOURNAL, base, "the directory is replaced")
    _discard(base, journal)


def _discard(base: str, journal: RootJournal) -> None:
    for folder in _folders(base, journal):
        shutil.rmtree(folder, ignore_errors=True)


def _folders(base: str, journal: RootJournal) -> tuple[str, str]:
    """Return the hidden directories of the new entries and of the old ones."""
    return _hidden(base, "new", journal.id), _hidden(base, "old", journal.id)


def _hidden(base: str, word: str, identifier: str) -> str:
    return base + temporary_name(word, identifier)
