"""The object model: nodes, JSON, names, flattening, equality, patterns and rules."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import model
from tessarr.errors import ContainsArrayError, MetadataValidationError, NodeNameError, NodeNotFoundError
from tessarr.model.flat import consolidated
from tessarr.model.node import check_member_name, with_attributes
from tessarr.types import JSON
from tests.model import zep6


def v3_array(**changes: Any) -> model.ArraySpecV3[Any]:
    given: dict[str, Any] = {
        "shape": [4],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    return model.ArraySpecV3(**{**given, **changes})


def v2_array(**changes: Any) -> model.ArraySpecV2[Any]:
    given: dict[str, Any] = {"shape": [4], "chunks": [2], "dtype": "<f4", "compressor": None}
    return model.ArraySpecV2(**{**given, **changes})


@pytest.mark.spec("ZOM-10", "ZOM-04")
def test_the_v2_array_of_the_draft_is_its_document_with_the_attributes_in_it() -> None:
    spec = model.from_json(zep6.V2_ARRAY)
    assert isinstance(spec, model.ArraySpecV2)
    assert spec.attributes == {"name": "my cool array"}
    assert spec.documents() == {
        ".zarray": {name: value for name, value in zep6.V2_ARRAY.items() if name != "attributes"},
        ".zattrs": {"name": "my cool array"},
    }
    assert spec.to_json() == zep6.V2_ARRAY


@pytest.mark.spec("ZOM-11")
def test_the_v3_group_of_the_draft_is_a_model_that_the_core_specification_refuses() -> None:
    spec = model.from_json(zep6.V3_PRINTED)
    problems = model.validate(spec)
    assert {problem.path for problem in problems} == {"array"}
    assert {problem.loc[0] for problem in problems} >= {"data_type", "codecs"}
    assert model.validate(model.from_json(zep6.V3_MENDED)) == []


@pytest.mark.spec("ZOM-12")
def test_the_v2_group_of_the_draft_is_refused_for_its_filters_and_right_without() -> None:
    with pytest.raises(MetadataValidationError, match="members/foo/filters"):
        model.from_json(zep6.V2_PRINTED)
    assert model.validate(model.from_json(zep6.V2_MENDED)) == []


@pytest.mark.spec("ZOM-13", "ZOM-05", "ZOM-06")
def test_several_groups_stand_at_one_level() -> None:
    spec = model.from_json(json.dumps(zep6.V2_SEVERAL_GROUPS))
    assert list(spec.members) == ["a", "b", "d"]  # type: ignore[union-attr]
    assert [path for path, _ in spec.walk()] == ["", "a", "a/x", "a/y", "b", "b/c", "d"]  # type: ignore[union-attr]
    assert spec["b/c"].members == {}  # type: ignore[index]
    assert "a/x" in spec  # type: ignore[operator]
    assert "a/x/z" not in spec  # type: ignore[operator]
    with pytest.raises(KeyError):
        spec["nope"]  # type: ignore[index]


@pytest.mark.spec("ZOM-08")
def test_members_may_be_absent_and_are_always_written() -> None:
    spec = model.from_json({"zarr_format": 3, "node_type": "group"})
    assert model.to_json(spec) == {"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {}}


@pytest.mark.spec("ZOM-07")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_with_members_is_refused(zarr_format: int) -> None:
    document = (v2_array() if zarr_format == 2 else v3_array()).to_json()
    with pytest.raises(MetadataValidationError, match="an array cannot have members"):
        model.from_json({**document, "members": {}})
    with pytest.raises(MetadataValidationError, match="an array cannot have members"):
        v2_array(extra={"members": {}})


@pytest.mark.spec("ZOM-02")
def test_attributes_have_string_keys_at_every_depth() -> None:
    for attributes in ({1: "x"}, {"a": {2: "x"}}, {"a": [{None: 1}]}, 7):
        with pytest.raises(MetadataValidationError, match="attributes"):
            model.GroupSpec(attributes=attributes)


@pytest.mark.spec("ZOM-03")
@pytest.mark.parametrize("obj", [None, [], {}, {"zarr_format": 1}, {"zarr_format": 3}, {"zarr_format": True},
                                 {"zarr_format": 3, "node_type": "table"}])  # fmt: skip
def test_what_is_neither_group_nor_array_is_refused(obj: Any) -> None:
    with pytest.raises(MetadataValidationError):
        model.from_json(obj)


@pytest.mark.spec("ZOM-06")
def test_a_member_name_is_one_node_name() -> None:
    for name in ("", "a/b", ".", "..", "...", "__zarr", "zarr.json"):
        with pytest.raises(NodeNameError):
            model.GroupSpec(members={name: v3_array()})
    check_member_name("__x", 2)
    check_member_name("__x", 3)  # with a warning where it is written
    with tessarr.config.set({"strict": True}), pytest.raises(NodeNameError):
        check_member_name("__x", 3)
    for name in (".zarray", ".zgroup", ".."):
        with pytest.raises(NodeNameError):
            check_member_name(name, 2)
    with pytest.raises(NodeNameError):
        check_member_name(7, 2)


@pytest.mark.spec("ZOM-24")
def test_a_hierarchy_of_two_formats_is_refused() -> None:
    with pytest.raises(MetadataValidationError, match="v3 group cannot hold a v2"):
        model.GroupSpec(members={"x": v2_array()})
    document: dict[str, JSON] = {"zarr_format": 2, "members": {"x": v3_array().to_json()}}
    with pytest.raises(MetadataValidationError, match="v2 group cannot hold a v3"):
        model.from_json(document)


def test_a_problem_is_told_with_its_place_and_all_problems_at_once() -> None:
    members: dict[str, JSON] = {"a": {"zarr_format": 3, "node_type": "array"}, "b": 7}
    broken: dict[str, JSON] = {"zarr_format": 3, "node_type": "group", "members": members}
    with pytest.raises(MetadataValidationError) as caught:
        model.from_json(broken)
    places = {"/".join(map(str, problem.loc)) for problem in caught.value.problems}
    assert "members/a/shape" in places
    assert "members/b" in places


@pytest.mark.spec("ZOM-09")
@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ({"members": 1}, {"_members": 1}),
        ({"members": 1, "_members": 2}, {"__members": 1, "_members": 2}),
        ({"members": 1, "__members": 2}, {"___members": 1, "__members": 2}),
        ({"members": 1, "_members": 2, "__members": 3}, {"___members": 1, "_members": 2, "__members": 3}),
    ],
)
def test_a_documents_own_members_get_another_name_and_get_it_back(own: Any, shown: Any) -> None:
    fields = {name: {"must_understand": False, "n": value} for name, value in own.items()}
    spec: model.GroupSpec[Any, Any] = model.GroupSpec(members={"x": v3_array()}, extra=fields)
    document = model.to_json(spec)
    assert {name: document[name]["n"] for name in shown} == shown  # type: ignore[index,call-overload]
    assert list(document["members"]) == ["x"]  # type: ignore[arg-type]
    back = model.from_json(document)
    assert back.extra == fields
    assert back.documents()["zarr.json"]["members"] == {"must_understand": False, "n": 1}


@pytest.mark.spec("ZOM-09")
@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ({"_members": 1}, {"___members": 1}),
        ({"__members": 1}, {"____members": 1}),
        ({"_members": 1, "__members": 2}, {"_members": 1, "____members": 2}),
        ({"_members": 1, "____members": 2}, {"_members": 1, "______members": 2}),
    ],
)
def test_names_like_the_renamed_one_are_told_from_it(own: Any, shown: Any) -> None:
    fields = {name: {"must_understand": False, "n": value} for name, value in own.items()}
    spec: model.GroupSpec[Any, Any] = model.GroupSpec(members={"x": v3_array()}, extra=fields)
    document = model.to_json(spec)
    assert {name: document[name]["n"] for name in document if name.endswith("_members")} == shown  # type: ignore[index,call-overload]
    assert model.from_json(document).extra == fields


@pytest.mark.spec("ZOM-18")
def test_flattening_gives_nodes_without_members_and_is_undone_in_any_order() -> None:
    spec = model.from_json(zep6.V2_SEVERAL_GROUPS)
    flat = model.flatten(spec)
    assert list(flat) == ["", "a", "a/x", "a/y", "b", "b/c", "d"]
    assert all(not getattr(node, "members", None) for node in flat.values())
    assert model.unflatten(dict(reversed(flat.items()))) == spec
    assert model.unflatten({f"/{path}": node for path, node in flat.items()}) == spec


@pytest.mark.spec("ZOM-18")
def test_consolidated_metadata_is_the_flat_model() -> None:
    spec = model.from_json(zep6.V3_MENDED)
    inline = consolidated(spec)  # type: ignore[arg-type]
    flat = model.flatten(spec)
    assert inline["metadata"] == {path: node.documents()["zarr.json"] for path, node in flat.items() if path}
    old = consolidated(model.from_json(zep6.V2_MENDED))  # type: ignore[arg-type]
    assert set(old["metadata"]) == {".zgroup", ".zattrs", "foo/.zarray", "foo/.zattrs"}  # type: ignore[arg-type]


def test_a_flat_model_with_holes_is_refused() -> None:
    group: model.GroupSpec[Any, Any] = model.GroupSpec()
    with pytest.raises(NodeNotFoundError):
        model.unflatten({"a": group})
    with pytest.raises(NodeNotFoundError):
        model.unflatten({"": group, "a/b": group})
    with pytest.raises(ContainsArrayError):
        model.unflatten({"": group, "a": v3_array(), "a/b": group})


@pytest.mark.spec("ZOM-23")
@pytest.mark.parametrize("example", [zep6.V2_ARRAY, zep6.V3_PRINTED, zep6.V3_MENDED, zep6.V2_MENDED,
                                     zep6.V2_SEVERAL_GROUPS])  # fmt: skip
def test_json_out_and_in_again_is_the_same_model(example: Any) -> None:
    spec = model.from_json(example)
    assert model.from_json(json.dumps(model.to_json(spec))) == spec
    assert model.to_json(model.from_json(json.dumps(model.to_json(spec)))) == model.to_json(spec)


SPELLINGS = [
    ({"codecs": ["bytes", "crc32c"]}, {"codecs": [{"name": "bytes"}, {"name": "crc32c", "configuration": {}}]}),
    ({"data_type": "int8"}, {"data_type": {"name": "int8"}}),
    ({"fill_value": "NaN"}, {"fill_value": float("nan")}),
    ({"fill_value": "NaN"}, {"fill_value": "0x7fc00000"}),
    ({"fill_value": 1}, {"fill_value": 1.0}),
    ({"dimension_names": None}, {"dimension_names": [None]}),
    ({"chunk_key_encoding": {"name": "default"}}, {}),
    ({"storage_transformers": ()}, {}),
    ({"codecs": [{"name": "bytes", "must_understand": True}]}, {"codecs": ["bytes"]}),
    (
        {"codecs": [{"name": "zstd", "configuration": {"level": 1, "checksum": False}}]},
        {"codecs": [{"name": "zstd", "configuration": {"level": 1}}]},
    ),
    (
        {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": ["bytes"], "index_location": "end"}}]},
        {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": [{"name": "bytes"}]}}]},
    ),
]


@pytest.mark.spec("ZOM-22")
@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_spellings_that_mean_the_same_are_equal(one: Any, other: Any) -> None:
    assert v3_array(**one) == v3_array(**other)
    assert model.diff(v3_array(**one), v3_array(**other)) == []


@pytest.mark.spec("ZOM-22")
@pytest.mark.parametrize(
    "change",
    [{"fill_value": "-Infinity"}, {"fill_value": "0x7fc00001"}, {"codecs": ["bytes", "crc32c"]}, {"shape": [5]},
     {"dimension_names": ["x"]}, {"attributes": {"a": True}}, {"data_type": "float64"}],
)  # fmt: skip
def test_what_differs_in_meaning_is_not_equal(change: Any) -> None:
    base = v3_array(fill_value="NaN", attributes={"a": 1})
    assert base != v3_array(**{"fill_value": "NaN", "attributes": {"a": 1}, **change})


@pytest.mark.spec("ZOM-22")
def test_the_order_of_members_does_not_count_and_parts_can_be_ignored() -> None:
    one = model.GroupSpec(members={"a": v3_array(), "b": v3_array(attributes={"x": 1})})
    other = model.GroupSpec(members={"b": v3_array(codecs=["vlen-utf8"]), "a": v3_array()})
    assert model.GroupSpec(members=dict(reversed([*one.members.items()]))) == one
    assert one != other
    assert not model.equal(one, other, ignore=["attributes"])
    assert model.equal(one, other, ignore=["attributes", "codecs"])
    assert [str(d) for d in model.diff(one, other)] == [
        '/b codecs/0/name: bytes → vlen-utf8',
        '/b codecs/0/configuration: removed {"endian": "little"}',
        '/b attributes: removed {"x": 1}',
    ]  # fmt: skip


def test_added_removed_and_replaced_nodes_are_told() -> None:
    one = model.GroupSpec(members={"a": v3_array(), "b": v3_array(), "c": model.GroupSpec()})
    other = model.GroupSpec(members={"b": model.GroupSpec(), "c": model.GroupSpec(members={"d": v3_array()})})
    found = model.diff(one, other)
    assert [(d.path, d.kind, d.old, d.new) for d in found] == [
        ("a", "removed", "array", None),
        ("b", "changed", "array", "group"),
        ("c/d", "added", None, "array"),
    ]
    assert found[0].to_json() == {"path": "a", "loc": [], "kind": "removed", "old": "array", "new": None}


@pytest.mark.spec("ZOM-21")
def test_a_pattern_says_what_structure_a_hierarchy_must_have() -> None:
    volume = v3_array(
        shape=[2, 3, 4],
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [1, 3, 4]}},
        dimension_names=["z", "y", "x"],
    )
    spec = model.GroupSpec(attributes={"v": 1}, members={"a": model.GroupSpec(members={"volume": volume})})
    wanted: dict[str, Any] = {"ndim": 3, "dtype": "float", "dims": ["z", "y", "x"], "chunk_shape": [1, ..., ...]}
    pattern: dict[str, Any] = {"members": {"a": {"kind": "group", "members": {"volume": wanted}}}}
    assert model.like(spec, pattern)
    for change in ({"ndim": 2}, {"dtype": "integer"}, {"dtype": "float64"}, {"dims": ["a", "y", "x"]},
                   {"chunk_shape": [2, ..., ...]}, {"fill_value": 1}, {"kind": "group"}, {"no": ...}):  # fmt: skip
        changed = copy.deepcopy(pattern)
        changed["members"]["a"]["members"]["volume"] = {**wanted, **change}
        problems = model.mismatches(spec, changed)
        assert [problem.path for problem in problems] == ["a/volume"], change
    assert not model.like(spec, {"members": {"b": ...}})
    assert model.like(spec, {"optional": {"b": {"ndim": 9}}, "members": {"a": ...}, "others": False})
    assert not model.like(spec, {"others": False})
    assert model.like(spec, {"attributes": {"v": lambda v: v > 0}})
    assert not model.like(spec, {"attributes": {"v": lambda v: v > 1}})
    assert model.like(spec, lambda node: len(node.members) == 1)
    assert model.like(spec, spec)
    assert not model.like(spec, spec.with_(attributes={}))
    assert model.like(spec, spec.with_(attributes={}), ignore=("attributes",))


@pytest.mark.spec("ZOM-20")
def test_a_rule_of_ones_own_is_told_the_path() -> None:
    def one_name_per_dimension(path: str, array: Any) -> str | None:
        names = array.attributes.get("_ARRAY_DIMENSIONS", [])
        return None if len(names) == len(array.shape) else f"{len(names)} names for {len(array.shape)} dimensions"

    right = v2_array(attributes={"_ARRAY_DIMENSIONS": ["x"]})
    wrong = v2_array(attributes={"_ARRAY_DIMENSIONS": ["x", "y"]})
    group = model.GroupSpec(zarr_format=2, members={"right": right, "wrong": wrong})
    tree = model.GroupSpec(zarr_format=2, members={"g": group})
    problems = model.validate(tree, one_name_per_dimension)
    assert [(problem.path, problem.kind) for problem in problems] == [("g/wrong", "rule")]
    with pytest.raises(MetadataValidationError, match="/g/wrong: 2 names for 1 dimensions"):
        model.require_valid(tree, one_name_per_dimension)
    model.require_valid(tree)


@pytest.mark.spec("ZOM-20")
def test_every_problem_of_a_document_is_told_with_its_node() -> None:
    tree = model.GroupSpec(members={"bad": v3_array(fill_value="x", codecs=["GZip"]), "good": v3_array()})
    problems = model.validate(tree)
    assert {(problem.path, problem.loc[0]) for problem in problems} == {("bad", "fill_value"), ("bad", "codecs")}
    assert problems[0].to_json()["path"] == "bad"


@dataclass
class XAttrs:
    _ARRAY_DIMENSIONS: list[str]


@pytest.mark.spec("ZOM-19")
def test_attributes_may_be_a_type_of_ones_own() -> None:
    array = v2_array(attributes=XAttrs(["x"]))
    assert array.to_json()["attributes"] == {"_ARRAY_DIMENSIONS": ["x"]}
    typed = with_attributes(v2_array(attributes={"_ARRAY_DIMENSIONS": ["y"]}), lambda found: XAttrs(**found))
    assert typed.attributes == XAttrs(["y"])
    assert typed == v2_array(attributes={"_ARRAY_DIMENSIONS": ["y"]})


TYPED = """
from __future__ import annotations
from dataclasses import dataclass
from typing import Any, TypeAlias
from tessarr.model import ArraySpecV2, GroupSpec

