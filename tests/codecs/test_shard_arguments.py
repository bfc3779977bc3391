"""The arguments of the sharding codec."""

from __future__ import annotations

from typing import Any

import pytest

from tessarr.codecs.sharding import ShardingCodec
from tessarr.errors import MetadataValidationError


def test_one_number_is_the_length_of_the_only_axis_as_in_the_chunks_of_arrays() -> None:
    assert ShardingCodec(chunk_shape=4) == ShardingCodec(chunk_shape=(4,))  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [0, (0,), (0, 5), (5, False)])
def test_an_inner_chunk_of_length_0_is_refused_with_its_dimension(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"Dimension \d: chunk edge length must be >= 1, got 0"):
        ShardingCodec(chunk_shape=shape)


@pytest.mark.parametrize("shape", [[0], [2, 0], [-1], 4])
def test_a_document_with_an_inner_chunk_of_length_0_is_invalid_metadata(shape: Any) -> None:
    codecs: Any = [{"name": "bytes", "configuration": {"endian": "little"}}]
    with pytest.raises(MetadataValidationError, match="must be a list of positive integers"):
        ShardingCodec.from_json({"chunk_shape": shape, "codecs": codecs, "index_codecs": codecs})
