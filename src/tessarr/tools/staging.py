"""Stage new data, and move it to its destination only when it is complete.

The data is written beside its destination, under a hidden name, and renamed, without `overwrite` only to a free name. Where no
rename is one step, as in object storage, it is written to a free path, whose documents are created first and only where none
are, or beside the node it replaces and copied at the end. After an error what was written is removed, and nothing that another
client has made. A process that is killed leaves the hidden ``.NAME*.partial`` behind, and the old data unchanged.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from tessarr.core.claims.one_copy import one_copy
from tessarr.core.locate import locate
from tessarr.core.open import open as open_node
from tessarr.core.stored import create_nodes, metadata_io
from tessarr.core.stored.consolidated import follow_directory
from tessarr.core.stored.create_nodes import describe_made, take_back
from tessarr.core.stored.move import move_node, replace_node
from tessarr.core.stored.read_nodes import NodeMetadata, read_node
from tessarr.core.stored.walk import read_entries
from tessarr.errors import (
    BaseZarrError,
    ConflictError,
    ContainsArrayError,
    ContainsGroupError,
    NodeNotFoundError,
    StoreError,
    TessarrError,
    UnsupportedOperationError,
)
from tessarr.metadata import serialize
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.base import Store
from tessarr.stores.path import join, normalize_path, path_of_file_url, prefix_of
from tessarr.stores.protocols import Delete, RenamePrefix
from tessarr.stores.url import StoreLike, as_url, is_url, same_place, store_from
from tessarr.stores.virtual.branches import is_session
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.stores.wrappers.prefix import PrefixStore
from tessarr.types import ZarrFormat

if TYPE_CHECKING:
    from tessarr.metadata.n5 import AxisOrder


class Staging(NamedTuple):
    """Where new nodes are written."""

    store: Store
    path: str
    made: dict[str, NodeMetadata]
    """The nodes that were created, by path: what is removed after an error. Their writer adds them."""
    is_hidden: bool = False
    """Whether `path` is not where the nodes will be: no group is created above it."""

    def create(self, nodes: Mapping[str, NodeMetadata]) -> None:
        """Create nodes, by path below `path`, parents before children, none of which may be there."""
        for below, metadata in nodes.items():
            path = join(self.path, below)
            self.made[path] = metadata  # first: after an error it may be there
            try:
                self._create(path, metadata)
            except (ConflictError, ContainsArrayError, ContainsGroupError):
                del self.made[path]
                raise

    def _create(self, path: str, metadata: NodeMetadata) -> None:
        if self.is_hidden:
            metadata_io.check_path(path.removeprefix(self.path).strip("/"), metadata.zarr_format)
            serialize.warn_of_unstable_array(metadata)
            for key, data in metadata_io.keyed_documents(path, metadata.documents()).items():
                metadata_io.put_document(self.store, key, data, overwrite=False)
        else:
            metadata_io.create_node(self.store, path, metadata, newer=True)  # see `describe_made`


@contextmanager
def staged(
    dest: StoreLike, path: str = "", *, overwrite: bool = False, zarr_format: ZarrFormat = 3,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[Staging]:  # fmt: skip
    """Yield where to write new nodes of a format; leaving without an error puts them at `path` of `dest`.

    Raises `BaseZarrError` when something is at the destination, before or after, and not `overwrite`, or when it is not Zarr
    data.
    """
    dest, path = from_above(dest, normalize_path(path), overwrite=overwrite, storage_options=storage_options)
    local = local_path(dest)
    if local is not None and not path and not os.path.islink(local):
        with _staged_local(local, overwrite) as store:
            yield Staging(store, "", {})
        return
    store, here, _ = locate(dest, path, None, storage_options)
    if isinstance(store, Delete):
        with _within(store, here, overwrite, zarr_format) as staging:
            yield staging
        return
    raise UnsupportedOperationError(
        "this store cannot remove written data if something fails",
        store=store.url,
        hint="Write to a new place, then copy it",
    )


def local_path(dest: object) -> str | None:
    """Return the local path of `dest`; ``None`` for URLs and open stores."""
    if isinstance(dest, os.PathLike):
        return str(os.fspath(dest))
    if not isinstance(dest, str):
        return None
    if dest.startswith("file:") and "::" not in dest and "|" not in dest:
        return path_of_file_url(dest, windows=os.name == "nt")
    return None if is_url(as_url(dest)) else os.path.expanduser(dest)


def from_above(
    dest: StoreLike, path: str, *, overwrite: bool, storage_options: Mapping[str, object] | None = None
) -> tuple[StoreLike, str]:
    """Return the URL above `dest` and the last name of `dest`, where a node at the root of a URL is to be replaced; else both
    as they are.

    Beside a root nothing can be written, but beside a name is room for what replaces it.
    """
    if path or not overwrite or not isinstance(dest, str) or local_path(dest) is not None or "|" in dest:
        return dest, path
    above, _, name = dest.rstrip("/").rpartition("/")
    if above.endswith("/") or "/" not in above:  # a bucket, or a host
        return dest, path
    whole, here, _ = locate(dest, None, None, storage_options)
    if here or not node_at(whole, "", overwrite):
        return dest, path
    try:
        parent, at = store_from(above, storage_options=storage_options)
    except StoreError:  # `dest` is itself the outermost place
        return dest, path
    from urllib.parse import unquote

    inside = join(at, unquote(name))
    return (above, unquote(name)) if same_place(PrefixStore(parent, inside), whole) else (dest, path)


def axis_order_of(dest: object, storage_options: Mapping[str, object] | None = None) -> AxisOrder | None:
    """Return the axis order of the N5 container at `dest`; ``None``: it is not an N5 container."""
    if isinstance(dest, str) and "|" not in dest:
        return None
    from tessarr.stores.virtual.n5 import N5Store

    store, _ = store_from(dest, storage_options=storage_options)
    while isinstance(store, WrapperStore) and not isinstance(store, N5Store):
        store = store.store
    return store.axis_order if isinstance(store, N5Store) else None


def check_free(
    dest: StoreLike, path: str = "", *, overwrite: bool = False, storage_options: Mapping[str, object] | None = None
) -> None:
    """Raise the errors of `staged` about the destination, before any work is done."""
    local = local_path(dest)
    if local is not None and not path:
        _check_local(os.path.abspath(local), overwrite)
    elif local is None or os.path.exists(local):
        store, here, _ = locate(dest, path, None, storage_options)
        node_at(store, here, overwrite)


def _check_local(final: str, overwrite: bool) -> None:
    if not os.path.lexists(final):
        return
    empty = os.path.isdir(final) and not os.listdir(final)
    if empty:
        return
    if not overwrite:
        raise _in_the_way(final)
    try:
        open_node(final, mode="r").close()
    except (NodeNotFoundError, StoreError) as error:
        raise BaseZarrError(
            "the destination holds data that is not Zarr, which is not replaced",
            store=final,
            hint="Choose another destination",
        ) from error
    except TessarrError:
        return  # damaged Zarr data may be replaced


def _in_the_way(final: str) -> BaseZarrError:
    return BaseZarrError(
        "something is at the destination", store=final, hint="Replace it with overwrite=True (--overwrite)"
    )


@contextmanager
def _staged_local(path: str, overwrite: bool) -> Iterator[Store]:
    final = os.path.abspath(path)
    _check_local(final, overwrite)
    folder, name = os.path.split(final)
    partial = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.partial")
    with _naming(final):
        made = _make_directories(folder)
        store = _new_store(partial, zipped=name.endswith(".zip"))
    try:
        yield store
        store.close()
        with _naming(final):
            put_in_place(partial, final, old_of(partial), overwrite=overwrite)
        if os.path.isdir(final):
            follow_directory(final)
    except BaseException:
        with suppress(Exception):
            store.close()
        _remove(partial)
        for created in reversed(made):
            with suppress(OSError):
                os.rmdir(created)
        raise


@contextmanager
def _naming(final: str) -> Iterator[None]:
    """Raise `StoreError` that names the destination for an error of the operating system."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        got = f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror}"
        trouble = StoreError("could not put the data in place", store=final, got=got)
        trouble.errno = error.errno
        raise trouble from error


