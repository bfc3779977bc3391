"""Listings: HTML for clients that follow links, WebDAV for obstore, and consolidated metadata that are made up."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urljoin
from xml.etree import ElementTree as ET

import pytest

import tessarr
from tessarr.serve import app, listing, store_app
from tessarr.serve.http.paths import quoted
from tessarr.storage import CountingStore, LocalStore, MemoryStore, Store
from tessarr.types import Buffer, ByteRange
from tests.markup import Parsed
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


def test_names_and_attributes_are_text_in_html() -> None:
    store = MemoryStore()
    hostile = '"><script>alert(1)</script>'
    group = tessarr.open_group(store, mode="w", attributes={hostile: hostile})
    group.create_group(hostile.replace("/", "∕"))
    group.create_array(
        "x", shape=4, dtype="i4", dimension_names=[hostile], attributes={"source": "https://example.org/"}
    )
    for target in ("/", "/x/"):
        answer = Client(app(store)).get(target)
        page = Parsed(answer.body.decode())
        assert hostile in page.text
        assert not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "link", "object", "form", "base"}
        assert not {name for _, held in page.tags for name in held} & {"src", "style", "onclick", "id"}
        assert [link for link in answer.links if "://" in link] == []


def test_the_policy_of_a_listing_allows_its_styles_and_nothing_else(client: Client) -> None:
    for target in ("/", "/air/", "/air/?keys"):
        answer = client.get(target)
        styles = re.findall("<style>(.*?)</style>", answer.body.decode())
        hashes = [f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" for style in styles]
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert styles
        assert set(hashes) <= set(policy["style-src"].split())
        assert policy["default-src"] == "'none'"
        assert {"default-src", "style-src", "frame-ancestors", "base-uri", "form-action"} == policy.keys()


def facts(html: str) -> dict[str, str]:
    table = html[html.index("<table>") : html.index("</table>")]
    return dict(re.findall('<th scope="row">(.*?)</th><td>(.*?)</td>', table))


def test_the_html_of_an_array_is_what_notebooks_show(client: Client, place: Path) -> None:
    for name in ("air", "point", "shard", "below/x"):
        served = client.get(f"/{name}/").body.decode()
        shown = tessarr.open_array(place / name, mode="r")._repr_html_()
        figure = shown[shown.index("<figure>") : shown.index("</figure>")]
        assert figure in served
        assert facts(served).items() < facts(shown).items()
        assert {"Data type", "Shape", "Chunk shape", "Codecs", "Fill value"} <= facts(served).keys()
        assert f"Array /{name}<" in served
        assert str(place.parent) not in served


def test_the_html_of_a_group_says_what_its_members_are(client: Client, place: Path) -> None:
    served = client.get("/").body.decode()
    assert "Group /<" in served
    assert '<a href="air/"><strong>air</strong></a> (10, 10) float64' in served
    assert '<a href="below/"><strong>below</strong></a> group' in served
    assert "&#x27;served&#x27;" in served
    assert str(place.parent) not in served
    tessarr.consolidate_metadata(place)
    known = client.get("/")
    assert "<strong>x</strong> (6) int64" in known.body.decode(), (
        "members of members are known from consolidated metadata"
    )
    assert known.links == [f"{quoted(ODD)}/", "air/", "below/", "point/", "shard/", "zarr.json"]


def test_what_cannot_be_read_is_listed(client: Client, place: Path) -> None:
    (place / "air" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    assert '<a href="air/"><strong>air</strong></a> cannot be read' in client.get("/").body.decode()
    answer = client.get("/air/")
    assert answer.status == 200
    assert "shape" in facts(answer.body.decode())["Problem"]
    assert answer.links == ["../", "zarr.json"]


def test_a_listing_costs_the_requests_of_its_list(place: Path) -> None:
    store = CountingStore(LocalStore(place))
    client = Client(app(store))
    store.counter.clear()
    assert client.get("/").status == 200
    assert store.counter == {"fetch": 2, "list_dir": 1}
    store.counter.clear()
    assert client.get("/shard/").status == 200
    assert store.counter == {"fetch": 1}


def test_a_listing_has_conditions_and_ranges(client: Client, place: Path) -> None:
    answer = client.get("/")
    tag = answer.headers["etag"]
    assert client.get("/", if_none_match=tag).status == 304
    assert client.get("/", if_match='"other"').status == 412
    assert client.get("/", range="bytes=0-14").body == b"<!DOCTYPE html>"
    head = client("HEAD", "/")
    assert (head.nbytes, head.body, head.headers["etag"]) == (len(answer.body), b"", tag)
    tessarr.open_group(place, mode="a").create_group("later")
    assert client.get("/", if_none_match=tag).status == 200


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
