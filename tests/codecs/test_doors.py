"""Codecs are found under the module names of zarr-python, and are the classes of `tessarr.codecs`."""

from __future__ import annotations

from importlib import import_module

import pytest

from tessarr import codecs

NAMES = {
    "blosc": ("BloscCodec", "BloscCname", "BloscShuffle"),
    "bytes": ("BytesCodec", "Endian"),
    "gzip": ("GzipCodec",),
    "sharding": ("ShardingCodec", "ShardingCodecIndexLocation"),
    "transpose": ("TransposeCodec",),
    "zstd": ("ZstdCodec",),
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in NAMES.items() for name in names])
def test_a_module_of_zarr_python_gives_the_same_class(module: str, name: str) -> None:
    assert getattr(import_module(f"tessarr.codecs.{module}"), name) is getattr(codecs, name)
