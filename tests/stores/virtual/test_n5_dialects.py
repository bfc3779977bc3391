"""Groups of N5 that describe resolution levels, in each of the five dialects."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.conventions import multiscales, ome
from tessarr.conventions.ome import Image
from tessarr.errors import MetadataValidationError
from tests.narrow import array_of, group_of

Values = dict[str, bytes]
NM = {"unit": "nm", "dimensions": [4, 4, 40]}


def level(n: int, **members: Any) -> bytes:
    """Make the attributes of a level, `n` times smaller than s0 along x and y."""
    sizes = {
        "dimensions": [16 // n, 8 // n, 4],
        "blockSize": [4, 4, 4],
        "dataType": "uint8",
        "compression": {"type": "raw"},
    }
    return json.dumps({**sizes, **members}).encode()


def dialects() -> dict[str, tuple[str, Values]]:
    """Map each dialect to the path of a group and a container; each says the same of three levels."""

    def of(path: str, first: dict[str, Any], later: dict[str, Any], **groups: Any) -> tuple[str, Values]:
        prefix = f"{path}/" if path else ""
        levels = [level(1, **first), *(level(n, **{k: v(n) for k, v in later.items()}) for n in (2, 4))]
        values = {f"{prefix}s{number}/attributes.json": value for number, value in enumerate(levels)}
        for place, attributes in groups.items():
            where = "" if place == "root" else f"{place.replace('__', '/')}/"
            values[f"{where}attributes.json"] = json.dumps(attributes).encode()
        return path, values

    def factors(n: int) -> list[int]:
        return [n, n, 1]

    every = [[1, 1, 1], [2, 2, 1], [4, 4, 1]]

    def transform(n: int) -> dict[str, Any]:
        shift = [0, (n - 1) / 2 * 4, (n - 1) / 2 * 4]
        return {"axes": ["z", "y", "x"], "scale": [40, 4 * n, 4 * n], "translate": shift, "units": ["nm"] * 3}

    cosem = {
        "multiscales": [{"name": "", "datasets": [{"path": f"s{i}", "transform": transform(2**i)} for i in range(3)]}]
    }
    turned = json.loads(json.dumps(cosem))
    for one in turned["multiscales"][0]["datasets"]:
        given = one["transform"]
        one["transform"] = {**{name: given[name][::-1] for name in given}, "order": "F"}
    by_level = {"multiscales": [{"datasets": [{"path": f"s{i}"} for i in range(3)]}]}
    return {
        "n5-viewer": of(
            "c0", {"pixelResolution": NM}, {"pixelResolution": lambda _: NM, "downsamplingFactors": factors}
        ),
        "n5-viewer, older": of("", {}, {}, root={"n5": "2.0.0", "scales": every, "pixelResolution": NM}),
        "bdv": of(
            "setup0/timepoint0", {}, {}, setup0={"downsamplingFactors": every, "dataType": "uint8", "pixelResolution": NM}
        ),
        "bdv for paintera": of(
            "setup0/timepoint0", {}, {"downsamplingFactors": factors}, setup0={"downsamplingFactors": every},
            setup0__timepoint0={"multiScale": True, "resolution": [4, 4, 40], "units": ["nm", "nm", "nm"]},
        ),
        "cosem": of("em", {}, {}, em=cosem),
        "cosem, F": of("em", {}, {}, em=turned),
        "cosem by level": of("em", {"transform": transform(1)}, {"transform": transform}, em=by_level),
        "paintera": of(
            "raw/data", {}, {"downsamplingFactors": factors}, raw={"painteraData": {"type": "raw"}, "maxId": 5},
            raw__data={"multiScale": True, "resolution": [4, 4, 40], "offset": [0, 0, 0], "units": ["nm"] * 3},
        ),
        "neuroglancer": of(
            "ng", {}, {}, ng={"axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [4, 4, 40], "downsamplingFactors":
            every}
        ),
    }  # fmt: skip


def image_of(path: str, values: Values) -> Image:
    (found,) = ome.read(group_of(tessarr.open_n5(values, path=path)).attrs.asdict())
    return found


@pytest.mark.spec("N5-15")
@pytest.mark.parametrize("name", dialects())
def test_every_dialect_describes_the_same_image(name: str) -> None:
    path, values = dialects()[name]
    image = image_of(path, values)
    assert [(axis.name, axis.type, axis.unit) for axis in image.axes] == [(n, "space", "nanometer") for n in "zyx"]
    assert [(one.path, one.scale, one.translation) for one in image.levels] == [
        ("s0", (40.0, 4.0, 4.0), image.levels[0].translation),
        ("s1", (40.0, 8.0, 8.0), (0.0, 2.0, 2.0)),
        ("s2", (40.0, 16.0, 16.0), (0.0, 6.0, 6.0)),
    ]
    assert image.levels[0].translation in (None, (0.0, 0.0, 0.0))
    root = group_of(tessarr.open_n5(values, path=path))
    assert array_of(root["s1"]).dims == ("z", "y", "x")
    fortran = group_of(tessarr.open_n5(values, path=path, axis_order="F")).attrs.asdict()
    assert multiscales.levels(fortran) == ("s0", "s1", "s2")


@pytest.mark.spec("N5-15")
@pytest.mark.parametrize("name", dialects())
def test_what_is_read_of_a_dialect_is_not_written(name: str) -> None:
    path, values = dialects()[name]
    before = {key: json.loads(value) for key, value in values.items()}
    group = group_of(tessarr.open_n5(values, "r+", path=path))
    group.attrs["title"] = "cells"
    array_of(group["s1"]).attrs["title"] = "smaller"
    array_of(group["s1"]).resize((4, 4, 4))
    prefix = f"{path}/" if path else ""
    expected = {f"{prefix}attributes.json": {"n5": "4.0.0"} if not path else {}, **before}
    expected[f"{prefix}attributes.json"]["title"] = "cells"
    expected[f"{prefix}s1/attributes.json"] |= {"title": "smaller", "dimensions": [4, 4, 4]}
    assert {key: json.loads(value) for key, value in values.items()} == expected
    assert len(image_of(path, values).levels) == 3


@pytest.mark.spec("N5-15")
def test_paintera_is_described_at_both_groups_and_its_offset_is_physical() -> None:
    path, values = dialects()["paintera"]
    whole = image_of("raw", values)
    assert [one.path for one in whole.levels] == ["data/s0", "data/s1", "data/s2"]
    assert [one.scale for one in whole.levels] == [one.scale for one in image_of(path, values).levels]
    values["raw/data/attributes.json"] = json.dumps(
        {"multiScale": True, "resolution": [4, 4, 40], "offset": [1, 2, 3]}
    ).encode()
    assert [one.translation for one in image_of(path, values).levels] == [
        (3.0, 2.0, 1.0),
        (3.0, 4.0, 3.0),
        (3.0, 8.0, 7.0),
    ]


@pytest.mark.spec("N5-15")
def test_attributes_that_say_nothing_of_levels_stay_as_they_are() -> None:
    plain = {"s0/attributes.json": level(1), "s1/attributes.json": level(2)}
    assert group_of(tessarr.open_n5(plain)).attrs.asdict() == {}
    for said in (
        {"ome": {"version": "0.5"}, "pixelResolution": NM},
        {"multiscales": [{"version": "0.4", "axes": [], "datasets": []}], "scales": [[1, 1, 1]]},
    ):
        values = {**plain, "attributes.json": json.dumps(said).encode()}
        assert group_of(tessarr.open_n5(values)).attrs.asdict() == said


@pytest.mark.spec("N5-10", "N5-15")
@pytest.mark.parametrize(
    "said",
    [
        {"scales": "big"}, {"scales": [[1, 1, 1], "x"]}, {"scales": [[]]}, {"pixelResolution": 5}, {"pixelResolution":
        {"unit": 5}},
        {"pixelResolution": {"dimensions": [1, "a", 2]}}, {"resolution": [1, 2, 3, 4, 5, 6, 7]},
        {"axes": ["x", "x", "x"], "scales": []}, {"axes": [1, 2, 3], "scales": []}, {"units": 5, "scales": []}, {"units": [5],
        "scales": []},
        {"multiscales": 5}, {"multiscales": [5]}, {"multiscales": [{"datasets": 5}]}, {"multiscales": [{"datasets": [{"path":
        5}]}]},
        {"multiscales": [{"datasets": [{"path": "s0", "transform": {"axes": ["x"], "scale": [1, 2]}}]}]}, {"offset": "o",
        "scales": []},
        {"painteraData": 5}, {"downsamplingFactors": [[True, 1, 1]]}, {"downsamplingFactors": 5},
    ],
    ids=str,
)  # fmt: skip
def test_dialects_that_lie_are_read_without_what_they_say(said: dict[str, Any]) -> None:
    values = {
        "attributes.json": json.dumps(said).encode(), "s0/attributes.json": level(1), "s1/attributes.json": level(2),
    }  # fmt: skip
    root = group_of(tessarr.open_n5(values))
    attributes = {name: value for name, value in root.attrs.asdict().items() if name not in ("ome", "multiscales")}
    expected = {name: value for name, value in said.items() if name != "multiscales"}
    assert json.dumps(attributes) == json.dumps(expected)
    assert not np.asarray(array_of(root["s1"])[...]).any()
    assert [path for path, _ in root.members(max_depth=None)] == ["s0", "s1"]


def test_a_level_or_group_with_malformed_attributes_is_an_error_only_of_itself() -> None:
    path, values = dialects()["n5-viewer"]
    values["c0/s1/attributes.json"] = b"{"
    assert [level.path for level in image_of(path, values).levels] == ["s0"]
    values["c0/attributes.json"] = b"[]"
    assert array_of(tessarr.open_n5(values, path="c0/s0")).dims == ("z", "y", "x")
    for broken in ("c0", "c0/s1"):
        with pytest.raises(MetadataValidationError):
            tessarr.open_n5(values, path=broken)


def test_levels_are_read_in_one_round_for_eight_of_them() -> None:
    from tessarr.storage import CountingStore, MemoryStore

    inner = CountingStore(MemoryStore(dialects()["n5-viewer"][1]))
    group = group_of(tessarr.open_n5(inner, path="c0"))
    inner.counter.clear()
    assert group_of(tessarr.open_n5(inner, path="c0")) == group
    assert inner.counter["fetch"] == 1
