"""Differences and digests of hierarchies."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import MetadataValidationError
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools import digest as digests
from tessarr.tools.diff import diff, equal_elements
from tessarr.tools.digest import Digest, blocks, digest

VALUES = np.arange(24.0).reshape(4, 6)


def tree(store: Any = None, *, zarr_format: int = 3, value: Any = VALUES, **options: Any) -> Any:
    group = tessarr.create_group(MemoryStore() if store is None else store, zarr_format=zarr_format)
    given = {"shape": (4, 6), "chunks": (2, 3), "dtype": "f8", "fill_value": 0, **options}
    array = group.create_group("a", attributes={"n": 1}).create_array("x", dimension_names=("y", "x"), **given)
    array[...] = value
    return group


def test_a_hierarchy_equals_its_copy(tmp_path: Path) -> None:
    found = diff(tree(), tree(LocalStore(tmp_path)), data=True)
    assert found.equal
    assert str(found).endswith("are equal")
    assert found.to_json()["equal"] is True


def test_differences_of_structure_and_values_are_told() -> None:
    a, b = tree(), tree()
    b["a"].attrs["n"] = 2
    b["a/x"][1, 2] = -1
    b["a/x"][3, 5] = np.nan
    b.create_group("new")
    found = diff(a, b, data=True)
    assert [str(item) for item in found.structure] == ["/a attributes/n: 1 → 2", "/new: added group"]
    (value,) = found.values
    assert (value.path, value.count, value.size, value.first) == ("a/x", 2, 24, (1, 2))
    assert "8.0" in value.message
    assert json.loads(json.dumps(found.to_json()))["values"][0]["first"] == [1, 2]
    assert diff(a, b, ignore=["attributes", "members"]).equal
    assert not diff(a, b, ignore=["attributes"]).equal


def test_hierarchies_of_two_formats_are_compared_in_the_words_of_v3() -> None:
    new, old = tree(compressors=None), tree(zarr_format=2, compressors=None)
    assert diff(old, new, ignore=["chunk_keys"], data=True).equal
    assert [item.loc[0] for item in diff(old, new).structure] == ["chunk_key_encoding"] * len(diff(old, new).structure)


def test_shapes_that_differ_are_not_compared_by_value() -> None:
    found = diff(tree(), tree(shape=(4, 5), value=0), data=True)
    assert "cannot be compared" in found.values[0].message


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (0.0, -0.0, False),
        (np.nan, np.nan, True),
        ("NaT", "NaT", None),
        (1.0, 1.5, False),
    ],
)
def test_elements_are_compared_bit_by_bit(a: Any, b: Any, same: bool | None) -> None:
    if same is None:
        times = np.array([a], "M8[s]")
        assert equal_elements(times, times).tolist() == [True]
        return
    assert equal_elements(np.array([a]), np.array([b])).tolist() == [same]
    assert equal_elements(np.array([a], ">f8"), np.array([b], "<f8")).tolist() == [same]
    assert equal_elements(np.array(["x", "y"]), np.array(["x", "z"])).tolist() == [True, False]


LAYOUTS: list[dict[str, Any]] = [
    {"chunks": (1, 6)},
    {"chunks": (4, 1), "compressors": None},
    {"shards": (4, 6), "chunks": (2, 2)},
    {"zarr_format": 2, "order": "F"},
    {"dtype": ">f8", "zarr_format": 2},
]


@pytest.mark.parametrize("options", LAYOUTS, ids=lambda options: json.dumps(options)[:40])
def test_a_digest_does_not_depend_on_how_values_are_stored(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for elements in (1 << 22, 5):
        monkeypatch.setattr(digests, "BLOCK_ELEMENTS", elements)
        assert digest(tree(**options)).nodes == digest(tree()).nodes


def test_a_digest_changes_with_anything_that_counts() -> None:
    base = digest(tree())
    changed = {
        "value": tree(value=VALUES + 1),
        "minus zero": tree(value=np.where(VALUES == 0, -0.0, VALUES)),
        "dtype": tree(dtype="f4"),
        "fill": tree(fill_value=1),
        "shape": tree(shape=(4, 7), value=0),
    }
    for what, other in changed.items():
        assert base.differing(digest(other)) == ["", "a", "a/x"], what
    attributes = tree()
    attributes["a"].attrs["n"] = 2
    assert base.differing(digest(attributes)) == ["", "a"]
    assert digest(attributes, attributes=False).nodes == digest(tree(), attributes=False).nodes
    more = tree()
    more.create_group("b")
    assert base.differing(digest(more)) == ["", "b"]


def test_a_digest_kept_elsewhere_stands_for_the_original(tmp_path: Path) -> None:
    kept = json.dumps(digest(tree()).to_json())
    copy = tree(LocalStore(tmp_path))
    assert Digest.from_json(json.loads(kept)).differing(digest(copy)) == []
    copy["a/x"][0, 0] = 9
    assert Digest.from_json(json.loads(kept)).differing(digest(copy)) == ["", "a", "a/x"]
    with pytest.raises(MetadataValidationError, match="unknown kind of digest"):
        Digest.from_json({"digest": "md5", "nodes": {}})


def test_digests_of_text_times_and_scalars_are_stable() -> None:
    for value, dtype in ((np.array(["a", "bc", ""], object), str), (np.array([1, 2, 3], "M8[s]"), "M8[s]"), (7, "i4")):
        made = tessarr.create_array(MemoryStore(), shape=np.shape(value), dtype=dtype)
        other = tessarr.create_array(MemoryStore(), shape=np.shape(value), dtype=dtype, chunks=(1,) * np.ndim(value))
        made[...] = other[...] = value
        assert digest(made).root == digest(other).root


def test_times_of_another_unit_have_another_digest() -> None:
    seconds, millis, spans = (
        tessarr.create_array(MemoryStore(), data=np.array([1, 2], dtype)) for dtype in ("M8[s]", "M8[ms]", "m8[s]")
    )
    assert len({digest(array).root for array in (seconds, millis, spans)}) == 3


def test_the_rule_of_the_digest_is_the_one_that_is_written_down() -> None:
    known = tessarr.create_array(MemoryStore(), shape=(3,), dtype="i2", fill_value=0)
    known[...] = [1, 2, 3]
    fill = hashlib.sha256(b"\0\0").hexdigest()
    description = (
        f'{{"attributes": {{}}, "dimension_names": null, "dtype": "int162", "fill_value": "{fill}", "kind": "array", '
        '"shape": [3]}'
    )
    block = hashlib.sha256(b"\1\0\2\0\3\0").digest()
    told = hashlib.sha256(description.encode()).hexdigest().encode()
    assert digest(known).root == hashlib.sha256(told + block).hexdigest()


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (3, 5), (2, 3, 4), (1, 100)])
def test_blocks_cover_every_element_once(shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for elements in (1, 4, 7, 1000):
        monkeypatch.setattr(digests, "BLOCK_ELEMENTS", elements)
        seen = np.zeros(shape, int)
        for box in blocks(shape):
            assert seen[box].size <= max(elements, 1)
            seen[box] += 1
        assert (seen == 1).all()
