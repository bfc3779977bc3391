"""What a user lets manifests refer to: ``storage_options["manifest"]`` of the functions that open a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from tessarr.stores.base import Store


class ManifestOptions:
    """Prefixes of URLs to which manifests of chunks may refer, and options for the stores of these URLs, by scheme."""

    def __init__(self, allow: Sequence[str] = (), options: Mapping[str, object] | None = None) -> None:
        self.allow = tuple(allow)
        self.options = dict(options or {})

    @classmethod
    def parse(cls, given: object) -> Self:
        """Parse ``{"allow": [prefix, …], scheme: options, …}``. Raises `TypeError`."""
        allow = given.get("allow", ()) if isinstance(given, Mapping) else None
        if isinstance(allow, str) or not isinstance(allow, Sequence) or not all(isinstance(one, str) for one in allow):
            raise TypeError(f'the option manifest is {{"allow": [prefixes of URLs]}}, got {given!r}')
        assert isinstance(given, Mapping)
        return cls(allow, {name: value for name, value in given.items() if name != "allow"})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.allow,)  # the options may hold credentials


def options_of(store: Store) -> ManifestOptions | None:
    """Return the options that the user gave when opening `store`, or a store that it wraps; ``None``: none were given."""
    from tessarr.stores.wrappers.base import WrapperStore

    while store.manifest_options is None and isinstance(store, WrapperStore):
        store = store.store
    return store.manifest_options
