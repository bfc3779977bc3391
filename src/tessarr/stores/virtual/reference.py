"""Reference files (kerchunk, VirtualiZarr): a Zarr hierarchy whose chunks are byte ranges of other files.

A JSON file maps keys to values, whole files or parts of files::

    {"version": 1, "templates": {"u": "s3://bucket/data.nc"}, "refs": {
        ".zgroup": "{\\"zarr_format\\": 2}",
        "t/0": ["{{u}}", 4096, 1000], "t/1": ["{{u}}"], "t/2": "base64:AAAA"}}

A Parquet reference is a directory: ``.zmetadata`` with all documents and a ``record_size``, and for each array
``refs.0.parq``, ``refs.1.parq`` … with a row (path, offset, size, raw) for each chunk in C order, read when needed.

The store is read-only. Chunks are fetched from the stores of their URLs, by one `fetch` per store. ``templates`` (with
arguments) and ``gen`` are expanded; expressions in them are integer arithmetic, never code.

Limits: Parquet needs pyarrow. Source: https://fsspec.github.io/kerchunk/spec.html (version 1).
"""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple, Protocol, Self, cast

from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.base import Fetch, Store
from tessarr.stores.buffers import byte_view, cut
from tessarr.stores.fetch import Extent, Located
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import WRITING
from tessarr.stores.remote.fetch_methods import AsyncFetchingStore
from tessarr.stores.remote.loop import gather_or_cancel, in_caller_thread, invoke
from tessarr.stores.remote.retry import scrub_url
from tessarr.types import JSON, Buffer, ByteRange

_List = list


class Reference(NamedTuple):
    """Bytes `offset` to ``offset + nbytes`` of the file at `url`; the whole file if `nbytes` is ``None``."""

    url: str
    offset: int = 0
    nbytes: int | None = None


class References(Protocol):
    """A map from keys to values or references."""

    def find(self, key: str) -> bytes | Reference | None:
        """Return the value of `key`, or a reference to it; ``None`` if the key is missing."""
        ...

    def keys(self) -> Iterable[str]:
        """Return every key."""
        ...


