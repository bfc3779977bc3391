"""A store in a Redis (or Valkey) server.

Keys are prefixed with `prefix`; values are byte strings of at most 512 MB. Conditional writes run as a script in the server,
which compares SHA-1 digests, so that no update is lost; one whose answer was lost, and that the client sends again, is carried
out once. Ranges are read by GETRANGE, and all requests of a `fetch` by one pipeline. redis is part of the extra
``tessarr[kv]``.

Source: https://redis.io/docs/latest/commands/.
"""

from __future__ import annotations

import operator
import os
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tessarr.errors import ConflictError, MissingDependencyError, StoreError, UnsupportedOperationError
from tessarr.stores.base import ANY, Any_, Fetch, Version
from tessarr.stores.buffers import as_bytes, digest_version
from tessarr.stores.database.server import DatabaseStore
from tessarr.stores.functions import check_listed, check_versions
from tessarr.stores.path import check_key, check_prefix
from tessarr.types import Buffer, ByteRange

_List = list
_PAGE = 1000
_NOTES = "tessarr:swaps:"
"""Names of notes in the database, one per thread of a client: which conditional write was its last. A client that loses an
answer sends the write again, and finds there that it was carried out. They expire, and no store lists them."""
_PROCESS = uuid.uuid4().hex
_WRITTEN = [b"written"]
_ONCE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return {'written'} end
local keys, args = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 2, #ARGV do args[i - 1] = ARGV[i] end
local function write(i, how, value)
  redis.call('SET', KEYS[1], ARGV[1], 'EX', 3600)
  if how == 'delete' then redis.call('DEL', keys[i]) else redis.call('SET', keys[i], value) end
end
"""
_SWAP = """
local old = redis.call('GET', keys[1])
local found = old and redis.sha1hex(old) or ''
if found ~= args[1] then return {found} end
write(1, args[2], args[3])
return {'written'}
"""
_COMMIT = f"""
local n = tonumber(args[1])
local found, same = {{}}, true
for i = 1, n do
  local old = redis.call('GET', keys[i])
  found[i] = old and redis.sha1hex(old) or ''
  same = same and found[i] == args[i + 1]
end
local known, last = {{}}, n
for i = 1, #keys do known[keys[i]] = true end
for i = 2 * #keys - n + 2, #args do
  for _, key in ipairs(redis.call('KEYS', args[i])) do
    if not known[key] and string.sub(key, 1, {len(_NOTES)}) ~= '{_NOTES}' then
      last, same = last + 1, false
      found[last] = key
    end
  end
