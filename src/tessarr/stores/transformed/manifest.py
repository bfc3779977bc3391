"""The storage transformer ``chunk-manifest-json``: chunks that are byte ranges of other files, listed in a JSON document.

    {"name": "chunk-manifest-json", "configuration": {"manifest": "./manifest.json"}}

The manifest is a value beside the array's document, of at most 64 MiB. It maps chunk keys below the array, or the chunks'
indices joined by periods, to places; an empty path, and a chunk that is not named, is a missing chunk::

    {"0.0.0": {"path": "s3://bucket/foo.nc", "offset": 100, "length": 100}}

Paths are URLs, or relative to the array. A manifest may be anybody's, so it may refer only to values below its own array,
symbolic links resolved, and to the prefixes that the user allows::

    tessarr.open_array(place, storage_options={"manifest": {"allow": ["s3://bucket/"], "s3": {"region": "eu-west-1"}}})

Every other place raises `ForbiddenPlaceError`. Arrays with a manifest are read-only.

Source: zarr-specs issue 287; VirtualiZarr 1 wrote such arrays. ZEP 1 calls it a file chunk store (zarr-python issue 556).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Self
from urllib.parse import unquote

from tessarr.codecs.members import read_members
from tessarr.common import strict_json
from tessarr.errors import ForbiddenPlaceError, MetadataValidationError, StoreError
from tessarr.keys.base import ChunkKeyEncoding
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.path import is_plain_key, path_of_file_url, prefix_of
from tessarr.stores.protocols import PlainFiles
from tessarr.stores.transformed.manifest_options import ManifestOptions, options_of
from tessarr.stores.url import is_url
from tessarr.stores.virtual.reference import Reference, ReferenceStore
from tessarr.types import JSON, Coords

MOST_NBYTES = 64 << 20
"""Largest manifest that is read."""


def _key_below(value: object) -> str | None:
    key = value.removeprefix("./") if isinstance(value, str) else ""
    return (
        None if is_plain_key(key) else f"must be the path of a value below the array, such as './m.json'; got {value!r}"
    )


class ManifestTransformer:
    """Make stores of the chunks that a manifest lists."""

    changes_layout = True

    def __init__(self, manifest: str = "./manifest.json") -> None:
        self.manifest = manifest

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        name = "chunk-manifest-json"
        checks = {"manifest": _key_below}
        return cls(**read_members(name, configuration, checks, required=("manifest",), kind="storage transformer"))

    def wrap(self, store: Store, path: str, metadata: ArrayMetadata) -> Store:
        return ManifestStore(store, path, self.manifest.removeprefix("./"), metadata)


class _Entries:
    """The references of a manifest by chunk key (`tessarr.stores.virtual.reference.References`), parsed at the first use."""

    def __init__(self, store: Store, prefix: str, name: str, encoding: ChunkKeyEncoding, ndim: int) -> None:
        self._store, self._prefix, self._key = store, prefix, prefix + name
        self._encoding, self._ndim = encoding, ndim
        self._parsed: Mapping[str, object] | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_parsed": None, "_lock": None}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def _entries(self) -> Mapping[str, object]:
        with self._lock:
            if self._parsed is None:
                self._parsed = self._read()
            return self._parsed

    def _read(self) -> Mapping[str, object]:
        nbytes = self._store.getsize(self._key)
        if nbytes is not None and nbytes > MOST_NBYTES:
            raise self._wrong("the manifest is too large", f"at most {MOST_NBYTES} bytes", nbytes)
        value = self._store.get(self._key)
        if value is None:
            raise self._wrong("the manifest of the array is missing", "a JSON object", "no value")
        try:
            found = strict_json.loads(bytes(byte_view(value)), key=self._key)
        except MetadataValidationError as error:
            raise self._wrong("the manifest is not JSON", "a JSON object", str(error)) from error
        if not isinstance(found, Mapping):
            raise self._wrong("the manifest is not a JSON object", "chunk keys and places", type(found).__name__)
        return found

    def _wrong(self, what: str, expected: str, got: object) -> StoreError:
        return StoreError(what, store=self._store.url, key=self._key, expected=expected, got=got)

    def find(self, key: str) -> Reference | None:
        """Return where the value of `key` is. Raises `StoreError` for a malformed entry."""
        name, entries = key.removeprefix(self._prefix), self._entries()
        entry = entries.get(name)
        if entry is None and key.startswith(self._prefix):
            coords = self._encoding.decode(name, self._ndim)
            for separator in () if coords is None else (".", "/"):
                entry = entries.get(_joined(coords, separator)) if entry is None else entry
        if entry is None:
            return None
        fields = (entry.get("path"), entry.get("offset"), entry.get("length")) if isinstance(entry, Mapping) else ()
        match fields:
            case ("", _, _):
                return None
            case (str(path), int(offset), int(length)) if 0 <= offset < 2**63 and 0 <= length < 2**63:
                return Reference(path, int(offset), int(length))
        expected = '{"path": text, "offset": integer, "length": integer}'
        raise self._wrong(f"malformed entry {name!r} of the manifest", expected, repr(entry)[:200])

    def keys(self) -> Iterator[str]:
        """Return the keys of the chunks that are not missing."""
        for name, entry in self._entries().items():
            coords = self._encoding.decode(name, self._ndim)
            if coords is None:
                parts = name.replace("/", ".").split(".")
                if not all(part.isdecimal() and part.isascii() for part in parts):
                    continue
                coords = tuple(map(int, parts)) if self._ndim else ()
            if len(coords) == self._ndim and not (isinstance(entry, Mapping) and entry.get("path") == ""):
                yield self._prefix + self._encoding.encode(coords)


def _joined(coords: Coords | None, separator: str) -> str:
    return separator.join(map(str, coords or (0,)))


class ManifestStore(ReferenceStore):
    """A store of the chunks of the array at `path` of `store`, whose manifest is the value `name` below the array."""

    def __init__(self, store: Store, path: str, name: str, metadata: ArrayMetadata) -> None:
        self.store = store
        self._prefix = prefix_of(path)
        allowed = options_of(store) or ManifestOptions()
        self._allow = allowed.allow
        entries = _Entries(store, self._prefix, name, metadata.chunk_key_encoding, metadata.ndim)
        super().__init__(entries, url=store.url, storage_options=allowed.options)

    @property
    def url(self) -> str:
        return self.store.url

    def _store(self, root: str) -> Store:
        return self.store if root == "" else super()._store(root)

    def split(self, url: str) -> tuple[str, str]:
        """See `ReferenceStore`; the root ``""`` is the store of the array. Raises `ForbiddenPlaceError`."""
        if url.startswith(("/", "file:")):
            path = url if url.startswith("/") else path_of_file_url(url, windows=os.name == "nt")
            real = os.path.realpath(path)
            if not self._is_allowed_file(real):
                raise self._forbidden(url)
            return "/", real.replace(os.sep, "/").lstrip("/")
        if is_url(url):
            segments = unquote(url).split("/")
            if "://" not in url or "." in segments or ".." in segments or not self._is_allowed(url):
                raise self._forbidden(url)
            return super().split(url)
        key = normpath(self._prefix + url)
        if not is_plain_key(key):
            raise self._forbidden(url)
        here = f"{self.store.url.rstrip('/')}/{key}"
        if isinstance(self.store, PlainFiles):
            if not self._is_allowed_file(os.path.realpath(self.store.directory + key)):
                raise self._forbidden(url)
        elif not key.startswith(self._prefix) and not self._is_allowed(here):
            raise self._forbidden(url)
        return "", key

    def _is_allowed(self, url: str) -> bool:
        return any(_is_below(url, prefix, "/") for prefix in self._allow)

    def _is_allowed_file(self, real: str) -> bool:
        """Whether a path without symbolic links is below the array, or below a directory that the user allows."""
        places = [
            path_of_file_url(one, windows=os.name == "nt") if one.startswith("file:") else one
            for one in self._allow
            if one.startswith("file:") or not is_url(one)
        ]
        if isinstance(self.store, PlainFiles):
            places.append(self.store.directory + self._prefix)
        return any(_is_below(real, os.path.realpath(place), os.sep) for place in places)

    def _forbidden(self, url: str) -> ForbiddenPlaceError:
        return ForbiddenPlaceError(
            "the manifest refers to a place that was not allowed",
            store=self.url,
            path="/" + self._prefix.rstrip("/"),
            expected="a place below the array" + "".join(f", or below {prefix}" for prefix in self._allow),
            got=url[:200],
            hint='Allow it, if you trust the manifest: storage_options={"manifest": {"allow": ["…/"]}}',
        )


def _is_below(place: str, prefix: str, separator: str) -> bool:
    return place == prefix or place.startswith(prefix.rstrip(separator) + separator)
