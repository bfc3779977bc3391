"""What is no JSON is a typed error that names the key."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tessarr.common import strict_json
from tessarr.errors import MetadataValidationError


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"a": NaN}', "the bare token NaN"),
        (b"\xff", "not UTF-8"),
        (b"{", "invalid JSON"),
        (b"", "invalid JSON"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 5000, "invalid JSON"),
        (b"{} {}", "invalid JSON"),
    ],
)
def test_what_is_no_json_is_an_error_that_names_the_key(data: bytes, says: str) -> None:
    with pytest.raises(MetadataValidationError, match=says) as raised:
        strict_json.loads(data, key="g/zarr.json")
    assert raised.value.key == "g/zarr.json"


def test_floats_keep_their_text_and_bare_nan_may_be_allowed() -> None:
    found = strict_json.loads(b'{"a": 1.50, "b": [NaN, -Infinity, 2]}', key="k", allow_nan=True)
    assert found["a"].text == "1.50"
    assert str(found["b"]) == "[nan, -inf, 2]"


@pytest.mark.parametrize(
    ("key", "text", "loc"),
    [
        ("x/.zarray", b'{"shape": [1], "shape": [2]}', ("shape",)),
        (".zgroup", b'{"zarr_format": 2, "zarr_format": 2}', ("zarr_format",)),
        ("zarr.json", b'{"codecs": [{}, {"level": 1, "level": 2}]}', ("codecs", 1, "level")),
        (".zmetadata", b'{"metadata": {"x/.zarray": {"shape": [1], "shape": [2]}}}', ("metadata", "x/.zarray", "shape")),
        (
            "zarr.json",
            b'{"consolidated_metadata": {"metadata": {"attributes": {"shape": 1, "shape": 2}}}}',
            ("consolidated_metadata", "metadata", "attributes", "shape"),
        ),
    ],
)  # fmt: skip
def test_a_duplicate_key_is_an_error_that_says_where(key: str, text: bytes, loc: tuple[object, ...]) -> None:
    with pytest.raises(MetadataValidationError) as raised:
        strict_json.loads(text, key=key)
    assert [problem.loc for problem in raised.value.problems] == [loc]
    assert raised.value.key == key
    found: list[tuple[str | int, ...]] = []
    strict_json.loads(text, key=key, duplicates=found)
    assert found == [loc]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("x/.zattrs", b'{"a": 1, "a": 2}'),
        ("attrs", b'{"a": [{"b": 1, "b": 2}]}'),
        ("zarr.json", b'{"attributes": {"a": 1, "a": 2}}'),
        (".zmetadata", b'{"metadata": {"x/.zattrs": {"a": 1, "a": 2}}}'),
        ("zarr.json", b'{"consolidated_metadata": {"metadata": {"x": {"attributes": {"a": 1, "a": 2}}}}}'),
        ("model", b'{"members": {"x": {"attributes": {"a": 1, "a": 2}}}}'),
    ],
)
def test_of_duplicate_attributes_the_last_one_is_read(key: str, text: bytes) -> None:
    assert b"2" in strict_json.dumps(strict_json.loads(text, key=key))
    assert b"1" not in strict_json.dumps(strict_json.loads(text, key=key))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda items: st.lists(items, max_size=4) | st.dictionaries(st.text(), items, max_size=4),
    max_leaves=20,
)
OTHERS = VALUES | st.sampled_from(
    [
        (1, (2,)),
        {1: 2, "a": ()},
        {None: [True]},
        strict_json.FloatLiteral("1.50"),
        {"a": np.float32(0.5)},
        [np.arange(3)],
    ]
)


@given(OTHERS, st.sampled_from([None, 0, 1, 2, 4]), st.booleans())
@example({"a": [], "b": {}, "": [{}], '\u2028\0"\\': "日本\x7f"}, 2, True)
def test_documents_are_spelled_as_json_spells_them(value: Any, indent: int | None, sort_keys: bool) -> None:
    def plain(other: Any) -> Any:
        return other.tolist()

    options: dict[str, Any] = {"indent": indent, "sort_keys": sort_keys, "ensure_ascii": False, "allow_nan": False}
    try:
        expected = json.dumps(value, default=plain, **options).encode()
    except (TypeError, UnicodeEncodeError) as error:  # names of several types in one order, a lone surrogate
        with pytest.raises(type(error)):
            strict_json.dumps(value, indent=indent, sort_keys=sort_keys)
        return
    assert strict_json.dumps(value, indent=indent, sort_keys=sort_keys) == expected


def test_what_json_cannot_spell_is_an_error() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    with pytest.raises(RecursionError):
        strict_json.dumps(cycle)
    with pytest.raises(ValueError, match=r"a\.1 is nan"):
        strict_json.dumps({"a": [0.0, float("nan")]})
    with pytest.raises(
        TypeError, match=r"^a\.1: object is not JSON serializable; store a text, a number, a list or a dict$"
    ):
        strict_json.dumps({"a": [0, object()]})
    with pytest.raises(TypeError, match=r"^object is not JSON serializable$"):
        strict_json.dumps(object())


def test_names_that_are_no_texts_become_those_that_json_writes() -> None:
    assert strict_json.plain({2: {None: 2}, True: 3}) == {"2": {"null": 2}, "true": 3}
    with pytest.raises(TypeError, match=r"a name must be a text, got \(1, 2\)"):
        strict_json.plain({"a": {(1, 2): 3}})
    with pytest.raises(TypeError, match="two names are one as texts: 1, '1'"):
        strict_json.plain({1: 2, "1": 3})
