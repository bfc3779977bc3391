"""A store over any obstore (or obspec) object: S3, Google Cloud Storage, Azure, HTTP(S) and others.

Conditional writes use ETags (S3, Azure) and generations (Google); `update` is then a compare-and-swap loop. A
conditional write stores an idempotency token in the object's metadata: a retry, after a response was lost, then recognises
the value of the first attempt.

Limits: the client has no conditional delete, so that an update which removes a value (returns ``None``) can remove a value
that another process wrote within the round trip before; an update that writes never loses a value. Azure has no suffix
ranges, so that a suffix costs two requests; plain HTTP is read-only and cannot list.

Sources: RFC 9110 sections 13 (conditional requests) and 14 (ranges). obstore is the extra ``tessarr[cloud]``.
"""

from __future__ import annotations

import functools
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from tessarr.common.stamps import StampSum
from tessarr.errors import ConflictError, StoreError, UnsupportedOperationError
from tessarr.metadata.formats import DOCUMENT_NAMES
from tessarr.stores.base import ANY, Any_, Listing, Version, shared_copy
from tessarr.stores.buffers import byte_view
from tessarr.stores.functions import no_conditional_writes
from tessarr.stores.path import check_key, check_prefix, is_plain_key
from tessarr.stores.protocols import LISTING, WRITING, ConditionalSet, List, Stamp
from tessarr.stores.remote.base import NetworkStore, RangeResponse
from tessarr.stores.remote.coalesce import MULTIPART_FROM, UPLOAD_SIZE
from tessarr.stores.remote.limiter import limiter_for
from tessarr.stores.remote.loop import gather_or_cancel, in_thread
from tessarr.stores.remote.obstore.adapter import (
    get,
    invoke,
    range_options,
    update_version,
    version_of,
)
from tessarr.stores.remote.obstore.clients import check_threads
from tessarr.stores.remote.obstore.faults import fault_of, is_past_the_end, is_range_refused, names_bad_credentials
from tessarr.stores.remote.retry import Fault, RetryPolicy
from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Obstore

T = TypeVar("T")
_List = list
_DELETE_PAGE = 1000
_TOKEN_NAME = "tessarrwrite"
"""The name of the idempotency token: a C# identifier, because Azure allows no other names for metadata."""
_REMOTE = ("S3Store", "GCSStore", "AzureStore")
_CONDITIONAL = (*_REMOTE, "MemoryStore")


def _url_of(store: Obstore) -> str:
    from tessarr.stores.remote.credentials import url_of

    return url_of(store)


