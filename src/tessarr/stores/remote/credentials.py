"""Pickle object stores without their credentials, and make them again, in this process or another.

A pickle holds a `Recipe`: the kind of store and its public options, which are known to hold no credential
(`tessarr.stores.remote.public_options`). All other options stay in a table of this process (and of its forked children).
Another process reads credentials from its environment (``AWS_…``, ``GOOGLE_…``, ``AZURE_…``, as the client libraries do),
or gets them from `provide_credentials`.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.remote.public_options import PUBLIC_NAMES

_PREFIX = re.compile(r"^(aws|google|azure(_storage)?)_")
_GIVES_CREDENTIALS = re.compile(r"KEY|SECRET|TOKEN|SAS|CREDENTIALS|SERVICE_ACCOUNT|CLIENT_ID").search
_ENVIRONMENT = {"S3Store": "AWS_", "GCSStore": "GOOGLE_", "AzureStore": "AZURE_"}
_ENVIRONMENT_OF_SCHEMES = {"s3": "AWS_", "s3a": "AWS_", "gs": "GOOGLE_", "gcs": "GOOGLE_"} | dict.fromkeys(
    ("az", "abfs", "abfss", "adl"), "AZURE_"
)
_SCHEMES = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}
_secrets: dict[str, dict[str, dict[str, object]]] = {}
_provided: dict[str, dict[str, str]] = {}


class Recipe(NamedTuple):
    """The arguments of an obstore object, without its secrets."""

    kind: str
    url: str
    prefix: str | None
    config: dict[str, object]
    client_options: dict[str, object]
    retry_config: dict[str, object] | None
    secret_names: tuple[str, ...]
    fingerprint: str
    """A hash of all arguments, secrets included: the key of the secrets in the process that made the recipe."""


def authorization_of(url: str) -> str | None:
    """Return the header by which the user name and password in a URL of HTTP are sent; ``None`` where it has none.

    >>> authorization_of("https://me:secret@host/a.nc"), authorization_of("https://host/a.nc")
    ('Basic bWU6c2VjcmV0', None)
    """
    parts = urlsplit(url)
    if not parts.username:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def is_secret(name: str) -> bool:
    """Return whether the option `name` can hold a credential: ``True`` unless it is listed as public.

    >>> is_secret("secret_access_key"), is_secret("never_heard_of"), is_secret("aws_region")
    (True, True, False)
    """
    return _PREFIX.sub("", name.lower()) not in PUBLIC_NAMES


_URL_WITH_SECRETS = re.compile(r"://[^/@\s]*@|://[^\s]*\?").search


def _is_secret_item(name: str, value: object) -> bool:
    """Return whether an option can hold a credential: by its name, or as a URL with a password or a query.

    A boolean cannot, whatever its name; neither can an emulator's account, which signs nothing.
    """
    if isinstance(value, str) and _URL_WITH_SECRETS(value):
        return True
    return is_secret(name) and not isinstance(value, bool | None) and '"disable_oauth": true' not in str(value)


def provide_credentials(url_prefix: str, **secrets: str) -> None:
    """Provide the credentials for stores that are unpickled in this process and whose URL begins with `url_prefix`.

    Example:
        >>> provide_credentials("s3://my-bucket", access_key_id="…", secret_access_key="…")
    """
    _provided[url_prefix] = dict(secrets)


def url_of(store: Any) -> str:
    """Return the canonical URL of an obstore object; for one without URL, a name with its `id`."""
    kind = type(store).__name__
    if kind == "HTTPStore":
        return str(store.url).rstrip("/")
    if kind == "LocalStore" and store.prefix is not None:
        return f"file://{quote(str(store.prefix))}"
    if kind not in _SCHEMES:
        return f"object+{kind.lower()}://{id(store):x}"
    config = dict(store.config)
    name = config.get("bucket") or config.get("container_name") or ""
    endpoint = str(config.get("endpoint") or config.get("base_url") or "")
    root = f"{_SCHEMES[kind]}+{endpoint.rstrip('/')}/{name}" if endpoint else f"{_SCHEMES[kind]}://{name}"
    return f"{root}/{quote(str(store.prefix))}".rstrip("/") if store.prefix else root


def recipe_of(store: Any) -> Recipe:
    """Return the recipe of an obstore object. Raises `UnsupportedOperationError` for one that cannot be made again."""
    kind = type(store).__name__
    if kind not in _SCHEMES and kind != "HTTPStore":
        raise UnsupportedOperationError(f"a {kind} cannot be pickled", hint="Open it in each process")
    if getattr(store, "credential_provider", None) is not None:
        raise UnsupportedOperationError(
            "a store with a credential provider cannot be pickled", hint="Open it in each process"
        )
    config = dict(store.config) if kind != "HTTPStore" else {}
    client = dict(store.client_options or {})
    secrets = {
        "config": {name: value for name, value in config.items() if _is_secret_item(name, value)},
        "client_options": {name: value for name, value in client.items() if _is_secret_item(name, value)},
    }
    everything = repr((kind, url_of(store), sorted(config.items()), sorted(client.items(), key=str)))
    fingerprint = hashlib.blake2b(everything.encode(), digest_size=16, key=_PROCESS_KEY).hexdigest()
    _secrets[fingerprint] = secrets
    return Recipe(
        kind,
        url_of(store),
        str(store.prefix) if kind != "HTTPStore" and store.prefix else None,
        {name: value for name, value in config.items() if not _is_secret_item(name, value)},
        {name: value for name, value in client.items() if not _is_secret_item(name, value)},
        dict(store.retry_config) if store.retry_config else None,
        tuple(sorted([*secrets["config"], *secrets["client_options"]])),
        fingerprint,
    )


_PROCESS_KEY = os.urandom(16)
"""The key of the hash, so that a fingerprint cannot be used to guess secrets. Inherited by forked children."""


def build(recipe: Recipe, place: str) -> Any:
    """Make the obstore object of `recipe`, for a store at `place`; stores of the same recipe share it.

    Raises `StoreError` when this process lacks the credentials.
    """
    from tessarr.stores.remote.obstore.clients import shared_client

    secrets = _secrets.get(recipe.fingerprint) or _provided_secrets(recipe, place)
    return shared_client(recipe.kind, recipe.url, {**recipe._asdict(), **secrets}, lambda: _new_client(recipe, secrets))


def _new_client(recipe: Recipe, secrets: Mapping[str, dict[str, object]]) -> object:
    from tessarr.stores.remote.obstore.clients import obstore_stores

    stores = obstore_stores()
    options: dict[str, object] = {
        "client_options": {**recipe.client_options, **secrets["client_options"]},
        "retry_config": recipe.retry_config,
    }
    kind = getattr(stores, recipe.kind)
    if recipe.kind == "HTTPStore":
        return kind.from_url(recipe.url, **options)
    return kind(config={**recipe.config, **secrets["config"]}, prefix=recipe.prefix, **options)


def _provided_secrets(recipe: Recipe, place: str) -> dict[str, dict[str, object]]:
    """Return the secrets from `provide_credentials`, or none where the environment has them."""
    for url_prefix, secrets in [*_provided.items()]:
        if place.startswith(url_prefix):
            return {"config": {**secrets}, "client_options": {}}
    start = _ENVIRONMENT.get(recipe.kind)
    if recipe.secret_names and not _in_environment(start):
        raise _missing_credentials(place, recipe.secret_names, start)
    return {"config": {}, "client_options": {}}


def _in_environment(start: str | None) -> bool:
    """Return whether the environment has credentials under names that begin with `start`."""
    return start is not None and any(name.startswith(start) and _GIVES_CREDENTIALS(name) for name in os.environ)


def _missing_credentials(place: str, names: Iterable[str], start: str | None) -> StoreError:
    environment = f"Set {start}… in the environment, or call" if start else "Call"
    return StoreError(
        "a pickled store carries no credentials, and this process has none",
        store=place,
        expected=f"{', '.join(names)} (options that may hold a credential are not pickled)",
        hint=f"{environment} tessarr.stores.remote.credentials.provide_credentials({place!r}, name=value, …)",
    )


def strip_secrets(url: str, options: Mapping[str, object]) -> dict[str, object]:
    """Return `options` without those that can hold a credential, at any depth; store all in this process.

    `restore_secrets` reads the stored options. The value under the name ``secrets`` lists the names that were left out.
    """
    names = sorted(_secret_names(options))
    if not names:
        return dict(options)
    _secrets[url] = {"config": dict(options)}
    return {**public_options(options), "secrets": names}


def restore_secrets(url: str, options: Mapping[str, object]) -> dict[str, object]:
    """Add the secrets that `strip_secrets` stored or `provide_credentials` provided to `options`.

    None are added where the client reads them from the environment. Raises `StoreError` when this process has neither.
    """
    names: Any = options.get("secrets")
    found: dict[str, object] = _secrets.get(url, {}).get("config", {})
    for url_prefix, provided in [*_provided.items()]:
        if url.startswith(url_prefix):
            found = {**found, **provided}
    start = _ENVIRONMENT_OF_SCHEMES.get(re.split(r"[+:]", url.rpartition("::")[2], maxsplit=1)[0])
    if names and not found and not _in_environment(start):
        raise _missing_credentials(url, names, start)
    return {**{name: value for name, value in options.items() if name != "secrets"}, **found}


def public_options(options: Mapping[str, object]) -> dict[str, object]:
    """Return `options` without those that can hold a credential, at any depth."""
    return {name: _public(value) for name, value in options.items() if not _is_withheld(str(name), value)}


def without_secrets(text: str, options: Mapping[str, object]) -> str:
    """Remove from `text`, a message of a client, the values of `options` that can hold a credential."""
    for name, value in options.items():
        if _is_withheld(str(name), value):
            for secret in _strings(value):
                text = text.replace(secret, "…") if secret else text
        elif isinstance(value, Mapping):
            text = without_secrets(text, value)
    return text


def _is_withheld(name: str, value: object) -> bool:
    if name in _REFERENCES and isinstance(value, Mapping | list | tuple):
        return any(_URL_WITH_SECRETS(text) for text in _strings(value))
    # A mapping is searched, whatever its name, unless the name shows that all of it is sensitive.
    return _is_secret_item(name, value) and not (isinstance(value, Mapping) and _SENSITIVE_NAME.search(name) is None)


_REFERENCES = ("fo",)
"""Options whose mappings have the names of data, not of options: fsspec's references."""
_SENSITIVE_NAME = re.compile(r"(?i)key|secret|token|pass|sas|credential|auth|header|signature|cookie|user|account")


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _public(value: object) -> object:
    if isinstance(value, Mapping):
        return public_options(value)
    if isinstance(value, list | tuple):
        return type(value)(_public(item) for item in value if not any(map(_URL_WITH_SECRETS, _strings(item))))
    return value


def _secret_names(options: Mapping[str, object]) -> Iterator[str]:
    """Yield the names that `public_options` leaves out."""
    for name, value in options.items():
        if _is_withheld(str(name), value):
            yield str(name)
        elif isinstance(value, Mapping) and name not in _REFERENCES:
            yield from _secret_names(value)
        elif isinstance(value, list | tuple) and _public(value) != value:
            yield str(name)
