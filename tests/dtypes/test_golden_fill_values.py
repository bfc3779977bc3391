"""Fill values become the bytes that other implementations give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tessarr.dtypes.parse import from_v3

ENTRIES = json.loads((Path(__file__).parent / "golden" / "fill_values.json").read_text(encoding="utf-8"))


@pytest.mark.spec("REG-09")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['data_type']}-{entry['fill_value']}"[:60])
def test_a_fill_value_has_the_bytes_of_the_other_implementation(entry: dict[str, Any]) -> None:
    data_type = from_v3(entry["data_type"])
    fill = data_type.parse_fill(entry["fill_value"], 3)
    expected = bytes.fromhex(entry["bytes"])
    if data_type.itemsize is None:
        value: object = fill[()]
        assert isinstance(value, str | bytes)
        assert (value.encode() if isinstance(value, str) else value) == expected
    else:
        little = fill.astype(fill.dtype.newbyteorder("<"))
        bits = {"int2": 2, "int4": 4}.get(
            str(entry["data_type"]), 8
        )  # the registry: upper bits of the byte are ignored
        mask = (1 << bits) - 1
        assert [byte & mask for byte in little.tobytes()] == [byte & mask for byte in expected]


def test_the_small_types_are_all_there() -> None:
    names = {json.dumps(entry["data_type"]) for entry in ENTRIES}
    assert len(names) >= 48, sorted(names)