class ObjectStore(NetworkStore):
    """A store over `store`, an obstore object or anything with obspec's methods.

    `url` names the place; ``None`` derives a name from the object's configuration. `prefix` (``""`` or ending with ``/``) is
    prepended to every key; stores that differ in it share the object and its connections. `retry` comes on top of the
    object's own retries: an object that tessarr opened has none; the default for any other is two attempts.

    `forbidden_is_missing`: a bucket that may not be listed answers 403 for missing keys, which is an error unless this option
    makes 403 mean absence: of metadata documents (``"documents"``), or of every key (``True``: also of chunks, which
    then read as fill value). Responses that reject the credentials remain errors.

    Example:
        >>> from obstore.store import MemoryStore
        >>> store = ObjectStore(MemoryStore())
        >>> _ = store.set("a/b", b"0123")
        >>> bytes(store.get("a/b", ByteRange(-2)))
        b'23'
    """

    requests_at_once = 64
    _reads_conditionally = True

    def __init__(
        self,
        store: Obstore,
        *,
        read_only: bool = False,
        url: str | None = None,
        retry: RetryPolicy | None = None,
        prefix: str = "",
        forbidden_is_missing: bool | Literal["documents"] = False,
    ) -> None:
        self._client: Any = store
        self._prefix = prefix
        self.read_only = read_only
        self._kind = type(store).__name__
        self._url = url or _url_of(store)
        self.forbidden_is_missing = forbidden_is_missing
        self.retry = retry if retry is not None else RetryPolicy(attempts=2)
        self._limiter = limiter_for("/".join(self._url.split("/")[:3]))
        if self._kind == "HTTPStore":
            self.read_only = True

    def has_ability(self, ability: type) -> bool:
        """Whether places of this kind have `ability`: plain HTTP none to write or list, and some no conditional writes."""
        if ability is ConditionalSet:
            return self._kind in _CONDITIONAL
        return self._kind != "HTTPStore" or ability not in (*WRITING, *LISTING, Stamp)

    @property
    def store(self) -> Any:
        """The obstore object. Raises `UnsupportedOperationError` in a forked child where it cannot work (`check_threads`)."""
        check_threads()
        return self._client

    @property
    def url(self) -> str:
        if self._url.startswith("object+"):
            from tessarr.stores.memory.process_urls import registered

            return registered(self, self._url)
        return self._url

    def with_read_only(self, read_only: bool = True) -> Self:
        copied = super().with_read_only(read_only)
        copied.read_only = read_only or self._kind == "HTTPStore"
        return copied

    __copy__ = shared_copy

    def __getstate__(self) -> dict[str, object]:
        from tessarr.stores.remote.credentials import recipe_of

        state = {"recipe": recipe_of(self._client), "url": self._url, "prefix": self._prefix, "retry": self.retry}
        return {**state, "read_only": self.read_only, "forbidden_is_missing": self.forbidden_is_missing}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from tessarr.stores.remote.credentials import build

        store = build(state["recipe"], state["url"])
        place = {name: state[name] for name in ("url", "prefix", "forbidden_is_missing")}
        self.__init__(store, read_only=state["read_only"], retry=RetryPolicy(*state["retry"]), **place)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectStore) or self.read_only != other.read_only:
            return False
        if self._client is other._client and self._prefix == other._prefix:
            return True
        return self._kind != "MemoryStore" and self.url == other.url

    def __hash__(self) -> int:
        return hash(self._url)

    def _at(self, key: str) -> str:
        """Return the obstore path of `key`."""
        return self._prefix + key

    # -- reading -----------------------------------------------------------------------------------------------

    async def _request(self, key: str, byte_range: ByteRange | None) -> RangeResponse:
        if not is_plain_key(key):
            check_key(key)
        client, name, span = self._client, self._prefix + key, byte_range
        try:
            if span is not None and (span.stop == 0 or (span.start < 0 and self._kind == "AzureStore")):
                meta = await invoke(client, "head", name)
                span = ByteRange(*span.bounds(meta["size"])) if span.start < 0 else span
                if span.start >= (span.stop or 0):
                    return RangeResponse(b"", 0, meta["size"], version_of(meta))
            result, body = await get(client, name, {} if span is None else range_options(span))
            return RangeResponse(body, result.range[0], result.meta["size"], version_of(result.meta))
        except Exception as error:
            if span is not None and is_past_the_end(error):
                return RangeResponse(b"", max(span.start, 0), None, None)
            if span is None or not is_range_refused(error):
                if self._stands_for_absence(key, error):
                    raise Fault("missing", "", status=404, outcome="ok") from None
                raise
        result = await invoke(client, "get", name)
        self.ranges_work = result.meta["size"] == 0
        return RangeResponse(await invoke(result, "buffer"), 0, result.meta["size"], version_of(result.meta))

    async def _request_if_changed(self, key: str, version: Version) -> RangeResponse:
        check_key(key)
        options = {"if_none_match": update_version(version).get("e_tag")}
        try:
            result, body = await get(self._client, self._at(key), options)
        except Exception as error:
            if self._stands_for_absence(key, error):
                raise Fault("missing", "", status=404, outcome="ok") from None
            raise
        return RangeResponse(body, 0, result.meta["size"], version_of(result.meta))

    def _stands_for_absence(self, key: str, error: Exception) -> bool:
        """Return whether `error` is a 403 that the option `forbidden_is_missing` takes for absence of `key`."""
        if not self.forbidden_is_missing or type(error).__name__ != "PermissionDeniedError":
            return False
        if self.forbidden_is_missing == "documents" and key.rpartition("/")[2] not in DOCUMENT_NAMES:
            return False
        return not names_bad_credentials(error)

    def _fault(self, error: Exception) -> Fault | None:
        return fault_of(error)

    # -- writing -----------------------------------------------------------------------------------------------

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        check_key(key)
        options = self._put_options(key, value, if_match)
        sent = 0

        async def call() -> Mapping[str, str | None]:
            nonlocal sent
            sent += 1
            return await invoke(self._client, "put", self._at(key), self._readable(value), **options)  # type: ignore[no-any-return]

        try:
            result = await self._send(key, "PUT", call)
        except ConflictError as error:
            if sent == 1:
                raise
            version = await self._version_of_first_attempt(key, options)
            if version is None:
                raise error.leave_in_doubt() from None
            return version
        if result is None:
            raise StoreError("the place to write to does not exist", store=self.url, key=key)
        return version_of(result)

    def _readable(self, value: Buffer) -> Buffer:
        """Convert `value` to a buffer that the client accepts: a copy for an in-process store, which keeps the memory."""
        if isinstance(value, bytes):
            return value
        return byte_view(value) if self._kind in _REMOTE else bytes(byte_view(value))

    def _put_options(self, key: str, value: Buffer, if_match: Version | None | Any_) -> dict[str, object]:
        if isinstance(if_match, Any_):
            return {"use_multipart": byte_view(value).nbytes >= MULTIPART_FROM, "chunk_size": UPLOAD_SIZE}
        if self._kind not in _CONDITIONAL:
            raise no_conditional_writes(self, key)
        mode = "create" if if_match is None else update_version(if_match)
        return {"mode": mode, "use_multipart": False, "attributes": {_TOKEN_NAME: uuid.uuid4().hex}}

    async def _version_of_first_attempt(self, key: str, options: Mapping[str, Any]) -> Version | None:
        """Return the version of `key` if its value has the idempotency token of `options`; ``None`` if it is gone, too."""
        found = await self._send(key, "GET", functools.partial(invoke, self._client, "get", self._at(key)))
        if found is None:
            return None
        attributes = {str(name).lower(): value for name, value in found.attributes.items()}
        return version_of(found.meta) if attributes.get(_TOKEN_NAME) == options["attributes"][_TOKEN_NAME] else None

    async def delete_async(self, key: str) -> None:
        self._check_writable(key)
        check_key(key)
        await self._send(key, "DELETE", lambda: invoke(self._client, "delete", self._at(key)))

    async def delete_many_async(self, keys: Iterable[str]) -> None:
        await gather_or_cancel([self._delete_page(page) for page in self._pages(keys)])

    def _pages(self, keys: Iterable[str]) -> _List[_List[str]]:
        """Divide `keys` into pages for bulk deletion; where there is none (Google, others), one key each."""
        every = [*keys]
        for key in every:
            self._check_writable(key)
            check_key(key)
        size = _DELETE_PAGE if self._kind in ("S3Store", "AzureStore") else 1
        return [every[start : start + size] for start in range(0, len(every), size)]

    async def _delete_page(self, keys: _List[str]) -> None:
        if len(keys) == 1:
            await self.delete_async(keys[0])
            return

        async def call() -> bool:
            await invoke(self._client, "delete", [*map(self._at, keys)])
            return True

        if await self._send(keys[0], "bulk DELETE", call) is None:
            for key in keys:  # Azure stops at a key that is missing
                await self.delete_async(key)

    # -- listing -----------------------------------------------------------------------------------------------

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        """Return every key under `prefix`, in the order of the object store."""
        return [self._own(meta) for meta in await self._list_objects(prefix)]

    def list_versions(self, prefix: str) -> Mapping[str, Version]:
        """See `tessarr.stores.protocols.ListVersions`: one request per 1,000 keys, or one per key.

        A listing names no generation (Google) and no version (S3 with versioning), which are part of a version.
        """
        return self._run(self._list_versions(prefix))

    async def _list_versions(self, prefix: str) -> dict[str, Version]:
        listed = await self._list_objects(prefix)
        found = {self._own(meta): version for meta in listed if (version := version_of(meta)) is not None}
        first = next(iter(found), None)
        if first is None or await self.version_async(first) == found[first]:
            return found
        versions = await gather_or_cancel(list(map(self.version_async, found)))
        return {key: version for key, version in zip(found, versions, strict=True) if version is not None}

    def stamp(self, prefix: str, counts: Callable[[str], bool]) -> str:
        """See `tessarr.stores.protocols.Stamp`: sizes and ETags, or times where there are none; one request per 1,000 keys."""

        def add(total: StampSum, meta: Mapping[str, object]) -> None:
            if counts(key := self._own(meta)):
                total.add(key, (meta["size"], meta.get("e_tag") or meta["last_modified"]))

        return self._run(self._listed(prefix, StampSum, add)).hexdigest()

    async def getsize_prefix_async(self, prefix: str) -> int:
        return sum(meta["size"] for meta in await self._list_objects(prefix))

    async def list_dir_async(self, prefix: str) -> Listing:
        self._check_listing(prefix)
        call = functools.partial(invoke, self._client, "list_with_delimiter", self._at(prefix) or None)
        return self._listing(await self._send(prefix, "LIST", call))

    def _listing(self, found: Any) -> Listing:
        if found is None:
            return Listing([], [])
        prefixes = sorted(f"{prefix}/"[len(self._prefix) :] for prefix in found["common_prefixes"])
        return Listing(sorted(map(self._own, found["objects"])), prefixes)

    def _own(self, meta: Mapping[str, object]) -> str:
        """Return the key of a listed object."""
        return str(meta["path"])[len(self._prefix) :]

    async def _list_objects(self, prefix: str) -> _List[Mapping[str, Any]]:
        return await self._listed(prefix, _List[Any], _List.append)

    async def _listed(self, prefix: str, new: Callable[[], T], add: Callable[[T, Mapping[str, object]], None]) -> T:
        """Add what a listing says of each object to a new result, and return that. A listing that fails begins again."""
        self._check_listing(prefix)
        place = self._at(prefix) or None

        async def call() -> T:
            found, pages = new(), self.store.list(place)

            def take(page: Iterable[Mapping[str, object]]) -> None:
                for meta in page:
                    add(found, meta)

            if hasattr(pages, "__aiter__"):
                async for page in pages:
                    take(page)
            else:
                await in_thread(lambda: deque(map(take, pages), 0))
            return found

        listed = await self._send(prefix, "LIST", call)
        return new() if listed is None else listed

    def _check_listing(self, prefix: str) -> None:
        check_prefix(prefix)
        if not isinstance(self, List):
            raise UnsupportedOperationError(
                "plain HTTP cannot list",
                store=self.url,
                hint="Open a node by its path, or a group with consolidated metadata",
            )