class JSONReferences:
    """The references in a JSON document of version 0 (a plain map) or 1.

    >>> refs = {"a/0": ["{{u(c='x')}}", 1, 2]}
    >>> JSONReferences({"version": 1, "templates": {"u": "s3://b/{{c}}.nc"}, "refs": refs}).find("a/0")
    Reference(url='s3://b/x.nc', offset=1, nbytes=2)
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        from tessarr.stores.virtual.templates import expand_references

        self._refs = expand_references(document)

    def find(self, key: str) -> bytes | Reference | None:
        found = self._refs.get(key)
        if found is None:
            return None
        if isinstance(found, str):
            return _inline(found, key)
        if isinstance(found, Mapping):
            return json.dumps(found).encode()
        if (
            not isinstance(found, list)
            or len(found) not in (1, 3)
            or not isinstance(found[0], str)
            or not all(type(number) is int and 0 <= number < 2**63 for number in found[1:])
        ):
            raise StoreError("a malformed reference", key=key, expected="[url] or [url, offset, length]", got=found)
        return Reference(str(found[0]), *cast("list[int]", found[1:]))

    def keys(self) -> Iterable[str]:
        return self._refs.keys()


class ParquetReferences:
    """The references in a directory of Parquet files, in `store`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        document = store.get(".zmetadata")
        if document is None:
            raise StoreError("the directory has no Parquet references", store=store.url, expected="a key .zmetadata")
        parsed = json.loads(bytes(byte_view(document)))
        self._documents: dict[str, Any] = parsed["metadata"]
        self._record_size = int(parsed["record_size"])
        self._records: dict[tuple[str, int], dict[str, _List[Any]]] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, JSON]:
        return {**self.__dict__, "_records": {}, "_lock": None}

    def __setstate__(self, state: Mapping[str, JSON]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def find(self, key: str) -> bytes | Reference | None:
        if key in self._documents:
            value = self._documents[key]
            return value.encode() if isinstance(value, str) else json.dumps(value).encode()
        field, _, name = key.rpartition("/")
        found = self._split(key, field, name)
        if found is None:
            return None
        field, number = found
        record, row = divmod(number, self._record_size)
        table = self._record(field, record)
        if row >= len(table["path"]):
            return None
        if table["raw"][row] is not None:
            return bytes(table["raw"][row])
        path = table["path"][row]
        if path is None:
            return None
        offset, nbytes = int(table["offset"][row] or 0), int(table["size"][row] or 0)
        return Reference(path, offset, nbytes) if nbytes else Reference(path)

    def _split(self, key: str, field: str, name: str) -> tuple[str, int] | None:
        """Return the array of a chunk key, and the number of the chunk in C order."""
        while field and f"{field}/.zarray" not in self._documents:  # separator "/": deeper keys
            field, _, part = field.rpartition("/")
            name = f"{part}/{name}"
        document = self._documents.get(f"{field}/.zarray")
        if document is None:
            return None
        array = json.loads(document) if isinstance(document, str) else document
        counts = _chunk_counts(array)
        separator = array.get("dimension_separator") or "."
        parts = name.split(separator)
        if not all(part.isdecimal() for part in parts):
            return None
        coords = [int(part) for part in parts]
        if not counts:
            return (field, 0) if coords == [0] else None
        if len(coords) != len(counts) or any(at >= count for at, count in zip(coords, counts, strict=True)):
            return None
        number = 0
        for at, count in zip(coords, counts, strict=True):
            number = number * count + at
        return field, number

    def _record(self, field: str, record: int) -> dict[str, _List[Any]]:
        with self._lock:
            found = self._records.get((field, record))
            if found is None:
                key = f"{field}/refs.{record}.parq"
                data = self._store.get(key)
                if data is None:
                    raise StoreError("a file of references is missing", store=self._store.url, key=key)
                found = self._records[field, record] = _read_parquet(data)
            return found

    def keys(self) -> Iterable[str]:
        """See `References.keys`. Chunks without a reference are left out."""
        import itertools

        yield from self._documents
        for key, document in self._documents.items():
            field, _, name = key.rpartition("/")
            if name != ".zarray":
                continue
            array = json.loads(document) if isinstance(document, str) else document
            separator = array.get("dimension_separator") or "."
            for coords in itertools.product(*map(range, _chunk_counts(array))):
                chunk = f"{field}/{separator.join(map(str, coords or (0,)))}"
                if self.find(chunk) is not None:
                    yield chunk


class ReferenceStore(AsyncFetchingStore):
    """A store of the values in `references`, which were read from `url`.

    `storage_options` are for the stores of the referenced files: options per scheme (``{"s3": {…}}``), or the same options
    for all. Relative URLs are relative to `base`.
    """

    requests_at_once = 16
    read_only = True

    adapter = "zarr"
    """In URL pipelines: ``place|zarr:path``."""

    def has_ability(self, ability: type) -> bool:
        """Whether references have `ability`: all for reading."""
        return ability not in WRITING and super().has_ability(ability)

    def __init__(
        self,
        references: References | Mapping[str, Any],
        *,
        url: str | None = None,
        base: str = "",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.references: References = JSONReferences(references) if isinstance(references, Mapping) else references
        self._url = url or f"object+references://{id(self):x}"
        self._base = base
        self._options = dict(storage_options or {})
        self._stores: dict[str, Store] = {}

    @classmethod
    def open(cls, place: str, *, storage_options: Mapping[str, Any] | None = None) -> Self:
        """Open a JSON file, or a directory of Parquet files, at the path or URL `place`.

        ``storage_options={"references": {…}}`` are the options for opening `place`.
        """
        from tessarr.stores.url import is_url, store_from

        options = dict(storage_options or {})
        place_options = options.pop("references", None)
        place = place if is_url(place) else os.path.abspath(place).replace(os.sep, "/")
        directory, _, name = place.rstrip("/").rpartition("/")
        url = f"reference:{scrub_url(place) if is_url(place) else place}"
        settings: dict[str, Any] = {"url": url, "base": directory, "storage_options": options}
        if name.endswith((".json", ".jsn")):
            store, path = store_from(directory or "/", read_only=True, storage_options=place_options)
            data = store.get(f"{path}/{name}".lstrip("/"))
            if data is None:
                raise StoreError("the file of references does not exist", store=scrub_url(place))
            return cls(json.loads(bytes(byte_view(data))), **settings)
        store, path = store_from(place, read_only=True, storage_options=place_options)
        if path:
            from tessarr.stores.wrappers.prefix import PrefixStore

            store = PrefixStore(store, path)
        return cls(ParquetReferences(store), **settings)

    @property
    def url(self) -> str:
        if self._url.startswith("object+"):
            from tessarr.stores.memory.process_urls import registered

            return registered(self, self._url)
        return self._url

    def with_read_only(self, read_only: bool = True) -> Self:
        if not read_only:
            raise UnsupportedOperationError("references are read-only", store=self.url)
        return self

    def __getstate__(self) -> dict[str, object]:
        from tessarr.stores.remote.credentials import strip_secrets

        return {**self.__dict__, "_stores": {}, "_options": strip_secrets(self._url, self._options)}

    def __setstate__(self, state: Mapping[str, JSON]) -> None:
        from tessarr.stores.remote.credentials import restore_secrets

        self.__dict__.update(state)
        self._options = restore_secrets(self._url, self._options)

    def close(self) -> None:
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    # -- reading -----------------------------------------------------------------------------------------------

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """Call `fetch` of each referenced store, concurrently."""
        results, batches = await in_caller_thread(self._plan, requests)
        found = await gather_or_cancel(
            [
                invoke(store.fetch, store.fetch_async, [fetch for _, fetch, _ in batch])
                for store, batch in zip(map(self._store, batches), batches.values(), strict=True)
            ]
        )
        for batch, responses in zip(batches.values(), found, strict=True):
            self._fill(results, batch, responses)
        return results

    def _plan(
        self, requests: Sequence[Fetch]
    ) -> tuple[_List[_List[Buffer] | None], dict[str, _List[tuple[int, Fetch, bool]]]]:
        """Return the results that are in the references, and for each store the number of each request with its fetch, and
        whether the reference is to a part of a file.
        """
        results: _List[_List[Buffer] | None] = []
        batches: dict[str, _List[tuple[int, Fetch, bool]]] = {}
        for number, (key, ranges) in enumerate(requests):
            check_key(key)
            found = self.references.find(key)
            results.append(None)
            if isinstance(found, bytes):
                results[number] = [cut(found, part) for part in (ranges if ranges is not None else (None,))]
            elif found is not None:
                root, name = self.split(found.url)
                batches.setdefault(root, []).append(
                    (number, Fetch(name, _ranges_in_file(found, ranges)), found.nbytes is not None)
                )
        return results, batches

    def locate(self, keys: Sequence[str]) -> _List[Located | None] | None:
        """See `tessarr.stores.protocols.Locate`: extents of the referenced files, for values that are not in the references."""
        located: _List[Located | None] = []
        places: dict[str, tuple[Store, str]] = {}
        for key in keys:
            check_key(key)
            found = self.references.find(key)
            if isinstance(found, bytes):
                return None
            if found is None:
                located.append(None)
                continue
            place = places.get(found.url)
            if place is None:
                place = places[found.url] = self.file_at(found.url)
            offset = 0 if found.nbytes is None else found.offset
            located.append(Located((Extent(*place, offset, found.nbytes),)))
        return located

    def _fill(
        self,
        results: _List[_List[Buffer] | None],
        batch: Sequence[tuple[int, Fetch, bool]],
        responses: Sequence[_List[Buffer] | None],
    ) -> None:
        for (number, request, is_part), response in zip(batch, responses, strict=True):
            if response is None:
                raise StoreError(
                    "a referenced file is missing", store=self.url, got=request.key,
                    hint="It was moved or deleted after the references were made",
                )  # fmt: skip
            # A range beyond the end of a whole file is cut there; one of a part is within the part.
            for part, body in zip(request.ranges or () if is_part else (), response, strict=False):
                if part.stop is not None and byte_view(body).nbytes != part.stop - part.start:
                    raise StoreError("a referenced file is too short", store=self.url, got=request.key, expected=part)
            results[number] = response

    def split(self, url: str) -> tuple[str, str]:
        """Split `url` into the root, for which one store is opened, and the key in that store."""
        from tessarr.stores.url import is_url

        if not is_url(url):
            path = url if url.startswith("/") or not self._base else f"{self._base}/{url}"
            if not is_url(path):
                path = os.path.abspath(path).replace(os.sep, "/")
            url = path
        if "://" not in url:
            return "/", url.partition(":")[2].lstrip("/") if is_url(url) else url.lstrip("/")
        scheme, _, rest = url.partition("://")
        # The root of a URL with an endpoint includes the bucket (Azure: account and container).
        depth = {"s3": 2, "gs": 2, "az": 3}.get(scheme.partition("+")[0], 1) if "+" in scheme else 1
        segments = rest.split("/", depth)
        host, name = "/".join(segments[:depth]), "/".join(segments[depth:])
        return (f"{scheme}://{host}" if host else f"{scheme}:///"), name

    def file_at(self, url: str) -> tuple[Store, str]:
        """Return the store of a file, opened once for all files of a bucket or host, and the key of the file in it."""
        root, name = self.split(url)
        return self._store(root), name

    def _store(self, root: str) -> Store:
        store = self._stores.get(root)
        if store is None:
            from tessarr.stores.url import store_from

            scheme = root.partition(":")[0].partition("+")[0]
            options: Mapping[str, object] | None = cast(
                "Mapping[str, object]", self._options.get(scheme, self._options)
            )
            if root == "/" or scheme in ("file", "memory"):
                options = None
            store, _ = store_from(root, read_only=True, storage_options=options)
            self._stores[root] = store
        return store

    async def exists_async(self, key: str) -> bool:
        check_key(key)
        return await in_caller_thread(self.references.find, key) is not None

    async def getsize_async(self, key: str) -> int | None:
        check_key(key)
        found = await in_caller_thread(self.references.find, key)
        if isinstance(found, bytes) or found is None:
            return None if found is None else len(found)
        if found.nbytes is not None:
            return found.nbytes
        store, name = self.file_at(found.url)
        return await invoke(store.getsize, store.getsize_async, name)

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        check_prefix(prefix)
        keys = await in_caller_thread(lambda: [*self.references.keys()])
        return [key for key in keys if key.startswith(prefix)]


def _ranges_in_file(found: Reference, ranges: tuple[ByteRange, ...] | None) -> tuple[ByteRange, ...] | None:
    """Convert `ranges` of the value to ranges of the file."""
    if found.nbytes is None:
        return ranges
    start, nbytes = found.offset, found.nbytes
    if ranges is None:
        return (ByteRange(start, start + nbytes),)
    return tuple(ByteRange(start + low, start + high) for low, high in (part.bounds(nbytes) for part in ranges))


def _inline(text: str, key: str) -> bytes:
    is_base64 = text.startswith("base64:")
    try:
        return base64.b64decode(text[7:], validate=True) if is_base64 else text.encode()
    except ValueError as error:
        what = "a value is not base64" if is_base64 else "a value cannot be encoded as UTF-8"
        raise StoreError(what, key=key, got=str(error)) from error


def _chunk_counts(array: Mapping[str, Any]) -> _List[int]:
    return [-(-size // chunk) for size, chunk in zip(array["shape"], array["chunks"], strict=True)]


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Return the modules pyarrow and pyarrow.parquet. Raises `MissingDependencyError`."""
    import importlib

    from tessarr.errors import MissingDependencyError

    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet references need pyarrow", hint="pip install 'tessarr[reference]'"
        ) from error


def _read_parquet(data: Buffer) -> dict[str, _List[object]]:
    pa, parquet = import_pyarrow()
    table = parquet.read_table(pa.BufferReader(byte_view(data)))
    columns = {name: table[name].to_pylist() for name in table.column_names}
    empty = [None] * table.num_rows
    return {name: columns.get(name, empty) for name in ("path", "offset", "size", "raw")}


def open_url(url: str, options: Mapping[str, object], read_only: bool) -> Store:
    """Open the store at ``reference:place``, or the file system of references that fsspec makes of the option ``fo``.

    Raises `StoreError` where the URL names no place, and no option ``fo`` does.
    """
    place = url.partition(":")[2].removeprefix("//")
    if "fo" in options:
        from tessarr.stores.remote.fsspec import FsspecStore

        return FsspecStore.from_url(f"reference://{place}", storage_options=options, read_only=read_only)
    if not place:
        raise StoreError(
            "the URL names no references",
            store=url,
            expected="reference:PATH, or reference:// with the storage option fo",
            got=f"storage_options {sorted(options)}",
        )
    return ReferenceStore.open(place, storage_options=options)
