"""Credentials are in no text that tessarr makes: not in names, errors, logs, or pickles."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import obstore.store
import pytest
import zarr.storage

import tessarr
from tessarr.errors import StoreError
from tessarr.stores.base import Store
from tessarr.stores.url import store_from
from tessarr.stores.virtual.zarr_python import ZarrPythonStore
from tests.stores.contract import child_environment

SECRET = "hunter2-never-shown"
NOBODY = "127.0.0.1:9"
QUICK = {"retry_config": {"max_retries": 0}}
S3 = {"region": "us-east-1", "endpoint": f"http://{NOBODY}", "access_key_id": SECRET, "secret_access_key": SECRET}

PLACES: list[tuple[str, Mapping[str, Any]]] = [
    (f"http://user:{SECRET}@{NOBODY}/x", QUICK),
    (f"http://{SECRET}@{NOBODY}/x", QUICK),
    (f"http://{NOBODY}/x?sig={SECRET}", QUICK),
    (f"http://{NOBODY}/x?X-Amz-Signature={SECRET}", QUICK),
    (f"http://{NOBODY}/x#{SECRET}", QUICK),
    (f"http://{NOBODY}/x", {"headers": {"Authorization": f"Bearer {SECRET}"}, **QUICK}),
    (f"http://{NOBODY}/x", {"client_options": {"default_headers": {"X-Api": SECRET}}, **QUICK}),
    (f"http://{NOBODY}/x", {"client_options": {"proxy_url": f"http://user:{SECRET}@{NOBODY}"}, **QUICK}),
    (f"http://{NOBODY}/x", {"unknown": SECRET}),
    (f"s3://AKIA:{SECRET}@bucket/x", QUICK),
    (f"s3+http://AKIA:{SECRET}@{NOBODY}/bucket/x", QUICK),
    (f"s3://bucket/x?X-Amz-Signature={SECRET}", {**S3, **QUICK}),
    ("s3://bucket/x", {**S3, "session_token": SECRET, **QUICK}),
    ("s3://bucket/x", {**S3, "unknown": SECRET}),
    ("s3://bucket/x", {**S3, "endpoint": f"http://user:{SECRET}@{NOBODY}", **QUICK}),
    ("s3://bucket/x", {"client_kwargs": {"endpoint_url": f"http://{NOBODY}?key={SECRET}"}, **QUICK}),
    (
        "az://container/x",
        {"account_name": "a", "sas_token": f"sig={SECRET}", "endpoint": f"http://{NOBODY}/a", **QUICK},
    ),
    ("az://container/x", {"account_name": "a", "endpoint": f"http://{NOBODY}/a?sig={SECRET}", **QUICK}),
    ("gs://bucket/x", {"service_account_key": f'{{"private_key": "{SECRET}"}}'}),
    (f"redis://user:{SECRET}@{NOBODY}/0", {"retry": None}),
    (f"redis://{NOBODY}/0", {"password": SECRET, "retry": None}),
    (f"simplecache::http://user:{SECRET}@{NOBODY}/x", {}),
    (f"zip://a::http://user:{SECRET}@{NOBODY}/x.zip", QUICK),
    (f"http://user:{SECRET}@{NOBODY}/x.zip|zip:a|zarr3:", QUICK),
    (f"http://{NOBODY}/x.zip?sig={SECRET}|zip:a", QUICK),
    (f"http://user:{SECRET}@{NOBODY}/x|unknown:", {}),
    (f"http://user:{SECRET}@{NOBODY}/x|zarr3:|zip:", {}),
    (f"http://user:{SECRET}@{NOBODY}/x|..:..|..:", {}),
    (f"reference:http://user:{SECRET}@{NOBODY}/x.json", {}),
    (f"s3://user:{SECRET}@{NOBODY}/x|icechunk:", {}),
    (f"nosuch://user:{SECRET}@host/x", {}),
    (f"http://user:{SECRET}@[malformed/x", {}),
    (f"file://user:{SECRET}@host/x", {}),
]


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


def _said(texts: list[str], call: Callable[[], object]) -> None:
    try:
        texts.append(str(call()))
    except Exception as error:
        texts.append(_text(error))


def _of(store: Store) -> list[str]:
    texts = [repr(store), store.url, repr(store.__dask_tokenize__())]
    _said(texts, lambda: pickle.dumps(store))
    _said(texts, lambda: store.get("k"))
    _said(texts, lambda: store.set("k", b"1"))
    _said(texts, lambda: [*store.list()])
    _said(texts, lambda: store.delete("k"))
    return texts


@pytest.mark.parametrize(("url", "options"), PLACES, ids=[str(number) for number in range(len(PLACES))])
def test_no_text_holds_a_credential(url: str, options: Mapping[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    texts: list[str] = []
    try:
        texts += _of(store_from(url, storage_options=options or None)[0])
    except Exception as error:
        texts.append(_text(error))
    _said(texts, lambda: tessarr.open(url, mode="r", storage_options=options or None))
    assert [text for text in [*texts, caplog.text] if SECRET in text] == []


@pytest.mark.parametrize("url", ["s3://bucket/a?b", "s3://bucket/a#b", "gs://bucket/a?b", "http://host/a#b"])
def test_what_a_url_would_lose_is_refused(url: str) -> None:
    with pytest.raises(StoreError, match="a query or a fragment"):
        store_from(url)


UNHEARD: list[tuple[str, Mapping[str, Any]]] = [
    (f"redis://{NOBODY}/0", {"passphrase_of_ours": SECRET}),
    (f"redis://{NOBODY}/0", {"credential_provider": SECRET}),
    (f"mongodb://{NOBODY}/db/c", {"tlsCertificateKeyFilePassword": SECRET}),
    (f"mongodb://{NOBODY}/db/c", {"autoEncryptionOpts": SECRET}),
    ("fsspec+memory://x", {"pin": SECRET}),
    ("fsspec+memory://x", {"pin": 123456789123}),
    ("fsspec+memory://x", {"client_kwargs": {"region_name": "r", "x": {"y": SECRET}}}),
    ("fsspec+memory://x", {"things": [SECRET]}),
    ("fsspec+memory://x", {"account": {"host": SECRET}}),
    (f"http://{NOBODY}/x", {"client_options": {"default_headers": {"x": SECRET}}}),
    ("s3://bucket/x", {**S3, "sse_customer_key_base64": SECRET}),
    ("az://container/x", {"account_name": "a", "client_id": SECRET, "client_secret": SECRET, "tenant_id": SECRET}),
]


@pytest.mark.parametrize(("url", "options"), UNHEARD, ids=[str(number) for number in range(len(UNHEARD))])
def test_an_option_that_is_not_known_to_be_harmless_is_told_nowhere(url: str, options: Mapping[str, Any]) -> None:
    store = store_from(url, storage_options=options)[0]
    for secret in (SECRET, "123456789123"):
        assert secret not in repr(store) + str(store) + repr(store.__dask_tokenize__())
    data = pickle.dumps(store)
    assert SECRET.encode() not in data
    assert (123456789123).to_bytes(5, "little") not in data
    assert pickle.loads(data) == store  # this process still knows it


@pytest.mark.parametrize("url", ["gs://bucket/x", "s3://bucket/x"])
def test_the_value_of_such_an_option_is_not_in_the_error_that_the_client_makes_of_it(url: str) -> None:
    options = (
        {"service_account": SECRET} if url.startswith("gs") else {"checksum_algorithm": "x", "session_token": SECRET}
    )
    with pytest.raises(StoreError) as caught:
        store_from(url, storage_options=options)
    assert SECRET not in _text(caught.value)


_ELSEWHERE = """
import pickle, sys
from tessarr.errors import StoreError
try:
    store = pickle.loads(bytes.fromhex(sys.argv[1]))
