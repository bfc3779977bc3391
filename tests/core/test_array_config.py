"""The runtime options of an array, as zarr-python's `ArrayConfig` has them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import tessarr
from tessarr.core.creation.array_config import ArrayConfig

COALESCING = {"sharding_coalesce_max_gap_bytes": 7, "sharding_coalesce_max_bytes": 1 << 20}


def made(**config: Any) -> tessarr.Array:
    return tessarr.create_array({}, shape=4, dtype="i2", config=config)


def test_order_and_empty_chunks_are_taken_by_position_as_zarr_python_takes_them() -> None:
    config = ArrayConfig("F", True)
    assert (config.order, config.write_empty_chunks, config.read_missing_chunks) == ("F", True, True)


def test_an_array_keeps_all_options_that_were_given() -> None:
    array = made(**COALESCING, order="F", read_missing_chunks=False)
    expected = {"order": "F", "write_empty_chunks": False, "read_missing_chunks": False, **COALESCING}
    assert array.config.to_dict() == expected
    assert array.with_config({"order": "C"}).config.to_dict() == {**expected, "order": "C"}
    assert pickle.loads(pickle.dumps(array.config)) == array.config


def test_options_that_are_not_given_come_from_the_settings() -> None:
    settings = {f"array.{name}": value for name, value in COALESCING.items()}
    with tessarr.config.set({**settings, "array.write_empty_chunks": True}):
        config = ArrayConfig.from_dict({"order": "F"})
        assert made().config.to_dict() == {**config.to_dict(), "order": "C"}
    assert config.to_dict() == {"order": "F", "write_empty_chunks": True, "read_missing_chunks": True, **COALESCING}


@pytest.mark.parametrize("name", COALESCING)
def test_limits_of_coalescing_are_integers(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        ArrayConfig.from_dict({name: "1 MiB"})


def test_an_unknown_option_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(TypeError, match=r"'colour'.*sharding_coalesce_max_bytes"):
        made(colour="red")
