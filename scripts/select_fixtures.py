"""Copy a representative part of a full fixtures folder to tests/fixtures (`python scripts/select_fixtures.py DIR`).

Each source keeps its README; its expected values are cut down to the arrays that are kept and to what the comparison
needs (the names of readers stay, their details do not). Run by hand when the full folder changes; the result is
committed, and nothing else writes there.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from fixtures import MOST_ELEMENTS, cases, digest, peer_values

TARGET = Path(__file__).resolve().parent.parent / "tests" / "fixtures"

SOURCES_LEFT_OUT = {
    "kerchunk": "reference documents only, their targets are remote",
    "measured": "native formats, not Zarr",
}
# Glob patterns of paths relative to the source; the reason stands beside each.
LEFT_OUT = {
    "titiler": ["dataset_3d.zarr*"],  # 2 MB of one float64 array; pyramid.zarr has the same layout
    "vitessce": ["spatialdata-0.3*"],  # 0.8 MB; anndata-* have the same codecs
    "zarr-python-2": ["9*", "12*", "15*", "17*"],  # more data types in the layouts of 0, 3, 6, 19 and 20
    "zarr_implementations": ["zarr.zr/raw*"],  # 1.5 MB; zarr.zr/blosc holds the same picture
    "zarrs": ["cities.csv"],  # the text the cities arrays were made from
}
READER_DETAILS = {"readers", "values_from", "sha256"}


def left_out(source: str, path: str) -> bool:
    """Return whether `path` (relative to `source`) is not copied."""
    return any(
        fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path.split("/")[0], pattern)
        for pattern in LEFT_OUT.get(source, [])
    )


def copy_files(source: Path, target: Path) -> None:
    """Copy every selected file of `source`, without the metadata documents of dropped arrays."""
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        name = file.relative_to(source).as_posix()
        if name in {"expected.json", "expected.npz", "lenient.npz"} or left_out(source.name, name):
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(file.read_bytes())


def cut_expected(source: Path, target: Path) -> int:
    """Write the expected values of the selected arrays; return their number."""
    document: dict[str, Any] = json.loads((source / "expected.json").read_text(encoding="utf-8"))
    arrays = [
        {key: value for key, value in entry.items() if key not in READER_DETAILS}
        for entry in document["arrays"]
        if not left_out(source.name, entry["path"])
    ]
    by_key = {entry["key"]: entry for entry in arrays}
    for case in cases(source.parent, [source.name]):
        entry = by_key.get(case.entry["key"], {"values": None})
        large = entry.get("shape") and np.prod(entry["shape"], dtype=float) > MOST_ELEMENTS
        if case.expected is None and "values" not in entry and entry["expect"] == "values" and not large:
            entry["digest"] = digest(peer_values(case))
    trees = {name: tree for name, tree in document["trees"].items() if not left_out(source.name, name)}
    cut = {"readers": document["readers"], "arrays": arrays, "trees": trees}
    text = json.dumps(cut, indent=1, ensure_ascii=False) + "\n"
    (target / "expected.json").write_text(text, encoding="utf-8")
    for name in ("expected.npz", "lenient.npz"):
        if (source / name).exists():
            with np.load(source / name, allow_pickle=False) as values:
                kept = {key: values[key] for key in values.files if not left_out(source.name, key)}
            np.savez_compressed(target / name, allow_pickle=False, **kept)
    return len(arrays)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the full fixtures: one folder per source")
    options = parser.parse_args()
    for source in sorted(path for path in options.folder.iterdir() if path.is_dir()):
        if source.name in SOURCES_LEFT_OUT:
            continue
        target = TARGET / source.name
        if (target / "expected.json").exists():
            shutil.rmtree(target)
        target.mkdir(parents=True, exist_ok=True)
        copy_files(source, target)
        count = cut_expected(source, target) if (source / "expected.json").exists() else 0
        size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
        print(f"{source.name:<24} {count:>4} arrays {size / 1e6:>7.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
