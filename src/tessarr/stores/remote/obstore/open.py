"""Open object stores by URL and `storage_options`.

| URL | store |
|---|---|
| ``s3://bucket/prefix``, ``s3+http(s)://endpoint/bucket/prefix`` | `ObjectStore` over obstore's S3Store |
| ``gs://bucket/prefix``, ``gs+http(s)://endpoint/bucket/prefix`` | `ObjectStore` over GCSStore |
| ``az://container/prefix``, ``abfs[s]://container@account…/prefix`` | `ObjectStore` over AzureStore |
| ``az+http(s)://endpoint/account/container/prefix`` | the same |
| ``http(s)://host/prefix`` | `ObjectStore` over HTTPStore, read-only, no listing |
| ``http(s)://…`` where fsspec is installed and obstore is not | `FsspecStore` |

`storage_options` are the options of the client library under obstore's names; fsspec's common names (``anon``, ``key``,
``secret``, ``token``, ``endpoint_url``, ``connection_string``) are accepted with the same meaning. ``client_options`` and
``retry_config`` are obstore's, ``forbidden_is_missing`` is `ObjectStore`'s. An unknown option is an error, except where options
are meant for fsspec (`options_of_fsspec`, and the setting ``zarr_python.storage_options``): there options of caches and
event loops have no effect, and with others that obstore lacks the store is an `FsspecStore`, if fsspec's file system of the
scheme is installed.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from tessarr.errors import StoreError
from tessarr.settings import config as settings
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.stores.remote.obstore.clients import obstore_stores, shared_client
from tessarr.stores.remote.retry import RetryPolicy, scrub, scrub_url

_NO_OPTION = re.compile(r"Configuration key: '?(\w+)'? is not")
_PLAIN = re.compile(r"(/(?!\.\.?(/|$))[A-Za-z0-9._~!$'()+,;=@-]+)*").fullmatch
Options: TypeAlias = dict[str, Any]

TIMEOUTS = {"connect_timeout": "5s", "read_timeout": "20s", "timeout": "120s"}
"""A request without a response after 20 s is retried; a request for 12 MiB completes at 1 Mbit/s."""
_FSSPEC_NAMES = {
    "s3": {"anon": "skip_signature", "key": "access_key_id", "secret": "secret_access_key", "endpoint_url": "endpoint"},
    "gs": {"anon": "skip_signature", "endpoint_url": "endpoint"},
    "az": {"anon": "skip_signature"},
    "http": {"headers": "default_headers"},
}
_FILESYSTEMS = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "http": "fsspec[http]"}
"""The packages with fsspec's file systems."""
_WITHOUT_EFFECT = frozenset(
    "asynchronous loop batch_size block_size cache_options cache_regions cache_timeout cache_type default_block_size "  # noqa: SIM905
    "default_cache_type default_fill_cache listings_expiry_time max_concurrency max_paths skip_instance_cache "
    "use_listings_cache".split()
)
"""Options of fsspec for its caches, event loops and parts of uploads, which obstore's clients do not have."""
_for_fsspec: ContextVar[bool] = ContextVar("tessarr_storage_options_for_fsspec", default=False)


class _UnknownOptionsError(StoreError):
    """An option is none of obstore's."""


def _unknown_options(scheme: str, names: list[str]) -> _UnknownOptionsError:
    hint = f"Give options under obstore's names, or fsspec's to FsspecStore.from_url ({_FILESYSTEMS[scheme]})"
    return _UnknownOptionsError(f"unknown storage_options for {scheme}", got=names, hint=hint)


@contextmanager
def options_of_fsspec() -> Iterator[None]:
    """Within the context `storage_options` are meant for fsspec, as those of programs that call xarray are."""
    token = _for_fsspec.set(True)
    try:
        yield
    finally:
        _for_fsspec.reset(token)


def open_url(url: str, options: Options, read_only: bool) -> Store:
    """Open the store at `url`. Sends no request.

    Raises `MissingDependencyError` naming the extra to install, `StoreError` for invalid options or URLs.
    """
    scheme = url.partition(":")[0].lower()
    if scheme in ("http", "https") and not _is_installed("obstore") and _is_installed("fsspec"):
        from tessarr.stores.remote import fsspec

        # Of HTTP both only read. Elsewhere fsspec is not a silent substitute, because it has no conditional writes.
        return fsspec.open_url(url, options, read_only)
    opener = _OPENERS[scheme.partition("+")[0]]
    if not (_for_fsspec.get() or settings.get("zarr_python.storage_options")):
        return opener(url, options, read_only)
    try:
        given = {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT and value is not None}
        return opener(url, given, read_only)
    except _UnknownOptionsError:
        if not _has_filesystem(scheme):
            raise
    from tessarr.stores.remote import fsspec

    return fsspec.open_url(url, options, read_only)


