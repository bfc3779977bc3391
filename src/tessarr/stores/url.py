r"""Resolve a store-like value to a store, and tell whether two stores are over the same place.

| given | store |
|---|---|
| a `Store`, a `StorePath` | the same store |
| ``None`` | a new `MemoryStore` |
| a dictionary, any mutable mapping | `MemoryStore`, `MappingStore` over it |
| a path (`str`, `pathlib.Path`), ``file:///…`` | `LocalStore`; `ZipStore` for a zip file, and a new ``….zip`` |
| ``memory://name/path`` | the `ManagedMemoryStore` of that name; fsspec's memory by the setting ``zarr_python.memory_urls`` |
| ``s3://…``, ``gs://…``, ``az://…``, ``https://…`` | `ObjectStore` (`tessarr.stores.remote.obstore.open`) |
| ``redis[s]://…``, ``mongodb[+srv]://…``, ``sqlite:…``, ``lmdb:…``, ``dbm:…`` | the store of that name |
| ``reference:…`` (a JSON file or a directory of Parquet) | `ReferenceStore`; `FsspecStore` for the storage option ``fo`` |
| ``…|zip:…|zarr3:…`` (pipelines), an object whose name ends in ``.zip``, ``zip::…`` | `tessarr.stores.virtual.pipeline` |
| ``mapping://…``, ``object+…://…`` | a place of this process (`tessarr.stores.memory.process_urls`) |
| any other scheme, ``fsspec+scheme://…``, and chains with ``::`` | `FsspecStore` |
| any other object with `get`, `set`, `delete` and `list` | `tessarr.stores.wrappers.four_methods` |
| an fsspec map, a ``UPath``, an obstore (obspec) store | `FsspecStore`, `ObjectStore` |
| a zarr-python ``Store`` (Icechunk's, too) or ``StorePath`` | `ZarrPythonStore` |
| an array or group of zarr-python | its store, unwrapped where that is possible, else `ZarrPythonStore` |

A string is a URL when it has ``://`` or ``::`` after a scheme of at least two letters, or begins with one of tessarr's schemes
and a colon. Any other string is a path: ``C:\data``, ``a#b``, ``100%``. A leading ``~`` is the home directory. A path followed
by adapters (``a.zip|zip:x``) is a pipeline, unless a file of that name exists.

The object that users see as the store of a node may differ from the store that does the I/O: code written for zarr-python
passes stores with zarr-python's interface, whose methods are coroutines, and expects the same object as ``store`` of an array.
The class of such a store has the method ``__tessarr_place__``, which returns the tessarr store that does the I/O, and a path in
that store; the tessarr store keeps the object as `Store.given`. `shape_with` also wraps the stores that `store_from` makes of
paths and URLs: `tessarr.as_zarr` does so while it is installed.

Source: Zarr v3 stores (canonical URIs); zarr-python's ``StoreLike``.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from tessarr import registry
from tessarr.errors import StoreError
from tessarr.settings import config
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import StorePath, join, path_of_file_url
from tessarr.stores.protocols import Get


class HasStore(Protocol):
    """A node, or an object of zarr-python with a store and a path in the store."""

    @property
    def store(self) -> object:
        """The store."""
        ...

    @property
    def path(self) -> str:
        """The path in the store."""
        ...


class ObspecStore(Protocol):
    """A store of obstore, or another object with its methods."""

    def head(self, path: str, /) -> object:
        """Describe the object at `path`."""
        ...

    def list_with_delimiter(self) -> object:
        """List the objects and prefixes at the root."""
        ...


class ZarrPythonStoreLike(Protocol):
    """A store of zarr-python, or of a package that implements its interface."""

    @property
    def supports_listing(self) -> bool:
        """Whether keys can be listed."""
        ...

    def list_dir(self, prefix: str, /) -> AsyncIterator[str]:
        """Iterate over the names directly below `prefix`."""
        ...


if TYPE_CHECKING:
    StoreLike: TypeAlias = (
        Store
        | StorePath
        | str
        | os.PathLike[str]
        | MutableMapping[str, Any]
        | HasStore
        | ObspecStore
        | ZarrPythonStoreLike
        | Get
        | None
    )
else:  # annotations join it with other types, and isinstance takes it
    StoreLike = Store | StorePath | str | os.PathLike | MutableMapping | None
"""Values that `store_from` accepts."""

OpenMode: TypeAlias = Literal["r", "r+", "a", "w", "w-", "x"]

_URL = r"[A-Za-z][A-Za-z0-9+.-]+(?:://|::)"
CHAIN = r"(?<!//\[)::(?![^\[]*\])"
"""Separator of the links of fsspec's chains. Colons in bracketed hosts (IPv6) are not separators."""
_SHORT_URL = r"(?:file|memory|sqlite|lmdb|dbm|reference):"
_STEPS = r"[^|]+\|(?:zip|zarr|zarr2|zarr3|icechunk|n5|neuroglancer-precomputed):"
_OBSPEC = ("get", "get_async", "get_range", "get_ranges", "head", "put", "list_with_delimiter")
"""Methods of obspec's protocols that `ObjectStore` uses; an object with all of them is an obspec store."""
_NODES = frozenset(
    f"zarr.core.{name}" for name in ("array.Array", "array.AsyncArray", "group.Group", "group.AsyncGroup")
)
"""The classes of zarr-python's arrays and groups."""
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")


