"""Keys, prefixes, paths and names."""

from __future__ import annotations

import pickle
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr.errors import KeyValidationError, NodeNameError, ZarrUserWarning
from tessarr.settings import config
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.path import (
    StorePath,
    check_key,
    check_node_name,
    check_prefix,
    is_plain_key,
    is_recommended_name,
    join,
    normalize_path,
    prefix_of,
)
from tests.stores.contract import BAD_KEYS


@pytest.mark.spec("V3-STORE-01", "FS-11")
@pytest.mark.parametrize("key", [*BAD_KEYS, "a/\ud83d", "x" * 300 + "//"], ids=ascii)
def test_a_malformed_key_is_refused(key: str) -> None:
    assert not is_plain_key(key)
    with pytest.raises(KeyValidationError) as caught:
        check_key(key)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("key", ["a", "a/b", ".zgroup", "a/.b", "...", "a/...", "a..b", "a b", "é", "\\", "a\nb", "c:"])
def test_other_keys_pass(key: str) -> None:
    check_key(key)


@given(st.text(alphabet="a./\0é\ud800", max_size=8))
def test_the_fast_check_of_keys_passes_no_bad_one(key: str) -> None:
    bad = not key or {"", ".", ".."}.intersection(key.split("/")) or "\0" in key or "\ud800" in key
    if is_plain_key(key):
        assert not bad
    if bad:
        with pytest.raises(KeyValidationError):
            check_key(key)
    else:
        check_key(key)


@pytest.mark.parametrize("value", [None, b"a", 1])
def test_a_key_is_a_string(value: object) -> None:
    with pytest.raises(KeyValidationError, match="string"):
        check_key(value)  # type: ignore[arg-type]
    with pytest.raises(KeyValidationError, match="string"):
        check_prefix(value)  # type: ignore[arg-type]


@pytest.mark.spec("V3-STORE-03")
def test_a_prefix_is_empty_or_ends_with_a_slash() -> None:
    for good in ("", "a/", "a/.b/"):
        check_prefix(good)
    for bad in ("a", "/", "//", "a//", "../", "./", "/a/", "a/../"):
        with pytest.raises(KeyValidationError):
            check_prefix(bad)


@pytest.mark.spec("V2-47")
@pytest.mark.parametrize(
    ("given_path", "path"),
    [
        ("\\foo\\\\bar//baz/", "foo/bar/baz"), ("", ""), ("/", ""), ("///", ""), ("\\", ""), ("foo", "foo"), (None, ""),
        ("/foo/bar", "foo/bar"), ("foo//bar/", "foo/bar"), (b"foo/\xc3\xa9", "foo/é"), (" a ", " a "),
    ],
)  # fmt: skip
def test_a_path_is_normalised(given_path: str | bytes | None, path: str) -> None:
    assert normalize_path(given_path) == path


@pytest.mark.spec("V2-49")
@pytest.mark.parametrize("path", ["foo/../bar", ".", "a/./b", "..", "a\\..\\b", "/..", "a/\0"])
def test_a_path_with_a_dot_segment_is_refused(path: str) -> None:
    with pytest.raises(NodeNameError):
        normalize_path(path)


@pytest.mark.spec("V2-49")
@pytest.mark.parametrize("path", ["...", ".hidden", "a..b", "a/.b"])
def test_a_path_with_other_dots_passes(path: str) -> None:
    assert normalize_path(path) == path


@given(st.text())
def test_normalising_twice_changes_nothing(path: str) -> None:
    try:
        once = normalize_path(path)
    except NodeNameError:
        return
    assert normalize_path(once) == once
    if once:
        assert not once.startswith("/")
        assert not once.endswith("/")


def test_a_path_is_a_string() -> None:
    with pytest.raises(NodeNameError, match="string"):
        normalize_path(3)  # type: ignore[arg-type]


@pytest.mark.spec("V2-48", "V3-NAME-01")
def test_paths_become_prefixes_and_keys() -> None:
    assert (prefix_of("foo/bar"), prefix_of("")) == ("foo/bar/", "")
    assert (join("foo/bar", ".zarray"), join("", ".zarray"), join("a", "", "b")) == (
        "foo/bar/.zarray",
        ".zarray",
        "a/b",
    )


@pytest.mark.spec("V3-NAME-02", "V3-NAME-03", "V3-NAME-04", "V3-NAME-05", "V3-NAME-06")
@pytest.mark.parametrize(
    "name", ["", "a/b", "/", ".", "..", "...", "__zarr", "__zarr_x", "zarr.json", "a\0", "\ud800"], ids=ascii
)
def test_names_that_v3_forbids_are_refused(name: str) -> None:
    with pytest.raises(NodeNameError, match="not allowed"):
        check_node_name(name, 3)


@pytest.mark.spec("V3-NAME-05")
@pytest.mark.parametrize("name", ["__foo", "__"])
def test_names_that_begin_with_two_underscores_are_warned_about_and_refused_when_strict(name: str) -> None:
    with pytest.warns(ZarrUserWarning, match="reserves"):
        check_node_name(name, 3)
    with config.set({"strict": True}), pytest.raises(NodeNameError, match="not allowed"):
        check_node_name(name, 3)


@pytest.mark.spec("V3-NAME-04", "V3-NAME-05", "V3-NAME-07", "V3-NAME-09")
@pytest.mark.parametrize("name", [".a", "a.", "_foo", "a__", "ä b:c", "e\u0301", "\u00e9", "zarr.jsonx", "c", "0"])
def test_names_that_v3_allows_pass_without_a_word(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_node_name(name, 3)


@pytest.mark.parametrize("zarr_format", [1, 2])
def test_v2_names_are_freer_but_not_those_of_documents(zarr_format: int) -> None:
    for name in ("...", "__foo", "zarr.json"):
        check_node_name(name, zarr_format)  # type: ignore[arg-type]
    for name in ("", ".", "..", "a/b", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "a\0"):
        with pytest.raises(NodeNameError):
            check_node_name(name, zarr_format)  # type: ignore[arg-type]


@pytest.mark.spec("V2-01")
def test_a_v2_name_that_is_not_ascii_is_warned_about() -> None:
    with pytest.warns(ZarrUserWarning, match="not ASCII"):
        check_node_name("é", 2)


@pytest.mark.spec("V3-NAME-07", "V3-NAME-09")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sea_level-2.A", True), ("sea level", False), ("a:b", False), ("é", True), ("e\u0301", False), ("É", False),
        ("ﬁ", False), ("straße", False), ("strasse", True), ("日本", True), ("日 本", False), ("", False),
    ],
)  # fmt: skip
def test_what_names_are_recommended(name: str, expected: bool) -> None:
    assert is_recommended_name(name) is expected


def test_a_store_path_is_a_value() -> None:
    store = MemoryStore()
    place = StorePath(store, "/a//b/")
    assert (place.store, place.path) == (store, "a/b")
    assert place == StorePath(store, "a") / "b"
    assert hash(place) == hash(StorePath(store, "a/b"))
    assert place != StorePath(MemoryStore(), "a/b")
    assert place != "a/b"
    assert str(place) == f"{store.url}/a/b"
    assert str(StorePath(store)) == store.url
    assert repr(place) == f"StorePath({store!r}, 'a/b')"
    assert StorePath(store.with_read_only()).read_only
    assert pickle.loads(pickle.dumps(place)).path == "a/b"
    with pytest.raises(NodeNameError):
        place / ".."
