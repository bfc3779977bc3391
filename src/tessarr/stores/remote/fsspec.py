"""A store over any fsspec filesystem: SFTP, WebDAV, GitHub, chains such as ``simplecache::s3://…``, and so on.

The store has only what the filesystem has. There are no conditional writes, so that an update by another process can be
lost (within a process a lock excludes that). Whether a write is atomic depends on the filesystem; on local disks this
store writes a temporary file, renames it, and takes the locks of `LocalStore`. For S3, GCS, Azure and HTTP `ObjectStore`
is faster.
fsspec is the extra ``tessarr[fsspec]``.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tessarr.common.stamps import StampSum
from tessarr.errors import MissingDependencyError, StoreError
from tessarr.stores.base import ANY, Any_, Listing, LockContext, Version, shared_copy
from tessarr.stores.buffers import byte_view
from tessarr.stores.functions import no_conditional_writes
from tessarr.stores.local.lock import has_hidden_name
from tessarr.stores.local.tree import remove_empty_tree
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import Lock, Stamp
from tessarr.stores.remote.base import NetworkStore, RangeResponse
from tessarr.stores.remote.limiter import limiter_for
from tessarr.stores.remote.loop import in_thread
from tessarr.stores.remote.retry import Fault, RetryPolicy, fault_of_status, scrub, scrub_url
from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_List = list
_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_LOCAL = {"file", "local", "memory"}
_REPOSITORIES = {"github", "git", "gitlab"}
"""Schemes whose URLs have an owner before the ``@``, which is not a secret."""


class FsspecStore(NetworkStore):
    """A store over the filesystem `fs`, below `path`.

    An asynchronous filesystem is used through its synchronous methods: the ``_async`` methods of the store wait in
    threads, so that they work in any event loop. `allowed_exceptions` are the errors that mean "no such key".

    Example:
        >>> from fsspec.implementations.memory import MemoryFileSystem
        >>> store = FsspecStore(MemoryFileSystem(), path="/example")
        >>> store.set("a/b", b"0123")
        >>> bytes(store.get("a/b", ByteRange(1, 3)))
        b'12'
        >>> store.clear()
    """

    def __init__(
        self,
        fs: AbstractFileSystem,
        read_only: bool = False,
        path: str = "/",
        allowed_exceptions: tuple[type[Exception], ...] = _MISSING,
    ) -> None:
        self.given_fs = fs  # which code for zarr-python expects as the filesystem of its store
        if getattr(fs, "async_impl", False) and getattr(fs, "asynchronous", False):
            # Its synchronous methods raise; the same filesystem without the flag has both.
            fs = type(fs)(*fs.storage_args, **_synchronous(fs.storage_options))
        self.fs: Any = fs
        self.read_only = read_only
        self.path = path.rstrip("/")
        self.allowed_exceptions = allowed_exceptions
        self._protocol = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
        if self._protocol not in _LOCAL:
            self.requests_at_once = 64
        self.retry = RetryPolicy(attempts=3)
        self._limiter = limiter_for(f"fsspec+{self._protocol}://{getattr(fs, 'host', '') or ''}")
        self._url = self._canonical()

    @classmethod
    def from_url(
        cls, url: str, *, storage_options: Mapping[str, object] | None = None, read_only: bool = False
    ) -> FsspecStore:
        """Open the store at `url`; `storage_options` are the filesystem's."""
        try:
            import fsspec
        except ImportError as error:
            raise MissingDependencyError(
                f"URLs such as {url.partition(':')[0]}: need fsspec", hint="pip install 'tessarr[fsspec]'"
            ) from error
        try:
            fs, path = fsspec.core.url_to_fs(url, **dict(storage_options or {}))
        except ImportError as error:
            raise MissingDependencyError(f"fsspec cannot open {scrub(url)}", hint=str(error)) from error
        except ValueError as error:
            from tessarr.stores.remote.credentials import without_secrets

            got = scrub(without_secrets(str(error), storage_options or {}))
            raise StoreError("no filesystem handles this URL", store=scrub(url), got=got) from None
        if "://" in path and scrub_url(path) != path:
            # They would be part of every path, and fsspec logs paths.
            raise StoreError(
                "credentials and queries do not belong in this URL",
                store=scrub_url(url),
                hint="Pass them as storage_options of the filesystem",
            )
        store = cls(fs, read_only=read_only, path=path)
        if "::" in url:
            store._url = scrub_url(url)
        elif store._protocol in _REPOSITORIES:
            store._url = url.rstrip("/")
        return store

    @classmethod
    def from_mapper(cls, fs_map: Any, *, read_only: bool = False) -> FsspecStore:
        """Make the store over an `fsspec.FSMap`."""
        return cls(fs_map.fs, read_only=read_only, path=fs_map.root)

    @classmethod
    def from_upath(cls, upath: Any, *, read_only: bool = False) -> FsspecStore:
        """Make the store over a `upath.UPath`."""
        return cls(upath.fs, read_only=read_only, path=upath.path)

    def has_ability(self, ability: type) -> bool:
        """Whether the filesystem has `ability`: `Lock` on local disks only; `Stamp` where listings tell times or ETags."""
        if ability is Stamp:
            return self._protocol not in ("http", "https", "reference")
        return self._protocol in _LOCAL if ability is Lock else super().has_ability(ability)

    @property
    def url(self) -> str:
        return self._url

    def _canonical(self) -> str:
        """Return the canonical URL: ``file://`` for a local directory, with host and port for a server."""
        if self._protocol in ("file", "local"):
            return f"file://{quote(self.path)}"
        if self._protocol == "memory":  # not the in-process stores of tessarr's memory URLs
            return f"fsspec+memory://{self.path}"
        options = self.fs.storage_options
        endpoint = options.get("endpoint_url") or (options.get("client_kwargs") or {}).get("endpoint_url")
        if self._protocol in ("s3", "s3a") and endpoint:
            return f"s3+{scrub_url(str(endpoint)).rstrip('/')}/{quote(self.path.lstrip('/'))}"
        path = self.path.lstrip("/")
        host = options.get("host") or options.get("hostname")
        if host and "://" not in self.path:
            port = f":{options['port']}" if options.get("port") else ""
            return f"{self._protocol}://{host}{port}/{path}"
        return path if "://" in path else f"{self._protocol}://{path}"

    def __getstate__(self) -> dict[str, object]:
        from tessarr.stores.remote.credentials import strip_secrets

        options = strip_secrets(self._url, named_arguments(self.fs))
        return {**self.__dict__, "fs": (type(self.fs), options), "given_fs": None, "_limiter": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from tessarr.stores.remote.credentials import restore_secrets

        self.__dict__.update(state)
        kind, options = state["fs"]
        self.fs = self.given_fs = kind(**restore_secrets(self._url, options))
        self._limiter = limiter_for(f"fsspec+{self._protocol}://{getattr(self.fs, 'host', '') or ''}")

    __copy__ = shared_copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FsspecStore):
            return False
        return (self.fs, self.path, self.read_only) == (other.fs, other.path, other.read_only)

    def __hash__(self) -> int:
        return hash(self._url)

    def _name(self, key: str) -> str:
        check_key(key)
        return self._at(key)

    def _at(self, relative: str) -> str:
        """Return a path in the filesystem. Names in one of references begin with no slash."""
        return relative if self._protocol == "reference" and not self.path else f"{self.path}/{relative}"

    # -- reading -----------------------------------------------------------------------------------------------

    async def _request(self, key: str, byte_range: ByteRange | None) -> RangeResponse:
        return await in_thread(self._read, key, byte_range)

    def _read(self, key: str, byte_range: ByteRange | None) -> RangeResponse:
        name = self._name(key)
        if byte_range is None:
            return RangeResponse(self.fs.cat_file(name), 0, None, None)
        if byte_range.start < 0 or byte_range == (0, 0):
            info = self.fs.info(name)
            if info.get("type") == "directory":
                raise IsADirectoryError(name)
            if byte_range == (0, 0) or info.get("size") is None:
                whole = b"" if byte_range == (0, 0) else self.fs.cat_file(name)
                return RangeResponse(whole, 0, info.get("size"), _version(info))
            start, stop = byte_range.bounds(info["size"])
            body = self.fs.cat_file(name, start=start, end=stop) if stop > start else b""
            return RangeResponse(body, start, info["size"], None)
        try:
            body = self.fs.cat_file(name, start=byte_range.start, end=byte_range.stop)
        except Exception as error:
            begins_beyond = "416" in str(error) or "range is not satisfiable" in str(error)  # the latter of s3fs
            if not begins_beyond and getattr(error, "status", None) != 416:
                raise
            body = b""
        return RangeResponse(body, byte_range.start, None, None)

    def _fault(self, error: Exception) -> Fault | None:
        if isinstance(error, self.allowed_exceptions):
            return Fault("missing", "", status=404, outcome="ok")
        status = getattr(error, "status", None) or getattr(error, "code", None)
        if isinstance(status, int):
            return fault_of_status(status, f"{type(error).__name__}: {error}")
        text = scrub(f"{type(error).__name__}: {error}")
        if isinstance(error, PermissionError):
            return Fault("permanent", text, status=403)
        if isinstance(error, TimeoutError | ConnectionError) or "Timeout" in text or "ClientPayload" in text:
            return Fault("retry", text, outcome="slow_down")
        return Fault("permanent", text) if isinstance(error, OSError) or _is_client_error(error) else None

    async def getsize_async(self, key: str) -> int | None:
        head = await self._head(key)
        if head is None or head.size is not None:
            return None if head is None else head.size
        value = await self.get_async(key)
        return None if value is None else byte_view(value).nbytes

    # -- writing -----------------------------------------------------------------------------------------------

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        if if_match is not ANY:
            raise no_conditional_writes(self, key)
        name = self._name(key)
        data = value if isinstance(value, bytes) else bytes(byte_view(value))
        if await self._send(key, "PUT", lambda: in_thread(self._put, name, data)) is None:
            raise StoreError("the place to write to does not exist, or is a directory", store=self.url, key=key)
        return None

    def _put(self, name: str, data: bytes) -> bool:
        """Write the value; return ``True``, because `_send` returns ``None`` for a missing key."""
        if self._protocol not in ("file", "local"):
            if self._protocol not in ("s3", "gs", "gcs", "az", "abfs", "memory", "http", "https"):
                self.fs.makedirs(name.rpartition("/")[0], exist_ok=True)
            self.fs.pipe_file(name, data)
            return True
        self.fs.makedirs(name.rpartition("/")[0], exist_ok=True)
        temporary = f"{name.rpartition('/')[0]}/.{uuid.uuid4().hex}.partial"
        try:
            self.fs.pipe_file(temporary, data)
            if os.path.isdir(name):  # of values that were removed: a filesystem of fsspec leaves their directories
                remove_empty_tree(name)
            os.replace(temporary, name)
        except BaseException:
            if self.fs.exists(temporary):
                self.fs.rm_file(temporary)
            raise
        return True

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: on local disks the lock file of `LocalStore`, elsewhere threads of this process."""
        self._check_writable(key)
        if self._protocol in ("file", "local"):
            from tessarr.stores.local.store import LocalStore

            return LocalStore(self.path).lock(key)
        check_key(key)
        return KEYED_LOCKS.hold((self._url, key))

    async def delete_async(self, key: str) -> None:
        self._check_writable(key)
        name = self._name(key)
        await self._send(key, "DELETE", lambda: in_thread(self.fs.rm_file, name))

    # -- listing -----------------------------------------------------------------------------------------------

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        return [*await self._listed(prefix)]

    def stamp(self, prefix: str, counts: Callable[[str], bool]) -> str:
        """See `tessarr.stores.protocols.Stamp`: sizes, and ETags, generations or times; one listing."""
        total = StampSum()
        for key, info in self._run(self._listed(prefix, detail=True)).items():
            if counts(key):
                total.add(key, _version(info) or info.get("size"))
        return total.hexdigest()

    async def _listed(self, prefix: str, *, detail: bool = False) -> dict[str, Mapping[str, object]]:
        """Return the keys under `prefix`, and with `detail` what the filesystem says of their values."""
        check_prefix(prefix)
        place = self._at(prefix).rstrip("/") or self._at("")

        def find() -> Mapping[str, Mapping[str, object]]:
            self.fs.invalidate_cache()  # fsspec's cache of listings: another process may have written
            found = self.fs.find(place, detail=detail)
            return found if detail else {name: {} for name in found}

        listed = await self._send(prefix, "LIST", lambda: in_thread(find)) or {}
        by_key = ((self._key(name), info) for name, info in listed.items())
        return {key: info for key, info in by_key if key.startswith(prefix) and not self._is_hidden(key)}

    async def list_dir_async(self, prefix: str) -> Listing:
        check_prefix(prefix)
        place = self._at(prefix).rstrip("/") or self._at("")
        self.fs.invalidate_cache()
        found = await self._send(prefix, "LIST", lambda: in_thread(self.fs.ls, place, detail=True)) or []
        keys, prefixes = set(), set()
        for info in found:
            key = self._key(info["name"])
            if not key.startswith(prefix) or key == prefix.rstrip("/") or self._is_hidden(key):
                continue
            if info["type"] == "directory":
                prefixes.add(key + "/")
            else:
                keys.add(key)
        if (
            self._protocol in ("http", "https") and not prefixes
        ):  # a page of links without final slashes: either may be meant
            prefixes = {key + "/" for key in keys if "." not in key.rpartition("/")[2]}
        return Listing(sorted(keys), sorted(prefixes))

    def _is_hidden(self, key: str) -> bool:
        """Whether a file is one that is being written, or on a local disk a lock file or a file of a transaction."""
        return _is_partial(key) or (self._protocol in ("file", "local") and has_hidden_name(key))

    def _key(self, name: str) -> str:
        root = self.path.lstrip("/")
        return name.lstrip("/").removeprefix(root).strip("/") if root else name.strip("/")


def _version(info: Mapping[str, object]) -> Version | None:
    for name in ("ETag", "etag", "generation", "mtime", "created"):
        if info.get(name):
            return f"{info[name]}:{info.get('size')}"
    return None


def _is_partial(key: str) -> bool:
    name = key.rpartition("/")[2]
    return name.startswith(".") and name.endswith(".partial")


def _is_client_error(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] in ("aiohttp", "requests", "botocore", "azure", "google", "gcsfs")


def named_arguments(fs: Any) -> dict[str, object]:
    """Return the arguments that `fs` was made with, by name: the name shows whether one is a credential."""
    import inspect

    positional = inspect.signature(type(fs).__init__).bind_partial(fs, *fs.storage_args).arguments
    return {**dict([*positional.items()][1:]), **fs.storage_options}


def _synchronous(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options of a filesystem without its flag; references have it for the referenced files, too."""
    found = {**options, "asynchronous": False}
    remote = options.get("remote_options")
    if isinstance(remote, Mapping) and "asynchronous" in remote:
        found["remote_options"] = _synchronous(remote)
    return found


def open_url(url: str, options: Mapping[str, object], read_only: bool) -> FsspecStore:
    """Open the store at `url`, of any scheme that fsspec knows, or ``fsspec+scheme://…``."""
    return FsspecStore.from_url(url.removeprefix("fsspec+"), storage_options=options, read_only=read_only)
