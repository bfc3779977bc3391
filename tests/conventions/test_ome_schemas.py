"""What the published schemas of OME-Zarr refuse is told: thousands of small damages to sound metadata."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

import tessarr
from tessarr import conventions
from tessarr.conventions import ome
from tessarr.conventions.base import Node
from tessarr.conventions.ome import plates
from tessarr.stores.memory.store import MemoryStore

FIXTURES = Path(__file__).parents[1] / "fixtures"
AXES = [ome.Axis("t", "time", "second"), ome.Axis("y", "space", "micrometer"), ome.Axis("x", "space", "micrometer")]
LEVELS = [ome.Level("0", (1.0, 0.5, 0.5)), ome.Level("1", (1.0, 1.0, 1.0), (0.0, 0.25, 0.25))]
WINDOW = {"start": 0, "min": 0, "end": 255, "max": 255}
OMERO: Any = {"channels": [{"label": "a", "color": "FF0000", "active": True, "window": WINDOW}]}
ACQUISITION: Any = {"id": 0, "name": "a", "maximumfieldcount": 2, "starttime": 1}
MEMBERS = {"image": "multiscales", "label": "image-label", "plate": "plate", "well": "well",
           "bf2raw": "bioformats2raw.layout", "ome": "series", "scene": "scene"}  # fmt: skip


def validator(version: str, kind: str) -> Any:
    folder = FIXTURES / "schemas" / f"ome-{version}"
    files = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.schema")}
    resources = [
        (content["$id"], Resource.from_contents(content, default_specification=DRAFT202012))
        for content in files.values()
    ]
    chosen = files[kind]
    return jsonschema.validators.validator_for(chosen)(chosen, registry=Registry().with_resources(resources))


def written(version: Any) -> dict[str, Any]:
    label: Any = ome.write_label(version=version, colors={1: (1, 2, 3, 4), 2: (0, 0, 0, 0)})
    inner = label if version == "0.4" else label["ome"]
    inner["image-label"]["properties"] = [{"label-value": 1, "area": 2}, {"label-value": 2}]
    plate = plates.write_plate(
        ["A", "B"], ["1", "2"], [("A", "1"), ("B", "2")], version=version, name="p", field_count=2,
        acquisitions=[ACQUISITION],
    )  # fmt: skip
    return {
        "image": ome.write(AXES, LEVELS, version=version, name="n", type="mean", metadata={}, omero=OMERO),
        "label": label,
        "plate": plate,
        "well": plates.write_well(["0", "1"], version=version, acquisitions=[0, 0]),
        "bf2raw": plates.write_series_root(version=version),
        **({"ome": plates.write_series(["0", "1"], version=version)} if version != "0.4" else {}),
    }


def examples() -> Iterator[tuple[str, Any]]:
    """Of the release candidate; its transformations stand in a scene here."""
    for file in sorted((FIXTURES / "ngff-spec" / "examples").rglob("*.json")):
        text = re.sub(r"^\s*//.*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        document: Any = json.loads(text) if file.name != ".config.json" else {}
        document = document.get("attributes", document)
        inner = document.get("ome", {})
        kind = next((kind for kind, member in MEMBERS.items() if member in inner), None)
        if kind is not None and not validator("0.6rc0", kind).is_valid(document):
            continue
        if kind is not None:
            yield kind, document
        elif "coordinateTransformations" in document and not file.stem.startswith("byDimensionInvalid"):
            for step in document["coordinateTransformations"]:
                step |= {"input": {"name": "a", "path": "x"}, "output": {"name": "b"}}
            scene = {"coordinateTransformations": document["coordinateTransformations"]}
            made = {"ome": {"version": "0.6rc0", "scene": scene}}
            if validator("0.6rc0", "scene").is_valid(made):  # one example names axes where the schema wants indices
                yield "scene", made


SOUND = [(version, kind, made) for version in ("0.4", "0.5") for kind, made in written(version).items()]
SOUND += [("0.6rc0", kind, made) for kind, made in examples()]


def told(version: str, attributes: Any) -> list[str]:
    node = Node(kind="group", attributes=attributes, zarr_format=2 if version == "0.4" else 3)
    return [str(item) for item in conventions.check_node(node) if item.convention == "OME-Zarr"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*path, name)
        yield from places(item, (*path, name))


def damaged(attributes: Any, chance: random.Random) -> Any:
    made = copy.deepcopy(attributes)
    *path, last = chance.choice(list(places(made)))
    holder = made
    for name in path:
        holder = holder[name]
    way = chance.randrange(3)
    if way == 0:
        del holder[last]
    elif way == 1 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[last]))
    else:
        holder[last] = chance.choice([None, 1, -1, 0, 1.5, "x", "", [], {}, True, ["x"], [1, 2], {"a": 1}])
    return made


def stands(version: str, kind: str, attributes: Any) -> bool:
    """Whether the member that makes the group one of its kind is still there, of its type."""
    inner = attributes if version == "0.4" else attributes.get("ome")
    value = inner.get(MEMBERS[kind]) if isinstance(inner, dict) else None
    if version == "0.4" and kind == "image":
        return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "version" in value[0]
    if version == "0.4":
        return isinstance(value, dict) or (kind == "bf2raw" and value is not None)
    return value is not None


@pytest.mark.parametrize(
    ("version", "kind", "attributes"), SOUND, ids=[f"{v}-{k}-{n}" for n, (v, k, _) in enumerate(SOUND)]
)
def test_what_the_published_schemas_refuse_is_told(version: str, kind: str, attributes: Any) -> None:
    schema = validator(version, kind)
    assert schema.is_valid(attributes)
    chance = random.Random(7)
    for _ in range(60):
        made = damaged(attributes, chance)
        if not schema.is_valid(made) and stands(version, kind, made):
            outputs = re.search(r'"output": "', json.dumps(made))  # development versions, which are read
            assert told(version, made) or outputs, json.dumps(made)


@pytest.mark.parametrize(("version", "kind", "attributes"), [item for item in SOUND if item[0] != "0.6rc0"])
def test_what_is_written_has_no_problems(version: str, kind: str, attributes: Any) -> None:
    assert told(version, attributes) == []


def test_axes_are_those_of_the_system_that_levels_lead_to() -> None:
    systems = [
        {"name": "world", "axes": [{"name": "a", "type": "space"}, {"name": "b", "type": "space"}]},
        {"name": "pixels", "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]},
    ]
    step = {"type": "scale", "scale": [2, 2], "input": {"path": "0"}, "output": {"name": "pixels"}}
    entry = {"coordinateSystems": systems, "datasets": [{"path": "0", "coordinateTransformations": [step]}]}
    (image,) = ome.read({"ome": {"version": "0.6rc0", "multiscales": [entry]}})
    assert [axis.name for axis in image.axes] == ["y", "x"]
    assert image.levels[0].scale == (2, 2)
    step["output"] = {"name": "nowhere"}
    (image,) = ome.read({"ome": {"version": "0.6rc0", "multiscales": [entry]}})
    assert [axis.name for axis in image.axes] == ["a", "b"]


def test_the_series_of_a_bioformats2raw_layout_must_be_there() -> None:
    for version in ("0.4", "0.5"):
        nodes = {
            "": Node(kind="group", attributes=plates.write_series_root(version=version)),
            "OME": Node(kind="group", attributes=plates.write_series(["0", "1"], version=version)),
            "0": Node(kind="group", attributes={}),
        }
        found = [str(problem) for _, problem in conventions.check_hierarchy(nodes)]
        assert len(found) == 1
        assert "no group at /1" in found[0]


def test_transformations_nested_without_end_are_told_and_not_followed() -> None:
    step: Any = {"type": "identity"}
    for _ in range(200):
        step = {"type": "sequence", "transformations": [step]}
    step |= {"input": {"name": "a"}, "output": {"name": "b"}}
    found = told("0.6rc0", {"ome": {"version": "0.6rc0", "scene": {"coordinateTransformations": [step]}}})
    assert ["nested too deeply" in item for item in found] == [True]


def test_each_object_of_04_has_the_one_version() -> None:
    attributes: Any = ome.write(AXES, LEVELS, ome.write_label(version="0.4"), version="0.4")
    assert told("0.4", attributes) == []
    attributes["image-label"]["version"] = "0.3"
    assert any("must be 0.4 as elsewhere" in item for item in told("0.4", attributes))
    bare: Any = written("0.5")["image"]["ome"]
    assert any(
        "stands under ome" in item
        for item in told("0.5", {"multiscales": [{**bare["multiscales"][0], "version": "0.5"}]})
    )


def test_chunks_of_04_are_nested_and_labels_are_integers() -> None:
    attributes = ome.write_label(ome.write(AXES, LEVELS[:1], version="0.4"), version="0.4")

    def rules(**level: Any) -> list[str]:
        image = Node(kind="group", attributes=attributes, zarr_format=2)
        array = Node(kind="array", attributes={}, zarr_format=2, shape=(1, 2, 2), **level)
        return [problem.rule for _, problem in conventions.check_hierarchy({"": image, "0": array})]

    assert rules(separator="/", dtype="int32") == []
    assert rules(separator=".", dtype="uint8") == ["OME-SEPARATOR"]
    assert rules(separator="/", dtype="float32") == ["OME-LABEL"]
    store = MemoryStore()
    made = tessarr.create_array(store, shape=(2, 2), chunks=(1, 1), dtype="i4", zarr_format=2)
    assert conventions.node_of(made).separator == "."
