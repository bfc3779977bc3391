"""`tessarr.view` shows nodes of any place, in a frame that a notebook may hold."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urljoin

import numpy as np
import pytest

import tessarr
from tessarr.errors import NodeNotFoundError
from tests.waiting import PATIENCE_S


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        content: bytes = answer.read()
        return content


def test_a_group_an_array_and_a_path_are_shown(tmp_path: Path) -> None:
    group = tessarr.open_group(tmp_path / "d.zarr", mode="w")
    array = group.create_array("air", data=np.arange(6.0).reshape(2, 3))
    for place, name in (
        (group, "d.zarr"),
        (array, "air"),
        (tmp_path / "d.zarr", "d.zarr"),
        (str(tmp_path / "d.zarr"), "d.zarr"),
    ):
        with tessarr.view(place) as page:
            assert b"viewer.js" in read(page.url)
            found = json.loads(read(f"{page.url}place.json"))
            assert found["name"] == name
            node = json.loads(read(urljoin(page.url, f"{found['root']}/?json")))
            assert node["kind"] == ("array" if place is array else "group")
            if place is array:
                assert read(urljoin(page.url, f"{found['root']}.raw?0=1")) == np.arange(3.0, 6.0).tobytes()


def test_a_notebook_holds_the_page_and_its_text_no_secret() -> None:
    store = tessarr.storage.MemoryStore()
    tessarr.create_array(store, data=np.arange(3))
    page = tessarr.view(store, height=321)
    try:
        assert f'src="{page.url}"' in page._repr_html_()
        assert 'height="321"' in page._repr_html_()
        assert page.url.split("/")[4] not in repr(page)
        with urllib.request.urlopen(page.url, timeout=PATIENCE_S) as answer:
            policy = answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'self' http://localhost:*" in policy
    finally:
        page.close()
    page.close()
    with pytest.raises(urllib.error.URLError):
        read(page.url)


def test_under_jupyterhub_the_page_is_behind_its_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """jupyter-server-proxy passes on the path after the port, and the name by which the browser asked for the hub."""
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/me/")
    store = tessarr.storage.MemoryStore()
    tessarr.create_array(store, data=np.arange(3))
    with tessarr.view(store) as page:
        source = page._repr_html_().partition('src="')[2].partition('"')[0]
        port = page.url.split(":")[2].partition("/")[0]
        prefix = f"/user/me/proxy/{port}"
        assert source.startswith(f"{prefix}/t/")
        there = f"http://127.0.0.1:{port}{source.removeprefix(prefix)}"
        request = urllib.request.Request(there, headers={"Host": "hub.example.org"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            assert b"viewer.js" in answer.read()
        place = urllib.request.Request(f"{there}place.json", headers={"Host": "hub.example.org"})
        with urllib.request.urlopen(place, timeout=PATIENCE_S) as answer:
            assert not json.loads(answer.read())["root"].startswith("/"), "links are relative, below the proxy's path"


def test_what_is_not_there_is_not_shown() -> None:
    with pytest.raises(NodeNotFoundError):
        tessarr.view(tessarr.storage.MemoryStore())
