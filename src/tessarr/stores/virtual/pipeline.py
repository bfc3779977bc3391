"""URL pipelines: the URL of a place, followed by adapters that open its contents.

    s3://bucket/archive.zip|zip:inner/path/|zarr3:array
    └── root ─────────────┘└── adapter ──┘ └─ adapter ─┘

The root is any URL that tessarr opens; adapters apply from left to right. Of the adapters in the proposal tessarr supports
``zip:`` (and ``zip`` nested in ``zip``), ``zarr2: zarr3: zarr:`` (the expected format, and a path), ``icechunk:``
(branches, tags and snapshots, through the icechunk package), ``n5:`` and ``neuroglancer-precomputed:`` (axes in C order),
``byte-range:`` of zips, and
``..:`` (removes the adapter before it). A trailing ``:`` may be omitted. fsspec's chains (``zip://inner::s3://…``) apply in
reverse order.

>>> join("gs://bucket/path/to/outer.zip|zip:path/to/inner.zip", "|..:other/zarr/hierarchy|zarr3:path/to/array")
'gs://bucket/path/to/other/zarr/hierarchy/|zarr3:path/to/array'
>>> [str(step) for step in parse("https://e.com/a.zip|zip|zarr3").steps]
['zip:', 'zarr3:']

Source: ZEP 8 (draft), "Zarr URL specification".
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.remote.retry import scrub_url
from tessarr.stores.url import store_from
from tessarr.types import JSON

if TYPE_CHECKING:
    from tessarr.stores.base import Store
    from tessarr.types import ZarrFormat

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)|\.\.(?=:)")
_FORMATS: dict[str, ZarrFormat | None] = {"zarr2": 2, "zarr3": 3, "zarr": None}
_FOREIGN = ("n5", "neuroglancer-precomputed")
"""Adapters of containers of other formats."""
_CONTAINERS = ("zip", *_FORMATS, "icechunk", *_FOREIGN)
"""Adapters of a container, whose path names something within the container."""


class Step(NamedTuple):
    """One adapter: ``scheme:path``."""

    scheme: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.path}"


class Pipeline(NamedTuple):
    """A parsed URL pipeline."""

    root: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "|".join([self.root, *map(str, self.steps)])


class Opened(NamedTuple):
    """Result of opening a pipeline."""

    store: Store
    path: str
    """Path of the node in `store`."""
    zarr_format: ZarrFormat | None
    """The format in the URL; ``None``: any format."""


def parse(url: str) -> Pipeline:
    """Parse the root and the steps of `url`, and resolve ``..:``. Raises `StoreError` for a malformed URL."""
    root, *rest = url.split("|")
    if not root or _SCHEME.match(root) is None:
        raise StoreError("a URL pipeline begins with a URL", got=scrub_url(url))
    steps: list[Step] = []
    for part in rest:
        scheme, _, path = part.partition(":")
        if scheme == "..":
            root, steps = _remove_last(root, steps, path)
        elif not scheme or not scheme.replace("-", "").isalnum():
            raise StoreError(
                "malformed adapter in a URL pipeline", expected="a word and a path, as in zip:path", got=part
            )
        else:
            steps.append(Step(scheme.lower(), _normalize(path)))
    return Pipeline(root, tuple(steps))


def format_of(url: str) -> ZarrFormat | None:
    """Return the Zarr format at the end of `url`; ``None``: any format, or `url` is not a pipeline.

    >>> format_of("s3://bucket/a.zip|zip:x|zarr2:"), format_of("s3://bucket/a|zarr:"), format_of("a|b")
    (2, None, None)
    """
    steps = parse(url).steps if _SCHEME.match(url) is not None and "|" in url else ()
    return _FORMATS.get(steps[-1].scheme) if steps else None


def _remove_last(root: str, steps: list[Step], path: str) -> tuple[str, list[Step]]:
    """Remove the last adapter, and resolve `path` relative to the input of that adapter."""
    if not steps:
        raise StoreError("'..:' has no adapter before it", got=scrub_url(f"{root}|..:{path}"))
    segments = steps[:-1]
    if segments:
        last = segments[-1]
        return root, [*segments[:-1], last._replace(path=_relative(last.path, path))]
    return _relative_url(root, path), []


def join(base: str, relative: str) -> str:
    """Resolve `relative` against `base`: a path, adapters (``|zarr3:x``), adapters that begin with ``..:``, or a whole URL."""
    first = relative.split("|", 1)[0]
    if first and first != ".." and not first.startswith("..:") and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", first):
        return str(parse(relative))
    if relative.startswith("..:"):
        relative = f"|{relative}"
    if relative.startswith("|"):
        return _with_slashes(parse(base + relative))
    whole = parse(base)
    path, _, rest = relative.partition("|")
    if whole.steps:
        last = whole.steps[-1]
        resolved = whole._replace(steps=(*whole.steps[:-1], last._replace(path=_relative(last.path, path))))
    else:
        resolved = Pipeline(_relative_url(whole.root, path), ())
    return _with_slashes(parse(f"{resolved}|{rest}" if rest else str(resolved)))


def _with_slashes(pipeline: Pipeline) -> str:
    """Format the URL, with a slash after a root that must be a directory, because a format's adapter follows."""
    root = pipeline.root
    if pipeline.steps and pipeline.steps[0].scheme in _FORMATS and not root.endswith("/"):
        root += "/"
    return str(pipeline._replace(root=root))


