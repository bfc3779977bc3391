"""Listings: HTML for clients that follow links, WebDAV for obstore, and consolidated metadata that are made up."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin
from xml.etree import ElementTree as ET

import pytest

import tessarr
from tessarr.serve import app, listing, store_app
from tessarr.serve.http.paths import quoted
from tessarr.storage import LocalStore, MemoryStore, Store
from tessarr.types import Buffer, ByteRange
from tests.serve.client import Answer, Client
from tests.serve.conftest import ODD

DAV = "{DAV:}"


def hrefs(answer: Answer) -> list[str]:
    return [str(one.text) for one in ET.fromstring(answer.body).iter(f"{DAV}href")]


def test_a_group_lists_its_nodes_and_documents_as_relative_links(client: Client) -> None:
    answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.links == [f"{quoted(ODD)}/", "air/", "below/", "point/", "shard/", "zarr.json"]
    assert client.get("/below/").links == ["../", "x/", "zarr.json"]


def test_every_link_leads_to_something_when_resolved_as_browsers_do(client: Client) -> None:
    seen, left = set(), ["/"]
    while left:
        target = left.pop()
        if target in seen:
            continue
        seen.add(target)
        answer = client.get(target.removeprefix("http://host"))
        assert answer.status == 200, target
        if target.endswith("/"):
            left += [urljoin(f"http://host{target}", link).removeprefix("http://host") for link in answer.links]
    assert f"/{quoted(ODD)}/y/zarr.json" in seen
    assert "/air/zarr.json" in seen


def test_chunks_are_listed_only_on_request(client: Client) -> None:
    assert client.get("/air/").links == ["../", "zarr.json"]
    assert client.get("/air/?keys").links == ["../?keys", "c/?keys", "zarr.json"]
    assert client.get("/air/c/1/?keys").links == ["../?keys", "0", "1"]
    assert client.get("/air/c/1/").status == 404


def test_long_listings_have_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "PAGE", 3)
    store = MemoryStore()
    group = tessarr.open_group(store, mode="w")
    for number in range(7):
        group.create_group(f"n&{number}")
    client = Client(app(store))
    found, target = [], "/"
    while target:
        answer = client.get(target)
        found += [link for link in answer.links if "after" not in link]
        more = re.search(r'href="(\?after=[^"]*)"', answer.body.decode())
        target = f"/{more[1]}" if more else ""
    assert [unquote(link) for link in found] == [*(f"n&{number}/" for number in range(7)), "zarr.json"]


def test_names_are_text_in_html() -> None:
    store = MemoryStore()
    group = tessarr.open_group(store, mode="w")
    name = '"><script>alert(1)</script>'
    group.create_group(name.replace("/", "∕"))
    answer = Client(app(store)).get("/")
    tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.append(tag)

    Reader().feed(answer.body.decode())
    assert set(tags) == {"html", "head", "meta", "title", "body", "h1", "ul", "li", "a"}
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_a_value_named_as_a_page_is_bytes() -> None:
    store = MemoryStore({"index.html": b"<script>alert(1)</script>"})
    answer = Client(store_app(store)).get("/index.html")
    assert (answer.headers["content-type"], answer.headers["x-content-type-options"]) == (
        "application/octet-stream",
        "nosniff",
    )


def test_a_store_that_cannot_list_says_so() -> None:
    class Unlisted(Store):
        def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
            return store.get(key, byte_range)

    store = MemoryStore()
    tessarr.create_group(store)
    client = Client(app(Unlisted()))
    assert client.get("/").status == 501
    assert client.get("/zarr.json").body == store.get("zarr.json")


# -- WebDAV --------------------------------------------------------------------------------------------------------------------


def test_propfind_lists_one_level_or_all(client: Client) -> None:
    assert hrefs(client("PROPFIND", "/below/", {"Depth": "0"})) == ["/below/"]
    one = client("PROPFIND", "/below/", {"Depth": "1"})
    assert (one.status, hrefs(one)) == (207, ["/below/", "/below/zarr.json", "/below/x/"])
    assert hrefs(client("PROPFIND", "/below/", {"Depth": "infinity"}))[3:] == [
        "/below/x/zarr.json",
        "/below/x/c/",
        "/below/x/c/0",
        "/below/x/c/1",
    ]
    assert client("PROPFIND", "/nothing/", {"Depth": "1"}).status == 404
    assert client("PROPFIND", "/", {"Depth": "2"}).status == 400


def test_propfind_describes_values_as_get_sends_them(client: Client) -> None:
    for key in ("/zarr.json", "/air/zarr.json", "/air/c/0/0"):
        answer = client("PROPFIND", key, {"Depth": "0"})
        tree = ET.fromstring(answer.body)
        got = client.get(key)
        assert tree.findtext(f".//{DAV}getcontentlength") == str(got.nbytes)
        assert tree.findtext(f".//{DAV}getetag") == got.headers["etag"]


def test_propfind_of_too_much_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_ENTRIES", 5)
    answer = client("PROPFIND", "/", {"Depth": "infinity"})
    assert answer.status == 403
    assert b"propfind-finite-depth" in answer.body


def test_links_of_webdav_are_below_the_token(place: Path) -> None:
    client = Client(app(place, name="d t.zarr", token="secret"))
    assert hrefs(client("PROPFIND", "/t/secret/d%20t.zarr/", {"Depth": "0"})) == ["/t/secret/d%20t.zarr/"]
    bearer = {"Depth": "0", "Authorization": "Bearer secret"}
    assert hrefs(client("PROPFIND", "/d%20t.zarr/", bearer)) == ["/d%20t.zarr/"]


# -- consolidated metadata ---------------------------------------------------------------------------------------------


def test_consolidated_metadata_of_v3_are_made_up(client: Client, place: Path) -> None:
    answer = client.get("/zarr.json")
    names = set(answer.json["consolidated_metadata"]["metadata"])
    assert names == {"air", "point", "below", "below/x", "shard", ODD, f"{ODD}/y"}
    assert b"consolidated" not in (place / "zarr.json").read_bytes()
    assert client.get("/below/zarr.json").json["consolidated_metadata"]["metadata"].keys() == {"x"}
    assert client.get("/air/zarr.json").body == (place / "air" / "zarr.json").read_bytes()
    assert client.get("/zarr.json", if_none_match=answer.headers["etag"]).status == 304
    assert client.get("/zarr.json", range="bytes=2-5").body == answer.body[2:6]


def test_made_up_metadata_equal_those_that_tessarr_writes(client: Client, place: Path) -> None:
    made = client.get("/zarr.json").json
    tessarr.consolidate_metadata(place)
    assert client.get("/zarr.json").body == (place / "zarr.json").read_bytes()
    assert client.get("/zarr.json").json == made


def test_consolidated_metadata_of_v2_are_made_up(place2: Path) -> None:
    client = Client(app(place2))
    made = client.get("/.zmetadata").json
    assert {"air/.zarray", "below/.zgroup", ".zgroup", ".zattrs"} < made["metadata"].keys()
    assert ".zmetadata" in client.get("/").links
    assert not (place2 / ".zmetadata").exists()
    tessarr.consolidate_metadata(place2)
    assert client.get("/.zmetadata").json == made
    assert client.get("/.zmetadata").body == (place2 / ".zmetadata").read_bytes()


def test_what_is_made_up_follows_every_change(client: Client, place: Path) -> None:
    before = client.get("/zarr.json")
    tessarr.open_group(place, mode="a").create_array("below/z", shape=3, dtype="i2")
    after = client.get("/zarr.json", if_none_match=before.headers["etag"])
    assert after.status == 200
    assert "below/z" in after.json["consolidated_metadata"]["metadata"]


def test_as_stored_sends_what_is_stored(place: Path, place2: Path) -> None:
    assert Client(app(place, as_stored=True)).get("/zarr.json").body == (place / "zarr.json").read_bytes()
    assert Client(app(place2, as_stored=True)).get("/.zmetadata").status == 404
    assert Client(store_app(LocalStore(place))).get("/zarr.json").body == (place / "zarr.json").read_bytes()


def test_a_broken_document_below_does_not_hide_the_root(client: Client, place: Path) -> None:
    (place / "air" / "zarr.json").write_text("{broken")
    assert client.get("/zarr.json").body == (place / "zarr.json").read_bytes()
    assert client.get("/air/zarr.json").body == b"{broken"
