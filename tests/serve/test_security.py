"""Hostile requests, hostile stores, and what is never served."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tessarr
from tessarr.errors import NodeNotFoundError
from tessarr.serve import App, CorsOptions, app, store_app
from tessarr.serve.http.paths import parse_path, quoted
from tessarr.storage import LocalStore
from tests.serve.client import Client
from tests.serve.conftest import ODD

TOKEN = "s3cret-of-this-server"


@pytest.fixture
def guarded(place: Path) -> Client:
    return Client(app(place, name="data.zarr", token=TOKEN, allowed_hosts=["localhost", "127.0.0.1"]))


def test_without_the_token_nothing_is_told(guarded: Client) -> None:
    host = {"Host": "localhost:8000"}
    assert guarded("GET", f"/t/{TOKEN}/data.zarr/zarr.json", host).status == 200
    wrong = [
        f"/t/{TOKEN}x/data.zarr/",
        f"/t/{TOKEN[:-1]}/data.zarr/",
        f"/T/{TOKEN}/data.zarr/",
        f"//t/{TOKEN}/data.zarr/",
    ]
    for path in (
        "/",
        "/zarr.json",
        "/data.zarr/zarr.json",
        "/t/",
        "/t/x/data.zarr/zarr.json",
        f"/t/%00/{TOKEN}",
        *wrong,
    ):
        for method in ("GET", "HEAD", "PROPFIND"):
            answer = guarded(method, path, host)
            assert answer.status == 401, path
            assert b"zarr" not in answer.body
    assert guarded("GET", f"/t/{TOKEN}/other.zarr/zarr.json", host).status == 404


def test_the_token_may_be_a_bearer_token(guarded: Client) -> None:
    answer = guarded("GET", "/data.zarr/zarr.json", {"Host": "localhost", "Authorization": f"bearer {TOKEN}"})
    assert answer.status == 200
    for value in (f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer", f"Bearer {TOKEN[:-1]}", "Bearer \u00fc"):
        assert guarded("GET", "/data.zarr/zarr.json", {"Host": "localhost", "Authorization": value}).status == 401


def test_the_token_is_in_no_page_and_no_log(guarded: Client, caplog: pytest.LogCaptureFixture) -> None:
    host = {"Host": "localhost"}
    caplog.set_level(0)
    page = guarded("GET", f"/t/{TOKEN}/data.zarr/", host)
    assert TOKEN not in page.body.decode()
    assert page.headers["referrer-policy"] == "no-referrer"
    guarded("GET", f"/t/{TOKEN}/data.zarr/air/c/0/0", host)
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    "host", ["evil.test", "evil.test:8000", "localhost.evil.test", "127.0.0.1.evil.test", "", "[::1]"]
)
def test_a_host_of_another_site_is_refused(guarded: Client, host: str) -> None:
    answer = guarded("GET", f"/t/{TOKEN}/data.zarr/zarr.json", {"Host": host})
    assert answer.status == 421
    assert guarded("GET", f"/t/{TOKEN}/data.zarr/zarr.json").status == 421


ESCAPES = [
    "/../secret.txt", "/%2e%2e/secret.txt", "/%2E%2E%2Fsecret.txt", "/..%2fsecret.txt", "/air/../../secret.txt",
    "/air/..%5c..%5csecret.txt", "/..;/secret.txt", "//secret.txt", "/./zarr.json", "/air//zarr.json", "/%00", "/zarr.json%00",
    "/%c0%ae%c0%ae/secret.txt", "/%252e%252e/secret.txt", "/air/c/0/0%00.json", "/%ff", "/\u00fc", "/C:/secret.txt",
    "/%5c%5cserver%5cshare", "/secret.txt", "/.git/config", "/.hidden", "/air/.secret", "/below/notes.txt", "/zarr.json/",
    "/air/c/0/0/", "/air/c/00/0", "/air/c/0/-1", "/air/c/0/0/0", "/air/c/0.0", "/air/" + "a/" * 5000 + "zarr.json",
    "/" + "x" * 3000 + "/zarr.json", "/.zgroup.tessarr-lock", "/air/c/0/.0.tessarr-lock",
]  # fmt: skip


@pytest.mark.parametrize("target", ESCAPES, ids=range(len(ESCAPES)))
def test_only_keys_of_the_hierarchy_are_served(client: Client, place: Path, target: str) -> None:
    (place.parent / "secret.txt").write_text("secret")
    (place / "secret.txt").write_text("secret")
    (place / ".git").mkdir()
    (place / ".git" / "config").write_text("secret")
    (place / ".hidden").write_text("secret")
    (place / "air" / ".secret").write_text("secret")
    (place / "below" / "notes.txt").write_text("secret")
    for method in ("GET", "HEAD", "PROPFIND"):
        answer = client(method, target, {"Accept": "text/html", "Depth": "1"})
        assert answer.status == 404, (method, answer.body)
        assert b"secret" not in answer.body


def test_what_is_not_served_is_not_listed(client: Client, place: Path) -> None:
    (place / "secret.txt").write_text("1")
    (place / ".hidden").mkdir()
    (place / ".hidden" / "zarr.json").write_bytes((place / "zarr.json").read_bytes())
    (place / "folder").mkdir()
    (place / "folder" / "notes.txt").write_text("1")
    for target in ("/", "/?keys"):
        text = client.get(target).body.decode()
        assert "hidden" not in text
    assert "secret" not in client.get("/").body.decode()
    assert "folder" not in client.get("/").body.decode()
    listed = client("PROPFIND", "/", {"Depth": "infinity"}).body.decode()
    for name in ("secret", "hidden", "notes"):
        assert name not in listed
    assert client.get("/folder/?keys").status == 404
    assert client.get("/.hidden/zarr.json").status == 404


@pytest.mark.skipif(os.name == "nt", reason="Windows lets only administrators make links")
def test_links_out_of_the_directory_are_not_followed(place: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.zarr"
    tessarr.create_array(outside / "x", data=[1, 2, 3])
    (place / "out").symlink_to(outside / "x")
    os.remove(place / "air" / "c" / "0" / "0")
    (place / "air" / "c" / "0" / "0").symlink_to(outside / "x" / "c" / "0")
    (place / "air" / "c" / "0" / "1").unlink()
    (place / "air" / "c" / "0" / "1").symlink_to(place / "air" / "c" / "1" / "1")
    (place / "loop").symlink_to(place)
    strict = Client(app(place))
    assert strict.get("/out/zarr.json").status == 404
    assert strict.get("/out/").status == 404
    assert strict.get("/air/c/0/0").status == 404
    assert strict.get("/air/c/0/1").status == 200
    assert "out" not in strict.get("/zarr.json").json.get("consolidated_metadata", {"metadata": {}})["metadata"]
    assert "out/" not in strict.get("/").links
    loose = Client(app(place, follow_links=True, as_stored=True))
    assert loose.get("/out/zarr.json").status == 200
    assert loose.get("/air/c/0/0").body == (outside / "x" / "c" / "0").read_bytes()


def test_every_key_of_a_store_is_served_by_store_app(place: Path) -> None:
    (place / "README.txt").write_text("hello")
    assert Client(store_app(LocalStore(place))).get("/README.txt").body == b"hello"
    assert Client(store_app(LocalStore(place))).get("/../data.zarr/README.txt").status == 404


@pytest.mark.parametrize("name", ["nul", "CON.txt", "com1", "a:stream", "c:", "a?b", "x.", "x ", "LPT9.zarr"])
def test_names_that_mean_devices_and_streams_on_windows_are_missing_there(name: str) -> None:
    assert parse_path(f"/a/{quoted(name)}", windows=True) is None
    assert parse_path(f"/a/{quoted(name)}", windows=False) == (("a", name), False)


@pytest.mark.parametrize("text", ["/%5c%5cserver%5cshare", "/%5c%5c%3f%5cC:", "/a%5cb"])
def test_paths_of_other_machines_are_refused_everywhere(text: str) -> None:
    assert parse_path(text, windows=True) is None
    assert parse_path(text, windows=False) is None


@pytest.mark.parametrize(
    "name", [ODD, "a b", "ü", "100%", "a#b?c", "x:y", "%41", "+", "\u202e", "🧊", "-", "~", "a;b", "a&b=c"]
)
def test_names_round_trip_through_urls(name: str) -> None:
    assert parse_path(f"/{quoted(name)}") == ((name,), False)


def test_a_place_without_a_node_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    with pytest.raises(NodeNotFoundError, match="no array or group to serve"):
        app(tmp_path)


# -- CORS ---------------------------------------------------------------------------------------------------------------------

ORIGIN = "https://app.example"


def cors(place: Path, **options: object) -> Client:
    chosen: CorsOptions = {"allow_origins": [ORIGIN], **options}  # type: ignore[typeddict-item]
    made: App = app(place, cors_options=chosen)
    return Client(made)


def test_no_page_of_another_origin_may_read_by_default(client: Client) -> None:
    answer = client.get("/zarr.json", Origin=ORIGIN)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    asked = client("OPTIONS", "/zarr.json", {"Origin": ORIGIN, "Access-Control-Request-Method": "GET"})
    assert (asked.status, asked.headers["allow"]) == (204, "GET, HEAD, OPTIONS, PROPFIND")
    assert not [name for name in asked.headers if name.startswith("access-control")]


def test_an_allowed_origin_may_read_and_see_ranges(place: Path) -> None:
    client = cors(place)
    answer = client.get("/shard/c/0/0", Origin=ORIGIN, range="bytes=-16")
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert {"Content-Range", "ETag", "Content-Length"} < {*answer.headers["access-control-expose-headers"].split(", ")}
    assert answer.headers["vary"] == "Origin"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    other = client.get("/zarr.json", Origin="https://evil.example")
    assert "access-control-allow-origin" not in other.headers
    assert other.headers["vary"] == "Origin"
    for target in ("/nothing", "/air/c/9/9"):
        assert client.get(target, Origin=ORIGIN).headers["access-control-allow-origin"] == ORIGIN


def test_a_preflight_of_a_range_from_the_end_needs_no_token(place: Path) -> None:
    options: CorsOptions = {"allow_origins": [ORIGIN], "allow_private_network": True}
    client = Client(app(place, token=TOKEN, cors_options=options))
    headers = {"Origin": ORIGIN, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "range",
               "Access-Control-Request-Private-Network": "true"}  # fmt: skip
    answer = client("OPTIONS", "/anything", headers)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "Range" in answer.headers["access-control-allow-headers"]
    assert answer.headers["access-control-allow-private-network"] == "true"


def test_every_origin_and_a_pattern_may_be_allowed(place: Path) -> None:
    every = cors(place, allow_origins=["*"]).get("/zarr.json", Origin="https://x.example")
    assert every.headers["access-control-allow-origin"] == "*"
    pattern = cors(place, allow_origins=[], allow_origin_regex=r"https://[a-z]+\.example")
    assert (
        pattern.get("/zarr.json", Origin="https://x.example").headers["access-control-allow-origin"]
        == "https://x.example"
    )
    assert "access-control-allow-origin" not in pattern.get("/zarr.json", Origin="https://x.example.evil.test").headers


def test_credentials_and_every_origin_exclude_each_other(place: Path) -> None:
    with pytest.raises(ValueError, match="allow_credentials"):
        cors(place, allow_origins=["*"], allow_credentials=True)
    with pytest.raises(ValueError, match="no option surprise"):
        cors(place, surprise=True)
    answer = cors(place, allow_credentials=True).get("/zarr.json", Origin=ORIGIN)
    assert answer.headers["access-control-allow-credentials"] == "true"
