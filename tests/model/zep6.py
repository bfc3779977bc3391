"""The examples of ZEP 6 (Davis Bennett, CC0), as printed and, where they are faulty, mended."""

from __future__ import annotations

from typing import Any

V2_ARRAY: dict[str, Any] = {
    "zarr_format": 2,
    "shape": [10, 10],
    "chunks": [1, 1],
    "dtype": "|u1",
    "compressor": None,
    "fill_value": 0,
    "order": "C",
    "filters": None,
    "attributes": {"name": "my cool array"},
}
V3_PRINTED: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "group",
    "attributes": {"foo": 42, "bar": False},
    "members": {
        "array": {
            "zarr_format": 3,
            "node_type": "array",
            "attributes": {"baz": [1, 2, 3]},
            "shape": [1000, 1000],
            "data_type": "|u1",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 100]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [{"name": "GZip", "configuration": {"level": 1}}],
            "storage_transformers": None,
            "dimension_names": ["rows", "columns"],
        }
    },
}
V3_MENDED: dict[str, Any] = {
    **V3_PRINTED,
    "members": {
        "array": {
            **V3_PRINTED["members"]["array"],
            "data_type": "uint8",
            "codecs": ["bytes", {"name": "gzip", "configuration": {"level": 1}}],
            "storage_transformers": [],
        }
    },
}
V2_PRINTED: dict[str, Any] = {
    "zarr_format": 2,
    "attributes": {"foo": 42, "bar": False},
    "members": {
        "foo": {
            "zarr_format": 2,
            "shape": [1000, 1000],
            "chunks": [100, 100],
            "dtype": "|u1",
            "compressor": None,
            "fill_value": 0,
            "order": "C",
            "dimension_separator": "/",
            "filters": {},
            "attributes": {"baz": True},
        }
    },
}
V2_MENDED: dict[str, Any] = {**V2_PRINTED, "members": {"foo": {**V2_PRINTED["members"]["foo"], "filters": None}}}
V2_SEVERAL_GROUPS: dict[str, Any] = {
    "zarr_format": 2,
    "attributes": {},
    "members": {
        "a": {"zarr_format": 2, "attributes": {"n": 1}, "members": {"x": V2_ARRAY, "y": V2_ARRAY}},
        "b": {
            "zarr_format": 2,
            "attributes": {},
            "members": {"c": {"zarr_format": 2, "attributes": {}, "members": {}}},
        },
        "d": {"zarr_format": 2, "attributes": {}, "members": {}},
    },
}
