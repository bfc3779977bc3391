"""The examples of the pages about stores that need a server run against one, and print what they say."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable
from typing import Any

import mongomock
import pytest

from tests.docs.pages import ROOT, blocks
from tests.stores.remote.servers import AZURE_ACCOUNT, AZURE_KEY, S3_OPTIONS

_OPTIONS = re.compile(r"^options = .*$", re.M)


def _s3(request: pytest.FixtureRequest, text: str) -> str:
    text = text.replace("s3://", f"s3+http://{request.getfixturevalue('s3').address}/")
    return _OPTIONS.sub(f"options = {S3_OPTIONS!r}", text)


def _gs(request: pytest.FixtureRequest, text: str) -> str:
    # An emulator knows no accounts.
    text = text.replace("gs://", f"gs+http://{request.getfixturevalue('gcs').address}/")
    return _OPTIONS.sub("options = {}", text)


def _az(request: pytest.FixtureRequest, text: str) -> str:
    server = request.getfixturevalue("azure")
    text = text.replace("az://", f"az+http://{server.address}/{AZURE_ACCOUNT}/")
    return _OPTIONS.sub(f"options = {{'account_key': {AZURE_KEY!r}}}", text)


def _redis(request: pytest.FixtureRequest, text: str) -> str:
    return text.replace("localhost:6379", request.getfixturevalue("redis").address)


def _mongodb(request: pytest.FixtureRequest, text: str) -> str:
    client: Any = mongomock.MongoClient()
    request.getfixturevalue("monkeypatch").setattr("pymongo.MongoClient", lambda **_: client)
    return text


PAGES: dict[str, Callable[[pytest.FixtureRequest, str], str]] = {
    "s3": _s3, "gcs": _gs, "azure": _az, "redis": _redis, "mongodb": _mongodb,
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_the_example_of_a_page_runs_against_a_server(name: str, request: pytest.FixtureRequest) -> None:
    (example,) = [block.text for block in blocks(ROOT / "docs" / f"stores-{name}.md") if "print(" in block.text]
    for unique in ("/data", "/experiment"):  # of this run
        example = example.replace(unique, f"{unique}-{os.getpid()}")
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(PAGES[name](request, example), names)
    assert said.getvalue().split("\n")[:-1] == re.findall(r"# (\[.*\])$", example, re.M)


def test_every_page_about_a_store_has_an_example_that_a_test_runs() -> None:
    for page in (ROOT / "docs").glob("stores-*.md"):
        if page.name in ("stores-abilities.md",):
            continue
        here = [block.language for block in blocks(page)]
        assert "python" in here, page.name
        needs_a_server = "<!-- not run" in page.read_text(encoding="utf-8")
        assert not needs_a_server or page.stem.removeprefix("stores-") in PAGES, page.name
