"""Icechunk repositories: versioned Zarr. The icechunk package reads and writes them; this file opens them by URL.

``s3://bucket/repo|icechunk:@branch.main/group`` is a branch (the default is ``main``), ``@tag.v1`` a tag, ``@SNAPSHOT`` a
snapshot. A branch that is opened for writing is a session: its changes are visible to others after
``store.session.commit("why")``, where ``store`` is `ZarrPythonStore.store`. What opens a URL and gives nothing back by which to
commit, such as a conversion, commits it (`branches.committing`); a session that ends with changes that are not committed warns.

Source: https://icechunk.io, and ZEP 8 (draft) for the URLs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tessarr.errors import MissingDependencyError, StoreError, UnsupportedOperationError
from tessarr.stores.remote.retry import scrub, scrub_url
from tessarr.stores.virtual import branches

if TYPE_CHECKING:
    from tessarr.stores.base import Store


def open_repository(
    root: str, path: str, *, storage_options: Mapping[str, Any] | None = None, read_only: bool = False
) -> tuple[Store, str]:
    """Open the branch, tag or snapshot that `path` names in the repository at `root`; return its store and the rest of `path`.

    `storage_options` are those of icechunk's storage for the scheme (``s3_storage``, ``gcs_storage``, …). Without
    credentials in them, icechunk reads credentials from the environment.
    """
    import importlib

    try:
        icechunk: Any = importlib.import_module("icechunk")
    except ImportError as error:
        raise MissingDependencyError("icechunk: URLs need icechunk", hint="pip install 'tessarr[icechunk]'") from error
    from tessarr.stores.virtual.zarr_python import ZarrPythonStore

    version, rest = _version(path)
    try:
        repository = icechunk.Repository.open(_storage(icechunk, root, dict(storage_options or {})))
        if "branch" in version and not read_only:
            session = repository.writable_session(version["branch"])
        else:
            session = repository.readonly_session(**version)
    except icechunk.IcechunkError as error:
        raise StoreError("icechunk cannot open the repository", store=scrub_url(root), got=scrub(str(error))) from None
    named = "/".join(f"@{kind}.{name}".replace("@snapshot_id.", "@") for kind, name in version.items())
    store = ZarrPythonStore(session.store, read_only=read_only, url=f"{scrub_url(root)}|icechunk:{named}")
    if not session.read_only:
        store.branch = branches.opened(session, store.url)
    return store, rest


def forked(store: Store) -> Store | None:
    """Return a store over a fork of the session that `store` writes to; ``None`` where there is no session.

    Each pickle of it is a fork of its own, and what is written to one becomes part of another session by `merge`. Raises
    `UnsupportedOperationError` for a session with changes that are not committed: Icechunk cannot fork it.
    """
    from tessarr.stores.virtual.zarr_python import ZarrPythonStore

    session = getattr(store.store, "session", None) if isinstance(store, ZarrPythonStore) else None
    if session is None:
        return None
    if session.has_uncommitted_changes:
        raise UnsupportedOperationError(
            "tasks need forks of the Icechunk session, and it has changes that are not committed",
            store=store.url,
            hint="Commit them, and pass the store of a new session",
        )
    return ZarrPythonStore(session.fork().store, url=store.url)


def merge(store: Store, fork: Store) -> None:
    """Make what was written to `fork` part of the session of `store`, or of the fork. Nothing is committed."""
    from tessarr.stores.virtual.zarr_python import ZarrPythonStore

    assert isinstance(store, ZarrPythonStore)
    assert isinstance(fork, ZarrPythonStore)
    store.store.session.merge(fork.store.session)


def _version(path: str) -> tuple[dict[str, str], str]:
    """Split `path` into the version of the repository and the path in it."""
    if not path.startswith("@"):
        return {"branch": "main"}, path.strip("/")
    name, _, rest = path[1:].partition("/")
    kind, dot, value = name.partition(".")
    if dot and kind in ("branch", "tag") and value:
        return {kind: value}, rest.strip("/")
    if dot or not name:
        raise StoreError("an icechunk version is a branch, a tag or a snapshot", expected="@branch.main", got=path)
    return {"snapshot_id": name}, rest.strip("/")


def _storage(icechunk: Any, root: str, options: dict[str, object]) -> object:
    parts = urlsplit(root)
    scheme, plus, transport = parts.scheme.partition("+")
    where = unquote(parts.path).strip("/")
    if scheme == "file":
        return icechunk.local_filesystem_storage(unquote(parts.path))
    if scheme == "s3":
        bucket, prefix = parts.netloc, where
        if plus:
            bucket, _, prefix = where.partition("/")
            options = {"endpoint_url": f"{transport}://{parts.netloc}", "allow_http": transport == "http",
                       "force_path_style": True, **options}  # fmt: skip
        if not {"access_key_id", "anonymous", "from_env", "get_credentials"}.intersection(options):
            options["from_env"] = True
        return icechunk.s3_storage(bucket=bucket, prefix=prefix or None, **options)
    if scheme in ("gs", "gcs"):
        return icechunk.gcs_storage(bucket=parts.netloc, prefix=where or None, **options)
    raise UnsupportedOperationError(
        "icechunk has no storage for this URL",
        store=scrub_url(root),
        expected="file:, s3: or gs:",
        got=parts.scheme,
    )
