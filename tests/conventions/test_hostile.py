"""No attributes, however broken, make a reader or a check fail: published examples with pieces of them replaced."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tessarr.conventions import (
    cf,
    check_hierarchy,
    crs,
    detect,
    framework,
    layout,
    multiscales,
    ome,
    proj,
    spatial,
    xarray,
)
from tessarr.conventions.base import Node
from tessarr.conventions.ome import plates
from tessarr.conventions.recognised import anndata, nczarr, registered

FIXTURES = Path(__file__).parents[1] / "fixtures"
FOLDERS = [("zarr-conventions", "*.json"), ("ngff-spec", "*.json"), ("ome-zarr-models", "*_example*.json"), ("gdal", ".zattrs"),
           ("gdal", "zarr.json"), ("vitessce", ".zattrs"), ("vitessce", "zarr.json")]  # fmt: skip
ATOMS: list[Any] = [
    None, True, 0, -1, 2.5, float("inf"), 10**30, "", "a", "0.4", "0.5", "0.6rc0", "é", "../..", "/", [], {}, [[]], [{}],
    [None],
    {"path": "0"}, [{"path": "0"}], [1, 2], ["y", "x"], "days since 2000-13-01", "a:b", {"type": "scale"}, [{"uuid": 1}],
]  # fmt: skip


def examples() -> list[dict[str, Any]]:
    found = []
    for folder, pattern in FOLDERS:
        for file in sorted((FIXTURES / folder).rglob(pattern)):
            try:
                document = json.loads(re.sub(r"(?m)^\s*//.*$", "", file.read_text(encoding="utf-8")))
            except ValueError:
                continue  # comments at the ends of lines, or a file that is broken on purpose
            found.append(document.get("attributes", document) if isinstance(document, dict) else {})
    written = plates.write_plate(["A"], ["1"], [("A", "1")], acquisitions=[{"id": 1}], field_count=1)
    climate = {
        "units": "days since 2000-01-01", "calendar": "noleap", "scale_factor": 2.0, "valid_range": [1, 2], "axis": "X",
        "flag_values": [1, 2], "flag_masks": [1, 2], "flag_meanings": "a b", "_FillValue": 3, "coordinates": "x y",
        "bounds": "b", "grid_mapping": "crs",
    }  # fmt: skip
    others = framework.write(
        {"license": {"spdx": "MIT"}, "uom": {"ucum": {"unit": "m"}}, "dggs": {"name": "h3"}}, *framework.KNOWN
    )
    return [*found, written, dict(plates.write_well(["0"])), climate, others]


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from spots(item, (*path, key))


def broken(attributes: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    result = copy.deepcopy(attributes)
    for _ in range(chance.choice([1, 1, 2, 3])):
        places = list(spots(result))
        if not places:
            return result
        *above, last = chance.choice(places)
        holder: Any = result
        for key in above:
            holder = holder[key]
        if chance.random() < 0.15 and isinstance(holder, dict):
            del holder[last]
        else:
            holder[last] = copy.deepcopy(chance.choice(ATOMS))
    return result


def read_all(path: str, tree: dict[str, Node]) -> None:
    node = tree[path]
    attributes = node.attributes
    for read in (
        ome.read, ome.kinds, ome.read_labels, layout.read, multiscales.levels, proj.read, cf.read_flags, cf.version,
        anndata.read, nczarr.read, nczarr.attribute_types, plates.read_plate, plates.read_well, plates.read_series,
        registered.nz_version, framework.entries,
    ):  # fmt: skip
        read(attributes)
    for name in ("license", "uom", "dggs", "stac"):
        registered.read(attributes, name)
    place = spatial.read(attributes)
    if place is not None:
        assert place.bounds is None or len(place.bounds) == 4
    found = crs.read(path, tree)
    if found is not None:
        assert found.disagree in (True, False)
    if node.kind == "array":
        xarray.coordinates(path, tree)


def test_there_are_examples_of_every_convention() -> None:
    nodes = [Node(kind=kind, attributes=item) for item in examples() for kind in ("group", "array")]
    found = {name for node in nodes for name in detect(node)}
    assert {"CF", "CRS", "OME-Zarr", "anndata", "proj", "spatial", "zarr-conventions multiscales", "license"} <= found


@pytest.mark.parametrize("seed", range(4))
def test_broken_attributes_are_told_and_never_fail(seed: int) -> None:
    chance, known = random.Random(seed), examples()
    told = 0
    for _ in range(600):
        kind = chance.choice(["group", "array"])
        names = chance.choice([None, ("y", "x"), ("y", None)]) if kind == "array" else None
        tree = {
            "": Node(kind="group", attributes=broken(chance.choice(known), chance)),
            "n": Node(
                kind=kind,  # type: ignore[arg-type]
                attributes=broken(chance.choice(known), chance),
                shape=(3, 4) if kind == "array" else (),
                dimension_names=names,
                zarr_format=chance.choice([2, 3]),
            ),
            "crs": Node(kind="array", attributes=broken(chance.choice(known), chance)),
        }
        if kind == "group":
            tree["n/0"] = Node(kind="array", attributes={}, shape=(3, 4))
        told += len(list(check_hierarchy(tree)))
        for path in tree:
            read_all(path, tree)
    assert told > 600
