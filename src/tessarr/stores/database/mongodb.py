"""A store in a MongoDB collection.

One document per key: ``{"_id": key, "value": <bytes>, "revision": <unique>}``. A conditional write filters on the
revision, which the server does atomically per document, so that no update is lost. A value has at most 16 MB, the limit of
a document. Needs pymongo.

Differences: zarr-python 2 stored keys in a separate field (``key``) beside a generated ``_id``; such collections are
not read.

Source: https://www.mongodb.com/docs/manual/core/write-operations-atomicity/.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tessarr.errors import ConflictError, MissingDependencyError, StoreError
from tessarr.stores.base import ANY, Any_, Fetch, Version
from tessarr.stores.buffers import as_bytes, cut
from tessarr.stores.database.server import DatabaseStore
from tessarr.stores.path import check_key, check_prefix
from tessarr.types import Buffer

_List = list
_PUTS = 10
"""How often a write without condition is tried, while other clients insert the same key."""
_LIMIT = 16 * 1024 * 1024 - 4096


class MongoDBStore(DatabaseStore):
    """A store in `collection` of `database`. `options` are passed to `pymongo.MongoClient`, unless a `client` is passed."""

    def __init__(
        self,
        *,
        database: str = "mongodb_zarr",
        collection: str = "zarr_collection",
        read_only: bool = False,
        client: Any = None,
        **options: Any,
    ) -> None:
        self.database = database
        self.collection = collection
        self.read_only = read_only
        self._options = options
        self._external_client = client

    @classmethod
    def from_url(cls, url: str, *, read_only: bool = False, **options: Any) -> MongoDBStore:
        """Open the store at ``mongodb://[user:password@]host[:port]/database/collection``."""
        parts = urlsplit(url)
        database, _, collection = parts.path.strip("/").partition("/")
        names = {"database": database, "collection": collection}
        found: dict[str, Any] = {name: value for name, value in names.items() if value}
        found |= {"host": parts.hostname or "localhost", "port": parts.port or 27017}
        if parts.username:
            found |= {"username": parts.username, "password": parts.password}
        return cls(read_only=read_only, **{**found, **options})

    @property
    def url(self) -> str:
        place = f"{self._options.get('host', 'localhost')}:{self._options.get('port', 27017)}"
        return urlunsplit(("mongodb", place, f"/{self.database}/{self.collection}", "", ""))

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_external_client": None}

    def _connect(self) -> object:
        return _pymongo("pymongo").MongoClient(**self._options)

    def _call(self, key: str, command: Callable[[Any], Any]) -> Any:
        client = self._client() if self._external_client is None else self._external_client
        errors = _pymongo("pymongo.errors")
        try:
            return command(client[self.database][self.collection])
        except errors.DuplicateKeyError:
            raise
        except errors.PyMongoError as error:
            text = f"{type(error).__name__}: {error}"
        raise StoreError("MongoDB failed", store=self.url, key=key or None, got=text)

    # -- reading -----------------------------------------------------------------------------------------------

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        keys = [request.key for request in requests]
        for key in keys:
            check_key(key)
        found = {
            item["_id"]: bytes(item["value"])
            for item in self._call("", lambda collection: [*collection.find({"_id": {"$in": keys}}, {"value": 1})])
        }
        return [
            [cut(found[key], part) for part in ((None,) if ranges is None else ranges)] if key in found else None
            for key, ranges in requests
        ]

    def exists(self, key: str) -> bool:
        return self.version(key) is not None

    def version(self, key: str) -> Version | None:
        check_key(key)
        item = self._call(key, lambda collection: collection.find_one({"_id": key}, {"revision": 1}))
        return None if item is None else str(item["revision"])

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        check_key(key)
        new = as_bytes(value)
        if len(new) > _LIMIT:
            raise StoreError(
                "the value is too large for a MongoDB document",
                store=self.url,
                key=key,
                expected=f"at most {_LIMIT} bytes",
                got=len(new),
                hint="Choose smaller chunks or shards",
            )
        revision = uuid.uuid4().hex
        document = {"_id": key, "value": new, "revision": revision}
        if isinstance(if_match, Any_):
            self._put(key, document)
        elif if_match is None:
            self._insert(key, document)
        else:
            wanted = {"_id": key, "revision": if_match}
            result = self._call(key, lambda collection: collection.replace_one(wanted, document))
            if result.matched_count == 0:
                raise ConflictError("another writer was faster", store=self.url, key=key, expected=if_match)
        return revision

    def _put(self, key: str, document: Mapping[str, object]) -> None:
        """Store a document, whatever is there. Of two clients that insert it the server may refuse one, which tries again."""
        for left in reversed(range(_PUTS)):
            try:
                self._call(key, lambda collection: collection.replace_one({"_id": key}, document, upsert=True))
            except _pymongo("pymongo.errors").DuplicateKeyError as error:
                if not left:
                    raise StoreError("MongoDB failed", store=self.url, key=key, got=str(error)) from None
            else:
                return

    def _insert(self, key: str, document: dict[str, Any]) -> None:
        try:
            self._call(key, lambda collection: collection.insert_one(document))
        except _pymongo("pymongo.errors").DuplicateKeyError:
            raise ConflictError("another writer was faster", store=self.url, key=key, expected="no value") from None

    def _read_versioned(self, key: str) -> tuple[Buffer | None, Version | None]:
        check_key(key)
        item = self._call(key, lambda collection: collection.find_one({"_id": key}))
        return (None, None) if item is None else (bytes(item["value"]), str(item["revision"]))

    def _swap(self, key: str, version: Version | None, new: Buffer | None) -> None:
        if new is not None:
            self.set(key, new, if_match=version)
            return
        result = self._call(key, lambda collection: collection.delete_one({"_id": key, "revision": version}))
        if result.deleted_count == 0:
            raise ConflictError("another writer was faster", store=self.url, key=key, expected=version)

    def delete_many(self, keys: Iterable[str]) -> None:
        every = [*keys]
        for key in every:
            self._check_writable(key)
            check_key(key)
        if every:
            self._call(every[0], lambda collection: collection.delete_many({"_id": {"$in": every}}))

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        wanted = {"_id": {"$regex": f"^{re.escape(prefix)}"}} if prefix else {}
        return iter([item["_id"] for item in self._call("", lambda collection: [*collection.find(wanted, {"_id": 1})])])


def _pymongo(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError("MongoDBStore needs pymongo", hint="pip install 'tessarr[kv]'") from error


def open_url(url: str, options: Mapping[str, object], read_only: bool) -> MongoDBStore:
    """Open the store at `url`, with `options` of the client."""
    return MongoDBStore.from_url(url, read_only=read_only, **options)
