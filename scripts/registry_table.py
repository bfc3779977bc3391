"""Print which extensions of Zarr's registry tessarr supports, as the tables of docs/registry.md.

python scripts/registry_table.py            # print
python scripts/registry_table.py --write    # write the tables into docs/registry.md

The lists are the folders of zarr-developers/zarr-extensions, main at 4da7b37 (2026-07-14), core included, and what is
proposed there. The other columns are computed from tessarr's registry and from the golden files of the tests.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

PAGE = ROOT / "docs" / "registry.md"
BEGIN, END = "<!-- scripts/registry_table.py -->\n", "<!-- end -->"
CODECS = (
    "bitround", "blosc", "bytes", "cast_value", "conditional", "crc32c", "gzip", "n5_default", "packbits", "reshape",
    "scale_offset", "sharding_indexed", "transpose", "vlen-bytes", "vlen-utf8", "zfp", "zstd",
)  # fmt: skip
SMALL_FLOATS = (
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
DATA_TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "r*", "string", "bytes", "fixed_length_utf32", "numpy.datetime64", "numpy.timedelta64",
    "struct", "structured", "int2", "int4", "uint2", "uint4", "bfloat16", *SMALL_FLOATS,
    "complex_float16", "complex_bfloat16", "complex_float32", "complex_float64",
    *(f"complex_{name}" for name in SMALL_FLOATS),
)  # fmt: skip
GRIDS = ("regular", "rectilinear")
KEYS = ("default", "v2")
PROPOSED = {
    "codec": ("jpeg", "lzw", "n5_varlen", "pad", "singleton_dim", "optional", "arrow-ipc", "n5_label_multiset"),
    "data type": ("fixed_size_list", "json", "optional", "label_multiset"),
    "key encoding": ("fanout", "template", "prefix", "suffix"),
}
POINTS: dict[str, Any] = {"codec": "codec", "data type": "data_type", "key encoding": "chunk_key_encoding"}


def writers() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Map the names of codecs, and of data types, to the implementations whose bytes the tests hold."""
    codecs: dict[str, set[str]] = {}
    types: dict[str, set[str]] = {}

    def visit(value: Any, writer: str, found: dict[str, set[str]]) -> None:
        if isinstance(value, str):
            found.setdefault("r*" if re.fullmatch(r"r\d+", value) else value, set()).add(writer)
        elif isinstance(value, dict) and isinstance(value.get("name"), str):
            configuration = value.get("configuration") or {}
            visit(value["name"], writer, found)
            visit(configuration.get("codecs", []) + configuration.get("index_codecs", []), writer, found)
        elif isinstance(value, list):
            for item in value:
                visit(item, writer, found)

    folder = ROOT / "tests" / "codecs" / "golden"
    for index in (folder / "index.json", folder / "registry" / "index.json"):
        for entry in json.loads(index.read_text(encoding="utf-8")):
            if entry.get("form") not in ("v2", "object"):
                visit(entry.get("codecs") or entry.get("codec"), entry["writer"], codecs)
                visit(entry["data_type"] if isinstance(entry.get("data_type"), dict) else None, entry["writer"], types)
    for entry in json.loads((ROOT / "tests/dtypes/golden/fill_values.json").read_text(encoding="utf-8")):
        visit(entry["data_type"], entry["writer"], types)
    for path in sorted((ROOT / "tests" / "fixtures").rglob("zarr.json")):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue
        writer = path.relative_to(ROOT / "tests" / "fixtures").parts[0]
        if isinstance(document, dict) and document.get("node_type") == "array":
            visit(document.get("codecs", []), f"{writer} (files)", codecs)
            visit(document.get("data_type"), f"{writer} (files)", types)
    return codecs, types


def short(found: set[str]) -> str:
    """Format the names of implementations without versions: of golden bytes, or else of files."""
    golden = {
        _NAMES.get(name.split()[0].rstrip(","), name.split()[0].rstrip(",")) for name in found if "(files)" not in name
    }
    files = sorted(name for name in found if "(files)" in name)
    return ", ".join(sorted(golden) or files[:4]) or "none"


_NAMES = {"zarr": "zarr-python", "zfp": "zfp (C)", "tensorstore": "TensorStore"}


def is_there(point: str, name: str) -> bool:
    """Return whether tessarr supports the extension."""
    from tessarr import registry
    from tessarr.dtypes.parse import from_v3

    if name == "fixed_size_list":  # the type of fields of structs only
        inner: Any = {"name": name, "configuration": {"base_data_type": "int8", "list_size": 3}}
        fields: Any = [{"name": "a", "data_type": inner}]
        return from_v3({"name": "struct", "configuration": {"fields": fields}}).itemsize == 3
    if name == "r*":
        return from_v3("r16").itemsize == 2
    return registry.get(POINTS.get(point, point), name) is not None


def kinds() -> dict[str, str]:
    """Map the name of each codec to its kind."""
    from tessarr import registry

    def kind(name: str) -> str:
        codec = registry.get("codec", name)
        assert codec is not None, name
        return str(codec.kind).replace("_to_", " → ")

    return {name: kind(name) for name in CODECS}


def tables() -> str:
    """Return the text between the marks of the page."""
    codecs, data_types = writers()
    kind = kinds()
    have = [name for name in CODECS if is_there("codec", name)]
    types = [name for name in DATA_TYPES if is_there("data type", name)]
    lines = [
        f"## Codecs: {len(have)} of {len(CODECS)}",
        "",
        "| name | kind | tested with the bytes of |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {kind[name]} | {short(codecs.get(name, set()))} |" for name in have]
    lines += [
        "",
        f"## Data types: {len(types)} of {len(DATA_TYPES)}",
        "",
        "| name | tested with the fill values of |",
    ]
    lines += ["|---|---|", *(f"| `{name}` | {short(data_types.get(name, set()))} |" for name in types)]
    lines += ["", "## Grids and key encodings", ""]
    grids = [name for name in GRIDS if is_there("chunk_grid", name)]
    keys = [name for name in KEYS if is_there("key encoding", name)]
    lines.append(f"Grids: {len(grids)} of {len(GRIDS)} ({', '.join(grids)}).")
    lines.append(f"Key encodings: {len(keys)} of {len(KEYS)} ({', '.join(keys)}).")
    lines += ["", "## Proposed", "", "| extension point | supported | not supported |", "|---|---|---|"]
    for point, names in PROPOSED.items():
        there = [f"`{name}`" for name in names if is_there(point, name)]
        missing = [f"`{name}`" for name in names if not is_there(point, name)]
        lines.append(f"| {point} | {' '.join(there) or '–'} | {' '.join(missing) or '–'} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/registry.md")
    made = tables()
    if not parser.parse_args().write:
        print(made)
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + made + "\n" + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
