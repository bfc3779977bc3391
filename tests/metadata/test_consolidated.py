"""Consolidated metadata of both formats, as real writers produce it."""

from __future__ import annotations

import pytest

from tessarr.common.warn import Diagnostic
from tessarr.errors import MetadataValidationError, ZarrRuntimeWarning
from tessarr.metadata import consolidated
from tessarr.types import JSON
from tests.work import counted_steps

GROUP: dict[str, JSON] = {"zarr_format": 3, "node_type": "group", "attributes": {}}
ARRAY: dict[str, JSON] = {"zarr_format": 3, "node_type": "array", "shape": [1]}


def inline(**metadata: JSON) -> dict[str, JSON]:
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def parsed(obj: object) -> consolidated.Consolidated:
    found = consolidated.parse_v3(obj)
    assert found is not None
    return found


@pytest.mark.spec("ZEP1-08")
def test_the_map_of_a_v3_group_gives_nodes_and_children() -> None:
    found = parsed(inline(**{"a": GROUP, "a/x": ARRAY, "b": ARRAY}))
    assert found.children("") == {"a": "group", "b": "array"}
    assert found.children("a") == {"x": "array"}
    assert found.children("b") == {}
    assert found.node("a/x") == {"zarr.json": ARRAY}
    assert found.node("nope") is None
    assert found.kind("a") == "group"
    assert found.kind("") is None


def test_an_empty_nested_block_means_see_the_outer_map() -> None:
    nested = {**GROUP, "consolidated_metadata": inline()}
    found = parsed(inline(**{"a": nested, "a/x": ARRAY}))
    assert found.children("a") == {"x": "array"}
    assert found.node("a") == {"zarr.json": GROUP}


def test_a_filled_nested_block_adds_only_what_the_outer_map_lacks() -> None:
    inner = {"x": {**ARRAY, "shape": [9]}, "y": ARRAY, "g": {**GROUP, "consolidated_metadata": inline(z=ARRAY)}}
    nested = {**GROUP, "consolidated_metadata": inline(**inner)}
    found = parsed(inline(**{"a": nested, "a/x": ARRAY}))
    assert found.node("a/x") == {"zarr.json": ARRAY}
    assert found.children("a") == {"x": "array", "y": "array", "g": "group"}
    assert found.children("a/g") == {"z": "array"}


def test_null_and_unknown_kinds_are_no_consolidated_metadata() -> None:
    assert consolidated.parse_v3(None) is None
    assert consolidated.parse_v3({"kind": "elsewhere", "must_understand": False, "metadata": {}}) is None


@pytest.mark.parametrize("value", [{}, {"kind": "inline"}, {"kind": "inline", "metadata": []}, 7])
def test_a_malformed_block_is_ignored_with_a_diagnostic(value: object) -> None:
    diagnostics: list[Diagnostic] = []
    assert consolidated.parse_v3(value, diagnostics) is None
    (found,) = diagnostics
    assert "malformed" in found.message
    assert found.category is ZarrRuntimeWarning


def test_a_group_below_sees_the_same_map_from_its_own_place() -> None:
    found = parsed(inline(**{"a": GROUP, "a/b": GROUP, "a/b/x": ARRAY, "ab": ARRAY}))
    below = found.under("a")
    assert below.paths() == ("b", "b/x")
    assert below.under("b").children("") == {"x": "array"}
    assert below.node("b/x") == {"zarr.json": ARRAY}
    assert below.node("ab") is None


def test_what_is_written_is_sorted_by_depth_and_folded_name_without_nested_blocks() -> None:
    nodes: dict[str, dict[str, JSON]] = {
        "b/x": {"zarr.json": ARRAY},
        "B": {"zarr.json": GROUP},
        "a": {"zarr.json": {**GROUP, "consolidated_metadata": inline()}},
        "b": {"zarr.json": GROUP},
    }
    written = consolidated.dump_v3(nodes)
    assert written == inline(**{"a": GROUP, "B": GROUP, "b": GROUP, "b/x": ARRAY})
    assert list(written["metadata"]) == ["a", "B", "b", "b/x"]  # type: ignore[arg-type]
    assert parsed(written).to_json() == written


def test_the_map_of_a_v2_group_holds_the_group_itself() -> None:
    document = {
        "zarr_consolidated_format": 1,
        "metadata": {
            ".zgroup": {"zarr_format": 2},
            ".zattrs": {"title": "x"},
            "air/.zarray": {"zarr_format": 2},
            "air/.zattrs": {"units": "K"},
            "sub/.zgroup": {"zarr_format": 2, "consolidated_metadata": {"metadata": {}}},
            "sub/.nczgroup": {},
            "odd/.zattrs": {},
        },
    }
    found = consolidated.parse_v2(document)
    assert found.node("") == {".zgroup": {"zarr_format": 2}, ".zattrs": {"title": "x"}}
    assert found.children("") == {"air": "array", "sub": "group"}
    assert found.node("air") == {".zarray": {"zarr_format": 2}, ".zattrs": {"units": "K"}}
    assert found.node("odd") is None
    assert found.to_json() == {
        "zarr_consolidated_format": 1,
        "metadata": {
            ".zattrs": {"title": "x"},
            ".zgroup": {"zarr_format": 2},
            "air/.zarray": {"zarr_format": 2},
            "air/.zattrs": {"units": "K"},
            "sub/.zgroup": {"zarr_format": 2},
        },
    }


def test_values_that_are_json_text_are_read_as_very_old_writers_left_them() -> None:
    found = consolidated.parse_v2({"metadata": {".zgroup": '{"zarr_format": 2}', "a/.zarray": '{"fill_value": NaN}'}})
    assert found.node("") == {".zgroup": {"zarr_format": 2}}
    node = found.node("a")
    assert node is not None
    assert node[".zarray"]["fill_value"] != node[".zarray"]["fill_value"]
    broken = consolidated.parse_v2({"metadata": {"a/.zarray": "{"}})
    with pytest.raises(MetadataValidationError, match=r"a/\.zarray"):
        broken.node("a")


@pytest.mark.parametrize("document", [None, [], {}, {"metadata": []}, {"zarr_consolidated_format": 2, "metadata": {}}])
def test_what_is_no_zmetadata_is_an_error(document: object) -> None:
    with pytest.raises(MetadataValidationError):
        consolidated.parse_v2(document)


@pytest.mark.spec("ZEP1-08")
def test_ten_thousand_nodes_are_indexed_in_one_pass_and_parsed_one_by_one() -> None:
    wrong: dict[str, JSON] = {"zarr_format": 3, "node_type": "array"}

    def steps(groups: int) -> int:
        entries = {f"g{i}/x{j}": wrong for i in range(groups) for j in range(100)}
        document = inline(**entries, **{f"g{i}": GROUP for i in range(groups)})
        with counted_steps() as counted:
            found = parsed(document)
            assert len(found.children("")) == groups
            assert len(found.children("g7")) == 100
            assert found.parsed("g7").attributes == {}
            for i in range(groups):
                assert found.children(f"g{i}")
        with pytest.raises(MetadataValidationError):
            found.parsed("g7/x7")
        return counted.count

    few, many = steps(10), steps(100)
    assert many < 11 * few  # ten times the nodes; what looks at all nodes for each group would take a hundred times