def store_from(
    store_like: Any,
    *,
    mode: OpenMode | str | None = None,
    read_only: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[Store, str]:
    """Resolve `store_like` to a store, and a path in the store.

    ``mode="r"`` or `read_only` make a store that is opened here read-only; a given store object is not changed.
    `storage_options` are for URLs of remote stores; the entry ``manifest`` is for any store: see
    `tessarr.stores.transformed.manifest`.

    Raises `TypeError` for a value that is not store-like, and for `storage_options` of one that is open already, `StoreError`
    for a file that is not a store, and `MissingDependencyError`.

    >>> store_from(None)[0]
    MemoryStore('memory://...')
    >>> store_from("memory://place/a/b")
    (ManagedMemoryStore('memory://place'), 'a/b')
    """
    if storage_options and "manifest" in storage_options:
        from tessarr.stores.transformed.manifest_options import ManifestOptions

        rest = {name: value for name, value in storage_options.items() if name != "manifest"}
        found, path = store_from(store_like, mode=mode, read_only=read_only, storage_options=rest)
        store = found.with_read_only(found.read_only)  # a copy: other users of a given store did not allow anything
        store.manifest_options = ManifestOptions.parse(storage_options["manifest"])
        return store, path
    if storage_options and not _names_place(store_like):
        raise TypeError(
            f"storage_options are for URLs, and {store_like!r} is none: give them where its store is opened"
        )
    if isinstance(store_like, Store):
        return store_like, ""
    if isinstance(store_like, StorePath):
        return store_like.store, store_like.path
    if hasattr(type(store_like), "__tessarr_place__"):
        place: tuple[Store, str] = store_like.__tessarr_place__()
        return place
    store, path = _make(store_like, mode, read_only or mode == "r", storage_options)
    return set_given(store), path


def _names_place(store_like: object) -> bool:
    return isinstance(store_like, str | os.PathLike)


def _make(
    store_like: object, mode: str | None, read_only: bool, storage_options: Mapping[str, object] | None
) -> tuple[Store, str]:
    """Make a store of `store_like`. Returns the store, and a path in the store."""
    if isinstance(store_like, str):
        return _from_string(store_like, mode, read_only, storage_options)
    if store_like is None or isinstance(store_like, dict):
        from tessarr.stores.memory.store import MemoryStore

        return MemoryStore(store_like, read_only=read_only), ""
    foreign = _foreign(store_like, read_only)
    if foreign is not None:
        return foreign
    if isinstance(store_like, os.PathLike):
        return _from_path(os.fspath(store_like), mode, read_only), ""
    if isinstance(store_like, MutableMapping):
        from tessarr.stores.memory.mapping import MappingStore

        return MappingStore(store_like, read_only=read_only), ""
    from tessarr.stores.wrappers.four_methods import is_store_like, store_of

    if is_store_like(store_like):
        return store_of(store_like, read_only=read_only), ""
    raise TypeError(
        f"Unsupported type for store_like: {type(store_like).__name__!r}; give a path, a URL, a mapping, or a tessarr Store"
    )


def is_url(text: str) -> bool:
    r"""Whether a string is a URL rather than a path.

    >>> is_url("s3://bucket/x"), is_url("C:\\x"), is_url("sqlite:x.db"), is_url("a:b")
    (True, False, True, False)
    """
    return re.match(_URL, text) is not None or re.match(_SHORT_URL, text) is not None


def as_url(text: str) -> str:
    """Turn a path followed by adapters into a URL pipeline; return any other string unchanged."""
    if is_url(text) or re.match(_STEPS, text) is None or os.path.lexists(text):
        return text
    from pathlib import Path

    place, _, steps = text.partition("|")
    return f"{Path(os.path.expanduser(place)).absolute().as_uri()}|{steps}"


def _from_string(
    text: str, mode: str | None, read_only: bool, options: Mapping[str, object] | None
) -> tuple[Store, str]:
    if ":" not in text and not options:  # no URL, chain or pipeline
        return _from_path(os.path.expanduser(text), mode, read_only), ""
    text = as_url(text)
    scheme = text.partition(":")[0].lower() if is_url(text) else ""
    chained = re.search(CHAIN, text) is not None or (scheme != "" and "|" in text)
    if scheme in ("", "file", "local") and not chained:
        if options and {*options} != {"auto_mkdir"}:  # fsspec's: directories are made in any case
            raise TypeError(f"storage_options are for remote stores; {text!r} is a local path")
        path = path_of_file_url(f"file:{text.partition(':')[2]}", windows=os.name == "nt") if scheme else text
        return _from_path(path if scheme else os.path.expanduser(path), mode, read_only), ""
    if scheme == "memory" and not chained:
        from importlib.util import find_spec
        from urllib.parse import unquote

        from tessarr.stores.memory.store import is_open, open_memory

        name, _, path = text.partition(":")[2].lstrip("/").partition("/")
        if not config.get("zarr_python.memory_urls") or is_open(unquote(name)) or find_spec("fsspec") is None:
            if options:
                raise TypeError(f"storage_options are for remote stores; {text!r} is an in-process store")
            return open_memory(unquote(name), join(*unquote(path).split("/")), read_only=read_only)
        text = f"fsspec+{text}"
    return open_url(text, storage_options=options, read_only=read_only), ""


def open_url(url: str, *, storage_options: Mapping[str, object] | None = None, read_only: bool = False) -> Store:
    """Open the store at `url` by the opener that `tessarr.registry` has for its scheme. Nothing is requested yet.

    An opener is called as ``opener(url, options, read_only)``. Packages offer theirs by an entry point in the group
    ``tessarr.store_url``, whose name is the scheme. Schemes without an opener are fsspec's.

    Raises `MissingDependencyError` naming the extra to install, `StoreError` for options or URLs that mean nothing.
    """
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options are a mapping from names to values, got a {type(storage_options).__name__}")
    if url.startswith("zip://") and not re.search(CHAIN, url) and "fo" not in (storage_options or {}):
        hint = "Give the archive, as in a.zip or a.zip|zip:path; in fsspec's chain it comes second: zip://path::a.zip"
        raise StoreError("the URL names no archive", store=url, hint=hint)
    url = _as_pipeline(url)
    scheme = url.partition(":")[0].lower().partition("+")[0]
    chained = re.search(CHAIN, url) is not None
    check_place(url.partition("|")[0])
    if "|" in url:
        scheme = "pipeline"
    opener: Any = None if chained and scheme != "pipeline" else registry.get("store_url", scheme)
    if opener is None:
        from tessarr.stores.remote.fsspec import open_url as opener
    store: Store = opener(url, dict(storage_options or {}), read_only)
    return store


_PLACES = frozenset({"s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "http", "https"})


def check_place(url: str) -> None:
    """Check that a URL of a bucket or host, if it is one, has neither query nor credentials, which belong in `storage_options`.

    Raises `StoreError` for a query, a fragment and, but for HTTP and Azure (``container@account``), names before the host.
    """
    if url.partition(":")[0].lower().partition("+")[0] not in _PLACES or re.search(CHAIN, url) is not None:
        return
    from tessarr.stores.remote.retry import scrub

    try:
        from urllib.parse import urlsplit

        parts = urlsplit(url)
    except ValueError as error:
        raise StoreError("the URL is malformed", store=scrub(url), got=scrub(str(error))) from None
    scheme, _, transport = parts.scheme.partition("+")
    if transport not in ("", "http", "https"):
        raise StoreError("an endpoint is reached by http or https", store=scrub(url), got=transport)
    if scheme in ("http", "https") and not parts.hostname:
        raise StoreError("the URL names no host", store=scrub(url), expected=f"{scheme}://host/path")
    if parts.query or parts.fragment:
        raise StoreError(
            "a URL with a query or a fragment names one object, not a place with keys below it",
            store=scrub(url.partition("#")[0]),
            hint="Give the base URL, and tokens as storage_options; a ? or # that belongs to a name is %3F or %23",
        )
    user, at, _ = parts.netloc.rpartition("@")
    if at and (scheme in ("s3", "s3a", "gs", "gcs") or (":" in user and not scheme.startswith("http"))):
        raise StoreError(
            "credentials do not belong in this URL",
            store=scrub(url),
            hint="Give them as storage_options, or in the environment",
        )


def _as_pipeline(url: str) -> str:
    """Turn the URL of a remote archive, with the suffix ``.zip`` or as fsspec's chain, or of a precomputed
    volume, as Neuroglancer spells it, into a URL pipeline.
    """
    if url.startswith("precomputed://"):
        return f"{url.removeprefix('precomputed://')}|neuroglancer-precomputed:"
    chain = re.search(CHAIN, url)
    double_colon = chain is not None
    inner, outer = (url, "") if chain is None else (url[: chain.start()], url[chain.end() :])
    if inner == "zip" or (inner.startswith("zip://") and double_colon):
        from pathlib import Path

        place = outer if is_url(outer) else Path(outer).absolute().as_uri()
        return f"{place}|zip:{inner.partition('://')[2]}" if re.search(CHAIN, outer) is None else url
    return f"{url}|zip:" if url.endswith(".zip") and "|" not in url and not double_colon else url


def _from_path(path: str, mode: str | None, read_only: bool) -> Store:
    if path == "":
        raise StoreError("the path of the store is empty", hint='Give "." for the current directory')
    if os.path.isfile(path):
        with open(path, "rb") as file:
            start = file.read(4)
        if start not in _ZIP_MAGIC and not (path.endswith(".zip") and start == b""):
            raise StoreError(
                "the path is a file, not a store", store=path, expected="a directory or a zip file", got=repr(start)
            )
    elif not path.endswith(".zip") or os.path.isdir(path) or read_only:
        return LocalStore(path, read_only=read_only)
    from tessarr.stores.zip.store import ZipStore

    return ZipStore(path, mode="r" if read_only else "x" if mode in ("w-", "x") else "a")


def _foreign(candidate: Any, read_only: bool) -> tuple[Store, str] | None:
    """Make a store over another library's object, recognised without importing the library; ``None``: not recognised."""
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(candidate).__mro__}
    if "fsspec.mapping.FSMap" in kinds:
        from tessarr.stores.remote.fsspec import FsspecStore

        return FsspecStore.from_mapper(candidate, read_only=read_only), ""
    elif any(kind.startswith("upath.") for kind in kinds) and not hasattr(candidate, "__fspath__"):
        from tessarr.stores.remote.fsspec import FsspecStore

        return FsspecStore.from_upath(candidate, read_only=read_only), ""
    elif kinds & _NODES:
        store, path = registry.higher("tessarr.zarr_python.place_of")(candidate)
        return (store.with_read_only(True) if read_only else store), path
    elif "zarr.storage._common.StorePath" in kinds:
        from tessarr.stores.virtual.zarr_python import ZarrPythonStore

        return ZarrPythonStore(candidate.store, read_only=read_only), candidate.path
    elif "zarr.abc.store.Store" in kinds:
        from tessarr.stores.virtual.zarr_python import ZarrPythonStore

        return ZarrPythonStore(candidate, read_only=read_only), ""
    elif any(kind.startswith("obstore.") for kind in kinds) or all(hasattr(candidate, name) for name in _OBSPEC):
        from tessarr.stores.remote.obstore.store import ObjectStore

        return ObjectStore(candidate, read_only=read_only), ""
    return None


# -- what users see as the store ---------------------------------------------------------------------------------------

_shape: Callable[[Store], Any] | None = None


def shape_with(shape: Callable[[Store], object] | None) -> None:
    """Show stores that are made from now on to users as ``shape(store)``; ``None``: as they are."""
    global _shape
    _shape = shape


def set_given(store: Store) -> Store:
    """Set `Store.given` of a new store to the object that users see, by the function of `shape_with`."""
    if _shape is not None and store.given is None:
        store.given = _shape(store)
    return store


def public_store(store: Store) -> Any:
    """Return the object that users see as `store`: `Store.given`, read-only if the store is, or the store."""
    given = store.given
    if given is None:
        return store
    if bool(given.read_only) != store.read_only:
        try:
            given = given.with_read_only(store.read_only)
        except NotImplementedError:  # a user-defined store without this method
            return given
        store.given = given
    return given


# -- one place under two names ---------------------------------------------------------------------------------------


def same_place(store_a: Store, store_b: Store) -> bool:
    """Whether two stores hold the same values: the same object, mapping, URL, or directory, also by another name.

    >>> values = {}
    >>> from tessarr.stores.memory.store import MemoryStore
    >>> same_place(MemoryStore(values), MemoryStore(values)), same_place(MemoryStore(), MemoryStore())
    (True, False)
    """
    return store_a is store_b or _place(store_a, "") == _place(store_b, "")


def overlaps(store_a: Store, path_a: str, store_b: Store, path_b: str) -> bool:
    """Whether one of two nodes is within the other, also when their stores have different roots in the same place."""
    root_a, under_a = _place(store_a, path_a)
    root_b, under_b = _place(store_b, path_b)
    a, b = f"{under_a}/".lstrip("/"), f"{under_b}/".lstrip("/")
    return root_a == root_b and (a.startswith(b) or b.startswith(a))


def _place(store: Store, path: str) -> tuple[object, str]:
    """Return an identifier of the place, and the path from there. Wrappers are unwrapped."""
    from tessarr.stores.memory.store import ManagedMemoryStore, MemoryStore
    from tessarr.stores.wrappers.base import WrapperStore
    from tessarr.stores.wrappers.prefix import PrefixStore

    while isinstance(store, WrapperStore):
        if isinstance(store, PrefixStore):
            path = join(store.prefix.rstrip("/"), path)
        store = store.store
    if isinstance(store, LocalStore):
        return "file", join(os.path.realpath(store.root).replace(os.sep, "/").strip("/"), path)
    if isinstance(store, ManagedMemoryStore):
        return ("memory", store.name), join(store.path, path)
    if isinstance(store, MemoryStore):
        return ("memory", store._identity), path
    scheme, colon, rest = store.url.partition("://")
    return (scheme, join(rest.rstrip("/"), path)) if colon else (store.url, path)
