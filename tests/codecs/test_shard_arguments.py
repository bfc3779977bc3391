"""The arguments of the sharding codec."""

from __future__ import annotations

import pytest

from tessarr.codecs.sharding import ShardingCodec


def test_one_number_is_the_length_of_the_only_axis_as_in_the_chunks_of_arrays() -> None:
    assert ShardingCodec(chunk_shape=4) == ShardingCodec(chunk_shape=(4,))  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [0, (0,), (0, 5), (5, False)])
def test_an_inner_chunk_of_length_0_is_refused_with_its_dimension(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"Dimension \d: chunk edge length must be >= 1, got 0"):
        ShardingCodec(chunk_shape=shape)
