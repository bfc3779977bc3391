"""Open what a user wants to convert: files, one or many, or anything that `tessarr.open` accepts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from copy import copy
from glob import glob, has_magic
from typing import TYPE_CHECKING, cast

from tessarr.errors import BaseZarrError, StoreError, UnsupportedOperationError
from tessarr.stores.url import StoreLike, as_url, is_url
from tessarr.tools.sources import open_file, open_source, source_kind
from tessarr.tools.sources.base import Source, SourceArray
from tessarr.tools.sources.remote_file import RemoteFile, is_file_url, is_pattern, listed
from tessarr.tools.staging import local_path

if TYPE_CHECKING:
    from tessarr.tools.files.agree import Along
    from tessarr.tools.files.scan import ScannedFile

IN_PLACE = ("zarr", "npz")
"""Kinds that are read as they are: Zarr has chunks itself, archives are unpacked once."""


_WITH_USER = re.compile(r"(https?://)([^/@?#|]*)@([^/?#|]*)(?!.*(?:\||::))")


def without_passwords(
    source: StoreLike | Sequence[str | os.PathLike[str]], options: Mapping[str, object] | None
) -> tuple[StoreLike | Sequence[str | os.PathLike[str]], Mapping[str, object] | None]:
    """Take user names and passwords out of URLs of HTTP, and put them into the options: plans and references say the URLs.

    Raises `UnsupportedOperationError` where files are not of one user at one server.
    """
    given: Sequence[object] = source if isinstance(source, list | tuple) else [source]
    matches = [_WITH_USER.match(url) if isinstance(url, str) else None for url in given]
    found = {None if match is None else (match[2], match[3]) for match in matches}
    if found <= {None}:
        return source, options
    if len(found) > 1:
        hint = "Give the password as an option of the store, or convert them one by one"
        raise UnsupportedOperationError("a password in URLs is for files of one user at one server", hint=hint)
    from tessarr.stores.remote.credentials import authorization_of

    urls = [match.string for match in matches if match is not None]
    headers = cast("Mapping[str, str]", (options or {}).get("headers", {}))
    kept = {**(options or {}), "headers": {"Authorization": authorization_of(urls[0]), **headers}}
    clean = [_WITH_USER.sub(r"\1\3", url) for url in urls]
    return (clean[0] if isinstance(source, str) else clean), kept


def open_to_convert(
    source: StoreLike | Sequence[str | os.PathLike[str]],
    kind: str | None = None,
    *,
    along: str | None = None,
    gaps: bool = False,
    unpack: bool = False,
    jobs: int = 1,
    executor: Executor | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Source:
    """Open a source; many files, as a list or a pattern, are scanned and joined along a dimension.

    Arguments and errors: see `tessarr.tools.convert.convert`.
    """
    source, storage_options = without_passwords(source, storage_options)
    places = source if isinstance(source, list | tuple) else _places(source, kind, storage_options)
    if places is None or isinstance(places, RemoteFile):
        opened = open_source(cast("StoreLike", source) if places is None else places, kind, storage_options)
        return _with_unpacked(opened) if unpack else opened
    if not places:
        raise BaseZarrError("there are no files to convert")
    from tessarr.tools.files.agree import check_agreement  # here, since plans of Zarr need none of this
    from tessarr.tools.files.joined import FilesSource
    from tessarr.tools.files.scan import scan

    places = [place if isinstance(place, RemoteFile) else os.fspath(place) for place in places]
    if len(places) == 1:
        way: Along | None = None
        files = [scan(places[0], kind, None, storage_options)]
    else:
        files, way = _scanned([str(place) for place in places], kind, along, jobs, executor, storage_options)
        check_agreement(files, way, packing=not unpack, gaps=gaps)
    return FilesSource.scanned(files, way, unpack=unpack, storage_options=storage_options)


def _places(
    source: object, kind: str | None, storage_options: Mapping[str, object] | None
) -> list[str] | list[RemoteFile] | RemoteFile | None:
    """Return the files that are meant, or one in a store, which is opened.

    ``None``: a place of Zarr; one file and no list: of a kind that is read as it is.
    """
    name = local_path(source) or (source if isinstance(source, str) else None)
    if name is not None and is_file_url(name):
        if is_pattern(name):
            return listed(name, storage_options)
        found = open_file(name, kind, storage_options)
        return None if found is None else found[0] if found[1] in IN_PLACE else [found[0]]
    if name is None or is_url(as_url(name)) or os.path.isdir(name):
        return None
    if not os.path.exists(name) and has_magic(name):
        matched = sorted(glob(name, recursive=True))
        if not matched:
            raise StoreError("no file matches the pattern", store=name)
        return matched
    return [name] if os.path.isfile(name) and source_kind(name) not in IN_PLACE else None


def _scanned(
    places: Sequence[str],
    kind: str | None,
    along: str | None,
    jobs: int,
    executor: Executor | None,
    options: Mapping[str, object] | None,
) -> tuple[list[ScannedFile], Along]:
    from tessarr.tools.files.agree import Along, dimension_between, join_scalars, ordered
    from tessarr.tools.files.scan import scan, scan_files

    if along is None:
        along = dimension_between(scan(places[0], kind, None, options), scan(places[1], kind, None, options))
    files: list[ScannedFile] = []
    for file in scan_files(places, kind, along, jobs=jobs, executor=executor, storage_options=options):
        if files:
            for array in file.arrays.values():
                if array.digest is not None and array.node.shape:
                    array.values = None  # those of the first file are kept, and equal
        files.append(file)
    is_new = not any(_has(file, along) for file in files)
    if is_new:
        join_scalars(files)
    return ordered(files, along), Along(along, is_new)


def _has(file: ScannedFile, along: str) -> bool:
    return any(along in (array.node.dimension_names or ()) for array in file.arrays.values())


def _with_unpacked(source: Source) -> Source:
    from tessarr.tools.files.unpack import is_packed, unpacked

    made = copy(source)
    made.nodes = [
        unpacked(node) if isinstance(node, SourceArray) and is_packed(node) else node for node in source.nodes
    ]
    return made