end
if not same then return found end
for i = n + 1, #keys do write(i, args[2 * i - n], args[2 * i - n + 1]) end
return {{'written'}}
"""
_REPLACE = """
local kept = {}
for i = 1, #KEYS do kept[KEYS[i]] = true end
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  if not kept[key] then redis.call('UNLINK', key) end
end
for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[i + 1]) end
"""
_VERSION = "local v = redis.call('GET', KEYS[1]); return v and redis.sha1hex(v) or ''"


class RedisStore(DatabaseStore):
    """A store in the Redis server at `options` (those of `redis.Redis`), under keys that begin with `prefix`."""

    def __init__(self, *, prefix: str = "zarr", read_only: bool = False, **options: object) -> None:
        self.prefix = f"{prefix.strip('/')}/" if prefix else ""
        self.read_only = read_only
        self._options = options

    @classmethod
    def from_url(cls, url: str, *, read_only: bool = False, **options: Any) -> RedisStore:
        """Open the store at ``redis[s]://[user:password@]host[:port]/[database]/[prefix]``."""
        parts = urlsplit(url)
        database, _, prefix = parts.path.lstrip("/").partition("/")
        if database and not database.isdigit():
            database, prefix = "", parts.path.lstrip("/")
        found: dict[str, object] = {"host": parts.hostname or "localhost", "port": parts.port or 6379}
        found |= {"db": int(database or 0), "ssl": parts.scheme == "rediss"}
        found |= {"username": parts.username, "password": parts.password}
        kept = {name: value for name, value in found.items() if value not in (None, False)}
        return cls(prefix=options.pop("prefix", prefix), read_only=read_only, **{**kept, **options})

    @property
    def url(self) -> str:
        scheme = "rediss" if self._options.get("ssl") else "redis"
        place = f"{self._options.get('host', 'localhost')}:{self._options.get('port', 6379)}"
        path = f"/{self._options.get('db', 0)}/{self.prefix}".rstrip("/")
        return urlunsplit((scheme, place, path, "", ""))

    def _connect(self) -> object:
        try:
            import redis
        except ImportError as error:
            raise MissingDependencyError("RedisStore needs redis", hint="pip install 'tessarr[kv]'") from error
        return redis.Redis(**self._options)

    def _call(self, key: str, command: Callable[[Any], Any]) -> Any:
        client = self._client()
        import redis

        try:
            return command(client)
        except redis.RedisError as error:
            text = f"{type(error).__name__}: {error}"
        raise StoreError("Redis failed", store=self.url, key=key or None, got=text)

    def _once(self, key: str, script: str, names: Sequence[str], arguments: Sequence[object]) -> _List[bytes]:
        """Run a script that writes and answers `_WRITTEN`, or writes nothing; once, though the client may send it again."""
        note = f"{_NOTES}{_PROCESS}:{os.getpid()}:{threading.get_ident()}"
        given = [note, *names, uuid.uuid4().hex, *arguments]
        answer: _List[bytes] = self._call(key, lambda client: client.eval(_ONCE + script, len(names) + 1, *given))
        return answer

    def _name(self, key: str) -> str:
        check_key(key)
        return self.prefix + key

    # -- reading -----------------------------------------------------------------------------------------------

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        def send(client: Any) -> Any:
            # A transaction, so that all ranges of a value are of one version.
            pipe = client.pipeline(transaction=True)
            for key, ranges in requests:
                name = self._name(key)
                if ranges is None:
                    pipe.get(name)
                    continue
                pipe.exists(name)
                for part in ranges:
                    pipe.getrange(name, *_inclusive(part))
            return pipe.execute()

        answers = iter(self._call(requests[0].key if requests else "", send))
        found: _List[_List[Buffer] | None] = []
        for _, ranges in requests:
            first = next(answers)
            if ranges is None:
                found.append(None if first is None else [first])
                continue
            # GETRANGE has no empty range: the bytes that it returned for one are dropped.
            parts: _List[Buffer] = [
                b"" if part.stop is not None and part.stop <= part.start else answer
                for part, answer in zip(ranges, answers, strict=False)
            ]
            found.append(parts if first else None)
        return found

    def exists(self, key: str) -> bool:
        return bool(self._call(key, lambda client: client.exists(self._name(key))))

    def getsize(self, key: str) -> int | None:
        size = int(self._call(key, lambda client: client.strlen(self._name(key))))
        return size if size or self.exists(key) else None

    def version(self, key: str) -> Version | None:
        found = self._call(key, lambda client: client.eval(_VERSION, 1, self._name(key)))
        return found.decode() or None

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        name, new = self._name(key), as_bytes(value)
        if isinstance(if_match, Any_):
            self._call(key, lambda client: client.set(name, new))
        else:
            self._swap(key, if_match, new)
        return digest_version(new)

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        """See `tessarr.stores.protocols.Commit`: a script in the server. What it is worth on the disk, the server decides."""
        self._check_writable("")
        if durable:
            raise UnsupportedOperationError(
                "a client cannot make Redis sync what it writes",
                store=self.url,
                hint="Leave out durable, and set appendonly and appendfsync in the server",
            )
        new = {key: None if value is None else as_bytes(value) for key, value in changes.items()}
        given = [part for value in new.values() for part in (("delete", b"") if value is None else ("set", value))]
        names = [self._name(key) for key in (*expected, *new)]
        versions = [version or "" for version in expected.values()]
        patterns = [self._pattern(prefix) for prefix in listed]
        answer = self._once("", _COMMIT, names, [len(versions), *versions, *given, *patterns])
        if answer != _WRITTEN:
            found = {key: version.decode() or None for key, version in zip(expected, answer, strict=False)}
            check_versions(self.url, expected, found.__getitem__)
            check_listed(self.url, [""], lambda _: [name.decode()[len(self.prefix) :] for name in answer[len(found) :]])

    def _read_versioned(self, key: str) -> tuple[Buffer | None, Version | None]:
        old = self.get(key)
        return old, None if old is None else digest_version(old)

    def _swap(self, key: str, version: Version | None, new: Buffer | None) -> None:
        given = (version or "", "delete", b"") if new is None else (version or "", "set", as_bytes(new))
        answer = self._once(key, _SWAP, [self._name(key)], given)
        if answer != _WRITTEN:
            found = answer[0].decode() or None
            raise ConflictError("another writer was faster", store=self.url, key=key, expected=version, got=found)

    def delete_many(self, keys: Iterable[str]) -> None:
        every = [*keys]
        for key in every:
            self._check_writable(key)
        names = [self._name(key) for key in every]
        for start in range(0, len(names), _PAGE):
            page = names[start : start + _PAGE]
            self._call(every[0], operator.methodcaller("delete", *page))

    def delete_prefix(self, prefix: str) -> None:
        self.replace_prefix(prefix, {})

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        """See `tessarr.stores.protocols.ReplacePrefix`: a script in the server."""
        self._check_writable(prefix)
        check_prefix(prefix)
        names = [self._name(key) for key in items]
        given = [self._pattern(prefix), *map(as_bytes, items.values())]
        self._call(prefix, lambda client: client.eval(_REPLACE, len(names), *names, *given))

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        pattern = self._pattern(prefix)
        names = self._call("", lambda client: {*client.scan_iter(match=pattern, count=_PAGE)})
        notes = _NOTES.encode()
        return (name.decode()[len(self.prefix) :] for name in names if not name.startswith(notes))

    def _pattern(self, prefix: str) -> str:
        """Return the pattern of the names of keys under `prefix`."""
        return "".join(f"\\{one}" if one in "*?[]^-\\" else one for one in self.prefix + prefix) + "*"


def _inclusive(part: ByteRange) -> tuple[int, int]:
    """Convert a range to the arguments of GETRANGE: both ends inclusive, negative ones relative to the end."""
    return (part.start, -1) if part.stop is None else (part.start, max(part.stop - 1, 0))


def open_url(url: str, options: Mapping[str, object], read_only: bool) -> RedisStore:
    """Open the store at `url`, with `options` of the client."""
    return RedisStore.from_url(url, read_only=read_only, **options)