@dataclass
class XAttrs:
    _ARRAY_DIMENSIONS: list[str]

XArraySpec: TypeAlias = ArraySpecV2[XAttrs]
XGroupSpec: TypeAlias = GroupSpec[dict[str, Any], XArraySpec]

spec: XGroupSpec = GroupSpec(
    zarr_format=2,
    attributes={{}},
    members={{
        "array_0": ArraySpecV2(
            shape=[10, 10], attributes={attributes}, dtype="|u1", chunks=[10, 10], compressor=None,
            dimension_separator=".",
        )
    }},
)
"""


@pytest.mark.spec("ZOM-19")
def test_the_xarray_example_of_the_draft_is_checked_by_a_type_checker(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(TYPED.format(attributes='XAttrs(_ARRAY_DIMENSIONS=["a", "b"])'))
    (tmp_path / "wrong.py").write_text(TYPED.format(attributes='{"foo": 10}'))
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path)]
    environment = {"MYPYPATH": str(root / "src"), "PATH": ""}
    files = [str(tmp_path / "right.py"), str(tmp_path / "wrong.py")]
    ran = subprocess.run([*command, *files], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    complaints = [line for line in ran.stdout.splitlines() if " error: " in line]
    assert complaints
    assert all(line.partition(":")[0].endswith("wrong.py") for line in complaints)
    assert "XAttrs" in "".join(complaints)


@pytest.mark.parametrize(
    ("dtype", "holds"),
    [
        ("float", True), ("floating", True), (np.floating, True), (np.float32, True), (np.dtype(">f4"), True),
        ("float32", True), ("f8", False), (np.integer, False), ("signed", False), ("bfloat16", False), ("struct", False),
        (lambda found: found.itemsize == 4, True), (..., True),
    ],
)  # fmt: skip
def test_a_pattern_names_a_dtype_in_many_ways(dtype: Any, holds: bool) -> None:
    assert model.like(v3_array(data_type="float32"), {"dtype": dtype}) is holds


def test_a_pattern_with_a_dtype_that_nothing_can_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="flaot"):
        model.like(v3_array(), {"dtype": "flaot"})
