"""A store over the part of another store under a prefix."""

from __future__ import annotations

from tessarr.stores.base import Store
from tessarr.stores.path import check_key, check_prefix, normalize_path, prefix_of
from tessarr.stores.wrappers.base import ForwardingStore, innermost


class PrefixStore(ForwardingStore):
    """A store over the keys of another store under `prefix`.

    >>> from tessarr.stores.memory.store import MemoryStore
    >>> PrefixStore(MemoryStore({"a/b": b"1"}), "a").get("b")
    b'1'
    """

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self.prefix = prefix_of(normalize_path(prefix))

    @property
    def url(self) -> str:
        """The wrapped store's URL, followed by the prefix."""
        from urllib.parse import quote

        base = innermost(self.store)
        inner, prefix = self.store.url.rstrip("/"), quote(self.prefix.rstrip("/"))
        # A store in one file has no paths below its URL: a pipeline names the path within the file.
        adapter = getattr(base, "adapter", None) if "|" not in inner else None
        return (f"{inner}|{adapter}:{prefix}" if adapter and prefix else f"{inner}/{prefix}").rstrip("/")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrefixStore) and other.prefix == self.prefix and other.store == self.store

    def __hash__(self) -> int:
        return hash((self.prefix, self.store))

    def _inner_key(self, key: str) -> str:
        # Checked before the prefix is added, which would hide a malformed key. "" is a prefix here, not a key.
        if key:
            (check_prefix if key[-1:] == "/" else check_key)(key)
        return self.prefix + key

    def _outer_key(self, key: str) -> str:
        return key[len(self.prefix) :]
