"""Writes fill_values.json: the bytes that other implementations give a fill value of each registered data type.

tessarr is not imported. Needs zarrista (zarrs) and zarr (zarr-python).
"""

from __future__ import annotations

import json
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import zarr
import zarrista

HERE = Path(__file__).parent
SPECIAL = ["NaN", "Infinity", "-Infinity"]
SMALL = [0.0, 1.0, 0.5]
INTEGERS = {
    f"{sign}int{bits}": [0, 1, 2 ** (bits - (sign == "")) - 1, 0 if sign else -(2 ** (bits - 1))]
    for sign in ("", "u")
    for bits in (2, 4, 8, 16, 32, 64)
}
FLOATS = {
    "float16": [*SMALL, -0.0, 65504.0, 1e-7, 0.1, *SPECIAL, "0x7e01"],
    "float32": [*SMALL, -0.0, 3.4e38, 1e-45, 0.1, *SPECIAL, "0x7fc00001"],
    "float64": [*SMALL, -0.0, 1.7e308, 5e-324, 0.1, *SPECIAL, "0x7ff8000000000001"],
    "bfloat16": [*SMALL, -0.0, 3.3e38, 0.1, *SPECIAL, "0x7fc1"],
    "float4_e2m1fn": [*SMALL, -6.0, "0x07"], "float6_e2m3fn": [*SMALL, -7.5, "0x1f"], "float6_e3m2fn": [*SMALL, -28.0, "0x1f"],
    "float8_e3m4": [*SMALL, -15.5, *SPECIAL], "float8_e4m3": [*SMALL, -240.0, *SPECIAL], "float8_e5m2": [*SMALL, 0.1, *SPECIAL],
    "float8_e4m3b11fnuz": [*SMALL, -30.0, "NaN", "0x80"], "float8_e4m3fnuz": [*SMALL, -240.0, "NaN"],
    "float8_e5m2fnuz": [*SMALL, -57344.0, "NaN"], "float8_e8m0fnu": [1.0, 0.5, 1024.0, "NaN", "0x00"],
}  # fmt: skip
COMPLEX = {
    f"complex_{name}": [[values[0], values[1]], [values[2], values[-1]]]
    for name, values in FLOATS.items()
} | {"complex64": [[1.5, "NaN"], ["-Infinity", 0.1]], "complex128": [[1.5, "NaN"], ["-Infinity", 0.1]]}  # fmt: skip
DATES = {"unit": "us", "scale_factor": 10}
OTHER: list[tuple[Any, list[Any]]] = [
    ("bool", [False, True]),
    ("r16", [[0, 255], [1, 2]]),
    ({"name": "numpy.datetime64", "configuration": DATES}, [0, -5, "NaT"]),
    ({"name": "numpy.timedelta64", "configuration": DATES}, [0, -5, "NaT"]),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}, ["", "aé", "日本語"]),
    ({"name": "struct", "configuration": {"fields": [
        {"name": "x", "data_type": "float32"}, {"name": "n", "data_type": "uint8"}]}}, [{"x": 1.5, "n": 7}]),
    ("string", ["", "aé日"]),
    ("bytes", [[1, 2, 3], "AQID"]),
]  # fmt: skip


def document(data_type: Any, fill: Any, serializer: Any) -> dict[str, Any]:
    return {
        "zarr_format": 3, "node_type": "array", "shape": [1], "data_type": data_type, "fill_value": fill,
        "codecs": [serializer], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
        "chunk_key_encoding": {"name": "default"},
    }  # fmt: skip


def by_zarrs(data_type: Any, fill: Any) -> bytes:
    serializer: Any = {"name": "bytes", "configuration": {"endian": "little"}}
    if data_type in ("string", "bytes"):
        serializer = {"name": "vlen-utf8" if data_type == "string" else "vlen-bytes"}
    metadata: Any = document(data_type, fill, serializer)
    node = zarrista.Array.from_metadata(metadata, zarrista.store.MemoryStore())
    chunk = node.retrieve_chunk([0])
    if data_type in ("string", "bytes"):
        found = chunk.to_numpy()[0] if hasattr(chunk, "to_numpy") else np.asarray(chunk)[0]
        return found.encode() if isinstance(found, str) else bytes(found)
    assert isinstance(chunk, zarrista.FixedLengthTensor)
    return bytes(chunk.buffer())


def by_zarr_python(data_type: Any, fill: Any) -> bytes:
    store = zarr.storage.MemoryStore()
    metadata = document(data_type, fill, {"name": "bytes", "configuration": {"endian": "little"}})
    buffer = zarr.core.buffer.default_buffer_prototype().buffer
    store._store_dict["zarr.json"] = buffer.from_bytes(json.dumps(metadata).encode())
    return np.asarray(zarr.open_array(store, mode="r")[...]).tobytes()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    entries = []
    cases = [*INTEGERS.items(), *FLOATS.items(), *COMPLEX.items(), *OTHER]
    cases += [("complex_float32", COMPLEX["complex64"]), ("complex_float64", COMPLEX["complex128"])]
    seen = set()
    for data_type, fills in cases:
        if json.dumps(data_type) in seen:
            continue
        seen.add(json.dumps(data_type))
        for fill in fills:
            for writer, ask in (("zarrs, through zarrista", by_zarrs), ("zarr", by_zarr_python)):
                try:
                    found = ask(data_type, fill)
                except BaseException as error:
                    print(writer, data_type, fill, str(error)[:110].replace("\n", " "))
                    continue
                label = f"{writer} {version('zarrista' if 'zarrs' in writer else 'zarr')}"
                entries.append({"writer": label, "data_type": data_type, "fill_value": fill, "bytes": found.hex()})
                break
    (HERE / "fill_values.json").write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(len(entries), "entries")