def _has_filesystem(scheme: str) -> bool:
    """Whether fsspec's file system of `scheme` is installed."""
    try:
        from fsspec import get_filesystem_class

        get_filesystem_class(scheme)
    except (ImportError, ValueError):
        return False
    return True


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


# -- object stores -----------------------------------------------------------------------------------------------


def _open_s3(url: str, options: Options, read_only: bool) -> Store:
    _, endpoint, (bucket, prefix) = _endpoint_and_parts(url, 1)
    if endpoint:
        options.setdefault("endpoint", endpoint)
    client_kwargs = dict(options.pop("client_kwargs", None) or {})
    for name, ours in (("endpoint_url", "endpoint"), ("region_name", "region")):
        if name in client_kwargs:
            options.setdefault(ours, client_kwargs.pop(name))
    options.update(client_kwargs)
    return _object_store("s3", "S3Store", bucket, prefix, options, read_only)


_DEFAULT_CREDENTIALS = (None, "google_default", "cloud", "cache")


def _open_gs(url: str, options: Options, read_only: bool) -> Store:
    _, endpoint, (bucket, prefix) = _endpoint_and_parts(url, 1)
    options.pop("project", None)  # names the billing project of operations that this store does not have
    token = options.pop("token", None)
    if token == "anon":
        options["anon"] = True
    elif isinstance(token, Mapping):
        options["service_account_key"] = json.dumps(dict(token))
    elif token not in _DEFAULT_CREDENTIALS:
        options["application_credentials"] = token
    endpoint = options.pop("endpoint_url", endpoint)
    if endpoint:
        options.setdefault("base_url", endpoint)
        # An emulator has no accounts; the credentials for a private endpoint are in the options.
        if not any("account" in name or "credential" in name or "token" in name for name in options):
            anonymous = {"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True}
            options["service_account_key"] = json.dumps({"gcs_base_url": endpoint, **anonymous})
    return _object_store("gs", "GCSStore", bucket, prefix, options, read_only)


_CONNECTION = {
    "AccountName": "account_name",
    "AccountKey": "account_key",
    "SharedAccessSignature": "sas_token",
    "BlobEndpoint": "endpoint",
}
"""The names in Azure's connection strings, and obstore's options."""


def _open_az(url: str, options: Options, read_only: bool) -> Store:
    parts = urlsplit(url)
    for item in str(options.pop("connection_string", None) or "").split(";"):
        name, _, value = item.partition("=")
        if name in _CONNECTION:
            options.setdefault(_CONNECTION[name], value)
    if parts.scheme.startswith("az+"):
        _, endpoint, (account, container, prefix) = _endpoint_and_parts(url, 2)
        options.setdefault("endpoint", f"{endpoint}/{account}")
        options.setdefault("account_name", account)
    else:
        container, prefix = parts.netloc, unquote(parts.path).strip("/")
        if "@" in container:
            container, _, host = container.partition("@")
            options.setdefault("account_name", host.partition(".")[0])
    return _object_store("az", "AzureStore", container, prefix, options, read_only)


def _open_http(url: str, options: Options, _: bool) -> Store:
    from tessarr.stores.remote.obstore.store import ObjectStore

    parts = urlsplit(url)
    forbidden = _forbidden_is_missing(options)
    client, retry, policy = _client_options("http", options)
    headers = dict(client.pop("default_headers", None) or {})
    if parts.username:
        from tessarr.stores.remote.credentials import authorization_of

        headers.setdefault("Authorization", authorization_of(url))
    if headers:
        client["default_headers"] = headers
    if options:
        raise _unknown_options("http", sorted(options))
    origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    path = parts.path.rstrip("/")
    # A path that cannot be a key (encoded characters, doubled slashes) gets a separate client.
    root, prefix = (origin, f"{path[1:]}/" if path else "") if _PLAIN(path) else (origin + path, "")
    store = shared_client(
        "HTTPStore",
        root,
        client,
        lambda: obstore_stores().HTTPStore.from_url(root, client_options=client, retry_config=retry),
    )
    return ObjectStore(store, url=origin + path, retry=policy, prefix=prefix, forbidden_is_missing=forbidden)


def _object_store(scheme: str, kind: str, bucket: str, prefix: str, options: Options, read_only: bool) -> Store:
    from tessarr.stores.remote.obstore.store import ObjectStore

    if not bucket:
        raise StoreError("the URL names no bucket", expected=f"{scheme}://bucket/path")
    for theirs, ours in _FSSPEC_NAMES[scheme].items():
        if theirs in options:
            options.setdefault(ours, options.pop(theirs))
    forbidden = _forbidden_is_missing(options)
    client, retry, policy = _client_options(scheme, options)
    endpoint = str(options.get("endpoint") or options.get("base_url") or "")
    if scrub_url(endpoint) != endpoint:
        raise StoreError(
            "an endpoint is a URL without user names and query",
            store=f"{scheme}://{bucket}",
            got=scrub_url(endpoint),
            hint="Pass credentials as storage_options",
        )
    if endpoint.startswith("http://"):
        client.setdefault("allow_http", True)
    url = _canonical(scheme, endpoint, bucket, prefix)
    if scheme == "az" and not endpoint and "account_name" in options:
        host = f"{bucket}@{options['account_name']}.dfs.core.windows.net"
        url = _canonical("abfss", "", host, prefix)
    name = "container_name" if scheme == "az" else "bucket"
    stores = obstore_stores()
    config = {name: bucket, **options}
    try:
        store = shared_client(
            kind,
            bucket,
            {**config, "client_options": client},
            lambda: getattr(stores, kind)(config=config, client_options=client, retry_config=retry),
        )
    except Exception as error:
        from tessarr.stores.remote.credentials import without_secrets

        if unknown := _NO_OPTION.search(str(error)):
            raise _unknown_options(scheme, [unknown[1]]) from None
        got = scrub(without_secrets(str(error), {**config, **client}))
        hint = "See obstore's option names"
        raise StoreError("the client rejected the options", store=url, got=got, hint=hint) from None
    return ObjectStore(
        store, url=url, read_only=read_only, retry=policy, prefix=prefix_of(prefix), forbidden_is_missing=forbidden
    )


def _forbidden_is_missing(options: Options) -> bool | Literal["documents"]:
    """Remove the option ``forbidden_is_missing`` from `options`, and return it."""
    wanted = options.pop("forbidden_is_missing", False)
    if wanted is True or wanted is False or wanted == "documents":
        return "documents" if wanted == "documents" else bool(wanted)
    raise StoreError("forbidden_is_missing is True, False or 'documents'", got=repr(wanted))


def _client_options(scheme: str, options: Options) -> tuple[Options, Options, RetryPolicy]:
    """Remove the HTTP and retry options from `options`; return HTTP options, obstore's retry configuration, and ours.

    obstore's configuration disables its retries, because the store itself retries.
    """
    client: Options = {**TIMEOUTS, **(options.pop("client_options", None) or {})}
    if scheme == "http":
        for name in [name for name in options if name in ("headers", "default_headers", *TIMEOUTS)]:
            client[_FSSPEC_NAMES["http"].get(name, name)] = options.pop(name)
        client.setdefault("allow_http", True)
    wanted = dict(options.pop("retry_config", None) or {})
    backoff = wanted.get("backoff") or {}
    default = RetryPolicy()
    policy = RetryPolicy(
        attempts=int(wanted.get("max_retries", default.attempts - 1)) + 1,
        backoff_s=_seconds(backoff.get("init_backoff", default.backoff_s)),
        base=float(backoff.get("base", default.base)),
        max_backoff_s=_seconds(backoff.get("max_backoff", default.max_backoff_s)),
        deadline_s=_seconds(wanted.get("retry_timeout", default.deadline_s)),
    )
    return client, {"max_retries": 0}, policy


def _seconds(value: Any) -> float:
    return float(value.total_seconds() if hasattr(value, "total_seconds") else value)


def _endpoint_and_parts(url: str, count: int) -> tuple[str, str | None, list[str]]:
    """Split `url` into scheme, endpoint (``s3+http://endpoint/…``), the first `count` path segments and the rest."""
    parts = urlsplit(url)
    scheme, plus, transport = parts.scheme.partition("+")
    path = unquote(parts.path).strip("/")
    if not plus:
        path = f"{parts.netloc}/{path}".rstrip("/")
    segments = path.split("/", count)
    segments += [""] * (count + 1 - len(segments))
    host = parts.netloc.rpartition("@")[2]
    return scheme, f"{transport}://{host}" if plus else None, segments


def _canonical(scheme: str, endpoint: str, bucket: str, prefix: str) -> str:
    root = f"{scheme}+{endpoint.rstrip('/')}/{bucket}" if endpoint else f"{scheme}://{bucket}"
    return f"{root}/{quote(prefix)}" if prefix else root


_OPENERS: dict[str, Callable[[str, Options, bool], Store]] = {
    "s3": _open_s3,
    "s3a": _open_s3,
    "gs": _open_gs,
    "gcs": _open_gs,
    "az": _open_az,
    "azure": _open_az,
    "abfs": _open_az,
    "abfss": _open_az,
    "http": _open_http,
    "https": _open_http,
}