def _make_directories(folder: str) -> list[str]:
    """Create a folder and those above it; return the ones that were missing, the topmost first."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for made in reversed(missing):
        os.mkdir(made)
    return missing[::-1]


def _new_store(partial: str, *, zipped: bool) -> Store:
    if zipped:
        from tessarr.stores.zip.store import ZipStore

        return ZipStore(partial, mode="w")
    from tessarr.stores.local.store import LocalStore

    os.mkdir(partial)
    return LocalStore(partial)


def put_in_place(partial: str, final: str, old: str, *, overwrite: bool) -> None:
    """Rename `partial` to `final`; the old data is at `old` meanwhile, is removed last, and restored if the rename fails.

    Raises `BaseZarrError` for what may not be replaced (see `staged`), also where it has appeared meanwhile.
    """
    _check_local(final, overwrite)
    if not overwrite or not os.path.lexists(final):
        _rename_to_free(partial, final)
        _remove(old)  # where the process that began this was killed
        return
    os.rename(final, old)
    try:
        os.rename(partial, final)
    except OSError:
        os.rename(old, final)
        raise
    _remove(old)


def _rename_to_free(partial: str, final: str) -> None:
    """Rename `partial` to a name that is free, or that of an empty directory."""
    with suppress(OSError):
        os.rmdir(final)
    try:
        if os.path.isdir(partial):  # a directory takes the place of nothing but an empty directory
            os.rename(partial, final)
        elif _linked(partial, final):
            os.unlink(partial)
        else:
            _check_local(final, overwrite=False)
            os.rename(partial, final)
    except OSError as error:
        if error.errno in _TAKEN and os.path.lexists(final):
            raise _in_the_way(final) from error
        raise


_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR, errno.EACCES)
"""Errors of a rename to a name that is not free; the last one is that of Windows."""


def _linked(partial: str, final: str) -> bool:
    """Give a file a second name, which must be free. Returns ``False`` where the file system has no links."""
    try:
        os.link(partial, final)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):
        return False
    return True


def old_of(partial: str) -> str:
    """Return where the data that `partial` replaces is until it has its place."""
    return f"{partial}.old"


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)


def beside_node(path: str, number: str) -> str:
    """Return where the node at `path` is made that takes its place when it is complete: no member of the group there.

    >>> beside_node("g/a", "0123abcd")
    'g/.a-0123abcd.partial'
    """
    group, _, name = path.rpartition("/")
    return f"{prefix_of(group)}.{name}-{number}.partial"


def node_at(store: Store, path: str, overwrite: bool) -> bool:
    """Return whether there is a node at `path`, where `overwrite` allows it."""
    present = read_entries(store, [path])[0].kind is not None
    if present and not overwrite:
        raise BaseZarrError(
            "something is at the destination",
            store=store.url,
            path=f"/{path}",
            hint="Replace it with overwrite=True (--overwrite)",
        )
    return present


def replaced_node_at(store: Store, path: str, overwrite: bool) -> bool:
    """Return what `node_at` does. Raises `UnsupportedOperationError` for the root, beside which nothing can be written."""
    present = node_at(store, path, overwrite)
    if present and not path:
        raise UnsupportedOperationError(
            "the root of an open store is not replaced",
            store=store.url,
            hint="Write to a path in it, or to an empty place",
        )
    return present


@contextmanager
def _within(store: Store, path: str, overwrite: bool, zarr_format: ZarrFormat) -> Iterator[Staging]:
    present = replaced_node_at(store, path, overwrite)
    # Where it is a rename that puts nodes in place, readers find none that has only a part of its values.
    is_hidden = present or (bool(path) and isinstance(store, RenamePrefix) and not is_session(store))
    number = os.urandom(4).hex()
    at = beside_node(path, number if present else f"{number}.new") if is_hidden else path
    if is_hidden and not present:
        create_nodes.check_free(store, path, zarr_format)
    # Missing groups above a new node are created, and removed again after an error.
    groups = () if present else metadata_io.require_ancestors(store, path, zarr_format)
    made: dict[str, NodeMetadata] = {above: GroupMetadata(zarr_format=zarr_format) for above in groups}
    is_complete = False
    try:
        yield Staging(store, at, made, is_hidden)
        is_complete = present
        if present:
            with one_copy(store, path):
                replace_node(store, at, path)
        elif is_hidden:
            move_node(store, at, path, above=False)
        describe_made(store, {_placed(place, at, path): node for place, node in made.items()})
        store.close()
    except BaseException as error:
        with suppress(Exception):
            if not is_complete or _is_there(store, path):
                take_back(store, made)
            else:
                error.add_note(
                    f"the old node at /{path} may be removed, and the new one is at /{at}: move it, or repeat this"
                )
        raise


def _placed(place: str, at: str, path: str) -> str:
    """Return where a node is, of those that were made at and below `at`, or above, when they are moved to `path`.

    >>> _placed("g/.a-01.partial/b", "g/.a-01.partial", "g/a"), _placed("g", "g/.a-01.partial", "g/a")
    ('g/a/b', 'g')
    """
    return path + place[len(at) :] if (place + "/").startswith(prefix_of(at)) else place


def _is_there(store: Store, path: str) -> bool:
    """Whether there is a node at `path`; ``False`` also where that is unknown."""
    try:
        return read_node(store, path) is not None
    except StoreError:
        return False
