"""The data type ``json``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import CodecError

VALUES: list[Any] = [None, True, 1, 1.5, "", "日本", [], {}, {"a": [1, {"b": None}]}, [[]]]


def documents(fill: bytes) -> dict[str, bytes]:
    head = b'{"zarr_format": 3, "node_type": "array", "shape": [10], "data_type": "json", "fill_value": ' + fill
    grid = b'"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}'
    rest = b'"chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "vlen-utf8"}]}'
    return {"zarr.json": head + b", " + grid + b", " + rest}


@pytest.mark.spec("REG-21")
@pytest.mark.parametrize("fill", [None, 0, "x", {"some": "value"}, [1, [2]]])
def test_values_come_back_and_the_fill_value_may_be_anything(fill: Any) -> None:
    import json

    values = documents(json.dumps(fill).encode())
    z = tessarr.open_array(values, mode="r+")
    assert z[...].tolist() == [fill] * 10
    given = np.empty(10, object)
    given[:] = VALUES
    z[...] = given
    z[3] = {"n": 3}
    expected = [*VALUES[:3], {"n": 3}, *VALUES[4:]]
    again = tessarr.open_array(values)
    assert again[...].tolist() == expected
    assert again.metadata.to_dict()["data_type"] == "json"
    assert again.metadata.to_dict()["fill_value"] == fill


@pytest.mark.spec("REG-21")
def test_the_stored_form_is_json_text_in_vlen_utf8() -> None:
    values = documents(b"null")
    z = tessarr.open_array(values, mode="r+")
    z[0] = {"a": [1, "é"]}
    text = '{"a":[1,"é"]}'.encode()
    null = b"\x04\0\0\0null"
    assert values["c/0"] == b"\x04\0\0\0" + len(text).to_bytes(4, "little") + text + null * 3


def test_what_is_no_json_is_an_error() -> None:
    values = documents(b"null")
    z = tessarr.open_array(values, mode="r+")
    wrongs: tuple[Any, ...] = (float("nan"), object())
    for wrong in wrongs:
        with pytest.raises((CodecError, TypeError, ValueError)):
            z[0] = wrong
    values["c/0"] = b"\x04\0\0\0" + b"\x01\0\0\0{" * 4
    with pytest.raises(CodecError):
        z[...]
    deep = b"[" * 100_000
    values["c/0"] = b"\x04\0\0\0" + (len(deep).to_bytes(4, "little") + deep) + b"\x01\0\0\x000" * 3
    with pytest.raises(CodecError):
        z[...]


@pytest.mark.parametrize("fill", [0, False, "", None, [], 1.5])
@pytest.mark.parametrize(
    "kind",
    [
        {"dtype": "json"},
        {"dtype": object, "zarr_format": 2, "filters": [{"id": "json2"}]},
        {"dtype": object, "zarr_format": 2, "filters": [{"id": "msgpack2"}]},
    ],
    ids=["v3", "json2", "msgpack2"],
)
def test_a_given_fill_value_is_kept_zero_too(kind: dict[str, Any], fill: Any) -> None:
    store: dict[str, bytes] = {}
    tessarr.create_array(store, shape=(2,), fill_value=fill, **kind)
    z = tessarr.open_array(store, mode="r")
    assert type(z[...].tolist()[0]) is type(fill)
    assert z[...].tolist() == [fill] * 2
    assert type(z.fill_value) is type(fill)
