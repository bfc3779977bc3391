"""Writes golden/optional.json: chunks of elements that may be missing, encoded by zarrs. Never imports tessarr.

python write_optional.py    (needs zarrista, numpy)
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import zarrista

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
PACKED, PLAIN = [{"name": "packbits"}], [{"name": "bytes"}]
NAME = "zarrs.optional"


def entry(inner: str, values: list[list[Any]], fill: Any, mask_codecs: Any, data_codecs: Any, after: Any = ()) -> Any:
    shape = [len(values), len(values[0])]
    flat = [item for row in values for item in row]
    data_type = {"name": NAME, "configuration": {"name": inner, "configuration": {}}}
    codecs = [{"name": NAME, "configuration": {"mask_codecs": mask_codecs, "data_codecs": data_codecs}}, *after]
    metadata: Any = {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill,
        "codecs": codecs, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"},
    }  # fmt: skip
    mask = bytes(item is not None for item in flat)
    options: dict[str, Any] = {}
    if inner == "string":
        texts = [(item or "").encode() for item in flat]
        data = b"".join(texts)
        options["offsets"] = np.cumsum([0, *map(len, texts)]).tolist()
    else:
        data = np.array([0 if item is None else item for item in flat], inner).tobytes()
    node = zarrista.Array.from_metadata(metadata, zarrista.store.MemoryStore())
    node.store_chunk([0, 0], zarrista.ArrayBytes(data, mask=mask, **options))
    chunk = node.retrieve_encoded_chunk([0, 0])
    assert chunk is not None
    label = f"zarrs, through zarrista {version('zarrista')}"
    return {
        "writer": label, "data_type": data_type, "fill_value": fill, "codecs": codecs, "shape": shape,
        "values": values, "chunk": bytes(chunk.buffer).hex(),
    }  # fmt: skip


if __name__ == "__main__":
    entries = [
        entry("uint8", [[0, None], [2, 3]], None, PACKED, PLAIN),
        entry("uint8", [[None, None, 1], [None, 5, None], [7, None, 9]], [42], PLAIN, PLAIN),
        entry("int16", [[1, None, -3], [None, 5, 300]], None, PACKED, [LITTLE]),
        entry("int32", [[1, None], [70000, -1]], [7], PACKED, [BIG], [{"name": "crc32c"}]),
        entry("float64", [[0.5, None, 1e300]], None, PACKED, [LITTLE, {"name": "crc32c"}]),
        entry("bool", [[True, None, False, True]], None, PACKED, PACKED),
        entry("string", [["a", None], ["", "grün"]], None, PACKED, [{"name": "vlen-utf8"}]),
        entry("string", [["a", None, "bcd"]], ["x"], PLAIN, [{"name": "vlen-utf8"}, {"name": "crc32c"}]),
    ]
    path = Path(__file__).parent / "optional.json"
    path.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(len(entries), "entries")
