"""Walk, remove and replace directory trees of a local store. Functions of paths; no store.

Hidden names (`tessarr.stores.local.lock`) are skipped, and names that are not Unicode are not keys.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping

from tessarr.errors import StoreError
from tessarr.stores.buffers import byte_view
from tessarr.stores.local import file as localfile
from tessarr.stores.local import replace as localswap
from tessarr.stores.local.exchange import exchange
from tessarr.stores.local.lock import SNAPSHOT_SUFFIX, is_hidden, temporary_name
from tessarr.stores.local.sync import make_directories, sync_directory, sync_names
from tessarr.stores.path import case_collision, is_unicode
from tessarr.types import Buffer


def children(directory: str) -> tuple[list[str], list[str]]:
    """List the names of the files and of the directories in `directory`, following symbolic links."""
    files: list[str] = []
    folders: list[str] = []
    try:
        entries = os.scandir(directory)
    except localfile.ABSENT:
        return files, folders
    with entries:
        for entry in entries:
            name = entry.name
            if is_hidden(name) or not is_unicode(name):
                continue
            if entry.is_dir():
                folders.append(name)
            elif entry.is_file():
                files.append(name)
    return files, folders


def walk(base: str, prefix: str) -> Iterator[str]:
    """List the keys of all files below ``base + prefix``, one directory at a time.

    A symbolic link to a directory is followed unless the directory is an ancestor of the link.
    """
    pending: list[tuple[str, tuple[str, ...]]] = [(prefix, ())]
    while pending:
        prefix, above = pending.pop()
        here = os.path.join(base, prefix.replace("/", os.sep))
        files, folders = children(here)
        yield from (prefix + name for name in files)
        if not folders:
            continue
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        real = os.path.realpath(here)
        for name in folders:
            if name in links:
                target = os.path.realpath(os.path.join(here, name))
                if real == target or real.startswith(target.rstrip(os.sep) + os.sep) or target in above:
                    continue
                pending.append((f"{prefix}{name}/", (*above, target)))
            else:
                pending.append((f"{prefix}{name}/", above))


def remove_tree(path: str, root: str, *, durable: bool) -> bool:
    """Remove the directory, or the link to a directory, at `path`: atomically for readers.

    The directory is renamed to a hidden name first, so that an interrupted removal leaves nothing in the store; with
    `durable` the rename is synced. Returns ``False``, having done nothing, if there is no directory at `path`.
    """
    doomed = _hide(path)
    if doomed is None:
        return False
    if durable:
        sync_names(path, root, "the directory is removed")
    _discard(doomed)
    return True


def clear_directory(path: str, *, durable: bool) -> None:
    """Remove everything in the directory at `path` except hidden files; the directory stays."""
    files, folders = children(path)
    doomed = [_hide(os.path.join(path, name)) for name in folders]
    for name in files:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(path, name))
    if durable and (files or folders):
        sync_names(os.path.join(path, "*"), path, "everything is removed")
    for hidden in doomed:
        if hidden is not None:
            _discard(hidden)


def _hide(path: str) -> str | None:
    """Rename the directory, or the link to a directory, at `path` to a hidden name. Returns that name."""
    if not _is_directory(path):
        return None
    doomed = _staging_path(path)
    try:
        os.rename(path, doomed)
    except FileNotFoundError:
        return None
    return doomed


def _remove(path: str, *, ignore_errors: bool = False) -> None:
    import shutil  # loads the modules of several codecs

    shutil.rmtree(path, ignore_errors)


def _discard(doomed: str) -> None:
    """Remove a directory, or the link to a directory; what another process removes meanwhile is removed."""
    while os.path.lexists(doomed):
        with contextlib.suppress(FileNotFoundError):
            if os.path.islink(doomed):
                os.unlink(doomed)
            else:
                _remove(doomed)


def rename_tree(path: str, target: str, root: str, *, durable: bool) -> bool:
    """Rename the directory at `path` to `target`, both below `root`, in one step.

    Returns ``False``, having done nothing, where there is no directory, where it holds no value (another writer may begin to
    store one there), where something is at `target`, and where the directory cannot be renamed: a link, which may be relative,
    or a place on another file system.
    """
    if os.path.islink(path) or next(walk(path + os.sep, ""), None) is None:
        return False
    make_directories(os.path.dirname(target), root, durable=durable)
    try:
        os.rename(path, target)
    except OSError as error:
        if error.errno in _NOT_RENAMED:
            return False
        raise
    if durable:
        sync_names(target, root, "the directory has its new name")
        sync_names(path, root, "the directory has its new name")
    return True


def exchange_trees(one: str, other: str, root: str, *, durable: bool) -> bool:
    """Exchange two directories below `root`, in one step. Returns ``False``, having done nothing, where `rename_tree` does for
    one of them, and where names cannot be exchanged."""
    for path in (one, other):
        if os.path.islink(path) or next(walk(path + os.sep, ""), None) is None:
            return False
    if not exchange(one, other):
        return False
    if durable:
        sync_names(one, root, "the directory is replaced")
        sync_names(other, root, "the directory is replaced")
    return True


_NOT_RENAMED = (errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.EXDEV, errno.EBUSY)


def replace_tree(path: str, root: str, items: Mapping[str, Buffer], *, durable: bool) -> None:
    """Replace the content of the directory at `path`, which is below `root`, by `items` (keys below `path` → values).

    The items are staged in a hidden directory beside `path`, which is swapped in; then the old tree is removed. An error
    before the swap leaves the old tree unchanged.
    """
    if os.path.lexists(path) and not _is_directory(path):
        raise NotADirectoryError(20, "a value is where a directory should be", path)
    make_directories(os.path.dirname(path), root, durable=durable)
    staged = _staging_path(path)
    try:
        stage(staged, items, durable=durable)
        doomed = _swap_in(staged, path)
    except BaseException:
        _remove(staged, ignore_errors=True)
        raise
    if durable:
        sync_names(path, root, "the directory is replaced")
    if doomed is not None:
        _discard(doomed)


def _swap_in(staged: str, path: str) -> str | None:
    """Rename the directory `staged` to `path`. Returns the hidden name of the directory that was there, if any.

    Atomic where two names can be exchanged; elsewhere `path` briefly does not exist.
    """
    if exchange(staged, path):
        return staged
    doomed = _staging_path(path) if os.path.lexists(path) else None
    if doomed is not None:
        os.rename(path, doomed)
    try:
        os.rename(staged, path)
    except BaseException:
        if doomed is not None:
            os.rename(doomed, path)
        raise
    return doomed


def replace_children(path: str, items: Mapping[str, Buffer], *, durable: bool) -> None:
    """Replace the content of a directory that cannot be renamed, a store's root, by swapping its entries one by one.

    For places without locks, where there are no journals (`tessarr.stores.local.transactions.root`). When a rename fails, the
    previous renames are undone. A process killed between the renames leaves old and new entries mixed; the remaining ones of
    both are in hidden directories.
    """
    make_directories(path, path, durable=durable)
    staged, doomed = (os.path.join(path, temporary_name(word)) for word in ("new", "old"))
    done: list[tuple[str, str]] = []
    try:
        stage(staged, items, durable=durable)
        os.mkdir(doomed)
        old_files, old_folders = children(path)
        new_names = [entry.name for entry in os.scandir(staged)]
        away = [(os.path.join(path, name), os.path.join(doomed, name)) for name in (*old_files, *old_folders)]
        moves = away + [(os.path.join(staged, name), os.path.join(path, name)) for name in new_names]
        for at, (source, target) in enumerate(moves):
            (localswap.move if at < len(old_files) else os.rename)(source, target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            os.rename(target, source)
        _remove(staged, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(doomed)
        raise
    if durable:
        sync_names(staged, path, "the directory is replaced")
    _remove(staged)
    _remove(doomed)


def stage(directory: str, items: Mapping[str, Buffer], *, durable: bool) -> None:
    """Write `items` as a new tree at `directory`."""
    os.mkdir(directory)
    made = {directory}
    for key, value in items.items():
        path = os.path.join(directory, key.replace("/", os.sep))
        parent = os.path.dirname(path)
        os.makedirs(parent, exist_ok=True)
        while parent not in made:
            made.add(parent)
            parent = os.path.dirname(parent)
        localfile.write_value(os.open(path, localfile.CREATE, 0o666), [byte_view(value)], durable=durable)
    if durable:
        for folder in made:
            sync_directory(folder)


def remove_empty_tree(path: str) -> None:
    """Remove a directory which who removed the files in it has left. Where there are files in it, or below, it stays."""
    with contextlib.suppress(OSError):
        for folder, _, _ in os.walk(path, topdown=False):
            os.rmdir(folder)


def remove_leftovers(base: str, older_than_s: float, now_s: float, *, dry_run: bool = False) -> int:
    """Remove hidden names last changed more than `older_than_s` seconds before `now_s`. Returns their number.

    With `dry_run` they are only counted.
    """
    count = 0
    for folder, folders, files in os.walk(base):
        hidden = [os.path.join(folder, name) for name in (*files, *folders) if is_hidden(name)]
        folders[:] = [name for name in folders if not is_hidden(name)]
        for path in hidden:
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(path)
                if path.endswith(os.sep + SNAPSHOT_SUFFIX):
                    continue  # it may be in use, however old it is
                if now_s - status.st_mtime > older_than_s:
                    count += 1
                    if dry_run:
                        continue
                    (_remove if stat.S_ISDIR(status.st_mode) else os.unlink)(path)
    return count


def is_case_blind(probe: str) -> bool:
    """Whether the name of the file `probe` in another case leads to a file."""
    folder, name = os.path.split(probe)
    return os.path.lexists(os.path.join(folder, name.upper()))


def refuse_colliding(base: str, key: str, url: str) -> None:
    """Raise `StoreError` if a name on the path to `key` exists in another case only. `url` names the store in the error."""
    folder = base
    for name in key.split("/"):
        # Names without letters, as most chunks have, need no listing of a possibly large directory.
        other = None if name.lower() == name.upper() else case_collision(name, os.listdir(folder))
        if other is not None:
            raise StoreError(
                "this file system is case-insensitive, and another name differs in case only",
                store=url,
                key=key,
                got=f"{name!r} beside {other!r}",
                hint="Choose another name, or another kind of store",
            )
        folder = os.path.join(folder, name)


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except localfile.ABSENT:
        return False


def _staging_path(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, temporary_name(name))
