"""What is no JSON is a typed error that names the key."""

from __future__ import annotations

import pytest

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
