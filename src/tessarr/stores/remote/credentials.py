"""How an object store is made again, in this process or another, without its credentials being written anywhere.

A pickle holds a `Recipe`: the kind of place and its public settings, which are those that are known to hold no credential
(`tessarr.stores.remote.public_options`). All others stay in a table of this process (and of its forked children). Another
process takes them from its environment (``AWS_…``, ``GOOGLE_…``, ``AZURE_…``, as the client libraries do), or from
`provide_credentials`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.remote.public_options import HARMLESS

_PREFIX = re.compile(r"^(aws|google|azure(_storage)?)_")
_GIVES_CREDENTIALS = re.compile(r"KEY|SECRET|TOKEN|SAS|CREDENTIALS|SERVICE_ACCOUNT|CLIENT_ID").search
_ENVIRONMENT = {"S3Store": "AWS_", "GCSStore": "GOOGLE_", "AzureStore": "AZURE_"}
_ENVIRONMENT_OF_SCHEMES = {"s3": "AWS_", "s3a": "AWS_", "gs": "GOOGLE_", "gcs": "GOOGLE_"} | dict.fromkeys(
    ("az", "abfs", "abfss", "adl"), "AZURE_"
)
_SCHEMES = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}
_secrets: dict[str, dict[str, dict[str, Any]]] = {}
_provided: dict[str, dict[str, str]] = {}


class Recipe(NamedTuple):
    """What an obstore object is made of, without its secrets."""

    kind: str
    url: str
    prefix: str | None
    config: dict[str, Any]
    client_options: dict[str, Any]
    retry_config: dict[str, Any] | None
    secret_names: tuple[str, ...]
    fingerprint: str
    """Of everything, secrets included: finds them again in the process that made the recipe."""


def is_secret(name: str) -> bool:
    """Whether the option `name` can hold a credential: every one that is not known to hold none.

    >>> is_secret("secret_access_key"), is_secret("never_heard_of"), is_secret("aws_region")
    (True, True, False)
    """
    return _PREFIX.sub("", name.lower()) not in HARMLESS


_URL_WITH_SECRETS = re.compile(r"://[^/@\s]*@|://[^\s]*\?").search


def _is_secret_item(name: str, value: object) -> bool:
    """By its name, or because it is a URL with a password or a query.

    A switch is none, whatever its name; neither is an emulator's account, which signs nothing.
    """
    if isinstance(value, str) and _URL_WITH_SECRETS(value):
        return True
    return is_secret(name) and not isinstance(value, bool | None) and '"disable_oauth": true' not in str(value)


def provide_credentials(url_prefix: str, **secrets: str) -> None:
    """Gives this process the credentials for stores unpickled in it whose URL begins with `url_prefix`.

    Example:
        >>> provide_credentials("s3://my-bucket", access_key_id="…", secret_access_key="…")
    """
    _provided[url_prefix] = dict(secrets)


def url_of(store: Any) -> str:
    """A canonical URL for an obstore object; for others a name with their identity."""
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
    """The recipe of an obstore object. Raises `UnsupportedOperationError` for what cannot be made again."""
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
"""Makes fingerprints useless for guessing secrets. A forked child shares it, and the table."""


def build(recipe: Recipe, place: str) -> Any:
    """The obstore object of `recipe`, for a store at `place`. Raises `StoreError` when this process lacks its credentials.

    Stores that are made of the same recipe share the object.
    """
    from tessarr.stores.remote.obstore.clients import shared_client

    secrets = _secrets.get(recipe.fingerprint) or _from_elsewhere(recipe, place)
    return shared_client(recipe.kind, recipe.url, {**recipe._asdict(), **secrets}, lambda: _built(recipe, secrets))


def _built(recipe: Recipe, secrets: Mapping[str, dict[str, object]]) -> object:
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


def _from_elsewhere(recipe: Recipe, place: str) -> dict[str, dict[str, Any]]:
    """What `provide_credentials` gave, or nothing where the environment has it."""
    for url_prefix, secrets in [*_provided.items()]:
        if place.startswith(url_prefix):
            return {"config": secrets, "client_options": {}}
    start = _ENVIRONMENT.get(recipe.kind)
    if recipe.secret_names and not _is_given(start):
        raise _without_credentials(place, recipe.secret_names, start)
    return {"config": {}, "client_options": {}}


def _is_given(start: str | None) -> bool:
    """Whether the environment has credentials under names that begin with `start`."""
    return start is not None and any(name.startswith(start) and _GIVES_CREDENTIALS(name) for name in os.environ)


def _without_credentials(place: str, names: Iterable[str], start: str | None) -> StoreError:
    environment = f"Set {start}… in the environment, or call" if start else "Call"
    return StoreError(
        "a pickled store carries no credentials, and this process has none",
        store=place,
        expected=f"{', '.join(names)} (options that are not known to be harmless are not pickled)",
        hint=f"{environment} tessarr.stores.remote.credentials.provide_credentials({place!r}, name=value, …)",
    )


def remember_secrets(url: str, options: Mapping[str, Any]) -> dict[str, object]:
    """`options` without what can hold a credential at any depth; this process keeps them whole for `recall_secrets`.

    A value under the name ``secrets`` says which names were left out.
    """
    names = sorted(_secret_names(options))
    if not names:
        return dict(options)
    _secrets[url] = {"config": dict(options)}
    return {**public_options(options), "secrets": names}


def recall_secrets(url: str, options: Mapping[str, Any]) -> dict[str, object]:
    """The opposite of `remember_secrets`; where the environment has credentials for such a URL, without those.

    Raises `StoreError` when this process knows neither.
    """
    names = options.get("secrets")
    found: dict[str, Any] = _secrets.get(url, {}).get("config", {})
    for url_prefix, provided in [*_provided.items()]:
        if url.startswith(url_prefix):
            found = {**found, **provided}
    start = _ENVIRONMENT_OF_SCHEMES.get(re.split(r"[+:]", url.rpartition("::")[2], maxsplit=1)[0])
    if names and not found and not _is_given(start):
        raise _without_credentials(url, names, start)
    return {**{name: value for name, value in options.items() if name != "secrets"}, **found}


def public_options(options: Mapping[str, object]) -> dict[str, object]:
    """`options` without those that can hold a credential, at any depth."""
    return {name: _public(value) for name, value in options.items() if not _is_withheld(str(name), value)}


def without_secrets(text: str, options: Mapping[str, object]) -> str:
    """`text`, in which a client speaks of `options`, without the values of those that can hold a credential."""
    for name, value in options.items():
        if _is_withheld(str(name), value):
            for secret in _texts(value):
                text = text.replace(secret, "…") if secret else text
        elif isinstance(value, Mapping):
            text = without_secrets(text, value)
    return text


def _is_withheld(name: str, value: object) -> bool:
    if name in _WHOLE and isinstance(value, Mapping | list | tuple):
        return any(_URL_WITH_SECRETS(text) for text in _texts(value))
    # What holds options is gone through, whatever it is called, unless its name says what is in it.
    return _is_secret_item(name, value) and not (isinstance(value, Mapping) and _TELLING.search(name) is None)


_WHOLE = ("fo",)
"""A mapping whose names are those of data: fsspec's references."""
_TELLING = re.compile(r"(?i)key|secret|token|pass|sas|credential|auth|header|signature|cookie|user|account")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _public(value: object) -> object:
    if isinstance(value, Mapping):
        return public_options(value)
    if isinstance(value, list | tuple):
        return type(value)(_public(item) for item in value if not any(map(_URL_WITH_SECRETS, _texts(item))))
    return value


def _secret_names(options: Mapping[str, object]) -> Iterator[str]:
    """The names of what `public_options` leaves out."""
    for name, value in options.items():
        if _is_withheld(str(name), value):
            yield str(name)
        elif isinstance(value, Mapping) and name not in _WHOLE:
            yield from _secret_names(value)
        elif isinstance(value, list | tuple) and _public(value) != value:
            yield str(name)