except StoreError as error:
    print("StoreError", error)
else:
    print("unpickled", store.url)
"""


def _elsewhere(store: Store, **environment: str) -> str:
    """What another process says when it unpickles `store`."""
    kept = {name: value for name, value in child_environment().items() if not name.startswith("AWS_")}
    command = [sys.executable, "-c", _ELSEWHERE, pickle.dumps(store).hex()]
    done = subprocess.run(command, capture_output=True, text=True, env={**kept, **environment}, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.parametrize("url", ["s3://bucket/x", "fsspec+memory://x", f"redis://{NOBODY}/0"])
def test_another_process_says_which_options_it_lacks(url: str) -> None:
    options = dict(S3) if url.startswith("s3") else {"pin": SECRET}
    told = _elsewhere(store_from(url, storage_options=options)[0])
    assert told.startswith("StoreError")
    assert ("secret_access_key" if url.startswith("s3") else "pin") in told
    assert "provide_credentials" in told


def test_another_process_takes_credentials_from_its_environment() -> None:
    store = store_from("s3://bucket/x", storage_options=S3)[0]
    told = _elsewhere(store, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
    assert told.startswith("unpickled s3+http")


def test_harmless_options_are_enough_for_another_process() -> None:
    options = {"skip_signature": True, "region": "r", "client_options": {"timeout": "3s", "user_agent": "me"}}
    assert _elsewhere(store_from("s3://bucket/x", storage_options=options)[0]).startswith("unpickled")
    told = _elsewhere(store_from(f"redis://{NOBODY}/0", storage_options={"socket_timeout": 3, "db": 1})[0])
    assert told.startswith("unpickled redis://")


def test_a_pickle_of_a_store_of_zarr_python_over_obstore_holds_no_credential() -> None:
    made = obstore.store.S3Store("bucket", access_key_id=SECRET, secret_access_key=SECRET, region="r")
    store = ZarrPythonStore(zarr.storage.ObjectStore(made))
    data = pickle.dumps(store)
    assert SECRET.encode() not in data
    again = pickle.loads(data)
    assert (dict(again.store.store.config), again.store.read_only) == (dict(made.config), False)
    assert "secret_access_key" in _elsewhere(store)
    assert _elsewhere(store, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b").startswith("unpickled")


def test_a_pickle_of_a_store_of_zarr_python_over_fsspec_holds_no_credential() -> None:
    options = {"headers": {"Authorization": SECRET}}
    store = ZarrPythonStore(zarr.storage.FsspecStore.from_url("http://host/x", storage_options=options))
    data = pickle.dumps(store)
    assert SECRET.encode() not in data
    assert pickle.loads(data) == store
    assert "headers" in _elsewhere(store)


def test_secrets_within_options_stay_in_the_process() -> None:
    from tessarr.stores.remote.credentials import restore_secrets, strip_secrets

    options = {
        "a": 1,
        "target_options": {"password": SECRET, "host": "h"},
        "urls": [f"http://u:{SECRET}@h/", "http://h/"],
    }
    kept = strip_secrets("place://x", options)
    assert SECRET not in repr(kept)
    assert kept["target_options"] == {"host": "h"}
    assert restore_secrets("place://x", kept) == options
    with pytest.raises(StoreError, match="no credentials"):
        restore_secrets("place://of/another/process", kept)
