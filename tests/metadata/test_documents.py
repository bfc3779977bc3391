"""What is wrong with a document is said at once, all of it, in the words of its format."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import MetadataValidationError
from tessarr.metadata import v1

V2: dict[str, Any] = {
    "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "compressor": None, "fill_value": 0,
    "order": "C", "filters": None,
}  # fmt: skip
V3: dict[str, Any] = {
    "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32", "fill_value": 0,
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "chunk_key_encoding": "default",
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}  # fmt: skip
MISSING = object()


def problems(document: dict[str, Any], **changes: Any) -> set[str]:
    made = {name: value for name, value in {**document, **changes}.items() if value is not MISSING}
    key = ".zarray" if made.get("zarr_format") == 2 else "zarr.json"
    with pytest.raises(MetadataValidationError) as caught:
        tessarr.open_array({key: json.dumps(made).encode()}, mode="r")
    return {"/".join(map(str, problem.loc)) for problem in caught.value.problems}


def test_a_missing_member_hides_no_other_problem() -> None:
    found = problems(V3, fill_value=MISSING, codecs=MISSING, shape=[-1], data_type="nope", attributes=5)
    assert found == {"fill_value", "codecs", "shape", "data_type", "attributes"}
    found = problems(V2, filters=MISSING, order=MISSING, shape=[-1], dtype="nope")
    assert found == {"filters", "order", "shape", "dtype"}


@pytest.mark.parametrize("name", [name for name in V3 if name not in ("zarr_format", "node_type")])
def test_one_missing_member_of_version_3_is_the_one_problem(name: str) -> None:
    assert problems(V3, **{name: MISSING}) == {name}


@pytest.mark.parametrize("name", [name for name in V2 if name != "zarr_format"])
def test_one_missing_member_of_version_2_is_the_one_problem(name: str) -> None:
    assert problems(V2, **{name: MISSING}) == {name}


@pytest.mark.parametrize("chunks", [True, None, 2, [0], [2.0], [2, 2], [True]])
def test_wrong_chunks_of_version_2_are_found_under_their_name(chunks: Any) -> None:
    (where,) = problems(V2, chunks=chunks)
    assert where in ("chunks", "chunks/0")


def text_of(document: dict[str, Any], **changes: Any) -> str:
    key = ".zarray" if document["zarr_format"] == 2 else "zarr.json"
    with pytest.raises(MetadataValidationError) as caught:
        tessarr.open_array({key: json.dumps({**document, **changes}).encode()}, mode="r")
    return str(caught.value)


def test_messages_on_fill_values_name_what_the_format_takes() -> None:
    assert "hexadecimal" in text_of(V3, fill_value="nan")
    assert "hexadecimal" not in text_of(V2, fill_value="0x7fc00001")
    assert "float32: beyond the range of float32, whose largest value is 3.4" in text_of(V3, fill_value=1e39)
    assert "it has 4 characters; at most 3 fit" in text_of(V2, dtype="<U3", fill_value="abcd")


@pytest.mark.parametrize(("fill", "count"), [(0.0, 0), (-9223372036854775808.0, -(2**63)), ("NaT", -(2**63))])
def test_counts_of_times_that_others_wrote_as_floats_are_read_in_version_2(fill: float | str, count: int) -> None:
    document = {**V2, "dtype": "<M8[ns]", "fill_value": fill}
    z = tessarr.open_array({".zarray": json.dumps(document).encode()}, mode="r")
    assert z[:].view("i8").tolist() == [count] * 4
    assert np.isnat(z.fill_value) == (count < 0)


@pytest.mark.parametrize("compression", [["zlib"], {"id": "zlib"}, 7, True])
def test_a_compression_of_v1_that_is_no_name_is_told(compression: object) -> None:
    document = {"zarr_format": 1, "shape": [1], "chunks": [1], "dtype": "|u1", "compression": compression}
    document |= {"compression_opts": None, "fill_value": 0, "order": "C"}
    with pytest.raises(MetadataValidationError, match="v1") as caught:
        v1.parse_array({"meta": document})
    assert "compression" in str(caught.value)