def _relative(base: str, path: str) -> str:
    """Resolve `path` against the directory of `base`; a path that begins with a slash against the root."""
    if path.startswith("/"):
        return _normalize(path)
    return _normalize(posixpath.join(base if base.endswith("/") else posixpath.dirname(base), path))


def _relative_url(root: str, path: str) -> str:
    head = re.match(r"([A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?)(.*)", root)
    if head is None:
        raise StoreError("a URL pipeline begins with a URL", got=scrub_url(root))
    return (
        f"{head[1]}/{_relative(head[2].lstrip('/'), path)}" if "//" in head[1] else head[1] + _relative(head[2], path)
    )


def _normalize(path: str) -> str:
    """Normalise `path`: resolve ``.``, ``..`` and doubled slashes, keep a trailing slash. Raises if ``..`` leaves the root."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if not segments:
                raise StoreError("the path leads out of its root", got=path)
            segments.pop()
        elif segment not in ("", "."):
            segments.append(segment)
    return "/".join(segments) + ("/" if segments and path.endswith("/") else "")


# -- opening -------------------------------------------------------------------------------------------------------


def open_pipeline(url: str, *, storage_options: Mapping[str, object] | None = None, read_only: bool = False) -> Opened:
    """Open the store of `url`. Returns the store, and the path and format in the URL."""
    pipeline = parse(url)
    steps = [step for step in pipeline.steps if step.scheme not in _FORMATS]
    formats = [step for step in pipeline.steps if step.scheme in _FORMATS]
    if len(formats) > 1 or (formats and pipeline.steps[-1].scheme not in _FORMATS):
        raise StoreError("the adapter of a Zarr format must be the last one", got=scrub_url(url))
    for step in steps:
        if step.scheme not in _CONTAINERS:
            raise UnsupportedOperationError(f"the adapter {step.scheme}: is not supported", store=scrub_url(url))
    container = steps.pop() if steps and steps[-1].scheme in _FOREIGN else None
    if any(step.scheme in _FOREIGN for step in steps) or (container is not None and formats):
        raise StoreError("the adapters n5: and neuroglancer-precomputed: must be the last one", got=scrub_url(url))
    if steps and steps[0].scheme == "icechunk":
        store, path = _open_icechunk(pipeline.root, steps, storage_options, read_only)
    else:
        store, path = _open_zips(pipeline.root, steps, storage_options, read_only)
    if container is not None:
        store = _open_container(container.scheme, store, path, read_only)
        path = unquote(container.path).strip("/")
    if formats:
        path = "/".join(part for part in (path, unquote(formats[0].path).strip("/")) if part)
    return Opened(store, path, _FORMATS[formats[0].scheme] if formats else None)


def open_url(url: str, options: Mapping[str, JSON], read_only: bool) -> Store:
    """Open the store of the pipeline `url`, at the path in the URL."""
    from tessarr.stores.wrappers.prefix import PrefixStore

    store, path, _ = open_pipeline(url, storage_options=options, read_only=read_only)
    return PrefixStore(store, path) if path else store


def _open_container(scheme: str, store: Store, path: str, read_only: bool) -> Store:
    from tessarr.stores.path import StorePath

    if scheme == "n5":
        from tessarr.stores.virtual.n5 import N5Store

        return N5Store(StorePath(store, path), read_only=read_only)
    from tessarr.stores.virtual.precomputed import PrecomputedStore

    return PrecomputedStore(StorePath(store, path))


def _open_zips(
    root: str, steps: list[Step], storage_options: Mapping[str, object] | None, read_only: bool
) -> tuple[Store, str]:
    if not steps:
        return store_from(root, read_only=read_only, storage_options=storage_options)
    if len(steps) == 1 and root.startswith("file:"):
        archive, _ = store_from(root, read_only=read_only)
        if getattr(archive, "adapter", None) == "zip":  # a local archive, which can also be written
            return archive, unquote(steps[0].path).strip("/")
    directory, _, name = root.rstrip("/").rpartition("/")
    opened, path = store_from(directory + "/", read_only=True, storage_options=storage_options)
    store: Store = _zip_in(opened, f"{path}/{unquote(name)}".lstrip("/"))
    for step, following in itertools.pairwise(steps):
        if following.scheme != "zip":
            raise UnsupportedOperationError("only zip archives can be nested in zip archives", store=scrub_url(root))
        store = _zip_in(store, unquote(step.path).strip("/"))
    return store, unquote(steps[-1].path).strip("/")


def _zip_in(store: Store, key: str) -> Store:
    from tessarr.stores.zip.remote import RemoteZipStore

    return RemoteZipStore(store, key)


def _open_icechunk(
    root: str, steps: list[Step], storage_options: Mapping[str, object] | None, read_only: bool
) -> tuple[Store, str]:
    if len(steps) > 1:
        raise UnsupportedOperationError("only the adapter of a Zarr format may follow icechunk:", store=scrub_url(root))
    from tessarr.stores.virtual.icechunk import open_repository

    return open_repository(root, unquote(steps[0].path), storage_options=storage_options, read_only=read_only)
